"""The cells that a resumed session's notebook begins with, read from its store when somebody asks for them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from cellblock.errors import StoreError
from cellblock.session.commits import CELLS_AT_ONCE, find_cell, get_cells, records_of, rows_of
from cellblock.session.notebook import Kept
from cellblock.store import JSON, Store, StoredSession

MOST_CELLS = 500
"""Cells that a resumed session's notebook starts with; older ones are in its exports and found by their ids."""
_T = TypeVar("_T")


class Source:
    """A stored session, from which may be read while it is held, and once it is closed."""

    def __init__(self, store: Store, session: StoredSession) -> None:
        self._store = store
        self._session: StoredSession | None = session
        self._user, self._name = session.user, session.name
        self._pid = os.getpid()

    def close(self) -> None:
        """The store is about to be closed: what is read from now on, or is being read, opens it again."""
        self._session = None

    def read(self, reading: Callable[[StoredSession], _T]) -> _T:
        """Result of `reading` the session. `StoreError` where it is damaged, or is not there any more."""
        session = self._session
        if session is not None and os.getpid() == self._pid:
            try:
                return reading(session)
            except StoreError:
                if self._session is not None:
                    raise
        with self._again() as session:
            return reading(session)

    @contextmanager
    def _again(self) -> Iterator[StoredSession]:
        with self._store.again() as store:
            yield store.read(self._user, self._name)


class Earlier:
    """The cells of a commit, by its `trees`: the newest, which are read once, all, page by page, and any by its id.

    Any thread may ask for them.
    """

    def __init__(self, source: Source, trees: Mapping[str, str | None]) -> None:
        self._source = source
        self._trees = trees
        self._lock = threading.RLock()
        self._records: dict[str, str] | None = None
        self._cells: dict[str, Kept] | None = None
        self._rows: dict[str, JSON] | None = None

    def cells(self) -> Mapping[str, Kept]:
        """Cells in order, by id, each with its binary parts. The first time some 0.1 ms for each."""
        with self._lock:
            if self._cells is None:
                self._cells = self._read([*self.records().items()][-MOST_CELLS:])
            return self._cells

    def records(self) -> Mapping[str, str]:
        """The addresses of all cells, by id, in order."""
        with self._lock:
            if self._records is None:
                self._records = self._source.read(lambda session: records_of(session, self._trees))
            return self._records

    def every(self) -> Iterator[tuple[str, Kept]]:
        """All cells in order, each with its id. A page of them is held at a time, beside the newest."""
        records = [*self.records().items()]
        for first in range(0, len(records), CELLS_AT_ONCE):
            page, known = records[first : first + CELLS_AT_ONCE], self._cells or {}
            found = self._read([one for one in page if one[0] not in known])
            yield from ((cell_id, known.get(cell_id) or found[cell_id]) for cell_id, _ in page)

    def _read(self, records: Sequence[tuple[str, str]]) -> dict[str, Kept]:
        addresses = [address for _, address in records]
        found = self._source.read(lambda session: list(get_cells(session, addresses))) if addresses else []
        return {cell_id: kept for (cell_id, _), kept in zip(records, found, strict=True)}

    def find(self, cell_id: str) -> Kept | None:
        """A cell by its id. Of one that the list does not have, the store is asked: some 0.2 ms."""
        if self._cells is not None and (cell_id in self._cells or len(self._cells) < MOST_CELLS):
            return self._cells.get(cell_id)

        def found(session: StoredSession) -> Kept | None:
            rows = self._rows or rows_of(session, self._trees)
            self._rows = rows if isinstance(rows, dict) else None
            return find_cell(session, rows, cell_id)

        return self._source.read(found)

    def copy(self, source: Source) -> Earlier:
        """The same cells, of another session that has the same commit."""
        other = Earlier(source, self._trees)
        other._cells, other._rows, other._records = self._cells, self._rows, self._records
        return other
