"""What becomes of calls on a session that is closed, forked or left, at once and not after a time limit."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cellblock import AsyncSession, CellblockError, CellState, Done, Session, SessionBusy, SessionClosed, Versioned
from cellblock.store import JSON, HeldSession, open_store


def run_in_thread(session: Session, source: str) -> tuple[ThreadPoolExecutor, object]:
    """A cell that has begun to run, in a thread of its own."""
    begun = threading.Event()

    def follow() -> None:
        for event in session.stream(source):
            if not isinstance(event, Done):
                begun.set()

    pool = ThreadPoolExecutor(1)
    future = pool.submit(follow)
    assert begun.wait(10)
    return pool, future


def test_closing_ends_a_cell_that_runs_in_another_thread(session: Session) -> None:
    pool, future = run_in_thread(session, "import time\nprint('begun')\ntime.sleep(15)")
    session.close()
    with pytest.raises(SessionClosed, match="the session was closed"):
        future.result(5)  # type: ignore[attr-defined]
    pool.shutdown()
    (cell,) = session.notebook.cells
    assert (cell.state, cell.error.type) == (CellState.ERROR, "Abandoned")  # type: ignore[union-attr]


def test_sessions_open_and_run_after_one_was_closed_while_it_ran(
    session: Session, open_session: Callable[..., Session]
) -> None:
    pool, future = run_in_thread(session, "import time\nprint('begun')\ntime.sleep(15)")
    session.close()
    assert open_session().run("1 + 1").value == 2
    with pytest.raises(SessionClosed):
        future.result(5)  # type: ignore[attr-defined]
    pool.shutdown()


def test_closing_inside_a_stream_ends_the_stream(session: Session) -> None:
    events = session.stream("import time\nprint('begun')\ntime.sleep(15)")
    next(events)
    session.close()
    with pytest.raises(SessionClosed):
        next(events)


def test_calls_that_waited_for_their_turn_raise_when_the_session_closes(session: Session) -> None:
    pool, future = run_in_thread(session, "import time\nprint('begun')\ntime.sleep(15)")
    with ThreadPoolExecutor(3) as waiting:
        calls = [waiting.submit(session.run, "1") for _ in range(3)]
        session.close()
        for call in (future, *calls):
            with pytest.raises(SessionClosed):
                call.result(5)  # type: ignore[attr-defined]
    pool.shutdown()
    assert len(session.notebook) == 1


def use(session: Session) -> list[Callable[[], object]]:
    return [
        lambda: session.run("1"),
        lambda: list(session.stream("1")),
        lambda: session.shell("true"),
        lambda: session["x"],
        lambda: session.__setitem__("x", 1),
        session.names,
        session.clear,
        session.interrupt,
        session.kill,
        lambda: session.files.list(),
        lambda: session.capabilities,
    ]


def test_every_use_after_close_raises_session_closed(session: Session) -> None:
    cell = session.run("x = 1")
    session.close()
    for call in [*use(session), lambda: session.rerun(cell.id)]:
        with pytest.raises(SessionClosed) as caught:
            call()
        assert str(caught.value) == "the session was closed (open a new one)"


def test_files_taken_before_close_are_closed_with_the_session(session: Session) -> None:
    files = session.files
    files.write("a", b"1")
    session.close()
    for call in (lambda: files.read("a"), files.list, lambda: files.write("a", b"2"), lambda: files.delete("a")):
        with pytest.raises(SessionClosed):
            call()


def test_notebook_is_readable_after_close(session: Session) -> None:
    session.run("6 * 7")
    session.close()
    assert [cell.value for cell in session.notebook] == [42]


def test_closing_twice_is_closing_once(session: Session) -> None:
    session.close()
    session.close()


@pytest.mark.sampled(0)
def test_closing_beside_a_close_waits_for_it(opened: Callable[..., Session]) -> None:
    for _ in range(5):
        session = opened()
        session.run("x = [bytes(10**7 + n) for n in range(3)]")
        with ThreadPoolExecutor() as pool:
            for closing in [pool.submit(session.close) for _ in range(3)]:
                closing.result()
                other = opened()  # the name is free once any has returned
                other.close()


def test_leaving_the_with_block_closes_also_after_an_exception() -> None:
    with pytest.raises(LookupError), Session() as session:
        raise LookupError
    with pytest.raises(SessionClosed):
        session.run("1")


@pytest.mark.anyio
async def test_session_that_is_not_open_says_how_to_open_it() -> None:
    session = AsyncSession()
    with pytest.raises(SessionClosed) as caught:
        await session.run("1")
    assert str(caught.value) == "the session is not open (use `async with` or `await session.open()`)"


@pytest.mark.anyio
async def test_closed_session_does_not_open_again() -> None:
    session = AsyncSession()
    await session.close()
    with pytest.raises(SessionClosed):
        await session.open()


def fork(child: Callable[[], object]) -> str:
    """What `child` returned in a forked copy of this process."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside our own loop's thread is the point
        pid = os.fork()
    if pid == 0:
        try:
            told = str(child())
        except BaseException as error:
            told = f"{type(error).__name__}: {error}"
        os.write(write, told.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        told = answer.read()
    os.waitpid(pid, 0)
    return told


def test_every_use_in_a_forked_copy_raises_and_leaves_the_parents_session_unharmed(session: Session) -> None:
    session.run("x = 1")

    def child() -> list[str]:
        told = []
        for call in [*use(session), session.close]:
            try:
                told.append(str(call()))
            except SessionClosed:
                told.append("closed")
        return told

    assert fork(child) == str(["closed"] * 11 + ["None"])
    assert session.run("x").value == 1


def test_forked_copy_opens_sessions_of_its_own(session: Session) -> None:
    def child() -> object:
        with Session() as own:
            return own.run("6 * 7").value

    assert fork(child) == "42"
    assert session.run("1").value == 1


def test_forked_copy_that_exits_by_the_with_block_leaves_the_parents_session(session: Session) -> None:
    def child() -> None:
        with session:
            pass

    assert fork(child) == "None"
    assert session.run("2").value == 2


@pytest.mark.sampled(0)
def test_sessions_that_nobody_closed_end_with_the_program_in_silence() -> None:
    program = "from cellblock import Session\nkept = [Session(), Session()]\nprint([one.run('1').text for one in kept])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "['1', '1']\n", "")


def dropping(test: Callable[..., None]) -> Callable[..., None]:
    """A test that drops sessions without closing them, which they warn of."""
    for warning in ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning"):
        test = pytest.mark.filterwarnings(f"ignore::{warning}")(test)
    return test


@pytest.mark.sampled(0)
@dropping
@pytest.mark.parametrize("state", [{}, {"hibernate_after": 3600}], ids=["", "hibernating"])
def test_dropped_session_gives_up_its_name_at_once(
    opened: Callable[..., Session], url: str, state: dict[str, float]
) -> None:
    session: Session | None = Session("one", state=Versioned(url, **state))  # type: ignore[arg-type]
    assert session is not None
    session.run("x = 1")
    session.flush()
    session = None
    gc.collect()  # the tasks of its last commit may have been in a cycle
    assert opened().run("x").value == 1


@dropping
def test_session_that_is_dropped_right_after_a_cell_is_opened_anew_with_all_it_did(
    opened: Callable[..., Session], url: str
) -> None:
    for count in range(3):
        session: Session | None = Session("one", state=Versioned(url))
        assert session is not None
        session.run("x = globals().get('x', 0) + 1")
        session = None  # its commit is still being written
        with opened() as again:
            assert again.run("x").value == count + 1


@dropping
def test_session_that_a_collector_finds_gives_up_its_name_for_other_processes(url: str) -> None:
    cycle: list[object] = [Session("one", state=Versioned(url))]
    cycle[0].run("x = 1")  # type: ignore[attr-defined]
    cycle[0].flush()  # type: ignore[attr-defined]
    cycle.append(cycle)
    collector = threading.Thread(target=gc.collect)
    del cycle
    collector.start()
    collector.join()
    with open_store(url) as store:
        for _ in range(1000):  # a thread of its own releases it
            if store.sessions()[0].holder is None:
                break
            threading.Event().wait(0.01)
        assert store.sessions()[0].holder is None


@pytest.mark.sampled(0)
def test_dropping_a_forked_copy_leaves_the_parent_its_name(opened: Callable[..., Session]) -> None:
    session = opened()
    session.run("x = 1")

    def child() -> object:
        session.__dict__.clear()
        gc.collect()
        return "dropped"

    assert fork(child) == "dropped"
    with pytest.raises(SessionBusy):
        opened()
    assert session.run("x").value == 1


def test_name_that_is_open_in_this_process_is_said_to_be(opened: Callable[..., Session]) -> None:
    session = opened()
    with pytest.raises(SessionBusy, match=r"'one' of 'default' is open in this process \(close\(\) that one or its"):
        opened()
    session.close()
    assert opened().run("1").value == 1


async def _delete(session: AsyncSession) -> None:
    session.delete(session.notebook.cells[0].id)


Calls = dict[str, tuple[Callable[[AsyncSession], Awaitable[object]], Callable[[AsyncSession], Awaitable[bool]]]]
BESIDE_CLOSE: Calls = {
    # a call, and whether a session that was opened anew has what the call did
    "run": (lambda one: one.run("import time; time.sleep(0.02); x.append(3)"), lambda again: _is([1, 2, 3], again)),
    "shell": (lambda one: one.shell("touch f"), lambda again: _has_file(again)),
    "rerun": (lambda one: one.rerun(one.notebook.cells[1].id), lambda again: _is([1, 2, 2], again)),
    "set": (lambda one: one.set("x", 4), lambda again: _is(4, again)),
    "aside": (lambda one: one.aside("x.append(3)", step="third"), lambda again: _is([1, 2, 3], again)),
    "undo": (lambda one: one.undo(), lambda again: _is([1], again)),
    "undo of two": (lambda one: one.undo(2), lambda again: _is(None, again)),
    "checkout": (lambda one: one.checkout("HEAD~1"), lambda again: _is([1], again)),
    "merge": (lambda one: one.merge(f"{one.name}-side"), lambda again: _is([1, 0], again)),
    "clear": (lambda one: one.clear(), lambda again: _is(None, again)),
    "write": (lambda one: one.files.write("f", b"x"), lambda again: _has_file(again)),
    "delete": (_delete, lambda again: _async(len(again.notebook.cells) == 1)),
    "mark_private": (lambda one: one.mark_private("payroll"), lambda again: _async(again.private == "payroll")),
}


async def _async(value: bool) -> bool:
    return value


async def _is(value: object, again: AsyncSession) -> bool:
    return (await again.run("globals().get('x')")).value == value


async def _has_file(again: AsyncSession) -> bool:
    return "f" in await again.files.list()


@pytest.mark.sampled(1)
@pytest.mark.anyio
@pytest.mark.parametrize("what", BESIDE_CLOSE)
async def test_what_a_call_beside_close_acknowledges_is_in_the_store(url: str, what: str) -> None:
    call, is_done = BESIDE_CLOSE[what]
    # how long it has been under way when the event loop is held up, and how many turns of that come before `close`
    for number, (seconds, turns) in enumerate([(0, 0), (0, 1), (0, 4), (0.003, 1), (0.006, 2), (0.012, 1), (0.012, 2)]):
        session = await AsyncSession(f"s{number}", state=Versioned(url)).open()
        await session.run("x = [1]")
        if what == "merge":
            async with await session.branch(f"s{number}-side") as side:
                await side.run("x.append(0)")
        await session.run("x.append(2)" if what != "merge" else "y = 2")
        await session.flush()
        under_way = asyncio.ensure_future(_call(call, session))
        await asyncio.sleep(seconds)
        time.sleep(10 * seconds)
        for _ in range(turns):
            await asyncio.sleep(0)
        await session.close()
        result = (await asyncio.gather(under_way, return_exceptions=True))[0]
        assert not isinstance(result, BaseException) or isinstance(result, CellblockError), repr(result)
        async with AsyncSession(f"s{number}", state=Versioned(url)) as again:
            if not isinstance(result, BaseException) and getattr(result, "ok", True):
                assert await is_done(again), f"{turns} turns: {result!r}"
            elif what in ("delete", "write", "mark_private"):
                assert not await is_done(again), f"{turns} turns: {result!r}"


async def _call(call: Callable[[AsyncSession], Awaitable[object]], session: AsyncSession) -> object:
    return await call(session)


@pytest.mark.anyio
async def test_mark_that_close_puts_into_the_store_is_acknowledged_though_its_own_thread_comes_late(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure, closed = HeldSession.configure, threading.Event()

    def late(held: HeldSession, settings: Mapping[str, JSON]) -> None:
        monkeypatch.undo()
        closed.wait(20)
        configure(held, settings)

    session = await AsyncSession("one", state=Versioned(url)).open()
    await session.run("x = [1]")
    monkeypatch.setattr(HeldSession, "configure", late)
    marked = asyncio.ensure_future(session.mark_private("payroll"))
    while HeldSession.configure is not configure:
        await asyncio.sleep(0.01)
    await session.close()
    closed.set()
    await marked
    async with AsyncSession("one", state=Versioned(url)) as again:
        assert again.private == "payroll"


@pytest.mark.sampled(1)
@pytest.mark.anyio
@pytest.mark.parametrize("what", ["delete", "mark_private", "run", "set"])
async def test_closed_session_that_lasts_acknowledges_nothing(url: str, what: str) -> None:
    async with AsyncSession("one", state=Versioned(url)) as session:
        await session.run("x = [1]")
    call, is_done = BESIDE_CLOSE[what]
    with pytest.raises(SessionClosed, match="was closed"):
        await call(session)
    async with AsyncSession("one", state=Versioned(url)) as again:
        assert not await is_done(again) or what == "delete"
        assert [cell.source for cell in again.notebook.cells[:1]] == ["x = [1]"]


@pytest.mark.sampled(0)
@pytest.mark.anyio
async def test_files_are_read_while_the_session_falls_asleep_and_moves(url: str) -> None:
    async with AsyncSession("one", state=Versioned(url)) as session:
        await session.files.write("f", b"x" * 100_000)
        await session.run("a = 1")
        over = False

        async def read() -> int:
            count = 0
            while not over:
                assert await session.files.read("f") == b"x" * 100_000
                assert await session.files.list() == ["f"]
                count += 1
            return count

        readers = [asyncio.create_task(read()) for _ in range(3)]
        for _ in range(4):
            await session.hibernate()
            await asyncio.sleep(0.02)
            await session.checkout("HEAD~1")
            await session.run("a = 1")
        over = True
        assert min(await asyncio.gather(*readers)) > 1


@pytest.mark.sampled(0)
@pytest.mark.anyio
async def test_file_written_while_the_session_falls_asleep_is_one_step(url: str) -> None:
    async with AsyncSession("one", state=Versioned(url)) as session:
        await session.run("a = 1")
        for turns in range(0, 12, 3):
            asleep = asyncio.create_task(session.hibernate())
            for _ in range(turns):
                await asyncio.sleep(0)
            await session.files.write(f"f{turns}", b"x")
            await asleep
            await session.run("a = 2")
        written = [one.message for one in await session.log() if one.kind == "host"]
    assert written == [f"write f{turns}" for turns in (9, 6, 3, 0)]


@pytest.mark.parametrize("level", ["isolated", "local"])
def test_a_stored_session_that_nobody_closed_is_named(tmp_path: Path, level: Any) -> None:
    session = Session("q3", user="ana", state=Versioned(f"sqlite:///{tmp_path}/cells.db"), trust_level=level)
    session.run("x = 1")
    session.flush()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        del session
        gc.collect()
    assert [str(one.message) for one in told if one.category is ResourceWarning] == [
        "session 'q3' of 'ana' was not closed"
    ]
