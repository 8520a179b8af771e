"""A change of a file that the host was told is done stays done, whatever finds the session's process dead beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Literal

import pytest

from cellblock import AsyncSession, CellblockError, ExecutionLimits, Versioned
from cellblock.cell import Cell

pytestmark = pytest.mark.anyio

AGAIN = ExecutionLimits(timeout_seconds=20, max_checkpoints=0)
"""Without checkpoints no state is saved, and the cells are run again."""
Kind = Literal["live", "versioned"]
Call = Callable[[AsyncSession], Coroutine[Any, Any, object]]

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


ROWS = [*(("live", call) for call in CALLS), *(("versioned", call) for call in (*CALLS, *OF_VERSIONS))]
PAIRS = [
    pytest.param(kind, call, change, marks=[] if (row + column) % 3 == 0 else [pytest.mark.slow])
    for row, (kind, call) in enumerate(ROWS)
    for column, change in enumerate(CHANGES)
]
"""Each call with one of the changes, and each change with a third of the calls; all others are slow."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("kind", "call", "change"), PAIRS)
async def test_change_of_a_file_beside_a_call_that_finds_the_process_dead_stays(
    url: str, kind: Kind, call: str, change: str
) -> None:
    make, _, files = CHANGES[change]
    async with _made(kind, url) as session:
        await _begun(session)
        session.kill()
        await asyncio.gather((CALLS | OF_VERSIONS)[call](session), make(session))
        await _require(kind, url, session, files)


@pytest.mark.sampled(1)
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
        failing = asyncio.create_task(ENDING[call](session))
        await asyncio.sleep(0)
        await make(session)
        if call == "names":  # what ends the process once is then looked at in copies
            assert "ends" in await failing
        else:
            with pytest.raises(CellblockError):
                await failing
        await session.run("del ends")
        await _require(kind, url, session, files)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["live", "versioned"])
async def test_cell_on_the_process_that_replaces_a_dead_one_sees_what_the_host_wrote(url: str, kind: Kind) -> None:
    async with _made(kind, url) as session:
        await _begun(session)
        session.kill()
        source = "while not os.path.exists('new.txt'): time.sleep(0.002)\nos.rename('new.txt', 'taken.txt')"
        cell, _ = await asyncio.gather(session.run(source), session.files.write("new.txt", b"new"))
        assert cell.ok, cell.text
        await _require(kind, url, session, {"old.txt": b"old", "taken.txt": b"new"})


@pytest.mark.sampled(0)
@pytest.mark.parametrize("kind", ["live", "versioned"])
async def test_last_of_many_writes_beside_a_recovery_stays(url: str, kind: Kind) -> None:
    async with _made(kind, url) as session:
        await _begun(session)
        ending = asyncio.create_task(session.run("end_once(lambda: open('old.txt').read() not in ('', 'old'))"))
        count = 0
        while not ending.done():
            count += 1
            await session.files.write("old.txt", str(count))
        assert (await ending).rolled_back
        await _require(kind, url, session, {"old.txt": str(count).encode()})


async def test_change_that_cannot_be_made_again_is_lost_by_name(url: str) -> None:
    async with _made("live", url) as session:
        await _begun(session)
        await session.run("os.mkdir('a')")
        source = "os.rmdir('a'); open('ready', 'w')\nend_once(lambda: os.path.exists('a'))"
        failing = asyncio.create_task(session.run(source))
        while "ready" not in await session.files.list():
            await asyncio.sleep(0.01)
        await session.files.write("a", b"where a directory was")
        cell = await failing
        assert cell.rolled_back
        assert [lost.name for lost in cell.lost] == ["a"]
        assert "done again, it failed" in cell.lost[0].reason


@pytest.mark.sampled(0)
async def test_write_beside_a_checkout_that_is_left_stays(url: str) -> None:
    async with AsyncSession("one", state=Versioned(url), limits=AGAIN) as session:
        await session.run("import time; time.sleep(1)")
        await session.run("y = 2")
        checkout = asyncio.create_task(session.checkout("HEAD~1"))
        await asyncio.sleep(0.5)
        write = asyncio.create_task(session.files.write("new.txt", b"new"))
        await asyncio.sleep(0.2)
        checkout.cancel()
        await asyncio.wait([checkout])
        await write
        assert await session.files.list() == ["new.txt"]
        assert (await session.run("y")).value == 2


@pytest.mark.sampled(0)
@pytest.mark.parametrize("change", CHANGES)
async def test_files_beside_a_session_that_is_brought_back_are_the_sessions(url: str, change: str) -> None:
    make, _, files = CHANGES[change]
    async with AsyncSession("one", state=Versioned(url), limits=AGAIN) as session:
        await session.run("import time; time.sleep(1)")
        await session.files.write("old.txt", b"old")
        await session.hibernate()
        back = asyncio.create_task(session.run("y = 2"))
        await asyncio.sleep(0.5)
        assert await session.files.read("old.txt") == b"old"
        await make(session)
        await back
        assert await _files(session) == files
