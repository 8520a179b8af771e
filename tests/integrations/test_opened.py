"""Sessions that are opened when they are asked for: how many at once, who waits, which are closed."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import anyio
import pytest

from cellblock import AsyncSession, CellblockError, SessionClosed, Versioned
from cellblock.errors import StoreError, UnknownSession
from cellblock.integrations.opened import OpenSessions

pytestmark = pytest.mark.anyio


def _sessions(url: str, **options: float) -> OpenSessions:
    async def opened(user: str, name: str) -> AsyncSession:
        return await AsyncSession(name, user=user, state=Versioned(url)).open()

    return OpenSessions(opened, url=url, **options)  # type: ignore[arg-type]


async def _run(sessions: OpenSessions, name: str, source: str, user: str = "ana") -> object:
    async with sessions.use(user, name) as session:
        return (await session.run(source)).value


async def test_the_one_that_was_used_longest_ago_is_closed_to_make_room_and_goes_on_later(url: str) -> None:
    async with _sessions(url, most=2) as sessions:
        for name in ("a", "b", "a", "c"):
            await _run(sessions, name, f"who = {name!r}")
        assert len(sessions) == 2
        holders = {row.name: row.holder is not None for row in await sessions.list("ana")}
        assert holders == {"a": True, "b": False, "c": True}
        assert await _run(sessions, "b", "who") == "b"
    assert all(row.holder is None for row in await _listed(url))


async def _listed(url: str) -> list:
    async with _sessions(url) as sessions:
        return await sessions.list("ana")


async def test_where_all_are_in_use_the_next_is_refused_and_those_are_left_alone(url: str) -> None:
    async with _sessions(url, most=1) as sessions, sessions.use("ana", "a") as session:
        with pytest.raises(CellblockError, match="all 1 sessions that may be open are in use"):
            await _run(sessions, "b", "1")
        assert (await session.run("2")).value == 2


@pytest.mark.threat("D4")
async def test_no_user_takes_the_places_of_another(url: str) -> None:
    async with _sessions(url, most=4) as sessions:
        sessions.users = 2
        await _run(sessions, "hers", "left = iter(range(9)); next(left)", user="bob")
        for name in ("a", "b", "c"):
            await _run(sessions, name, "1")
        assert [sessions.is_open("ana", name) for name in ("a", "b", "c")] == [False, True, True]
        async with sessions.use("ana", "b"), sessions.use("ana", "c"):
            with pytest.raises(CellblockError, match="all 2 sessions that may be open are in use"):
                await _run(sessions, "d", "1")
            assert await _run(sessions, "hers", "next(left)", user="bob") == 1
            assert await _run(sessions, "other", "1", user="bob") == 1


async def test_where_there_are_more_users_than_places_each_has_one(url: str) -> None:
    async with _sessions(url, most=1) as sessions:
        sessions.users = 3
        async with sessions.use("ana", "a") as first, sessions.use("bob", "a") as second:
            assert [(await one.run("1")).value for one in (first, second)] == [1, 1]


@pytest.mark.threat("D4")
async def test_calls_of_one_user_are_so_many_and_no_other_user_waits(url: str) -> None:
    async with _sessions(url) as sessions:
        with ExitStack() as calls:
            for _ in range(32):
                calls.enter_context(sessions.calling("ana"))
            with pytest.raises(CellblockError, match="32 of your calls are under way"), sessions.calling("ana"):
                pass
            with sessions.calling("bob"):
                pass
        with sessions.calling("ana"):
            pass


@pytest.mark.threat("D4")
async def test_notebooks_that_one_user_reads_are_nobody_elses_wait(url: str) -> None:
    going = threading.Event()
    async with _sessions(url) as sessions:
        for user in ("ana", "bob"):
            await _run(sessions, "a", "1", user=user)
        async with anyio.create_task_group() as tasks:
            for _ in range(60):  # more than there are threads for all
                tasks.start_soon(sessions.read, "ana", "a", lambda cells, _: going.wait(60))
            try:
                with anyio.fail_after(30):
                    assert await sessions.read("bob", "a", lambda cells, _: len(list(cells))) == 1
            finally:
                going.set()


async def test_a_notebook_says_why_it_is_private_open_or_not(url: str) -> None:
    async with _sessions(url) as sessions:
        async with sessions.use("ana", "a") as session:
            await session.mark_private("loaded payroll.csv")
            await session.run("1")
        assert await sessions.read("ana", "a", lambda _, private: private) == "loaded payroll.csv"
    async with _sessions(url) as sessions:
        assert await sessions.read("ana", "a", lambda _, private: private) == "loaded payroll.csv"


async def test_callers_of_one_session_at_once_open_it_once(url: str) -> None:
    values: list[object] = []
    async with _sessions(url) as sessions:
        await _run(sessions, "a", "seen = []")

        async def call(number: int) -> None:
            values.append(await _run(sessions, "a", f"seen.append({number}); len(seen)"))

        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(call, number)
    assert sorted(values) == [1, 2, 3, 4, 5]  # type: ignore[type-var]


async def test_two_users_have_two_sessions_of_one_name(url: str) -> None:
    async with _sessions(url) as sessions:
        await _run(sessions, "a", "secret = 1", user="ana")
        assert await _run(sessions, "a", "'secret' in globals()", user="bob") is False


async def test_one_that_nobody_uses_sleeps_and_keeps_its_names(url: str) -> None:
    async with _sessions(url, idle_seconds=0.2) as sessions:
        await _run(sessions, "a", "x = 1")
        entry = sessions._entries["ana", "a"]
        with anyio.fail_after(20):
            while "asleep" not in repr(entry.session):
                await anyio.sleep(0.05)
        assert await _run(sessions, "a", "x") == 1


async def test_one_that_was_closed_under_its_caller_is_opened_again_for_the_next(url: str) -> None:
    async with _sessions(url) as sessions:
        await _run(sessions, "a", "x = 1")
        entry = sessions._entries["ana", "a"]
        assert entry.session is not None
        await entry.session.close()
        with pytest.raises(SessionClosed):
            await _run(sessions, "a", "x")
        assert await _run(sessions, "a", "x") == 1


async def test_an_unknown_one_is_not_made_where_it_may_not_be(url: str) -> None:
    async with _sessions(url) as sessions:
        with pytest.raises(UnknownSession):
            async with sessions.use("ana", "typo", create=False):
                pass
        assert len(sessions) == 0
        assert await sessions.list("ana") == []


async def test_the_notebook_of_one_that_is_not_open_is_read_without_a_process(url: str) -> None:
    async with _sessions(url) as sessions:
        await _run(sessions, "a", "6 * 7")
    async with _sessions(url) as sessions:
        assert await sessions.read("ana", "a", lambda cells, _: [cell.text for cell, _ in cells]) == ["42"]
        assert len(sessions) == 0


async def test_one_that_its_store_does_not_take_is_one_line_of_the_log(
    url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_: AsyncSession) -> None:
        raise StoreError("the store is away") from OSError("the driver's words")

    async with _sessions(url, most=1) as sessions:
        async with sessions.use("ana", "a") as session:
            close = session.close
        with monkeypatch.context() as patched:
            patched.setattr(AsyncSession, "close", fails)
            await _run(sessions, "b", "1")  # takes its place
        await close()
    (record,) = [one for one in caplog.records if one.name.startswith("cellblock")]
    assert record.getMessage() == "session 'a' of 'ana' was not closed as it should be: the store is away"
    assert record.exc_info is None
