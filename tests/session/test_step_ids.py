"""One identity of a step: what `checkpoint` gives leads back to it wherever the session runs by then, and a call whose
cell is part of the session's history is answered from the record."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import anyio
import pytest
from family_tree import below, soon
from insides import ASK, Insides

from cellblock import AsyncSession, CellblockError, ExecutionLimits, Policy, Session, Versioned
from cellblock.store.sqlite import SqliteDatabase

Open = Callable[..., Session]


def _nothing(session: Session, opened: Callable[[], Session]) -> Session:
    return session


def _hibernate(session: Session, opened: Callable[[], Session]) -> Session:
    session.hibernate()
    return session


def _open_again(session: Session, opened: Callable[[], Session]) -> Session:
    session.close()
    return opened()


def _checkout(session: Session, opened: Callable[[], Session]) -> Session:
    session.checkout("HEAD")
    return session


def _undo_far(session: Session, opened: Callable[[], Session]) -> Session:
    """By commits: the kernel has no such state."""
    session.run("far = 1")
    session.run("far = 2")
    session.checkout("HEAD")
    session.undo(2)
    return session


THEN = [_nothing, _hibernate, _open_again, _checkout, _undo_far]
KINDS = {
    "isolated": {},
    "local": {"trust_level": "local"},
    "without checkpoints": {"limits": ExecutionLimits(max_checkpoints=0)},
    "under a policy": {"policy": Policy()},
}


# ------------------------------------------------------------------------------------ checkpoints


@pytest.mark.sampled(1)
@pytest.mark.parametrize("then", THEN)
@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_a_step_is_gone_back_to_whichever_kernel_the_session_has(
    opened: Open, options: dict[str, object], then: Callable[[Session, Callable[[], Session]], Session]
) -> None:
    session = opened(**options)
    session.run("x = 1")
    here = session.checkpoint()
    for value in (2, 3):
        session.run(f"x = {value}")
    session = then(session, lambda: opened(**options))
    present = session.checkpoint()
    session.undo(to=present)
    assert (session["x"], session.checkpoint()) == (3, present)
    session.run("x = 4")
    session.undo(to=here)
    assert (session["x"], session.checkpoint()) == (1, here)
    session.undo(to=here)
    session.run("x += 1")
    session.close()
    session = opened(**options)
    assert session["x"] == 2
    session.undo(to=here)
    assert session["x"] == 1


def test_a_step_has_the_same_id_awake_and_asleep_and_when_it_is_opened_again(opened: Open) -> None:
    session = opened()
    seen = {session.checkpoint()}
    session.run("x = 1")
    here = session.checkpoint()
    session.hibernate()
    assert session.checkpoint() == here
    session["y"] = 1
    seen |= {here, session.checkpoint()}
    session.files.write("a", b"1")
    seen.add(session.checkpoint())
    assert len(seen) == 4
    newest = session.checkpoint()
    session.close()
    assert opened().checkpoint() == newest


@pytest.mark.sampled(0)
def test_a_step_that_was_undone_or_left_is_told_with_the_commit_that_has_it(opened: Open) -> None:
    session = opened()
    session.run("x = 1")
    session.tag("first")
    session.run("x = 2")
    session.flush()
    left, commit = session.checkpoint(), session.log()[0].id
    session.undo()
    session.run("x = 3")
    for go_on in (lambda: None, lambda: session.checkout("first")):
        go_on()
        with pytest.raises(CellblockError, match="it did not lead to where the session stands") as refused:
            session.undo(to=left)
        assert refused.value.hint == f"checkout({commit[:19]!r}) goes to any commit of the session, undone or not"
    session.checkout(commit[:19])
    assert (session["x"], session.checkpoint()) == (2, left)


@pytest.mark.sampled(0)
def test_a_branch_goes_back_to_steps_of_before_it_and_to_none_of_others(opened: Open) -> None:
    session = opened()
    session.run("x = 1")
    before = session.checkpoint()
    session.run("x = 2")
    with session.branch("other") as other:
        assert other.checkpoint() == session.checkpoint()
        other.run("y = 1")
        theirs = other.checkpoint()
        session.run("z = 1")
        ours = session.checkpoint()
        session.merge(other)
        with pytest.raises(CellblockError, match="did not lead to where the session stands"):
            session.undo(to=theirs)
        session.undo(to=ours)
        assert list(session.names()) == ["x", "z"]
        other.undo(to=before)
        assert (other["x"], list(other.names())) == (1, ["x"])
    session.undo(to=before)
    assert session["x"] == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("options", [{}, {"limits": ExecutionLimits(max_checkpoints=0)}], ids=["states", "none"])
def test_a_cell_that_was_rolled_back_is_a_step_with_the_state_of_the_one_before(opened: Open, options: Open) -> None:
    session = opened(**options)  # type: ignore[arg-type]
    session.run("x = [1]")
    before = session.checkpoint()
    assert session.run("x.append(2)\nimport os\nos._exit(1)").rolled_back
    for step in (before, session.checkpoint()):
        session.run("x.append(3)")
        session.undo(to=step)
        assert session["x"] == [1]


def test_without_versions_a_step_is_gone_back_to_as_far_as_its_state_is_kept(open_session: Open) -> None:
    session = open_session(limits=ExecutionLimits(max_checkpoints=2))
    session.run("x = 1; lines = (n for n in range(3))")
    first = session.checkpoint()
    assert session.run("import os\nos._exit(1)").rolled_back
    same = session.checkpoint()
    session.aside("x", reads=True)
    session.undo(to=session.checkpoint())
    session.run("next(lines)")
    undone = session.checkpoint()
    session.undo(to=first)
    session.undo(to=same)
    assert session.run("next(lines)").value == 0
    for _ in range(2):
        session.run("1")
    for step in (undone, first, "another"):
        with pytest.raises(CellblockError) as refused:
            session.undo(to=step)
        assert str(refused.value) == (
            f"the session cannot go back to step {step!r}: it is too long ago, was undone, or its state was lost"
            " (raise ExecutionLimits(max_checkpoints=…) before the session is opened, or give the session a name)"
        )
    with pytest.raises(TypeError, match="to must be a step, as checkpoint\\(\\) gives it, not int"):
        session.undo(to=0)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"trust_level": "local"}, {"limits": ExecutionLimits(max_checkpoints=0)}])
def test_without_versions_and_states_only_the_present_step_is_gone_back_to(
    open_session: Open, options: dict[str, object]
) -> None:
    session = open_session(**options)
    session.run("x = 1")
    before = session.checkpoint()
    session.run("x = 2")
    with pytest.raises(CellblockError, match="nothing can be undone"):
        session.undo(to=before)
    session.undo(to=session.checkpoint())
    assert session["x"] == 2


def _others(insides: Insides) -> int:
    return len(list(insides.others()))


@pytest.mark.sampled(0)
def test_a_state_whose_names_were_lost_is_none_to_go_back_to(open_session: Open) -> None:
    if os.getuid() != 0:
        pytest.skip("frozen copies are hidden from an ordinary user")
    for dies_in_the_cell in (True, False):
        session = open_session()
        insides = Insides(str(session.run(ASK).value))
        session.run("x = 1")
        here = session.checkpoint()
        time.sleep(0.2)
        for one in sorted(insides.others(), key=lambda one: one.inner[-1])[1:]:
            os.kill(one.pid, signal.SIGKILL)
        assert soon(partial(_others, insides), 1) == 1
        if not dies_in_the_cell:
            session.kill()
        cell = session.run("import os\nos._exit(1)" if dies_in_the_cell else "y = 1")
        assert "x" in [one.name for one in cell.lost]
        with pytest.raises(CellblockError, match="its state was lost"):
            session.undo(to=here)
        now = session.checkpoint()
        session.run("z = 1")
        session.undo(to=now)
        assert "z" not in session.names()


@pytest.mark.sampled(0)
@pytest.mark.anyio
async def test_what_the_host_did_before_all_processes_ended_is_the_newest_step(url: str) -> None:
    async with AsyncSession("one", state=Versioned(url)) as session:
        await session.run("import os, time; hits = []")
        running = asyncio.create_task(session.run("time.sleep(20)"))
        await anyio.sleep(0.2)
        await session.files.write("given", b"1")
        for one in below():
            with suppress(ProcessLookupError):
                os.kill(one.pid, signal.SIGKILL)
        assert (await running).rolled_back
        here = session.checkpoint()
        assert here == (await session.log())[0].detail["step"]
        await session.run("hits.append(1)")
        await session.undo(to=here)
        assert session.checkpoint() == here
        assert (await session.run("hits, os.listdir()")).value == ([], ["given"])


@pytest.mark.sampled(0)
def test_what_the_host_did_during_a_step_is_no_part_of_the_one_before(opened: Open) -> None:
    def put() -> None:
        session.files.write("given", b"1")

    options = {"tools": [put], "limits": ExecutionLimits(max_checkpoints=5), "policy": Policy()}
    session = opened(**options)
    session.run("x = 1")
    before = session.checkpoint()
    session.run("put()")
    session.close()
    session = opened(**options)
    assert session.files.list() == ["given"]
    session.undo(to=before)
    assert session.files.list() == []


# -------------------------------------------------------------------------------------- call ids



@pytest.mark.sampled(1)
@pytest.mark.parametrize("then", THEN)
@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_a_call_is_run_once_as_long_as_its_cell_is_part_of_the_history(
    opened: Open, options: dict[str, object], then: Callable[[Session, Callable[[], Session]], Session]
) -> None:
    session = opened(**options)
    session.run("n = 0")
    number = session.run("n += 1", call_id="call").number
    session = then(session, lambda: opened(**options))
    assert session.run("n += 1", call_id="call").number == number
    assert session["n"] == 1
    session.undo()
    session = then(session, lambda: opened(**options))
    assert session["n"] == 0
    assert session.run("n += 10", call_id="call").source == "n += 10"
    assert session.run("n += 100", call_id="call").source == "n += 10"
    session = then(session, lambda: opened(**options))
    assert session.run("n += 100", call_id="call").source == "n += 10"
    assert session["n"] == 10


@pytest.mark.sampled(0)
@pytest.mark.parametrize("then", [_nothing, _open_again])
def test_a_call_that_was_rolled_back_is_undone_with_the_step_before_it(
    opened: Open, then: Callable[[Session, Callable[[], Session]], Session]
) -> None:
    session = opened()
    session.run("n = 0")
    session.run("n = 1")
    assert session.run("import os\nos._exit(1)", call_id="call").rolled_back
    session = then(session, opened)
    assert session.run("n = 2", call_id="call").rolled_back
    session.undo()
    session = then(session, opened)
    assert session.run("n += 5", call_id="call").ok
    assert session["n"] == 5


@pytest.mark.sampled(0)
@pytest.mark.parametrize("then", [_nothing, _open_again, _checkout])
def test_a_cell_that_was_run_again_and_undone_has_been_run_before_that(
    opened: Open, then: Callable[[Session, Callable[[], Session]], Session]
) -> None:
    session = opened()
    session.run("n = 0")
    session.run("n += 1", call_id="call")
    assert session.rerun("call").ok
    session.undo()
    session = then(session, opened)
    assert (session["n"], session.run("n += 1", call_id="call").undone) == (1, False)
    session.run("m = 1")
    session = then(session, opened)
    session.run("n += 1", call_id="call")
    assert session["n"] == 1
    session.undo(2)
    session = then(session, opened)
    session.run("n += 1", call_id="call")
    assert session["n"] == 1


@pytest.mark.sampled(0)
def test_a_call_that_is_older_than_the_notebook_is_run_once(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cellblock.session.earlier.MOST_CELLS", 2)
    session = opened()
    first = session.run("n = 1; n", call_id="call")
    for _ in range(3):
        session.run("n += 1")
    session.close()
    for read in (False, True):
        session = opened()
        if read:
            assert "call" not in [cell.id for cell in session.notebook]
        again = session.run("n = 1; n", call_id="call")
        assert (again.number, again.text) == (first.number, "1")
        assert session.notebook["call"] == again
        with session.branch() as other:
            assert other.run("n = 1; n", call_id="call").number == first.number
        assert session["n"] == 4
        session.close()
    session = opened()
    assert session.rerun("call").number == 5
    session.delete("call")
    session.close()
    session = opened()
    assert session.run("n += 10", call_id="call").value is None
    assert session["n"] == 11


@pytest.mark.sampled(0)
def test_what_is_read_for_a_call_does_not_grow_with_the_history(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    select = SqliteDatabase.select
    monkeypatch.setattr(
        SqliteDatabase, "select", lambda self, sql, *more: asked.append(sql) or select(self, sql, *more)
    )

    def reads(name: str, cells: int) -> int:
        with opened(name) as session:
            for number in range(cells):
                session.run("1", call_id=f"call{number}")
        with opened(name) as session:
            assert session.run("1").number == cells + 1
            session.flush()
            before = len(asked)
            assert session.run("1", call_id="call0").number == 1
            assert session.run("1", call_id="new").number == cells + 2
            session.flush()
            return len(asked) - before

    assert reads("long", 150) <= reads("short", 10) + 8


def test_without_versions_a_call_is_run_once_until_it_is_undone(open_session: Open) -> None:
    session = open_session()
    session.run("n = 0")
    for _ in range(2):
        assert session.run("n += 1", call_id="call").number == 2
    session.undo()
    for _ in range(2):
        assert session.run("n += 1", call_id="call").number == 3
    assert session["n"] == 1
    assert session.notebook["call"].undone is False


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", ["undo", "undo to a step", "asleep", "reopened", "live"])
def test_undone_clearing_brings_the_record_back_and_a_call_runs_once(opened: Open, way: str) -> None:
    session = Session() if way == "live" else opened()
    session.run("n = []")
    session.run("n.append(1)", call_id="pay")
    here = session.checkpoint()
    session.clear()
    assert (len(session.notebook), list(session.names())) == (0, [])
    session.run("m = 1")
    session.undo()
    assert len(session.notebook) == 1  # what was undone stays in the record
    if way == "asleep":
        session.hibernate()
    if way == "undo to a step":
        session.undo(to=here)
    else:
        session.undo()
    if way == "reopened":
        session.close()
        session = opened()
    assert [cell.source for cell in session.notebook] == ["n = []", "n.append(1)"]
    assert session.run("n.append(1)", call_id="pay").number == 2
    assert session.run("n").value == [1]
    if way == "live":
        session.close()
