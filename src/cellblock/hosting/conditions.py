"""Conditions of a program under which no session opens, each with what helps: looked at once, before one does.

An opening raises the first that it meets, and `cellblock doctor` prints all. What can be set is set instead, by the
other modules of this package.
"""

from __future__ import annotations

import _socket
import _thread
import os
import select
import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import BuiltinFunctionType

from cellblock.errors import IsolationUnavailable
from cellblock.hosting.account import SANDBOX_UID, is_mapped, missing_capabilities

BOOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../worker/__main__.py"))
"""The program that interpreters are started with."""
_LEAST_FILE = 64 * 1024

Look = Callable[[], IsolationUnavailable | None]


def replaced() -> IsolationUnavailable | None:
    """Threads, waiting or sockets that are no longer the standard library's, as after gevent's `patch_all`."""
    parts: dict[str, Callable[..., object]] = {"threads": _thread.get_ident, "select": select.select}
    others = {what: call.__module__ for what, call in parts.items() if not isinstance(call, BuiltinFunctionType)}
    if not issubclass(socket.socket, _socket.socket):
        others["sockets"] = socket.socket.__module__
    if not others:
        return None
    who = next(iter(others.values())).partition(".")[0]
    return IsolationUnavailable(
        f"{who} has replaced this program's {', '.join(others)}, with which sessions wait",
        mechanism="threads",
        hint=f"open sessions in a process that {who} has not patched; with gunicorn, in its gthread workers",
    )


def packed() -> IsolationUnavailable | None:
    """A package within an archive, or within a frozen program."""
    if os.path.isfile(BOOT):
        return None
    return IsolationUnavailable(
        f"cellblock does not lie as files on disk, with which it starts other processes: there is no {BOOT}",
        mechanism="python",
        hint="install it, or unpack the zip archive; PyInstaller keeps its files by --collect-all cellblock",
    )


def no_interpreter(python: str | None = None) -> IsolationUnavailable | None:
    """A frozen program, or one with Python inside: it would start itself where no other interpreter is asked for."""
    own, is_frozen = sys.executable, bool(getattr(sys, "frozen", False))
    if python and not (is_frozen and python == own):
        return None
    if own and not is_frozen and "python" in os.path.basename(own).lower():
        return None
    what = f"{own} is {'a frozen program' if is_frozen else 'no Python'}" if own else "this program names no Python"
    return IsolationUnavailable(
        f"{what}, so there is no interpreter to start sessions with",
        mechanism="python",
        hint="name a CPython 3.11 or newer of this machine: Session(python=…)",
    )


def without_proc() -> IsolationUnavailable | None:
    """A root directory in which nothing tells of processes."""
    if os.path.exists("/proc/self/status"):
        return None
    return IsolationUnavailable("there is no /proc", mechanism="root", hint="mount one: mount -t proc proc /proc")


def chrooted() -> IsolationUnavailable | None:
    """A `/` that is no mount point: the kernel gives no user namespace to who is in a plain chroot."""
    try:
        with open("/proc/self/mountinfo", "rb") as mounts:
            if any(line.split()[4] == b"/" for line in mounts):
                return None
    except OSError:
        return None
    return IsolationUnavailable(
        "this program is in a chroot, where the kernel gives no user namespaces",
        mechanism="root",
        hint="enter the directory by pivot_root instead, as bwrap, systemd-nspawn and container engines do",
    )


def powerless() -> IsolationUnavailable | None:
    """A root without the capabilities that it takes to run sessions as an account of their own."""
    try:
        if os.getuid() != 0 or not is_mapped(SANDBOX_UID) or not (missing := missing_capabilities()):
            return None
    except OSError:  # there is no /proc
        return None
    return IsolationUnavailable(
        f"root runs sessions as the account {SANDBOX_UID}, and has no {', '.join(missing)} here",
        mechanism="identity",
        hint="give it these capabilities, or run as an ordinary user: in a container, --user 1000",
    )


def small_files() -> IsolationUnavailable | None:
    """A limit below the size of the files that a session begins with."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    if most < 0 or most >= _LEAST_FILE:
        return None
    return IsolationUnavailable(
        f"this program may write no file of more than {most} bytes (RLIMIT_FSIZE)",
        mechanism="files",
        hint="raise the limit: ulimit -f unlimited",
    )


WALLS: tuple[Look, ...] = (without_proc, chrooted, powerless, small_files)
"""Of a session behind full walls."""


def found() -> Iterator[IsolationUnavailable]:
    """All that hold for this program."""
    return (error for look in (replaced, packed, no_interpreter, *WALLS) if (error := look()) is not None)


def interpreter(python: str | None) -> str:
    """The interpreter of a session: the one that is asked for, or the program's own."""
    require(partial(no_interpreter, python))
    return python or sys.executable


def require(*looks: Look) -> None:
    """Raise the first that holds."""
    for look in looks:
        if (error := look()) is not None:
            raise error
