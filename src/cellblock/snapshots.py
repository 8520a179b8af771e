"""Parts of a saved session: groups of names, files, and what could not be kept. Opaque to whoever stores it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from sys import getsizeof
from typing import Any, Generic, Literal, TypeVar, overload

from cellblock.cell import Lost
from cellblock.labels import called, is_around
from cellblock.text import half_made

CHUNK_BYTES = 2**20
"""The most that one chunk holds."""

Chunks = tuple[str, ...]
"""Addresses of consecutive pieces. An address is `sha256-` and the 64 hexadecimal digits of the piece's hash."""


T = TypeVar("T")
Row = tuple[Any, ...]


class Rows(Sequence[T], Generic[T]):
    """A sequence of small values, held as plain tuples and made when they are asked for.

    While the collector looks at a program's objects, all of its threads wait. It leaves out plain tuples of plain
    values; as objects, the 50,000 names of one session took it 0.2 s.
    """

    __slots__ = ("_made", "_row", "_rows")

    def __init__(self, kind: type[T], values: Iterable[T] = ()) -> None:
        names = [one.name for one in fields(kind)]  # type: ignore[arg-type]
        self._made: Callable[[Row], T] = lambda row: kind(**dict(zip(names, row, strict=True)))
        self._row: Callable[[T], Row] = attrgetter(*names)
        self._rows: list[Row] = list(map(self._row, values))

    @classmethod
    def of(cls, kind: type[T], rows: Iterable[Row]) -> Rows[T]:
        """A sequence of plain tuples, each of them the `plain` one of a value, which it shares with whoever made it."""
        made = cls(kind)
        made._rows += rows
        return made

    def plain(self, value: T) -> Row:
        """The plain tuple of a value."""
        return self._row(value)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[T]:
        return map(self._made, self._rows)

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...
    def __getitem__(self, at: int | slice) -> T | Sequence[T]:
        return [self._made(row) for row in self._rows[at]] if isinstance(at, slice) else self._made(self._rows[at])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and self._rows == other._rows

    @half_made
    def __repr__(self) -> str:
        return repr(list(self))

    def append(self, value: T) -> None:
        """Hold one more: for the maker of the rows alone."""
        self._rows.append(self._row(value))

    def ordered(self) -> Rows[T]:
        """The same by their first fields, which are texts."""
        self._rows.sort(key=lambda row: str(row[0]))
        return self

    def by_first(self) -> dict[str, Row]:
        """The plain tuples by their first fields."""
        return {str(row[0]): row for row in self._rows}


_RECORD, _PART = 1000, 250
"""Bytes in memory of a group, a name, a file or a loss beside its texts, and of an address."""
HELD_OF_CHUNK = 500
"""Bytes in memory of a chunk that came, until its state is saved: of its address, for who reads and for who stores."""


def held_of_texts(*texts: str) -> int:
    """Bytes that texts take in memory."""
    return sum(map(getsizeof, texts))


def held_of_lost(lost: Lost) -> int:
    """Bytes that a loss takes in memory."""
    return _RECORD + held_of_texts(lost.name, lost.type, lost.reason, lost.remedy)


@dataclass(frozen=True, slots=True)
class Buffer:
    """One large piece of memory, such as an array's, beside the stream that refers to it. Length in bytes."""

    length: int
    chunks: Chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Names that share objects, saved together. `needs` are keys of the groups that are to be loaded before.

    `note` is for who loads it alone.
    """

    key: str
    stream: Chunks
    buffers: tuple[Buffer, ...] = ()
    needs: tuple[str, ...] = ()
    note: str = ""

    def addresses(self) -> Iterator[str]:
        """All that it is made of."""
        yield from self.stream
        for buffer in self.buffers:
            yield from buffer.chunks

    def held(self) -> int:
        """Bytes that it takes in memory, as it is and in the tree that a store keeps of it."""
        parts = len(self.stream) + sum(2 + len(one.chunks) for one in self.buffers)
        return _RECORD + _PART * parts + held_of_texts(self.key, self.note, *self.needs)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedName:
    """One name of a session, and in which group its value is. `size` in bytes, without what the value refers to."""

    name: str
    group: str
    type: str
    size: int
    preview: str

    def held(self) -> int:
        """Bytes that it takes in memory, as it is and in the tree that a store keeps of it."""
        return _RECORD + held_of_texts(self.name, self.group, self.type, self.preview)


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file, directory, link (to `target`) or named pipe of the session's; its path begins with `workspace/`, `tmp/`,
    `shm/` or `data/`.

    `holes` are where a file holds no data, from and to, in bytes; its chunks have zeros there. Files of one `same`
    above 0 are names of one file.
    """

    path: str
    kind: Literal["file", "directory", "link", "pipe"]
    mode: int
    modified_ns: int
    size: int = 0
    chunks: Chunks = ()
    target: str = ""
    holes: tuple[tuple[int, int], ...] = ()
    same: int = 0

    def held(self) -> int:
        """Bytes that it takes in memory, as it is and in the tree that a store keeps of it."""
        return _RECORD + _PART * (len(self.chunks) + len(self.holes)) + held_of_texts(self.path, self.target)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All of a session at one moment.

    `lost` is what it lacks: a name that is saved all the same lacks only the part that the reason tells of.
    `environment` tells which interpreter wrote the groups: another version cannot read them, and runs the imports and
    definitions of the cells again, whose sources are among `ambient`. `index` is for the next snapshot alone.
    """

    groups: Sequence[Group] = ()
    names: Sequence[SavedName] = ()
    files: Sequence[File] = ()
    lost: tuple[Lost, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    ambient: tuple[tuple[str, str], ...] = ()
    """Surroundings of the names, such as the state of `random`: the key and the group of each."""
    index: bytes = b""

    def __post_init__(self) -> None:
        for name, kind in (("groups", Group), ("names", SavedName), ("files", File)):
            if not isinstance(values := getattr(self, name), Rows):
                object.__setattr__(self, name, Rows(kind, values))

    def groups_of_names(self) -> dict[str, Row]:
        """The group of each name, and of what modules hold, to be compared with that of another snapshot."""
        assert isinstance(self.groups, Rows)
        groups = self.groups.by_first()
        return {name: groups[group] for name, _, group in self.saved()}

    def saved(self) -> Iterator[tuple[str, str, str]]:
        """Names, types and groups of what was saved; "" for the type of what no tree of names has."""
        yield from ((one.name, one.type, one.group) for one in self.names)
        yield from ((called(label), "", key) for label, key in self.ambient if not is_around(label))

    def held(self) -> int:
        """Bytes that it takes in memory, as it is and as the trees that a store keeps of it: every text counts."""
        rows = (one.held() for some in (self.groups, self.names, self.files) for one in some)
        texts = sum(held_of_texts(*one) for one in self.ambient)
        return len(self.index) + sum(rows) + sum(map(held_of_lost, self.lost)) + texts

    def addresses(self) -> set[str]:
        """Every address that it refers to."""
        found = {address for group in self.groups for address in group.addresses()}
        return found.union(*(file.chunks for file in self.files)) if self.files else found


def address_of(data: bytes | bytearray | memoryview) -> str:
    """The address of a piece."""
    return f"sha256-{hashlib.sha256(data).hexdigest()}"
