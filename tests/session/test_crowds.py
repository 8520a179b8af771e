"""A session that runs more at once than there are processors for: few run, and all take turns."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cellblock import ExecutionLimits, Session
from cellblock.executors.process.kernel import ProcessKernel

pytestmark = pytest.mark.alone  # a crowd takes all processors

PROCESSORS = max(2, len(os.sched_getaffinity(0)))
FEW, CROWD = 2 * PROCESSORS, 4 * PROCESSORS + 4
LIMITS = ExecutionLimits(timeout_seconds=120, max_processes=CROWD + 40)

PRELUDE = """
import os, signal, time

def stat(pid):
    return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()

def ran(pid):
    return int(stat(pid)[11])  # user time, in hundredths of a second

def states(pids):
    return "".join(stat(pid)[0] for pid in pids)

def busy(many, setsid=False):
    pids = []
    for _ in range(many):
        pids.append(os.fork())
        if not pids[-1]:
            if setsid: os.setsid()
            while True: pass
    return pids

def soon(condition, seconds=60):
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.01)
    return found

def end(pids):
    for pid in pids: os.kill(pid, signal.SIGKILL)
    for pid in pids: os.waitpid(pid, 0)
"""


@pytest.fixture
def open_one(open_session: Callable[..., Session], readable_python: str) -> Callable[[str], Session]:
    """Opens sessions behind walls of a name."""

    def open_one(walls: str) -> Session:
        session = open_session(limits=LIMITS, walls=walls, python=readable_python)
        assert session.run(PRELUDE).error is None
        return session

    return open_one


@pytest.fixture
def session(open_one: Callable[[str], Session]) -> Session:
    return open_one("full")


@pytest.fixture(params=["full", "reduced"])
def any_session(request: pytest.FixtureRequest, open_one: Callable[[str], Session]) -> Session:
    return open_one(request.param)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("setsid", [False, True])
def test_a_crowd_takes_turns(session: Session, setsid: bool) -> None:
    assert session.run(f"pids = busy({CROWD}, setsid={setsid})").error is None
    waiting = f"soon(lambda: states(pids).count('T') == {CROWD - FEW})"
    assert session.run(waiting).value is True
    for _ in range(3):
        assert session.run("before = [ran(pid) for pid in pids]").error is None
        assert session.run("soon(lambda: all(ran(pid) > least for pid, least in zip(pids, before)))").value is True
    assert session.run(waiting).value is True
    assert session.run("end(pids)").error is None


@pytest.mark.sampled(0)
def test_who_waits_goes_on_when_the_crowd_has_gone(session: Session) -> None:
    session.run(f"pids = busy({CROWD})")
    assert session.run("soon(lambda: 'T' in states(pids))").value is True
    assert session.run(f"end(pids[{FEW}:])").error is None
    assert session.run(f"soon(lambda: 'T' not in states(pids[:{FEW}]))").value is True
    assert session.run(f"time.sleep(0.5)\nend(pids[:{FEW}])").error is None


def test_a_crowd_takes_turns_where_there_are_no_namespaces(open_one: Callable[[str], Session]) -> None:
    session = open_one("reduced")
    pids = session.run(f"pids = busy({CROWD}, setsid=True)\npids").value
    assert isinstance(pids, list)

    def waiting() -> int:
        return sum(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T" for pid in pids)

    deadline = time.monotonic() + 30
    while (count := waiting()) != CROWD - FEW and time.monotonic() < deadline:
        time.sleep(0.01)
    assert count == CROWD - FEW
    assert session.run("end(pids)").error is None


@pytest.mark.sampled(0)
def test_few_run_as_they_like_and_some_more_are_nice(session: Session) -> None:
    observe = "seen = set()\nfor _ in range(50): time.sleep(0.01); seen |= set(states(pids))\nseen"
    nice = "[os.getpriority(os.PRIO_PROCESS, pid) for pid in pids]"
    session.run(f"pids = busy({FEW}, setsid=True)")
    assert session.run(observe).value == {"R"}
    assert session.run(nice).value == [begun := os.nice(0)] * FEW
    session.run("pids += busy(2)")
    assert session.run(f"soon(lambda: {nice} == [{begun + 5}] * {FEW + 2})").value is True
    assert session.run(observe).value == {"R"}
    assert session.run("os.nice(0), end(pids)").value == (begun, None)


def test_what_was_made_nice_stays_so(any_session: Session) -> None:
    any_session.run("os.nice(3)")
    cell = any_session.run("os.setpriority(os.PRIO_PROCESS, 0, 0)")
    assert cell.error is not None
    assert cell.error.message == "[Errno 13] Permission denied"


@pytest.mark.sampled(0)
def test_init_interrupts_nobody_while_the_worker_is_alone(session: Session) -> None:
    kernel = session._session._kernel
    assert isinstance(kernel, ProcessKernel)
    told = Path(f"/proc/self/fdinfo/{kernel._shell.init}").read_text()
    init = int(told.partition("Pid:")[2].split()[0])

    def comes_to_be(policy: int) -> bool:
        deadline = time.monotonic() + 30
        while os.sched_getscheduler(init) != policy and time.monotonic() < deadline:
            time.sleep(0.01)
        return os.sched_getscheduler(init) == policy

    assert comes_to_be(os.SCHED_BATCH)
    session.run("pids = busy(2)")
    assert comes_to_be(os.SCHED_OTHER)
    session.run("end(pids)")
    assert comes_to_be(os.SCHED_BATCH)


@pytest.mark.sampled(0)
def test_processes_that_sleep_are_no_crowd(session: Session) -> None:
    session.run(
        "pids = []\n"
        f"for _ in range({CROWD}):\n"
        "    pids.append(os.fork())\n"
        "    if not pids[-1]:\n"
        "        while True: time.sleep(0.1)"
    )
    assert session.run("soon(lambda: states(pids) == 'S' * len(pids))").value is True  # all have begun
    observe = "seen = set()\nfor _ in range(100): time.sleep(0.01); seen |= set(states(pids))\n'T' in seen"
    assert session.run(observe).value is False
    assert session.run("end(pids)").error is None


@pytest.mark.sampled(0)
def test_a_crowd_that_does_not_wait_its_turn_ends_with_the_worker(any_session: Session) -> None:
    cell = any_session.run(f"""
pids = busy({CROWD + 30}, setsid=True)
while True:
    for pid in pids: os.kill(pid, signal.SIGCONT)
""")
    assert cell.error is not None
    assert cell.error.kind == "crashed"
    assert "leave it to the session to continue them (SIGCONT)" in cell.error.hint
    assert cell.error.message.startswith("the session's process was killed, as the session held ")
    assert cell.error.message.endswith(" processes that ran out of turn")
    assert any_session.run("6 * 7").value == 42


@pytest.mark.sampled(1)
def test_threads_in_a_crowd_run_when_nothing_else_wants_to(any_session: Session) -> None:
    any_session.run(f"""
import hashlib, threading
data = bytes(1 << 20)
def work():
    while going: hashlib.sha256(data)
going = True
threads = [threading.Thread(target=work) for _ in range({FEW + 8})]
for thread in threads: thread.start()
def idle(): return [os.sched_getscheduler(thread.native_id) == os.SCHED_IDLE for thread in threads]
""")
    assert any_session.run(f"soon(lambda: sum(idle()) > {FEW})").value is True
    assert any_session.run("os.sched_getscheduler(0) == os.SCHED_OTHER").value is True
    refused = any_session.run("os.sched_setscheduler(threads[0].native_id, os.SCHED_OTHER, os.sched_param(0))")
    assert refused.error is not None
    assert refused.error.message == "[Errno 1] Operation not permitted"
    assert any_session.run("going = False\nfor thread in threads: thread.join()").error is None


@pytest.mark.sampled(0)
def test_checkpoints_outlive_a_crowd(session: Session) -> None:
    session.run("x = 1")
    session.run(f"x = 2\npids = busy({CROWD + 30})\nsoon(lambda: 'T' in states(pids))\nend(pids)")
    session.undo()
    assert session.run("x").value == 1
    cell = session.run(f"""
x = 3
pids = busy({CROWD + 30})
while True:
    for pid in pids: os.kill(pid, signal.SIGCONT)
""")
    assert cell.error is not None
    assert session.run("x").value == 1
