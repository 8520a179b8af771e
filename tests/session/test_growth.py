"""Many cells, sessions and deaths: nothing is left over, what makes sessions stays small. `make endurance`."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from family_tree import launchers, nursery_of, zygotes_of

from cellblock import Session, keep_ready
from cellblock.executors.process.cgroups import _KEPT

pytestmark = pytest.mark.slow

SLACK_BYTES = 3 * 2**20
"""Of one process, whose allocator keeps what was used at once."""


def parents() -> dict[int, int]:
    """Of every process, dead ones that nobody waited for included."""
    found: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            found[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    return found


def held() -> tuple[int, int]:
    """This process's descriptors, and the processes that descend from it."""
    of, found, wave = parents(), 0, {os.getpid()}
    while wave := {pid for pid, parent in of.items() if parent in wave}:
        found += len(wave)
    return len(os.listdir("/proc/self/fd")), found


def strangers() -> int:
    """Children that are no family's: a porter, which stays, and what tests that failed have not waited for."""
    families = {launcher.pid for launcher in launchers()}
    return sum(parent == os.getpid() and pid not in families for pid, parent in parents().items())


def soon(most: tuple[int, int]) -> bool:
    """Whether no more is held than that, before long; closing does not wait for the kernel to end processes."""
    deadline = time.monotonic() + 10
    while not (enough := all(now <= then for now, then in zip(held(), most, strict=True))):
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    assert enough, (held(), most)
    return enough


def weight(pid: int) -> tuple[int, int]:
    """A process's descriptors, and its resident bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    (resident,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))
    return len(os.listdir(f"/proc/{pid}/fd")), int(resident) * 1024


def weights() -> dict[str, tuple[int, int]]:
    """Of this process and of those that make its sessions."""
    (launcher,) = launchers()
    (zygote,) = zygotes_of(launcher)
    pids = {"host": os.getpid(), "nursery": nursery_of(launcher).pid, "zygote": zygote.pid}
    return {name: weight(pid) for name, pid in pids.items()}


def must_be_flat(begun: dict[str, tuple[int, int]], ended: dict[str, tuple[int, int]]) -> None:
    assert {name: descriptors for name, (descriptors, _) in ended.items()} == {
        name: descriptors for name, (descriptors, _) in begun.items()
    }
    grown = {name: ended[name][1] - begun[name][1] for name in begun}
    assert max(grown.values()) < SLACK_BYTES, grown


@pytest.fixture(scope="module")
def before() -> tuple[int, int]:
    """What is held once the family runs and no session is open; control groups are kept for the next ones."""
    others = strangers()
    sessions = [Session() for _ in range(_KEPT + 1)]
    for session in sessions:
        session.run("1")
    open_descriptors = held()[0]
    for session in sessions:
        session.close()
    now = held()
    assert now[0] < open_descriptors
    family = now[0], 3 + others  # what was launched, its nursery, its zygote
    assert soon(family)
    return family


def take_checkpoints(session: Session) -> None:
    """As many as are kept: each is a process, and a descriptor of the host."""
    for _ in range(session.limits.max_checkpoints + 2):
        session.run("1")
    time.sleep(1)  # the last is made after the reply, and the first has to end


def test_a_thousand_cells_hold_what_one_does(before: tuple[int, int]) -> None:
    with Session() as session:
        take_checkpoints(session)
        one = held()
        for number in range(1000):
            assert session.run(f"x{number % 50} = {number}\nprint(x{number % 50})").text == str(number)
        assert soon(one)
    assert soon(before)


def test_a_hundred_sessions_at_once_keep_apart_and_leave_nothing(before: tuple[int, int]) -> None:
    sessions = [Session() for _ in range(100)]
    try:
        for number, session in enumerate(sessions):
            session.run(f"mine = {number}")
        assert [session.run("mine").value for session in sessions] == list(range(100))
    finally:
        for session in sessions:
            session.close()
    assert soon(before)


def open_and_close(times: int) -> None:
    for number in range(times):
        with Session() as session:
            assert session.run(f"{number} + 1").value == number + 1


@pytest.mark.timeout(300)
def test_a_thousand_sessions_one_after_the_other_leave_nothing(before: tuple[int, int]) -> None:
    open_and_close(200)
    assert soon(before)
    begun = weights()
    open_and_close(800)
    assert soon(before)
    must_be_flat(begun, weights())


@pytest.mark.timeout(300)
def test_a_thousand_sessions_made_ready_beforehand_leave_nothing(before: tuple[int, int]) -> None:
    try:
        keep_ready(2)
        open_and_close(200)
        keep_ready(2)
        begun = weights()
        open_and_close(800)
        keep_ready(2)
        must_be_flat(begun, weights())
    finally:
        keep_ready(0)
    assert soon(before)


def test_two_hundred_deaths_hold_what_none_does(before: tuple[int, int]) -> None:
    with Session() as session:
        take_checkpoints(session)
        alive = held()
        for _ in range(200):
            error = session.run("import os; os._exit(1)").error
            assert error is not None
            assert error.kind == "crashed"
        session.run("1")
        assert soon(alive)
    assert soon(before)
