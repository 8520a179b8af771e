"""One session, cell after cell that fails in every way there is: nothing piles up, on the host or inside."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from insides import ASK, Insides, weight

from cellblock import ExecutionLimits, Session

MB = 2**20
LIMITS = ExecutionLimits(
    timeout_seconds=1, interrupt_grace_seconds=0.2, max_memory_mb=64, max_checkpoint_mb=200, max_disk_mb=64
)

USUAL = {
    "raises": "changed = 1\n1 / 0",
    "no Python": "changed = (",
    "leaves": "raise SystemExit(3)",
    "too deep": "def deep(n): return deep(n + 1)\ndeep(0)",
    "ends its process": "kept.append(1)\nopen('kept', 'w').close()\nos._exit(3)",
    "a signal": "kept.append(1)\nos.kill(os.getpid(), 9)",
    "a broken pointer": "kept.append(1)\nimport ctypes\nctypes.string_at(0)",
    "an abort": "kept.append(1)\nos.abort()",
    "no memory at once": "block = bytearray(10 ** 10)",
    "children left behind": "kept.append(1)\nimport subprocess\nsubprocess.Popen(['sleep', '1000'])\nos._exit(1)",
    "a thread left behind": "import threading\nthreading.Timer(1000, print).start()\nos._exit(1)",
    "descriptors left open": "left = [open('/dev/null') for _ in range(50)], os.pipe()\nos._exit(1)",
    "a large file": "kept.append(1)\nopen('kept', 'wb').write(bytes(3 * 2 ** 20))\nos._exit(1)",
}
SELDOM = {
    "no memory, bit by bit": "hoard = []\nwhile True: hoard.append(bytearray(2 ** 20))",
    "too long": "kept.append(1)\nwhile True: pass",
    "too long, in C": "kept.append(1)\nsum(range(10 ** 12))",
    "a stop": "kept.append(1)\nos.kill(os.getpid(), 19)",
}


@dataclass(frozen=True)
class Held:
    """What the host and a session hold: descriptors, threads, processes, and bytes of memory."""

    descriptors: dict[str, int]
    threads: int
    processes: int
    memory: dict[str, int]


def held(session: Session, insides: Insides) -> Held:
    """With as many copies as there can be, once those that were let go have ended."""
    for _ in range(LIMITS.max_checkpoints + 1):
        session.delete(session.run("inside = len(os.listdir('/proc/self/fd'))").id)
    deadline = time.monotonic() + 10
    before = None
    while (now := _held(session, insides)) != before and time.monotonic() < deadline:
        before = now
        time.sleep(0.3)
    return now


def _held(session: Session, insides: Insides) -> Held:
    init, *others = insides.all()
    inside = session["inside"]
    assert isinstance(inside, int)
    weights = {"host": weight(os.getpid()), "init": weight(init.pid)}
    return Held(
        descriptors={"worker": inside, **{name: one[0] for name, one in weights.items()}},
        threads=threading.active_count(),
        processes=len(others),
        memory={"session": insides.held() >> 20 << 20, **{name: one[1] for name, one in weights.items()}},
    )


@pytest.fixture
def insides() -> Iterator[tuple[Session, Insides]]:
    if os.getuid() != 0:
        pytest.skip("what frozen copies hold is hidden from an ordinary user")
    with Session(limits=LIMITS) as session:
        namespace = str(session.run(ASK).value)
        session.run("kept = []\nopen('first', 'w').write('here')")
        yield session, Insides(namespace)


def fail(session: Session, chance: random.Random, *, seldom: float) -> str:
    """One cell; what it was to be."""
    kinds = SELDOM if chance.random() < seldom else USUAL
    name = chance.choice(list(kinds))
    cell = session.run(kinds[name])
    assert cell.error is not None, name
    if name == "too long":
        session.run("kept.clear()")  # it was interrupted, and what it did stays
    session.delete(cell.id)  # the record is the host's to keep, or not
    return name


def must_be_flat(begun: Held, ended: Held, cells: int) -> None:
    """But for the lines of cells that were not taken back, half a kilobyte each, which tracebacks may need."""
    assert all(ended.descriptors[name] <= begun.descriptors[name] for name in begun.descriptors), (begun, ended)
    assert ended.threads <= begun.threads
    assert ended.processes == begun.processes == 2 + LIMITS.max_checkpoints  # each state, and the present
    grown = {name: ended.memory[name] - begun.memory[name] for name in begun.memory}
    assert max(grown.values()) < 4 * MB + cells * 512, (begun, ended)


def go_through(insides: tuple[Session, Insides], cells: int, *, seldom: float, report: Callable[[str], None]) -> None:
    session, inside = insides
    chance = random.Random(1)
    for _ in range(cells // 10):
        fail(session, chance, seldom=seldom)
    begun = held(session, inside)
    seen: dict[str, int] = {}
    for number in range(cells):
        name = fail(session, chance, seldom=seldom)
        seen[name] = seen.get(name, 0) + 1
        if number % 50 == 49:
            cell = session.run("kept, sorted(os.listdir()), open('first').read()")
            assert (cell.value, cell.lost) == (([], ["first"], "here"), ()), seen
            session.delete(cell.id)
    assert len(seen) >= len(USUAL)
    ended = held(session, inside)
    report(f"{cells} cells that failed: before {begun}, after {ended}")
    must_be_flat(begun, ended, cells)


@pytest.mark.slow
def test_three_hundred_cells_that_fail_leave_nothing(insides: tuple[Session, Insides]) -> None:
    go_through(insides, 300, seldom=0.003, report=lambda line: None)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ten_thousand_cells_that_fail_leave_nothing(
    insides: tuple[Session, Insides], capsys: pytest.CaptureFixture[str]
) -> None:
    def report(line: str) -> None:
        with capsys.disabled():
            print(line)

    go_through(insides, 10_000, seldom=0.01, report=report)
