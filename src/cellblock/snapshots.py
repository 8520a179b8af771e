"""What a saved session is made of: groups of names, files, and what could not be kept. Opaque to whoever stores it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from cellblock.cell import Lost

CHUNK_BYTES = 2**20
"""The most that one chunk holds."""

Chunks = tuple[str, ...]
"""Addresses of consecutive pieces. An address is `sha256-` and the 64 hexadecimal digits of the piece's hash."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedName:
    """One name of a session, and in which group its value is. `size` in bytes, without what the value refers to."""

    name: str
    group: str
    type: str
    size: int
    preview: str


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All of a session at one moment.

    `lost` is what it lacks: a name that is saved all the same lacks only the part that the reason tells of.
    `environment` tells which interpreter wrote the groups: another version cannot read them, and runs the imports and
    definitions of the cells again, whose sources are among `ambient`. `index` is for the next snapshot alone.
    """

    groups: tuple[Group, ...] = ()
    names: tuple[SavedName, ...] = ()
    files: tuple[File, ...] = ()
    lost: tuple[Lost, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    ambient: tuple[tuple[str, str], ...] = ()
    """What surrounds the names, such as the state of `random`: what it is, and its group."""
    index: bytes = b""

    def addresses(self) -> set[str]:
        """Every address that it refers to."""
        found = {address for group in self.groups for address in group.addresses()}
        return found.union(*(file.chunks for file in self.files)) if self.files else found


def address_of(data: bytes | bytearray | memoryview) -> str:
    """The address of a piece."""
    return f"sha256-{hashlib.sha256(data).hexdigest()}"
