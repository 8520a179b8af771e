"""Answers what a session asks about paths, and what it would change about files: Landlock covers neither.

The filter passes such calls here by the kernel's user notification, and the caller sleeps meanwhile. The path is
copied out of its memory once; opened here, to a descriptor that nothing can move; judged by where that really lies;
and asked about by that descriptor. The caller's memory takes the answer: nothing it does with its own copy of the
path after the call matters. What lies outside of the session's sight answers ENOENT, there or not.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from cellblock.worker.confine import listener as calls
from cellblock.worker.confine import syscalls
from cellblock.worker.confine.syscalls import AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW
from cellblock.worker.reduced.sight import WRITABLE_DEVICES, Sight

_PATH_BYTES = 4096
_TIMES_BYTES = 32
_SETUID_AND_SETGID = 0o6000
_MODE_BITS = 0o7777
_FLAGS = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH


class _Asked(NamedTuple):
    """A call under way, and the memory of the thread that made it."""

    call: calls.Call
    memory: int
    sight: Sight

    @property
    def arguments(self) -> tuple[int, ...]:
        return self.call.arguments


class _Found(NamedTuple):
    """File that a path led to: a descriptor, and its path."""

    descriptor: int
    path: str


_Act = Callable[[_Asked, _Found], int]


@dataclass(frozen=True, slots=True)
class _Call:
    """Positions of directory, path and flags among a call's arguments, and its effect on the file.

    `pathless`: it is, or may be, about the directory's descriptor itself, without a path.
    """

    act: _Act
    directory: int | None = None
    path: int | None = None
    flags: int | None = None
    follows: bool = True
    pathless: bool = False


class Attendant:
    """Answers calls of one worker and of all that it starts."""

    def __init__(self, listener: int, sight: Sight) -> None:
        self.listener = listener
        self._sight = sight

    def attend(self) -> None:
        """Answer one call. Security border: everything of it is hostile, and whatever fails is its own error."""
        call = calls.receive(self.listener)
        if call is None:  # interrupted or dead meanwhile
            return
        try:
            value = self._answer(call)
        except OSError as failure:
            calls.refuse(self.listener, call, failure.errno or errno.EPERM)
        except Exception:
            calls.refuse(self.listener, call, errno.EPERM)
        else:
            calls.give(self.listener, call, value)

    def _answer(self, call: calls.Call) -> int:
        """Security border: what was opened by the caller's number is its own only if it still waits."""
        answer = CALLS[call.name]
        memory = os.open(f"/proc/{call.caller}/mem", os.O_RDWR | os.O_CLOEXEC)
        try:
            calls.require_waiting(self.listener, call)
            asked = _Asked(call, memory, self._sight)
            found = _find(asked, answer)
            try:
                calls.require_waiting(self.listener, call)
                return answer.act(asked, found)
            finally:
                os.close(found.descriptor)
        finally:
            os.close(memory)


def _find(asked: _Asked, call: _Call) -> _Found:
    """The file of a call. ENOENT for what is out of sight, and for what does not exist: they look alike."""
    directory = AT_FDCWD if call.directory is None else asked.call.number(call.directory)
    flags = 0 if call.flags is None else asked.arguments[call.flags] & _FLAGS
    address = 0 if call.path is None else asked.arguments[call.path]
    path = _text(asked.memory, address) if address else b""
    if not path and (flags & AT_EMPTY_PATH or (not address and call.pathless)):
        descriptor, opened = _base(asked.call.caller, directory), directory != AT_FDCWD
    elif address:
        descriptor = _open(asked.call.caller, directory, path, call.follows and not flags & AT_SYMLINK_NOFOLLOW)
        opened = False
    else:
        raise OSError(errno.EFAULT, "no path")
    real = os.readlink(f"/proc/self/fd/{descriptor}")
    if not opened and not asked.sight.sees(real):  # what the caller has open it was allowed to open
        os.close(descriptor)
        raise FileNotFoundError(errno.ENOENT, "out of sight")
    return _Found(descriptor, real)


def _open(thread: int, directory: int, path: bytes, follow: bool) -> int:
    flags = os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    base = AT_FDCWD if path.startswith(b"/") else _base(thread, directory)
    try:
        return syscalls.openat2(base, path, flags, 0, syscalls.RESOLVE_NO_MAGICLINKS)
    except OSError as error:
        raise FileNotFoundError(errno.ENOENT, "not found") from error
    finally:
        if base != AT_FDCWD:
            os.close(base)


def _base(thread: int, directory: int) -> int:
    """A descriptor of what the caller's own descriptor is open on, or of its working directory."""
    link = f"/proc/{thread}/cwd" if directory == AT_FDCWD else f"/proc/{thread}/fd/{directory}"
    try:
        return os.open(link, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        raise OSError(errno.EBADF, "no such descriptor") from None


def _text(memory: int, address: int) -> bytes:
    """The string at an address."""
    found = _read(memory, address, _PATH_BYTES).partition(b"\0")
    if not found[1]:
        raise OSError(errno.ENAMETOOLONG, "no end")
    return found[0]


def _read(memory: int, address: int, size: int) -> bytes:
    """Up to `size` bytes; fewer where the mapping ends."""
    try:
        data = os.pread(memory, size, address)
    except (OSError, OverflowError):
        data = b""
    if not data:
        raise OSError(errno.EFAULT, "not mapped")
    return data


def _write(memory: int, address: int, data: bytes) -> None:
    try:
        written = os.pwrite(memory, data, address)
    except (OSError, OverflowError):
        written = 0
    if written != len(data):
        raise OSError(errno.EFAULT, "not mapped")


# --- what calls do with what they found ---


def _stat_into(place: int) -> _Act:
    def act(asked: _Asked, found: _Found) -> int:
        _write(asked.memory, asked.arguments[place], syscalls.stat_of(found.descriptor))
        return 0

    return act


def _statx(asked: _Asked, found: _Found) -> int:
    flags = asked.arguments[2] & ~_FLAGS & 0xFFFFFFFF
    _write(asked.memory, asked.arguments[4], syscalls.statx_of(found.descriptor, flags, asked.arguments[3]))
    return 0


def _statfs(asked: _Asked, found: _Found) -> int:
    _write(asked.memory, asked.arguments[1], syscalls.statfs_of(found.descriptor))
    return 0


def _access(place: int) -> _Act:
    def act(asked: _Asked, found: _Found) -> int:
        mode = asked.arguments[place] & 0xFFFFFFFF
        if mode & os.W_OK and found.path not in WRITABLE_DEVICES:
            _require_own(asked, found)
        syscalls.access_of(found.descriptor, mode)
        return 0

    return act


def _read_link(place: int) -> _Act:
    def act(asked: _Asked, found: _Found) -> int:
        size = asked.call.number(place + 1)
        if size <= 0:
            raise OSError(errno.EINVAL, "no room")
        if not stat.S_ISLNK(os.stat(found.descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a link")
        target = os.readlink(b"", dir_fd=found.descriptor)[:size]
        _write(asked.memory, asked.arguments[place], target)
        return len(target)

    return act


def _change_mode(place: int) -> _Act:
    def act(asked: _Asked, found: _Found) -> int:
        _require_own(asked, found)
        mode = asked.arguments[place] & _MODE_BITS
        if mode & _SETUID_AND_SETGID:
            raise OSError(errno.EPERM, "setuid")
        if stat.S_ISLNK(os.stat(found.descriptor).st_mode):
            raise OSError(errno.EOPNOTSUPP, "a link")
        os.chmod(f"/proc/self/fd/{found.descriptor}", mode)
        return 0

    return act


def _change_times(asked: _Asked, found: _Found) -> int:
    _require_own(asked, found)
    address = asked.arguments[2]
    times = None
    if address:
        times = _read(asked.memory, address, _TIMES_BYTES)
        if len(times) != _TIMES_BYTES:
            raise OSError(errno.EFAULT, "not mapped")
    syscalls.set_times_of(found.descriptor, times)
    return 0


def _require_own(asked: _Asked, found: _Found) -> None:
    if not asked.sight.owns(found.path):
        raise OSError(errno.EROFS, "not the session's own")


def _write_path(asked: _Asked, found: _Found) -> int:
    if not os.stat(found.descriptor).st_nlink:
        raise FileNotFoundError(errno.ENOENT, "removed")
    text = os.fsencode(found.path) + b"\0"
    if len(text) > asked.arguments[1]:
        raise OSError(errno.ERANGE, "no room")
    _write(asked.memory, asked.arguments[0], text)
    return len(text)


CALLS: Mapping[str, _Call] = {
    "stat": _Call(_stat_into(1), path=0),
    "lstat": _Call(_stat_into(1), path=0, follows=False),
    "newfstatat": _Call(_stat_into(2), directory=0, path=1, flags=3),
    "statx": _Call(_statx, directory=0, path=1, flags=2),
    "statfs": _Call(_statfs, path=0),
    "access": _Call(_access(1), path=0),
    "faccessat": _Call(_access(2), directory=0, path=1),
    "faccessat2": _Call(_access(2), directory=0, path=1, flags=3),
    "readlink": _Call(_read_link(1), path=0, follows=False),
    "readlinkat": _Call(_read_link(2), directory=0, path=1, follows=False),
    "chmod": _Call(_change_mode(1), path=0),
    "fchmod": _Call(_change_mode(1), directory=0, pathless=True),
    "fchmodat": _Call(_change_mode(2), directory=0, path=1),
    "fchmodat2": _Call(_change_mode(2), directory=0, path=1, flags=3),
    "utimensat": _Call(_change_times, directory=0, path=1, flags=3, pathless=True),
    "getcwd": _Call(_write_path, pathless=True),  # a session may go where a link leads that it may not read
}
"""The calls that are answered here, by name."""
