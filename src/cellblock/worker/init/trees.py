"""Files of a session as init reaches them: trees that the session may be changing, with modes that may refuse us.

Security border: no path that is opened here leads through a link, out of its root or into a mount.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from typing import TypeVar

from cellblock.worker.confine.syscalls import (
    RESOLVE_BENEATH,
    RESOLVE_NO_SYMLINKS,
    RESOLVE_NO_XDEV,
    openat2,
)

T = TypeVar("T")

_LONGEST_PATH = 4000
_RESOLVE = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV
_SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Tree:
    """One directory of the session's, and all that is below it on the same file system."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._directory = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self.device = os.stat(root).st_dev

    def scan(self, missed: list[str]) -> Iterator[tuple[str, os.stat_result]]:
        """Every path with what it is, directories before what is in them; those that are too long are `missed`."""
        pending = [self.root]
        while pending:
            directory = pending.pop()
            if len(directory) > _LONGEST_PATH:
                missed.append(directory)
                continue
            try:
                found = allowed(_list, directory)
            except OSError:  # replaced or removed while we look
                continue
            for path, what in found:
                if what.st_dev != self.device:
                    continue
                yield path, what
                if stat.S_ISDIR(what.st_mode):
                    pending.append(path)

    @contextlib.contextmanager
    def opened(self, path: str, flags: int) -> Iterator[int]:
        """A regular file's descriptor; OSError where something else is there meanwhile."""
        inside = path.removeprefix(self.root + "/")
        created = 0o600 if flags & os.O_CREAT else 0
        file = allowed(lambda _: openat2(self._directory, inside, flags | _SAFE, created, _RESOLVE), path)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise OSError(f"{path} is not a regular file")
            yield file
        finally:
            os.close(file)


def allowed(act: Callable[[str], T], path: str) -> T:
    """Do something with a path; where its mode, or that of a directory above it, refuses the owner, who we are, without
    these modes for a moment."""
    try:
        return act(path)
    except PermissionError:
        with contextlib.ExitStack() as modes:
            for place in _ways(path):
                _open_up(place, modes)
            return act(path)


def _open_up(place: str, modes: contextlib.ExitStack) -> None:
    with contextlib.suppress(FileNotFoundError):
        found = os.lstat(place)
        if not stat.S_ISLNK(found.st_mode) and found.st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(place, stat.S_IMODE(found.st_mode) | stat.S_IRWXU)
            modes.callback(_restore_mode, place, stat.S_IMODE(found.st_mode))


def remove(path: str, found: os.stat_result) -> None:
    """Remove a file, or a directory that is empty by now."""
    allowed(os.rmdir if stat.S_ISDIR(found.st_mode) else os.unlink, path)


def move(old: str, new: str) -> None:
    """Rename what is at `old`."""
    allowed(lambda old: allowed(lambda new: os.rename(old, new), new), old)


def _ways(path: str) -> list[str]:
    """The directories above a path, from the top, and it."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(2, len(parts) + 1)]


def _restore_mode(path: str, mode: int) -> None:
    with contextlib.suppress(FileNotFoundError):  # removed, which was to be done
        os.chmod(path, mode)


def _list(directory: str) -> list[tuple[str, os.stat_result]]:
    with os.scandir(directory) as entries:
        return [(entry.path, entry.stat(follow_symlinks=False)) for entry in entries]
