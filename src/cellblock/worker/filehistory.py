"""What the session's files were at each checkpoint, and how they become that again.

Runs in init, over the directories that a session may write to. What changed is told by inode, size and time of
change, none of which the code inside can set; of what changed, the contents are copied to a store that the session
does not see, in chunks that unchanged parts share with the copy before.

A time of change has the grain of the kernel's clock, unless the kernel makes it finer for a file that was looked at
(Linux 6.13). Where it does not, a file that changed just before it was looked at is looked at again. A page that a
process has mapped to be shared and written changes without a time at all: such files count as changed.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

CHUNK_BYTES = 2**20
_GRAIN_NS = 20_000_000
_LONGEST_PATH = 4000
_COPIED_AT_ONCE = 2**26


class Chunk:
    """A file of the store; it goes when nothing refers to it any more."""

    __slots__ = ("_name", "_store")
    _made = 0

    def __init__(self, store: int, data: bytes) -> None:
        Chunk._made += 1
        self._store, self._name = store, str(Chunk._made)
        file = os.open(self._name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=store)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(file, view) :]
        finally:
            os.close(file)

    def read(self) -> bytes:
        file = os.open(self._name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._store)
        try:
            return os.read(file, CHUNK_BYTES)
        finally:
            os.close(file)

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._name, dir_fd=self._store)


@dataclass(frozen=True, slots=True)
class Content:
    """A regular file's bytes; None is a chunk that is a hole."""

    size: int
    chunks: tuple[Chunk | None, ...]


Stamp = tuple[int, int, int]
"""Inode, time of change in ns, size. Two equal stamps of one path mean the same contents."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What one path was. `held` is a file's contents or a link's target; `same` is common to the paths of one inode."""

    kind: int
    mode: int
    modified_ns: int
    held: Content | str | None = None
    same: int = 0


@dataclass(frozen=True, slots=True)
class Kept:
    """One checkpoint's files, and the paths that could not be kept."""

    entries: dict[str, Entry]
    missed: tuple[str, ...] = ()


class FileHistory:
    """The trees below `roots`, which all are on one file system; `store` is a descriptor of an empty directory."""

    def __init__(self, roots: Iterable[str], store: int) -> None:
        self._roots = tuple(roots)
        self._store = store
        self._device = os.stat(self._roots[0]).st_dev
        self._kept: dict[int, Kept] = {}
        self._known: dict[str, tuple[Stamp | None, Entry]] = {}
        self._fine = _has_fine_times(store)
        self.keep(0)

    # ------------------------------------------------------------------------------------------ keeping

    def keep(self, number: int, mapped: frozenset[int] = frozenset()) -> Kept:
        """Remember the files as they are; `mapped` are inodes that may change without a time of change."""
        known = self._known
        entries: dict[str, Entry] = {}
        missed: list[str] = []
        for path, found in self._scan(missed):
            was = known.get(path)
            stamp = _stamp(found)
            if was is not None and was[0] == stamp and found.st_ino not in mapped and _alike(was[1], found):
                entries[path] = was[1]
                continue
            entry = self._take(path, found, None if was is None else was[1], missed)
            if entry is None:
                continue
            entries[path] = entry
            settled = self._fine or found.st_ctime_ns < time.time_ns() - _GRAIN_NS
            known[path] = (stamp if settled else None, entry)
        for path in known.keys() - entries.keys():
            del known[path]
        kept = self._kept[number] = Kept(entries, tuple(missed))
        return kept

    def forget(self, numbers: Iterable[int]) -> None:
        """Let go of the files of checkpoints."""
        for number in numbers:
            self._kept.pop(number, None)

    def _scan(self, missed: list[str]) -> Iterator[tuple[str, os.stat_result]]:
        """Every path below the roots with what it is, directories first; other file systems are left out."""
        pending = list(self._roots)
        while pending:
            directory = pending.pop()
            if len(directory) > _LONGEST_PATH:
                missed.append(directory)
                continue
            try:
                found = _list(directory)
            except OSError:  # replaced or removed while we look
                continue
            for path, what in found:
                if what.st_dev != self._device:
                    continue
                yield path, what
                if stat.S_ISDIR(what.st_mode):
                    pending.append(path)

    def _take(self, path: str, found: os.stat_result, was: Entry | None, missed: list[str]) -> Entry | None:
        kind = stat.S_IFMT(found.st_mode)
        held: Content | str | None = None
        try:
            if kind == stat.S_IFREG:
                held = self._copy(path, found, was.held if was is not None and isinstance(was.held, Content) else None)
            elif kind == stat.S_IFLNK:
                held = os.readlink(path)
            elif kind == stat.S_IFSOCK:
                return None
        except FileNotFoundError:
            return None
        except OSError:
            missed.append(path)
            return None
        same = found.st_ino if kind == stat.S_IFREG and found.st_nlink > 1 else 0
        return Entry(kind, stat.S_IMODE(found.st_mode), found.st_mtime_ns, held, same)

    def _copy(self, path: str, found: os.stat_result, before: Content | None) -> Content:
        with _opened(path, os.O_RDONLY) as file:
            size = os.fstat(file).st_size
            chunks: list[Chunk | None] = []
            for number, start in enumerate(range(0, size, CHUNK_BYTES)):
                if _is_hole(file, start, min(start + CHUNK_BYTES, size)):
                    chunks.append(None)
                    continue
                data = os.pread(file, CHUNK_BYTES, start)
                old = before.chunks[number] if before is not None and number < len(before.chunks) else None
                chunks.append(old if old is not None and old.read() == data else Chunk(self._store, data))
            return Content(size, tuple(chunks))

    # ---------------------------------------------------------------------------------------- rewinding

    def rewind(self, number: int) -> tuple[str, ...]:
        """Make the files what they were; the paths where that could not be done. Nothing else may write meanwhile."""
        kept = self._kept[number]
        wanted, missed = kept.entries, list(kept.missed)
        live = dict(self._scan([]))
        gone = [path for path, found in live.items() if path not in wanted or wanted[path].kind != _kind(found)]
        for path in sorted(gone, key=len, reverse=True):
            with _noting(path, missed):
                _remove(path, live[path])
                del live[path]
        first: dict[int, str] = {}
        for path, entry in wanted.items():
            with _noting(path, missed):
                self._put(path, entry, live.get(path), first)
        for path in sorted(wanted, key=len, reverse=True):
            if wanted[path].kind == stat.S_IFDIR:
                with _noting(path, missed):
                    os.chmod(path, wanted[path].mode)
                    _set_times(path, wanted[path])
        now = dict(self._scan([]))
        self._known = {
            path: (_stamp(now[path]) if self._fine and path not in missed else None, wanted[path])
            for path in wanted
            if path in now
        }
        return tuple(missed)

    def _put(self, path: str, entry: Entry, live: os.stat_result | None, first: dict[int, str]) -> None:
        if entry.kind == stat.S_IFDIR:
            if live is None:
                os.mkdir(path, 0o700)
            os.chmod(path, entry.mode | stat.S_IRWXU)  # what is below is reached through it
            return
        if entry.kind == stat.S_IFLNK:
            if live is None or os.readlink(path) != entry.held:
                if live is not None:
                    os.unlink(path)
                os.symlink(str(entry.held), path)
            _set_times(path, entry)
            return
        if entry.kind == stat.S_IFIFO:
            if live is None:
                os.mkfifo(path)
        elif entry.same and entry.same in first:
            if live is None or live.st_ino != os.stat(first[entry.same]).st_ino:
                if live is not None:
                    os.unlink(path)
                os.link(first[entry.same], path)
            return
        elif isinstance(entry.held, Content):
            self._write(path, entry, live)
        if entry.same:
            first[entry.same] = path
        os.chmod(path, entry.mode)
        _set_times(path, entry)

    def _write(self, path: str, entry: Entry, live: os.stat_result | None) -> None:
        content = entry.held
        assert isinstance(content, Content)
        stamp, known = self._known.get(path, (None, None))
        if (
            live is not None
            and stamp is not None
            and _stamp(live) == stamp
            and known is not None
            and known.held == content
        ):
            return
        if live is not None and live.st_nlink > 1 and not entry.same:  # its other names are not to change with it
            os.unlink(path)
            live = None
        with _opened(path, os.O_RDWR | os.O_CREAT) as file:
            if None in content.chunks:
                os.ftruncate(file, 0)
            os.ftruncate(file, content.size)
            for number, chunk in enumerate(content.chunks):
                if chunk is None:
                    continue
                data = chunk.read()
                if live is None or os.pread(file, CHUNK_BYTES, number * CHUNK_BYTES) != data:
                    os.pwrite(file, data, number * CHUNK_BYTES)


@contextlib.contextmanager
def _noting(path: str, missed: list[str]) -> Iterator[None]:
    try:
        yield
    except OSError:
        missed.append(path)


def _has_fine_times(directory: int) -> bool:
    """Whether a change right after a look at a file has another time than the change before the look."""
    for _ in range(4):
        file = os.open(".", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600, dir_fd=directory)
        try:
            os.write(file, b"1")
            before = os.fstat(file).st_ctime_ns
            os.write(file, b"2")
            if os.fstat(file).st_ctime_ns == before:
                return False
        finally:
            os.close(file)
    return True


def _list(directory: str) -> list[tuple[str, os.stat_result]]:
    try:
        with os.scandir(directory) as entries:
            return [(entry.path, entry.stat(follow_symlinks=False)) for entry in entries]
    except PermissionError:
        with _allowed(directory):
            with os.scandir(directory) as entries:
                return [(entry.path, entry.stat(follow_symlinks=False)) for entry in entries]


@contextlib.contextmanager
def _allowed(path: str) -> Iterator[None]:
    """Give the owner, who we are, every right to a path for a moment."""
    mode = stat.S_IMODE(os.lstat(path).st_mode)
    os.chmod(path, mode | stat.S_IRWXU, follow_symlinks=True)
    try:
        yield
    finally:
        os.chmod(path, mode)


@contextlib.contextmanager
def _opened(path: str, flags: int) -> Iterator[int]:
    """A regular file's descriptor. One that is something else meanwhile is refused with OSError."""
    safe = flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.open(path, safe, 0o600)
    except PermissionError:
        with _allowed(path):
            file = os.open(path, safe, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(f"{path} is not a regular file")
        yield file
    finally:
        os.close(file)


def _is_hole(file: int, start: int, end: int) -> bool:
    try:
        return os.lseek(file, start, os.SEEK_DATA) >= end
    except OSError:  # nothing but hole up to the end
        return True


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_ino, found.st_ctime_ns, found.st_size


def _kind(found: os.stat_result) -> int:
    return stat.S_IFMT(found.st_mode)


def _alike(entry: Entry, found: os.stat_result) -> bool:
    return entry.kind == _kind(found)


def _remove(path: str, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        os.rmdir(path)
    else:
        os.unlink(path)


def _set_times(path: str, entry: Entry) -> None:
    os.utime(path, ns=(entry.modified_ns, entry.modified_ns), follow_symlinks=False)
