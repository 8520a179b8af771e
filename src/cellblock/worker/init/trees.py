"""Files of a session as init reaches them: trees that the session may be changing, with modes that may refuse us.

Security border: no path that is opened here leads through a link, out of its root or into a mount.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, TypeVar
from weakref import WeakValueDictionary

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


class Place:
    """A path, as a name in a directory's place, or a root. Of each path there is one while anything refers to it: many
    paths take no more than their names, however deep they are.
    """

    __slots__ = ("__weakref__", "_below", "above", "name")
    _directory: ClassVar[tuple[Place | None, str]] = (None, "")
    """The directory whose path was needed last, and it."""

    def __init__(self, above: Place | None, name: str) -> None:
        self.above, self.name = above, name
        self._below: WeakValueDictionary[str, Place] | None = None

    def at(self, name: str) -> Place:
        """The place of a name in this directory."""
        if self._below is None:
            self._below = WeakValueDictionary()
        found = self._below.get(name)
        if found is None:
            found = self._below[name] = Place(self, name)
        return found

    def ways(self) -> Iterator[Place]:
        """This place and those above it, from here to the root."""
        place: Place | None = self
        while place is not None:
            yield place
            place = place.above

    def __str__(self) -> str:
        """The path."""
        if self.above is None:
            return self.name
        if Place._directory[0] is not self.above:
            names = [one.name for one in self.above.ways()]
            Place._directory = (self.above, "/".join(reversed(names)))
        return f"{Place._directory[1]}/{self.name}"


class Places:
    """The places of paths below some roots. A path in the directory of the one before is found by its name alone."""

    def __init__(self, roots: Iterable[Place]) -> None:
        self._roots = {str(root): root for root in roots}
        self._last: tuple[str, Place] | None = None

    def of(self, path: str) -> Place | None:
        """The place of a path; None below no root."""
        directory, _, name = path.rpartition("/")
        if self._last is None or self._last[0] != directory:
            root = next((root for root in self._roots if path.startswith(root + "/")), None)
            if root is None:
                return None
            place = self._roots[root]
            for one in directory[len(root) + 1 :].split("/") if directory != root else ():
                place = place.at(one)
            self._last = directory, place
        return self._last[1].at(name)


class Tree:
    """One directory of the session's, and all that is below it on the same file system."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.place = Place(None, root)
        self._directory = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self.device = os.stat(root).st_dev

    def scan(self, missed: list[Place]) -> Iterator[tuple[Place, os.stat_result]]:
        """Every place with what it is, directories before what is in them; those that are too long are `missed`."""
        pending = [self.place]
        while pending:
            directory = pending.pop()
            path = str(directory)
            if len(path) > _LONGEST_PATH:
                missed.append(directory)
                continue
            try:
                found = allowed(_list, path)
            except OSError:  # replaced or removed while we look
                continue
            for name, what in found:
                if what.st_dev != self.device:
                    continue
                place = directory.at(name)
                yield place, what
                if stat.S_ISDIR(what.st_mode):
                    pending.append(place)

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
    """Names with what they are, found from the directory itself: a long path is gone through once."""
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | _SAFE)
    try:
        with os.scandir(opened) as entries:
            return [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
    finally:
        os.close(opened)
