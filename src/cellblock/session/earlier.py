"""The cells that a resumed session's notebook begins with, read from its store when somebody asks for them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from cellblock.errors import StoreError
from cellblock.session.commits import newest_cells
from cellblock.session.notebook import Kept
from cellblock.store import Store, StoredSession

MOST_CELLS = 500
"""Cells that a resumed session's notebook starts with; older ones are in the log."""


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

    def read(self, reading: Callable[[StoredSession], list[tuple[int, Kept]]]) -> list[tuple[int, Kept]]:
        """What `reading` makes of the session. `StoreError` where it is damaged, or is not there any more."""
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
    """The newest cells of a commit. Any thread may ask for them; they are read once."""

    def __init__(self, source: Source, root: str | None) -> None:
        """`root` is that of the commit's tree of cells."""
        self._source = source
        self._root = root
        self._lock = threading.Lock()
        self._cells: dict[str, Kept] | None = None
        self._places: dict[str, int] = {}

    def cells(self) -> Mapping[str, Kept]:
        """Cells in order, by id, each with its binary parts. The first time some 0.1 ms for each."""
        with self._lock:
            if self._cells is None:
                found = self._source.read(lambda session: list(newest_cells(session, self._root, MOST_CELLS)))
                self._places = {kept[0].id: place for place, kept in found}
                self._cells = {kept[0].id: kept for _, kept in found}
            return self._cells

    @property
    def is_read(self) -> bool:
        """Whether they have been read."""
        return self._cells is not None

    def copy(self, source: Source) -> Earlier:
        """The same cells, of another session that has the same commit."""
        other = Earlier(source, self._root)
        with self._lock:
            other._cells, other._places = self._cells, self._places
        return other

    def place(self, cell_id: str) -> int | None:
        """Where a cell is in the tree, of those that were read."""
        return self._places.get(cell_id)
