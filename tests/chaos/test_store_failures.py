"""Sessions whose store fails under them: what was acknowledged stays, what is at risk is told, and nobody is stuck."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import postgres_server
import pytest

from cellblock import AsyncSession, ExecutionLimits, Session, StoreError, Versioned
from cellblock.store import HeldSession, Quota, open_store

Open = Callable[..., Session]


REFUSED: dict[str, tuple[str, Callable[[Session], object], Callable[[Session], object], object]] = {
    # what the store refuses once; the call; what a session that was opened anew shows of it
    "undo": ("move", lambda one: one.undo(), lambda again: again["x"], [1]),
    "checkout": ("move", lambda one: one.checkout("HEAD~1"), lambda again: again["x"], [1]),
    "mark_private": ("configure", lambda one: one.mark_private("payroll"), lambda again: again.private, "payroll"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("then", ["flush", "close", "next cell"])
@pytest.mark.parametrize("what", REFUSED)
def test_what_the_store_refused_once_is_told_to_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, then: str
) -> None:
    method, call, shown, expected = REFUSED[what]
    state, before = Versioned(f"sqlite:///{tmp_path}/cells.db"), getattr(HeldSession, method)

    def refuse(*_: object, **_more: object) -> None:
        raise StoreError("there is no room")

    session = Session("one", state=state)
    session.run("x = [1]")
    session.run("x.append(2)")
    session.flush()
    monkeypatch.setattr(HeldSession, method, refuse)
    with pytest.raises(StoreError, match="there is no room"):
        call(session)
    for refused in (session.flush, lambda: session.run("y = 1")):
        with pytest.raises(StoreError, match="there is no room"):
            refused()
    monkeypatch.setattr(HeldSession, method, before)
    if then == "next cell":
        assert session.run("y = 1").ok
        session.kill()
    elif then == "flush":
        session.flush()
        monkeypatch.setattr(HeldSession, method, refuse)  # nothing is left to be told
    session.close()
    monkeypatch.setattr(HeldSession, method, before)
    with Session("one", state=state) as again:
        assert shown(again) == expected


@pytest.fixture(scope="module")
def server() -> Iterator[postgres_server.Server]:
    if why := postgres_server.why_none():
        pytest.skip(why)
    with postgres_server.server() as found:
        yield found


@pytest.fixture
def schema(server: postgres_server.Server, request: pytest.FixtureRequest) -> str:
    return f"{server.url}&schema=f{abs(hash(request.node.name))}"


def _counted(session: Session, disturb: Callable[[], None]) -> list[int]:
    """The numbers that cells have acknowledged that they appended, while the store is disturbed six times."""
    kept: list[int] = []
    done = threading.Event()

    def run() -> None:
        while not done.is_set():
            cell = session.run(f"L.append({len(kept)})\nlist(L)")
            assert cell.ok, cell
            kept.append(len(kept))
            assert cell.value == kept

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run)
        for _ in range(6):
            time.sleep(0.3)
            disturb()
        done.set()
        running.result()
    return kept


@pytest.mark.sampled(0)
@pytest.mark.parametrize("how", ["restarted", "connections ended"])
def test_a_session_goes_on_while_its_server_is_disturbed(server: postgres_server.Server, schema: str, how: str) -> None:
    import psycopg

    def disturb() -> None:
        if how == "restarted":
            server.kill()
            server.start()
            return
        with psycopg.connect(server.url) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cellblock'"
            )

    with Session("one", state=Versioned(schema)) as session:
        session.run("L = []")
        kept = _counted(session, disturb)
        session.flush()
        assert len(session.log(limit=10_000)) == len(kept) + 2
    with Session("one", state=Versioned(schema)) as session:
        assert session.resumed is not None
        assert session.resumed.lost == ()
        assert session.run("L").value == kept
    with open_store(schema) as store:
        assert store.verify().ok


@pytest.mark.sampled(0)
def test_a_server_that_is_away_is_told_and_the_session_goes_on_when_it_is_back(
    server: postgres_server.Server, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cellblock.store.postgres._PATIENCE", 0.2)
    with Session("one", state=Versioned(schema), tools=[server.kill]) as session:
        session.run("L = [0]")
        session.flush()
        cell = session.run("kill(); L.append(1)")
        assert cell.ok
        assert [(lost.name, lost.type) for lost in cell.lost] == [("cell 2", "step")]
        assert "the store has not taken it" in cell.lost[0].reason
        assert cell.text == "not saved: cell 2 (see to the store; flush() tries again, and so does the next cell)"
        with pytest.raises(StoreError):
            session.run("L.append(2)")
        server.start()
        assert session.run("L.append(3)\nlist(L)").value == [0, 1, 3]
        session.flush()
    with Session("one", state=Versioned(schema)) as session:
        assert session.run("L").value == [0, 1, 3]


@pytest.mark.sampled(0)
def test_what_a_server_did_not_take_is_written_or_named_at_the_end(
    server: postgres_server.Server, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cellblock.store.postgres._PATIENCE", 0.2)
    with Session("one", state=Versioned(schema), tools=[server.kill]) as session:
        session.run("L = [0]")
        session.flush()
        assert session.run("kill(); L.append(1)").lost
        server.start()
    session = Session("one", state=Versioned(schema), tools=[server.kill])
    assert session.run("L").value == [0, 1]
    session.flush()
    assert session.run("kill(); L.append(2)").lost
    with pytest.raises(StoreError, match="not in the store yet: cell 4"):
        session.close()
    session.close()
    server.start()


@pytest.fixture
def places(tmp_path: Path) -> tuple[str, Path]:
    """A store whose large objects lie in a directory, and that directory."""
    return f"sqlite:///{tmp_path}/c.db?objects={tmp_path}/objects", tmp_path / "objects"


@pytest.mark.sampled(0)
def test_steps_that_a_store_did_not_take_are_told_with_the_next_answer_and_by_flush(places: tuple[str, Path]) -> None:
    url, objects = places
    with Session("one", state=Versioned(url)) as session:
        session.run("L = [0]")
        session.flush()
        objects.rename(objects.with_name("gone"))
        objects.write_text("")
        assert session.run("import os; L.append(1); blob = os.urandom(300_000)").ok
        with pytest.raises(StoreError, match="not in the store yet: cell 2") as refused:
            session.flush()
        assert "which this user may read and write" in refused.value.hint
        assert [lost.name for lost in session.unsaved] == ["cell 2"]
        cell = session.run("L.append(2); digest = hash(blob)\ndigest")
        assert [lost.name for lost in cell.lost] == ["cell 2"]
        objects.unlink()
        objects.with_name("gone").rename(objects)
        session.flush()
        assert session.run("L").lost == ()
    with Session("one", state=Versioned(url)) as session:
        assert session.run("L, hash(blob)").value == ([0, 1, 2], cell.value)
        assert session.resumed is not None
        assert session.resumed.replayed == ()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("heals", [True, False])
def test_close_commits_or_names_what_a_store_had_not_taken(places: tuple[str, Path], heals: bool) -> None:
    url, objects = places
    session = Session("one", state=Versioned(url))
    session.run("L = [0]")
    session.flush()
    objects.rename(objects.with_name("gone"))
    objects.write_text("")
    session.run("import os; blob = os.urandom(300_000)\nNone")
    told = session.aside("hash(blob)", reads=True)
    assert [lost.name for lost in session.unsaved] == ["cell 2"]
    if not heals:
        with pytest.raises(StoreError, match="not in the store yet: cell 2"):
            session.close()
    objects.unlink()
    objects.with_name("gone").rename(objects)
    session.close()
    with Session("one", state=Versioned(url)) as session:
        assert session.resumed is not None
        assert [cell.number for cell in session.resumed.replayed] == ([] if heals else [2])
        assert (session.aside("hash(blob)", reads=True) == told) is heals


def test_a_program_that_dies_while_its_store_fails_loses_nothing_acknowledged(places: tuple[str, Path]) -> None:
    url, objects = places
    program = f"""
import os, sys
from cellblock import Session, Versioned
session = Session("one", state=Versioned({url!r}))
session.run("L = []")
session.flush()
os.rename({str(objects)!r}, {str(objects)!r} + "-gone")
open({str(objects)!r}, "w").close()
print(session.run("import os; L.append('first'); blob = os.urandom(300_000)").ok)
for n in range(12):
    print(session.run(f"L.append({{n}})").ok)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=False)
    assert done.stdout == "True\n" * 13
    objects.unlink()
    objects.with_name("objects-gone").rename(objects)
    with Session("one", state=Versioned(url)) as session:
        assert session.run("L, len(blob)").value == (["first", *range(12)], 300_000)
        assert [one.number for one in session.notebook] == list(range(1, 16))


@pytest.mark.sampled(0)
def test_a_session_whose_processes_end_while_its_store_is_full_goes_on(opened_store: tuple[str, Session]) -> None:
    url, session = opened_store
    with open_store(url) as store:
        store.set_quota("default", Quota(sessions=9, bytes=1))
        for n in range(4):
            assert session.run(f"L.append({n})").ok
            session.kill()
        assert session.run("L").value == [0, 1, 2, 3]
        store.set_quota("default", Quota(sessions=9, bytes=1 << 30))
    session.flush()
    session.close()
    with Session("one", state=Versioned(url)) as again:
        assert again.run("L").value == [0, 1, 2, 3]


@pytest.fixture
def opened_store(tmp_path: Path) -> Iterator[tuple[str, Session]]:
    url = f"sqlite:///{tmp_path}/c.db"
    with Session("one", state=Versioned(url), limits=ExecutionLimits(timeout_seconds=20)) as session:
        session.run("L = []")
        session.flush()
        yield url, session


@pytest.mark.sampled(0)
def test_a_file_that_was_written_while_a_cell_ran_outlives_the_program(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/c.db"
    program = f"""
import os, threading, time
from cellblock import Session, Versioned
session = Session("one", state=Versioned({url!r}))
session.run("x = 1")
session.flush()
session._session._lasting.committer._work = time.sleep  # no commit is made, as if the program died before the next
def write():
    session.files.write("given.txt", b"text")
    print("written", flush=True)
timer = threading.Timer(0.3, write)
timer.start()
session.run("import os, time")
cell = session.run("while not os.path.exists('given.txt'): time.sleep(0.01)\\nx = open('given.txt').read()")
timer.join()
print(cell.ok, flush=True)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=False)
    assert done.stdout == "written\nTrue\n"
    with Session("one", state=Versioned(url)) as session:
        assert session.run("x, open('given.txt').read()").value == ("text", "text")


@pytest.mark.sampled(0)
def test_a_file_that_was_written_while_a_cell_ran_that_crashed_is_there(opened_store: tuple[str, Session]) -> None:
    url, session = opened_store
    timer = threading.Timer(0.2, lambda: session.files.write("given.txt", b"text"))
    timer.start()
    cell = session.run("import os, time\nwhile not os.path.exists('given.txt'): time.sleep(0.01)\nos._exit(1)")
    timer.join()
    assert cell.rolled_back
    assert session.files.read("given.txt") == b"text"
    session.close()
    with Session("one", state=Versioned(url)) as again:
        assert again.files.read("given.txt") == b"text"


@pytest.mark.sampled(0)
def test_a_call_of_the_same_id_is_run_once_whoever_died(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/c.db"
    program = f"""
import os, sys
from cellblock import Session, Versioned
session = Session("one", state=Versioned({url!r}))
cell = session.run("n = globals().get('n', 0) + 1\\nn", call_id="only")
print(cell.id, cell.text, flush=True)
os.kill(os.getpid(), 9)
"""
    luck = random.Random(7)
    told = [
        subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=False).stdout
        for _ in range(luck.randint(2, 3))
    ]
    assert told == ["only 1\n"] * len(told)
    with Session("one", state=Versioned(url)) as session:
        assert session["n"] == 1
        with pytest.raises(ValueError, match="call_id must be 1 to 64 letters"):
            session.run("1", call_id="not a name")


@pytest.mark.sampled(0)
@pytest.mark.anyio
async def test_cell_that_was_cancelled_before_it_began_is_not_there_when_opened_again(schema: str) -> None:
    async with AsyncSession("one", state=Versioned(schema)) as session:
        await session.run("a = 1")
        for turns in range(16):
            await session.flush()
            task = asyncio.create_task(session.run("b = 1", call_id=f"call{turns}"))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert (await session.run("b = 1", call_id=f"call{turns}")).number
        cells = [(cell.id, cell.state) for cell in session.notebook]
    async with AsyncSession("one", state=Versioned(schema)) as again:
        assert [(cell.id, cell.state) for cell in again.notebook] == cells
        assert again.resumed is not None
        assert again.resumed.interrupted is None
