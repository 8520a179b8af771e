"""What a cell that met its time limit leaves: none of its processes, all of those from before, and its names."""

from __future__ import annotations

import time
from collections.abc import Callable

import anyio
import pytest

from cellblock import AsyncSession, Cell, CellState, ExecutionLimits, Session

OTHERS = """
def others():
    return [pid for pid in os.listdir('/proc') if pid.isdigit() and int(pid) not in (1, os.getpid())]
end = time.monotonic() + 5
while others() and time.monotonic() < end: time.sleep(0.01)
others()
"""
"""A session's processes but its first and its own, once those that are ending have; zombies are among them."""
FORKING = """
for _ in range(4):
    if not os.fork():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            if not (child := os.fork()):
                signal.pause()
            os.kill(child, signal.SIGKILL)
while True: pass
"""
"""Processes that fork all the time; a child that is left lives on."""
SLOWLY = "def slowly():\n    end = time.monotonic() + 0.02\n    while time.monotonic() < end: pass\n"


@pytest.fixture
def patient(open_session: Callable[..., Session]) -> Session:
    """A session whose cells time out after 0.5 s and have time to be interrupted on a machine that is busy."""
    limits = ExecutionLimits(timeout_seconds=0.5, interrupt_grace_seconds=10, max_processes=32)
    session = open_session(limits=limits)
    session.run("import os, signal, subprocess, time")
    return session


def time_out(session: Session, source: str) -> str:
    """Run a cell into its time limit, which must keep the names; what it showed."""
    session.run("kept = 1")
    cell = session.run(source)
    assert (cell.state, cell.lost) == (CellState.TIMEOUT, ()), cell.text
    assert session.run("kept").value == 1
    return "".join(output.text for output in cell.outputs[:-1])


def test_processes_end_with_the_cell_that_started_them(patient: Session) -> None:
    shown = time_out(patient, "one = subprocess.Popen(['sleep', '1000'])\nos.system('sleep 1000 &')\nwhile True: pass")
    assert shown == "[2 processes of the cell were killed at its time limit]\n"
    assert patient.run(OTHERS).value == []
    assert patient.run("one.returncode").value == -9


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    "waits",
    ["await sleep(9)", "await asyncio.gather(sleep(9))", "async with asyncio.timeout(8):\n    await sleep(9)"],
)
def test_cell_that_awaited_shows_where_and_no_line_of_the_loop(patient: Session, waits: str) -> None:
    patient.run("import asyncio\nfrom asyncio import sleep")
    cell = patient.run(f"async def waits():\n    {waits.replace(chr(10), chr(10) + '    ')}\nawait waits()")
    assert cell.state is CellState.TIMEOUT
    assert "await waits()" in cell.text
    assert waits.rpartition("\n")[2].strip() in cell.text
    assert "base_events" not in cell.text


@pytest.mark.sampled(0)
def test_cell_that_awaited_and_will_not_be_cancelled_goes_on_in_no_later_cell(patient: Session) -> None:
    patient.run("import asyncio")
    cell = patient.run("try:\n    await asyncio.sleep(9)\nexcept asyncio.CancelledError:\n    kept = 1")
    assert cell.state is CellState.TIMEOUT
    assert patient.run("await asyncio.sleep(0.01)\nkept").value == 1


@pytest.mark.sampled(0)
def test_cell_that_ends_in_time_while_its_host_is_held_up_is_no_time_out() -> None:
    started = "import subprocess, time\none = subprocess.Popen(['sleep', '1000'])"
    shows = "for n in range(3):\n    time.sleep(0.1)\n    print(n)\n44"

    async def run() -> tuple[CellState, object, object]:
        limits = ExecutionLimits(timeout_seconds=1)
        async with AsyncSession(limits=limits) as session, anyio.create_task_group() as group:
            cells = []

            async def in_time() -> None:
                cells.append(await session.run(f"{started}\n{shows}"))

            group.start_soon(in_time)
            await anyio.sleep(0.05)
            time.sleep(2)
            while not cells:
                await anyio.sleep(0.01)
            (cell,) = cells
            return cell.state, cell.value, (await session.run("one.poll()")).value

    assert anyio.run(run) == (CellState.COMPLETED, 44, None)


@pytest.mark.sampled(0)
def test_one_process_is_told_of_as_one(patient: Session) -> None:
    shown = time_out(patient, "if os.fork() == 0: signal.pause()\ntime.sleep(60)")
    assert shown == "[a process that the cell had started was killed at its time limit]\n"


@pytest.mark.sampled(0)
def test_processes_of_earlier_cells_live_on_with_what_they_start(patient: Session) -> None:
    patient.run("old = subprocess.Popen(['sh', '-c', 'while :; do sleep 0.02; done'])")
    time.sleep(0.05)
    assert time_out(patient, "while True: pass") == ""
    assert patient.run("old.poll() is None and os.path.exists(f'/proc/{old.pid}')").value is True


def test_a_process_that_left_its_parents_and_its_group_ends_too(patient: Session) -> None:
    source = "os.system('setsid sh -c \"(sleep 1000 &) ; exec sleep 1000\" > /dev/null 2>&1 &')\nwhile True: pass"
    assert "processes of the cell were killed" in time_out(patient, source)
    assert patient.run(OTHERS).value == []


@pytest.mark.sampled(0)
def test_a_fork_bomb_ends_with_its_cell_and_processes_can_be_started_again(patient: Session) -> None:
    for _ in range(3):
        shown = time_out(patient, "while True:\n    try: os.fork()\n    except OSError: pass")
        assert shown.endswith("processes of the cell were killed at its time limit]\n")
        assert patient.run("[subprocess.run(['true']).returncode for _ in range(4)]").value == [0] * 4
        assert patient.run("children = [os.posix_spawn('/bin/true', ['true'], {}) for _ in range(20)]").ok
        patient.run("for child in children: os.waitpid(child, 0)")


@pytest.mark.sampled(0)
@pytest.mark.sampled(0)
def test_a_process_that_is_being_forked_as_its_cell_ends_ends_too(patient: Session) -> None:
    for _ in range(12):
        time_out(patient, FORKING)
        assert patient.run(OTHERS).value == []


def test_spawned_programs_that_nobody_waits_for_give_their_places_back(patient: Session) -> None:
    source = "while True:\n    try: os.posix_spawn('/bin/sleep', ['sleep', '1000'], {})\n    except OSError: pass"
    time_out(patient, source)
    assert patient.run("subprocess.run(['true']).returncode").value == 0


@pytest.mark.sampled(0)
def test_processes_of_multiprocessing_are_told_how_they_ended(patient: Session) -> None:
    time_out(
        patient,
        "import multiprocessing\none = multiprocessing.Process(target=signal.pause)\none.start()\nwhile True: pass",
    )
    assert patient.run("one.is_alive(), one.exitcode").value == (False, -9)


@pytest.mark.sampled(0)
def test_processes_of_earlier_cells_do_not_stay_stopped(patient: Session) -> None:
    patient.run("old = subprocess.Popen(['sleep', '1000'])")
    time.sleep(0.05)
    time_out(patient, "while True: pass")
    assert patient.run("open(f'/proc/{old.pid}/stat').read().split()[2]").value == "S"


@pytest.mark.sampled(0)
def test_threads_of_the_session_go_on_after_a_time_out(patient: Session) -> None:
    patient.run("import threading\nticks = []\ndef tick():\n    while True: ticks.append(time.sleep(0.01))")
    patient.run("threading.Thread(target=tick, daemon=True).start()")
    time_out(patient, "while True: pass")
    before = patient.run("len(ticks)").value
    patient.run("time.sleep(0.1)")
    assert patient.run("len(ticks)").value > before  # type: ignore[operator]


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    "source",
    [
        SLOWLY + "class Slow:\n    def __del__(self): slowly()\nwhile True: Slow()",
        SLOWLY + "os.register_at_fork(before=slowly)\n"
        "while True:\n    child = os.fork()\n    if child == 0: os._exit(0)\n    os.waitpid(child, 0)",
    ],
    ids=["finalizer", "hook of a fork"],
)
def test_an_interrupt_that_the_interpreter_drops_comes_again(patient: Session, source: str) -> None:
    time_out(patient, source)


@pytest.mark.sampled(0)
def test_a_shell_command_ends_with_what_it_left_in_the_background(patient: Session) -> None:
    cell = patient.shell("sleep 1000 & sleep 1000")
    assert cell.state is CellState.TIMEOUT
    assert patient.run(OTHERS).value == []


async def _processes_of_an_abandoned_cell() -> list[str]:
    limits = ExecutionLimits(timeout_seconds=20, interrupt_grace_seconds=10)
    async with AsyncSession(limits=limits) as session:
        await session.run("import os, subprocess, time")
        with anyio.move_on_after(0.3):
            await session.run("one = subprocess.Popen(['sleep', '1000'])\nwhile True: pass")
        return (await session.run(OTHERS)).value  # type: ignore[return-value]


def test_processes_of_a_cell_that_its_caller_left_end_with_it() -> None:
    assert anyio.run(_processes_of_an_abandoned_cell) == []


@pytest.mark.sampled(0)
@pytest.mark.parametrize("seconds", [0.1, pytest.param(0.05, marks=pytest.mark.slow), 0.3])
def test_import_of_a_library_that_meets_the_limit_is_whole_afterwards(
    open_session: Callable[..., Session], seconds: float
) -> None:
    limits = ExecutionLimits(timeout_seconds=seconds, interrupt_grace_seconds=20)
    session = open_session(limits=limits)
    cell = session.run("kept = 1\nimport numpy, pandas\nwhile True: pass")
    assert (cell.state, cell.lost, session["kept"]) == (CellState.TIMEOUT, (), 1)
    source = "import numpy, pandas\nint(pandas.DataFrame({'a': numpy.arange(3)}).a.sum())"
    while (cell := session.run(source)).state is CellState.TIMEOUT:  # it is imported, and soon fast enough
        continue
    assert cell.value == 3, cell.text


@pytest.mark.sampled(0)
def test_import_that_does_not_end_within_the_grace_is_taken_back(open_session: Callable[..., Session]) -> None:
    # of a family of its own, whose zygote has imported neither for sessions that were saved
    limits = ExecutionLimits(timeout_seconds=0.05, interrupt_grace_seconds=0.01)
    session = open_session(limits=limits, preload=["wave"])
    session.run("kept = 1")
    assert session.run("import numpy, pandas\nwhile True: pass").rolled_back
    assert session.run("import sys\n[name for name in ('numpy', 'pandas') if name in sys.modules]").value == []
    assert session["kept"] == 1


@pytest.mark.sampled(0)
def test_module_of_the_session_that_does_not_end_is_interrupted_in_its_import(patient: Session) -> None:
    patient.files.write("endless.py", "import time\nwhile True: time.sleep(0.01)")
    time_out(patient, "import endless")
    assert patient.run("import sys\n'endless' in sys.modules").value is False


@pytest.mark.parametrize(
    "run", [Session.run, Session.shell, lambda *given, **more: list(Session.stream(*given, **more))[-1].cell]
)
def test_call_gives_a_time_limit_of_its_own(open_session: Callable[..., Session], run: Callable[..., Cell]) -> None:
    session = open_session(limits=ExecutionLimits(timeout_seconds=0.5))
    source = "sleep {}" if run is Session.shell else "import time; time.sleep({})"
    longer, shorter = run(session, source.format(1), timeout=30), run(session, source.format(30), timeout=0.1)
    assert longer.ok
    assert (shorter.state, shorter.timeout_seconds) == (CellState.TIMEOUT, 0.1)
    assert shorter.error is not None
    assert shorter.error.message == "the cell ran longer than 0.1 s"
    assert shorter.error.hint.startswith("do less in one cell, or call it with a larger timeout=;")
    assert "timeout=" not in shorter.text  # which a model reads
    assert session.rerun(longer.id).ok


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), "5", True])
def test_time_limit_that_is_no_number_of_seconds_is_refused(session: Session, timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout must be a number of seconds above 0, not "):
        session.run("1", timeout=timeout)
