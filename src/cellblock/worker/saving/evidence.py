"""Evidence that large memory is still what it was when it was last put away, without reading it.

An entry is made only for the memory of objects that the session holds. What is made for the pickling lies where the
session's own memory was never written, and would look unchanged for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256
from json import dumps, loads
from typing import Any

from cellblock.worker.saving.memory import address_of
from cellblock.worker.saving.streams import CHUNK, Put
from cellblock.worker.saving.targets import targets_of

Unchanged = Callable[[int, int], bool]


_HEAD = 64
"""Bytes before the characters of a text, at most."""


class Evidence:
    """Memory that the last snapshot put away: its place, its pieces, and the marks of writes since."""

    def __init__(self, index: bytes, unchanged: Unchanged, put: Put) -> None:
        known = loads(index) if index else {"buffers": [], "targets": {}}
        self._known: dict[tuple[int, int, int], list[str]] = {
            (address, length, owner): chunks for address, length, owner, chunks in known["buffers"]
        }
        self._unchanged = unchanged
        self._put = put
        self._targets: dict[str, list[list[str]]] = known["targets"]
        self._taken: dict[tuple[int, int, int], list[str]] = {}

    def put(self, data: Any, owner: int, *, moves: bool = False) -> list[str]:
        """Put the pieces of an object's memory away that may be others than they were; the addresses of all.

        `owner` is the `id` of whose memory that is: the kernel may move pages (mremap), as they are, to where another's
        were. What `moves` is a text: as it grows it may be moved whole, and its head tells, which is written then.
        """
        data = memoryview(data).cast("B")
        start, length = address_of(data), data.nbytes
        known = self._known.get((start, length, owner))
        if moves and not self._unchanged(owner, owner + _HEAD):
            known = None
        chunks = []
        for number, offset in enumerate(range(0, length, CHUNK)):
            end = min(offset + CHUNK, length)
            if known is not None and self._unchanged(start + offset, start + end):
                chunks.append(known[number])
            else:
                chunks.append(self._put(data[offset:end]))
        self._taken[start, length, owner] = chunks
        return chunks

    def targets(self, blocks: Iterable[dict[str, str]]) -> list[list[str]]:
        """Targets that the cells' sources set in other objects; only blocks that the last snapshot did not have are
        parsed."""
        known, self._targets = self._targets, {}
        for block in blocks:
            key = f"{len(block)}-{sha256(repr(block).encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
            if key not in self._targets:
                self._targets[key] = known[key] if key in known else targets_of(block.values())
        return [chain for chains in self._targets.values() for chain in chains]

    def index(self) -> str:
        """Index for the next snapshot."""
        rows = [[*where, chunks] for where, chunks in self._taken.items()]
        return dumps({"buffers": rows, "targets": self._targets}, separators=(",", ":"))
