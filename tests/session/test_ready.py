"""Sessions that are made ready before they are asked for: when, how many, what they hold, and that they are as new."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import anyio
import family_tree
import pytest
from family_tree import Process, inits_of, launchers, nursery_of, soon, workers_of, zygotes_of

import cellblock
from cellblock import AsyncSession, ExecutionLimits, IsolationUnavailable, PreloadFailed, Session, keep_ready

PRELOAD = ("colorsys",)
"""Makes a family that no other test uses."""


@pytest.fixture
def launcher() -> Iterator[Process]:
    """The launcher of that family."""
    others = {one.pid for one in launchers()}
    Session(preload=PRELOAD).close()
    (new,) = (one for one in launchers() if one.pid not in others)
    yield new
    keep_ready(0, preload=PRELOAD)
    for one in launchers():
        if one.pid not in others:
            os.kill(one.pid, signal.SIGKILL)
    assert soon(lambda: {one.pid for one in launchers()} - others, set()) == set()


def spares(launcher: Process) -> list[int]:
    """The pids of all inits of the family."""
    return [one.pid for one in inits_of(launcher)]


@pytest.mark.sampled(0)
def test_sessions_that_are_kept_ready_are_the_ones_that_open(launcher: Process) -> None:
    keep_ready(1, preload=PRELOAD)
    (made,) = spares(launcher)
    with Session(preload=PRELOAD) as session:
        assert session.run("import sys\n'colorsys' in sys.modules").value is True
        keep_ready(0, preload=PRELOAD)
        assert soon(lambda: spares(launcher), [made]) == [made]
    assert soon(lambda: spares(launcher), []) == []


@pytest.mark.sampled(0)
def test_number_that_is_kept_is_made_again(launcher: Process) -> None:
    keep_ready(2, preload=PRELOAD)
    with Session(preload=PRELOAD), Session(preload=PRELOAD):
        assert soon(lambda: len(spares(launcher)), 4) == 4
    assert soon(lambda: len(spares(launcher)), 2) == 2
    keep_ready(0, preload=PRELOAD)
    assert soon(lambda: spares(launcher), []) == []


def test_host_holds_no_descriptor_of_what_is_ready(launcher: Process) -> None:
    before = len(os.listdir("/proc/self/fd"))
    keep_ready(2, preload=PRELOAD)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.sampled(0)
def test_ready_session_gives_the_same_numbers_for_the_same_seed(launcher: Process) -> None:
    told = []
    for count in (0, 1):
        keep_ready(count, preload=PRELOAD)
        with Session(preload=PRELOAD, seed=7) as session:
            told.append((session.run("import random\nrandom.random(), hash('x')").value, session.notebook[0].id))
    assert told[0] == told[1]


@pytest.mark.sampled(0)
def test_ready_sessions_without_a_seed_draw_different_numbers(launcher: Process) -> None:
    keep_ready(2, preload=PRELOAD)
    with Session(preload=PRELOAD) as one, Session(preload=PRELOAD) as two:
        assert one.run("import random\nrandom.random()").value != two.run("import random\nrandom.random()").value


@pytest.mark.sampled(0)
def test_limits_of_the_host_alone_fit_any_ready_session(launcher: Process) -> None:
    keep_ready(1, preload=PRELOAD)
    made = spares(launcher)
    with Session(preload=PRELOAD, limits=ExecutionLimits(timeout_seconds=0.2)) as session:
        keep_ready(0, preload=PRELOAD)
        assert soon(lambda: spares(launcher), made) == made
        assert session.run("while True: pass").error.kind == "timeout"  # type: ignore[union-attr]


@pytest.mark.sampled(0)
def test_other_limits_of_the_process_are_another_kind(launcher: Process) -> None:
    keep_ready(1, preload=PRELOAD)
    with Session(preload=PRELOAD, limits=ExecutionLimits(max_open_files=77)) as session:
        assert len(spares(launcher)) == 2
        assert session.run("import resource\nresource.getrlimit(resource.RLIMIT_NOFILE)").value == (77, 77)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("which", ["init", "worker"])
def test_ready_session_that_was_killed_is_not_handed_out(launcher: Process, which: str) -> None:
    keep_ready(1, preload=PRELOAD)
    (victim,) = inits_of(launcher) if which == "init" else workers_of(launcher)
    os.kill(victim.pid, signal.SIGKILL)
    assert soon(lambda: victim.pid in [one.pid for one in workers_of(launcher)], False) is False
    with Session(preload=PRELOAD) as session:
        cell = session.run("6 * 7")
        assert (cell.value, cell.lost) == (42, ())


@pytest.mark.sampled(0)
def test_what_is_kept_ready_is_so_after_its_zygote_was_killed(launcher: Process) -> None:
    keep_ready(1, preload=PRELOAD)
    (zygote,) = zygotes_of(launcher)
    os.kill(zygote.pid, signal.SIGKILL)
    for _ in range(3):
        with Session(preload=PRELOAD) as session:
            assert session.run("6 * 7").value == 42
    keep_ready(1, preload=PRELOAD)
    assert len(spares(launcher)) == 1


@pytest.mark.sampled(0)
def test_what_is_kept_ready_is_so_in_the_family_that_follows(launcher: Process) -> None:
    keep_ready(1, preload=PRELOAD)
    before = {one.pid for one in launchers()}
    os.kill(nursery_of(launcher).pid, signal.SIGKILL)
    assert soon(lambda: launcher.pid in [one.pid for one in launchers()], False) is False
    with Session(preload=PRELOAD) as session:
        assert session.run("6 * 7").value == 42
        (new,) = (one for one in launchers() if one.pid not in before)
        assert soon(lambda: len(spares(new)), 2) == 2


@pytest.mark.sampled(0)
def test_worker_of_a_ready_session_that_dies_is_told_as_any(launcher: Process) -> None:
    keep_ready(1, preload=PRELOAD)
    with Session(preload=PRELOAD) as session:
        assert session.run("import os\nos._exit(3)").error.message == (  # type: ignore[union-attr]
            "the session's process left with status 3"
        )
        assert session.run("6 * 7").value == 42


def test_keeping_ready_what_cannot_be_opened_raises_what_opening_would() -> None:
    with pytest.raises(PreloadFailed, match="cannot preload no_such_package"):
        keep_ready(1, preload=["no_such_package"])
    with pytest.raises(IsolationUnavailable, match="/nowhere/bin/python cannot be started"):
        keep_ready(1, python="/nowhere/bin/python")


@pytest.mark.parametrize("count", [-1, 1.0, True, "1"])
def test_count_that_is_none_is_refused(count: object) -> None:
    with pytest.raises(ValueError, match="count must be a whole number of at least 0"):
        keep_ready(count)  # type: ignore[arg-type]


def test_ending_what_was_never_kept_does_nothing() -> None:
    before = launchers()
    keep_ready(0, preload=["this", "that"])
    assert launchers() == before


def test_arguments_are_those_of_a_session() -> None:
    ours, theirs = inspect.signature(keep_ready).parameters, inspect.signature(Session.__init__).parameters
    assert set(ours) - {"count"} == set(theirs) - {"self", "name", "user", "seed", "mounts", "tools", "state"}
    assert all(ours[name] == theirs[name] for name in ours if name not in ("count", "trust_level", "walls"))
    assert (ours["trust_level"].default, ours["walls"].default) == ("isolated", "full")  # what None is for sessions


def test_async_sessions_take_ready_ones(launcher: Process) -> None:
    keep_ready(1, preload=PRELOAD)
    made = spares(launcher)

    async def use() -> object:
        async with AsyncSession(preload=PRELOAD) as session:
            assert set(made) <= set(spares(launcher))
            await session.run("import os\nos._exit(1)")
            return (await session.run("6 * 7")).value

    assert anyio.run(use) == 42


@pytest.mark.sampled(0)
def test_threads_that_open_at_once_get_a_session_each(launcher: Process) -> None:
    keep_ready(2, preload=PRELOAD)

    def use(number: int) -> object:
        with Session(preload=PRELOAD) as session:
            session.run(f"mine = {number}")
            return session.run("mine").value

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(use, range(12))) == list(range(12))


@pytest.mark.sampled(0)
def test_forked_copy_leaves_the_ready_ones_to_its_parent(launcher: Process) -> None:
    keep_ready(1, preload=PRELOAD)
    made = spares(launcher)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        with Session(preload=PRELOAD) as session:
            os._exit(0 if session.run("6 * 7").value == 42 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert spares(launcher) == made


@pytest.mark.sampled(0)
def test_program_with_ready_sessions_ends_at_once_and_leaves_nothing() -> None:
    source = (
        f"import sys; sys.path.append({os.path.dirname(family_tree.__file__)!r})\n"
        "from cellblock import keep_ready; from family_tree import below\n"
        "keep_ready(2)\nfor one in below(): print(one.pid, one)"
    )
    done = subprocess.run([sys.executable, "-X", "dev", "-c", source], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    pids = [int(line.split()[0]) for line in done.stdout.splitlines()]
    assert len(pids) >= 7, done.stdout  # what was launched, a nursery, a zygote, and two of each two
    assert soon(lambda: [pid for pid in pids if os.path.exists(f"/proc/{pid}")], []) == []


def test_name_is_public() -> None:
    assert cellblock.keep_ready is keep_ready
