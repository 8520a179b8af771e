"""The files of a checkpoint for a snapshot: what init has kept of them, of which only what is new is read.

Init keeps contents in chunks, each a file of a store that no cell sees. One whose name is known holds what it held.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from cellblock.executors.process.files import write_all
from cellblock.executors.protocol import Fetch
from cellblock.hosting import to_thread
from cellblock.snapshots import CHUNK_BYTES, File, address_of
from cellblock.worker.confine import layout

_ROOTS = {
    layout.WORKSPACE + "/": "workspace/",
    layout.TMP + "/": "tmp/",
    layout.SHM + "/": "shm/",
    layout.OWN_DATA + "/": "data/",
}
_HOLE = "hole of "
_SLACK = 1000
_KINDS: dict[int, Literal["file", "directory", "link", "pipe"]] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "pipe",
}


class Listing:
    """A checkpoint's files, as init lists them: rows, and its store. Owns both descriptors.

    With `since` it tells only what is other than in the telling of that number.
    """

    def __init__(self, listed: int, store: int) -> None:
        self.store = store
        try:
            with open(listed, encoding="utf-8", errors="surrogateescape") as file:
                file.seek(0)
                told: dict[str, Any] = json.loads(file.read())
        except BaseException:
            os.close(store)
            raise
        self.number: int = told["number"]
        self.since: int = told["since"]
        self.rows: list[list[Any]] = told["rows"]
        self.gone: list[str] = told["gone"]
        self.missed: list[str] = told["missed"]

    def close(self) -> None:
        os.close(self.store)


class SavedFiles:
    """A session's files as init told them once, and which of init's chunks hold what. Never changed once it is made:
    each telling is a value of its own, so captures may be read at any time, in any order and at the same time.
    """

    def __init__(self) -> None:
        self.number = 0
        """Of the telling; 0 is before the first."""
        self._rows: dict[str, list[Any]] = {}
        self._files: dict[str, File] = {}
        self._known: dict[str, str] = {}

    def followed_by(self, listing: Listing, has: set[str], put: Callable[[bytes], object]) -> SavedFiles:
        """The files of a listing that tells all, or the difference to these.

        `put` takes the chunks whose bytes are not among those of `has`, which gets their addresses.
        """
        told = SavedFiles()
        told.number = listing.number
        told._known = dict(self._known)
        if listing.since:
            told._rows, told._files = dict(self._rows), dict(self._files)
        for path in listing.gone:
            told._rows.pop(path, None)
            told._files.pop(path, None)
        for row in listing.rows:
            told._rows[row[0]] = row
            told._files.pop(row[0], None)
        told._put_missing(listing.store, has, put)
        return told

    def _put_missing(self, store: int, has: set[str], put: Callable[[bytes], object]) -> None:
        for path, row in self._rows.items():
            file = self._files.get(path)
            if file is not None and has.issuperset(file.chunks):
                continue
            for name, length in _chunks_of(row):
                address = self._known.get(name)
                if address is None or address not in has:
                    data = bytes(length) if name.startswith(_HOLE) else _read(store, name)
                    address = self._known[name] = address_of(data)
                    if address not in has:
                        has.add(address)
                        put(data)
            self._files[path] = self._file(row)
        if len(self._known) > 2 * sum(len(file.chunks) for file in self._files.values()) + _SLACK:
            needed = {name for row in self._rows.values() for name, _ in _chunks_of(row)}
            self._known = {name: address for name, address in self._known.items() if name in needed}

    def found(self) -> tuple[File, ...]:
        """The files."""
        return _numbered([self._files[path] for path in self._rows])

    def _file(self, row: list[Any]) -> File:
        path, kind, mode, modified_ns, held, same = row
        where = _inside(path)
        if not isinstance(held, list):
            return File(path=where, kind=_KINDS[kind], mode=mode, modified_ns=modified_ns, target=held or "", same=same)
        size, chunks = held
        return File(
            path=where,
            kind=_KINDS[kind],
            mode=mode,
            modified_ns=modified_ns,
            size=size,
            chunks=tuple(self._known[name] for name, _ in _chunks_of(row)),
            holes=_holes(size, chunks),
            same=same,
        )


def _numbered(files: list[File]) -> tuple[File, ...]:
    """Files whose names share a number that the names alone decide: inodes are other ones wherever they are loaded."""
    names: dict[int, list[str]] = defaultdict(list)
    for one in files:
        if one.same:
            names[one.same].append(one.path)
    numbers = {same: _number_of(min(paths)) for same, paths in names.items()}
    return tuple(
        replace(one, same=numbers[one.same] if len(names[one.same]) > 1 else 0) if one.same else one for one in files
    )


def _number_of(path: str) -> int:
    return 1 + int.from_bytes(hashlib.sha256(path.encode("utf-8", "surrogateescape")).digest()[:6])


def _chunks_of(row: list[Any]) -> Iterator[tuple[str, int]]:
    """Each chunk's name, one of its own for a hole, and its length."""
    held = row[4]
    if isinstance(held, list):
        size, chunks = held
        for number, chunk in enumerate(chunks):
            length = min(CHUNK_BYTES, size - number * CHUNK_BYTES)
            yield (chunk[0] if chunk else f"{_HOLE}{length}"), length


def _holes(size: int, chunks: list[Any]) -> tuple[tuple[int, int], ...]:
    """Ranges without data, from and to."""
    found: list[tuple[int, int]] = []
    at = 0
    for number, chunk in enumerate(chunks):
        start = number * CHUNK_BYTES
        for begin, end in chunk[1] if chunk else ():
            if start + begin > at:
                found.append((at, start + begin))
            at = start + end
    if at < size:
        found.append((at, size))
    return tuple(found)


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
    return list(dict.fromkeys(address for file in files for address, pieces in _parts(file) if pieces))


def _append(pack: int, chunks: Mapping[str, bytes], places: dict[str, int]) -> None:
    """Write chunks behind what there is, and note the place of each."""
    for address, data in chunks.items():
        places[address] = os.lseek(pack, 0, os.SEEK_CUR)
        write_all(pack, data)


def _listed(files: Sequence[File], places: dict[str, int]) -> int:
    listed = os.memfd_create("files", os.MFD_CLOEXEC)
    with open(os.dup(listed), "w", encoding="utf-8", errors="surrogateescape") as out:
        json.dump({"rows": [_row(file, places) for file in files], "missed": []}, out)
    return listed


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
        paths.add(file.path)
        if file.kind == "directory":
            directories.add(file.path)


def _row(file: File, places: dict[str, int]) -> list[object]:
    root, name = next((root, name) for root, name in _ROOTS.items() if file.path.startswith(name))
    held: object = file.target if file.kind == "link" else None
    if file.kind == "file":
        chunks: list[object] = []
        for number, (address, pieces) in enumerate(_parts(file)):
            length = min(CHUNK_BYTES, file.size - number * CHUNK_BYTES)
            sparse = pieces != [(0, length)]
            chunks.append([[places[address], length], pieces, sparse] if pieces else None)
        held = [file.size, chunks]
    kind = next(number for number, kind in _KINDS.items() if kind == file.kind)
    return [root + file.path.removeprefix(name), kind, file.mode, file.modified_ns, held, file.same]


def _parts(file: File) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Each chunk's address, and where it holds data, counted from its start."""
    holes = iter((*file.holes, (file.size, file.size)))
    hole = next(holes)
    for number, address in enumerate(file.chunks):
        start, end = number * CHUNK_BYTES, min((number + 1) * CHUNK_BYTES, file.size)
        pieces, at = [], start
        while at < end:
            while hole[1] <= at < file.size:
                hole = next(holes)
            stop = min(max(hole[0], at), end)
            if stop > at:
                pieces.append((at - start, stop - start))
            at = end if hole[0] >= end else hole[1]
        yield address, pieces
