"""names(): each name is told, whatever the code of one value does as it is shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cellblock import AsyncSession, ExecutionLimits, Session, Versioned

_STAYS, _ENDS = "<not shown: its code did not come to an end>", "<not shown: its code ended the process>"


@pytest.fixture
def session() -> Iterator[Session]:
    with Session(limits=ExecutionLimits(timeout_seconds=6, interrupt_grace_seconds=1)) as session:
        session.run("b = 1; z = [2]")
        yield session


def shows(code: str, name: str = "A") -> str:
    return f"class {name}:\n    def __repr__(self):\n        {code}\n"


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    ("code", "preview"),
    [
        ("while True: pass", _STAYS),
        ("import time; time.sleep(1000)", _STAYS),
        ("sum(range(10**12))", _STAYS),
        ("import os; os._exit(1)", _ENDS),
        ("import os; os.kill(os.getpid(), 9)", _ENDS),
        ("import ctypes; ctypes.string_at(0)", _ENDS),
        ("raise SystemExit(3)", "<A repr failed: SystemExit: 3>"),
    ],
)
def test_other_names_are_told_beside_a_value_that_cannot_be_shown(session: Session, code: str, preview: str) -> None:
    session.run(shows(code) + "a = A(); c = 'after'")
    found = {name: one.preview for name, one in session.names().items()}
    assert found == {"A": "<class '__main__.A'>", "a": preview, "b": "1", "c": "'after'", "z": "[2]"}
    assert session.names()["a"].type == "A"
    assert session.run("b, z, c").value == (1, [2], "after")


@pytest.mark.sampled(0)
def test_values_that_cannot_be_shown_are_each_told_as_such(session: Session) -> None:
    session.run(shows("while True: pass") + shows("import os; os._exit(1)", "B"))
    session.run("for n in range(4): globals()[f'n{n}'] = (A, B)[n % 2]()\ndel n")
    found = {name: one.preview for name, one in session.names().items()}
    assert found == {
        "A": "<class '__main__.A'>", "B": "<class '__main__.B'>", "b": "1",
        "n0": _STAYS, "n1": _ENDS, "n2": _STAYS, "n3": _ENDS,
        "z": "<not shown: the code of too many other values did not end>",
    }  # fmt: skip
    assert session.run("b").value == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("wreck", "fails"),
    [
        ("import builtins; vars(builtins).clear()", "len([1])"),
        ("import builtins; vars(builtins).clear()", "import json"),
        ("import builtins; del builtins.print", "print(1)"),
        ("__builtins__ = {}", "len([1])"),
        ("import sys; sys.path.clear(); sys.meta_path.clear(); sys.modules.pop('csv', None)", "import csv"),
    ],
)
def test_cell_that_fails_in_a_wrecked_interpreter_is_told_of_undo(session: Session, wreck: str, fails: str) -> None:
    session.run("x = 1")
    assert session.run(wreck).ok
    failed = session.run(fails)
    assert failed.error is not None
    assert failed.error.hint == (
        "a cell has changed Python itself here, as by emptying builtins or sys.path: "
        "session.undo() goes back to before it"
    )
    session.undo(2)
    assert session.run(f"{fails}\nx").value == 1


@pytest.mark.parametrize(
    "source",
    [
        "import nothing_there",
        "lenn([1])",
        "raise NameError('len')",
        "int('x')",
        "del print",
        "def f():\n    del len\nf()",
    ],
)
def test_other_errors_have_no_such_hint(session: Session, source: str) -> None:
    error = session.run(source).error
    assert error is not None
    assert "undo" not in error.hint


def test_a_cell_that_asks_for_input_is_told_how_to_give_it(session: Session) -> None:
    cell = session.run("name = input()")
    assert cell.error is not None
    assert cell.error.hint == (
        'nobody answers input() here: bind what it asks for to a name before the cell (session["name"] = …)'
    )
    assert cell.text.endswith("\nhint: nobody answers input() here: write the answer into the code")


@pytest.mark.sampled(0)
def test_a_value_that_does_not_end_holds_up_names_for_seconds_whatever_the_time_limit(
    open_session: Callable[..., Session],
) -> None:
    session = open_session(limits=ExecutionLimits(timeout_seconds=600))
    session.run(shows("while True: pass") + "a = A(); b = 1")
    began = time.monotonic()
    assert {name: one.preview for name, one in session.names().items()}["a"] == _STAYS
    assert time.monotonic() - began < 60  # ten times what it takes; half of the time limit is 300 s


@pytest.mark.sampled(0)
def test_names_of_a_branch_are_shown_beside_a_value_that_does_not_end(open_session: Callable[..., Session]) -> None:
    with open_session() as session, session.branch() as branch:
        branch.run("class Endless:\n    def __repr__(self):\n        while True: pass\nx, y, z = 1, Endless(), 3")
        found = branch.names()
        assert (found["x"].preview, found["z"].preview) == ("1", "3")
        assert found["y"].preview == "<not shown: its code did not come to an end>"
        branch.kill()
        assert branch.run("x, z").value == (1, 3)


def test_session_says_which_names_it_has(session: Session) -> None:
    before = set(session)
    session.run("bound = 1")
    assert ("bound" in session, "absent" in session, set(session) - before) == (True, False, {"bound"})


def test_names_are_read_with_a_default_and_unbound_as_of_a_dict(session: Session) -> None:
    assert (session.get("b"), session.get("nosuch", None), session.get("nosuch", 3)) == (1, None, 3)
    del session["b"]
    assert ("b" in session, list(session), session.get("b", 0)) == (False, ["z"], 0)
    with pytest.raises(KeyError, match="b"):
        session.get("b")
    session.undo()
    assert ("b" in session, session["b"]) == (True, 1)
    for name in ("nosuch", "len"):
        with pytest.raises(KeyError, match=name):
            del session[name]
    with pytest.raises(ValueError, match="'b, z' is not a name"):
        del session["b, z"]
    assert session.run("b, z, len(z)").value == (1, [2], 1)


def test_an_unbound_name_stays_unbound_in_the_store(tmp_path: Path) -> None:
    state = Versioned(f"sqlite:///{tmp_path}/cells.db")
    with Session("s", state=state) as session:
        session.run("a = 1; b = 2")
        del session["a"]
    with Session("s", state=state) as session:
        assert list(session) == ["b"]
        assert session.log()[0].message == "del a"


@pytest.mark.anyio
async def test_an_async_session_unbinds_by_unset() -> None:
    async with AsyncSession() as session:
        await session.set("x", 1)
        await session.unset("x")
        with pytest.raises(KeyError, match="x"):
            await session.get("x")
        assert await session.get("x", 3) == 3
