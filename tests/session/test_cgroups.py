"""The control group around a session, where groups can be made: what it counts, what its kills become, what is left."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from family_tree import soon
from insides import ASK, Insides

from cellblock import ExecutionLimits, Session
from cellblock.executors.process import cgroups, delegation
from cellblock.executors.process.delegation import NotDelegated, Place
from cellblock.walls import Applied, Unavailable

pytestmark = pytest.mark.alone  # it looks at the control groups of all sessions

LIMITS = ExecutionLimits(timeout_seconds=20, max_memory_mb=64, max_disk_mb=16, max_files=1000, max_processes=40)
FILL = """
import ctypes
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
def fill(megabytes):
    for _ in range(megabytes // 8):
        piece = ctypes.c_void_p(libc.mmap(None, ctypes.c_size_t(8 << 20), 3, 0x22, -1, 0))
        libc.memset(piece, 1, ctypes.c_size_t(8 << 20))
        libc.mprotect(piece, ctypes.c_size_t(8 << 20), 1)
"""
"""Memory that no limit of a process counts: it was writable only while it was written."""


@pytest.fixture(scope="module")
def places() -> list[Place]:
    try:
        return delegation.places()
    except NotDelegated as reason:
        pytest.skip(f"no control groups can be made here: {reason}")


@pytest.fixture
def session(places: list[Place], open_session: Callable[..., Session]) -> Session:
    return open_session(limits=LIMITS)


def groups(places: list[Place]) -> list[Path]:
    """Those that are there, of this test's process and of others."""
    return sorted({found for place in places for found in place.folder.glob("cellblock-*/s*")})


def group_of(session: Session, places: list[Place]) -> Path:
    """The one that limits a session's memory, as the session itself tells."""
    told = session.run("open('/proc/self/cgroup').read()").value
    names = [line.rpartition("/cellblock-")[2] for line in str(told).splitlines() if "/cellblock-" in line]
    place = next(place for place in places if "memory" in place.controllers)
    return place.folder / f"cellblock-{names[0]}"


def pids(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "cgroup.procs").read_text().splitlines()]


def first_beside(process: int) -> int:
    """The first process of a process's pid namespace."""
    space = os.readlink(f"/proc/{process}/ns/pid")
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            numbers = next(
                line for line in (entry / "status").read_text().splitlines() if line.startswith("NSpid:")
            ).split()
            if os.readlink(entry / "ns/pid") == space and numbers[-1] == "1":
                return int(entry.name)
    raise AssertionError(f"{process} has no init")


def group_wall(session: Session) -> Applied | Unavailable:
    return next(wall for wall in session.capabilities.walls if wall.mechanism == "cgroup")


def kills(group: Path) -> int:
    """How many processes of a group the kernel has killed for want of memory."""
    file = next(file for file in (group / "memory.events", group / "memory.oom_control") if file.exists())
    return next(int(line.split()[1]) for line in file.read_text().splitlines() if line.startswith("oom_kill "))


def pages(group: Path) -> int:
    """Of memory that the processes of a group hold; none is one's that is ending."""
    found = 0
    for pid in pids(group):
        with contextlib.suppress(OSError):  # it has ended
            found += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return found


@pytest.fixture
def unwatched(places: list[Place]) -> Iterator[Session]:
    """A session whose init stands still until the kernel has killed a process: it sees nothing of what was held."""
    with Session(limits=replace(LIMITS, max_checkpoints=0)) as session:  # init keeps files for checkpoints
        group = group_of(session, places)
        (worker,) = pids(group)
        init = first_beside(worker)
        session.run(FILL + "import os, signal, time")
        before, held = kills(group), pages(group)

        def go_on() -> None:
            soon(lambda: kills(group) > before and pages(group) < 2 * held, True, seconds=60)
            os.kill(init, signal.SIGCONT)

        os.kill(init, signal.SIGSTOP)
        going_on = threading.Thread(target=go_on)
        going_on.start()
        yield session
        going_on.join()


@pytest.fixture
def forgetful() -> Iterator[Session]:
    """A session without checkpoints, which would be processes too."""
    with Session(limits=replace(LIMITS, max_checkpoints=0)) as session:
        yield session


def test_every_process_of_a_session_but_init_is_in_its_group(forgetful: Session, places: list[Place]) -> None:
    forgetful.run("import os, subprocess\nchildren = [subprocess.Popen(['sleep', '1000']) for _ in range(3)]")
    inside = forgetful.run("sorted(int(pid) for pid in os.listdir('/proc') if pid.isdigit())").value
    found = pids(group_of(forgetful, places))
    assert len(found) == len(inside) == 4  # type: ignore[arg-type]
    assert os.getpid() not in found


def test_the_wall_says_which_version_limits_what(session: Session, places: list[Place]) -> None:
    wall = group_wall(session)
    assert isinstance(wall, Applied)
    memory, pids, *more = wall.detail.split(", ")
    # 64 MB, 32 of head-room and the image, three times, as copies and what a cell changes may hold as much; 16 of
    # disk, and 64
    assert memory[:11] in ("v1 memory 4", "v2 memory 4")
    assert pids in ("v1 pids 65", "v2 pids 65")
    assert more in (["v1 cpu"], ["v2 cpu"], [])


def test_a_worker_that_takes_another_ones_place_takes_its_group(forgetful: Session, places: list[Place]) -> None:
    before = group_of(forgetful, places)
    forgetful.run("import os\nos._exit(1)")
    assert group_of(forgetful, places) == before
    assert len(pids(before)) == 1


def test_a_worker_that_the_kernel_kills_for_memory_met_the_memory_limit(unwatched: Session) -> None:
    cell = unwatched.run("kept = 1\nfill(1000)\n'held'")
    assert cell.error is not None, cell.value
    assert (cell.error.kind, cell.error.type) == ("memory", "MemoryError")
    assert cell.error.message.startswith("the session's process was killed, as the session held ")
    assert cell.error.message.endswith(" MB, all that its control group allows")
    assert "fill" in [loss.name for loss in cell.lost]
    assert unwatched.run("6 * 7").value == 42


def test_a_process_that_the_kernel_kills_for_memory_is_told_of(unwatched: Session) -> None:
    cell = unwatched.run("child = os.fork()\nif child == 0:\n    fill(1000)\n    os._exit(0)\nos.waitpid(child, 0)[1]")
    assert cell.value == signal.SIGKILL
    assert "a process was killed: together the session's processes held" in cell.text
    assert "all that its control group allows" in cell.text
    assert cell.lost == ()


@pytest.mark.parametrize("told", [False, True], ids=["before-init-tells", "after-init-has-told"])
def test_a_copy_that_the_kernel_kills_for_memory_is_no_limit_that_a_cell_met(
    session: Session, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    """The kernel's choice cannot be made here: the test ends a copy, and counts that as the kernel would."""
    if os.getuid() != 0:
        pytest.skip("what is a frozen copy is hidden from an ordinary user")
    insides = Insides(str(session.run(ASK).value))
    session.run("x = 1")
    kernel: Any = session._session._kernel
    monkeypatch.setattr(kernel._enclosure, "killed", lambda: 1)
    oldest = next(one for one in kernel._checkpoints._states if one.memory is not None)
    assert soon(lambda: oldest.memory.pid() > 0, True) is True
    copy = oldest.memory._copy
    os.kill(copy, signal.SIGKILL)
    assert soon(lambda: copy in [one.pid for one in insides.others()], False) is False
    if told:
        kernel._checkpoints.lose(oldest.number)
    assert kernel.exceeded() is None
    monkeypatch.setattr(kernel._enclosure.group, "most", lambda: 3 << 20)
    around = "3 MB, and the control group around this program has no room for more: give it more memory"
    assert kernel.exceeded() == around  # it is told once
    monkeypatch.setattr(kernel._enclosure.group, "most", lambda: kernel._enclosure.group.memory_bytes)
    assert kernel.exceeded().endswith(" MB, all that its control group allows")
    assert session.run("x").value == 1


def test_the_number_of_processes_is_limited_by_the_group_too(session: Session, places: list[Place]) -> None:
    group = group_of(session, places)
    (place,) = [place for place in places if "pids" in place.controllers]
    assert (place.folder / group.parent.name / group.name / "pids.max").read_text() == "65\n"


@pytest.mark.sampled(0)
def test_groups_are_used_again_and_not_piled_up(places: list[Place]) -> None:
    with Session(limits=LIMITS):
        pass
    before = len(groups(places))
    for _ in range(30):
        with Session(limits=LIMITS) as one:
            assert one.run("1").value == 1
    assert len(groups(places)) <= before + 2 * cgroups._KEPT


def test_limits_of_the_group_follow_the_session_that_uses_it(places: list[Place], open_session: object) -> None:
    for megabytes in (64, 128, 32):
        limits = ExecutionLimits(max_memory_mb=megabytes, max_disk_mb=16, max_files=1000, max_processes=megabytes)
        with Session(limits=limits) as one:
            wall = group_wall(one)
            assert isinstance(wall, Applied)
            assert f" pids {megabytes + 25}" in wall.detail
            assert 170 < int(wall.detail.split()[2]) - 3 * megabytes < 300


PROGRAM = """
import sys, time
from cellblock import Session
sessions = [Session() for _ in range(3)]
for one in sessions:
    one.run("import subprocess; subprocess.Popen(['sleep', '1000'])")
told = sessions[0].run("open('/proc/self/cgroup').read()").value
print("cellblock-" + told.partition("/cellblock-")[2].partition("/")[0], flush=True)
{then}
"""


def of_a_program(then: str) -> subprocess.Popen[str]:
    """A program with three sessions of its own, and what it does then."""
    source = PROGRAM.format(then=then)
    return subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)


def left(places: list[Place], name: str) -> list[Path]:
    return [found for place in places for found in place.folder.glob(name)]


@pytest.mark.sampled(0)
def test_a_program_that_ends_leaves_no_group(places: list[Place]) -> None:
    program = of_a_program("")
    told, _ = program.communicate(timeout=60)
    assert left(places, told.strip()) == []


@pytest.mark.sampled(0)
def test_what_a_killed_program_left_is_removed_by_the_next_one(places: list[Place]) -> None:
    program = of_a_program("time.sleep(1000)")
    assert program.stdout is not None
    name = program.stdout.readline().strip()
    assert left(places, name) != []
    program.kill()
    program.communicate()
    end = time.monotonic() + 20
    while left(places, name) and time.monotonic() < end:
        of_a_program("").communicate(timeout=60)
    assert left(places, name) == []


@pytest.mark.sampled(0)
def test_a_program_that_lives_keeps_its_groups_when_another_starts(places: list[Place]) -> None:
    program = of_a_program("sys.stdin.read()\nprint([one.run('6 * 7').value for one in sessions])")
    assert program.stdout is not None
    name = program.stdout.readline().strip()
    of_a_program("").communicate(timeout=60)
    assert left(places, name) != []
    told, _ = program.communicate("", timeout=60)
    assert told == "[42, 42, 42]\n"
    assert left(places, name) == []


def test_group_that_another_program_removes_as_it_is_made_is_made_again(
    places: list[Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes one that is not yet locked for one that was left behind."""
    locked, removed = cgroups._locked, list[Path]()

    def late(folder: Path, **options: bool) -> int:
        if not removed:
            removed.append(folder)
            folder.rmdir()
        return locked(folder, **options)

    monkeypatch.setattr(cgroups, "_remove_stale", lambda _: None)
    monkeypatch.setattr(cgroups, "_locked", late)
    groups = cgroups.Groups()
    assert removed[0].is_dir()
    groups.close()
    assert not removed[0].exists()


@pytest.mark.usefixtures("places")
def test_groups_that_could_not_be_made_for_want_of_descriptors_are_looked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = delegation.places

    def places_of_none() -> list[Place]:
        monkeypatch.setattr(delegation, "places", found)
        raise delegation.NotDelegated("Too many open files") from OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(cgroups, "_groups", None)
    monkeypatch.setattr(delegation, "places", places_of_none)
    with pytest.raises(delegation.NotDelegated, match="Too many open files"):
        cgroups.of_this_process()
    cgroups.of_this_process().close()


@pytest.mark.usefixtures("places")
def test_who_makes_sessions_stays_in_the_group_that_it_is_in() -> None:
    """Moving it to where it is has the kernel ready for the next move; it may be elsewhere by then."""
    _, entrance = delegation.entrance()
    group = entrance.parent / "cellblock-test"
    with sleeping() as here, sleeping() as elsewhere:
        group.mkdir()
        try:
            (group / "cgroup.procs").write_text(str(elsewhere), encoding="ascii")
            before = [Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8") for pid in (here, elsewhere)]
            for pid in (here, elsewhere):
                cgroups.of_this_process().stir(pid)
            for thread in threading.enumerate():
                if thread.name == "cellblock-stir":
                    thread.join()
            assert [Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8") for pid in (here, elsewhere)] == before
            entrance.write_text(str(elsewhere), encoding="ascii")
        finally:
            group.rmdir()


@contextlib.contextmanager
def sleeping() -> Iterator[int]:
    process = subprocess.Popen(["sleep", "60"])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


@pytest.mark.sampled(0)
def test_without_groups_a_session_opens_and_says_why_it_has_none(tmp_path: Path) -> None:
    source = (
        "from cellblock import Session\nwith Session() as one: print(one.run('42').value, one.capabilities.walls[-1])"
    )
    environment = {**os.environ, delegation.VARIABLE: str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", source], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    number, _, wall = done.stdout.rstrip().partition(" ")
    assert number == "42"
    assert wall.startswith(f"Unavailable(mechanism='cgroup', reason='{tmp_path} is not a control group of version 2'")
    assert wall.endswith("needed=False)")
