"""Cells that were deleted from a session that lasts: they are in no later state of it, whatever comes next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from cellblock import AsyncSession, CellblockError, ExecutionLimits, Policy, Session, Versioned


def _flush(session: Session) -> None:
    session.flush()


def _sleep(session: Session) -> None:
    session.hibernate()


def _delete_while_asleep(session: Session) -> None:
    session.hibernate()
    session.delete(session.notebook[-1].id)


def _fail(session: Session) -> None:
    session.run("1 / 0")


def _undo(session: Session) -> None:
    session.run("y = 3")
    session.undo()


def _undo_far(session: Session) -> None:
    session.run("y = 3")
    session.hibernate()
    session.undo()


def _crash(session: Session) -> None:
    session.run("import os; os._exit(7)")


def _nothing(session: Session) -> None:
    pass


THEN = [_nothing, _flush, _sleep, _delete_while_asleep, _fail, _undo, _undo_far, _crash]
WAYS = {"states": ExecutionLimits(), "no checkpoints": ExecutionLimits(max_checkpoints=0)}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("limits", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("then", THEN)
def test_deleted_cell_is_not_there_when_the_session_is_opened_again(
    tmp_path: Path, then: Callable[[Session], None], limits: ExecutionLimits
) -> None:
    store = Versioned(f"sqlite:///{tmp_path}/cells.db")
    with Session("kept", state=store, limits=limits) as session:
        session.run("secret = 'PASSWORD'")
        session.run("x = 1")
    with Session("kept", state=store, limits=limits) as session:
        old, _ = session.notebook
        session.run("hidden = 'PASSWORD'")
        new = session.run("shown = 'PASSWORD'").id
        session.run("z = 2")
        session.delete(old.id)
        session.delete(new)
        then(session)
        assert not {old.id, new} & {cell.id for cell in session.notebook}
        expected = [cell.source for cell in session.notebook if not cell.undone]
    with Session("kept", state=store, limits=limits) as session:
        assert [cell.source for cell in session.notebook] == expected
        assert session.run("secret, x, z").value == ("PASSWORD", 1, 2)


@pytest.mark.sampled(0)
def test_deletion_is_no_step_to_undo(tmp_path: Path) -> None:
    store = Versioned(f"sqlite:///{tmp_path}/cells.db")
    with Session("kept", state=store) as session:
        session.run("x = 1")
        session.run("x = 2")
        session.delete(session.notebook[0].id)
        session.flush()
        assert [commit.message for commit in session.log()] == ["deleted a cell", "x = 2", "x = 1", ""]
    with Session("kept", state=store) as session:
        session.undo()
        assert session.run("x").value == 1
        session.checkout("HEAD~2")


@pytest.mark.sampled(0)
@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("then", [_nothing, _flush, _undo, _undo_far, _crash])
def test_deleted_cell_stays_so_where_a_later_program_goes_back_past_that(
    tmp_path: Path, then: Callable[[Session], None], steps: int
) -> None:
    state = Versioned(f"sqlite:///{tmp_path}/cells.db")
    with Session("kept", state=state) as session:
        session.run("secret = 'PASSWORD'", call_id="one")
        session.run("x = 1")
        session.run("x = 2")
        session.delete("one")
        then(session)
    with Session("kept", state=state) as session:
        session.undo(steps)
        expected = [cell.source for cell in session.notebook]
        assert expected == (["x = 1"] if steps == 1 else [])
    with Session("kept", state=state) as session:
        assert [cell.source for cell in session.notebook] == expected


@pytest.mark.sampled(0)
def test_branch_of_a_session_lacks_what_was_deleted_before(tmp_path: Path) -> None:
    store = Versioned(f"sqlite:///{tmp_path}/cells.db")
    with Session("kept", state=store) as session:
        session.run("x = 1")
        session.run("x = 2")
        session.delete(session.notebook[0].id)
        with session.branch("aside") as branch:
            assert [cell.source for cell in branch.notebook] == ["x = 2"]
    for name in ("kept", "aside"):
        with Session(name, state=store) as session:
            assert [cell.source for cell in session.notebook] == ["x = 2"], name


@pytest.mark.sampled(0)
@pytest.mark.parametrize("then", [_undo, _undo_far], ids=["undo", "undo far"])
def test_cell_that_was_run_again_under_the_id_of_a_deleted_one_is_kept(
    tmp_path: Path, then: Callable[[Session], None]
) -> None:
    state = Versioned(f"sqlite:///{tmp_path}/cells.db")
    with Session("one", state=state) as session:
        session.run("x = 1", call_id="one")
        session.delete("one")
        session.run("x += 10", call_id="one")
        then(session)
        sources = [cell.source for cell in session.notebook if not cell.undone]
    with Session("one", state=state) as session:
        assert [cell.source for cell in session.notebook if not cell.undone] == sources == ["x += 10"]
        assert session.run("x += 10", call_id="one").number == 2
        assert session.run("x").value == 11


def _asleep(session: Session) -> None:
    session.hibernate()


def _far(session: Session) -> None:
    session.run("y = 3")
    session.hibernate()
    session.undo()


@pytest.mark.sampled(0)
@pytest.mark.parametrize("before", [_nothing, _flush, _asleep, _far])
def test_deleted_cell_stays_so_when_another_of_its_id_is_undone(
    tmp_path: Path, before: Callable[[Session], None]
) -> None:
    state = Versioned(f"sqlite:///{tmp_path}/cells.db")
    with Session("one", state=state) as session:
        session.run("n = []")
        session.run("n.append(1)", call_id="one")
        session.delete("one")
        session.run("n.append(2)", call_id="one")
        before(session)
        session.undo()
        assert session.run("n").value == [1]
        expected = [cell.source for cell in session.notebook if not cell.undone]
    with Session("one", state=state) as session:
        assert [cell.source for cell in session.notebook] == expected == ["n = []", "n"]
        assert session.run("n.append(3); n", call_id="one").value == [1, 3]


async def _wake(session: AsyncSession) -> Awaitable[object]:
    await session.hibernate()
    return session.run("y = 1")


async def _step_back(session: AsyncSession) -> Awaitable[object]:
    return session.undo()


async def _step_back_asleep(session: AsyncSession) -> Awaitable[object]:
    await session.hibernate()
    return session.undo()


async def _check_out(session: AsyncSession) -> Awaitable[object]:
    return session.checkout("HEAD")


async def _merge(session: AsyncSession) -> Awaitable[object]:
    async with await session.branch("other") as branch:
        await branch.run("z = 1")
    return session.merge("other")


async def _run(session: AsyncSession) -> Awaitable[object]:
    return session.run("import time; time.sleep(0.2)")


@pytest.mark.sampled(0)
@pytest.mark.anyio
@pytest.mark.parametrize("move", [_wake, _step_back, _step_back_asleep, _check_out, _merge, _run])
async def test_cells_that_are_deleted_while_a_session_moves_stay_deleted(
    url: str, move: Callable[[AsyncSession], Awaitable[Awaitable[object]]]
) -> None:
    async with AsyncSession("one", state=Versioned(url)) as session:
        for number in range(40):
            await session.run(f"x = {number}", call_id=f"c{number}")
        moving = asyncio.ensure_future(await move(session))
        deleted = []
        while not moving.done() and len(deleted) < 38:
            await asyncio.sleep(0.005)
            deleted.append(f"c{len(deleted)}")
            session.delete(deleted[-1])
            await session.flush()
        await moving
        await session.run("y = 2")
        assert deleted
        assert not {*deleted} & {cell.id for cell in session.notebook}
    async with AsyncSession("one", state=Versioned(url)) as session:
        assert not {*deleted} & {cell.id for cell in session.notebook}
        assert (await session.run("y")).value == 2


@pytest.mark.sampled(0)
def test_cell_that_is_deleted_while_a_checkout_fails_stays_deleted(
    opened: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(session: AsyncSession, kernel: object) -> None:
        session.delete("gone")
        raise CellblockError("no")

    session = opened()
    session.run("x = 1", call_id="gone")
    session.run("x = 2", call_id="kept")
    with monkeypatch.context() as patch:
        patch.setattr(AsyncSession, "_write_again", fail)
        with pytest.raises(CellblockError, match="no"):
            session.checkout("HEAD")
    assert [cell.id for cell in session.notebook] == ["kept"]
    session.flush()
    session.close()
    assert [cell.id for cell in opened().notebook] == ["kept"]


@pytest.mark.sampled(0)
@pytest.mark.anyio
async def test_branch_that_is_made_while_a_cell_runs_lacks_what_was_deleted(url: str) -> None:
    async with AsyncSession("one", state=Versioned(url)) as session:
        await session.run("x = 1", call_id="gone")
        await session.run("x = 2")
        async with asyncio.TaskGroup() as group:
            group.create_task(session.run("import time; time.sleep(1)"))
            await asyncio.sleep(0.1)
            session.delete("gone")
            await (await session.branch("other")).close()
    async with AsyncSession("other", state=Versioned(url)) as branch:
        assert [cell.source for cell in branch.notebook] == ["x = 2"]


@pytest.mark.sampled(0)
@pytest.mark.anyio
@pytest.mark.parametrize("deleted", [False, True])
async def test_branch_that_is_made_while_a_cell_runs_again_has_the_record_of_before(url: str, deleted: bool) -> None:
    state = Versioned(url)
    async with AsyncSession("one", state=state) as session:
        await session.run("slow = False", call_id="k1")
        cell = await session.run("import time\nwhile slow: time.sleep(0.01)\nslow = True", call_id="k2")
        if deleted:
            session.delete("k2")
            again = session.run(cell.source, call_id="k2")
        else:
            again = session.rerun("k2")
        running = asyncio.create_task(again)
        while session.notebook.find("k2") in (None, cell):
            await asyncio.sleep(0.01)
        async with await session.branch("other") as branch:
            expected = [(cell.id, cell.number) for cell in branch.notebook]
            assert expected == ([("k1", 1)] if deleted else [("k1", 1), ("k2", 2)])
        session.interrupt()
        await running
    async with AsyncSession("other", state=state) as branch:
        assert [(cell.id, cell.number) for cell in branch.notebook] == expected


@pytest.mark.sampled(0)
def test_cell_that_answers_a_call_again_tells_what_gives_its_value(tmp_path: Path) -> None:
    state = Versioned(f"sqlite:///{tmp_path}/cells.db")
    with Session("one", state=state) as session:
        assert session.run("[1, 2]", call_id="k").value == [1, 2]
    with Session("one", state=state) as session:
        cell = session.run("[1, 2]", call_id="k")
        assert cell.value.repr == (
            "a store keeps what cells showed and names hold: a value that is bound to a name comes back;"
            " session.rerun(cell.id) runs the cell anew, with all that it does outside, such as calls of tools"
        )
        assert session.rerun(cell.id).value == [1, 2]


@pytest.mark.parametrize("method", ["run", "shell", "stream"])
def test_call_id_that_is_no_text_is_refused_as_any_argument_is(method: str) -> None:
    with Session() as session, pytest.raises(TypeError) as caught:
        list(getattr(session, method)("true", call_id=5))
    assert str(caught.value) == "call_id must be str, not int"


@pytest.mark.sampled(0)
@pytest.mark.parametrize("options", [{}, {"policy": Policy(modules=["math"])}], ids=["states", "by source"])
def test_checkpoint_gives_the_newest_step_where_a_cell_was_deleted_since(
    opened: Callable[..., Session], options: dict[str, object]
) -> None:
    session = opened(**options)
    session.run("x = 1", call_id="gone")
    session.run("x = 2")
    here = session.checkpoint()
    session.delete("gone")
    session.flush()
    session.close()
    session = opened(**options)
    assert session.checkpoint() == here
    session.undo(to=here)
    session.run("x = 3")
    session.checkout("HEAD~1")
    assert (session["x"], session.checkpoint(), session.notebook.find("gone")) == (2, here, None)
    session.undo()
    assert session["x"] == 1
    session.close()
    session = opened(**options)
    assert (session["x"], [*session.notebook]) == (1, [])
