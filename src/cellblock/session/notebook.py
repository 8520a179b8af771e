"""The record a session keeps: its cells in order, and the binary parts of what they showed."""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn, TypeAlias, overload

from cellblock.cell import NOTHING, Cell, CellState, Deferred
from cellblock.errors import CellblockError, UnknownCell
from cellblock.hosting.finalizers import finalizer
from cellblock.outputs import Output, OutputType
from cellblock.session.account import Account, Share
from cellblock.session.shown import Blob, Shown, shown
from cellblock.text import half_made
from cellblock.values.room import held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellblock.session.earlier import Earlier, Source  # what only sessions that last need

__all__ = ["Blob", "Changes", "Kept", "Notebook"]

Kept: TypeAlias = tuple[Cell, Mapping[str, Blob]]
"""A cell and the binary parts of its outputs, by URI."""

_URI = re.compile(r"notebook://cell/([^/\s]{1,64})/image/(0|[1-9][0-9]{0,8})")
_PLACE = re.compile(r"0|[1-9][0-9]{0,8}")


_MOST_DROPPED_TEXT = 1000
"""Characters that stay of a text, and of what an error says."""
_MOST_DISPLAYED = 8 * 2**20
"""Characters that a notebook puts into the page of Jupyter."""
OLDEST = "the outputs and values of the oldest cells make room for newer ones"


def _dropped() -> object:
    from cellblock.values.forms import Opaque

    return Opaque("dropped", f"{OLDEST} (ExecutionLimits.max_host_mb)")


_DROPPED = Deferred(_dropped)


@dataclass(slots=True)
class Changes:
    """Changes of a notebook's cells, by id: None where one is deleted. `cleared`: all were, before that.

    `deleted` are those that were deleted, of which some may have been run again.
    """

    cleared: bool = False
    cells: dict[str, Kept | None] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)


@dataclass(slots=True, eq=False, weakref_slot=True)
class Record:
    """A cell as a notebook has it, and what it holds of the account for as long as somebody has the record."""

    cell: Cell
    blobs: Mapping[str, Blob]
    share: Share

    @finalizer
    def __del__(self) -> None:
        self.share.close()


class Notebook:
    """Cells by place or id, and bytes by URI. Sessions write it; what reads it may do so at any time.

    That of a resumed session begins with cells in a store, which are read when somebody asks for them: `StoreError`
    where they cannot be. To record a cell, and to ask for a recorded one by its id, reads none; to ask for another by
    its id reads that one.
    """

    def __init__(self, earlier: Earlier | None = None, *, account: Account | None = None) -> None:
        """Outputs and values count on the account, which has the oldest let go where there is no room."""
        self._earlier = earlier
        self._account = account or Account()
        self._account.relieve = self.let_go
        self._lock = threading.RLock()
        self._gone: set[str] = set()
        """Those that were deleted, of which some may have been run again."""
        self._changes: Changes | None = None
        self._cells: dict[str, Record] = {}
        self._again: Record | None = None
        """The record of the cell that is being run again."""
        self._large: weakref.WeakKeyDictionary[Record, None] = weakref.WeakKeyDictionary()
        """Records that hold something that can be let go, in the order in which they were made."""
        self._before: Callable[[], Notebook | None] = lambda: None
        """The one that was cleared, for as long as a session may go back to it."""
        self.private = ""
        """Why the session holds private data; "" where it does not. Exports say it."""

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells in the order of first execution; of those in a store the newest 500."""
        earlier = {} if self._earlier is None else self._earlier.cells()
        cells = {key: kept[0] for key, kept in earlier.items() if key not in self._gone}
        cells.update((key, one.cell) for key, one in self._cells.copy().items())
        return tuple(cells.values())

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.cells)

    def __len__(self) -> int:
        return len(self.cells)

    @overload
    def __getitem__(self, key: int | str) -> Cell: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Cell, ...]: ...
    def __getitem__(self, key: int | str | slice) -> Cell | tuple[Cell, ...]:
        """A cell by its place, from the end where negative, or by its id; several by a slice of places."""
        if isinstance(key, str):
            return self._kept(key)[0]
        cells = self.cells
        if isinstance(key, slice):
            return cells[key]
        if not isinstance(key, int):
            raise TypeError(f"a cell is found by its place or its id, not by {type(key).__name__}")
        if -len(cells) <= key < len(cells):
            return cells[key]
        raise UnknownCell(f"no cell at {key}", hint=f"the notebook has {_count(len(cells))}")

    @half_made
    def __repr__(self) -> str:
        """Reads no store."""
        stored = "" if self._earlier is None else ", and what its store had before"
        return f"<Notebook of {_count(len(self._cells))}{stored}>"

    def _repr_html_(self) -> str | None:
        """The page for Jupyter, in a frame without rights; None, and so the `repr`, where it is too large for that."""
        from html import escape

        page = escape(self.to_html())
        frame = 'sandbox="" title="Notebook" style="width:100%;height:36rem;border:0"'
        return f'<iframe {frame} srcdoc="{page}"></iframe>' if len(page) <= _MOST_DISPLAYED else None

    def __reduce__(self) -> NoReturn:
        raise CellblockError(
            "a notebook can be neither pickled nor copied",
            hint="its cells can: list(session.notebook)",
        )

    def has_recorded(self, cell_id: str) -> bool:
        """True if no store has to be asked for a cell."""
        return self._earlier is None or cell_id in self._cells

    def find(self, cell_id: str) -> Cell | None:
        """A cell by its id, where there is one."""
        kept = self.kept(cell_id)
        return None if kept is None else kept[0]

    def kept(self, key: str) -> Kept | None:
        """The same with the binary parts of its outputs."""
        if (record := self._cells.get(key)) is not None:
            return record.cell, record.blobs
        if self._earlier is not None and key not in self._gone:
            return self._earlier.find(key)
        return None

    def _kept(self, key: str) -> Kept:
        if (kept := self.kept(key)) is not None:
            return kept
        hint = f"{_known(self.cells)}; a deleted cell's id is not used again"
        raise UnknownCell(f"no cell {_named(key)}", hint=hint)

    def copy(self, source: Source | None = None, *, account: Account | None = None) -> Notebook:
        """Another notebook of the same cells, without what runs; those from a store by a `source` of its own."""
        earlier = self._earlier if source is None else self._earlier and self._earlier.copy(source)
        other = Notebook(earlier, account=account)
        other._gone.update(self._gone)
        other.private = self.private
        for record in self._cells.copy().values():
            if (kept := record if record.cell.state is not CellState.RUNNING else self._again) is not None:
                other.record(kept.cell, kept.blobs)
        return other

    def note_changes(self) -> None:
        """From now on remember what changes, for `changes`; what was deleted before is deleted again."""
        gone = self._gone - self._cells.keys()
        self._changes = Changes(cells=dict.fromkeys(gone), deleted=gone)

    def changes(self) -> Changes:
        """Changes since the last call, where it is remembered."""
        changes = self._changes
        if changes is None:
            return Changes()
        self._changes = Changes()
        return changes

    def deletions(self) -> Changes:
        """Those of the `changes` that are deletions; the others are left for later."""
        changes = self._changes or Changes()
        deleted = {cell_id for cell_id, kept in changes.cells.items() if kept is None}
        changes.deleted -= deleted
        return Changes(cells={cell_id: changes.cells.pop(cell_id) for cell_id in deleted}, deleted=deleted)

    def record(self, cell: Cell, blobs: Mapping[str, Blob], *, shown: int | None = None) -> None:
        """Add a cell, or replace the one of the same id in its place, its blobs included. One that was undone is not
        replaced: the cell comes last.

        `shown` are the bytes that its outputs hold, where that is known.
        """
        with self._lock:
            if (before := self._cells.get(cell.id)) is not None and before.cell.undone:
                del self._cells[cell.id]
                before = None
            self._again = before if cell.state is CellState.RUNNING else None
            self._cells[cell.id] = self._new_record(cell, blobs, shown)
            if self._changes is not None:
                self._changes.cells[cell.id] = cell, blobs
        self.let_go(0, spared=1)

    def hold(self, kept: Kept | None) -> Record | None:
        """The record of a cell, from here or a store, for `go_back`; None for one that was undone."""
        if kept is None or kept[0].undone:
            return None
        record = self._cells.get(kept[0].id)
        return record if record is not None and record.cell is kept[0] else self._new_record(*kept)

    def _new_record(self, cell: Cell, blobs: Mapping[str, Blob], shown: int | None = None) -> Record:
        """A record that counts on the account, until its outputs and its value are let go."""
        size = cell.result.size + (_shown(cell, blobs) if shown is None else shown)
        record = Record(cell, dict(blobs), self._account.share(size))
        if size:
            self._large[record] = None
            if cell.result.size:
                cell.result.grown = record.share.add
        return record

    def let_go(self, size: int, *, spared: int = 0) -> None:
        """Drop outputs and values of the oldest records, all but so many, until there is room for so many bytes.

        A cell that the caller holds keeps its own, and the store has them all.
        """
        if (before := self._before()) is not None:
            before.let_go(size)
        with self._lock:
            while self._account.held + size > self._account.limit and len(self._large) > spared:
                oldest = next(iter(self._large))
                oldest.cell = _without_bodies(oldest.cell, oldest.share.size, self._account.name)
                oldest.blobs = {}
                oldest.share.close()
                del self._large[oldest]

    def go_back(self, cell_id: str, before: Record | None) -> None:
        """The session went back past a cell: to what was recorded of it `before`, or to where it had not run."""
        with self._lock:
            if (record := self._cells.get(cell_id)) is None:
                return  # it was deleted
            if before is None:
                record.cell = replace(record.cell, undone=True)
            else:
                self._cells[cell_id] = before
            if self._changes is not None:
                self._changes.cells.pop(cell_id, None)  # the store goes back, too

    def delete(self, cell_id: str) -> None:
        """Remove a cell and its blobs."""
        self.forget(self[cell_id].id)

    def forget(self, *cell_ids: str) -> None:
        """Remove cells, also such as are not here: the store may have them."""
        for cell_id in cell_ids:
            self._gone.add(cell_id)
            with self._lock:
                self._cells.pop(cell_id, None)
            if self._changes is not None:
                self._changes.cells[cell_id] = None
                self._changes.deleted.add(cell_id)

    def emptied(self) -> Notebook:
        """Another notebook of the same session, without cells."""
        other = Notebook(account=self._account)
        other.private = self.private
        other._gone, other._before = self._gone - self._cells.keys(), weakref.ref(self)
        return other

    def clear(self) -> None:
        """Remove every cell and blob."""
        with self._lock:
            self._cells.clear()
        self._earlier = None
        if self._changes is not None:
            self._changes = Changes(cleared=True, deleted=self._changes.deleted)

    def read(self, uri: str) -> bytes:
        """The bytes behind an output's URI; the cell may be named by its place as well."""
        return self.blob(uri).data

    def blob(self, uri: str) -> Blob:
        """The bytes behind an output's URI, with their MIME type."""
        match = _URI.fullmatch(uri)
        if match is None:
            raise UnknownCell(
                f"{_named(uri)} is not the URI of an output", hint="they look like notebook://cell/ID/image/0"
            )
        name, number = match.groups()
        by_place = name not in self._cells and _PLACE.fullmatch(name)
        cell, blobs = self._kept(self[int(name)].id if by_place else name)
        blob = blobs.get(f"notebook://cell/{cell.id}/image/{number}")
        if blob is None:
            raise UnknownCell(f"cell {cell.id} has no image {number}", hint=f"it has {len(blobs)}, counted from 0")
        return blob

    def to_ipynb(self) -> dict[str, object]:
        """The notebook as JSON of nbformat 4.5, which Jupyter opens."""
        from cellblock.session.ipynb import ipynb

        return ipynb(self.shown(), private=self.private)

    def to_html(self) -> str:
        """The notebook as one page without scripts, which fetches nothing."""
        from cellblock.session.page import page

        return page(self.shown(), private=self.private)

    def shown(self) -> Iterator[Shown]:
        """Every cell with its outputs and their binary parts, as exports take them."""
        return (shown(cell, parts) for cell, parts in self.every())

    def count(self) -> int:
        """The number of cells that `every` gives: none is read for it."""
        earlier = set() if self._earlier is None else self._earlier.records().keys() - self._gone
        return len(earlier | self._cells.keys())

    def every(self) -> Iterator[Kept]:
        """Every cell in order, those in a store a page at a time, however many there are."""
        own: dict[str, Kept] = {key: (one.cell, one.blobs) for key, one in self._cells.copy().items()}
        if self._earlier is not None:
            for key, kept in self._earlier.every():
                if key not in self._gone:
                    yield own.pop(key, kept)
        yield from own.values()


def _shown(cell: Cell, blobs: Mapping[str, Blob]) -> int:
    """Bytes of a cell's outputs and their binary parts."""
    return sum(held(one.data) for one in cell.outputs) + sum(len(one.data) for one in blobs.values())


def _without_bodies(cell: Cell, size: int, limit: str) -> Cell:
    """The cell with a note in place of its outputs and its value."""
    note = f"[{_count(len(cell.outputs), 'output')} dropped, {size} bytes: {OLDEST} ({limit})]"
    outputs = (Output(type=OutputType.TEXT, data={"text/plain": note + "\n"}, stream="stderr"),) if cell.outputs else ()
    text = cell.text if len(cell.text) <= _MOST_DROPPED_TEXT else f"{cell.text[:_MOST_DROPPED_TEXT]}\n{note}"
    result = cell.result if cell.result is NOTHING else _DROPPED
    error = cell.error and replace(cell.error, message=cell.error.message[:_MOST_DROPPED_TEXT], traceback="")
    return replace(cell, outputs=outputs, text=text, error=error, result=result)


def _named(text: str) -> str:
    return ascii(text if len(text) <= 80 else f"{text[:80]}…")


def _known(cells: tuple[Cell, ...]) -> str:
    names = ", ".join(cell.id for cell in cells[-5:])
    if not cells:
        return "the notebook is empty"
    return f"the notebook has {names}" if len(cells) <= 5 else f"the last of {len(cells)} are {names}"


def _count(number: int, noun: str = "cell") -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
