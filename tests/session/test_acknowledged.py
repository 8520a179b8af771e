"""What a caller was told is done, with its program killed before the store had a commit of it: it is done still."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cellblock import ExecutionLimits, Session, Versioned

pytestmark = pytest.mark.threat("D1")

BEGIN = """
session.run("x = [1]", call_id="one")
session.run("x.append(2)", call_id="two")
session.files.write("f", "one")
session["y"] = [0]
"""
CALLS = {
    "run": 'session.run("x.append(3)")',
    "run a cell that calls a function": 'session.run("x.append(ask())")',
    "stream": 'list(session.stream("x.append(3)"))',
    "rerun and undo": 'session.rerun("two"); session.undo()',
    "shell": 'session.shell("echo 3 >> f")',
    "rerun": 'session.rerun("two")',
    "set": 'session["x"] = [7]',
    "clear": "session.clear()",
    "write a file": 'session.files.write("f", "two")',
    "delete a file": 'session.files.delete("f")',
    "write and delete files while a cell runs": """
events = session.stream("import os, time\\nprint(1)\\nwhile os.path.exists('f'): time.sleep(0.01)")
next(events)
session.files.write("g", "two")
session.files.delete("f")
list(events)
""",
    "write a large file while a cell runs": """
events = session.stream("import os, time\\nprint(1)\\nwhile os.path.exists('f'): time.sleep(0.01)")
next(events)
session.files.write("g", "0123456789" * 250_001)
session.files.delete("f")
list(events)
""",
    "delete": 'session.delete("one")',
    "delete a cell while another runs": """
events = session.stream("import os, time\\nprint(1)\\nwhile not os.path.exists('g'): time.sleep(0.01)")
next(events)
session.delete("one")
session.files.write("g", "")
list(events)
""",
    "delete a cell and run another under its id": 'session.delete("one"); session.run("x.append(5)", call_id="one")',
    "delete a cell and undo the step before": 'session.run("x.append(3)"); session.delete("one"); session.undo()',
    "delete a cell while asleep, and undo": 'session.hibernate(); session.delete("one"); session.undo()',
    "delete a cell and wake": 'session.delete("one"); session.hibernate(); session.run("x.append(3)")',
    "delete a cell while asleep": 'session.hibernate(); session.delete("one")',
    "aside": 'session.aside("x.append(3)")',
    "aside, of a long source": 'session.aside("x.append(len(" + repr("0123456789" * 150_001) + "))")',
    "aside, as a step": 'session.aside("x.append(3)", step="more")',
    "aside that calls a function": 'session.aside("x.append(ask()); x.append(ask())")',
    "aside that calls a function, as a step": 'session.aside("x.append(ask())", step="more")',
    "undo": "session.undo()",
    "checkout": 'session.checkout("HEAD~2")',
    "merge": """
with session.branch("other") as other:
    other.run("z = 1")
    session.merge(other)
""",
    "tag": 'session.tag("here")',
    "mark_private": 'session.mark_private("payroll")',
    "branch": 'sessions["other"] = session.branch("other")',
    "branch of a session with deleted cells": 'session.delete("one"); sessions["other"] = session.branch("other")',
    "branch of a session from which cells were deleted twice": """
session.delete("one"); session.flush(); session.delete("two"); sessions["other"] = session.branch("other")
""",
    "delete on a branch": 'sessions["other"] = session.branch("other"); sessions["other"].delete("one")',
    "hibernate": "session.hibernate()",
}
"""Every public call that changes a session. Each is acknowledged when it returns."""
PROGRAM = """
import json, os, signal, sys, threading
from cellblock import Session, Versioned
from cellblock.session.committer import Committer
from cellblock.session.lasting import Lasting

url, begin, call, then = sys.argv[1:]
answers = iter(range(100, 110))
def ask(): return next(answers)

may_commit = threading.Event()
may_commit.set()
write = Committer._write_once
def held_up(self, *given):
    may_commit.wait()
    return write(self, *given)
Committer._write_once = held_up
async def not_awaited(self, *given):
    pass
Lasting.read = not_awaited  # what is read here tells what there was, and acknowledges nothing

session = Session("one", state=Versioned(url), tools=[ask])
exec(begin)
sessions = {session.name: session}
session.flush()

def acknowledged(source, **names):
    may_commit.clear()
    timer = threading.Timer(0.5, may_commit.set)  # what waits for its commit gets it
    timer.start()
    exec(source, names)
    timer.cancel()
    may_commit.clear()

acknowledged(call, session=session, sessions=sessions)
for one in sessions.values():
    acknowledged(then, session=one)
had = {}
for name, one in sessions.items():
    acknowledged("had[name] = look(session)", had=had, name=name, look=look, session=one)
print(json.dumps(had), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
LOOK = '''
def look(session):
    """All that a session has."""
    return {
        "values": {name: session[name] for name in ("x", "y", "z", "after") if name in session.names()},
        "files": {name: session.files.read(name).decode() for name in session.files.list()},
        "cells": sorted([cell.number, cell.id, cell.source] for cell in session.notebook if not cell.undone),
        "private": session.private,
    }
'''
_found: dict[str, Any] = {}
exec(LOOK, _found)
look: Callable[[Session], dict[str, object]] = _found["look"]


def ask() -> int:
    raise AssertionError("it was answered before")


def killed(url: str, begin: str, call: str, then: str = "") -> dict[str, dict[str, object]]:
    """What sessions had, by their names, when their program was killed, right after a call."""
    command = [sys.executable, "-c", LOOK + PROGRAM, url, begin, call, then]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    found: dict[str, dict[str, object]] = json.loads(done.stdout.splitlines()[-1])
    return found


AFTER = 'session.run("after = 1")'
LATER = [call for call in CALLS if "delete" in call or "aside" in call]
QUICK = {"delete", "delete a cell while another runs", "branch of a session with deleted cells", "aside, as a step"}
"""One of each kind with a step after it; the others are slow."""
ROWS = [
    *(pytest.param(call, "", id=call) for call in CALLS),
    *(
        pytest.param(call, AFTER, id=f"{call}; a step", marks=[] if call in QUICK else [pytest.mark.slow])
        for call in LATER
    ),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("call", "then"), ROWS)
def test_what_a_call_did_is_there_after_the_death_of_its_program(url: str, call: str, then: str) -> None:
    had = killed(url, BEGIN, CALLS[call], then)
    for reads in (False, True, True):  # and stays
        for name, expected in had.items():
            with Session(name, state=Versioned(url), tools=[ask]) as session:
                assert session.resumed is not None
                assert session.resumed.lost == ()
                assert not reads or look(session) == expected
                assert call != "tag" or session.log("here", limit=1)


@pytest.mark.sampled(0)
def test_deletion_that_would_have_waited_for_the_store_is_there_with_the_next_step(url: str) -> None:
    as_of_a_server = "from cellblock.store.sqlite import SqliteDatabase; SqliteDatabase.at_once = lambda *_: None\n"
    had = killed(url, BEGIN, f'{as_of_a_server}session.delete("one"); session.delete("two")', AFTER)
    with Session("one", state=Versioned(url), tools=[ask]) as session:
        assert look(session) == had["one"]
        assert [cell.source for cell in session.notebook] == ["after = 1"]


@pytest.mark.sampled(0)
def test_a_step_with_more_answers_than_a_record_holds_is_committed_and_taken_again(tmp_path: Path) -> None:
    """70 MB of small ones, and of large ones: the session could not be closed, and no step after it was saved."""
    asked: list[int] = []

    def give(size: int) -> str:
        asked.append(size)
        return "x" * size

    def opened() -> Session:
        limits = ExecutionLimits(max_checkpoints=0, timeout_seconds=60, max_memory_mb=600)
        return Session("q", state=Versioned(f"sqlite:///{tmp_path}/c.db"), tools=[give], limits=limits)

    with opened() as session:
        assert session.run("sizes = [len(give(50_000)) for _ in range(1400)]\nsum(sizes)").value == 70_000_000
        assert session.run("size = sum(len(give(1_000_000)) for _ in range(70))").ok
        session.flush()
    count = len(asked)
    with opened() as session:
        assert session.run("sum(sizes), size").value == (70_000_000, 70_000_000)
    assert len(asked) == count


@pytest.mark.sampled(0)
@pytest.mark.parametrize("call", ["run", "aside"])
def test_answers_of_functions_stay_where_no_state_is_saved(tmp_path: Path, call: str) -> None:
    url, limits = f"sqlite:///{tmp_path}/cells.db", ExecutionLimits(max_checkpoints=0)
    begin = "session.close()\nfrom cellblock import ExecutionLimits\nlimits = ExecutionLimits(max_checkpoints=0)\n"
    begin += f'session = Session("two", state=Versioned({url!r}), tools=[ask], limits=limits)\nsession.run("x = []")'
    killed(url, begin, f'session.{call}("x.append(ask())")')
    for _ in range(3):
        with Session("two", state=Versioned(url), tools=[ask], limits=limits) as session:
            assert session.resumed is not None
            assert session.resumed.lost == ()
            assert session["x"] == [100]


TOGETHER = {
    "gather": "import asyncio\ngot = await asyncio.gather(*[slowly(one) for one in (3, 1, 2)])\n",
    "threads": """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(3) as pool:
    got = [*pool.map(price, (3, 1, 2))]
""",
    "the same call": "import asyncio\ngot = await asyncio.gather(*[counted() for _ in range(3)])\n",
    "other arguments each time": "import time\ngot = [stamped(time.time_ns()), stamped(time.time_ns())]\n",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("how", TOGETHER)
def test_answers_of_calls_made_together_are_given_again_to_the_same_calls(tmp_path: Path, how: str) -> None:
    """In whatever order they had ended."""
    counted_calls: list[int] = []

    async def slowly(number: int) -> int:
        await asyncio.sleep(number / 20)
        return number * 100

    def price(number: int) -> int:
        time.sleep(number / 20)
        return number * 100

    async def counted() -> int:
        counted_calls.append(0)
        number = len(counted_calls)
        await asyncio.sleep((4 - number) / 20)
        return number

    def stamped(_: int) -> int:
        counted_calls.append(0)
        return len(counted_calls)

    tools = [slowly, price, counted, stamped]
    limits = ExecutionLimits(max_checkpoints=0)
    with Session("two", state=Versioned(f"sqlite:///{tmp_path}/cells.db"), tools=tools, limits=limits) as session:
        got = session.run(TOGETHER[how] + "got").value
        assert got in ([300, 100, 200], [1, 2, 3], [1, 2])
        called = len(counted_calls)
        session.hibernate()
        cell = session.run("got")
        assert (cell.value, cell.lost, len(counted_calls)) == (got, (), called)


STOPPED = {
    "met its time limit": "",
    "was interrupted": "import threading\nthreading.Timer(0.3, lambda: session.interrupt()).start()\n",
}


@pytest.mark.sampled(0)
@pytest.mark.parametrize("how", STOPPED)
def test_cell_that_was_stopped_before_it_was_saved_is_lost_by_name_and_not_run_again(tmp_path: Path, how: str) -> None:
    url = f"sqlite:///{tmp_path}/cells.db"
    seconds = 0.5 if how == "met its time limit" else 20
    begin = f"from cellblock import ExecutionLimits\nlimits = ExecutionLimits(timeout_seconds={seconds})\n"
    begin += (
        f'session.close()\nsession = Session("two", state=Versioned({url!r}), limits=limits)\nsession.run("x = [1]")'
    )
    killed(url, begin, f'{STOPPED[how]}session.run("x.append(2)\\nwhile True: pass")')
    for lost in (["cell 2"], []):
        with Session("two", state=Versioned(url)) as session:
            assert session.resumed is not None
            assert [one.name for one in session.resumed.lost] == lost
            assert session["x"] == [1]
            error = session.notebook[1].error
            assert error is not None
            assert error.type == "NotRepeated"
            session.flush()


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    ("source", "lost"),
    [
        ("import uuid; print(uuid.uuid4())", ["cell 3"]),
        ("import time; time.time_ns()", ["cell 3"]),
        ("import random; print(random.random(), object())", []),
        ("import sys; print(x, file=sys.stderr); print(x); x", []),
    ],
)
def test_cell_that_shows_something_else_when_it_is_run_again_is_told(url: str, source: str, lost: list[str]) -> None:
    killed(url, BEGIN, f"session.run({source!r})")
    for expected in (lost, []):
        with Session("one", state=Versioned(url)) as session:
            assert session.resumed is not None
            assert [one.name for one in session.resumed.lost] == expected
            session.flush()


READS = {
    "get": 'session["token"]',
    "names": 'session.names()["token"].preview.strip("\'")',
    "files.read": 'session.files.read("token").decode()',
    "aside that reads": 'session.aside("token", reads=True)',
    "aside": 'session.aside("token")',
}
READING = """
import os, signal, sys, threading
from cellblock import Session, Versioned
from cellblock.session.committer import Committer

may_commit, write = threading.Event(), Committer._write_once
def held_up(self, *given):
    may_commit.wait()
    return write(self, *given)

session = Session("one", state=Versioned(sys.argv[1]))
session.run("x = 1")
session.flush()
Committer._write_once = held_up
session.run("import os; token = os.urandom(4).hex(); open('token', 'w').write(token); None")
threading.Timer(0.5, may_commit.set).start()
print(eval(sys.argv[2]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("read", READS)
def test_value_that_the_host_has_read_is_the_same_after_the_death_of_its_program(url: str, read: str) -> None:
    command = [sys.executable, "-c", READING, url, READS[read]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with Session("one", state=Versioned(url)) as session:
        assert session.resumed is not None
        assert (session.resumed.lost, session.resumed.replayed) == ((), ())
        assert session["token"] == session.files.read("token").decode() == done.stdout.strip()


WITHOUT_STATE = """
import os, signal, sys
from cellblock import Session, Versioned

session = Session("one", state=Versioned(sys.argv[1]))
session.run("import os, time\\nclass Slow:\\n    def __reduce__(self): time.sleep(0.4); return Slow, ()")
for _ in range(8):
    session.run("slow = Slow(); token = os.urandom(4).hex(); open('token', 'w').write(token); None")
session.flush()
steps = [one.snapshot for one in session.log()].index(False)
exec(sys.argv[2])
print(eval(sys.argv[3]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    ("goes", "read"), [("session.undo(steps)", "get"), ("session.checkout(f'HEAD~{steps}')", "files.read")]
)
def test_value_is_the_same_that_was_read_where_cells_came_too_fast_to_be_saved(url: str, goes: str, read: str) -> None:
    command = [sys.executable, "-c", WITHOUT_STATE, url, goes, READS[read]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with Session("one", state=Versioned(url)) as session:
        assert session["token"] == session.files.read("token").decode() == done.stdout.strip()


READ_DURING_A_CELL = {
    "files.read": 'session.files.read("token").decode()',
    "files.read by a function of the cell": "asked.pop()",
    "a branch": 'session.branch("other")["token"]',
}
DURING = """
import os, signal, sys
from cellblock import Output, Session, Versioned

asked = []
def ask():
    asked.append(session.files.read("token").decode())

session = Session("one", state=Versioned(sys.argv[1]), tools=[ask])
session.run("import os, time\\nclass Slow:\\n    def __reduce__(self): time.sleep(0.4); return Slow, ()")
for _ in range(8):
    session.run("slow = Slow(); token = os.urandom(4).hex(); open('token', 'w').write(token); None")
session.flush()
session.undo([one.snapshot for one in session.log()].index(False))
events = session.stream("ask()\\nprint(1)\\nwhile True: time.sleep(0.01)")
next(one for one in events if isinstance(one, Output))
print(eval(sys.argv[2]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.sampled(0)
@pytest.mark.parametrize("read", READ_DURING_A_CELL)
def test_value_is_the_same_that_was_read_of_an_unsaved_state_while_a_cell_ran(url: str, read: str) -> None:
    command = [sys.executable, "-c", DURING, url, READ_DURING_A_CELL[read]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with Session("one", state=Versioned(url), tools=[ask]) as session:
        assert session["token"] == session.files.read("token").decode() == done.stdout.strip()


AFTER_A_FAILURE = """
import os, signal, sys
from cellblock import Session, Versioned
from cellblock.errors import CaptureFailed

session = Session("one", state=Versioned(sys.argv[1]))
session.run("import os, time\\nclass Slow:\\n    def __reduce__(self): time.sleep(0.4); return Slow, ()")
for _ in range(8):
    session.run("slow = Slow(); token = os.urandom(4).hex(); open('token', 'w').write(token); None")
session.flush()
steps = [one.snapshot for one in session.log()].index(False)
session.run("import os\\nos.register_at_fork(after_in_child=lambda: os._exit(1))")
try:
    session.flush()
except CaptureFailed:
    session.undo(steps + 1)
    print(session.unsaved, session["token"], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.sampled(0)
def test_value_is_the_same_that_was_read_after_another_state_that_could_not_be_saved_was_undone(url: str) -> None:
    command = [sys.executable, "-c", AFTER_A_FAILURE, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with Session("one", state=Versioned(url)) as session:
        assert f"() {session['token']}" == done.stdout.strip()


@pytest.mark.sampled(0)
def test_cell_that_was_run_again_unseen_is_named_by_the_next_cell(url: str) -> None:
    killed(url, BEGIN, 'session.run("import os; token = os.urandom(4)")')
    with Session("one", state=Versioned(url)) as session:
        assert session.resumed is not None
        assert [cell.number for cell in session.resumed.replayed] == [3]
        assert session.run("0").text.startswith(
            "[the session's last cells had not been saved: it was resumed from commit "
        )
        assert "run again" not in session.run("0").text
    with Session("one", state=Versioned(url)) as session:
        assert session.run("0").text == "0"
