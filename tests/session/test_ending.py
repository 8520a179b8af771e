"""Sessions that are used while the interpreter ends: each call says so, and raises no other error."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

import cellblock
from cellblock import AsyncSession, Cell, Session, SessionClosed, Versioned

_SAYS = "the interpreter ends, and this Python starts no threads then (use sessions before that)"
_PACKAGE = Path(cellblock.__file__).parent


def tool() -> int:
    return 1


async def _raised(run: Awaitable[Cell]) -> None:
    cell = await run
    if cell.error is not None:
        assert cell.error.type == "SessionClosed"
        raise SessionClosed(cell.error.message)


USES: dict[str, Callable[[AsyncSession], Awaitable[object]]] = {
    "files.read": lambda session: session.files.read("f"),
    "files.write": lambda session: session.files.write("f", b"2"),
    "files.list": lambda session: session.files.list(),
    "a call of a tool": lambda session: _raised(session.run("tool()")),
    "log": lambda session: session.log(),
    "diff": lambda session: session.diff(),
    "flush": lambda session: session.flush(),
    "checkout": lambda session: session.checkout("HEAD~1"),
    "tag": lambda session: session.tag("here"),
    "branch": lambda session: session.branch(),
    "mark_private": lambda session: session.mark_private("said"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("use", USES)
def test_every_call_says_that_the_interpreter_ends(use: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Python 3.12, whose threads are refused once the main thread has ended."""

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    async def told() -> str:
        async with AsyncSession("one", state=Versioned(f"sqlite:///{tmp_path}/cells.db"), tools=[tool]) as session:
            await session.run("x = 1")
            await session.files.write("f", b"1")
            await session.flush()
            monkeypatch.setattr("cellblock.hosting.threads._idle", {})
            monkeypatch.setattr(threading.Thread, "start", refused)
            try:
                await USES[use](session)
            except SessionClosed as error:
                return str(error)
            finally:
                monkeypatch.undo()
        return "nothing"

    assert anyio.run(told) == _SAYS


def test_engine_waits_for_threads_in_one_way() -> None:
    found = {
        str(path.relative_to(_PACKAGE))
        for path in _PACKAGE.rglob("*.py")
        if re.search(r"anyio[. ](import )?to_thread", path.read_text())
    }
    assert found == {"hosting/to_thread.py"}


@pytest.mark.parametrize("end", ["", "1 / 0", "raise SystemExit(3)", "del session"])
def test_program_that_does_not_close_its_session_has_stored_what_it_did(end: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/cells.db"
    program = (
        f"from cellblock import Session, Versioned\nsession = Session('one', state=Versioned({url!r}))\n"
        f"print(session.run('import os; token = os.urandom(4).hex(); token').value)\n{end}"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    with Session("one", state=Versioned(url)) as session:
        assert session.resumed is not None
        assert (session.run("token").value, session.resumed.replayed) == (ended.stdout.strip(), ())
