"""Space that a session's files take on the host's disk, and the removal of them all.

Files that were removed and are still open are counted; those that are only mapped are not.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterable
from dataclasses import dataclass

_BLOCK = 512
_DEEPEST = 128
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Usage:
    """Bytes of blocks, and how many files and directories."""

    bytes: int
    files: int


class Uncountable(Exception):
    """Directories nested deeper than anybody needs, so that they cannot be counted."""

    def __init__(self) -> None:
        super().__init__("its directories were nested too deep to be counted")


def used(places: Iterable[int], processes: Iterable[int], most_files: int) -> Usage:
    """Usage of files below directories, and of files without a name that processes hold open; stops past `most_files`.
    """
    total = _Total(most_files)
    for place in places:
        total.add_tree(place, 0)
    for process in processes:
        total.add_removed(process)
    return Usage(total.bytes, total.files)


class _Total:
    def __init__(self, most_files: int) -> None:
        self.bytes = self.files = 0
        self._most = most_files
        self._devices: set[int] = set()
        self._seen: set[tuple[int, int]] = set()

    def add_tree(self, directory: int, depth: int) -> None:
        if depth > _DEEPEST:
            raise Uncountable
        if not depth:
            self._devices.add(os.fstat(directory).st_dev)
        below = []
        with os.scandir(directory) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # removed while we look
                    found = entry.stat(follow_symlinks=False)
                    self._add(found)
                    if stat.S_ISDIR(found.st_mode):
                        below.append(entry.name)
                if self.files > self._most:
                    return
        for name in below:
            with contextlib.suppress(OSError):
                child = _entered(name, directory)
                try:
                    self.add_tree(child, depth + 1)
                finally:
                    os.close(child)

    def add_removed(self, process: int) -> None:
        folder = f"/proc/{process}/fd"
        try:
            numbers = os.listdir(folder)
        except OSError:
            return
        for number in numbers:
            with contextlib.suppress(OSError):
                found = os.stat(f"{folder}/{number}")
                if stat.S_ISREG(found.st_mode) and not found.st_nlink and found.st_dev in self._devices:
                    self._add(found)

    def _add(self, found: os.stat_result) -> None:
        if (found.st_dev, found.st_ino) not in self._seen:
            self._seen.add((found.st_dev, found.st_ino))
            self.bytes += found.st_blocks * _BLOCK
            self.files += 1


def _entered(name: str, directory: int) -> int:
    """A descriptor of a directory. One that the session has closed to its owner is opened for a moment.

    The rights are changed of what is held, never of a name: the session may put a link in its place meanwhile.
    """
    try:
        return os.open(name, _DIRECTORY, dir_fd=directory)
    except PermissionError:
        held = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        itself = f"/proc/self/fd/{held}"
        try:
            mode = stat.S_IMODE(os.fstat(held).st_mode)
            os.chmod(itself, 0o700)
            try:
                return os.open(itself, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            finally:
                os.chmod(itself, mode)
        finally:
            os.close(held)


def empty(directory: int) -> None:
    """Remove everything below a directory, however deep it is nested: what is deep is brought up first.

    OSError when something is left that cannot be removed.
    """
    while names := os.listdir(directory):
        if not sum(_removed(name, directory) or _brought_up(name, directory) for name in names):
            raise OSError(errno.ENOTEMPTY, f"{names[0]!r} cannot be removed")


def _removed(name: str, directory: int) -> bool:
    try:
        os.unlink(name, dir_fd=directory)
    except IsADirectoryError:
        try:
            os.rmdir(name, dir_fd=directory)
        except OSError:
            return False
    except OSError:
        return False
    return True


def _brought_up(name: str, directory: int) -> bool:
    """Move what a directory holds next to it; whether anything was moved or removed."""
    below = _entered(name, directory)
    os.fchmod(below, 0o700)  # what is in it is removed by who may write to it
    try:
        return sum(_removed(inner, below) or _moved(inner, below, directory) for inner in os.listdir(below)) > 0
    finally:
        os.close(below)


def _moved(name: str, below: int, directory: int) -> bool:
    """True if a directory could be moved: by who may write to it."""
    with contextlib.suppress(OSError):
        inner = _entered(name, below)
        try:
            os.fchmod(inner, 0o700)
            os.rename(name, f".{secrets.token_hex(16)}", src_dir_fd=below, dst_dir_fd=directory)
            return True
        finally:
            os.close(inner)
    return False
