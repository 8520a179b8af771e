"""Sessions of threads: how many are open, when they are closed, who waits for whom."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator

import pytest

from cellblock import AsyncSession, CellblockError, SessionBusy
from cellblock.integrations.langgraph.threads import Threads, session_name


@pytest.fixture
def threads(url: str) -> Iterator[Threads]:
    threads = Threads(url, most_open=2, idle_seconds=60)
    yield threads
    threads.close()


async def _count(session: AsyncSession) -> object:
    return (await session.run("n = globals().get('n', 0) + 1\nn")).value


@pytest.mark.sampled(0)
def test_no_more_are_open_than_may_be_and_all_go_on(threads: Threads) -> None:
    assert [threads.call(name, _count) for name in "abcabc"] == [1, 1, 1, 2, 2, 2]
    assert threads.open == 2
    threads.close()
    assert threads.open == 0
    assert threads.call("a", _count) == 3


def test_who_finds_no_room_waits(threads: Threads) -> None:
    go, began = threading.Event(), threading.Semaphore(0)

    async def hold(session: AsyncSession) -> None:
        began.release()
        while not go.is_set():
            await asyncio.sleep(0.01)

    holding = [threading.Thread(target=threads.call, args=(name, hold)) for name in "ab"]
    for one in holding:
        one.start()
    assert began.acquire(timeout=30)
    assert began.acquire(timeout=30)
    answers: list[object] = []
    waiting = threading.Thread(target=lambda: answers.append(threads.call("c", _count)))
    waiting.start()
    waiting.join(0.2)
    assert answers == []
    go.set()
    for one in (*holding, waiting):
        one.join(30)
    assert answers == [1]


def test_calls_of_one_thread_come_one_after_the_other(threads: Threads) -> None:
    async def all_at_once() -> list[object]:
        return await asyncio.gather(*(threads.acall("a", _count) for _ in range(10)))

    assert asyncio.run(all_at_once()) == list(range(1, 11))


def test_one_that_nobody_uses_is_closed(url: str) -> None:
    threads = Threads(url, idle_seconds=0.1)
    assert threads.call("a", _count) == 1
    deadline = time.monotonic() + 30
    while threads.open and time.monotonic() < deadline:
        time.sleep(0.02)
    assert threads.open == 0
    assert threads.call("a", _count) == 2
    threads.close()


@pytest.mark.sampled(0)
def test_a_call_that_is_cancelled_ends_its_cell(threads: Threads) -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(threads.acall("a", lambda session: session.run("import time\ntime.sleep(20)")))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    threads.call("a", _count)
    start = time.monotonic()
    asyncio.run(cancelled())
    assert threads.call("a", _count) == 2
    assert time.monotonic() - start < 15


@pytest.mark.sampled(0)
def test_a_session_that_another_program_has_is_waited_for(url: str) -> None:
    program = f"""
        import sys
        from cellblock import Session, Versioned
        session = Session("a", user="langgraph", state=Versioned({url!r}))
        print("open", flush=True)
        sys.stdin.readline()
        session.run("n = 10")
        session.close()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "open\n"
        hasty = Threads(url, wait_seconds=0.1)
        with pytest.raises(SessionBusy):
            hasty.call("a", _count)
        assert hasty.open == 0
        patient = Threads(url)
        threading.Timer(0.5, lambda: (other.stdin.write("\n"), other.stdin.flush())).start()  # type: ignore[union-attr]
        assert patient.call("a", _count) == 11
        patient.close()


@pytest.mark.sampled(0)
def test_others_of_the_same_program_give_up_what_they_do_not_use(threads: Threads, url: str) -> None:
    other = Threads(url, wait_seconds=0.1, idle_seconds=60)
    for number in (1, 3, 5):
        assert threads.call("a", _count) == number
        assert other.call("a", _count) == number + 1
    assert (threads.open, other.open) == (0, 1)
    other.close()


def test_a_session_that_is_closed_under_a_call_is_opened_again(threads: Threads) -> None:
    async def end(session: AsyncSession) -> object:
        await session.close()
        return await session.run("1")

    with pytest.raises(CellblockError):
        threads.call("a", end)
    assert threads.open == 0
    assert threads.call("a", _count) == 1


def test_every_thread_has_a_name_of_its_own() -> None:
    ids = ["a", "A", " a", "a\n", "a" * 300, "é", "e\u0301", "\ud800", "a/../b", "", "thread-sha256-00", "\u0430", "😀"]
    names = [session_name(one) for one in ids]
    assert len(set(names)) == len(ids)
    assert names[0] == "a"
    assert all(one == id or one.startswith("thread-sha256-") for one, id in zip(names, ids, strict=True))


def test_numbers_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="most_open must be at least 1"):
        Threads(most_open=0)
