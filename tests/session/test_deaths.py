"""A process that dies, by its cell's doing or the caller's: told once, and the session is as it was before."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from family_tree import Process, below, inits_of, launchers, nursery_of, soon, workers_of, zygotes_of

import cellblock.session.session
from cellblock import (
    AsyncSession,
    Cell,
    CellblockError,
    CellState,
    Done,
    ExecutionLimits,
    Live,
    Session,
    SessionClosed,
    Versioned,
)
from cellblock.executors.process import shell
from cellblock.executors.process.kernel import ProcessKernel
from cellblock.executors.process.link import Link
from cellblock.executors.process.shell import Shell
from cellblock.executors.protocol import Kernel
from cellblock.session.tools import Toolbox


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import os\nos._exit(0)", "the session's process left with status 0"),
        ("import os\nos._exit(3)", "the session's process left with status 3"),
        ("import ctypes\nctypes.string_at(0)", "the session's process was killed by SIGSEGV"),
        ("import os\nos.kill(os.getpid(), 11)", "the session's process was killed by SIGSEGV"),
        ("import os\nos.kill(os.getpid(), 9)", "the session's process was killed by SIGKILL"),
        ("import os\nos.abort()", "the session's process was killed by SIGABRT"),
        ("import faulthandler\nfaulthandler._sigabrt()", "the session's process was killed by SIGABRT"),
    ],
)
def test_death_is_reported_and_costs_the_cell_alone(session: Session, source: str, message: str) -> None:
    session.run("x = 41\nimport math\nopen('kept', 'w').write('1')")
    cell = session.run("x = 42\nopen('kept', 'w').write('2')\nprint('last words', flush=True)\n" + source)
    assert cell.error is not None
    assert (cell.state, cell.error.kind, cell.error.type) == (CellState.ERROR, "crashed", "ProcessDied")
    assert cell.error.message == message
    assert cell.error.hint == "the session is as it was before this cell"
    assert (cell.rolled_back, cell.undone, cell.lost) == (True, False, ())
    assert cell.text == f"last words\nProcessDied: {message}\nhint: the session is as it was before this cell"
    assert session.run("open('kept').read(), x, math.floor(1.5)").value == ("1", 41, 1)


@pytest.mark.sampled(0)
def test_death_that_is_told_late_is_told_as_it_was(session: Session) -> None:
    """By the worker's parent alone, which has no time for a second here."""
    session.run("x = 41")
    (zygote,) = zygotes_of(launchers()[-1])
    os.kill(zygote.pid, signal.SIGSTOP)
    going_on = threading.Timer(1.5, os.kill, (zygote.pid, signal.SIGCONT))
    going_on.start()
    cell = session.run("import os\nos._exit(7)")
    going_on.join()
    assert cell.error is not None
    assert cell.error.message == "the session's process left with status 7"
    assert session.run("x").value == 41


@pytest.mark.sampled(0)
def test_death_before_the_first_process_knows_the_worker_is_told(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host says which process is the worker now, and has it run a cell, without a pause between."""
    adopt = Shell.adopt

    def held(shell: Shell, *worker: int, **more: object) -> None:
        monkeypatch.undo()
        signal.pidfd_send_signal(shell.init, signal.SIGSTOP)
        threading.Timer(0.5, signal.pidfd_send_signal, (os.dup(shell.init), signal.SIGCONT)).start()
        adopt(shell, *worker, **more)

    session.run("x = 41")
    monkeypatch.setattr(Shell, "adopt", held)
    session.run("import os\nos._exit(6)")
    ended = session.run("import os\nos._exit(7)").error
    assert ended is not None
    assert ended.message == "the session's process left with status 7"
    assert session.run("x").value == 41


@pytest.mark.sampled(0)
def test_death_within_the_limit_that_is_told_after_it_is_no_time_out(open_session: Callable[..., Session]) -> None:
    """By the session's first process, which is the parent of a worker that was woken."""
    session = open_session(limits=ExecutionLimits(timeout_seconds=1, interrupt_grace_seconds=0.5))
    session.run("x = 41")
    session.run("import os\nos._exit(6)")
    session.run("y = 1")
    shell = session._session._kernel._shell  # type: ignore[attr-defined]
    assert soon(lambda: shell.keeping, False) is False
    signal.pidfd_send_signal(shell.init, signal.SIGSTOP)
    going_on = threading.Timer(2.5, signal.pidfd_send_signal, (shell.init, signal.SIGCONT))
    going_on.start()
    ended = session.run("import os\nos._exit(7)").error
    going_on.join()
    assert ended is not None
    assert ended.message == "the session's process left with status 7"
    assert session.run("x").value == 41


def test_what_was_held_before_a_set_back_is_no_reason_for_a_later_death(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Init tells it while it is asked to set the session back."""
    answered = Shell._answer

    async def late(shell: Shell, what: str, word: str) -> dict[str, object]:
        if word == "swept":
            shell._note({"curbed": "6000 file locks, over 4096", "worker": True, "unruly": False})
            shell._note({"curbed": "300 MB, over their memory limit", "worker": False, "unruly": False})
        return await answered(shell, what, word)

    session.run("x = 41")
    monkeypatch.setattr(Shell, "_answer", late)
    session.run("import os\nos._exit(6)")
    monkeypatch.undo()
    assert session.run("x").text == "41"
    ended = session.run("import os\nos._exit(7)").error
    assert ended is not None
    assert ended.message == "the session's process left with status 7"


@pytest.mark.parametrize("then", ["a death", "undo", "a branch", "a cell and a death"])
def test_write_whose_files_could_not_be_remembered_costs_itself_alone(
    session: Session, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    """The copy that holds the names is that of the cell before, and lives on."""
    keeping = shell._keeping
    session.run("x = 41\nopen('f', 'w').write('cell')\nimport os")

    def spoiled(*of: Any, repeated: int | None = None, **more: Any) -> dict[str, object]:
        kept = keeping(*of, repeated=repeated, **more)
        return kept if repeated is None else {**kept, "forgotten": ["none"]}  # not what is made ready for the next step

    monkeypatch.setattr(shell, "_keeping", spoiled)
    session.files.write("f", b"host")
    monkeypatch.undo()
    state = "x, open('f').read()"
    if then == "undo":
        session.undo()
    elif then == "a branch":
        with session.branch() as branch:
            assert branch.run("x").value == 41
        return
    else:
        if then != "a death":
            assert session.run("y = 1").ok
        died = session.run("os._exit(7)")
        lost = ["the last step"] * (then == "a death")
        assert (died.rolled_back, [one.name for one in died.lost]) == (not lost, lost)
    assert session.run(state).value == (41, "host" if then == "a cell and a death" else "cell")


@pytest.mark.parametrize("killed", ["a process", "the worker"])
def test_kill_that_the_first_process_has_told_is_not_told_again_for_the_kernels_count(
    session: Session, monkeypatch: pytest.MonkeyPatch, killed: str
) -> None:
    """Both have killed, and the kernel tells by a count: what it has counted by then is no news later."""
    session.run("x = 41\nimport os")
    kernel: Any = session._session._kernel
    counted = [1]
    monkeypatch.setattr(kernel._enclosure, "killed", lambda: counted.pop() if counted else 0)
    held = {"curbed": "300 MB, over their memory limit", "unruly": False}
    kernel._shell._note({**held, "worker": killed == "the worker"})
    kernel._link.alarmed = killed == "a process"
    first = session.run("x" if killed == "a process" else "os._exit(7)")
    assert "held 300 MB, over their memory limit" in first.text
    kernel._link.alarmed = True
    after = session.run("x")
    assert (after.text, after.value) == ("41", 41)


@pytest.mark.sampled(0)
def test_worker_that_is_killed_right_after_it_was_woken_is_told(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the kernel, where memory is short: before the host has named it, and before it has left a copy."""
    adopt = Link.adopt

    def killed(link: Link, names: dict[str, str]) -> None:
        monkeypatch.undo()
        os.kill(link.pid, signal.SIGKILL)
        assert soon(lambda: os.path.exists(f"/proc/{link.pid}"), False) is False
        adopt(link, names)

    session.run("x = 41")
    session.run("import random, time\nusual = random.getstate\nrandom.getstate = lambda: (time.sleep(0.5), usual())[1]")
    monkeypatch.setattr(Link, "adopt", killed)
    session.run("import os\nos._exit(6)")
    cell = session.run("x")
    assert cell.value == 41
    assert [one.name for one in cell.lost] == ["random", "time", "usual", "the last step"]
    assert {one.reason for one in cell.lost} == {"between two cells the session's process was killed by SIGKILL"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("lasts", [False, True])
@pytest.mark.parametrize("end", ["limit", "kill", "caller"])
def test_request_that_lies_unread_until_its_host_ends_it_is_not_begun_again(
    tmp_path: Path, end: str, lasts: bool
) -> None:
    name, state = ("unread", Versioned(f"sqlite:///{tmp_path}/cells.db")) if lasts else (None, Live())
    limits = ExecutionLimits(timeout_seconds=1 if end == "limit" else 30, interrupt_grace_seconds=0.5)
    source = "x = 2\nopen('ran', 'w').close()\nwhile True: pass"

    async def run() -> tuple[Cell | None, object, list[str]]:
        async with AsyncSession(name, state=state, limits=limits) as session:
            await session.run("x = 1")
            kernel: Any = session._kernel
            while not kernel._checkpoints.newest.memory.settled:  # the worker makes its copy once it has replied
                await anyio.sleep(0.01)
            os.kill(kernel._link.pid, signal.SIGSTOP)
            cell = None
            if end == "caller":
                with anyio.move_on_after(0.5):
                    await session.run(source)
            else:
                if end == "kill":
                    asyncio.get_running_loop().call_later(0.5, session.kill)
                cell = await session.run(source)
            return cell, (await session.run("x")).value, await session.files.list()

    began = time.monotonic()
    cell, x, files = anyio.run(run)
    assert (x, files) == (1, [])
    assert time.monotonic() - began < 20
    if cell is not None:
        assert cell.error is not None
        assert (cell.error.kind, cell.rolled_back) == ("timeout" if end == "limit" else "crashed", True)


def test_stream_that_is_read_on_after_its_session_was_closed_says_so(session: Session) -> None:
    events = session.stream("print(1)\nwhile True: pass")
    next(events)
    session.kill()
    session.close()
    with pytest.raises(SessionClosed):
        for _ in events:
            pass


def test_first_cell_that_dies_leaves_a_session_that_nothing_was_done_in(session: Session) -> None:
    cell = session.run("y = 1\nopen('new', 'w').close()\nimport os\nos._exit(1)")
    assert (cell.rolled_back, cell.lost) == (True, ())
    assert session.run("'y' in globals()").value is False
    assert (session.names(), session.files.list()) == ({}, [])


@pytest.fixture
def forgetful(open_session: Callable[..., Session]) -> Session:
    """A session without checkpoints."""
    return open_session(limits=ExecutionLimits(timeout_seconds=20, max_checkpoints=0))


def test_without_checkpoints_a_death_is_told_with_every_name_and_files_stay(forgetful: Session) -> None:
    forgetful.run("x = 41\nimport math\nopen('kept', 'w').write('1')")
    cell = forgetful.run("open('kept', 'a').write('2')\nimport os\nos._exit(3)")
    assert cell.error is not None
    assert (cell.error.kind, cell.rolled_back) == ("crashed", False)
    assert cell.error.hint == ("the namespace is empty again, files are kept: run what defined the lost names again")
    assert [(loss.name, loss.type) for loss in cell.lost] == [("math", "module"), ("x", "int")]
    assert cell.text.endswith("lost: math, x (run the cells that defined it again)")
    assert forgetful.run("open('kept').read(), 'x' in globals()").value == ("12", False)
    assert forgetful.run("import os\nos._exit(1)").lost == ()


def test_without_checkpoints_a_kill_between_two_cells_is_told_by_the_next(forgetful: Session) -> None:
    for number in range(10):
        forgetful.run(f"x{number} = {number}")
        forgetful.kill()
        cell = forgetful.run("0")
        assert [loss.name for loss in cell.lost] == [f"x{number}"]
        assert cell.lost[0].reason == "between two cells the session's process was killed by SIGKILL"


ENDS = {
    **{f"status {status}": f"os._exit({status})" for status in (0, 71, os.EX_OSFILE, 73)},
    "signal": "os.kill(os.getpid(), 9)",
}
TOLD_BEFORE = {"a call": "pay(17)", "text": "print('hello', flush=True)", "nothing": ""}


@pytest.fixture(params=["full", "reduced"])
def walled(
    request: pytest.FixtureRequest, open_session: Callable[..., Session], readable_python: str
) -> Callable[..., Session]:
    """Opens sessions with these walls."""
    more = {"python": readable_python} if request.param == "reduced" else {}
    return partial(open_session, walls=request.param, **more)


@pytest.mark.parametrize("before", TOLD_BEFORE)
@pytest.mark.parametrize("end", ENDS)
def test_cell_that_ends_its_process_is_run_once_however_it_ends(
    walled: Callable[..., Session], end: str, before: str
) -> None:
    paid: list[int] = []

    def pay(amount: int) -> None:
        paid.append(amount)

    session = walled(tools=[pay])
    cell = session.run(f"import os\n{TOLD_BEFORE[before]}\n{ENDS[end]}")
    assert cell.error is not None
    assert paid == [17] * (before == "a call")
    assert cell.text.count("hello") == (before == "text")
    assert "in a row" not in cell.text  # one process has ended, and no second one
    assert session.run("1").value == 1


@pytest.mark.sampled(0)
@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 9)", "os._exit(9)"])
def test_request_that_lay_unread_as_its_process_ended_is_carried_out(walled: Callable[..., Session], end: str) -> None:
    paid: list[int] = []

    def pay(amount: int) -> None:
        paid.append(amount)

    session = walled(tools=[pay])
    session.run("import os, signal, time")
    session.run(
        f"def end(*_):\n    time.sleep(0.6)\n    {end}\n"
        "signal.signal(signal.SIGALRM, end)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.2)"
    )
    time.sleep(0.5)  # the handler runs, and nothing is read meanwhile
    session.run("import signal\nsignal.setitimer(signal.ITIMER_REAL, 0)\npay(17)")
    assert paid == [17]


def test_without_checkpoints_nothing_can_be_undone(forgetful: Session) -> None:
    forgetful.run("x = 1")
    with pytest.raises(CellblockError) as caught:
        forgetful.undo()
    assert str(caught.value) == (
        "nothing can be undone (raise ExecutionLimits(max_checkpoints=…) before the session is opened)"
    )
    assert forgetful.run("x").value == 1


def test_session_survives_as_many_deaths_as_it_meets(session: Session) -> None:
    for number in range(3):
        assert session.run("import os\nos._exit(1)").error.kind == "crashed"  # type: ignore[union-attr]
        assert session.run(f"{number}").value == number


def test_processes_that_a_dead_session_left_behind_are_gone(session: Session) -> None:
    session.run("import subprocess, os\nsubprocess.Popen(['sleep', '1000'])\nos._exit(1)")
    found = session.run(
        "import os\nnames = []\nfor p in filter(str.isdigit, os.listdir('/proc')):\n"
        "    try: names.append(open(f'/proc/{p}/comm').read().strip())\n    except OSError: pass\n'sleep' in names"
    )
    assert found.value is False


def test_process_that_takes_the_place_of_a_dead_one_and_dies_at_once_is_told_too(
    forgetful: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgetful.run("x = 1\nimport os, threading\nthreading.Timer(0.05, os._exit, [1]).start()")
    time.sleep(0.3)
    begin = ProcessKernel.begin

    async def begin_and_die(kernel: ProcessKernel) -> None:
        await begin(kernel)
        pidfd = kernel._living().pidfd
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        select.select([pidfd], [], [])
        monkeypatch.undo()

    monkeypatch.setattr(ProcessKernel, "begin", begin_and_die)
    cell = forgetful.run("1 + 1")
    assert cell.error is not None
    assert (cell.error.type, cell.error.message) == ("ProcessDied", "the session's process was killed by SIGKILL")
    assert "x" in [loss.name for loss in cell.lost]
    assert forgetful.run("1 + 1").value == 2


def test_death_between_two_cells_costs_the_thread_that_did_it(session: Session) -> None:
    session.run("x = 1")
    first = session.run("import os, threading\nthreading.Timer(0.05, os._exit, [1]).start()")
    assert first.ok
    time.sleep(0.3)  # a cell that is just ending when the timer fires would be lost, too
    cell = session.run("x")
    assert cell.value == 1
    assert [(loss.type, loss.remedy) for loss in cell.lost] == [("Thread", "start it again")]
    assert cell.lost[0].name in cell.text
    assert session.run("x").value == 1


def test_killing_a_running_cell_reports_it(session: Session) -> None:
    session.run("x = 1")
    events = session.stream("print('begun')\nwhile True: pass")
    next(events)
    session.kill()
    *_, done = events
    assert isinstance(done, Done)
    assert (done.cell.error.kind, done.cell.error.message) == (  # type: ignore[union-attr]
        "crashed",
        "the session's process was killed by SIGKILL",
    )
    assert (done.cell.rolled_back, done.cell.lost) == (True, ())
    assert session.run("x").value == 1


def test_killing_an_idle_session_loses_nothing(session: Session) -> None:
    session.run("x = 1\nopen('kept', 'w').write('1')\nimport os\npid = os.getpid()")
    session.kill()
    cell = session.run("x, open('kept').read(), pid != os.getpid()")
    assert (cell.value, cell.lost) == ((1, "1", True), ())


def test_what_the_last_cell_bound_is_there_even_when_killed_right_after_its_reply(session: Session) -> None:
    session.run("x = []")
    for number in range(30):
        session.run(f"x.append({number})")
        session.kill()
    assert session.run("x").value == list(range(30))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("ends", "lost"),
    [
        ("import socket\na, b = socket.socketpair()", "lost: a, b (connect again)"),
        ("import os\na, b = os.pipe()\nprint(f'{a}, descriptor {b}')", "lost: descriptor {} (open it again)"),
    ],
)
def test_connection_that_ended_with_a_process_is_told_once(session: Session, ends: str, lost: str) -> None:
    opened = session.run(ends).text
    told = [_seen_after(session.kill, session) for _ in range(3)]
    assert told == [f"1\n{lost.format(opened)}", "1", "1"]
    with session.branch() as branch:
        assert branch.run("1").text == "1"
    again = session.run(ends).text
    assert _seen_after(session.kill, session) == f"1\n{lost.format(again)}"


def _seen_after(ending: Callable[[], object], session: Session) -> str:
    ending()
    return session.run("1").text


def test_name_is_read_after_a_death(session: Session) -> None:
    session.run("x = 1")
    session.kill()
    assert session["x"] == 1
    session.kill()
    assert session.names()["x"].preview == "1"
    session.kill()
    session["x"] = 2
    assert session.run("x").value == 2


def test_clear_that_ends_the_process_has_cleared_nothing_and_says_so(session: Session) -> None:
    session.run("import os\nclass Bomb:\n    def __del__(self, end=os._exit): end(3)\nx, bomb = 1, Bomb()")
    with pytest.raises(CellblockError, match="clear: ProcessDied: the session's process left with status 3"):
        session.clear()
    assert len(session.notebook.cells) == 1
    assert session["x"] == 1


def test_file_that_is_left_open_when_all_is_cleared_is_no_change_of_the_runner(session: Session) -> None:
    session.run("left = open('left', 'w')")
    session.clear()
    session.run("import mimetypes")
    cell = session.run("'left' in globals(), 'mimetypes' in globals()")
    assert (cell.value, cell.lost) == ((False, True), ())


def test_what_a_host_request_finds_lost_is_said_by_the_next_cell(session: Session) -> None:
    session.run("import socket\none, two = socket.socketpair()")
    session.kill()
    assert session.names()["one"].type == "socket"
    cell = session.run("0")
    assert [(loss.name, loss.remedy) for loss in cell.lost] == [("one", "connect again"), ("two", "connect again")]
    assert session.run("0").lost == ()


def test_leaving_a_stream_ends_the_cell_and_the_session_goes_on(session: Session) -> None:
    session.run("x = 1")
    for event in session.stream("import time\nprint('begun')\nwhile True: time.sleep(0.01)"):
        assert event is not None
        break
    assert session.notebook[1].state is CellState.ERROR
    assert session.run("x").value == 1


@pytest.mark.parametrize(
    "source",
    [
        "import builtins\nfor name in list(vars(builtins)):\n    if not name.startswith('__'): delattr(builtins, name)",
        "del __builtins__",
        "__builtins__ = {}",
        "import json, pickle, traceback, linecache\njson.dumps = pickle.loads = linecache.cache = None",
        "import sys\nsys.modules.clear()",
        "import sys\nsys.excepthook = sys.displayhook = sys.settrace = None",
        "import sys\nsys.settrace(lambda *a: 1/0)",
        "import sys\nsys.setrecursionlimit(60)",
        "import gc, sys\ngc.callbacks.append(lambda *a: 1/0)",
        "import signal\nfor n in set(range(1, 32)) - {9, 19}: signal.signal(n, signal.SIG_IGN)",
        "import os\nos.write = os.fork = os.getpid = os.fstat = None",
        "globals().clear()",
        "globals()[1] = globals()['a' * 5000] = globals()['\\ud800'] = 1",
        "class K:\n    def __hash__(self): return 1\n    def __eq__(self, other): 1/0\nglobals()[K()] = 1",
        "import time\ntime.monotonic = time.process_time = None",
        "import threading\nthreading.RLock = threading.Lock = None",
        "import os\nos.chdir('/')\nos.environ.clear()",
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))",
        "import resource\nresource.setrlimit = None",
        "import atexit, os\natexit.register(os._exit, 9)\nimport sys\nsys.exit(0)",
    ],
    ids=lambda source: ascii(source[:40]),
)
def test_cell_that_breaks_its_world_harms_no_more_than_its_own_process(session: Session, source: str) -> None:
    """Either the session goes on with what is left of that world, or it goes back to before, by itself or by undo."""
    session.run(source)
    cell = session.run("'a' 'b'")
    if cell.error is not None and cell.error.kind == "raised":
        session.undo(2)
    if cell.error is not None:
        session.run("'the cell that may tell of the death'")
    assert session.run("'a' 'b'").value == "ab"


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("class R:\n    def __repr__(self): return 'x' * 100_000_000\nR()", "characters cut"),
        ("class R:\n    def __repr__(self): raise ValueError('no')\nR()", "<R repr failed: ValueError: no>"),
        ("class R:\n    def __repr__(self): return 7\nR()", "<R repr failed: TypeError: "),
        (
            "class S(str):\n    def __len__(self): return 1 // 0\nclass R:\n    def __repr__(self): return S('s')\nR()",
            "s",
        ),
    ],
)
def test_repr_that_misbehaves_is_bounded_and_named(session: Session, source: str, shown: str) -> None:
    cell = session.run(source)
    assert cell.state is CellState.COMPLETED, cell.error
    assert shown in cell.text
    assert len(cell.text) < 10_200


# --- what makes sessions, killed from outside ----------------------------------------------------------------------

DIED = "its first process is gone (its files are gone with it: open a new session)"


@pytest.fixture
def launcher(open_session: Callable[..., Session]) -> Iterator[Process]:
    """The launcher of a family that no other test uses."""
    others = {one.pid for one in launchers()}
    open_session(preload=["wave"]).close()
    (new,) = (one for one in launchers() if one.pid not in others)
    yield new
    for one in launchers():
        if one.pid not in others:
            kill(one)
    assert soon(lambda: {one.pid for one in launchers()} - others, set()) == set()


@pytest.fixture
def own(open_session: Callable[..., Session], launcher: Process) -> Session:
    """A session of that family."""
    assert launcher
    return open_session(preload=["wave"])


def kill(process: Process) -> None:
    os.kill(process.pid, signal.SIGKILL)


def kill_first(which: str, launcher: Process) -> None:
    """Kill one that the session's processes die with, and wait until they have."""
    victims = {"nursery": [nursery_of(launcher)], "launcher": [launcher], "init": inits_of(launcher)}
    workers = {one.pid for one in workers_of(launcher)}
    kill(*victims[which])
    assert soon(lambda: workers & {one.pid for one in below(1)}, set()) == set()


@pytest.mark.sampled(0)
def test_sessions_go_on_when_their_zygote_is_killed(own: Session, launcher: Process) -> None:
    own.run("x = 41")
    kill(*zygotes_of(launcher))
    assert own.run("x + 1").value == 42
    assert soon(lambda: zygotes_of(launcher), []) == []


@pytest.mark.sampled(0)
def test_sessions_open_in_the_same_family_when_its_zygote_is_killed(
    own: Session, launcher: Process, open_session: Callable[..., Session]
) -> None:
    (old,) = zygotes_of(launcher)
    kill(old)
    assert open_session(preload=["wave"]).run("import sys\n'wave' in sys.modules").value is True
    (new,) = zygotes_of(launcher)
    assert new.pid != old.pid
    assert len(inits_of(launcher)) == 2


@pytest.mark.sampled(0)
def test_checkpoints_outlive_the_zygote(own: Session, launcher: Process) -> None:
    own.run("x = 1\nopen('kept', 'w').write('1')")
    kill(*zygotes_of(launcher))
    for _ in range(2):
        cell = own.run("x = 2\nopen('kept', 'w').write('2')\nimport os\nos._exit(3)")
        assert (cell.error.kind, cell.error.message) == (  # type: ignore[union-attr]
            "crashed",
            "the session's process left with status 3",
        )
        assert (cell.rolled_back, cell.lost) == (True, ())
        assert own.run("open('kept').read(), x").value == ("1", 1)


@pytest.mark.sampled(0)
def test_first_cell_that_dies_after_the_zygote_is_told_and_its_process_replaced(
    own: Session, launcher: Process
) -> None:
    own.files.write("kept", "1")
    kill(*zygotes_of(launcher))
    cell = own.run("import os\nos._exit(3)")
    assert (cell.error.kind, cell.rolled_back) == ("crashed", True)  # type: ignore[union-attr]
    assert own.run("open('kept').read()").value == "1"


@pytest.mark.sampled(0)
def test_each_zygote_lays_out_its_memory_anew(own: Session, launcher: Process) -> None:
    where = "[line.split('-')[0] for line in open('/proc/self/maps') if line.endswith('[stack]\\n')]"
    before = own.run(where)
    assert before.ok
    kill(*zygotes_of(launcher))
    own.undo()
    after = own.run(where)
    assert after.ok
    assert after.value != before.value


@pytest.mark.sampled(0)
@pytest.mark.parametrize("which", ["nursery", "launcher", "init"])
def test_session_whose_first_process_is_killed_is_closed_with_a_word(
    own: Session, launcher: Process, which: str, open_session: Callable[..., Session]
) -> None:
    own.run("x = 1")
    kill_first(which, launcher)
    with pytest.raises(SessionClosed) as caught:
        own.run("x")
    assert str(caught.value) == f"the session's process ended and no other could be started: {DIED}"
    with pytest.raises(SessionClosed):
        own.run("x")
    assert open_session(preload=["wave"]).run("6 * 7").value == 42


@pytest.mark.sampled(1)
@pytest.mark.parametrize("before", ["cell", "beside a cell", "between"])
def test_every_call_of_a_session_whose_processes_are_all_killed_says_so(
    own: Session, launcher: Process, before: str
) -> None:
    session = own
    session.run("keep = 1\nimport time")
    session.run("open('f', 'w').write('text')")
    if before == "between":
        time.sleep(0.2)
    end = partial(_end_all, [launcher, *below(launcher.pid)])
    if before == "beside a cell":
        threading.Timer(0.1, end).start()
        with suppress(CellblockError):
            session.run("time.sleep(0.2)")
    else:
        end()
    calls: dict[str, Callable[[], object]] = {
        "run": lambda: session.run("keep"), "undo": session.undo, "names": session.names, "list": session.files.list,
        "read": lambda: session.files.read("f"), "write": lambda: session.files.write("g", b""),
        "get": lambda: session["keep"], "shell": lambda: session.shell("true"), "branch": session.branch,
        "clear": session.clear, "delete": lambda: session.files.delete("f"), "interrupt": session.interrupt,
        "kill": session.kill, "checkpoint": session.checkpoint, "back": lambda: session.undo(to=session.checkpoint()),
    }  # fmt: skip
    told = {name: _told_by(call) for name, call in [*calls.items()] * 2}
    assert {name: error for name, error in told.items() if not isinstance(error, SessionClosed | None)} == {}


def _told_by(call: Callable[[], object]) -> CellblockError | None:
    try:
        call()
    except CellblockError as error:
        return error
    return None


def _end_all(processes: list[Process]) -> None:
    for one in processes:
        with suppress(ProcessLookupError):
            os.kill(one.pid, signal.SIGKILL)


@pytest.mark.sampled(0)
@pytest.mark.parametrize("which", ["nursery", "launcher", "init"])
def test_running_cell_whose_first_process_is_killed_is_told(own: Session, launcher: Process, which: str) -> None:
    events = own.stream("print('begun')\nwhile True: pass")
    next(events)
    kill_first(which, launcher)
    with pytest.raises(SessionClosed, match="its first process is gone"):
        list(events)


def test_worker_killed_from_outside_is_told(own: Session, launcher: Process) -> None:
    events = own.stream("print('begun')\nwhile True: pass")
    next(events)
    kill(*workers_of(launcher))
    *_, done = events
    assert isinstance(done, Done)
    assert done.cell.error.message == "the session's process was killed by SIGKILL"  # type: ignore[union-attr]
    assert own.run("6 * 7").value == 42


_DIES = "import os, threading\nthreading.Timer(0.05, os._exit, [1]).start()"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", ["kill", "its own end"])
@pytest.mark.parametrize("most", [0, 1, 5])
def test_stored_session_answers_after_its_process_ended_between_two_cells(
    opened: Callable[..., Session], most: int, how: str
) -> None:
    session = opened(limits=ExecutionLimits(max_checkpoints=most, timeout_seconds=20))
    session.run("rows = [1]")
    session.run("rows.append(2)\nopen('f', 'w').write('kept')")
    session.files.write("g", "host")
    if how == "kill":
        session.kill()
    else:
        session.run(_DIES)
        time.sleep(0.3)
    cell = session.run("rows, open('f').read(), open('g').read()")
    assert cell.value == ([1, 2], "kept", "host")
    if how == "kill":
        assert cell.lost == ()
    assert session.run("rows").value == [1, 2]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("most", [0, 1, 5])
def test_stored_session_loses_nothing_to_the_end_of_its_process_in_a_cell(
    opened: Callable[..., Session], most: int
) -> None:
    session = opened(limits=ExecutionLimits(max_checkpoints=most, timeout_seconds=20))
    session.run("rows = [1]")
    session.run("rows.append(2)\nopen('f', 'w').write('kept')")
    died = session.run("rows.append(3)\nimport os; os._exit(1)")
    assert died.error is not None
    assert died.rolled_back
    assert session.run("rows, open('f').read()").value == ([1, 2], "kept")


def test_live_session_without_checkpoints_goes_on_empty_over_its_files(open_session: Callable[..., Session]) -> None:
    session = open_session(limits=ExecutionLimits(max_checkpoints=0, timeout_seconds=20))
    session.run("rows = [1]\nopen('f', 'w').write('kept')")
    session.kill()
    cell = session.run("open('f').read()")
    assert cell.value == "kept"
    assert [one.name for one in cell.lost] == ["rows"]


@pytest.mark.sampled(0)
@pytest.mark.parametrize("source", ["print('a')\nwhile True: pass", "while True: print('a' * 1000)"])
def test_a_stream_that_nobody_reads_ends_at_its_time_limit(open_session: Callable[..., Session], source: str) -> None:
    """The next caller has its turn, and who reads on after all is told how the cell ended."""
    session = open_session(limits=ExecutionLimits(timeout_seconds=1, interrupt_grace_seconds=0.5))
    events = session.stream(source)
    next(events)
    assert session.run("1").value == 1
    *_, last = events
    assert isinstance(last, Done)
    assert last.cell.error is not None
    assert last.cell.error.kind == "timeout"
    assert session.notebook[last.cell.id] == last.cell


def _merge(session: Session) -> None:
    with session.branch("other") as other:
        other.run("y = 1")
        session.merge(other)


_OPENS: dict[str, Callable[[Session], object]] = {
    "wake": lambda session: (session.hibernate(), session.run("x")),
    "set": lambda session: (session.hibernate(), session.__setitem__("z", 3)),
    "checkout": lambda session: session.checkout("HEAD"),
    "undo": lambda session: (session.run("x = 3"), session.hibernate(), session.undo()),
    "merge": _merge,
}


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many of the next processes are killed as they are to be given the session's functions."""
    deaths = [0]
    equip = cellblock.session.session.equip

    async def killed(kernel: Kernel, toolbox: Toolbox) -> None:
        if deaths[0]:
            deaths[0] -= 1
            kernel.kill()
        await equip(kernel, toolbox)

    monkeypatch.setattr("cellblock.session.session.equip", killed)
    return deaths


def price() -> int:
    return 7


@pytest.mark.sampled(0)
@pytest.mark.parametrize("call", _OPENS)
def test_process_that_is_killed_before_it_has_its_functions_is_replaced(
    opened: Callable[..., Session], dying: list[int], call: str
) -> None:
    dying[0] = 1
    session = opened(tools=[price])
    session.run("x = 2")
    dying[0] = 1
    _OPENS[call](session)
    assert dying == [0]
    assert session.run("x, price()").value == (2, 7)


@pytest.mark.sampled(0)
def test_processes_that_are_all_killed_before_they_have_their_functions_are_told(
    opened: Callable[..., Session], dying: list[int]
) -> None:
    session = opened(tools=[price])
    session.run("x = 2")
    session.hibernate()
    dying[0] = 100
    with pytest.raises(SessionClosed, match="the session's process was killed by SIGKILL before it had its tools"):
        session.run("x")
    dying[0] = 0
    assert session.run("x, price()").value == (2, 7)


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    ("source", "said"),
    [("while True: pass", "the cell ran longer than 1 s"), ("import os; os._exit(7)", "the session's process left")],
)
def test_first_process_that_somebody_has_stopped_goes_on(
    source: str, said: str, open_session: Callable[..., Session], caplog: pytest.LogCaptureFixture
) -> None:
    session = open_session(limits=ExecutionLimits(timeout_seconds=1, interrupt_grace_seconds=0.5))
    session.run("x = 41")
    shell = session._session._kernel._shell  # type: ignore[attr-defined]
    assert soon(lambda: shell.keeping, False) is False
    signal.pidfd_send_signal(shell.init, signal.SIGSTOP)
    began = time.monotonic()
    ended = session.run(source).error
    assert ended is not None
    assert ended.message.startswith(said)
    assert time.monotonic() - began < 30
    assert session.run("x").value == 41
    assert "the first process of a session" in caplog.text
    assert "has been stopped, and goes on" in caplog.text


@pytest.mark.sampled(0)
def test_process_that_makes_sessions_and_that_somebody_has_stopped_goes_on(
    open_session: Callable[..., Session], caplog: pytest.LogCaptureFixture
) -> None:
    open_session()
    for launcher in launchers():  # of other tests, too
        os.kill(nursery_of(launcher).pid, signal.SIGSTOP)
    began = time.monotonic()
    assert open_session(limits=ExecutionLimits(max_processes=17)).run("1").value == 1
    assert time.monotonic() - began < 30
    assert "a process that makes sessions" in caplog.text
