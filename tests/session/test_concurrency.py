"""Many callers of one session, and many sessions: first come first served, nobody blocks whom they should not."""

from __future__ import annotations

import inspect
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import pytest

from cellblock import AsyncSession, CellState, Session, SessionBusy
from cellblock.session import blocking, hostloop

WAIT = "import os, time\nprint('begun')\nwhile not os.path.exists('go'): time.sleep(0.005)\n"


def test_calls_of_several_threads_are_first_come_first_served(session: Session) -> None:
    session.run("order = []")
    events = session.stream(WAIT)
    next(events)
    with ThreadPoolExecutor(8) as pool:
        calls = []
        for number in range(8):
            calls.append(pool.submit(session.run, f"order.append({number})"))
            while session._session._lock.waiting <= number:
                pass
        session.files.write("go", b"")
        list(events)
        assert [call.result(10).state for call in calls] == [CellState.COMPLETED] * 8
    assert session.run("order").value == list(range(8))


def test_cell_does_not_overtake_a_call_that_has_not_begun(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, come, go = hostloop.our_loop(), threading.Semaphore(0), threading.Event()
    hand_in = loop.call_soon_threadsafe

    def door(*call: Any, **options: Any) -> None:
        hand_in(*call, **options)
        come.release()

    monkeypatch.setattr(loop, "call_soon_threadsafe", door)
    with ThreadPoolExecutor(2) as pool:
        hand_in(go.wait)
        pool.submit(session.__setitem__, "x", 1)
        come.acquire()
        later = pool.submit(session.run, "x")
        come.acquire()
        go.set()  # now both are taken up in one round of the loop
        assert later.result(10).value == 1


def test_call_that_will_not_wait_raises_session_busy(session: Session) -> None:
    events = session.stream(WAIT)
    next(events)
    for call in (session.run, session.shell, lambda *a, **k: list(session.stream(*a, **k))):
        with pytest.raises(SessionBusy) as caught:
            call("1", wait=False)
        assert str(caught.value) == "another call is using the session (wait for it, or interrupt())"
    session.files.write("go", b"")
    list(events)
    assert session.run("1", wait=False).value == 1
    assert len(session.notebook) == 2


def test_interrupt_does_not_wait_for_its_turn(session: Session) -> None:
    events = session.stream("print('begun')\nwhile True: pass")
    next(events)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(session.run, "'next'")
        session.interrupt()
        *_, done = events
        assert done.cell.error.type == "KeyboardInterrupt"  # type: ignore[union-attr]
        assert waiting.result(10).value == "next"


def test_interrupt_of_an_idle_session_touches_no_later_cell(session: Session) -> None:
    for number in range(5):
        session.interrupt()
        assert session.run(f"{number}").value == number


def test_files_do_not_wait_for_a_running_cell(session: Session) -> None:
    events = session.stream(WAIT)
    next(events)
    session.files.write("a", b"1")
    assert session.files.read("a") == b"1"
    session.files.write("go", b"")
    list(events)


@pytest.mark.sampled(0)
def test_sessions_run_at_the_same_time(open_session: Callable[..., Session]) -> None:
    sessions = [open_session() for _ in range(10)]
    streams = [session.stream(WAIT + f"{number}") for number, session in enumerate(sessions)]
    for events in streams:
        next(events)  # all ten have begun, none has ended
    for session in sessions:
        session.files.write("go", b"")
    assert [list(events)[-1].cell.value for events in streams] == list(range(10))  # type: ignore[union-attr]


@pytest.mark.anyio
async def test_async_session_serves_many_tasks_in_turn() -> None:
    async with AsyncSession() as session:
        await session.run("n = 0")

        async def add() -> None:
            assert (await session.run("n += 1")).ok

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(add)
        assert await session.get("n") == 20
        assert [cell.number for cell in session.notebook] == list(range(1, 22))


@pytest.mark.anyio
async def test_async_session_that_will_not_wait_raises_session_busy() -> None:
    async with AsyncSession() as session:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.run, WAIT)
            await anyio.lowlevel.checkpoint()
            with pytest.raises(SessionBusy):
                await session.run("1", wait=False)
            await session.files.write("go", b"")


@pytest.mark.anyio
async def test_loop_goes_on_while_a_cell_floods_it() -> None:
    async with AsyncSession() as session:
        ticks = 0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.run, "print('begun')\nwhile True: print('x' * 1000)")
            while ticks < 20:
                await anyio.sleep(0.001)
                ticks += 1
            while len(session.notebook) == 0:
                await anyio.sleep(0.001)
            session.kill()
        assert session.notebook[0].state is CellState.ERROR


@pytest.mark.sampled(0)
@pytest.mark.anyio
async def test_cell_that_calls_without_end_leaves_the_loop_its_turns() -> None:
    calls = """
import gc
(channel,) = [one for one in gc.get_objects() if type(one).__name__ == 'Channel']
ToolCalled = type(channel).receive.__globals__['decode_request'].__globals__['ToolCalled']
print('begun')
while True:
    channel.send(ToolCalled(call=0, request=1, name='nothing', mark=0))
    channel.receive()
"""
    async with AsyncSession() as session, anyio.create_task_group() as tasks:
        told = 0

        async def follow() -> None:
            nonlocal told
            async for _ in session.stream(calls):
                told += 1

        tasks.start_soon(follow)
        between = []
        while told < 2000:
            before = told
            await anyio.lowlevel.checkpoint()
            between.append(told - before)
        session.kill()
    assert max(between) <= 40


@pytest.mark.anyio
async def test_cancelled_call_leaves_a_session_that_works() -> None:
    async with AsyncSession() as session:
        await session.run("x = 1")
        with anyio.move_on_after(0.1) as scope:
            await session.run("import time\ntime.sleep(60)")
        assert scope.cancelled_caught
        assert (await session.run("1 + 1")).value == 2


@pytest.mark.anyio
async def test_blocking_session_in_a_running_loop_warns_once_and_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostloop, "_warned", False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with Session() as session:
            assert session.run("6 * 7").value == 42
    assert [(str(one.message), one.category, one.filename) for one in caught] == [
        (
            "a blocking Session blocks the running event loop; use AsyncSession there, or an agent's arun()",
            RuntimeWarning,
            __file__,
        )
    ]


def test_every_thread_may_open_and_close_sessions() -> None:
    def use(number: int) -> object:
        with Session() as session:
            return session.run(f"{number}").value

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(use, range(8))) == list(range(8))


def test_events_of_a_stream_may_be_taken_by_another_thread(session: Session) -> None:
    events = session.stream("print('a')\nprint('b')")
    next(events)
    rest: list[object] = []
    thread = threading.Thread(target=lambda: rest.extend(events))
    thread.start()
    thread.join(10)
    assert len(rest) >= 1


# --- the two interfaces ----------------------------------------------------------------------------------------

AS_ITEMS = {"set", "unset"}
"""Given as `session[name]` by the blocking interface."""

ENTERED = {"open"}
"""Done by the blocking interface's constructor."""


def public(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


def test_faces_have_the_same_methods() -> None:
    assert public(AsyncSession) - AS_ITEMS - ENTERED <= public(Session)
    extra = public(Session) - public(AsyncSession)
    of_the_other = {"limits", "seed", "notebook", "trust_level", "name", "resumed", "unsaved"}  # its attributes
    assert extra <= of_the_other


@pytest.mark.parametrize("name", [*sorted(public(AsyncSession) & public(Session)), "__init__"])
def test_faces_have_the_same_parameters(name: str) -> None:
    one, two = inspect.getattr_static(AsyncSession, name), inspect.getattr_static(Session, name)
    assert isinstance(one, property) == isinstance(two, property)
    if not isinstance(one, property):
        ours, theirs = (str(inspect.signature(method)).partition(" -> ")[0] for method in (one, two))
        assert ours.replace("'Versions | str'", "'Session | str'") == theirs
        assert one.__doc__ == two.__doc__ or name in ("__init__", "run", "stream")


def test_files_of_both_faces_have_the_same_methods() -> None:
    from cellblock.session.files import AsyncFiles

    assert public(AsyncFiles) == public(blocking.Files)
    for name in public(AsyncFiles):
        one, two = getattr(AsyncFiles, name), getattr(blocking.Files, name)
        assert inspect.signature(one).parameters == inspect.signature(two).parameters
