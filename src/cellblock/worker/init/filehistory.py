"""The session's files at each checkpoint, and going back to them.

Runs in init, over the directories that a session may write to. What changed is told by inode, size and time of
change, none of which the code inside can set; of what changed, the contents are copied to a store that the session
does not see, in chunks that unchanged parts share with the copy before. Holes cost nothing, nor do further names of one
file.

A time of change has the grain of the kernel's clock, unless the kernel makes it finer for a file that was looked at
(Linux 6.13). Where it does not, a file that changed just before it was looked at is looked at again. A page that a
process has mapped to be shared, and has read or written once, changes without a time from then on: a file counts as
changed that was mapped so since the look before, or is.

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
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from cellblock.wire import filelists
from cellblock.wire.filelists import Pieces, Told
from cellblock.worker.holdings import EVERY
from cellblock.worker.init.trees import Place, Places, Tree, allowed, move, remove

CHUNK_BYTES = 2**20
LARGE_BYTES = 8 * CHUNK_BYTES
"""From here on a file is copied later, where it can be."""
_STATES_OF_FILES = 2
"""So many times the most files that there can be are remembered of all checkpoints, each that was changed anew."""
_GRAIN_NS = 20_000_000
_SLICE_SECONDS = 0.005
_WAY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Chunk:
    """A file of the store; it goes when nothing refers to it any more.

    `pieces` are where it holds data, from and to; the rest are holes.
    """

    __slots__ = ("_name", "_store", "pieces")
    _made = 0

    _name: Any

    def __init__(self, store: int, length: int, pieces: Pieces, data: list[bytes]) -> None:
        Chunk._made += 1
        self._store, self._name, self.pieces = store, str(Chunk._made), pieces
        file = os.open(self._name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=store)
        try:
            os.ftruncate(file, length)
            for (start, _), piece in zip(pieces, data, strict=True):
                _write_whole(file, memoryview(piece), start)
        finally:
            os.close(file)

    @property
    def row(self) -> tuple[object, ...]:
        """Fields for a `Foreign` in another session."""
        return self._name, self.pieces

    def read(self) -> list[bytes]:
        """The bytes of each piece."""
        file = os.open(self._name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._store)
        try:
            return _read(file, 0, self.pieces)
        finally:
            os.close(file)

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._name, dir_fd=self._store)


class Foreign(Chunk):
    """A chunk of another session's store, which is only read."""

    __slots__ = ()

    def __init__(self, store: int, name: Any, pieces: Pieces) -> None:
        self._store, self._name, self.pieces = store, name, pieces

    def __del__(self) -> None:
        """It is not ours."""


class Packed(Foreign):
    """A chunk in a file of the host's, from a place on. It holds data where its pieces say."""

    __slots__ = ()

    def read(self) -> list[bytes]:
        return _read(self._store, self._name, self.pieces)


@dataclass(slots=True)
class Content:
    """A regular file's bytes: the chunks that hold data, by their numbers. Some lack while it is being copied."""

    size: int
    chunks: dict[int, Chunk] = field(default_factory=dict)

    @property
    def is_sparse(self) -> bool:
        """True if it has holes."""
        return sum(end - start for chunk in self.chunks.values() for start, end in chunk.pieces) < self.size


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
    """One checkpoint's files, and the places that could not be kept: going back leaves these as they are then."""

    entries: dict[Place, Entry]
    missed: dict[Place, None] = field(default_factory=dict)
    fresh: int = 0
    """Number of entries that are not those of the checkpoint before."""
    mapped: frozenset[int] = frozenset()
    """Inodes that processes had mapped to be shared: so has the copy that is woken there."""

    def missing(self, place: Place) -> bool:
        """True if a place, or one above it, could not be kept."""
        return bool(self.missed) and any(one in self.missed for one in place.ways())


@dataclass(slots=True)
class _Copying:
    """A file that is copied after the look at it: what it is to become, what copies it, and a descriptor of it."""

    content: Content
    steps: Iterator[None]
    file: int

    def end(self) -> None:
        """Let others write to the file."""
        fcntl.fcntl(self.file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        os.close(self.file)


class FileHistory:
    """The trees below `roots`, which all are on one file system; `store` is a descriptor of an empty directory.

    What is there now is checkpoint 0. `still_mapped` tells which inodes, of those that were, are mapped to be shared.
    """

    def __init__(
        self, roots: Iterable[str], store: int,
        still_mapped: Callable[[frozenset[int], int, Callable[[], object]], frozenset[int]] = lambda *_: frozenset(),
    ) -> None:  # fmt: skip
        self._trees = {root: Tree(root) for root in roots}
        self._store = store
        self._device = next(iter(self._trees.values())).device
        self._kept: dict[int, Kept] = {}
        self._known: dict[Place, tuple[Stamp | None, Entry]] = {}
        self._fine = _has_fine_times(store)
        self._still_mapped = still_mapped
        self._mapped: frozenset[int] = frozenset()
        self._suspects_all = False
        self._spared = 0
        self._most = _STATES_OF_FILES * (os.statvfs(next(iter(self._trees))).f_files or sys.maxsize)
        self._forgotten: tuple[int, str] | None = None
        self._taken: dict[Place, Entry] = {}
        self._copying: list[_Copying] = []
        self.copied = 0
        """Number of files that have been copied after the look at them, and can be written to again."""
        self._exported: Kept | None = None
        self._told: dict[Place, int] = {}
        self._tellings = 0
        self.spare: Callable[[], bool] = lambda: False
        """Lets go of what others keep of the store; whether there was anything."""
        self.between: Callable[[], object] = lambda: None
        """Called again and again while much is looked at or copied."""
        signal.signal(signal.SIGIO, signal.SIG_IGN)  # somebody waits for the end of a lease, and is not served sooner
        self.keep(0)
        self._ways = {place: os.open(str(place), _WAY) for place in self._known if self._leads_to_mount(place)}

    def _leads_to_mount(self, place: Place) -> bool:
        """True if something is mounted in a directory, or in one below it."""
        if self._known[place][1].kind != stat.S_IFDIR:
            return False
        with os.scandir(str(place)) as entries:
            return any(
                entry.stat(follow_symlinks=False).st_dev != self._device
                or (place.at(entry.name) in self._known and self._leads_to_mount(place.at(entry.name)))
                for entry in entries
            )

    def suspect(self, file: os.stat_result) -> None:
        """A file may change without a time of change from now on."""
        if file.st_dev == self._device:
            self._mapped |= {file.st_ino}

    def suspect_all(self) -> None:
        """Any file may. Called by a handler of a signal, too, in the middle of a look."""
        self._suspects_all = True

    def _take_mapped(self) -> frozenset[int]:
        """The inodes that may have changed without a time of change since this was last asked."""
        mapped, self._mapped = self._mapped, frozenset()
        if self._suspects_all:
            self._suspects_all = False  # before anything is looked at
            return EVERY
        return mapped

    # ------------------------------------------------------------------------------------------ keeping

    def keep(self, number: int, *, spared: int = 0) -> tuple[int, str] | None:
        """Remember the files as they are.

        Where the store has no room, or too many files are remembered, the oldest checkpoints are forgotten for it, all
        but the newest `spared`; the last that was, and the limit that it was for, None where none was. Large files are
        left to `copy_more`.
        """
        self._spared = spared
        known = self._known
        entries: dict[Place, Entry] = {}
        self._taken = entries
        mapped = self._take_mapped()
        missed: list[Place] = []
        linked: dict[int, tuple[Stamp, Entry]] = {}  # all names of a file are as the first was, whoever writes to it
        fresh = 0
        for place, found in self._scan(missed):
            self.between()
            was = known.get(place)
            stamp = _stamp(found)
            first, entry = linked.get(found.st_ino, (stamp, None))
            if was is not None and was[0] == stamp and found.st_ino not in mapped and was[1].kind == _kind(found):
                entry = entry or was[1]
            if was is not None and entry is was[1]:
                entries[place] = entry
                if entry.same:
                    linked[found.st_ino] = first, entry
                continue
            was = None  # what it holds may have to make room
            entry = entry or self._take(place, found, missed)
            if entry is None:
                continue
            entries[place] = entry
            fresh += 1
            if entry.same:
                linked.setdefault(found.st_ino, (stamp, entry))
            settled = self._fine or found.st_ctime_ns < time.time_ns() - _GRAIN_NS
            known[place] = (stamp if settled and stamp == first else None, entry)
        for place in known.keys() - entries.keys():
            del known[place]
        for one in [one for one in self._copying if not os.fstat(one.file).st_nlink]:  # who deleted it has its room
            while one in self._copying:
                self._copy_chunk(one)
        self._mapped = self._still_mapped(mapped, self._device, self.between)
        self._kept[number] = Kept(entries, dict.fromkeys(missed), fresh, self._mapped)
        while len(self._kept) > spared + 1 and self._remembered > self._most:
            self._forget_oldest("max_files")
        return self._last_forgotten()

    @property
    def _remembered(self) -> int:
        """Number of entries of all checkpoints, those that they share counted once."""
        _, oldest = min(self._kept.items())
        return len(oldest.entries) - oldest.fresh + sum(kept.fresh for kept in self._kept.values())

    def _last_forgotten(self) -> tuple[int, str] | None:
        forgotten, self._forgotten = self._forgotten, None
        return forgotten

    @property
    def is_settled(self) -> bool:
        """True if all that is kept was copied."""
        return not self._copying

    def settle(self) -> tuple[int, str] | None:
        """Copy what is left to be copied; the last checkpoint that was forgotten for it, if one was."""
        while self._copying:
            self._copy_chunk(self._copying[0])
            self.between()
        return self._last_forgotten()

    def copy_more(self) -> tuple[int, str] | None:
        """Copy some of what is left to be copied; the last checkpoint that was forgotten for it, if one was."""
        until = time.monotonic() + _SLICE_SECONDS
        while self._copying and time.monotonic() < until:
            self._copy_chunk(self._copying[0])
        return self._last_forgotten()

    def _copy_chunk(self, one: _Copying) -> None:
        try:
            next(one.steps)
        except StopIteration:
            pass
        except OSError:
            self._miss(one.content)
        else:
            return
        self._copying.remove(one)
        one.end()
        self.copied += 1

    def _miss(self, content: Content) -> None:
        """A file could not be kept after all."""
        for place in [place for place, (_, entry) in self._known.items() if entry.held is content]:
            del self._known[place]
        for kept in self._kept.values():
            for place in [place for place, entry in kept.entries.items() if entry.held is content]:
                del kept.entries[place]
                kept.missed[place] = None

    def forget(self, numbers: Iterable[int]) -> None:
        """Let go of the files of checkpoints."""
        for number in numbers:
            self._kept.pop(number, None)

    def forget_through(self, last: int) -> None:
        """Let go of the files of every checkpoint up to one."""
        self.forget([number for number in self._kept if number <= last])

    def _make_room(self) -> bool:
        """Forget the oldest checkpoint that may be, with the last of them what is known; False where there is none."""
        if len(self._kept) <= self._spared:
            return self.spare()
        self._forget_oldest("max_disk_mb")
        if not self._kept:
            for place in self._known.keys() - self._taken.keys():
                del self._known[place]
        return True

    def _forget_oldest(self, limit: str) -> None:
        """For a limit, by its name."""
        oldest = min(self._kept)
        self.forget([oldest])
        self._forgotten = oldest, limit

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
        return filelists.write({}, _rows(kept.entries), missed=map(str, kept.missed))

    def told(self, number: int, since: int) -> int:
        """The same for the host, which has the telling `since`: if that was the last, only what is other than then.

        Without the directories that lead to mounts.
        """
        self.settle()
        kept = self._kept[number]
        before = self._told if since == self._tellings else {}
        told = {place: entry.serial for place, entry in kept.entries.items() if place not in self._ways}
        new = {place: kept.entries[place] for place, serial in told.items() if before.get(place) != serial}
        gone = (str(place) for place in before if place not in told)
        self._told, self._tellings = told, self._tellings + 1
        numbers = {"number": self._tellings, "since": since if before else 0}
        return filelists.write(numbers, _rows(new), gone=gone, missed=map(str, kept.missed))

    def release(self) -> None:
        """Note that the export was taken over."""
        self._exported = None

    def take_over(self, listed: int, store: int) -> list[str]:
        """Make the files what another session's were, as its `export` or the host lists them, and that checkpoint 0;
        the paths that could not be. Takes time by how much is there: all of it is copied. Closes both descriptors."""
        try:
            entries = {place: self._known[place][1] for place in self._ways}
            homeless, missed = list[str](), dict[Place, None]()
            places = Places(tree.place for tree in self._trees.values())
            for name, told in filelists.read(listed):
                place = places.of(path := told if name == "missed" else told.path)
                if place is None:  # a mount has taken its place
                    homeless.append(path)
                elif name == "missed":
                    missed[place] = None
                else:
                    entries[place] = _entry(told, store)
            self._kept[-1] = Kept(entries, missed)
            failed = self.rewind(-1) + homeless
        finally:
            self._kept.pop(-1, None)
            os.close(store)
        self._known.clear()  # its chunks are the other's
        self.keep(0)
        return failed

    def _scan(self, missed: list[Place]) -> Iterator[tuple[Place, os.stat_result]]:
        for tree in self._trees.values():
            yield from tree.scan(missed)

    def _opened(self, path: str, flags: int) -> contextlib.AbstractContextManager[int]:
        return next(tree for root, tree in self._trees.items() if path.startswith(root + "/")).opened(path, flags)

    def _take(self, place: Place, found: os.stat_result, missed: list[Place]) -> Entry | None:
        kind = _kind(found)
        held: Content | str | None = None
        try:
            if kind == stat.S_IFREG:
                held = self._copy(place, later=found.st_blocks * 512 >= LARGE_BYTES) if found.st_size else Content(0)
            elif kind == stat.S_IFLNK:
                held = allowed(os.readlink, str(place))
            elif kind == stat.S_IFSOCK:  # whoever listens at it is gone when the session goes back
                return None
        except FileNotFoundError:
            return None
        except OSError:
            missed.append(place)
            return None
        same = found.st_ino if kind == stat.S_IFREG and found.st_nlink > 1 else 0
        return Entry(kind, stat.S_IMODE(found.st_mode), found.st_mtime_ns, held, same)

    def _copy(self, place: Place, *, later: bool) -> Content:
        """A file's content, which is copied now, or `later` where it can be."""
        _, entry = self._known.get(place, (None, None))
        before = entry.held if entry is not None and isinstance(entry.held, Content) else Content(0)
        with self._opened(str(place), os.O_RDONLY) as opened:
            content = Content(os.fstat(opened).st_size)
            if later and (file := _leased(opened)) is not None:
                self._copying.append(_Copying(content, self._copy_to(content, file, before), file))
            else:
                for _ in self._copy_to(content, opened, before):
                    self.between()
        return content

    def _copy_to(self, content: Content, file: int, before: Content) -> Iterator[None]:
        """Copy a file, chunk by chunk: those of before where they are the same."""
        for number, pieces in filelists.by_chunk(_data(file, content.size), CHUNK_BYTES):
            data = _read(file, number * CHUNK_BYTES, pieces)
            chunk = before.chunks.get(number)
            if chunk is None or chunk.pieces != pieces or chunk.read() != data:
                length = min(CHUNK_BYTES, content.size - number * CHUNK_BYTES)
                chunk = self._chunk_with_room(length, pieces, data)
            content.chunks[number] = chunk
            yield

    def _chunk_with_room(self, length: int, pieces: Pieces, data: list[bytes]) -> Chunk:
        while True:
            try:
                return Chunk(self._store, length, pieces, data)
            except OSError as error:
                if error.errno != errno.ENOSPC or not self._make_room():
                    raise

    # ---------------------------------------------------------------------------------------- rewinding

    def rewind(self, number: int) -> list[str]:
        """Make the files what they were; the paths that are not. Nothing else may be writing to them."""
        self.settle()
        kept = self._kept.get(number)
        if kept is None:
            return list(self._trees)
        self._mapped = self._take_mapped()
        failed = list(kept.missed)
        self._move_ways_back(failed)
        live = dict(self._scan(failed))
        later = [place for place, found in live.items() if not self._belongs(place, found, kept)]
        for place in reversed(later):  # what is in a directory before it
            self.between()
            with _noting(place, failed):
                remove(str(place), live.pop(place))
        first: dict[int, Place] = {}
        changed = [
            place for place, entry in kept.entries.items() if not self._unchanged(place, entry, live.get(place), first)
        ]
        for place in changed:
            self.between()
            with _noting(place, failed):
                self._put(place, kept.entries[place], live.get(place), first)
        for place in reversed(kept.entries):
            if kept.entries[place].kind == stat.S_IFDIR:
                with _noting(place, failed):
                    _settle_directory(str(place), kept.entries[place])
        self._know(kept.entries, frozenset(failed))
        self._mapped = kept.mapped
        return [str(place) for place in dict.fromkeys(failed)]

    def _move_ways_back(self, failed: list[Place]) -> None:
        """Put each directory that leads to a mount where it was; what is there instead goes with all that is new."""
        for number, (place, way) in enumerate(self._ways.items()):
            path = str(place)
            with _noting(place, failed):
                if os.readlink(f"/proc/self/fd/{way}") == path:
                    continue
                if os.path.lexists(path):
                    root = next(root for root in self._trees if path.startswith(root + "/"))
                    move(path, f"{root}/{number}.{time.time_ns()}")
                move(os.readlink(f"/proc/self/fd/{way}"), path)

    def _belongs(self, place: Place, found: os.stat_result, kept: Kept) -> bool:
        entry = kept.entries.get(place)
        return (entry is not None and entry.kind == _kind(found)) or (entry is None and kept.missing(place))

    def _unchanged(self, place: Place, entry: Entry, live: os.stat_result | None, first: dict[int, Place]) -> bool:
        """True if a path is what it was, by all that is known of it."""
        stamp, known = self._known.get(place, (None, None))
        if live is None or known is not entry or stamp != _stamp(live) or live.st_ino in self._mapped:
            return False
        if entry.kind == stat.S_IFDIR and entry.mode & stat.S_IRWXU != stat.S_IRWXU:
            return False
        if entry.same:
            first.setdefault(entry.same, place)
        return True

    def _put(self, place: Place, entry: Entry, live: os.stat_result | None, first: dict[int, Place]) -> None:
        path = str(place)
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
        elif entry.same and entry.same in first and _linked(path, str(first[entry.same]), live):
            return
        elif isinstance(entry.held, Content):
            self._write(path, entry.held, live)
        if entry.same:
            first[entry.same] = place
        os.chmod(path, entry.mode)
        _set_times(path, entry)

    def _write(self, path: str, content: Content, live: os.stat_result | None) -> None:
        if live is not None and live.st_nlink > 1:  # what its other names are is their own matter
            os.unlink(path)
            live = None
        with self._opened(path, os.O_RDWR | os.O_CREAT) as file:
            if content.is_sparse:
                os.ftruncate(file, 0)
            os.ftruncate(file, content.size)
            for number, chunk in content.chunks.items():
                self.between()
                for (start, _), data in zip(chunk.pieces, chunk.read(), strict=True):
                    place = number * CHUNK_BYTES + start
                    if live is None or os.pread(file, len(data), place) != data:
                        _write_whole(file, memoryview(data), place)

    def _know(self, entries: dict[Place, Entry], failed: frozenset[Place]) -> None:
        """Look at the files as they are now: what has not changed then is what `entries` says."""
        known = {}
        for place, found in self._scan([]):
            entry = entries.get(place)
            if entry is not None:
                stamp, was = self._known.get(place, (None, None))
                sure = self._fine or (was is entry and stamp == _stamp(found))
                known[place] = (_stamp(found) if sure and place not in failed else None, entry)
        self._known = known


def _rows(entries: dict[Place, Entry]) -> Iterator[Told]:
    for place, entry in entries.items():
        told = Told(str(place), entry.kind, entry.mode, entry.modified_ns, same=entry.same)
        if isinstance(entry.held, Content):
            told.size = entry.held.size
            told.chunks = [(number, *chunk.row) for number, chunk in entry.held.chunks.items()]
        else:
            told.target = entry.held or ""
        yield told


def _entry(told: Told, store: int) -> Entry:
    held: Content | str | None = told.target or None
    if told.kind == stat.S_IFREG:
        held = Content(told.size, {number: _foreign(store, *chunk) for number, *chunk in told.chunks})
    return Entry(told.kind, told.mode, told.modified_ns, held, told.same)


def _foreign(store: int, name: Any, pieces: list[list[int]]) -> Chunk:
    kind = Foreign if isinstance(name, str) else Packed
    return kind(store, name, tuple((start, end) for start, end in pieces))


def _leased(opened: int) -> int | None:
    """A descriptor of a file to which nobody can write until its lease ends; None where somebody may, or where whoever
    deletes it needs its room."""
    room, found = os.fstatvfs(opened), os.fstat(opened)
    if room.f_bavail * room.f_frsize < found.st_blocks * 512:
        return None
    file = os.dup(opened)
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError:
        os.close(file)
        return None
    return file


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


def _data(file: int, size: int) -> Iterator[tuple[int, int]]:
    """Ranges of a file that hold data, from and to."""
    at = 0
    while at < size:
        try:
            start = os.lseek(file, at, os.SEEK_DATA)
            at = os.lseek(file, start, os.SEEK_HOLE)
        except OSError:  # nothing but hole up to the end
            return
        if start < size:
            yield start, min(at, size)


def _read(file: int, start: int, pieces: Pieces) -> list[bytes]:
    """Bytes of pieces that are counted from a start."""
    return [os.pread(file, end - begin, start + begin) for begin, end in pieces]


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_ino, found.st_ctime_ns, found.st_size


def _kind(found: os.stat_result) -> int:
    return stat.S_IFMT(found.st_mode)


@contextlib.contextmanager
def _noting(place: Place, failed: list[Place]) -> Iterator[None]:
    """Go on with the other paths where one cannot be put right, and note it."""
    try:
        yield
    except OSError:
        failed.append(place)


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
