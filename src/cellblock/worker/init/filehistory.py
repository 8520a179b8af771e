"""The session's files at each checkpoint, and going back to them.

Runs in init, over the directories that a session may write to. What changed is told by inode, size and time of
change, none of which the code inside can set; of what changed, the contents are copied to a store that the session
does not see, in chunks that unchanged parts share with the copy before.

A time of change has the grain of the kernel's clock, unless the kernel makes it finer for a file that was looked at
(Linux 6.13). Where it does not, a file that changed just before it was looked at is looked at again. A page that a
process has mapped to be shared, and has written once, changes without a time from then on: such files count as changed.

A large file is copied after the checkpoint is made, while a lease on it has the kernel hold whoever opens it to write
until it is copied. One that is open to be written, or mapped so, gets no lease, and is copied at once.

Mounts that stand in the trees are left out. A directory that leads to one can be renamed and not removed; it is moved
back before anything else.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
import signal
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from cellblock.wire import filelists
from cellblock.wire.filelists import Told
from cellblock.worker.init.trees import Tree, allowed, move, remove

CHUNK_BYTES = 2**20
LARGE_BYTES = 8 * CHUNK_BYTES
"""From here on a file is copied later, where it can be."""
Pieces = tuple[tuple[int, int], ...]
_GRAIN_NS = 20_000_000
_SLICE_SECONDS = 0.005
_WAY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Chunk:
    """A file of the store; it goes when nothing refers to it any more.

    `pieces` are where it holds data, from and to; the rest are holes, of which there are some if it is `sparse`.
    """

    __slots__ = ("_name", "_store", "pieces", "sparse")
    _made = 0

    _name: Any

    def __init__(self, store: int, data: bytes, pieces: Pieces) -> None:
        Chunk._made += 1
        self._store, self._name, self.pieces = store, str(Chunk._made), pieces
        self.sparse = pieces != ((0, len(data)),)
        file = os.open(self._name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=store)
        try:
            os.ftruncate(file, len(data))
            for start, end in pieces:
                _write_whole(file, memoryview(data)[start:end], start)
        finally:
            os.close(file)

    @property
    def row(self) -> tuple[object, ...]:
        """Fields for a `Foreign` in another session."""
        return self._name, self.pieces, self.sparse

    def read(self) -> bytes:
        file = os.open(self._name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._store)
        try:
            return os.read(file, CHUNK_BYTES)
        finally:
            os.close(file)

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._name, dir_fd=self._store)


class Foreign(Chunk):
    """A chunk of another session's store, which is only read."""

    __slots__ = ()

    def __init__(self, store: int, name: Any, pieces: Pieces, *, sparse: bool) -> None:
        self._store, self._name, self.pieces, self.sparse = store, name, pieces, sparse

    def __del__(self) -> None:
        """It is not ours."""


class Packed(Foreign):
    """A chunk in a file of the host's, at a place and of a length. It holds data where its pieces say."""

    __slots__ = ()

    def read(self) -> bytes:
        start, length = self._name
        return os.pread(self._store, length, start)


@dataclass(slots=True)
class Content:
    """A regular file's bytes; None is a chunk that is a hole. There are fewer while it is being copied."""

    size: int
    chunks: list[Chunk | None] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """True if all of it was copied."""
        return len(self.chunks) * CHUNK_BYTES >= self.size


Stamp = tuple[int, int, int]
"""Inode, time of change in ns, size. Two equal stamps of one path mean the same contents."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One path as it was. `held` is a file's contents or a link's target; `same` is common to the paths of one inode.

    No two looks that found something else have the same `serial`.
    """

    kind: int
    mode: int
    modified_ns: int
    held: Content | str | None = None
    same: int = 0
    serial: int = field(default_factory=itertools.count(1).__next__, compare=False)


@dataclass(frozen=True, slots=True)
class Kept:
    """One checkpoint's files, and the paths that could not be kept: going back leaves these as they are then."""

    entries: dict[str, Entry]
    missed: tuple[str, ...] = ()

    def missing(self, path: str) -> bool:
        """True if a path, or one above it, could not be kept."""
        return any(path == one or path.startswith(one + "/") for one in self.missed)


@dataclass(slots=True)
class _Copying:
    """A file that is copied after the look at it: what it is to become, what it was before, and a descriptor of it."""

    path: str
    content: Content
    before: Content | None
    file: int

    def end(self) -> None:
        """Let others write to the file."""
        fcntl.fcntl(self.file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        os.close(self.file)


class FileHistory:
    """The trees below `roots`, which all are on one file system; `store` is a descriptor of an empty directory.

    What is there now is checkpoint 0. `mapped` tells which inodes of a device may change without a time of change.
    """

    def __init__(
        self, roots: Iterable[str], store: int, mapped: Callable[[int], frozenset[int]] = lambda device: frozenset()
    ) -> None:
        self._trees = {root: Tree(root) for root in roots}
        self._store = store
        self._device = next(iter(self._trees.values())).device
        self._kept: dict[int, Kept] = {}
        self._known: dict[str, tuple[Stamp | None, Entry]] = {}
        self._fine = _has_fine_times(store)
        self._find_mapped = mapped
        self._mapped: frozenset[int] = frozenset()
        self._spared = 0
        self._forgotten: int | None = None
        self._taken: dict[str, Entry] = {}
        self._copying: list[_Copying] = []
        self.copied = 0
        """Number of files that have been copied after the look at them, and can be written to again."""
        self._exported: Kept | None = None
        self._told: dict[str, int] = {}
        self._tellings = 0
        self.spare: Callable[[], bool] = lambda: False
        """Lets go of what others keep of the store; whether there was anything."""
        signal.signal(signal.SIGIO, signal.SIG_IGN)  # somebody waits for the end of a lease, and is not served sooner
        self.keep(0)
        self._ways = [(path, os.open(path, _WAY)) for path in self._known if self._leads_to_mount(path)]

    def _leads_to_mount(self, path: str) -> bool:
        """True if something is mounted in a directory, or in one below it."""
        if self._known[path][1].kind != stat.S_IFDIR:
            return False
        with os.scandir(path) as entries:
            return any(
                entry.stat(follow_symlinks=False).st_dev != self._device
                or (entry.path in self._known and self._leads_to_mount(entry.path))
                for entry in entries
            )

    # ------------------------------------------------------------------------------------------ keeping

    def keep(self, number: int, *, spared: int = 0) -> int | None:
        """Remember the files as they are.

        Where the store has no room, the oldest checkpoints are forgotten for it, all but the newest `spared`; the last
        that was, None where none was. Large files are left to `copy_more`.
        """
        self._spared = spared
        known = self._known
        entries: dict[str, Entry] = {}
        self._taken = entries
        mapped, self._mapped = self._mapped, frozenset()  # one that was mapped since has left a time of change
        missed: list[str] = []
        for path, found in self._scan(missed):
            was = known.get(path)
            stamp = _stamp(found)
            if was is not None and was[0] == stamp and found.st_ino not in mapped and was[1].kind == _kind(found):
                entries[path] = was[1]
                continue
            was = None  # what it holds may have to make room
            entry = self._take(path, found, missed)
            if entry is None:
                continue
            entries[path] = entry
            settled = self._fine or found.st_ctime_ns < time.time_ns() - _GRAIN_NS
            known[path] = (stamp if settled else None, entry)
        for path in known.keys() - entries.keys():
            del known[path]
        for one in [one for one in self._copying if not os.fstat(one.file).st_nlink]:  # who deleted it has its room
            while one in self._copying:
                self._copy_chunk(one)
        if any(entry.kind == stat.S_IFREG for entry in entries.values()):
            self._mapped = self._find_mapped(self._device)
        self._kept[number] = Kept(entries, tuple(missed))
        return self._last_forgotten()

    def _last_forgotten(self) -> int | None:
        forgotten, self._forgotten = self._forgotten, None
        return forgotten

    @property
    def is_settled(self) -> bool:
        """True if all that is kept was copied."""
        return not self._copying

    def settle(self) -> int | None:
        """Copy what is left to be copied; the last checkpoint that was forgotten for it, if one was."""
        while self._copying:
            self._copy_chunk(self._copying[0])
        return self._last_forgotten()

    def copy_more(self) -> int | None:
        """Copy some of what is left to be copied; the last checkpoint that was forgotten for it, if one was."""
        until = time.monotonic() + _SLICE_SECONDS
        while self._copying and time.monotonic() < until:
            self._copy_chunk(self._copying[0])
        return self._last_forgotten()

    def _copy_chunk(self, one: _Copying) -> None:
        try:
            if not one.content.is_whole:
                one.content.chunks.append(self._chunk_with_room(one.file, one.content, one.before))
        except OSError:
            self._miss(one)
        else:
            if not one.content.is_whole:
                return
        self._copying.remove(one)
        one.end()
        self.copied += 1

    def _miss(self, one: _Copying) -> None:
        """A file could not be kept after all."""
        self._known.pop(one.path, None)
        for number, kept in self._kept.items():
            if one.path in kept.entries and kept.entries[one.path].held is one.content:
                del kept.entries[one.path]
                self._kept[number] = Kept(kept.entries, (*kept.missed, one.path))

    def forget(self, numbers: Iterable[int]) -> None:
        """Let go of the files of checkpoints."""
        for number in numbers:
            self._kept.pop(number, None)

    def forget_through(self, last: int) -> None:
        """Let go of the files of every checkpoint up to one."""
        self.forget([number for number in self._kept if number <= last])

    def _make_room(self) -> bool:
        """Forget the oldest checkpoint that may be, with the last of them what is known; False where there is none."""
        numbers = sorted(self._kept)
        if len(numbers) <= self._spared:
            return self.spare()
        self._forgotten = numbers[0]
        self.forget(numbers[:1])
        if not self._kept:
            for path in self._known.keys() - self._taken.keys():
                del self._known[path]
        return True

    @property
    def store(self) -> int:
        """A descriptor of the directory that holds the chunks."""
        return self._store

    def export(self, number: int) -> int:
        """A memory file that lists a checkpoint's files, for `take_over` with the store.

        They stay until `release`.
        """
        self.settle()
        self._exported = self._kept[number]
        return self.listed(number)

    def kept(self, number: int) -> Kept | None:
        """The kept files of a checkpoint: its files stay in the store for as long as this is held."""
        self.settle()
        return self._kept.get(number)

    def listed(self, number: int) -> int:
        """A memory file that lists a checkpoint's files."""
        self.settle()
        kept = self._kept[number]
        return filelists.write({}, _rows(kept.entries), missed=kept.missed)

    def told(self, number: int, since: int) -> int:
        """The same for the host, which has the telling `since`: if that was the last, only what is other than then.

        Without the directories that lead to mounts.
        """
        self.settle()
        kept = self._kept[number]
        before = self._told if since == self._tellings else {}
        ways = {path for path, _ in self._ways}
        told = {path: entry.serial for path, entry in kept.entries.items() if path not in ways}
        new = {path: kept.entries[path] for path, serial in told.items() if before.get(path) != serial}
        gone = (path for path in before if path not in told)
        self._told, self._tellings = told, self._tellings + 1
        numbers = {"number": self._tellings, "since": since if before else 0}
        return filelists.write(numbers, _rows(new), gone=gone, missed=kept.missed)

    def release(self) -> None:
        """Note that the export was taken over."""
        self._exported = None

    def take_over(self, listed: int, store: int) -> list[str]:
        """Make the files what another session's were, as its `export` or the host lists them, and that checkpoint 0;
        the paths that could not be. Takes time by how much is there: all of it is copied. Closes both descriptors."""
        try:
            entries = {path: self._known[path][1] for path, _ in self._ways}
            homeless, missed = list[str](), list[str]()
            for name, told in filelists.read(listed):
                if name == "missed":
                    missed.append(told)
                elif told.path.startswith(tuple(f"{root}/" for root in self._trees)):
                    entries[told.path] = _entry(told, store)
                else:  # a mount has taken its place
                    homeless.append(told.path)
            self._kept[-1] = Kept(entries, tuple(missed))
            failed = self.rewind(-1) + homeless
        finally:
            self._kept.pop(-1, None)
            os.close(store)
        self._known.clear()  # its chunks are the other's
        self.keep(0)
        return failed

    def _scan(self, missed: list[str]) -> Iterator[tuple[str, os.stat_result]]:
        for tree in self._trees.values():
            yield from tree.scan(missed)

    def _opened(self, path: str, flags: int) -> contextlib.AbstractContextManager[int]:
        return next(tree for root, tree in self._trees.items() if path.startswith(root + "/")).opened(path, flags)

    def _take(self, path: str, found: os.stat_result, missed: list[str]) -> Entry | None:
        kind = _kind(found)
        held: Content | str | None = None
        try:
            if kind == stat.S_IFREG:
                held = self._copy_later(path) if found.st_size >= LARGE_BYTES else None
                held = held or self._copy(path, self._content(path))
            elif kind == stat.S_IFLNK:
                held = allowed(os.readlink, path)
            elif kind == stat.S_IFSOCK:  # whoever listens at it is gone when the session goes back
                return None
        except FileNotFoundError:
            return None
        except OSError:
            missed.append(path)
            return None
        same = found.st_ino if kind == stat.S_IFREG and found.st_nlink > 1 else 0
        return Entry(kind, stat.S_IMODE(found.st_mode), found.st_mtime_ns, held, same)

    def _content(self, path: str) -> Content | None:
        """Content of a file when it was last looked at."""
        _, entry = self._known.get(path, (None, None))
        return entry.held if entry is not None and isinstance(entry.held, Content) else None

    def _copy_later(self, path: str) -> Content | None:
        """Content of a file that is to be copied later; None where somebody may write to it meanwhile, or needs its
        room."""
        with self._opened(path, os.O_RDONLY) as opened:
            file = os.dup(opened)
        try:
            room = os.fstatvfs(file)
            if room.f_bavail * room.f_frsize < os.fstat(file).st_size:
                raise OSError(errno.ENOSPC, "who deletes the file is to have its room")
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError:
            os.close(file)
            return None
        content = Content(os.fstat(file).st_size)
        self._copying.append(_Copying(path, content, self._content(path), file))
        return content

    def _copy(self, path: str, before: Content | None) -> Content:
        with self._opened(path, os.O_RDONLY) as file:
            content = Content(os.fstat(file).st_size)
            while not content.is_whole:
                content.chunks.append(self._chunk_with_room(file, content, before))
            return content

    def _chunk_with_room(self, file: int, content: Content, before: Content | None) -> Chunk | None:
        while True:
            try:
                return self._chunk(file, content, before)
            except OSError as error:
                if error.errno != errno.ENOSPC or not self._make_room():
                    raise

    def _chunk(self, file: int, content: Content, before: Content | None) -> Chunk | None:
        """The next chunk of a file: that of before where it is the same."""
        number = len(content.chunks)
        start = number * CHUNK_BYTES
        pieces = _pieces(file, start, min(start + CHUNK_BYTES, content.size))
        if not pieces:
            return None
        data = os.pread(file, CHUNK_BYTES, start)
        old = before.chunks[number] if before is not None and number < len(before.chunks) else None
        return old if old is not None and old.read() == data else Chunk(self._store, data, pieces)

    # ---------------------------------------------------------------------------------------- rewinding

    def rewind(self, number: int) -> list[str]:
        """Make the files what they were; the paths that are not. Nothing else may be writing to them."""
        self.settle()
        kept = self._kept.get(number)
        if kept is None:
            return list(self._trees)
        failed = list(kept.missed)
        self._move_ways_back(failed)
        live = dict(self._scan(failed))
        later = [path for path, found in live.items() if not self._belongs(path, found, kept)]
        for path in sorted(later, key=len, reverse=True):
            with _noting(path, failed):
                remove(path, live.pop(path))
        first: dict[int, str] = {}
        changed = [
            path for path, entry in kept.entries.items() if not self._unchanged(path, entry, live.get(path), first)
        ]
        for path in changed:
            with _noting(path, failed):
                self._put(path, kept.entries[path], live.get(path), first)
        for path in sorted(kept.entries, key=len, reverse=True):
            if kept.entries[path].kind == stat.S_IFDIR:
                with _noting(path, failed):
                    _settle_directory(path, kept.entries[path])
        self._know(kept.entries, frozenset(failed))
        return sorted(set(failed))

    def _move_ways_back(self, failed: list[str]) -> None:
        """Put each directory that leads to a mount where it was; what is there instead goes with all that is new."""
        for number, (path, way) in enumerate(self._ways):
            with _noting(path, failed):
                if os.readlink(f"/proc/self/fd/{way}") == path:
                    continue
                if os.path.lexists(path):
                    root = next(root for root in self._trees if path.startswith(root + "/"))
                    move(path, f"{root}/{number}.{time.time_ns()}")
                move(os.readlink(f"/proc/self/fd/{way}"), path)

    def _belongs(self, path: str, found: os.stat_result, kept: Kept) -> bool:
        entry = kept.entries.get(path)
        return (entry is not None and entry.kind == _kind(found)) or (entry is None and kept.missing(path))

    def _unchanged(self, path: str, entry: Entry, live: os.stat_result | None, first: dict[int, str]) -> bool:
        """True if a path is what it was, by all that is known of it."""
        stamp, known = self._known.get(path, (None, None))
        if live is None or known is not entry or stamp != _stamp(live) or live.st_ino in self._mapped:
            return False
        if entry.kind == stat.S_IFDIR and entry.mode & stat.S_IRWXU != stat.S_IRWXU:
            return False
        if entry.same:
            first.setdefault(entry.same, path)
        return True

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
        elif entry.same and entry.same in first and _linked(path, first[entry.same], live):
            return
        elif isinstance(entry.held, Content):
            self._write(path, entry.held, live)
        if entry.same:
            first[entry.same] = path
        os.chmod(path, entry.mode)
        _set_times(path, entry)

    def _write(self, path: str, content: Content, live: os.stat_result | None) -> None:
        if live is not None and live.st_nlink > 1:  # what its other names are is their own matter
            os.unlink(path)
            live = None
        with self._opened(path, os.O_RDWR | os.O_CREAT) as file:
            if any(chunk is None or chunk.sparse for chunk in content.chunks):
                os.ftruncate(file, 0)
            os.ftruncate(file, content.size)
            for number, chunk in enumerate(content.chunks):
                if chunk is None:
                    continue
                data, place = chunk.read(), number * CHUNK_BYTES
                if live is None or os.pread(file, CHUNK_BYTES, place) != data:
                    for start, end in chunk.pieces:
                        _write_whole(file, memoryview(data)[start:end], place + start)

    def _know(self, entries: dict[str, Entry], failed: frozenset[str]) -> None:
        """Look at the files as they are now: what has not changed then is what `entries` says."""
        known = {}
        for path, found in self._scan([]):
            entry = entries.get(path)
            if entry is not None:
                stamp, was = self._known.get(path, (None, None))
                sure = self._fine or (was is entry and stamp == _stamp(found))
                known[path] = (_stamp(found) if sure and path not in failed else None, entry)
        self._known = known


def _rows(entries: dict[str, Entry]) -> Iterator[Told]:
    for path, entry in entries.items():
        told = Told(path, entry.kind, entry.mode, entry.modified_ns, same=entry.same)
        if isinstance(entry.held, Content):
            told.size = entry.held.size
            told.chunks = [None if chunk is None else chunk.row for chunk in entry.held.chunks]
        else:
            told.target = entry.held or ""
        yield told


def _entry(told: Told, store: int) -> Entry:
    held: Content | str | None = told.target or None
    if told.kind == stat.S_IFREG:
        held = Content(told.size, [None if chunk is None else _foreign(store, *chunk) for chunk in told.chunks])
    return Entry(told.kind, told.mode, told.modified_ns, held, told.same)


def _foreign(store: int, name: Any, pieces: list[list[int]], sparse: bool) -> Chunk:
    kind = Foreign if isinstance(name, str) else Packed
    return kind(store, name, tuple((start, end) for start, end in pieces), sparse=sparse)


def _has_fine_times(directory: int) -> bool:
    """True if a change right after a look at a file has another time than the change before the look."""
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


def _pieces(file: int, start: int, end: int) -> Pieces:
    """Ranges of a part of a file that hold data, counted from the part's start."""
    found, at = [], start
    while at < end:
        try:
            at = os.lseek(file, at, os.SEEK_DATA)
            if at >= end:
                break
            stop = min(os.lseek(file, at, os.SEEK_HOLE), end)
        except OSError:  # nothing but hole up to the end
            break
        found.append((at - start, stop - start))
        at = stop
    return tuple(found)


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_ino, found.st_ctime_ns, found.st_size


def _kind(found: os.stat_result) -> int:
    return stat.S_IFMT(found.st_mode)


@contextlib.contextmanager
def _noting(path: str, failed: list[str]) -> Iterator[None]:
    """Go on with the other paths where one cannot be put right, and note it."""
    try:
        yield
    except OSError:
        failed.append(path)


def _linked(path: str, other: str, live: os.stat_result | None) -> bool:
    """Have a path be another name of a file; False, and nothing is changed, where the two lie in different mounts, as
    those of a branch do: it is a file of its own then.
    """
    if live is not None and live.st_ino == os.stat(other).st_ino:
        return True
    name = path if live is None else f"{os.path.dirname(path)}/{time.time_ns()}"
    try:
        os.link(other, name)
    except OSError as error:
        if error.errno == errno.EXDEV:
            return False
        raise
    os.replace(name, path)
    return True


def _write_whole(file: int, view: memoryview, start: int) -> None:
    while view:
        written = os.pwrite(file, view, start)
        view, start = view[written:], start + written


def _settle_directory(path: str, entry: Entry) -> None:
    """Give a directory its mode and time, once nothing is put into it any more."""
    found = os.lstat(path)
    if stat.S_IMODE(found.st_mode) != entry.mode:
        os.chmod(path, entry.mode)
    if found.st_mtime_ns != entry.modified_ns:
        _set_times(path, entry)


def _set_times(path: str, entry: Entry) -> None:
    os.utime(path, ns=(entry.modified_ns, entry.modified_ns), follow_symlinks=False)
