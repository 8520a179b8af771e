"""The notebook in the store: a tree of cells by their places, into which each commit writes what has changed."""

from __future__ import annotations

from cellblock.cell import Cell
from cellblock.session.commits import newest_cells, place_key, put_cell
from cellblock.session.earlier import Earlier, Source
from cellblock.session.notebook import Changes
from cellblock.store import JSON, Batch, StoredSession, records


class CellTree:
    """Where each cell of a notebook has its place, which is told by the number that it first ran under.

    Numbers grow, so the place of a new one comes after all that are there, and nobody has to read those.
    """

    def __init__(self, earlier: Earlier | None = None) -> None:
        self.earlier = earlier
        self._places: dict[str, int] = {}
        self._ids: dict[int, str] = {}

    def copy(self, source: Source) -> CellTree:
        """Another that goes on apart, of a session that has the same commit."""
        other = CellTree(None if self.earlier is None else self.earlier.copy(source))
        other._places, other._ids = dict(self._places), dict(self._ids)
        return other

    def write(
        self, batch: Batch, session: StoredSession, root: str | None, changes: Changes
    ) -> tuple[str | None, dict[str, JSON]]:
        """The tree's root after some changes, and the links to the cells that were written, by their ids.

        What was undone and is not in the tree stays out of it: the session went back to before it was.
        """
        root = None if changes.cleared else root
        tree = session.tree(root)
        rows: dict[str, JSON] = {}
        links: dict[str, JSON] = {}
        places = {cell_id: self._known(cell_id) for cell_id in changes.cells}
        if unread := {cell_id for cell_id, kept in changes.cells.items() if kept is None and places[cell_id] is None}:
            found = newest_cells(session, root, None)
            places |= {kept[0].id: place for place, kept in found if kept[0].id in unread}
        for cell_id, kept in changes.cells.items():
            place = places[cell_id]
            if kept is None:
                if place is not None:
                    rows[place_key(place)] = None
                continue
            cell, parts = kept
            if cell.undone and (place is None or place_key(place) not in tree):
                continue
            place = self._taken(cell) if place is None else place
            rows[place_key(place)] = links[cell_id] = records(put_cell(batch, cell, parts))
        return batch.tree(root, rows), links

    def _known(self, cell_id: str) -> int | None:
        place = self._places.get(cell_id)
        if place is None and self.earlier is not None:
            place = self.earlier.place(cell_id)
        # one that was undone may have lost it
        return place if place is None or self._ids.get(place, cell_id) == cell_id else None

    def _taken(self, cell: Cell) -> int:
        place = max(cell.number - 1, 0)
        self._places[cell.id], self._ids[place] = place, cell.id
        return place
