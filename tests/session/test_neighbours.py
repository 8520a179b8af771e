"""A session at its worst: the one beside it answers right and keeps its state, and it goes on itself."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cellblock import Cell, CellState, ExecutionLimits, Session
from cellblock.executors.process import cgroups
from cellblock.executors.process.delegation import NotDelegated

pytestmark = pytest.mark.alone  # bombs take all processors

LIMITS = ExecutionLimits(
    timeout_seconds=1.5,
    interrupt_grace_seconds=0.5,
    max_memory_mb=128,
    max_disk_mb=32,
    max_files=2000,
    max_processes=48,
)
PATIENT = ExecutionLimits(timeout_seconds=60)

BOMBS = {
    "memory of one process": "hoard = []\nwhile True: hoard.append(bytes(1 << 20))",
    "memory of many processes": """
import os
while True:
    try: os.fork()
    except OSError: pass
    hoard = bytearray(b"x") * (30 << 20)
""",
    "forks": """
import os
while True:
    try: os.fork()
    except OSError: pass
""",
    "forks that leave": """
import os
while True:
    try:
        if os.fork() == 0: os.setsid()
    except OSError: pass
""",
    "threads": """
import threading
while True:
    try: threading.Thread(target=threading.Event().wait, daemon=True).start()
    except (RuntimeError, MemoryError): pass
""",
    "descriptors": """
import os
while True:
    try: os.open("/dev/null", os.O_RDONLY)
    except OSError: pass
""",
    "output": "while True: print('x' * 1000)",
    "output of many processes": "import os\nos.system('yes & yes & yes & yes 1>&2')",
    "disk": """
import itertools
for number in itertools.count():
    try: open(f"/tmp/{number}", "wb").write(bytes(1 << 20))
    except OSError: pass
""",
    "many files": """
import itertools
for number in itertools.count():
    try: open(f"file{number}", "w").close()
    except OSError: pass
""",
    "sockets": """
import socket
ends = []
while True:
    try:
        ends += socket.socketpair()
        ends[-1].setblocking(False)
        while True: ends[-1].send(bytes(65536))
    except OSError: pass
""",
}


@pytest.fixture
def neighbour(open_session: Callable[..., Session]) -> Session:
    """A session with names, a file, and a process."""
    session = open_session(limits=PATIENT)
    session.run("import os, subprocess\ntotal = 0\nkept = {'rows': list(range(1000))}")
    session.run("child = subprocess.Popen(['sleep', '1000'])")
    session.files.write("kept", b"kept")
    return session


@pytest.mark.sampled(1)
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_neighbour_is_unharmed_and_the_session_goes_on(
    bomb: str, neighbour: Session, open_session: Callable[..., Session]
) -> None:
    session = open_session(limits=LIMITS)
    cells: list[Cell] = []
    attack = threading.Thread(target=lambda: cells.append(session.run(BOMBS[bomb])))
    attack.start()
    answers = 0
    while attack.is_alive():
        answers += 1
        assert neighbour.run(f"total += {answers}\ntotal").value == answers * (answers + 1) // 2
        assert neighbour.run("len(open('/usr/bin/env', 'rb').read(2)), sum(kept['rows'])").value == (2, 499500)
    attack.join()
    assert answers >= 1
    assert neighbour.run("child.poll() is None, open('kept').read()").value == (True, "kept")
    assert neighbour.run("open('more', 'wb').write(bytes(1 << 20)), len(os.pipe())").value == (1 << 20, 2)
    assert [cell.lost for cell in neighbour.notebook.cells if cell.lost] == []
    assert cells[0].state in (CellState.TIMEOUT, CellState.ERROR)
    assert session.run("6 * 7").value == 42


USABLE = """
import os, subprocess, threading
for place in (".", "/tmp"):
    for name in os.listdir(place):
        if os.path.isfile(f"{place}/{name}"): os.unlink(f"{place}/{name}")
open("file", "wb").write(bytes(1 << 20))
done = []
one = threading.Thread(target=done.append, args=(1,))
one.start()
one.join()
subprocess.run(["true"]).returncode, done, os.path.getsize("file")
"""


@pytest.mark.sampled(0)
@pytest.mark.parametrize("bomb", ["forks", "forks that leave", "output of many processes", "disk", "many files"])
def test_the_next_cell_can_do_all_that_the_bomb_used_up(bomb: str, open_session: Callable[..., Session]) -> None:
    session = open_session(limits=LIMITS)
    assert session.run(BOMBS[bomb]).state is CellState.TIMEOUT
    cell = session.run(USABLE)
    assert cell.value == (0, [1], 1 << 20), cell.text


@pytest.mark.sampled(0)
@pytest.mark.parametrize("bomb", ["threads", "descriptors", "sockets"])
def test_what_a_bomb_leaves_in_its_own_process_goes_with_that(bomb: str, open_session: Callable[..., Session]) -> None:
    session = open_session(limits=LIMITS)
    session.run(BOMBS[bomb])
    assert session.run("6 * 7").value == 42
    session.kill()
    session.run("pass")
    cell = session.run(USABLE)
    assert cell.value == (0, [1], 1 << 20), cell.text


def held() -> dict[str, int]:
    """What this process has: descriptors, processes below it, directories of control groups."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    below, wave = 0, {os.getpid()}
    while wave := {pid for pid, parent in parents.items() if parent in wave}:
        below += len(wave)
    try:
        groups = cgroups.of_this_process().folders()
    except NotDelegated:
        groups = []
    return {"descriptors": len(os.listdir("/proc/self/fd")), "processes": below, "groups": len(groups)}


@pytest.mark.slow
def test_ten_fork_bombs_leave_no_process_no_group_and_no_descriptor() -> None:
    def bomb() -> None:
        with Session(limits=LIMITS) as session:
            assert session.run(BOMBS["forks"]).state is CellState.TIMEOUT
            assert session.run("6 * 7").value == 42

    def more() -> dict[str, int]:
        return {what: count for what, count in held().items() if count > before[what]}

    bomb()
    before = held()
    for _ in range(10):
        bomb()
    end = time.monotonic() + 20
    while more() and time.monotonic() < end:
        time.sleep(0.05)
    assert more() == {}
