"""Many cells, many sessions, many deaths: nothing is left over. `make slow` runs these."""

import os
import time
from pathlib import Path

import pytest

from cellblock import Session

pytestmark = pytest.mark.slow


def held() -> tuple[int, int]:
    """This process's descriptors, and the processes that descend from it."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found, wave = 0, {os.getpid()}
    while wave := {pid for pid, parent in parents.items() if parent in wave}:
        found += len(wave)
    return len(os.listdir("/proc/self/fd")), found


def soon(expected: tuple[int, int]) -> tuple[int, int]:
    """What is held, once that is as expected; closing does not wait for the kernel to end a session's processes."""
    deadline = time.monotonic() + 10
    while (now := held()) != expected and time.monotonic() < deadline:
        time.sleep(0.01)
    return now


@pytest.fixture(scope="module")
def before() -> tuple[int, int]:
    """What is held once the family runs and no session is open."""
    with Session() as session:
        session.run("1")
        open_descriptors = held()[0]
    now = held()
    assert now[0] < open_descriptors
    return soon((now[0], 3))  # the family: what was launched, its nursery, its zygote


def test_a_thousand_cells_hold_what_one_does(before: tuple[int, int]) -> None:
    with Session() as session:
        session.run("1")
        one = held()
        for number in range(1000):
            assert session.run(f"x{number % 50} = {number}\nprint(x{number % 50})").text == str(number)
        assert held() == one
    assert soon(before) == before


def test_a_hundred_sessions_at_once_keep_apart_and_leave_nothing(before: tuple[int, int]) -> None:
    sessions = [Session() for _ in range(100)]
    try:
        for number, session in enumerate(sessions):
            session.run(f"mine = {number}")
        assert [session.run("mine").value for session in sessions] == list(range(100))
    finally:
        for session in sessions:
            session.close()
    assert soon(before) == before


def test_three_hundred_sessions_one_after_the_other_leave_nothing(before: tuple[int, int]) -> None:
    for number in range(300):
        with Session() as session:
            assert session.run(f"{number} + 1").value == number + 1
    assert soon(before) == before


def test_two_hundred_deaths_hold_what_none_does(before: tuple[int, int]) -> None:
    with Session() as session:
        session.run("1")
        alive = held()
        for _ in range(200):
            error = session.run("import os; os._exit(1)").error
            assert error is not None
            assert error.kind == "crashed"
        session.run("1")
        assert held() == alive
    assert soon(before) == before
