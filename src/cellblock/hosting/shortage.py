"""Resources that this process or machine runs out of: the error of a system call, told by the resource, its limit and
the remedy."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Coroutine
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, ParamSpec, TypeVar

from cellblock.errors import CellblockError

Given = ParamSpec("Given")
T = TypeVar("T")

UNLIMITED = 2**62
SPARE = 1 << 20
"""Bytes that what is large leaves free on a disk, for small writes of others."""
_OPENED = "no room for another session"
_CLOSE = "close sessions that are not used"
_OF_SESSION = "the session could not do this"
_SPACES = {"RLIMIT_AS": ("VmSize:", "-v"), "RLIMIT_DATA": ("VmData:", "-d")}
_STACK_BYTES = 16 << 20
_REFUSALS = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOENT, errno.EROFS)
_SYSTEM = ("/proc/", "/sys/", "/dev/")


def limit(name: str) -> tuple[int, int]:
    """A limit of this process, the soft and the hard one; none where the system has or tells none."""
    try:
        import resource

        soft, hard = (UNLIMITED if one < 0 else one for one in resource.getrlimit(getattr(resource, name)))
    except (ModuleNotFoundError, OSError):  # on Windows; a filter of system calls
        return UNLIMITED, UNLIMITED
    return soft, hard


def descriptors() -> int | None:
    """Number of open descriptors of this process; None where it cannot be told. Linux before 6.2 does not say so
    without a list."""
    try:
        return os.stat("/proc/self/fd").st_size or len(os.listdir("/proc/self/fd"))
    except OSError:
        return None


def has_room(path: str, size: int) -> bool:
    """True if the disk of a path takes so many bytes, and keeps `SPARE`; or where nothing tells."""
    try:
        disk = shutil.disk_usage(path)
    except OSError:
        return True
    return disk.free >= size + SPARE or not disk.total


def no_descriptors(failed: str = _OPENED) -> CellblockError:
    """The error of a process that may open no more descriptors."""
    soft, hard = limit("RLIMIT_NOFILE")
    of_others = ", and its sessions may come to need more," if failed == _OPENED else ","
    way = f"ulimit -n {_shown(hard)}" if hard > soft else "as root, ulimit -n, or LimitNOFILE= of its service"
    return CellblockError(
        f"{failed}: this process has {descriptors() or soft} descriptors open{of_others} of the {soft} that it is "
        "allowed (RLIMIT_NOFILE)",
        hint=f"{_CLOSE}, or raise the limit: {way}",
    )


def short_of(error: BaseException, failed: str = _OPENED) -> CellblockError | None:
    """The error to raise for one that is about a resource, which it names; None for any other error.

    That of a thread that was not started may have the `stack_bytes` that it was to have.
    """
    number = error.errno if isinstance(error, OSError) else errno.ENOMEM if isinstance(error, MemoryError) else None
    is_of_threads = isinstance(error, RuntimeError) and "start new thread" in str(error)
    if (is_of_threads or number == errno.ENOMEM) and _unshared():
        return CellblockError(
            f"{failed}: this program has unshared its pid namespace (CLONE_NEWPID), and may start no thread since, nor "
            "a process once its first one there has ended",
            hint="use sessions before that, or in a process that it starts after",
        )
    if (is_of_threads or number == errno.ENOMEM) and (name := _full_space(getattr(error, "stack_bytes", _STACK_BYTES))):
        most = _shown(limit(name)[0])
        return CellblockError(
            f"{failed}: of the {most} bytes of address space that this program may have ({name}) few are left",
            hint=f"{_CLOSE}, or raise the limit: ulimit {_SPACES[name][1]} unlimited",
        )
    if number == errno.EMFILE:
        return no_descriptors(failed)
    if number == errno.ENFILE:
        what, hint = "open files of the whole machine (fs.file-max)", f"{_CLOSE}, or raise it: sysctl fs.file-max=…"
    elif number == errno.EAGAIN or is_of_threads:
        soft, _ = limit("RLIMIT_NPROC")
        what = f"processes and threads (RLIMIT_NPROC is {_shown(soft)}; a control group's pids.max bounds them too)"
        hint = f"{_CLOSE}, or raise the limit: ulimit -u"
    elif number == errno.ENOMEM:
        what, hint = "memory of this machine, or of its control group", f"{_CLOSE}, or give the machine more"
    elif number == errno.EFBIG:
        soft, _ = limit("RLIMIT_FSIZE")
        return CellblockError(
            f"this program may write no file of more than {_shown(soft)} bytes (RLIMIT_FSIZE)",
            hint="raise the limit: ulimit -f unlimited",
        )
    elif number in (errno.ENOSPC, errno.EDQUOT):
        place = getattr(error, "filename", None) or "the directory of TMPDIR"
        what, hint = f"space on the disk of {place}", "free some, or set TMPDIR to another directory"
    else:
        return None
    return CellblockError(f"{failed}: no {what} is left", hint=hint)


def meant(error: BaseException) -> BaseException:
    """The error that a call of a session raises for one that it came upon."""
    short = short_of(error, _OF_SESSION) or _refused(error) if isinstance(error, OSError) else None
    if short is None:
        return error
    short.__cause__ = error
    return short


def _refused(error: OSError) -> CellblockError | None:
    """The error for a call that the system refuses, or a file of its own that is gone: it was there at the opening."""
    place = error.filename if isinstance(error.filename, str) else ""
    if error.errno not in _REFUSALS or not (place.startswith(_SYSTEM) if place else error.errno != errno.ENOENT):
        return None
    what = f"{error.strerror}: {place}" if place else error.strerror
    return CellblockError(
        f"{_OF_SESSION}: the system refuses what it gave when the session was opened ({what})",
        hint="see what this program has changed since: its root directory, its user, a filter of system calls, mounts",
    )


def named(call: Callable[Given, Coroutine[Any, Any, T]]) -> Callable[Given, Coroutine[Any, Any, T]]:
    """Border of a session's call: a resource that runs out within it is told by its name."""

    @wraps(call)
    async def carried_out(*args: Given.args, **options: Given.kwargs) -> T:
        try:
            return await call(*args, **options)
        except OSError as error:
            raise meant(error)  # noqa: B904 - which has its cause, or none

    return carried_out


def each_named(cls: type[T]) -> type[T]:
    """The same for every call that a class or one above it has, but for what is private."""
    for name in dir(cls):
        if not name.startswith("_") and iscoroutinefunction(call := getattr(cls, name)):
            setattr(cls, name, named(call))
    return cls


def _full_space(stack_bytes: int) -> str:
    """The limit of the address space that leaves no room for a thread's stack; "" where none does, or nothing tells."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            sizes = [line.split() for line in status if line.startswith(("VmSize:", "VmData:"))]
    except OSError:
        return ""
    used = {what: int(size) << 10 for what, size, _ in sizes}
    return next((name for name, (of, _) in _SPACES.items() if used.get(of, 0) + stack_bytes > limit(name)[0]), "")


def _unshared() -> bool:
    """Tell whether this process's children are in another pid namespace, which has no link before the first of them."""
    try:
        own = os.readlink("/proc/self/ns/pid")
    except OSError:  # there may be no /proc
        return False
    try:
        return os.readlink("/proc/self/ns/pid_for_children") != own
    except FileNotFoundError:
        return True


def _shown(limit: int) -> str:
    return "unlimited" if limit == UNLIMITED else str(limit)
