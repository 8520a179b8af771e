"""The notebook of a session that is opened again: read when somebody asks for it, and written change by change."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cellblock import Session, StoreError, UnknownCell, Versioned
from cellblock.errors import StoreDamaged
from cellblock.session.commits import cells_of
from cellblock.store import Quota, linked, open_store
from cellblock.store.address import digest

Open = Callable[..., Session]


def _sources(session: Session) -> list[str]:
    return [cell.source for cell in session.notebook]


def _run(opened: Open, *sources: str) -> None:
    with opened() as session:
        for source in sources:
            session.run(source)


def _ids(url: str) -> list[str]:
    with open_store(url) as store:
        stored = store.read("default", "one")
        return [cell.id for cell, _ in cells_of(stored, stored.resolve("HEAD"))]


def _set_body(url: str, address: str, body: bytes) -> bytes:
    """Have an object's bytes be others; what they were."""
    base = sqlite3.connect(url.removeprefix("sqlite:///"))
    with base:
        (before,) = base.execute("SELECT body FROM objects WHERE address = ?", (digest(address),)).fetchone()
        base.execute("UPDATE objects SET body = ? WHERE address = ?", (body, digest(address)))
    base.close()
    return bytes(before)


@pytest.mark.sampled(0)
def test_a_damaged_cell_costs_who_reads_it_and_nobody_else(opened: Open, url: str) -> None:
    _run(opened, "x = 1", "x = 2", "x = 3")
    with open_store(url) as store:
        stored = store.read("default", "one")
        rows: Any = dict(stored.tree(stored.resolve("HEAD").trees["notebook"]).pairs())
    (address,) = next(linked(link) for place, link in rows.values() if place == 1)
    body = _set_body(url, address, b"damaged")
    session = opened()
    cell = session.run("x")
    assert (cell.value, cell.number) == (3, 4)
    session.flush()
    assert session.notebook[cell.id] is cell
    for asked in (_sources, lambda one: one.notebook[0], lambda one: one.notebook.to_ipynb()):
        with pytest.raises(StoreDamaged, match=address) as damage:
            asked(session)
        assert damage.value.hint == "cellblock sessions verify lists all that is lost"
    assert [commit.number for commit in session.log()] == [4, 3, 2, 1, 0]
    _set_body(url, address, body)
    assert _sources(session) == ["x = 1", "x = 2", "x = 3", "x"]
    session.close()
    assert _sources(opened()) == ["x = 1", "x = 2", "x = 3", "x"]


def test_a_session_is_opened_without_the_list_of_its_cells(opened: Open, url: str) -> None:
    _run(opened, "x = 1", "x = 2")
    with open_store(url) as store:
        root = store.read("default", "one").resolve("HEAD").trees["notebook"]
    assert root is not None
    _set_body(url, root, b"damaged")
    session = opened()
    assert session["x"] == 2
    with pytest.raises(StoreDamaged, match=root):
        len(session.notebook)


@pytest.mark.sampled(0)
def test_cells_are_read_once_and_after_the_session_was_closed(opened: Open, url: str, tmp_path: Path) -> None:
    _run(opened, "x = 1", "print(x)")
    session = opened()
    session.run("x = 3")
    session.close()
    assert _sources(session) == ["x = 1", "print(x)", "x = 3"]
    os.unlink(tmp_path / "cells.db")
    assert session.notebook[1].text == "1"
    assert not os.path.exists(tmp_path / "cells.db")


def test_cells_of_a_store_that_is_gone_are_told_as_such(opened: Open, tmp_path: Path) -> None:
    _run(opened, "x = 1")
    session = opened()
    cell = session.run("x = 2")
    session.close()
    os.unlink(tmp_path / "cells.db")
    assert session.notebook[cell.id].source == "x = 2"
    with pytest.raises(StoreError, match=r"cells\.db is not there any more \(what was not read of it is lost\)"):
        session.notebook.to_html()
    assert not os.path.exists(tmp_path / "cells.db")


def test_a_relative_path_is_read_from_where_it_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number in range(2):
        with Session("one", state=Versioned("sqlite:///cells.db")) as session:
            session.run(f"x = {number}")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert _sources(session) == ["x = 0", "x = 1"]


@pytest.mark.sampled(0)
def test_what_comes_after_deleted_cells_takes_no_others_place(opened: Open) -> None:
    with opened() as session:
        session.run("x = 1")
        second = session.run("x = 2")
        session.run("x = 3")
        session.delete(second.id)
        session.run("x = 4")
    _run(opened, "x = 5")
    assert _sources(opened()) == ["x = 1", "x = 3", "x = 4", "x = 5"]


@pytest.mark.sampled(0)
def test_more_cells_than_a_notebook_begins_with_stay_in_the_store(
    opened: Open, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cellblock.session.earlier.MOST_CELLS", 2)
    _run(opened, "x = 1", "x = 2", "x = 3")
    _run(opened, "x = 4")
    session = opened()
    session.run("x = 5")
    assert _sources(session) == ["x = 3", "x = 4", "x = 5"]
    session.close()
    with open_store(url) as store:
        stored = store.read("default", "one")
        found = [cell.source for cell, _ in cells_of(stored, stored.resolve("HEAD"))]
    assert found == [f"x = {number}" for number in range(1, 6)]


@pytest.mark.sampled(0)
def test_exports_have_every_cell(opened: Open, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cellblock.session.earlier.MOST_CELLS", 2)
    monkeypatch.setattr("cellblock.session.earlier.CELLS_AT_ONCE", 3)
    sources = [f"print('cell {number}')" for number in range(8)]
    _run(opened, *sources)
    session = opened()
    session.delete(_ids(url)[2])
    again = session.rerun(_ids(url)[1])
    session.run("print('cell 8')")
    wanted = [sources[0], again.source, *sources[3:], "print('cell 8')"]
    for read in (False, True):
        if read:
            assert len(session.notebook) == 4
        document: Any = session.notebook.to_ipynb()
        said, *cells = document["cells"]
        assert said["source"] == "# executions that are not here: 2-3 (of cells run again since, undone or deleted)"
        assert [cell["source"] for cell in cells] == wanted
        assert [cell["execution_count"] for cell in cells] == [1, 9, 4, 5, 6, 7, 8, 10]
        page = session.notebook.to_html()
        assert [number for number in range(10) if f">cell {number}\n</pre>" in page] == [0, 1, 3, 4, 5, 6, 7, 8]
        assert "8 cells" in page
    session.close()
    assert session.notebook.to_ipynb() == document
    out = tmp_path / "out.ipynb"
    told = subprocess.run(
        [sys.executable, "-m", "cellblock", "sessions", "export", "one", str(out), "--json"],
        env={**os.environ, "CELLBLOCK_STORE": url},
        check=True, capture_output=True,
    ).stdout  # fmt: skip
    assert (json.loads(told)["cells"], json.loads(out.read_text())) == (8, document)


def test_earlier_cells_can_be_run_again_deleted_and_shown(opened: Open) -> None:
    _run(opened, "x = 1", "x += 1", "x = 7")
    session = opened()
    first, second, _ = session.notebook
    assert session.rerun(second.id).number == 4
    session.delete(first.id)
    with pytest.raises(UnknownCell):
        session.notebook[first.id]
    assert [(cell.source, cell.number) for cell in session.notebook] == [("x += 1", 4), ("x = 7", 3)]
    session.run("x")
    session.close()
    session = opened()
    assert [(cell.source, cell.number) for cell in session.notebook] == [("x += 1", 4), ("x = 7", 3), ("x", 5)]
    session.clear()
    assert len(session.notebook) == 0
    session.run("y = 1")
    session.close()
    assert _sources(opened()) == ["y = 1"]


def test_a_cell_that_is_run_again_and_dies_with_its_program_keeps_its_place(opened: Open, url: str) -> None:
    _run(opened, "x = 1", "x = 2")
    with open_store(url) as store:
        stored = store.read("default", "one")
        first = next(cells_of(stored, stored.resolve("HEAD")))[0]
        with store.hold("default", "one") as held:
            held.append({"do": "begin", "id": first.id, "number": 3, "kind": "python", "source": "x = 1"})
            held.append({"do": "end", "id": first.id, "number": 3, "rolled_back": False})
    session = opened()
    assert session.resumed is not None
    assert [cell.number for cell in session.resumed.replayed] == [3]
    assert session["x"] == 1
    session.close()
    assert [(cell.source, cell.number) for cell in opened().notebook] == [("x = 1", 3), ("x = 2", 2)]


@pytest.mark.sampled(0)
def test_a_branch_reads_them_by_itself(opened: Open, url: str) -> None:
    _run(opened, "x = 1", "x = 2")
    session = opened()
    idea = session.branch("idea")
    try:
        session.close()
        with open_store(url) as store:
            store.delete("default", "one")
        idea.run("x = 3")
        assert _sources(idea) == ["x = 1", "x = 2", "x = 3"]
    finally:
        idea.close()
    assert _sources(opened("idea")) == ["x = 1", "x = 2", "x = 3"]


@pytest.mark.sampled(0)
def test_going_to_an_older_commit_shows_its_cells(opened: Open) -> None:
    _run(opened, "x = 1", "x = 2", "x = 3")
    session = opened()
    session.checkout("HEAD~2")
    session.run("y = 1")
    assert _sources(session) == ["x = 1", "y = 1"]
    session.close()
    assert _sources(opened()) == ["x = 1", "y = 1"]


@pytest.mark.sampled(0)
def test_a_cell_whose_commit_failed_is_in_the_next(opened: Open, url: str) -> None:
    session = opened()
    session.run("x = 1")
    session.flush()
    with open_store(url) as store:
        store.set_quota("default", Quota(sessions=9, bytes=store.usage("default").bytes))
        session.run("x = 2; print('full')")
        with pytest.raises(StoreError, match="may keep"):
            session.flush()
        store.set_quota("default", Quota(sessions=9, bytes=1 << 30))
    session.run("x = 3")
    session.close()
    assert [(cell.source, cell.text) for cell in opened().notebook] == [
        ("x = 1", ""), ("x = 2; print('full')", "full"),
        ("x = 3", "not saved: cell 2 (see to the store; flush() tries again, and so does the next cell)"),
    ]  # fmt: skip
