"""Threads, processes and timers of a cell that go on after it: what they did is saved before their process is left."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from cellblock import ExecutionLimits, Session, Versioned

Open = Callable[..., Session]

BEGIN = """
import os, signal, subprocess, threading, time
done = []
def act():
    time.sleep(0.2)
    open('out.txt', 'w').write('done')
    done.append(1)
"""
LEFT = {
    "thread": "threading.Thread(target=act).start()",
    "timer of a thread": "threading.Timer(0.1, act).start()",
    "thread that another wakes": (
        "woken = threading.Event()\nthreading.Thread(target=lambda: (woken.wait(), act())).start()\n"
        "threading.Timer(0.2, woken.set).start()"
    ),
    "alarm": "signal.signal(signal.SIGALRM, lambda *_: act())\nsignal.setitimer(signal.ITIMER_REAL, 0.1)",
    "thread that ends a process": (
        "threading.Thread(target=lambda: (subprocess.run(['sleep', '0.2']), act())).start()"
    ),
    "process": "p = subprocess.Popen(['sh', '-c', 'sleep 0.2; echo done > out.txt'])",
    "process beside one that has ended": (
        "e = subprocess.Popen(['true'])\ntime.sleep(0.2)\n"
        "p = subprocess.Popen(['sh', '-c', 'sleep 0.2; echo done > out.txt'])"
    ),
    "process of an idle thread beside one that has ended": (
        "from concurrent.futures import ThreadPoolExecutor\ne = subprocess.Popen(['true'])\ntime.sleep(0.2)\n"
        "pool = ThreadPoolExecutor(1)\n"
        "p = pool.submit(subprocess.Popen, ['sh', '-c', 'sleep 0.4; echo done > out.txt']).result()\ntime.sleep(0.1)"
    ),
    "process of a process": "subprocess.run(['sh', '-c', '(sleep 0.2; echo done > out.txt) &'])",
    "forked process": "if not os.fork():\n    act()\n    os._exit(0)",
    "process that hears no signal": (
        "if not os.fork():\n    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\n"
        "    act()\n    time.sleep(60)"
    ),
    "ended process of a process, which heard no signal": (
        "if not os.fork():\n    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\n"
        "    if not os.fork(): act()\n    os._exit(0)"
    ),
}


def _flush_and_kill(session: Session) -> None:
    session.flush()
    session.kill()


SAVING: dict[str, Callable[[Session], None]] = {
    "hibernate": lambda session: session.hibernate(),
    "close": lambda session: session.close(),
    "flush and kill": _flush_and_kill,
}


def _wait_until_done(session: Session) -> None:
    deadline = time.monotonic() + 20
    while "out.txt" not in session.files.list() or not session.files.read("out.txt"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.1)  # a thread goes on after it has written


def _state(session: Session) -> tuple[bool, object]:
    return session.run("os.path.exists('out.txt')").value is True, session["done"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("saving", SAVING)
@pytest.mark.parametrize("left", LEFT)
def test_effects_after_the_end_of_a_cell_are_saved(opened: Open, left: str, saving: str) -> None:
    session = opened()
    assert session.run(BEGIN).ok
    assert session.run(LEFT[left]).ok
    _wait_until_done(session)
    before = session["done"]
    SAVING[saving](session)
    session.close()
    assert _state(opened()) == (True, before)


@pytest.mark.sampled(0)
def test_effects_of_a_command_in_the_background_are_saved(opened: Open) -> None:
    session = opened()
    session.run(BEGIN)
    session.shell("(sleep 0.2; echo done > out.txt) &")
    _wait_until_done(session)
    session.hibernate()
    assert _state(session) == (True, [])


@pytest.mark.sampled(0)
@pytest.mark.parametrize("left", ["thread", "process", "process of a process"])
def test_effects_are_saved_though_they_were_waited_for_aside(opened: Open, left: str) -> None:
    session = opened()
    session.run(BEGIN)
    session.run(LEFT[left])
    session.aside("while not os.path.exists('out.txt') or threading.active_count() > 1: time.sleep(0.01)", reads=True)
    if left == "process":
        assert session.aside("p.wait()", reads=True) == 0
    time.sleep(0.1)
    assert session.aside("1", reads=True) == 1
    done = session["done"]
    session.hibernate()
    assert _state(session) == (True, done)


@pytest.mark.sampled(0)
def test_effects_are_saved_though_the_host_wrote_a_file_meanwhile(opened: Open) -> None:
    session = opened()
    session.run(BEGIN)
    session.run(LEFT["thread"])
    session.files.write("a", b"")
    _wait_until_done(session)
    session.hibernate()
    assert _state(session) == (True, [1])


@pytest.mark.sampled(0)
def test_effects_are_saved_by_the_hibernation_of_an_idle_session(url: str) -> None:
    with Session("one", state=Versioned(url, hibernate_after=1.0)) as session:
        session.run(BEGIN)
        session.run(LEFT["thread"])
        deadline = time.monotonic() + 20
        while "asleep" not in repr(session):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert _state(session) == (True, [1])


@pytest.mark.sampled(0)
def test_effects_go_to_a_branch_and_stay_beside_a_merge_and_a_checkout(opened: Open) -> None:
    session = opened()
    session.run(BEGIN)
    session.run(LEFT["thread"])
    _wait_until_done(session)
    with session.branch() as branch:
        assert _state(branch) == (True, [1])
        branch.run("other = 1")
        session.run(LEFT["process"].replace("out.txt", "more.txt"))
        while "more.txt" not in session.files.list():
            time.sleep(0.01)
        session.merge(branch)
    assert _state(session) == (True, [1])
    assert "more.txt" in session.files.list()


TIMERS = {
    "once": "signal.setitimer(signal.ITIMER_REAL, 0.2)",
    "again and again": "signal.setitimer(signal.ITIMER_REAL, 0.2, 0.02)",
}
TICK = """
import os, signal
n = 0
def tick(*_):
    global n
    n += 1
signal.signal(signal.SIGALRM, tick)
"""


def _ticks(session: Session) -> int:
    return int(str(session["n"]))


def _wait_for_ticks(session: Session, least: int) -> int:
    deadline = time.monotonic() + 30
    while (n := _ticks(session)) < least:
        assert time.monotonic() < deadline
    return n


def _end_in_a_cell(session: Session, _opened: Open) -> Session:
    assert session.run("os._exit(3)").rolled_back
    return session


def _end_between_cells(session: Session, _opened: Open) -> Session:
    session.kill()
    _ticks(session)
    return session


def _undo(session: Session, _opened: Open) -> Session:
    session.run("other = 1")
    session.run("other = 2")
    session.undo(2)
    return session


def _undo_a_file(session: Session, _opened: Open) -> Session:
    session.files.write("a", b"")
    session.undo()
    return session


def _branch(session: Session, _opened: Open) -> Session:
    return session.branch()


def _undo_in_a_branch(session: Session, _opened: Open) -> Session:
    branch = session.branch()
    branch.run("other = 1")
    branch.undo()
    return branch


def _write_a_file(session: Session, opened: Open) -> Session:
    _end_in_a_cell(session, opened)
    session.files.write("a", b"")
    return session


MOVES: dict[str, Callable[[Session, Open], Session]] = {
    "end in a cell": _end_in_a_cell,
    "end between cells": _end_between_cells,
    "undo": _undo,
    "undo of a file": _undo_a_file,
    "branch": _branch,
    "undo in a branch": _undo_in_a_branch,
    "end and a file": _write_a_file,
}


def _same_once_saved(session: Session, saving: str, opened: Open, name: str) -> bool:
    """What the session is opened with again is no older than what was read before it was saved."""
    ran = _ticks(session)
    SAVING[saving](session)
    session.close()
    return _ticks(opened(name)) >= ran > 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("timer", TIMERS)
@pytest.mark.parametrize("move", MOVES)
def test_effects_of_a_timer_that_a_woken_process_brought_along_are_saved(opened: Open, move: str, timer: str) -> None:
    session = opened()
    session.run(TICK)
    session.run(TIMERS[timer])
    moved = MOVES[move](session, opened)
    _wait_for_ticks(moved, 1 if timer == "once" else 5)
    name = moved.name
    assert name is not None
    assert _same_once_saved(moved, "hibernate", opened, name)


@pytest.mark.sampled(0)
@pytest.mark.parametrize("saving", SAVING)
def test_effects_of_a_timer_are_saved_in_a_session_that_was_opened_again(opened: Open, saving: str) -> None:
    session = opened()
    session.run(TICK)
    session.close()
    session = opened()
    session.run(TIMERS["again and again"])
    session.run("os._exit(3)")
    _wait_for_ticks(session, 5)
    assert _same_once_saved(session, saving, opened, "one")


@pytest.mark.sampled(0)
@pytest.mark.parametrize("leaving", ["checkout", "merge"])
def test_effects_of_a_timer_stay_beside_a_checkout_and_a_merge(opened: Open, leaving: str) -> None:
    session = opened()
    session.run(TICK)
    with session.branch() as branch:
        branch.run("other = 1")
        session.run(TIMERS["again and again"])
        session.run("os._exit(3)")
        ran = _wait_for_ticks(session, 5)
        if leaving == "merge":
            session.merge(branch)
        else:
            session.checkout("HEAD")
    assert _ticks(session) >= ran


@pytest.mark.sampled(0)
def test_effects_of_a_timer_are_saved_where_an_undone_step_was_saved_last(opened: Open) -> None:
    session = opened()
    session.run(TICK)
    session.run(TIMERS["again and again"])
    session.run("other = 1")
    session.flush()
    session.undo()
    _wait_for_ticks(session, 5)
    assert _same_once_saved(session, "flush and kill", opened, "one")


@pytest.mark.sampled(0)
def test_effects_of_a_timer_that_ran_out_while_its_process_was_woken_are_saved(opened: Open) -> None:
    session = opened()
    session.run(TICK)
    session.run(
        "import io, time\nclass Slow(io.RawIOBase):\n    def fileno(self):\n        time.sleep(0.4)\nslow = Slow()"
    )
    session.run(TIMERS["once"])
    session.run("os._exit(3)")
    assert _same_once_saved(session, "hibernate", opened, "one")


@pytest.mark.sampled(0)
def test_effects_belong_to_the_step_that_they_came_after(opened: Open) -> None:
    session = opened()
    session.run(BEGIN)
    session.run(LEFT["thread"])
    _wait_until_done(session)
    session.flush()
    session.undo()
    assert _state(session) == (False, [])


@pytest.mark.sampled(0)
def test_branch_that_ended_leaves_nothing_to_commit(opened: Open) -> None:
    session = opened()
    session.run("x = 1")
    with session.branch() as branch:
        branch.run("x = 2")
        branch.kill()
        branch.run("x = 3")
    session.flush()
    session.run("y = 1")
    session.hibernate()
    assert [one.kind for one in session.log()] == ["python", "python", "open"]


@pytest.mark.sampled(0)
def test_session_without_anything_left_is_committed_by_its_steps_alone(opened: Open) -> None:
    session = opened(limits=ExecutionLimits(max_checkpoints=2))
    session.shell("true")
    session.run("import subprocess; subprocess.run(['true'], check=True)")
    for number in range(8):
        session.run(f"x = {number}")
        session.flush()
        if number == 3:
            session.kill()
    session.hibernate()
    session.run("y = 2")
    session.close()
    assert [one.kind for one in opened().log()] == ["python"] * 10 + ["shell", "open"]


ENDED = {
    "threads that wait for the next cell": (
        "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(3)\n"
        "list(pool.map(time.sleep, [0.05] * 3))\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\nsubprocess.Popen(['true'])"
    ),
    "a child": "p = subprocess.Popen(['true'])",
    "children": "for _ in range(3): subprocess.Popen(['true'])",
    "a killed child": "if not (pid := os.fork()): signal.pause()\nos.kill(pid, 9)",
    "a child of a child": "subprocess.run(['sh', '-c', 'true &'])",
}


@pytest.mark.sampled(0)
@pytest.mark.parametrize("ended", ENDED)
def test_what_goes_on_no_more_is_saved_once_though_it_is_there(opened: Open, ended: str) -> None:
    session = opened()
    session.run(BEGIN)
    session.run(f"{ENDED[ended]}\ntime.sleep(0.3)")
    session.flush()
    saved = session.log()
    for _ in range(3):
        session.flush()
    assert session.log() == saved
    session.run("x = 1")
    assert len(session.log()) == len(saved) + 1
