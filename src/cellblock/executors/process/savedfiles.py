"""The files of a checkpoint for a snapshot: what init has kept of them, of which only what is new is read.

Init keeps contents in chunks, each a file of a store that no cell sees. One whose name is known holds what it held.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from typing import Any, Literal

from cellblock.cell import Lost
from cellblock.executors.process.files import write_all
from cellblock.executors.protocol import Fetch
from cellblock.hosting import to_thread
from cellblock.snapshots import CHUNK_BYTES, File, Row, Rows, address_of, held_of_lost
from cellblock.wire import filelists
from cellblock.wire.filelists import Told
from cellblock.worker.confine import layout

_ROOTS = {
    layout.WORKSPACE + "/": "workspace/",
    layout.TMP + "/": "tmp/",
    layout.SHM + "/": "shm/",
    layout.OWN_DATA + "/": "data/",
}
_KINDS: dict[int, Literal["file", "directory", "link", "pipe"]] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "pipe",
}


_Names = tuple[tuple[int, str], ...]
"""Of the chunks that hold data: their numbers, and init's names of them."""


class SavedFiles:
    """A session's files as init told them once, and which of init's chunks hold what. Never changed once it is made:
    each telling is a value of its own, so captures may be read at any time, in any order and at the same time.

    It holds of each file the plain tuple that a snapshot has of it, so that neither takes room twice.
    """

    def __init__(self) -> None:
        self.number = 0
        """Of the telling; 0 is before the first."""
        self.missed: list[Lost] = []
        """Files that could not be kept."""
        self._files: dict[str, tuple[Row, _Names]] = {}

    def followed_by(
        self, listed: int, store: int, has: set[str], put: Callable[[bytes], object], take: Callable[[int], object]
    ) -> SavedFiles:
        """The files of a telling that tells all, or the difference to these. Closes both descriptors.

        `put` takes the chunks whose bytes are not among those of `has`, which gets their addresses. `take` gets how
        many bytes of memory is needed next, and may raise.
        """
        told, new = SavedFiles(), _New(store, has, put)
        try:
            for name, item in filelists.read(listed, take):
                match name:
                    case "number":
                        told.number = item
                    case "since":
                        told._files = dict(self._files) if item else {}
                    case "gone":
                        told._files.pop(_inside(item), None)
                    case "missed":
                        told.missed.append(_unkept(item))
                        take(held_of_lost(told.missed[-1]))
                    case _:
                        file = self._file(item, new, take)
                        told._files[file[0][_PATH]] = file
            for row, names in told._files.values():
                if not has.issuperset(row[_CHUNKS]):
                    new.addresses(row[_SIZE], names, _addresses(row, names))
        finally:
            os.close(store)
        return told

    def _file(self, told: Told, new: _New, take: Callable[[int], object]) -> tuple[Row, _Names]:
        path = _inside(told.path)
        before = self._files.get(path)
        names = tuple((number, name) for number, name, _ in told.chunks)
        known = _addresses(*before) if before is not None else {}
        file = File(
            path=path if before is None else before[0][_PATH],
            kind=_KINDS[told.kind],
            mode=told.mode,
            modified_ns=told.modified_ns,
            size=told.size,
            chunks=new.addresses(told.size, names, known),
            target=told.target,
            holes=_holes(told.size, told.chunks),
            same=told.same,
        )
        take(file.held())
        found = _FILES.plain(file), names
        return before if before is not None and found == before else found

    def found(self) -> Rows[File]:
        """The files."""
        return Rows.of(File, _numbered([row for row, _ in self._files.values()]))


_FILES = Rows(File)
_PATH, _SIZE, _CHUNKS, _SAME = map([one.name for one in fields(File)].index, ("path", "size", "chunks", "same"))


def _addresses(row: Row, names: _Names) -> dict[str, str]:
    """The addresses of a file's chunks by their names."""
    return {name: row[_CHUNKS][number] for number, name in names}


@dataclass(slots=True)
class _New:
    """Chunks of init's store: `put` takes those whose bytes are not among those of `has`."""

    store: int
    has: set[str]
    put: Callable[[bytes], object]

    def addresses(self, size: int, names: _Names, known: Mapping[str, str]) -> tuple[str, ...]:
        """The addresses of a file's chunks, which are had from now on. Some are `known` by the chunks' names."""
        found = [""] * -(-size // CHUNK_BYTES)
        for number, name in names:
            found[number] = self._had(known.get(name), partial(_read, self.store, name))
        for some in (slice(-1), slice(-1, None)):  # the last may be shorter
            if "" in (part := found[some]):
                length = CHUNK_BYTES if some.stop else size - (len(found) - 1) * CHUNK_BYTES
                hole = self._had(_of_hole(length), partial(bytes, length))
                found[some] = [address or hole for address in part]
        return tuple(found)

    def _had(self, address: str | None, read: Callable[[], bytes]) -> str:
        """The address of bytes, which are read and put if they are not had."""
        if address is None or address not in self.has:
            data = read()
            address = address_of(data)
            if address not in self.has:
                self.has.add(address)
                self.put(data)
        return address


@lru_cache(maxsize=16)
def _of_hole(length: int) -> str:
    return address_of(bytes(length))


def _numbered(rows: list[Row]) -> list[Row]:
    """Files whose names share a number that the names alone decide: inodes are other ones wherever they are loaded."""
    names: dict[int, list[str]] = defaultdict(list)
    for row in rows:
        if row[_SAME]:
            names[row[_SAME]].append(row[_PATH])
    numbers = {same: _number_of(min(paths)) if len(paths) > 1 else 0 for same, paths in names.items()}
    return [(*row[:_SAME], numbers[row[_SAME]], *row[_SAME + 1 :]) if row[_SAME] else row for row in rows]


def _number_of(path: str) -> int:
    return 1 + int.from_bytes(hashlib.sha256(path.encode("utf-8", "surrogateescape")).digest()[:6])


def _holes(size: int, chunks: list[Any]) -> tuple[tuple[int, int], ...]:
    """Ranges without data, from and to."""
    starts = ((number * CHUNK_BYTES, pieces) for number, _, pieces in chunks)
    return tuple(_between(((at + start, at + end) for at, pieces in starts for start, end in pieces), size))


def _between(ranges: Iterable[tuple[int, int]], size: int) -> Iterator[tuple[int, int]]:
    """Rest of a file, from and to, beside ranges in their order."""
    at = 0
    for start, end in ranges:
        if start > at:
            yield at, start
        at = end
    if at < size:
        yield at, size


def _unkept(path: str) -> Lost:
    return Lost(name=f"file {path}", type="file", reason="it could not be kept", remedy="write it again")


def _read(store: int, name: str) -> bytes:
    file = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=store)
    try:
        return os.read(file, CHUNK_BYTES)
    finally:
        os.close(file)


def _inside(path: str) -> str:
    for root, name in _ROOTS.items():
        if path.startswith(root):
            return name + path[len(root) :]
    raise ValueError(f"{path!r:.200} is not a file of a session")


# ----------------------------------------------------------------------------------------- and back

_BATCH = 16
"""Chunks that are fetched at once."""


async def packed(files: Sequence[File], fetch: Fetch) -> tuple[int, int]:
    """Descriptors of two memory files that init makes these files of: a list of them, and their bytes.

    ValueError for files that cannot be a session's.
    """
    wanted = await to_thread.run_sync(_wanted, files)
    pack = os.memfd_create("bytes", os.MFD_CLOEXEC)
    try:
        places: dict[str, int] = {}
        for first in range(0, len(wanted), _BATCH):
            batch = wanted[first : first + _BATCH]
            await to_thread.run_sync(_append, pack, dict(zip(batch, await fetch(batch), strict=True)), places)
        listed = await to_thread.run_sync(_listed, files, places)
    except BaseException:
        os.close(pack)
        raise
    return listed, pack


def _wanted(files: Sequence[File]) -> list[str]:
    """The addresses that files need, each once."""
    check(files)
    return list(dict.fromkeys(address for file in files for _, address, _ in _parts(file)))


def _append(pack: int, chunks: Mapping[str, bytes], places: dict[str, int]) -> None:
    """Write chunks behind what there is, and note the place of each."""
    for address, data in chunks.items():
        places[address] = os.lseek(pack, 0, os.SEEK_CUR)
        write_all(pack, data)


def _listed(files: Sequence[File], places: dict[str, int]) -> int:
    return filelists.write({}, (_told(file, places) for file in files))


def check(files: Sequence[File]) -> None:
    """Security border: ValueError for files that cannot be a session's, wherever they were read."""
    directories = {name.rstrip("/") for name in _ROOTS.values()}
    paths: set[str] = set()
    for file in sorted(files, key=lambda one: one.path):
        above, _, name = file.path.rpartition("/")
        if name in ("", ".", "..") or "\0" in file.path or above not in directories or file.path in paths:
            raise ValueError(f"{file.path!r:.200} is not the path of a session's file")
        if file.kind not in _KINDS.values() or not 0 <= file.mode <= 0o1777:
            raise ValueError(f"{file.path!r:.200} is no file of a kind, or of a mode, that sessions have")
        if file.kind == "file" and len(file.chunks) != -(-file.size // CHUNK_BYTES):
            raise ValueError(f"{file.path!r:.200} has another size than its chunks")
        ends = [end for hole in file.holes for end in hole]
        if ends != sorted(ends) or not 0 <= min(ends, default=0) <= max(ends, default=0) <= file.size:
            raise ValueError(f"{file.path!r:.200} has holes that are not in it, one after another")
        paths.add(file.path)
        if file.kind == "directory":
            directories.add(file.path)


def _told(file: File, places: dict[str, int]) -> Told:
    root, name = next((root, name) for root, name in _ROOTS.items() if file.path.startswith(name))
    chunks = [(number, places[address], pieces) for number, address, pieces in _parts(file)]
    kind = next(number for number, kind in _KINDS.items() if kind == file.kind)
    path = root + file.path.removeprefix(name)
    return Told(path, kind, file.mode, file.modified_ns, file.size, file.target, file.same, chunks)


def _parts(file: File) -> Iterator[tuple[int, str, filelists.Pieces]]:
    """Each chunk that holds data: its number, its address, and where in it, counted from its start."""
    for number, pieces in filelists.by_chunk(_between(file.holes, file.size), CHUNK_BYTES):
        yield number, file.chunks[number], pieces
