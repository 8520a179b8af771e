"""Conditions of a program under which no session opens, each with what helps: looked at once, before one does.

An opening raises the first that it meets, and `cellblock doctor` prints all. What can be set is set instead, by the
other modules of this package.
"""

from __future__ import annotations

import _thread
import errno
import os
import select
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial

from cellblock.errors import IsolationUnavailable
from cellblock.hosting.account import READABLE, SANDBOX_UID, is_mapped, missing_capabilities, unreadable
from cellblock.hosting.machine import DEVICES, MACHINE, is_device
from cellblock.hosting.shortage import limit

BOOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../worker/__main__.py"))
"""The program that interpreters are started with."""
_LEAST_FILE = 64 * 1024
_CLONE3, _OPENAT2, _PR_GET_DUMPABLE, _PR_GET_SECUREBITS, _CLONE_THREAD = 435, 437, 3, 27, 0x10000
_SECBIT_NOROOT = 1
_NUMBERS = {
    "x86_64": {"clone": 56, "umask": 95, "setgroups": 116, "setresuid": 117, "setresgid": 119},
    "aarch64": {"clone": 220, "umask": 166, "setgroups": 159, "setresuid": 147, "setresgid": 149},
}
"""Those of calls that the C library makes otherwise: in every thread, or without their errors."""

_WAITS = (
    ("threads", "_thread", "get_ident"), ("select", "select", "select"), ("sockets", "socket", "socket"),
    ("os", "os", "read"), ("os", "os", "waitpid"), ("subprocess", "subprocess", "Popen"),
    ("queue", "queue", "Queue"), ("queue", "queue", "SimpleQueue"),
)  # fmt: skip
"""That by which sessions, asyncio and anyio wait, by its name in an error, its module and its name there."""
_HOMES = {"_thread", "select", "socket", "posix", "nt", "subprocess", "queue", "_queue"}
"""The modules of all that where nobody has replaced it; a class that is derived from one of theirs will do."""

Look = Callable[[], str]
"""Tells the reason why no session can be had, "" where there is none."""


def replaced() -> str:
    """Threads, sockets or other parts that are no longer the standard library's, as after gevent's `patch_all`."""
    others: dict[str, str] = {}
    for what, module, name in _WAITS:
        if module in sys.modules:
            part = getattr(sys.modules[module], name, None)
            homes = [getattr(one, "__module__", None) for one in (part, *getattr(part, "__mro__", ()))]
            if _HOMES.isdisjoint(homes):
                others[what] = homes[0] or "something"
    who = next(iter(others.values()), "").partition(".")[0]
    return who and f"{who} has replaced this program's {', '.join(others)}, with which sessions wait"


def packed() -> str:
    """A package within an archive, or within a frozen program."""
    return "" if os.path.isfile(BOOT) else f"cellblock must lie as files on disk to start processes: there is no {BOOT}"


def shut() -> str:
    """A program that has become another user, who may not read the interpreter, or the engine."""
    path = unreadable()
    return path and f"{path} cannot be read by user {os.geteuid()}, which this program runs as"


def no_interpreter(python: str | None = None) -> str:
    """A frozen program, or one with Python inside: it would start itself where no other interpreter is asked for."""
    own, is_frozen = sys.executable, bool(getattr(sys, "frozen", False))
    if python and not (is_frozen and python == own):
        return ""
    if own and not is_frozen and "python" in os.path.basename(own).lower():
        return ""
    what = f"{own} is {'a frozen program' if is_frozen else 'no Python'}" if own else "this program names no Python"
    return f"{what}, so there is no interpreter to start sessions with"


def other_machine() -> str:
    """An interpreter for a machine whose system calls no filter knows."""
    return "" if MACHINE in _NUMBERS else f"sessions have no walls on {MACHINE or 'a 32-bit system'}"


def without_proc() -> str:
    """A root directory without a /proc, by which processes are told apart."""
    return "" if os.path.exists("/proc/self/status") else "there is no /proc"


def without_dev() -> str:
    """A /dev without the devices that every session is given, or with a file in the place of one: sessions would write
    there, and read it."""
    missing = [path for path in DEVICES if not os.path.exists(path)]
    if missing:
        return f"there is no {', '.join(missing)}"
    for path, (major, minor) in DEVICES.items():
        if not is_device(path, path):
            return f"{path} is not the kernel's device, which mknod -m 666 {path} c {major} {minor} makes"
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        except PermissionError as error:
            return f"{path} cannot be opened: {error.strerror}"
    return ""


def chrooted() -> str:
    """A `/` that is no mount point: who is in a plain chroot is given no user namespace."""
    with suppress(OSError), open("/proc/self/mountinfo", "rb") as mounts:
        if not any(line.split()[4] == b"/" for line in mounts):
            return "this program is in a chroot, where the kernel gives no user namespaces"
    return ""


def unmapped() -> str:
    """A user namespace without a map, in which nobody has a user."""
    with suppress(OSError), open("/proc/self/uid_map", "rb") as users:
        if not users.read():
            return "this program is in a user namespace without a map of users"
    return ""


def half_root() -> str:
    """An effective user that is root, and a real one that is another: the kernel goes by the one or the other."""
    real, effective = os.getuid(), os.geteuid()
    return "" if effective or not real else f"this program acts as root, and its real user is {real}"


def powerless() -> str:
    """A root without the capabilities that it takes to run sessions as an account of their own."""
    with suppress(OSError):  # there may be no /proc
        if os.getuid() == 0 and is_mapped(SANDBOX_UID):
            is_nobody = _by_library("prctl", _PR_GET_SECUREBITS, 0, 0, 0, 0) & _SECBIT_NOROOT
            if missing := missing_capabilities("CapAmb") if is_nobody else missing_capabilities():
                whose = "what it starts has (SECBIT_NOROOT)" if is_nobody else "has"
                return f"root runs sessions as the account {SANDBOX_UID}, and {whose} no {', '.join(missing)} here"
    return ""


def small_files() -> str:
    """A limit below the size of the files that a session begins with."""
    _, most = limit("RLIMIT_FSIZE")
    return f"this program may write no file of more than {most} bytes (RLIMIT_FSIZE)" if most < _LEAST_FILE else ""


def filtered() -> str:
    """A filter of system calls around the program, or an old kernel: one that every level's processes take is refused.

    Each is tried with arguments that do nothing.
    """
    import resource

    calls: dict[str, Callable[[], object]] = {
        "prlimit64": lambda: resource.getrlimit(resource.RLIMIT_NOFILE),
        "prctl": lambda: _by_library("prctl", _PR_GET_DUMPABLE, 0, 0, 0, 0),
        "pidfd_open": lambda: os.close(os.pidfd_open(os.getpid())),
        "epoll_create1": lambda: select.epoll().close(),
        "socketpair": lambda: _by_library("socketpair", -1, 0, 0, 0),
        "setsockopt": lambda: _by_library("setsockopt", -1, 0, 0, 0, 0),
        "ioctl": lambda: _by_library("ioctl", -1, 0, 0),
        "poll": lambda: select.poll().poll(0),
        "chdir": lambda: os.chdir(""),
        "readlink": lambda: os.readlink(""),
        "getrusage": lambda: resource.getrusage(resource.RUSAGE_SELF),
        "sched_getaffinity": lambda: os.sched_getaffinity(0),
        "sched_getscheduler": lambda: os.sched_getscheduler(0),
    }
    harmless: dict[str, tuple[int, ...]] = {"clone": (_CLONE_THREAD, 0, 0, 0, 0)}
    with suppress(OSError):  # there may be no /proc
        harmless["umask"] = (_umask(),)
        if os.getuid() == 0 and is_mapped(SANDBOX_UID) and not missing_capabilities():
            harmless |= {"setgroups": (-1, 0), "setresgid": (-1, -1, -1), "setresuid": (-1, -1, -1)}
    for name, number in _NUMBERS.get(MACHINE, {}).items():
        if name in harmless:
            calls[name] = partial(_by_library, "syscall", number, *harmless[name])
    return _refused(calls)


def filtered_more() -> str:
    """The same for calls that full walls and checkpoints take. Without namespaces, those are told by that name."""
    import signal

    calls: dict[str, Callable[[], object]] = {
        "memfd_create": lambda: os.close(os.memfd_create("cellblock")),
        "openat2": lambda: _by_library("syscall", _OPENAT2, -1, 0, 0, 0),
        "waitid": lambda: os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT),
        "rt_sigtimedwait": lambda: signal.sigtimedwait((), 0),
        "pidfd_send_signal": lambda: signal.pidfd_send_signal(-1, 0),
    }
    with suppress(OSError):
        _by_library("unshare", 0)
        calls["setns"] = lambda: _by_library("setns", -1, 0)
    return _refused(calls)


def threadless() -> str:
    """A filter under which no thread starts: newer C libraries take `clone3`, unless that is not there at all."""
    try:
        _thread.start_new_thread(int, ())
    except RuntimeError:
        reason = _refused({"clone3": lambda: _by_library("syscall", _CLONE3, 0, 0)})
        return "" if reason.endswith(os.strerror(errno.ENOSYS)) else reason
    return ""


def without_internet() -> str:
    """A filter around the program, or a kernel, that has no sockets of the internet: a session's own network takes one.

    Nothing is connected.
    """
    import _socket  # the program may have put another class into `socket`, as tests do that are to use no network

    try:
        _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM).close()
    except OSError as error:
        if error.errno in (errno.EAFNOSUPPORT, errno.EPERM, errno.EACCES, errno.ENOSYS):
            return f"this program may open no sockets of the family AF_INET: {os.strerror(error.errno)}"
    return ""


def _umask() -> int:
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1], 8) for line in file if line.startswith("Umask:"))


def _refused(calls: Mapping[str, Callable[[], object]]) -> str:
    for name, call in calls.items():
        try:
            call()
        except OSError as error:  # others than the two are the call's own
            if error.errno in (errno.EPERM, errno.ENOSYS):
                return f"this program may not make the system call {name}: {os.strerror(error.errno)}"
    return ""


def _by_library(name: str, *arguments: int) -> int:
    import ctypes

    if (answer := int(getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments))) < 0:
        raise OSError(ctypes.get_errno(), "")
    return answer


_FILTER = (
    "calls",
    "allow it in the filter around the program, such as SystemCallFilter= of its service, or a container's seccomp "
    "profile, which `cellblock doctor --profile seccomp` prints; or use Linux 5.13 or newer",
)
_TABLE: dict[Look, tuple[str, str]] = {
    replaced: ("threads", "open sessions in a process without it; with gunicorn, in its gthread workers"),
    packed: ("python", "install it, or unpack the archive; PyInstaller keeps its files by --collect-all cellblock"),
    shut: ("python", READABLE),
    no_interpreter: ("python", "name a CPython 3.11 or newer of this machine: Session(python=…)"),
    other_machine: ("seccomp", "use a CPython for x86_64 or aarch64, or trust_level='local' for harmless code"),
    without_proc: ("root", "mount one: mount -t proc proc /proc"),
    without_dev: (
        "root",
        "have the container or mount namespace around the program bind them from the host's /dev, not mounted nodev",
    ),
    chrooted: ("root", "enter the directory by pivot_root, as bwrap, systemd-nspawn and container engines do"),
    unmapped: ("identity", "write one, as by unshare --map-root-user, before the program begins"),
    half_root: ("identity", "set both to one, as by os.setresuid or setpriv --ruid"),
    powerless: ("identity", "give it these capabilities, or run as an ordinary user: in a container, --user 1000"),
    small_files: ("files", "raise the limit: ulimit -f unlimited"),
    threadless: _FILTER,
    filtered: _FILTER,
    filtered_more: _FILTER,
    without_internet: (
        "network",
        "have RestrictAddressFamilies= of its service name AF_UNIX and AF_INET, or allow it in the filter around the "
        "program: sessions have a loopback of their own, and reach nothing else by it",
    ),
}
"""The mechanism that lacks, and what helps."""
WALLS: tuple[Look, ...] = (
    other_machine, without_proc, without_dev, chrooted, unmapped, half_root, powerless, small_files,
    filtered, filtered_more, without_internet,
)  # fmt: skip
"""Conditions of sessions behind full walls alone."""


def found() -> Iterator[IsolationUnavailable]:
    """All that hold for this program."""
    return (_error(look, reason) for look in _TABLE if (reason := look()))


def require(*looks: Look) -> None:
    """Raise the first that holds."""
    for look in looks:
        if reason := look():
            raise _error(look, reason)


def interpreter(python: str | None) -> str:
    """The interpreter of a session: the one that is asked for, or the program's own."""
    if reason := no_interpreter(python):
        raise _error(no_interpreter, reason)
    return python or sys.executable


def _error(look: Look, reason: str) -> IsolationUnavailable:
    mechanism, remedy = _TABLE[look]
    return IsolationUnavailable(reason, mechanism=mechanism, hint=remedy)
