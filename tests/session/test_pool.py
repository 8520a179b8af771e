"""Sessions that are opened when they are asked for: how many at once, who waits, which are closed."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from cellblock import AsyncSession, Busy, CellblockError, ExecutionLimits, SessionClosed, SessionHeld, SessionPool
from cellblock.errors import StoreError, UnknownSession

pytestmark = pytest.mark.anyio


async def _run(pool: SessionPool, name: str, source: str, user: str = "ana") -> object:
    async with pool.session(name, user=user) as session:
        return (await session.run(source)).value


async def test_the_one_that_was_used_longest_ago_is_closed_to_make_room_and_goes_on_later(url: str) -> None:
    async with SessionPool(url, wait_seconds=0, max_sessions=2) as pool:
        for name in ("a", "b", "a", "c"):
            await _run(pool, name, f"who = {name!r}")
        assert len(pool) == 2
        holders = {row.name: row.holder is not None for row in await pool.list("ana")}
        assert holders == {"a": True, "b": False, "c": True}
        assert await _run(pool, "b", "who") == "b"
    assert all(row.holder is None for row in await _listed(url))


async def _listed(url: str) -> list:
    async with SessionPool(url) as pool:
        return await pool.list("ana")


async def test_where_all_are_in_use_the_next_is_refused_and_those_are_left_alone(url: str) -> None:
    async with SessionPool(url, wait_seconds=0, max_sessions=1) as pool, pool.session("a", user="ana") as session:
        with pytest.raises(Busy, match="all 1 sessions that may be open are in use") as refused:
            await _run(pool, "b", "1")
        assert refused.value.retry_after > 0
        assert (await session.run("2")).value == 2


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"max_sessions": 1}, "all 1 sessions that may be open are in use (max_sessions)"),
        ({"max_per_user": 1}, "all 1 sessions that user 'ana' may have open are in use (max_per_user)"),
        ({"max_memory_mb": 300}, "all 1 sessions that may have processes are in use (max_memory_mb)"),
    ],
)
async def test_call_that_gets_no_place_is_told_by_which_limit(url: str, limits: dict[str, int], reason: str) -> None:
    async with SessionPool(url, wait_seconds=0, limits=ExecutionLimits(max_memory_mb=256), **limits) as pool:
        async with pool.session("a", user="ana"):
            with pytest.raises(Busy) as refused:
                await _run(pool, "b", "1")
    assert refused.value.args[0] == reason


@pytest.mark.sampled(0)
@pytest.mark.threat("D4")
async def test_no_user_takes_the_places_of_another(url: str) -> None:
    async with SessionPool(url, wait_seconds=0, max_sessions=4) as pool:
        pool.share(2)
        await _run(pool, "hers", "left = iter(range(9)); next(left)", user="bob")
        for name in ("a", "b", "c"):
            await _run(pool, name, "1")
        assert [pool.found(name, user="ana") is not None for name in ("a", "b", "c")] == [False, True, True]
        async with pool.session("b", user="ana"), pool.session("c", user="ana"):
            with pytest.raises(CellblockError, match="all 2 sessions that user 'ana' may have open are in use"):
                await _run(pool, "d", "1")
            assert await _run(pool, "hers", "next(left)", user="bob") == 1
            assert await _run(pool, "other", "1", user="bob") == 1


async def test_where_there_are_more_users_than_places_each_has_one(url: str) -> None:
    async with SessionPool(url, wait_seconds=0, max_sessions=1) as pool:
        pool.share(3)
        async with pool.session("a", user="ana") as first, pool.session("a", user="bob") as second:
            assert [(await one.run("1")).value for one in (first, second)] == [1, 1]


@pytest.mark.threat("D4")
async def test_calls_of_one_user_are_so_many_and_no_other_user_waits(url: str) -> None:
    async with SessionPool(url) as pool:
        with ExitStack() as calls:
            for _ in range(32):
                calls.enter_context(pool.calling("ana"))
            with pytest.raises(Busy, match="32 of your calls are under way"), pool.calling("ana"):
                pass
            with pool.calling("bob"):
                pass
        with pool.calling("ana"):
            pass


@pytest.mark.threat("D4")
async def test_notebooks_that_one_user_reads_are_nobody_elses_wait(url: str) -> None:
    going = threading.Event()
    async with SessionPool(url) as pool:
        for user in ("ana", "bob"):
            await _run(pool, "a", "1", user=user)
        async with anyio.create_task_group() as tasks:
            for _ in range(60):  # more than there are threads for all
                tasks.start_soon(partial(pool.read, "a", lambda cells, _: going.wait(60), user="ana"))
            try:
                with anyio.fail_after(30):
                    assert await pool.read("a", lambda cells, _: len(list(cells)), user="bob") == 1
            finally:
                going.set()


async def test_a_notebook_says_why_it_is_private_open_or_not(url: str) -> None:
    async with SessionPool(url) as pool:
        async with pool.session("a", user="ana") as session:
            await session.mark_private("loaded payroll.csv")
            await session.run("1")
        assert await pool.read("a", lambda _, private: private, user="ana") == "loaded payroll.csv"
    async with SessionPool(url) as pool:
        assert await pool.read("a", lambda _, private: private, user="ana") == "loaded payroll.csv"


@pytest.mark.sampled(0)
async def test_callers_of_one_session_at_once_open_it_once(url: str) -> None:
    values: list[object] = []
    async with SessionPool(url) as pool:
        await _run(pool, "a", "seen = []")

        async def call(number: int) -> None:
            values.append(await _run(pool, "a", f"seen.append({number}); len(seen)"))

        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(call, number)
    assert sorted(values) == [1, 2, 3, 4, 5]  # type: ignore[type-var]


async def test_two_users_have_two_sessions_of_one_name(url: str) -> None:
    async with SessionPool(url) as pool:
        await _run(pool, "a", "secret = 1", user="ana")
        assert await _run(pool, "a", "'secret' in globals()", user="bob") is False


@pytest.mark.sampled(0)
async def test_one_that_nobody_uses_sleeps_and_keeps_its_names(url: str) -> None:
    async with SessionPool(url, idle_seconds=0.2) as pool:
        await _run(pool, "a", "x = 1")
        entry = pool._entries["ana", "a"]
        with anyio.fail_after(20):
            while "asleep" not in repr(entry.session):
                await anyio.sleep(0.05)
        assert await _run(pool, "a", "x") == 1


@pytest.mark.sampled(0)
async def test_one_that_was_closed_is_opened_again_for_the_next(url: str) -> None:
    async with SessionPool(url) as pool:
        await _run(pool, "a", "x = 1")
        entry = pool._entries["ana", "a"]
        assert entry.session is not None
        await entry.session.close()
        assert await _run(pool, "a", "x") == 1


async def test_an_unknown_one_is_not_made_where_it_may_not_be(url: str) -> None:
    async with SessionPool(url) as pool:
        with pytest.raises(UnknownSession):
            async with pool.session("typo", user="ana", create=False):
                pass
        assert len(pool) == 0
        assert await pool.list("ana") == []


async def test_the_notebook_of_one_that_is_not_open_is_read_without_a_process(url: str) -> None:
    async with SessionPool(url) as pool:
        await _run(pool, "a", "6 * 7")
    async with SessionPool(url) as pool:
        assert await pool.read("a", lambda cells, _: [cell.text for cell, _ in cells], user="ana") == ["42"]
        assert len(pool) == 0


async def test_one_that_its_store_does_not_take_is_one_line_of_the_log(
    url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_: AsyncSession) -> None:
        raise StoreError("the store is away") from OSError("the driver's words")

    async with SessionPool(url, wait_seconds=0, max_sessions=1) as pool:
        async with pool.session("a", user="ana") as session:
            close = session.close
        with monkeypatch.context() as patched:
            patched.setattr(AsyncSession, "close", fails)
            await _run(pool, "b", "1")  # takes its place
        await close()
    (record,) = [one for one in caplog.records if one.name.startswith("cellblock")]
    assert record.getMessage() == "session 'a' of 'ana' was not closed as it should be: the store is away"
    assert record.exc_info is None


async def test_a_call_waits_for_a_place_and_gets_the_first_that_is_free(url: str) -> None:
    async with SessionPool(url, max_sessions=1) as pool, anyio.create_task_group() as tasks:
        entered, leave = anyio.Event(), anyio.Event()

        async def hold() -> None:
            async with pool.session("a"):
                entered.set()
                await leave.wait()

        tasks.start_soon(hold)
        await entered.wait()
        tasks.start_soon(_run, pool, "b", "mine = 1")
        await anyio.wait_all_tasks_blocked()
        assert pool.found("b", user="ana") is None
        leave.set()
        with anyio.fail_after(20):
            assert await _run(pool, "b", "mine") == 1
        assert len(pool) == 1


async def _wait_in_line(pool: SessionPool, name: str, served: list[str], user: str = "ana") -> None:
    async with pool.session(name, user=user) as session:
        await session.run("1")
        served.append(name)


@pytest.mark.sampled(0)
async def test_calls_get_places_in_the_order_in_which_they_came_and_the_owner_of_one_is_among_them(url: str) -> None:
    served: list[str] = []
    async with SessionPool(url, max_sessions=1) as pool, anyio.create_task_group() as tasks:
        async with pool.session("a", user="ana"):
            for name in ("b", "c"):
                tasks.start_soon(_wait_in_line, pool, name, served, name)
            await anyio.wait_all_tasks_blocked()
            with anyio.fail_after(60):
                while pool._entries["ana", "a"].stays:  # for as long as its opening took
                    await anyio.sleep(0.01)
        for _ in range(3):
            tasks.start_soon(_wait_in_line, pool, "a", served)
    assert served == ["b", "c", "a", "a", "a"]


@pytest.mark.sampled(0)
async def test_calls_past_their_users_own_bound_let_the_others_by(url: str) -> None:
    served: list[str] = []
    async with SessionPool(url, max_sessions=3, max_per_user=1) as pool, anyio.create_task_group() as tasks:
        async with pool.session("a", user="ana"):
            for name in ("b", "c", "d"):
                tasks.start_soon(_wait_in_line, pool, name, served)
            await anyio.wait_all_tasks_blocked()
            with anyio.fail_after(60):
                await _wait_in_line(pool, "e", served, "eve")
        assert served == ["e"]
    assert served == ["e", "b", "c", "d"]


@pytest.mark.sampled(0)
async def test_a_call_that_is_cancelled_as_it_gets_a_place_gives_it_to_the_next(url: str) -> None:
    served: list[str] = []
    async with SessionPool(url, max_sessions=1) as pool:
        async with pool.session("a", user="ana"):
            calls = [asyncio.create_task(_wait_in_line(pool, name, served)) for name in ("b", "c", "d", "e")]
            await anyio.wait_all_tasks_blocked()
            calls[0].cancel()
        calls[1].cancel()  # it has the place by now, and has not run since
        with anyio.fail_after(60):
            ended = await asyncio.gather(*calls, return_exceptions=True)
        assert [isinstance(one, asyncio.CancelledError) for one in ended] == [True, True, False, False]
        assert (served, len(pool)) == (["d", "e"], 1)


async def test_a_call_whose_time_is_over_holds_up_nobody(url: str) -> None:
    served: list[str] = []
    async with SessionPool(url, max_sessions=1) as pool, anyio.create_task_group() as tasks:
        async with pool.session("a", user="ana"):
            pool._wait_seconds = 0.1
            with pytest.raises(Busy, match="all 1 sessions that may be open are in use"):
                await _wait_in_line(pool, "b", served)
            pool._wait_seconds = 60
            tasks.start_soon(_wait_in_line, pool, "c", served)
            await anyio.wait_all_tasks_blocked()
    assert served == ["c"]


@pytest.mark.sampled(0)
@pytest.mark.parametrize("bound", [{"max_sessions": 2}, {"max_memory_mb": 500}])
async def test_users_that_come_again_and_again_all_get_places_and_never_are_too_many_open(
    url: str, monkeypatch: pytest.MonkeyPatch, bound: dict[str, int]
) -> None:
    opened = {"now": 0, "most": 0}
    served: list[str] = []
    opens, closes = AsyncSession.open, AsyncSession.close

    async def count_open(session: AsyncSession) -> AsyncSession:
        opened["now"] += 1
        opened["most"] = max(opened.values())
        return await opens(session)

    async def count_close(session: AsyncSession) -> None:
        await closes(session)
        opened["now"] -= 1

    monkeypatch.setattr(AsyncSession, "open", count_open)
    monkeypatch.setattr(AsyncSession, "close", count_close)
    async with SessionPool(url, limits=ExecutionLimits(max_memory_mb=200), wait_seconds=300, **bound) as pool:

        async def work(user: str) -> None:
            for _ in range(3):
                await _wait_in_line(pool, user, served, user)

        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(work, str(number))
    assert sorted(served) == sorted("0123" * 3)
    assert opened == {"now": 0, "most": 2}


@pytest.mark.sampled(0)
async def test_one_users_own_idle_sessions_go_before_those_of_others(url: str) -> None:
    async with SessionPool(url, max_sessions=2) as pool:
        await _run(pool, "a", "1", user="bob")
        await _run(pool, "a", "1")
        await _run(pool, "b", "1")
        assert set(pool) == {("bob", "a"), ("ana", "b")}
        await _run(pool, "c", "1", user="eve")  # has none of her own: the one that was used longest ago
        assert set(pool) == {("ana", "b"), ("eve", "c")}


@pytest.mark.sampled(0)
@pytest.mark.parametrize("asleep", [False, True])
async def test_sessions_with_processes_are_so_many_that_their_limits_keep_to_the_memory(
    url: str, asleep: bool
) -> None:
    limits = ExecutionLimits(max_memory_mb=200)
    idle_seconds = 0.2 if asleep else 600.0
    async with SessionPool(url, max_memory_mb=500, wait_seconds=0, limits=limits, idle_seconds=idle_seconds) as pool:
        await _run(pool, "a", "x = 1")
        with anyio.fail_after(20):
            while asleep and "asleep" not in repr(pool.found("a", user="ana")):
                await anyio.sleep(0.05)
        async with pool.session("b"), pool.session("c"):
            assert (pool.found("a", user="ana") is not None) is asleep  # without processes it is in nobody's way
            with pytest.raises(Busy):
                await _run(pool, "a", "x")
        assert await _run(pool, "a", "x") == 1


@pytest.mark.sampled(0)
async def test_a_session_that_another_program_lets_go_of_in_time_is_opened(url: str) -> None:
    async with SessionPool(url) as pool:
        await _run(pool, "a", "x = 1")
        async with SessionPool(url, wait_seconds=0.1) as hasty:
            with pytest.raises(SessionHeld):
                await _run(hasty, "a", "x")
            assert len(hasty) == 0
        async with SessionPool(url) as patient, anyio.create_task_group() as tasks:
            tasks.start_soon(_run, patient, "a", "x += 1")
            await anyio.sleep(0.3)
            await pool.release("a", user="ana")
        assert await _run(pool, "a", "x") == 2


@pytest.mark.sampled(0)
async def test_one_that_closes_when_idle_gives_its_sessions_to_another_pool_at_once(url: str) -> None:
    async with SessionPool(url, when_idle="close") as first, SessionPool(url, when_idle="close") as second:
        for number in range(3):
            await _run(first, "a", f"first = {number}")
            assert await _run(second, "a", "first") == number
        assert (len(first), len(second)) == (0, 1)


async def test_warm_sessions_are_taken_and_made_again(url: str) -> None:
    async with SessionPool(url, warm=1) as pool:
        assert await _run(pool, "a", "1") == 1
        assert await _run(pool, "b", "1") == 1


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"max_sessions": 0}, ValueError, "max_sessions must be a whole number of at least 1, not 0"),
        ({"max_memory_mb": 100}, ValueError, "max_memory_mb=100 has no room for one session, which may use 256 MB"),
        ({"idle_seconds": 0}, ValueError, "idle_seconds must be above 0, not 0"),
        ({"idle_seconds": float("nan")}, ValueError, "idle_seconds must be above 0, not nan"),
        ({"wait_seconds": -1}, ValueError, "wait_seconds must be 0 or more, not -1"),
        ({"wait_seconds": "a"}, ValueError, "wait_seconds must be 0 or more, not 'a'"),
        ({"store": "nonsense"}, StoreError, "this is not the URL of a store (use one of sqlite:///relative.db,"),
        ({"warm": -1}, ValueError, "warm must be a whole number"),
        ({"when_idle": "open"}, ValueError, 'when_idle must be "sleep" or "close"'),
        ({"user": "ana"}, TypeError, "user is not an option of a pool"),
        ({"limit": 1}, TypeError, "limit"),
    ],
)
def test_options_that_make_no_sense_are_refused_at_once(options: dict[str, object], error: type, said: str) -> None:
    with pytest.raises(error, match=re.escape(said)):
        SessionPool(**options)  # type: ignore[arg-type]


@pytest.mark.sampled(0)
async def test_a_call_that_wants_a_branch_while_it_is_made_gets_it_and_counts(url: str) -> None:
    async with (
        SessionPool(url, max_sessions=2) as pool,
        pool.session("a") as session,
        anyio.create_task_group() as tasks,
    ):
        await session.run("x = 1")
        branch = await session.branch("b")
        values: list[object] = []

        async def use() -> None:
            async with pool.session("b") as found:
                values.append((await found.run("x")).value)

        for _ in range(2):
            tasks.start_soon(use)
        await anyio.sleep(0.3)
        await pool.adopt(branch)
        with anyio.fail_after(20):
            while len(values) < 2:
                await anyio.sleep(0.01)
        assert values == [1, 1]
        async with pool.session("b") as found:
            with pytest.raises(Busy):
                await _run_at_once(pool, "c")
            assert (await found.run("x")).value == 1


async def _run_at_once(pool: SessionPool, name: str) -> None:
    pool._wait_seconds = 0
    async with pool.session(name):
        pass


@pytest.mark.sampled(0)
@pytest.mark.parametrize("when_idle", ["sleep", "close"])
async def test_one_that_is_taken_up_as_its_rest_is_due_is_left_alone(url: str, when_idle: Any) -> None:
    client, server = socket.socketpair()
    server.setblocking(False)
    async with SessionPool(url, idle_seconds=0.2, when_idle=when_idle) as pool:
        await _run(pool, "a", "x = 1")

        async def serve() -> object:
            await asyncio.get_running_loop().sock_recv(server, 1)
            async with pool.session("a", user="ana") as session:
                await anyio.sleep(0.1)
                return (await session.run("x")).value

        task = asyncio.create_task(serve())
        await anyio.sleep(0.1)
        client.send(b"x")
        time.sleep(0.15)  # the request and the end of the idle time come in one turn of the loop
        assert await task == 1
        with anyio.fail_after(20):
            while (found := pool.found("a", user="ana")) is not None and "asleep" not in repr(found):
                await anyio.sleep(0.05)
    client.close()
    server.close()


async def test_a_closed_pool_opens_nothing_more_and_wakes_who_waits(url: str) -> None:
    async with SessionPool(url, max_sessions=1) as pool:
        async with anyio.create_task_group() as tasks, pool.session("a"):
            refused: list[str] = []

            async def wait() -> None:
                try:
                    await _run(pool, "b", "1")
                except SessionClosed as error:
                    refused.append(str(error))

            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            await pool.close()
    assert refused == ["the pool was closed (make a new SessionPool)"]
    with pytest.raises(SessionClosed, match="the pool was closed"):
        await _run(pool, "a", "1")
    assert [row.holder for row in await _listed(url)] == [None] * len(await _listed(url))


async def _use(pool: SessionPool, other: AsyncSession) -> None:
    async with pool.session("a"):
        await other.run("1")


async def test_an_error_of_another_session_closes_none_under_its_callers(url: str) -> None:
    other = AsyncSession()
    async with SessionPool(url) as pool, pool.session("a") as session:
        await session.run("x = 1")
        await other.close()
        with pytest.raises(SessionClosed):
            await _use(pool, other)
        assert (await session.run("x")).value == 1


async def test_a_session_that_fails_to_let_go_leaves_its_place_all_the_same(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_: AsyncSession) -> None:
        raise StoreError("the store is away")

    async with SessionPool(url, max_sessions=1, wait_seconds=0) as pool:
        with monkeypatch.context() as patched, pytest.raises(StoreError, match="the store is away"):
            await _close_under_its_caller(pool, lambda: patched.setattr(AsyncSession, "close", fails))
        assert len(pool) == 0
        assert await _run(pool, "b", "1") == 1


async def _close_under_its_caller(pool: SessionPool, then: Callable[[], None]) -> None:
    async with pool.session("a") as session:
        await session.close()
        then()


def test_a_pool_is_used_on_one_loop(tmp_path: Path) -> None:
    pool = SessionPool(f"sqlite:///{tmp_path}/cells.db")

    async def used() -> None:
        async with pool.session("q3") as session:
            await session.run("1")

    asyncio.run(used())
    with pytest.raises(CellblockError, match="on another event loop"):
        asyncio.run(used())
    asyncio.run(pool.close())
