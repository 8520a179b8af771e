"""Cells that were run again and undone: the notebook shows what a session that is opened anew shows."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from cellblock import Cell, CellblockError, ExecutionLimits, Policy, Session, Versioned

SLOW = "n = 0\nwhile n < 20_000_000: n += 1\na.append(1)"
"""Takes longer than half a second."""
BY_SOURCE = {"policy": Policy(modules=["math"])}
"""No state is saved: what came after the first commit is run again where the session is opened."""


def _shown(session: Session) -> list[tuple[str, int, str, list[bytes]]]:
    """What there is of the cells that were not undone."""

    def parts(cell: Cell) -> list[bytes]:
        return [session.read_output(one.uri) for one in cell.outputs if one.uri is not None]

    return [(cell.id, cell.number, cell.text, parts(cell)) for cell in session.notebook if not cell.undone]


PICTURE = """
class Picture:
    def _repr_png_(self): return b"\\x89PNG\\r\\n\\x1a\\n" + bytes([n])
n = globals().get("n", 0) + 1
Picture()
"""


def test_run_again_and_undone_a_cell_shows_what_it_showed_before(session: Session) -> None:
    session.run("n = 0")
    cell = session.run(PICTURE)
    before = _shown(session)
    session.rerun(cell.id)
    between = _shown(session)
    assert between != before
    session.rerun(cell.id)
    session.undo()
    assert _shown(session) == between
    session.rerun(cell.id)
    session.undo(2)
    assert _shown(session) == before
    session.undo()
    assert session.notebook.find(cell.id) == session.notebook[1]
    assert session.notebook[1].undone


@pytest.mark.sampled(2)
@pytest.mark.parametrize("options", [{}, BY_SOURCE], ids=["states", "by source"])
@pytest.mark.parametrize("since", ["", "open", "open twice", "hibernate"])
def test_undone_the_living_notebook_is_that_of_a_session_opened_anew(
    opened: Callable[..., Session], since: str, options: dict[str, object]
) -> None:
    session = opened(**options)
    session.run("n = []")
    cell = session.run("n.append(0); len(n)", call_id="again")
    before = _shown(session)
    if since == "hibernate":
        session.hibernate()
    elif since:
        session.close()
        session = opened(**options)
    session.rerun(cell.id)
    between = _shown(session)
    if since == "open twice":
        session.close()
        session = opened(**options)
    assert session.rerun(cell.id).text == "3"
    session.undo()
    assert _shown(session) == between
    session.undo()
    assert _shown(session) == before
    session.close()
    assert _shown(opened(**options)) == before


def test_replaced_record_makes_room_for_newer_ones(open_session: Callable[..., Session]) -> None:
    session = open_session(limits=ExecutionLimits(timeout_seconds=20, max_host_mb=1))
    cell = session.run("class Big:\n  def _repr_html_(self): return 'x' * 190_000\nfor n in range(2): display(Big())")
    for _ in range(5):
        assert session.rerun(cell.id).ok
    session.undo(5)
    assert session.notebook[0].number == 1
    assert "dropped" in session.notebook[0].outputs[0].text


def _run(session: Session) -> None:
    session.run("z = 1")


def _flush(session: Session) -> None:
    session.flush()


@pytest.mark.sampled(0)
@pytest.mark.parametrize("meanwhile", [_run, _flush])
def test_undone_cell_that_is_run_again_comes_after_what_was_run_meanwhile(
    opened: Callable[..., Session], meanwhile: Callable[[Session], None]
) -> None:
    session = opened()
    session.run("x = 1", call_id="first")
    session.run("x = 2", call_id="again")
    session.undo()
    meanwhile(session)
    session.rerun("again")
    cells = _shown(session)
    assert cells[-1][0] == "again"
    session.close()
    assert _shown(opened()) == cells


@pytest.mark.sampled(0)
@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("undone", [False, True])
def test_cell_of_the_id_of_a_deleted_one_comes_last(
    opened: Callable[..., Session], reopened: bool, undone: bool
) -> None:
    session = opened()
    session.run("x = 1", call_id="gone")
    session.run("x = 2", call_id="kept")
    if reopened:
        session.close()
        session = opened()
    session.run("x = 3", call_id="other")
    session.delete("gone")
    if undone:
        session.undo()
    session.run("x = 4", call_id="gone")
    cells = _shown(session)
    assert [one[0] for one in cells] == (["kept", "gone"] if undone else ["kept", "other", "gone"])
    session.close()
    assert _shown(opened()) == cells


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    ("before", "now", "source"),
    [
        ({"timeout_seconds": 20}, {"timeout_seconds": 0.5}, "time.sleep(1)"),
        ({"max_memory_mb": 400}, {"max_memory_mb": 100}, "large = bytearray(200_000_000); del large"),
        ({"max_disk_mb": 100}, {"max_disk_mb": 10}, "open('f', 'wb').write(bytes(20_000_000)); os.remove('f')"),
    ],
    ids=["time", "memory", "disk"],
)
def test_cell_that_is_run_again_and_fails_under_lower_limits_is_not_given_up(
    url: str, before: dict[str, float], now: dict[str, float], source: str
) -> None:
    program = f"""
    import os
    from cellblock import ExecutionLimits, Session, Versioned
    session = Session("kept", state=Versioned({url!r}), limits=ExecutionLimits(**{before!r}))
    session.run("import os, time; a = []")
    session.flush()
    assert session.run({source + "; a.append(1)"!r}).ok
    os.kill(os.getpid(), 9)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False)
    for _ in range(2):
        ((name, value),) = before.items()
        with pytest.raises(CellblockError, match="cell 2 had ended well, its state was not saved") as refused:
            Session("kept", state=Versioned(url), limits=ExecutionLimits(**now)).run("a")  # type: ignore[arg-type]
        assert f"limits=ExecutionLimits({name}={value})" in refused.value.hint
    with Session("kept", state=Versioned(url), limits=ExecutionLimits(**before)) as session:  # type: ignore[arg-type]
        assert session.run("a").value == [1]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("options", [{}, BY_SOURCE], ids=["of the journal", "of a commit"])
def test_cell_is_run_again_under_the_time_limit_that_its_call_gave(url: str, options: dict[str, Any]) -> None:
    limits = ExecutionLimits(timeout_seconds=0.5)
    program = f"""
    import os
    from cellblock import ExecutionLimits, Policy, Session, Versioned
    options = {{"policy": Policy(modules=["math"])}} if {bool(options)} else {{}}
    session = Session("kept", state=Versioned({url!r}), limits={limits!r}, **options)
    session.run("a = []")
    session.flush()
    assert session.run({SLOW!r}, timeout=30).ok
    if options:
        session.flush()
    os.kill(os.getpid(), 9)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False)
    with Session("kept", state=Versioned(url), limits=limits, **options) as session:
        assert session.run("a").value == [1]
        assert session.notebook[1].timeout_seconds == 30
