"""A session that lasts and whose processes all end, from outside: the next call resumes it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest
from family_tree import Process, below, inits_of, launchers, nursery_of, soon, workers_of

from cellblock import Session, Versioned, tool

CALLS: list[int] = []
OTHERS: set[int] = set()


@tool
def ask(number: int) -> int:
    """A number of the host's."""
    CALLS.append(number)
    return number + len(CALLS)


@pytest.fixture
def last(tmp_path: Path) -> Iterator[Session]:
    """A session that lasts, in a family that no other test uses."""
    state = Versioned(f"sqlite:///{tmp_path}/cells.db")
    others = {one.pid for one in launchers()}
    with Session("one", state=state, preload=["colorsys"], tools=[ask]) as session:
        OTHERS.update(others)
        yield session
    for launcher in own_launchers():
        os.kill(launcher.pid, signal.SIGKILL)
    assert soon(own_launchers, []) == []
    OTHERS.clear()


def own_launchers() -> list[Process]:
    return [one for one in launchers() if one.pid not in OTHERS]


def end_all(which: str) -> None:
    """Kill what the session's processes die with, and wait until they have."""
    workers = set[int]()
    for launcher in own_launchers():
        workers |= {one.pid for one in workers_of(launcher)}
        victims: dict[str, Callable[[Process], list[Process]]] = {
            "nursery": lambda one: [nursery_of(one)],
            "launcher": lambda one: [one],
            "init": inits_of,
        }
        for one in victims[which](launcher):
            os.kill(one.pid, signal.SIGKILL)
    assert soon(lambda: workers & {one.pid for one in below(1)}, set()) == set()


@pytest.mark.sampled(0)
def test_a_step_is_gone_back_to_in_the_processes_that_take_the_place_of_others(last: Session) -> None:
    last.run("x = 1")
    here = last.checkpoint()
    for value in (2, 3, 4):
        last.run(f"x = {value}")
    end_all("init")
    assert last["x"] == 4
    last.undo(to=last.checkpoint())
    assert last["x"] == 4
    last.undo(to=here)
    assert (last["x"], last.checkpoint()) == (1, here)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("which", ["nursery", "launcher", "init"])
def test_the_next_cell_resumes_it_and_says_from_where(last: Session, which: str) -> None:
    last.run("rows = [1]; view = rows; lines = (n for n in range(3)); next(lines)")
    last.run("rows.append(2); open('f', 'w').write('text')")
    last.flush()
    (newest, *_) = last.log()
    end_all(which)
    cell = last.run("view, view is rows, open('f').read()")
    assert (cell.value, cell.number) == (([1, 2], True, "text"), 3)
    commit = newest.id.removeprefix("sha256-")[:12]
    assert cell.text.startswith(f"[all processes of the session had ended: it was resumed from commit {commit}]\n")
    assert [one.name for one in cell.lost] == ["lines"]
    assert last.resumed is not None
    assert (last.resumed.commit, last.resumed.replayed) == (newest.id, ())
    assert [one.name for one in last.resumed.lost] == ["lines"]
    after = last.run("1")
    assert (after.text, after.lost) == ("1", ())
    assert [one.number for one in last.notebook.cells] == [1, 2, 3, 4]
    last.undo(2)
    assert last.run("rows").value == [1, 2]


def test_what_was_not_committed_is_run_again_with_the_answers_of_then(last: Session) -> None:
    CALLS.clear()
    last.run("import time; began = time.time()")
    last.flush()
    for _ in range(4):  # faster than they can all be saved
        last.run("total = globals().get('total', 0) + ask(1)")
    end_all("nursery")
    cell = last.run("total")
    assert (cell.value, len(CALLS)) == (2 + 3 + 4 + 5, 4)
    assert last.resumed is not None
    again = [one.number for one in last.resumed.replayed]
    told = f"; run again after it: {', '.join(map(str, again))}]" if again else "]"
    assert cell.text.splitlines()[0].endswith(told)


@pytest.mark.sampled(0)
def test_the_cell_that_they_end_under_is_told_and_rolled_back(last: Session) -> None:
    last.run("x = 1")
    events = last.stream("x = 2\nopen('f', 'w').close()\nprint('begun')\nwhile True: pass")
    next(events)
    end_all("nursery")
    *_, done = events
    error = done.cell.error  # type: ignore[union-attr]
    assert error is not None
    assert (error.type, error.kind, done.cell.rolled_back) == ("ProcessDied", "crashed", True)  # type: ignore[union-attr]
    assert error.message.endswith(": its first process is gone")  # of its files the hint tells
    assert error.hint == "the next call resumes the session from its newest commit, as it was before this cell"
    assert last.run("import os\nx, os.path.exists('f')").value == (1, False)
    last.close()


@pytest.mark.sampled(0)
def test_it_is_so_for_whatever_is_called_next(last: Session) -> None:
    last.run("x = 1; open('f', 'w').write('text')")
    end_all("nursery")
    assert last.files.read("f") == b"text"
    end_all("nursery")
    assert last["x"] == 1
    end_all("nursery")
    last["y"] = 2
    end_all("nursery")
    last.undo()
    assert last.run("x, 'y' in globals()").value == (1, False)
    end_all("nursery")
    with last.branch() as branch:
        assert branch.run("x").value == 1
    end_all("nursery")
    last.hibernate()
    assert last.run("x").value == 1


@pytest.mark.sampled(0)
@pytest.mark.parametrize("call", ["flush", "files.read", "log", "hibernate", "merge", "checkout"])
def test_what_had_not_been_saved_is_made_again_whatever_is_called_next(last: Session, call: str) -> None:
    asked: dict[str, Callable[[], object]] = {
        "flush": last.flush,
        "files.read": lambda: last.files.read("f"),
        "log": last.log,
        "hibernate": last.hibernate,
        "merge": lambda: last.merge(branch),
        "checkout": lambda: last.checkout("HEAD"),
    }
    last.run("import time\nx = 1\nclass Slow:\n    def __reduce__(self): time.sleep(1); return Slow, ()")
    with last.branch("branch") as branch:
        branch.run("y = 1")
        for times in range(2, 4):
            last.flush()
            last.run(f"slow = Slow(); x = {times}; open('f', 'w').write('text')")
            workers = set[int]()
            for launcher in own_launchers():
                workers |= {one.pid for one in workers_of(launcher)}
                for init in inits_of(launcher):
                    os.kill(init.pid, signal.SIGKILL)
            asked[call]()  # while they end
            assert soon(lambda ended=workers: ended & {one.pid for one in below(1)}, set()) == set()  # type: ignore[misc]
            assert last.run("x").value == times
            assert [one.name for one in last.unsaved] == []


@pytest.mark.sampled(0)
def test_a_session_with_reduced_walls_too(tmp_path: Path, readable_python: str) -> None:
    state = Versioned(f"sqlite:///{tmp_path}/cells.db")
    with Session("one", state=state, walls="reduced", python=readable_python) as session:
        session.run("x = [1]; open('f', 'w').write('text')")
        worker = int(str(session.run("import os\nos.getpid()").value))
        keeper = int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(keeper, signal.SIGKILL)
        assert soon(lambda: {worker} & {one.pid for one in below(1)}, set()) == set()
        cell = session.run("x, open('f').read()")
        assert cell.value == ([1], "text")
        assert cell.text.startswith("[all processes of the session had ended: it was resumed from commit ")


@pytest.mark.sampled(0)
@pytest.mark.parametrize("call", ["merge", "branch", "checkpoint"])
def test_what_is_asked_while_its_steps_are_taken_again_has_all_of_them(last: Session, call: str) -> None:
    """The last of them waits in the middle of it until a process that it has started is ended."""

    def inner_second() -> object:
        with last.branch("inner") as inner:
            return inner["second"]

    asked: dict[str, Callable[[], object]] = {
        "merge": lambda: branch.merge(last) and branch["second"],
        "branch": inner_second,
        "checkpoint": last.checkpoint,
    }
    last.run("x = 0")
    with ThreadPoolExecutor() as pool, last.branch("branch") as branch:
        last.run("first = 1")
        last.flush()
        second = pool.submit(last.run, _WAITING)
        os.kill(_waiting(), signal.SIGKILL)
        assert second.result().ok
        expected = last.checkpoint() if call == "checkpoint" else 2
        end_all("init")
        third = pool.submit(last.run, "third = 3")
        again = _waiting()
        answer = pool.submit(asked[call])
        wait([answer], timeout=1)
        os.kill(again, signal.SIGKILL)
        assert answer.result() == expected
        assert third.result().ok
        assert last.run("first, second, third").value == (1, 2, 3)


_WAITING = """second = 2
import subprocess, time
subprocess.run(['sleep', '1234'])
class Slow:
    def __reduce__(self): time.sleep(3)
slow = Slow()"""
"""A cell whose state is not saved before its processes are killed."""


def _waiting() -> int:
    """The process that the cell waits for, once it does."""
    found: list[int] = []

    def is_there() -> bool:
        found.extend(one.pid for one in below() if one.words[:2] == ("sleep", "1234"))
        return bool(found)

    assert soon(is_there, True)
    return found[0]
