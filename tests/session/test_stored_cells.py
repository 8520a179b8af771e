"""A notebook's cells, out of a store."""

from __future__ import annotations

from typing import Any

import pytest

from cellblock.cell import Cell, CellState
from cellblock.errors import StoreError
from cellblock.session import commits
from cellblock.session.archive import from_plain, to_plain
from cellblock.session.commits import cells_of, put_cell
from cellblock.session.notebook import Notebook
from cellblock.session.shown import Blob
from cellblock.store import open_store, records
from cellblock.store.sqlite import SqliteDatabase
from cellblock.text import write_json

MARKUP = "\"'><script>x</script>"
OUTPUT: dict[str, Any] = {"type": "text", "data": {}, "uri": None, "is_result": True, "stream": None}
ERROR = {"type": "E", "message": "m", "traceback": "", "hint": "", "kind": "raised", "status": None}


EDITED: dict[str, dict[str, Any]] = {
    "a kind that is none": {"kind": "<script>x</script>"},
    "a kind that is no text": {"kind": [1]},
    "a state that is none": {"state": "gone"},
    "an id that is no text": {"id": 7},
    "a source that is no text": {"source": ["x"]},
    "a number below 0": {"number": -5},
    "a number that no counter reaches": {"number": 10**30},
    "a text that is none": {"text": 5},
    "a flag that is none": {"undone": "no"},
    "a time that is none": {"usage": {"duration_ms": "x"}},
    "a time that no float holds": {"usage": {"duration_ms": 10**400}},
    "memory that no machine has": {"usage": {"memory_peak_bytes": 10**400}},
    "a usage of another name": {"usage": {"spoons": 1}},
    "an error of numbers": {"error": {**ERROR, "type": 1, "message": 2}},
    "a traceback that is no text": {"error": {**ERROR, "traceback": ["x"]}},
    "a hint that is no text": {"error": {**ERROR, "hint": [2]}},
    "an error of a kind that is none": {"error": {**ERROR, "kind": "<b>"}},
    "a status that is none": {"error": {**ERROR, "status": []}},
    "a loss of numbers": {"lost": [{"name": 1, "type": 2, "reason": 3, "remedy": 4}]},
    "outputs that are none": {"outputs": "x"},
    "an output of a type that is none": {"outputs": [{**OUTPUT, "type": "film"}]},
    "an output whose URI is none": {"outputs": [{**OUTPUT, "uri": []}]},
    "an output whose bundle is none": {"outputs": [{**OUTPUT, "data": [[1, 2]]}]},
    "an output of a stream that is none": {"outputs": [{**OUTPUT, "stream": 5}]},
    "an output that may be a result": {"outputs": [{**OUTPUT, "is_result": "q"}]},
}
"""What somebody may write into a store in place of a part of a cell."""


@pytest.mark.threat("D1")
@pytest.mark.parametrize("name", EDITED)
def test_a_stored_cell_that_is_of_another_shape_is_refused_as_damaged(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "to_plain", lambda cell: {**to_plain(cell), **EDITED[name]})
    with open_store("memory:") as store, store.hold("ana", "q3") as session:
        with session.batch() as batch:
            cell = Cell(id="c1", number=1, source="1", state=CellState.COMPLETED)
            rows = {"c1": [1, records(put_cell(batch, cell, {}))]}
            commit = batch.commit(kind="python", message="", trees={"notebook": batch.tree(None, rows)})
        with pytest.raises(StoreError, match=r"^a stored cell is damaged: "):
            list(cells_of(session, commit))


def test_whatever_the_shape_of_a_stored_cell_lets_through_is_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    odd: dict[str, Any] = {
        "id": MARKUP, "source": MARKUP, "text": MARKUP, "number": 2**63 - 1, "cut": 7, "state": "error",
        "error": {**ERROR, **dict.fromkeys(("type", "message", "traceback", "hint"), MARKUP), "status": -1},
        "lost": [dict.fromkeys(("name", "type", "reason", "remedy"), MARKUP)],
        "outputs": [{**OUTPUT, "data": {"text/html": {"a": 1}, "text/plain": 1, MARKUP: 2, "image/png": MARKUP}},
                    {**OUTPUT, "stream": MARKUP}, {**OUTPUT, "uri": MARKUP}],
        "usage": {"duration_ms": float("nan"), "cpu_ms": 2**63 - 1, "memory_peak_bytes": float("inf")},
    }  # fmt: skip
    cell = from_plain({**to_plain(Cell(id="c1", number=1, source="1", state=CellState.COMPLETED)), **odd})
    notebook = Notebook()
    notebook.record(cell, {})
    assert "<script" not in notebook.to_html()
    assert write_json(notebook.to_ipynb())


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
