"""Input of a notebook's exports: cells, each output with its binary parts, and a document's prose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeVar

from cellblock.cell import Cell
from cellblock.outputs import Output

T = TypeVar("T")

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Binary parts that are shown; their MIME types come from inside the wall, so what is not here is left out."""
_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"%PDF-": "application/pdf",
}  # fmt: skip


def mime_type(data: bytes) -> str:
    """The MIME type of bytes that came from inside: by what they are, and not by what was said of them."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for magic, mime in _MAGIC.items() if data.startswith(magic)), "application/octet-stream")


@dataclass(frozen=True, slots=True)
class Blob:
    """A binary part of an output."""

    mime: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Shown:
    """A cell and its outputs in order, each with the blobs that belong to it."""

    cell: Cell
    outputs: tuple[tuple[Output, tuple[Blob, ...]], ...]


@dataclass(frozen=True, slots=True)
class Prose:
    """Text that stands between the cells of a document; `images` are what it may show, by name."""

    text: str
    is_markdown: bool
    images: Mapping[str, Blob] = field(default_factory=dict)


def shown(cell: Cell, blobs: Mapping[str, Blob]) -> Shown:
    """Give each output its blobs: from the one its URI names up to the next output's first."""
    uris = list(blobs)
    places = {uri: place for place, uri in enumerate(uris)}
    starts = sorted({places[output.uri] for output in cell.outputs if output.uri in places})
    ends = dict(zip(starts, [*starts, len(uris)][1:], strict=True))

    def belonging(output: Output) -> tuple[Blob, ...]:
        start = places.get(output.uri or "")
        return () if start is None else tuple(blobs[uri] for uri in uris[start : ends[start]])

    return Shown(cell, tuple((output, belonging(output)) for output in cell.outputs))


MOST_EXPORTED = 128 * 2**20
"""Characters of the outputs in one document."""
NO_ROOM = f"[left out: a document holds {MOST_EXPORTED >> 20} MB of outputs, and those before are as much]"


MOST_MARKDOWN = 400_000
"""Characters of Markdown that are rendered for one document. The worst take 5 s of CPU by each 200,000."""


class Room:
    """Room in one document, for its outputs as they are written there: up to tenfold what a session holds of them."""

    def __init__(self) -> None:
        self._left = MOST_EXPORTED
        self._markdown_left = MOST_MARKDOWN

    def takes_markdown(self, size: int) -> bool:
        """True if so many characters of Markdown are still to be rendered, which they then count as."""
        if fits := size <= self._markdown_left:
            self._markdown_left -= size
        return fits

    @property
    def left(self) -> int:
        """Characters that it still has."""
        return max(0, self._left)

    def take(self, view: Callable[[], T], size: Callable[[Any], int] = len) -> T | None:
        """A view; None where there is no room for it. From then on there is none, and no view is made any more."""
        if self._left < 0:
            return None
        made = view()
        self._left -= size(made)
        return None if self._left < 0 else made


def absent(numbers: Iterable[int]) -> str:
    """The executions whose numbers are missing; "" where none up to the highest is."""
    gaps = [(low + 1, high - 1) for low, high in pairwise(sorted({0, *numbers})) if high - low > 1]
    listed = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in gaps[:_MOST_GAPS])
    more = f" and {len(gaps) - _MOST_GAPS} more ranges" if len(gaps) > _MOST_GAPS else ""
    return f"executions that are not here: {listed}{more} (of cells run again since, undone or deleted)" if gaps else ""


_MOST_GAPS = 20
