"""A session that is used on one event loop after another, each of which may end in the middle of its work."""

import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from cellblock import AsyncSession, CellblockError, ExecutionLimits, Session, Versioned

# captures that end with their loop are closed by their finalizers
pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning", "ignore:.*unclosed:pytest.PytestUnraisableExceptionWarning"
)
T = TypeVar("T")
_STANDSTILL = 60.0

Way = Callable[[AsyncSession], None]


def _within(function: Callable[[], T]) -> T:
    """What a function gives, in a thread that is not waited for where it stands still."""
    given: list[T] = []
    failed: list[BaseException] = []

    def carried_out() -> None:
        try:
            given.append(function())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=carried_out, daemon=True)
    thread.start()
    thread.join(_STANDSTILL)
    assert not thread.is_alive(), "it stands still"
    if failed:
        raise failed[0]
    return given[0]


def _run(call: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return _within(lambda: asyncio.run(call()))


def _leave_a_stream(session: AsyncSession) -> None:
    async def main() -> None:
        async for _ in session.stream("b = 2\nprint(b, flush=True)\nimport time; time.sleep(50)"):
            break

    asyncio.run(main())


def _leave_a_task(session: AsyncSession) -> None:
    async def main() -> asyncio.Task[Any]:
        before = len(session.notebook)
        task = asyncio.create_task(session.run("b = 2\nimport time; time.sleep(50)"))
        while len(session.notebook) == before:
            await asyncio.sleep(0.01)
        return task

    asyncio.run(main())


def _leave_a_task_of_large_cells(session: AsyncSession) -> None:
    async def main() -> asyncio.Task[Any]:
        before = len(session.notebook)
        task = asyncio.create_task(session.run(f"b = 2 #{'b' * 10**6}"))
        while len(session.notebook) == before:
            await asyncio.sleep(0)
        return task

    asyncio.run(main())


def _close_the_loop(session: AsyncSession, turns: int = 0) -> None:
    loop = asyncio.new_event_loop()
    assert loop.run_until_complete(session.run("b = 2")).ok
    for _ in range(turns):
        loop.run_until_complete(asyncio.sleep(0))
    loop.close()


def _stop_the_loop(session: AsyncSession) -> None:
    loop = asyncio.new_event_loop()
    assert loop.run_until_complete(session.run("b = 2")).ok
    _stopped.append(loop)


_stopped: list[asyncio.AbstractEventLoop] = []
_WAYS = {
    "a stream is left at the end of asyncio.run": _leave_a_stream,
    "a task is left to asyncio.run": _leave_a_task,
    "a task of a large cell is left to asyncio.run": _leave_a_task_of_large_cells,
    "the loop is closed after a call": _close_the_loop,
    "the loop is stopped after a call": _stop_the_loop,
}
"""Ways in which a loop ends while the session has work on it."""


def _opened(state: Versioned | None) -> AsyncSession:
    limits = ExecutionLimits(interrupt_grace_seconds=0.5)
    session = AsyncSession(limits=limits) if state is None else AsyncSession("one", state=state, limits=limits)

    async def opened() -> None:
        await session.open()
        assert (await session.run("a = 1")).ok

    asyncio.run(opened())
    return session


@pytest.fixture(params=["live", "versioned"])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> Versioned | None:
    return Versioned(f"sqlite:///{tmp_path}/cells.db") if request.param == "versioned" else None


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", _WAYS.values(), ids=_WAYS.keys())
def test_session_goes_on_after_a_loop_that_ended_in_the_middle_of_its_work(way: Way, state: Versioned | None) -> None:
    session = _opened(state)
    for number in range(3):
        _within(lambda: way(session))
        cell = _run(lambda number=number: session.run(f"a += 1; kept = {number}; a"))  # type: ignore[misc]
        assert cell.value == number + 2
    if state is not None:
        _within(lambda: way(session))
        _run(session.flush)
        assert _run(lambda: session.log(limit=100))[-1].kind == "open"
        _within(lambda: way(session))
    assert _run(lambda: session.run("a = 0")).ok
    _run(session.undo)
    ran = [one.id for one in session.notebook if not one.undone]
    _run(session.close)
    while _stopped:
        _stopped.pop().close()
    if state is not None:
        with Session("one", state=state) as again:
            assert [one.id for one in again.notebook if not one.undone] == ran
            assert again.run("a, kept").value == (4, 2)


@pytest.mark.sampled(0)
@pytest.mark.parametrize("turns", range(0, 60, 3))
def test_loop_may_be_closed_at_any_turn_of_what_follows_a_cell(turns: int, tmp_path: Path) -> None:
    session = _opened(Versioned(f"sqlite:///{tmp_path}/cells.db"))
    _within(lambda: _close_the_loop(session, turns))
    _within(lambda: _close_the_loop(session, 2 * turns))
    assert _run(lambda: session.run("a + b")).value == 3
    _run(session.flush)
    assert session.unsaved == ()
    assert [(one.kind, one.snapshot) for one in _run(session.log)] == [("python", True)] * 4 + [("open", True)]
    _run(session.close)


@pytest.mark.sampled(0)
@pytest.mark.parametrize("times", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_asyncio_run_that_ends_cuts_nothing_short_that_is_done_whole_or_not_at_all(
    state: Versioned | None, times: int
) -> None:
    session = _opened(state)
    for turn in range(20 * times):

        async def main(turn: int = turn) -> list[asyncio.Task[Any]]:
            await session.run(f"turn = {turn}")
            calls = session.files.write("turn.txt", str(turn).encode()), session.undo()
            tasks = [asyncio.create_task(call) for call in calls]
            await asyncio.sleep(0.0005 * (turn % 20))
            return tasks

        _run(main)
        assert _run(lambda: session.run("a")).value == 1
        _run(lambda: session.files.write("other.txt", b""))
    _run(session.close)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seconds", [0.02 * turn for turn in range(10)])
def test_loop_may_be_closed_while_the_session_hibernates(seconds: float, tmp_path: Path) -> None:
    session = AsyncSession("one", state=Versioned(f"sqlite:///{tmp_path}/cells.db", hibernate_after=0.01))
    loop = asyncio.new_event_loop()
    loop.run_until_complete(session.open())
    assert loop.run_until_complete(session.run("a = 1")).ok
    loop.run_until_complete(asyncio.sleep(seconds))
    loop.close()
    assert _run(lambda: session.run("a")).value == 1
    _run(session.close)


@pytest.mark.sampled(0)
def test_loop_that_ends_in_the_middle_leaves_nothing_to_complain_of(
    state: Versioned | None, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    session = _opened(state)
    for way in (_leave_a_stream, _leave_a_task, _close_the_loop):
        _within(partial(way, session))
        assert _run(partial(session.run, "a")).value == 1
    _run(session.close)
    del session, way
    gc.collect()
    assert [one.getMessage() for one in caplog.records] == []
    assert capsys.readouterr().err == ""


@pytest.mark.sampled(0)
def test_call_on_a_stopped_loop_keeps_the_session_until_that_goes_on() -> None:
    loop = asyncio.new_event_loop()
    session = AsyncSession()
    loop.run_until_complete(session.open())
    call = loop.create_task(session.run("import time; time.sleep(0.5); 7"))
    loop.run_until_complete(asyncio.sleep(0.1))
    with pytest.raises(CellblockError, match="stopped in the middle of a call"):
        _run(lambda: session.run("1"))
    assert _within(lambda: loop.run_until_complete(call)).value == 7
    assert _run(lambda: session.run("2")).value == 2
    _run(session.close)
    loop.close()


@pytest.mark.sampled(0)
def test_session_that_is_not_used_hibernates_on_the_next_loop_too(tmp_path: Path) -> None:
    session = AsyncSession("one", state=Versioned(f"sqlite:///{tmp_path}/cells.db", hibernate_after=0.2))

    async def use() -> bool:
        await session.open()
        assert (await session.run("a = 1")).ok
        with anyio.move_on_after(10):
            while "asleep" not in repr(session):
                await asyncio.sleep(0.05)
        return "asleep" in repr(session)

    assert [_run(use) for _ in range(3)] == [True, True, True]
    _run(session.close)


def _run_a_cell(session: AsyncSession) -> None:
    asyncio.run(session.run(_MAKES))


def _cut_a_cell_short(session: AsyncSession) -> None:
    async def main() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(session.run(f"{_MAKES}\nwhile True: pass"), 0.5)

    asyncio.run(main())


_MAKES = "import os\ntoken = os.urandom(4).hex()\nopen('token', 'w').write(token)\nNone"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", [_run_a_cell, _cut_a_cell_short])
@pytest.mark.parametrize("reads", [True, False])
def test_what_was_done_on_loops_that_ended_is_what_a_closed_session_has(way: Way, reads: bool, tmp_path: Path) -> None:
    state = Versioned(f"sqlite:///{tmp_path}/cells.db")
    session = _opened(state)
    _within(lambda: way(session))
    told = [_run(lambda: session.get("token"))] if reads else []
    _run(session.close)
    with Session("one", state=state) as again:
        assert again.resumed is not None
        assert (again.resumed.lost, again.resumed.replayed) == ((), ())
        assert again.files.read("token").decode() == again["token"]
        assert told in ([], [again["token"]])


_CALLS: dict[str, Callable[[AsyncSession], Coroutine[Any, Any, Any]]] = {
    "run": lambda session: session.run("import time; time.sleep(50)"),
    "hibernate": lambda session: session.hibernate(),
    "close": lambda session: session.close(),
}


@pytest.mark.sampled(0)
@pytest.mark.parametrize("turns", [1, 2, 4, 8])
@pytest.mark.parametrize("call", _CALLS)
def test_session_whose_loop_was_closed_in_the_middle_of_a_call_can_be_opened_anew(
    call: str, turns: int, tmp_path: Path
) -> None:
    """Though it is held still, as by tables of a library or by a task that never ends."""
    state = Versioned(f"sqlite:///{tmp_path}/cells.db")
    session = _opened(state)
    loop = asyncio.new_event_loop()
    under_way = loop.create_task(_CALLS[call](session))
    for _ in range(turns):
        loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    with Session("one", state=state) as again:
        assert again.run("a").value == 1
    with suppress(CellblockError):  # others have it
        _run(session.close)
    under_way._log_destroy_pending = False  # type: ignore[attr-defined]


def test_session_is_used_on_no_event_loop_but_of_asyncio(tmp_path: Path) -> None:
    session = AsyncSession("one", state=Versioned(f"sqlite:///{tmp_path}/cells.db"))
    with pytest.raises(CellblockError, match="an event loop of asyncio only"):
        session.open().send(None)  # the first step of a loop of another library's
    _run(session.open)
    assert _run(lambda: session.run("7")).value == 7
    _run(session.close)


def test_loop_whose_tasks_are_made_by_the_program() -> None:
    async def main() -> list[object]:
        asyncio.get_running_loop().set_task_factory(lambda loop, coroutine: asyncio.Task(coroutine, loop=loop))
        async with AsyncSession() as session:
            died = (await session.run("import os; os.kill(os.getpid(), 9)")).error
            return [died is not None and died.type, (await session.run("1")).value]

    assert _run(main) == ["ProcessDied", 1]
