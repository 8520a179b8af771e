"""What a saved session consists of: bytes by their addresses, and what refers to them.

An address is `sha256-` and the hex digits of the hash of the bytes as they are, before any compression. Nothing here
is ever unpickled by the host: groups are read back inside a wall.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

CHUNK_BYTES = 2**20
Chunks = tuple[str, ...]
"""Addresses of consecutive pieces, each of `CHUNK_BYTES` but the last."""


def address_of(data: bytes | bytearray | memoryview) -> str:
    """The address of some bytes."""
    return f"sha256-{hashlib.sha256(data).hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """A buffer out of band, of so many bytes."""

    length: int
    chunks: Chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Names that share objects. `needs` are the keys of groups that are loaded before it."""

    key: str
    stream: Chunks
    buffers: tuple[Buffer, ...] = ()
    needs: tuple[str, ...] = ()

    def addresses(self) -> Iterator[str]:
        """All that it is made of."""
        yield from self.stream
        for buffer in self.buffers:
            yield from buffer.chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedName:
    """A name, the key of its group, and what a person is shown of its value; `size` in bytes, about."""

    name: str
    group: str
    type: str
    size: int
    preview: str


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file of the session: `path` begins with "workspace/", "tmp/" or "shm/".

    `kind` is "file", "directory", "link" (to `target`) or "pipe". `holes` are where a file holds no data, from and to;
    its chunks have zeros there. Files of one `same` above 0 are names of one file.
    """

    path: str
    kind: str
    mode: int
    modified_ns: int
    size: int = 0
    chunks: Chunks = ()
    target: str = ""
    holes: tuple[tuple[int, int], ...] = ()
    same: int = 0


Lost = tuple[str, str, str, str]
"""What could not be saved: name, type, reason, remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A session's names and files at one moment. `index` is the next saver's, and opaque; so are, as JSON, `ambient`
    (what belongs to no name) and `declarations`."""

    groups: tuple[Group, ...] = ()
    names: tuple[SavedName, ...] = ()
    files: tuple[File, ...] = ()
    lost: tuple[Lost, ...] = ()
    declarations: str = "[]"
    ambient: str = "{}"
    environment: tuple[tuple[str, str], ...] = ()
    index: bytes = b""

    def addresses(self) -> set[str]:
        """Every address that it refers to."""
        found = {address for group in self.groups for address in group.addresses()}
        return found.union(*(file.chunks for file in self.files)) if self.files else found
