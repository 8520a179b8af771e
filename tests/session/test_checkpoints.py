"""Checkpoints: whatever ends a cell's process costs that cell and nothing else; any cell can be undone."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from family_tree import below, soon

from cellblock import AsyncSession, CellblockError, ExecutionLimits, Session
from cellblock.worker import control
from cellblock.worker.checkpoint import descriptors

LIMITS = ExecutionLimits(timeout_seconds=2, interrupt_grace_seconds=0.2, max_memory_mb=256)

STATE = {
    "a list": ("items = [1]", "items.append(2)", "items", [1]),
    "a generator": ("squares = (n * n for n in range(100)); next(squares)", "next(squares)", "next(squares)", 1),
    "a lambda": ("double = lambda n: 2 * n", "double = None", "double(4)", 8),
    "a closure": (
        "def counter():\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n        return n\n"
        "    return up\n"
        "up = counter(); up()",
        "up(); up()",
        "up()",
        2,
    ),
    "an in-memory database": (
        "import sqlite3\ndb = sqlite3.connect(':memory:')\ndb.execute('create table t (a)')",
        "db.execute('insert into t values (1)')",
        "db.execute('select count(*) from t').fetchone()",
        (0,),
    ),
    "random": ("import random\nrandom.seed(7)", "random.random()", "random.random()", 0.32383276483316237),
    "an imported module": ("import math", "del math", "math.sqrt(4)", 2.0),
    "a patched module": ("import json\njson.mine = 1", "json.mine = 2", "json.mine", 1),
    "a file": (
        "with open('kept.txt', 'w') as f: _ = f.write('first')",
        "with open('kept.txt', 'w') as f: _ = f.write('second')",
        "open('kept.txt').read()",
        "first",
    ),
    "a deleted file": (
        "open('doomed.txt', 'w').close()",
        "import os\nos.remove('doomed.txt')",
        "open('doomed.txt').read()",
        "",
    ),
    "a new file": ("0", "open('new.txt', 'w').close()", "import os\nos.path.exists('new.txt')", False),
    "a file in /tmp": (
        "open('/tmp/a', 'w').close()",
        "import os\nos.rename('/tmp/a', '/tmp/b')",
        "import os\nos.path.exists('/tmp/a'), os.path.exists('/tmp/b')",
        (True, False),
    ),
    "an open file's position": (
        "with open('in', 'w') as f: _ = f.write('abcdef')\nreader = open('in')\nreader.read(2)",
        "reader.read()",
        "reader.read(2)",
        "cd",
    ),
    "an open file's buffer": (
        "log = open('log', 'w')\n_ = log.write('one')",
        "_ = log.write('two'); log.flush()",
        "log.close()\nopen('log').read()",
        "one",
    ),
    "an event loop": (
        "import asyncio\nqueue = asyncio.Queue()\nawait queue.put(1)",
        "await queue.get()",
        "await asyncio.wait_for(queue.get(), 1)",
        1,
    ),
}

ENDS = {
    "leaves": ("import os\nos._exit(3)", "crashed"),
    "a signal": ("import os\nos.kill(os.getpid(), 11)", "crashed"),
    "a broken pointer": ("import ctypes\nctypes.string_at(0)", "crashed"),
    "no memory": ("hoard = []\nwhile True: hoard.append(bytearray(2 ** 20))", "memory"),
    "a C loop": ("sum(range(10 ** 12))", "timeout"),
    "a stop": ("import os\nos.kill(os.getpid(), 19)", "timeout"),
    "a C stack overflow": ("import faulthandler\nfaulthandler._stack_overflow()", "crashed"),
    "a fork bomb": (
        "import os, signal\nsignal.signal(2, 1)\nwhile True:\n    try: os.fork()\n    except OSError: pass",
        "timeout",
    ),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("end", ENDS)
def test_what_a_cell_did_is_gone_with_it_and_all_else_is_as_it_was(
    open_session: Callable[..., Session], end: str
) -> None:
    session = open_session(limits=LIMITS)
    for before, _, _, _ in STATE.values():
        assert session.run(before).ok, before
    changes = "\n".join(during for _, during, _, _ in STATE.values())
    source, kind = ENDS[end]
    cell = session.run(f"{changes}\n{source}")
    assert cell.error is not None
    assert (cell.error.kind, cell.rolled_back, cell.lost) == (kind, True, ()), cell.text
    for name, (_, _, look, value) in STATE.items():
        found = session.run(look)
        assert (found.value, found.error) == (value, None), name


WORKERS: dict[str, Callable[[Session], Session]] = {
    "the first": lambda session: session,
    "one that was woken": lambda session: (session.run("import os\nos._exit(3)"), session)[1],
    "one with threads": lambda session: (
        session.run("import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()"),
        session,
    )[1],
    "a branch's": lambda session: session.branch(),
}


@pytest.mark.sampled(0)
@pytest.mark.parametrize("how", ["os.killpg(0, 9)", "os.kill(-os.getpid(), 9)"])
@pytest.mark.parametrize("worker", WORKERS)
def test_signal_to_the_group_of_a_cell_spares_the_copy_that_is_just_made(
    session: Session, worker: str, how: str
) -> None:
    """The copy takes its time, so that the cell comes first: what a cell registers for forks runs in it."""
    session.run("import os, time\nx = 1")
    with WORKERS[worker](session) as of:
        of.run("hook = os.register_at_fork(after_in_child=lambda: time.sleep(0.3))")
        cell = of.run(how)
        assert cell.error is not None
        assert cell.error.kind == "crashed"
        assert (cell.rolled_back, [one.name for one in cell.lost if one.type != "Thread"]) == (True, [])
        assert of.run("x, hook").value == (1, None)


def test_the_working_directory_comes_back(session: Session) -> None:
    session.run("import os\nos.mkdir('d')\nos.chdir('d')")
    session.run("os.chdir('/tmp')\nos.rmdir('/workspace/d')\nos._exit(1)")
    assert session.run("os.path.realpath(os.getcwd())").value == "/session/workspace/d"


@pytest.mark.sampled(0)
def test_oldest_copies_end_though_the_event_loop_gets_no_turn() -> None:
    async def counts() -> tuple[int, object]:
        async with AsyncSession(limits=ExecutionLimits(max_checkpoints=2, timeout_seconds=20)) as session:
            for _ in range(3):
                await session.run("x = 1")
            await asyncio.sleep(0.5)
            before = len(below())
            await session.run("x = 1")  # most likely so short that nothing is waited for on the loop
            time.sleep(0.3)  # its own copy is there
            return before, soon(lambda: len(below()), before)

    before, then = asyncio.run(counts())
    assert then == before


def test_file_whose_number_is_free_is_opened_again_under_it(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("text")
    number = os.open(tmp_path / "f", os.O_RDONLY)
    held = [one for one in descriptors.held(()) if one.number == number]
    os.close(number)
    assert descriptors.take_up(held) == descriptors.TakenUp()
    assert (os.read(number, 9), os.get_inheritable(number)) == (b"text", False)
    os.close(number)


@pytest.mark.sampled(0)
def test_copies_that_become_ready_when_nobody_wants_them_any_more_end(open_session: Callable[..., Session]) -> None:
    """The session's own processes keep a copy from the processor until later cells have been run."""
    session = open_session(limits=ExecutionLimits(max_checkpoints=1, timeout_seconds=60))
    for _ in range(3):
        session.run("1")
    before = soon(lambda: len(below()), -1, seconds=1)
    session.run("import subprocess\nbusy = [subprocess.Popen(['sh', '-c', 'while :; do :; done']) for _ in range(6)]")
    for _ in range(100):
        session.run("1")
    session.run("for one in busy: one.kill()\nfor one in busy: one.wait()")
    for _ in range(2):
        session.run("1")
    assert soon(lambda: len(below()) <= before, True) is True


def test_without_checkpoints_there_is_no_state_to_go_back_to() -> None:
    with Session(limits=ExecutionLimits(max_checkpoints=0)) as session:
        state = session.checkpoint()
        session.run("x = 1")
        with pytest.raises(CellblockError, match="nothing can be undone"):
            session.undo(to=state)
        assert session.run("x").value == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("depth", [0, 1])
def test_the_first_process_is_hidden_again_after_a_set_back(depth: int, open_session: Callable[..., Session]) -> None:
    """What the kernel shows of a process that hides itself belongs to root."""
    session = open_session(limits=ExecutionLimits(timeout_seconds=20, max_checkpoints=depth))
    session.run("x = 1")
    first = Path(f"/proc/self/fdinfo/{session._session._living()._shell.init}").read_text()
    (pid,) = (line.split()[1] for line in first.splitlines() if line.startswith("Pid:"))

    def owner() -> int:
        return os.stat(f"/proc/{pid}/environ").st_uid

    for _ in range(3):
        session.run("import os\nos._exit(3)")
        assert session.run("1").ok
        assert soon(owner, 0) == 0
        if depth:
            session.undo()  # to a frozen copy
            assert owner() == 0


def test_frozen_copies_raise_no_signal_in_the_process_that_they_are_of(session: Session) -> None:
    session.run("import signal\nraised = []\nsignal.signal(signal.SIGCHLD, lambda *_: raised.append(1))")
    for _ in range(3):
        session.run("pass")
    session.undo()
    session.run("pass")
    session.branch().close()
    assert session.run("raised").value == []


PASSES_ITSELF_OFF = f"""
import contextlib, os, socket, stat, time
ends = [end for end in range(6, 64) if os.path.exists(f"/proc/self/fd/{{end}}")]
ends = [os.dup(end) for end in ends if stat.S_ISSOCK(os.fstat(end).st_mode)]
pid = os.fork()
if not pid:
    os.setsid()
    if DAEMON and os.fork(): os._exit(0)
    for end in ends:
        with contextlib.suppress(OSError):
            socket.socket(fileno=end).send({control.READY!r})
    for beat in range(100_000):
        time.sleep(WAITS if not beat else 0.01)
        with open("beat", "w") as file: file.write(str(beat))
time.sleep(0.3)
"""


@pytest.mark.sampled(1)
@pytest.mark.threat("W7")
@pytest.mark.parametrize("waits", [0.01, 1])
@pytest.mark.parametrize("daemon", [False, True])
def test_process_that_passes_itself_off_as_a_frozen_copy_is_frozen(
    session: Session, daemon: bool, waits: float
) -> None:
    session.run("x = 0")
    session.run(f"DAEMON, WAITS = {daemon}, {waits}\n{PASSES_ITSELF_OFF}")
    session.run("x = 1")
    session.run("x = 2")
    session.undo()
    assert session.run("x").value == 1
    time.sleep(waits)

    def beat() -> object:
        return session.run("open('beat').read() if os.path.exists('beat') else ''").value

    before = beat()
    session.run("time.sleep(0.5)")
    assert beat() == before


def test_descriptor_of_a_directory_leads_to_it_after_an_undo(session: Session) -> None:
    session.run("import os\nfor name in 'ab':\n    os.mkdir(name); open(f'{name}/n', 'w').write(name)")
    session.run("directory = os.open('a', os.O_RDONLY)")
    read = "os.read(os.open('n', os.O_RDONLY, dir_fd=directory), 9)"
    for step in ("os.rename('a', 't'); os.rename('b', 'a'); os.rename('t', 'b')", "os.remove('a/n'); os.rmdir('a')"):
        assert session.run(step).ok
        session.undo()
        assert session.run(read).value == b"a"
