"""A change of a file that the host was told is done stays done, whatever finds the session's process dead beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

import pytest

from cellblock import AsyncSession, CellblockError, ExecutionLimits, Versioned
from cellblock.cell import Cell

pytestmark = pytest.mark.anyio

Kind = Literal["live", "versioned"]
Call = Callable[[AsyncSession], Awaitable[object]]

BEGIN = """
import os, time
x = 1
def end_once(changed):
    while not changed(): time.sleep(0.002)
    os._exit(1)
class Ends:
    def __init__(self, changed): self.changed = changed
    def __repr__(self): end_once(self.changed)
"""


async def _branch(session: AsyncSession) -> None:
    async with await session.branch():
        pass


async def _undo_to(session: AsyncSession) -> None:
    await session.undo(to=session.checkpoint())


async def _rerun(session: AsyncSession) -> Cell:
    return await session.rerun(session.notebook.cells[-1].id)


CALLS: dict[str, Call] = {
    "run": lambda session: session.run("y = 2"),
    "rerun": _rerun,
    "shell": lambda session: session.shell("true"),
    "set": lambda session: session.set("y", 2),
    "get": lambda session: session.get("x"),
    "aside": lambda session: session.aside("y = 2"),
    "aside as a step": lambda session: session.aside("y = 2", step="y"),
    "aside that reads": lambda session: session.aside("x", reads=True),
    "names": lambda session: session.names(),
    "clear": lambda session: session.clear(),
    "undo": lambda session: session.undo(),
    "undo to a checkpoint": _undo_to,
    "branch": _branch,
}
OF_VERSIONS: dict[str, Call] = {
    "checkout": lambda session: session.checkout("HEAD~1"),
    "hibernate": lambda session: session.hibernate(),
    "flush": lambda session: session.flush(),
}
ENDING: dict[str, Call] = {
    "run": lambda session: session.run("end_once(changed)"),
    "aside": lambda session: session.aside("end_once(changed)"),
    "names": lambda session: session.names(),
}
CHANGES: dict[str, tuple[Call, str, dict[str, bytes]]] = {
    "write": (
        lambda session: session.files.write("new.txt", b"new"),
        "os.path.exists('new.txt')",
        {"new.txt": b"new", "old.txt": b"old"},
    ),
    "write over": (
        lambda session: session.files.write("old.txt", b"new"),
        "open('old.txt').read() == 'new'",
        {"old.txt": b"new"},
    ),
    "delete": (lambda session: session.files.delete("old.txt"), "not os.path.exists('old.txt')", {}),
}


def _made(kind: Kind, url: str) -> AsyncSession:
    limits = ExecutionLimits(timeout_seconds=20)
    return AsyncSession(limits=limits) if kind == "live" else AsyncSession("one", state=Versioned(url), limits=limits)


async def _begun(session: AsyncSession) -> None:
    cell = await session.run(BEGIN)
    assert cell.ok, cell.text
    await session.files.write("old.txt", b"old")
    await session.run("z = 3")


async def _files(session: AsyncSession) -> dict[str, bytes]:
    return {name: await session.files.read(name) for name in await session.files.list()}


async def _require(kind: Kind, url: str, session: AsyncSession, files: dict[str, bytes]) -> None:
    """That a session has these files, and has them after the next cell, and once it is reopened."""
    assert await _files(session) == files
    cell = await session.run("import os; sorted(os.listdir('.'))")
    assert cell.value == sorted(files), cell.text
    if kind == "versioned":
        await session.close()
        async with _made(kind, url) as reopened:
            assert await _files(reopened) == files


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    ("kind", "call"),
    [*(("live", call) for call in CALLS), *(("versioned", call) for call in (*CALLS, *OF_VERSIONS))],
)
async def test_change_of_a_file_beside_a_call_that_finds_the_process_dead_stays(
    url: str, kind: Kind, call: str, change: str
) -> None:
    make, _, files = CHANGES[change]
    async with _made(kind, url) as session:
        await _begun(session)
        session.kill()
        await asyncio.gather((CALLS | OF_VERSIONS)[call](session), make(session))
        await _require(kind, url, session, files)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("call", ENDING)
@pytest.mark.parametrize("kind", ["live", "versioned"])
async def test_change_of_a_file_beside_a_call_whose_process_ends_stays(
    url: str, kind: Kind, call: str, change: str
) -> None:
    make, changed, files = CHANGES[change]
    async with _made(kind, url) as session:
        await _begun(session)
        await session.run(f"changed = lambda: {changed}\nends = Ends(changed)")
        failing = asyncio.create_task(ENDING[call](session))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        await make(session)
        if call == "run":
            assert not (await failing).ok
        else:
            with pytest.raises(CellblockError):
                await failing
        await session.run("del ends")
        await _require(kind, url, session, files)


@pytest.mark.parametrize("kind", ["live", "versioned"])
async def test_cell_on_the_process_that_replaces_a_dead_one_sees_what_the_host_wrote(url: str, kind: Kind) -> None:
    async with _made(kind, url) as session:
        await _begun(session)
        session.kill()
        source = "while not os.path.exists('new.txt'): time.sleep(0.002)\nos.rename('new.txt', 'taken.txt')"
        cell, _ = await asyncio.gather(session.run(source), session.files.write("new.txt", b"new"))
        assert cell.ok, cell.text
        await _require(kind, url, session, {"old.txt": b"old", "taken.txt": b"new"})


async def test_last_of_two_writes_beside_a_recovery_stays(url: str) -> None:
    async with _made("live", url) as session:
        await _begun(session)
        for count in range(20):
            session.kill()
            writes = [session.files.write("old.txt", f"{count}.{one}") for one in range(3)]

            async def in_order(writes: list[Awaitable[None]] = writes) -> None:
                for one in writes:
                    await one

            await asyncio.gather(session.run("y = 2"), in_order())
            assert await session.files.read("old.txt") == f"{count}.2".encode()


async def test_change_that_cannot_be_made_again_is_lost_by_name(url: str) -> None:
    async with _made("live", url) as session:
        await _begun(session)
        await session.run("os.mkdir('a')")
        source = "os.rmdir('a')\nwhile not os.path.exists('a'): time.sleep(0.002)\nos._exit(1)"
        failing = asyncio.create_task(session.run(source))
        while "a" in await asyncio.to_thread(lambda: session.notebook.cells[-1].source):
            await asyncio.sleep(0.01)
            break
        await asyncio.sleep(0.2)
        await session.files.write("a", b"a file by now")
        cell = await failing
        assert cell.rolled_back
        assert [lost.name for lost in cell.lost] == ["a"]


async def test_write_beside_a_checkout_that_fails_stays(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with _made("versioned", url) as session:
        await _begun(session)
        restore = session._restore

        async def fails(*given: object) -> object:
            await restore(*given)  # type: ignore[arg-type]
            await session.files.write("new.txt", b"new")
            raise CellblockError("the store is gone")

        monkeypatch.setattr(session, "_restore", fails)
        with pytest.raises(CellblockError, match="the store is gone"):
            await session.checkout("HEAD~1")
        assert await _files(session) == {"new.txt": b"new", "old.txt": b"old"}
