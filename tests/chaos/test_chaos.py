"""Processes killed at random while sessions open, run and close: no call hangs, errors have hints, nothing stays."""

from __future__ import annotations

import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from accounts import Account, ordinary, own, why_no_other_user
from family_tree import Process, below, inits_of, launchers, nursery_of, soon, workers_of, zygotes_of

from cellblock import Session

VICTIM = Path(__file__).with_name("victim.py")
SLOWEST = 30.0
"""Seconds that a call may take on a machine that does much else besides."""

PR_SET_CHILD_SUBREAPER = 36

ROLES: dict[str, Callable[[Process], list[Process]]] = {
    "launch": lambda launcher: [launcher],
    "nursery": lambda launcher: [nursery_of(launcher)],
    "zygote": zygotes_of,
    "init": inits_of,
    "worker": workers_of,
}


@pytest.fixture(params=["self", "ordinary-user"])
def account(request: pytest.FixtureRequest) -> Iterator[Account]:
    """The tests' user, and one without privileges."""
    if request.param == "self":
        yield own(VICTIM.parent)
        return
    reason = why_no_other_user()
    if reason:
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="victims-"))
    yield ordinary(folder, VICTIM)
    shutil.rmtree(folder)


@pytest.fixture
def orphanage() -> Iterator[Callable[[], list[Process]]]:
    """Tells what this process has below it that was not there before: orphans of others' come here, too."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    assert prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    before = {one.pid for one in below()}

    def left() -> list[Process]:
        for pid in dead_children() - before:
            os.waitpid(pid, os.WNOHANG)
        return [one for one in below() if one.pid not in before]

    yield left
    for one in left():
        os.kill(one.pid, signal.SIGKILL)
    left()
    assert prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) == 0


def dead_children() -> set[int]:
    """Children of ours that have ended and that nobody has waited for."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "stat").read_text().rpartition(")")[2].split() if entry.name.isdigit() else []
        except OSError:
            continue
        if words[:2] == ["Z", str(os.getpid())]:
            found.add(int(entry.name))
    return found


def ours_mounted() -> list[str]:
    """Mounts in our namespace where roots of sessions are built, and of what they are built of."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    anchors = ("/sys", "/mnt", "/media", "/srv", "/opt", "/tree", "/new", "/late", "/session")
    return sorted(line for line in lines if line.split()[1].startswith(anchors))


def start(account: Account, seed: int) -> subprocess.Popen[str]:
    process = account.start("-m", "victim", str(seed), stdin=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n", process.communicate()[1]
    return process


KEPT_GROUPS = 8 * 2
"""Descriptors of the control groups that a program keeps for its next sessions, where it may make some."""


def kill_one(victim: subprocess.Popen[str], chance: random.Random) -> str:
    """Kill one of the victim's processes; its role, "" when there was none."""
    role = chance.choice(list(ROLES))
    families = [one for one in below(victim.pid) if one.parent == victim.pid and "launch" in one.words]
    try:
        one = chance.choice(ROLES[role](chance.choice(families)))
        os.kill(one.pid, signal.SIGKILL)
    except (IndexError, ValueError, ProcessLookupError):  # nothing of the kind now
        return ""
    return role


def rampage(account: Account, left: Callable[[], list[Process]], seconds: float, seed: int) -> None:
    """Kill for so long, then let the victim come to rest and look at what it says and leaves."""
    chance, killed = random.Random(seed), Counter[str]()
    mounts = ours_mounted()
    victim = start(account, seed)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        time.sleep(chance.uniform(0.01, 0.25))
        killed[kill_one(victim, chance)] += 1
    try:
        out, errors = victim.communicate("\n", timeout=4 * SLOWEST)
    except subprocess.TimeoutExpired:
        victim.kill()
        raise AssertionError(f"a call hangs after {killed}") from None
    assert victim.returncode == 0, errors
    told = json.loads(out)
    assert told["unexpected"] == []
    assert told["outcomes"].pop("last") == 2
    assert told["slowest"] < SLOWEST, told
    assert sum(told["outcomes"].values()) > 20, told
    before, after = told["descriptors"]
    assert after <= before + 2 + KEPT_GROUPS, told  # a second family, that is, and groups kept for the next sessions
    assert soon(left, []) == []
    assert ours_mounted() == mounts
    assert len([role for role in killed if role]) >= 3, killed


@pytest.mark.sampled(0)
@pytest.mark.alone  # how much is killed in its seconds depends on what else runs
def test_sessions_open_run_and_close_while_their_processes_are_killed(
    account: Account, orphanage: Callable[[], list[Process]]
) -> None:
    rampage(account, orphanage, 4.0, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(2, 6))
def test_the_same_for_longer(account: Account, orphanage: Callable[[], list[Process]], seed: int) -> None:
    rampage(account, orphanage, 45.0, seed)


def end_the_host(account: Account, left: Callable[[], list[Process]], chance: random.Random, seed: int) -> None:
    """Kill the host at a random moment, while it opens sessions as likely as while it runs them."""
    victim = account.start("-m", "victim", str(seed), stdin=subprocess.PIPE)
    time.sleep(chance.uniform(0.05, 1.5))
    victim.kill()
    victim.communicate()
    assert soon(left, []) == []


@pytest.mark.sampled(1)
def test_nothing_outlives_a_host_that_is_killed(account: Account, orphanage: Callable[[], list[Process]]) -> None:
    chance = random.Random(7)
    for seed in range(4):
        end_the_host(account, orphanage, chance, seed)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_outlives_any_of_many_hosts(account: Account, orphanage: Callable[[], list[Process]]) -> None:
    chance = random.Random(8)
    for seed in range(60):
        end_the_host(account, orphanage, chance, seed)


def test_each_role_is_found() -> None:
    """The roles above are told from real processes: where they were none, nothing would be killed."""
    before = {one.pid for one in launchers()}
    with Session(preload=["colorsys", "sched"]):
        (one,) = (one for one in launchers() if one.pid not in before)
        assert [len(find(one)) for find in ROLES.values()] == [1] * len(ROLES)
