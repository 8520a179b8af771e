"""Who stops waiting leaves a session that goes on: by scopes of anyio's, by asyncio's own means, by Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import anyio
import pytest
from cancelling import Steps

from cellblock import AsyncSession, Cell, Session, Versioned
from cellblock.session.hostloop import Run
from cellblock.session.unbroken import unbroken
from cellblock.worker import control


class Work:
    """Something that takes until it is let go."""

    def __init__(self) -> None:
        self.begun, self.let_go, self.ended = anyio.Event(), anyio.Event(), False

    async def __call__(self) -> int:
        self.begun.set()
        await self.let_go.wait()
        self.ended = True
        return 7


@pytest.mark.anyio
async def test_unbroken_work_outlives_the_scope_of_its_caller() -> None:
    work = Work()
    async with anyio.create_task_group() as tasks:

        async def call() -> None:
            assert await unbroken(work) == 7

        tasks.start_soon(call)
        await work.begun.wait()
        tasks.cancel_scope.cancel()
        work.let_go.set()
    assert work.ended


@pytest.mark.anyio
async def test_unbroken_work_outlives_its_task_which_is_cancelled_then() -> None:
    work = Work()
    task = asyncio.create_task(unbroken(work))
    await work.begun.wait()
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    work.let_go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert work.ended


@pytest.mark.anyio
async def test_time_that_is_up_during_unbroken_work_is_a_timeout_and_nothing_more() -> None:
    work = Work()
    asyncio.get_running_loop().call_later(0.01, work.let_go.set)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(unbroken(work), 0.001)
    assert work.ended
    await asyncio.sleep(0)


@pytest.mark.anyio
async def test_what_unbroken_work_raises_is_raised() -> None:
    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await unbroken(fail)


async def _branch(session: AsyncSession) -> None:
    await (await session.branch()).close()


async def _kill_and_run(session: AsyncSession) -> None:
    session.kill()
    await session.run("kept = [x]")


CALLS: dict[str, Callable[[AsyncSession], Awaitable[object]]] = {
    "run": lambda session: session.run("x += 1; kept = [x]"),
    "crash": lambda session: session.run("import os; os._exit(1)"),
    "kill": _kill_and_run,
    "shell": lambda session: session.shell("echo 1 > f"),
    "tool": lambda session: session.run("seven()"),
    "undo": AsyncSession.undo,
    "branch": _branch,
    "set": lambda session: session.set("y", 1),
    "set much": lambda session: session.set("y", bytes(3_000_000)),
    "get": lambda session: session.get("x"),
    "names": AsyncSession.names,
    "write": lambda session: session.files.write("f", "1"),
    "list": lambda session: session.files.list(),
}


async def seven() -> int:
    return 7


@pytest.mark.sampled(2)
@pytest.mark.anyio
@pytest.mark.parametrize("call", CALLS)
async def test_session_goes_on_whichever_step_of_a_call_is_cancelled(call: str) -> None:
    steps = Steps()
    async with AsyncSession(tools=[seven]) as session:
        await session.run("x = 0; kept = [x]")
        await session.run("import os; os._exit(1)")  # from here on the worker is a copy that was woken
        await session.run("x += 1; kept = [x]")
        async for number in steps.each(partial(CALLS[call], session)):
            cell = await session.run("kept == [x]")
            assert cell.value is True, f"after {number} steps: {cell.text}"
            await session.run("x += 1; kept = [x]")


STORED = [
    pytest.param(call, marks=[] if call in ("run", "crash", "undo", "set", "write") else [pytest.mark.slow])
    for call in sorted({*CALLS} - {"branch"})
]
"""Where a store takes part, each step of a call that is cancelled takes longer: most of the calls are slow."""


@pytest.mark.sampled(0)
@pytest.mark.anyio
@pytest.mark.parametrize("call", STORED)
async def test_stored_session_goes_on_whichever_step_of_a_call_is_cancelled(call: str, url: str) -> None:
    steps = Steps()
    async with AsyncSession("one", state=Versioned(url), tools=[seven]) as session:
        await session.run("x = 0; kept = [x]")
        await session.run("x += 1; kept = [x]")
        async for number in steps.each(partial(CALLS[call], session)):
            cell = await session.run("kept == [x]")
            assert cell.value is True, f"after {number} steps: {cell.text}"
            await session.run("x += 1; kept = [x]")
        kept = await session.get("kept")
    async with AsyncSession("one", state=Versioned(url), tools=[seven]) as again:
        assert await again.get("kept") == kept


@pytest.mark.sampled(0)
@pytest.mark.anyio
async def test_close_ends_all_whichever_of_its_steps_is_cancelled(url: str) -> None:
    steps, opened = Steps(), list[AsyncSession]()

    async def close() -> None:
        await opened[-1].close()

    async def open_one() -> None:
        opened.append(AsyncSession("one", state=Versioned(url)))
        await opened[-1].open()  # nobody else may have it any more
        await opened[-1].run("x = 1")

    await open_one()
    async for _ in steps.each(close):
        await open_one()
    await opened[-1].close()


@pytest.mark.sampled(0)
@pytest.mark.anyio
async def test_death_that_a_cancelled_caller_was_to_hear_of_takes_no_answer_from_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard = control.heard

    def heard_late(channel: socket.socket) -> dict[str, object] | None:
        """A message, in a thread of a busy machine."""
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.03)
        return heard(channel)

    monkeypatch.setattr(control, "heard", heard_late)
    async with AsyncSession() as session:
        await session.run("x = 0; kept = [x]")
        await session.run("import os; os._exit(1)")
        for milliseconds in range(0, 20, 2):
            await session.run("x += 1; kept = [x]")
            task = asyncio.create_task(session.run("import os; os._exit(1)"))
            await asyncio.sleep(milliseconds / 1e3)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            with anyio.fail_after(20):
                assert (await session.run("kept == [x]")).value is True


def test_call_that_is_ended_before_it_has_begun_has_ended() -> None:
    for _ in range(20):
        Run(anyio.sleep_forever).end()


def _run(session: Session, source: str) -> None:
    session.run(source)


def _follow(session: Session, source: str) -> None:
    for _ in session.stream(source):
        pass


@pytest.mark.parametrize("call", [_run, _follow])
def test_ctrl_c_is_raised_and_the_session_goes_on(
    open_session: Callable[..., Session], call: Callable[[Session, str], None]
) -> None:
    def press() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    session = open_session(tools=[press])
    session.run("x = 1")
    with pytest.raises(KeyboardInterrupt):
        call(session, "press()\nwhile True: pass")
    assert session.run("x").value == 1
    assert session.notebook[1].error.type == "KeyboardInterrupt"  # type: ignore[union-attr]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("source", ["1", "while True: pass"])
def test_ctrl_c_while_the_loop_begins_a_cell_ends_it_and_the_session_goes_on(
    open_session: Callable[..., Session], monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    begin = AsyncSession._begin_at_once

    def begin_slowly(session: AsyncSession, source: str) -> object:
        execution = begin(session, source)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(0.2)  # the caller gives up, and the loop is told of it once this has returned
        return execution

    session = open_session()
    session.run("x = 1")
    monkeypatch.setattr(AsyncSession, "_begin_at_once", begin_slowly)
    with pytest.raises(KeyboardInterrupt):
        session.run(source)
    monkeypatch.undo()
    assert session.run("x", wait=False).value == 1


LOCKED = """
import signal, sys, threading
from cellblock import Session

def trace(frame, event, argument):  # Ctrl-C as the caller has taken a lock of Python's own, to wait
    if frame.f_code is not threading.Condition.__enter__.__code__:
        return None
    def leave(frame, event, argument):
        if event == "return":
            sys.settrace(None)
            signal.raise_signal(signal.SIGINT)
        return leave
    return leave

session, other = Session(), Session()
threading.Timer(0.5, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
sys.settrace(trace)
try:
    session.run("import time; time.sleep(20)")
except KeyboardInterrupt:
    sys.settrace(None)
print(session.run("1").value, other.run("2").value)
"""


@pytest.mark.sampled(0)
def test_ctrl_c_at_any_step_of_a_wait_leaves_all_sessions_of_the_program_usable() -> None:
    command = [sys.executable, "-c", LOCKED]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout == "1 2\n"


@pytest.mark.sampled(0)
@pytest.mark.anyio
async def test_undo_that_is_cancelled_is_undone_in_the_store_too_or_not_at_all(url: str) -> None:
    async with AsyncSession("one", state=Versioned(url)) as session:
        for turns in range(24):
            await session.run("a = 1")
            await session.run("a = 2")
            await session.flush()
            task = asyncio.create_task(session.undo())
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            message = "a = 2" if await session.get("a") == 2 else "a = 1"
            assert (await session.log(limit=1))[0].message == message, f"{turns} turns of the loop"


@pytest.mark.sampled(0)
@pytest.mark.anyio
async def test_value_that_was_bound_for_a_caller_who_left_is_a_step(url: str) -> None:
    async with AsyncSession("one", state=Versioned(url)) as session:
        await session.run("a = 1")
        for turns in range(24):
            await session.run("x = None")
            await session.flush()
            task = asyncio.create_task(session.set("x", turns))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            message = "x = None" if await session.get("x") is None else "x = …"
            assert (await session.log(limit=1))[0].message == message, f"{turns} turns of the loop"


@pytest.mark.sampled(0)
@pytest.mark.anyio
async def test_merge_that_is_cancelled_is_merged_in_the_store_too_or_not_at_all(url: str) -> None:
    async with AsyncSession("one", state=Versioned(url)) as session:
        for number in range(8):
            async with await session.branch() as branch:
                await branch.run(f"merged = {number}")
            await session.run(f"k{number} = 0")
            await session.flush()
            task = asyncio.create_task(session.merge(str(branch.name)))
            await asyncio.sleep(number * 0.003)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            found = (await session.names()).get("merged")
            is_merged = (await session.log(limit=1))[0].kind == "merge"
            assert is_merged == (found is not None and found.preview == str(number)), f"{number}: {found}"


class Alarm(Exception):
    """Raised by a handler of a signal, as by a test's own time limit."""


def _ring(*_: object) -> None:
    raise Alarm


RAISED = {KeyboardInterrupt: signal.SIGINT, Alarm: signal.SIGALRM}
WAITING: dict[str, Callable[[Session], object]] = {
    "run": lambda session: session.run("L.append(1)\nwhile True: pass"),
    "stream": lambda session: list(session.stream("L.append(1)\nwhile True: pass")),
    "shell": lambda session: session.shell("echo >> began; sleep 60"),
    "aside": lambda session: session.aside("L.append(1)\nwhile True: pass"),
}


@pytest.fixture
def raising() -> Iterator[Callable[[type[BaseException], float], None]]:
    """Has an exception raised in the main thread after so many seconds."""
    before = signal.signal(signal.SIGALRM, _ring)
    timers: list[threading.Timer] = []

    def soon(kind: type[BaseException], seconds: float) -> None:
        main = threading.main_thread().ident or 0
        timers.append(threading.Timer(seconds, signal.pthread_kill, (main, RAISED[kind])))
        timers[-1].start()

    yield soon
    for timer in timers:
        timer.join()
    signal.signal(signal.SIGALRM, before)


@pytest.mark.sampled(0)
@pytest.mark.parametrize("call", WAITING)
@pytest.mark.parametrize("kind", RAISED)
def test_whatever_is_raised_in_a_waiting_caller_ends_the_cell_and_the_session_goes_on(
    session: Session, kind: type[BaseException], call: str, raising: Callable[[type[BaseException], float], None]
) -> None:
    session.run("L = []")
    raising(kind, 0.3)
    with pytest.raises(kind):
        WAITING[call](session)
    began = time.monotonic()
    assert session.run("1").value == 1
    assert time.monotonic() - began < 15  # the cell alone would have run to its limit, 20 s


@pytest.mark.sampled(1)
@pytest.mark.parametrize("call", ["run", "stream", "shell"])
@pytest.mark.parametrize("kind", RAISED)
def test_what_was_interrupted_before_it_began_never_runs(
    opened: Callable[..., Session], url: str, kind: type[BaseException], call: str,
    raising: Callable[[type[BaseException], float], None],
) -> None:  # fmt: skip
    session = opened()
    session.run("L = []")
    session.flush()
    other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    raising(kind, 0.3)
    with pytest.raises(kind):
        WAITING[call](session)
    other.execute("ROLLBACK")
    other.close()
    assert session.run("list(L)").value == []
    assert session.files.list() == []
    session.close()
    with Session("one", state=Versioned(url)) as again:
        assert [cell.source for cell in again.notebook] == ["L = []", "list(L)"]


@pytest.mark.sampled(0)
def test_ctrl_c_in_a_call_that_waits_leaves_the_cell_of_another_thread_alone(
    session: Session, raising: Callable[[type[BaseException], float], None]
) -> None:
    began = threading.Event()
    cells: list[Cell] = []

    def run() -> None:
        began.set()
        cells.append(session.run("import time; time.sleep(1); 'whole'"))

    thread = threading.Thread(target=run)
    thread.start()
    began.wait()
    time.sleep(0.2)
    raising(KeyboardInterrupt, 0.1)
    with pytest.raises(KeyboardInterrupt):
        session.run("x = 1")
    thread.join()
    assert cells[0].value == "whole"
    assert "x" not in session.names()
