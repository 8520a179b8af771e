"""A notebook's cells, out of a store."""

from __future__ import annotations

import pytest

from cellblock.cell import Cell, CellState
from cellblock.session.commits import cells_of, put_cell
from cellblock.session.shown import Blob
from cellblock.store import open_store, records
from cellblock.store.sqlite import SqliteDatabase


def test_cells_are_read_in_order_in_a_few_statements_for_a_hundred(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [Cell(id=f"c{n}", number=n, source=f"x = {n}", state=CellState.COMPLETED) for n in range(250)]
    parts = [{f"c{n}/0": Blob("image/png", bytes([n % 7]) * 10)} if n % 3 else {} for n in range(250)]
    with open_store("memory:") as store, store.hold("ana", "q3") as session:
        with session.batch() as batch:
            rows = {f"c{n}": [n, records(put_cell(batch, cells[n], parts[n]))] for n in range(250)}
            commit = batch.commit(kind="python", message="", trees={"notebook": batch.tree(None, rows)})
        asked: list[str] = []
        select = SqliteDatabase.select
        monkeypatch.setattr(
            SqliteDatabase, "select", lambda self, sql, *more: asked.append(sql) or select(self, sql, *more)
        )
        dict(session.tree(commit.trees["notebook"]).pairs())
        of_tree = len(asked)
        found = list(cells_of(session, commit))
    assert found == list(zip(cells, parts, strict=True))
    assert len(asked) - of_tree <= 3 * 4
