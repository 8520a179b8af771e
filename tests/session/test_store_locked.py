"""Sessions whose store another program has locked: nobody else is held up, a caller may leave, and nothing is lost."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator

import anyio
import pytest

from cellblock import AsyncSession, CellState, ExecutionLimits, StoreError, Versioned

pytestmark = pytest.mark.anyio


class Locker:
    """Another program that has the store's file, from `lock` to `unlock`."""

    def __init__(self, url: str) -> None:
        self._connection = sqlite3.connect(
            url.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False
        )

    def lock(self) -> None:
        self._connection.execute("BEGIN EXCLUSIVE")

    def lock_for(self, seconds: float) -> None:
        self.lock()
        threading.Timer(seconds, self.unlock).start()

    @property
    def locks(self) -> bool:
        return self._connection.in_transaction

    def unlock(self) -> None:
        if self.locks:
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def locker(url: str) -> Iterator[Callable[[], Locker]]:
    """Makes the other program, once there is a store. It lets go of the file with the test."""
    made: list[Locker] = []

    def make() -> Locker:
        made.append(Locker(url))
        return made[-1]

    yield make
    for one in made:
        one.close()


async def _begun(url: str, name: str = "one", **options: object) -> AsyncSession:
    """A session with an empty list `L`, all of which is in the store."""
    session = AsyncSession(name, state=Versioned(url), **options)  # type: ignore[arg-type]
    await session.open()
    await session.run("L = []")
    await session.flush()
    return session


async def _ended(session: AsyncSession, number: int) -> None:
    """Until the notebook's cell of that number has ended, whether its call has returned or not."""
    while len(session.notebook) < number or session.notebook[number - 1].state is CellState.RUNNING:
        await asyncio.sleep(0.01)


async def _longest_wait(stop: asyncio.Event) -> float:
    """The longest time for which the event loop gave a task that sleeps for 10 ms no turn."""
    longest = 0.0
    while not stop.is_set():
        began = time.monotonic()
        await asyncio.sleep(0.01)
        longest = max(longest, time.monotonic() - began)
    return longest


@pytest.mark.sampled(0)
async def test_sessions_of_one_loop_go_on_beside_a_locked_store_and_lose_nothing(
    url: str, locker: Callable[[], Locker]
) -> None:
    sessions = [await _begun(url, name) for name in ("one", "two")]
    other, stop = locker(), asyncio.Event()
    idle = asyncio.create_task(_longest_wait(stop))
    await asyncio.sleep(0.1)
    stop.set()
    bound = 10 * max(0.03, await idle)
    stop.clear()
    waiting = asyncio.create_task(_longest_wait(stop))
    async with AsyncSession() as live:
        other.lock_for(2.0)

        async def cells(session: AsyncSession) -> list[object]:
            return [(await session.run(f"L.append({n})\nlist(L)")).value for n in range(3)]

        acknowledged = asyncio.gather(*map(cells, sessions))
        assert (await live.run("1 + 1")).value == 2
        assert other.locks
        assert not acknowledged.done()
        assert await acknowledged == [[[0], [0, 1], [0, 1, 2]]] * 2
    assert not other.locks
    stop.set()
    assert await waiting < bound
    for session in sessions:
        await session.close()
    for name in ("one", "two"):
        async with AsyncSession(name, state=Versioned(url)) as again:
            assert (await again.run("L")).value == [0, 1, 2]
            assert [commit.number for commit in await again.log()] == [5, 4, 3, 2, 1, 0]


@pytest.mark.sampled(0)
@pytest.mark.parametrize("how", ["task.cancel", "asyncio.timeout", "anyio.fail_after"])
async def test_a_caller_may_leave_a_cell_that_waits_to_begin(url: str, locker: Callable[[], Locker], how: str) -> None:
    session, other = await _begun(url), locker()
    other.lock()
    began = time.monotonic()
    if how == "task.cancel":
        running = asyncio.create_task(session.run("L.append(1)"))
        await asyncio.sleep(0.2)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    elif how == "asyncio.timeout":
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await session.run("L.append(1)")
    else:
        with pytest.raises(TimeoutError), anyio.fail_after(0.2):
            await session.run("L.append(1)")
    assert time.monotonic() - began < 10
    assert other.locks
    other.unlock()
    assert (await session.run("L.append(2)\nlist(L)")).value == [2]
    await session.close()
    async with AsyncSession("one", state=Versioned(url)) as again:
        assert again.resumed is not None
        assert again.resumed.interrupted is None
        assert (await again.run("L")).value == [2]
        assert [cell.source for cell in again.notebook] == ["L = []", "L.append(2)\nlist(L)", "L"]


async def test_a_caller_may_leave_a_cell_that_has_ended_and_is_not_logged_yet(
    url: str, locker: Callable[[], Locker]
) -> None:
    session, other = await _begun(url), locker()
    running = asyncio.create_task(session.run("import time; time.sleep(0.3); L.append(1)"))
    while len(session.notebook) < 2:
        await asyncio.sleep(0.01)
    other.lock()
    await _ended(session, 2)
    running.cancel()
    began = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert time.monotonic() - began < 10
    assert other.locks
    other.unlock()
    assert (await session.run("L")).value == [1]
    await session.close()
    async with AsyncSession("one", state=Versioned(url)) as again:
        assert (await again.run("L")).value == [1]


@pytest.mark.sampled(0)
async def test_a_time_limit_holds_while_a_tool_s_answer_waits_for_the_store(
    url: str, locker: Callable[[], Locker]
) -> None:
    made: list[Locker] = []

    def seven() -> int:
        made[0].lock()
        return 7

    limits = ExecutionLimits(timeout_seconds=0.5, interrupt_grace_seconds=0.5)
    session = await _begun(url, tools=[seven], limits=limits)
    made.append(locker())
    running = asyncio.create_task(session.run("L.append(seven())"))
    await _ended(session, 2)
    assert made[0].locks
    made[0].unlock()
    cell = await running
    assert cell.error is not None
    assert cell.error.kind == "timeout"
    assert (await session.run("L")).value == []
    await session.close()


@pytest.mark.sampled(0)
async def test_a_lock_that_lasts_is_told_with_its_remedy(
    url: str, locker: Callable[[], Locker], monkeypatch: pytest.MonkeyPatch
) -> None:
    session, other = await _begun(url), locker()
    monkeypatch.setattr("cellblock.store.sqlite._PATIENCE", 0.2)
    other.lock()
    with pytest.raises(StoreError) as told:
        await session.run("L.append(1)")
    file = url.removeprefix("sqlite:///")
    assert told.value.args[0] == f"the store {file} is locked by another program that writes to it"
    assert told.value.hint == (
        "see which program has it open (`fuser FILE`), and wait until that has ended or end it;"
        " `sqlite3 FILE '.backup COPY'` makes a backup without a lock"
    )
    other.unlock()
    assert (await session.run("list(L)")).value == []
    await session.close()


@pytest.mark.sampled(0)
async def test_a_lock_that_was_waited_for_in_vain_holds_up_no_later_call(
    url: str, locker: Callable[[], Locker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cellblock.store.sqlite._PATIENCE", 3.0)
    monkeypatch.setattr("cellblock.store.sqlite._LATER_PATIENCE", 0.05)
    session, other = await _begun(url), locker()
    other.lock()
    with pytest.raises(StoreError, match="is locked by another program"):
        await session.run("L.append(1)")
    began = time.monotonic()
    for _ in range(10):
        with pytest.raises(StoreError, match="is locked by another program"):
            await session.run("L.append(1)")
    assert time.monotonic() - began < 15  # it is 30 where each waits for it anew
    other.unlock()
    assert (await session.run("list(L)")).value == []
    other.lock_for(1.0)
    assert (await session.run("list(L)")).value == []
    assert not other.locks
    await session.close()
