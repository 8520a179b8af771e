"""A checkpoint's files as init and the host tell one another: a memory file of lines, a row for each file.

Each path is told by how much of the one before it begins with, and the rest: many files deep in a tree are told in
little more than their names.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cellblock.wire import lines

Pieces = tuple[tuple[int, int], ...]
"""Ranges of a chunk that hold data, counted from its start."""


@dataclass(slots=True)
class Told:
    """A file by its path inside. A regular one has a `size`, and those chunks that hold data: their numbers, names that
    the sender gives them, and where in each the data is.

    The names of one file have one `same` above 0, and the same chunks, which are told once.
    """

    path: str
    kind: int
    mode: int
    modified_ns: int
    size: int = 0
    target: str = ""
    same: int = 0
    chunks: list[Any] = field(default_factory=list)


def by_chunk(ranges: Iterable[tuple[int, int]], length: int) -> Iterator[tuple[int, Pieces]]:
    """Ranges of a file that hold data, in their order, by chunks of a length: each that has any, by its number."""
    number, pieces = 0, list[tuple[int, int]]()
    for at, stop in ranges:
        while at < stop:
            if pieces and at // length != number:
                yield number, tuple(pieces)
                pieces = []
            number, start = divmod(at, length)
            end = min(stop - at + start, length)
            pieces.append((start, end))
            at += end - start
    if pieces:
        yield number, tuple(pieces)


def write(numbers: Mapping[str, int], rows: Iterable[Told], **paths: Iterable[str]) -> int:
    """A memory file of numbers, rows, and lists of paths by their names."""
    listed = os.memfd_create("files", os.MFD_CLOEXEC)
    with open(os.dup(listed), "wb") as out:
        out.writelines(lines.packed(_items(numbers, rows, paths)))
    return listed


def _items(
    numbers: Mapping[str, int], rows: Iterable[Told], paths: Mapping[str, Iterable[str]]
) -> Iterator[tuple[str, object]]:
    yield from numbers.items()
    before, told = "", set[int]()
    for one in rows:
        plain = [*_cut(before, one.path), one.kind, one.mode, one.modified_ns, one.size, one.target, one.same]
        yield "rows", {"row": plain, "chunks": None if one.same in told else one.chunks}
        before = one.path
        if one.same:
            told.add(one.same)
    for name, some in paths.items():
        for path in some:
            yield name, _cut(before, path)
            before = path


def _cut(before: str, path: str) -> list[object]:
    """The length of what two paths begin with, and the rest of the second."""
    low, high = 0, min(len(before), len(path))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if path.startswith(before[:middle]) else (low, middle - 1)
    return [low, path[low:]]


def read(listed: int, take: Callable[[int], object] = int) -> Iterator[tuple[str, Any]]:
    """Names with what `write` was given under each, one by one: numbers, rows and paths. Closes the memory file.

    `take` is as in `lines.read`.
    """
    before, told = "", dict[int, list[Any]]()
    with open(listed, "rb") as file:
        file.seek(0)
        for name, item in lines.read(file, take):
            if name == "rows":
                shared, rest, *plain = item["row"]
                chunks = told[plain[-1]] if item["chunks"] is None else item["chunks"]
                if plain[-1]:
                    told[plain[-1]] = chunks
                plain.append(chunks)
            elif type(item) is list:
                shared, rest = item
            else:
                yield name, item
                continue
            before = before[:shared] + rest
            yield name, Told(before, *plain) if name == "rows" else before
