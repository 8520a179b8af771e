"""Branches: another session with the same live objects, from which on the two go apart."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import anyio
import pytest
from family_tree import below, soon
from insides import ASK, Insides

from cellblock import AsyncSession, CellblockError, ExecutionLimits, Session, SessionClosed, Versioned
from cellblock.executors.process.examination import examine

LIMITS = ExecutionLimits(timeout_seconds=10)


@pytest.fixture
def session() -> Iterator[Session]:
    with Session(limits=LIMITS, seed=1) as session:
        yield session


def test_objects_that_cannot_be_pickled_live_on_in_both(session: Session) -> None:
    session.run("g = (i * i for i in range(100)); next(g); f = lambda x: x + 1\nimport sqlite3")
    session.run("db = sqlite3.connect(':memory:'); db.execute('create table t(a)'); state = [1]")
    with session.branch() as branch:
        branch.run("state.append('branch'); db.execute('insert into t values (1)'); next(g); next(g)")
        rows = "next(g), f(1), state, db.execute('select count(*) from t').fetchone()[0]"
        assert branch.run(rows).value == (9, 2, [1, "branch"], 1)
        assert session.run(rows).value == (1, 2, [1], 0)


def test_files_go_apart(session: Session) -> None:
    session.run("import os\nos.makedirs('d'); open('d/both.txt', 'w').write('both'); os.link('d/both.txt', 'link')")
    session.files.write("host.bin", bytes(3_000_000))
    session.run("file = open('d/both.txt', 'a')")
    with session.branch() as branch:
        branch.run("file.write(' branch'); file.flush(); open('/tmp/own', 'w').write('1')")
        session.run("file.write(' stem'); file.flush(); os.remove('host.bin')")
        assert branch.run("open('d/both.txt').read(), open('link').read()").value == ("both branch", "both branch")
        assert session.run("open('d/both.txt').read(), os.path.exists('/tmp/own')").value == ("both stem", False)
        assert branch.files.list() == ["d/both.txt", "host.bin", "link"]
        assert session.files.list() == ["d/both.txt", "link"]
        branch.files.write("/tmp/own", "2")
        assert branch.files.read("/tmp/own") == b"2"


@pytest.mark.sampled(0)
def test_names_of_one_file_in_several_directories_are_there_in_a_branch_and_after_its_merge(tmp_path: Path) -> None:
    """Those directories are mounts in a branch, over which no link leads: there it is a file in each."""
    with Session("a", state=Versioned(f"sqlite:///{tmp_path}/cells.db"), limits=LIMITS) as session:
        session.run("import os\nopen('a', 'w').write('both')\nfor one in ('/tmp/b', '/tmp/c', 'd'): os.link('a', one)")
        names = "[open(one).read() for one in ('a', 'd', '/tmp/b', '/tmp/c')]"
        with session.branch("other") as branch:
            cell = branch.run(names)
            assert (cell.value, cell.lost) == (["both"] * 4, ())
            assert branch.run("os.path.samefile('a', 'd') and os.path.samefile('/tmp/b', '/tmp/c')").value is True
            branch.run("open('a', 'w').write('branch'); os.remove('/tmp/c')")
            branch.undo()
            assert branch.run(names).value == ["both"] * 4
            branch.run("x = 1")
            session.merge(branch)
        assert session.run(names).value == ["both"] * 4
        session.hibernate()
        assert session.run(names).value == ["both"] * 4


def test_what_two_cannot_have_is_lost_in_the_branch_alone(session: Session) -> None:
    session.run("import mmap, os, socket\nleft, right = socket.socketpair(); outlet, inlet = os.pipe()")
    session.run("open('f', 'wb').write(bytes(8192)); file = open('f', 'r+b'); shared = mmap.mmap(file.fileno(), 8192)")
    session.run("nameless = open('g', 'w+b'); nameless.write(b'secret'); nameless.flush(); os.remove('g')")
    with session.branch() as branch:
        cell = branch.run("shared[0] = 66; shared[:2]")
        assert cell.value == b"B\0"
        names = {loss.name for loss in cell.lost}
        assert {"left", "right", "nameless", "mapping of /session/workspace/f"} <= {
            "nameless" if name.startswith("descriptor") else name for name in names
        }
        assert branch.run("open('f', 'rb').read(1)").value == b"\0"
        assert branch.run("nameless.seek(0); nameless.read()").error.type == "OSError"
        assert branch.run("os.write(inlet, b'x')").error.type == "BrokenPipeError"
    assert session.run("left.send(b'x'), right.recv(1), shared[0], open('f', 'rb').read(1)").value == (
        1,
        b"x",
        0,
        b"\0",
    )


def test_a_copy_of_stdout_is_the_branchs_own(session: Session) -> None:
    session.run("import os\nout = os.dup(1)")
    with session.branch() as branch:
        assert branch.run("_ = os.write(out, b'branch')").text == "branch"
        assert session.run("_ = os.write(out, b'stem')").text == "stem"


def test_a_directory_that_was_open_is_the_branchs_own(session: Session) -> None:
    session.run("import os\nopen('a', 'w').close(); here = os.open('.', os.O_RDONLY)")
    with session.branch() as branch:
        session.run("open('stem', 'w').close()")
        assert branch.run("sorted(os.listdir(here))").value == ["a"]


@pytest.mark.sampled(0)
def test_random_streams_differ_and_can_be_told_again() -> None:
    told = []
    for _ in range(2):
        with Session(seed=7) as session:
            session.run("import random")
            with session.branch() as first, session.branch() as second:
                told.append([one.run("random.random()").value for one in (session, first, second)])
    assert told[0] == told[1]
    assert len(set(told[0])) == 3


def test_the_notebook_is_copied_and_then_its_own(session: Session) -> None:
    session.run("1")
    with session.branch() as branch:
        branch.run("2")
        session.run("3")
        assert [cell.source for cell in branch.notebook] == ["1", "2"]
        assert [cell.source for cell in session.notebook] == ["1", "3"]
        assert branch.notebook[1].number == 2


def test_a_branch_undoes_and_survives_as_any_session_does(session: Session) -> None:
    session.run("state = [1]")
    with session.branch() as branch:
        branch.run("state.append(2); open('f', 'w').write('2')")
        branch.undo()
        assert branch.run("import os\nstate, os.path.exists('f')").value == ([1], False)
        died = branch.run("state.append(3); os._exit(3)")
        assert (died.rolled_back, branch.run("state").value) == (True, [1])
        branch.kill()
        assert branch.run("state").value == [1]


def test_a_session_whose_process_was_killed_is_branched_from_before(session: Session) -> None:
    session.run("state = [1]; open('f', 'w').write('1')")
    session.kill()
    with session.branch() as branch:
        assert branch.run("state, open('f').read()").value == ([1], "1")
    session.kill()
    assert session.run("state").value == [1]


@pytest.mark.sampled(0)
@pytest.mark.parametrize("is_versioned", [False, True])
@pytest.mark.parametrize("steps", [1, 3])
def test_a_session_whose_copy_was_killed_is_branched_from_another(
    is_versioned: bool, steps: int, tmp_path: Path
) -> None:
    if os.getuid() != 0:
        pytest.skip("frozen copies are hidden from an ordinary user")
    state = Versioned(f"sqlite:///{tmp_path}/cells.db") if is_versioned else "default"
    with Session("one" if is_versioned else None, state=state, limits=LIMITS) as session:
        insides = Insides(str(session.run(ASK).value))
        for step in range(steps):
            session.run(f"state = [{step}]")
        if is_versioned:
            session.flush()
        session.branch().close()  # which waits for the copy
        newest = insides.others()[-1]
        os.kill(newest.pid, signal.SIGKILL)
        assert not soon(lambda: newest in insides.others(), False)
        with session.branch() as branch:
            assert branch.run("state").value == [steps - 1]
        assert session.run("state").value == [steps - 1]
        session.undo()
        assert session.run("state").value == [steps - 1]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("is_versioned", [False, True])
def test_a_session_whose_process_dies_while_it_is_branched_is_branched_all_the_same(
    is_versioned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = []

    def kill_first(*numbers: int) -> None:
        if not killed:
            killed.append(numbers)
            session.kill()
            soon(lambda: session._session._living()._link.alive, False)
        examine(*numbers)

    monkeypatch.setattr("cellblock.executors.process.kernel.examine", kill_first)
    state = Versioned(f"sqlite:///{tmp_path}/cells.db") if is_versioned else "default"
    with Session("one" if is_versioned else None, state=state, limits=LIMITS) as session:
        session.run("state = [1]")
        with session.branch() as branch:
            assert branch.run("state").value == [1]
        assert session.run("state").value == [1]
    assert killed


WRITES_AS_IT_WAKES = """
import gc, os, time
spent = time.process_time()
def write(phase, info):
    global spent
    before, spent = spent, time.process_time()
    if spent < before:  # in a copy of the process that was asked before
        os.write(2, b"x" * 2**20)
gc.callbacks.append(write)
gc.set_threshold(1, 1, 1)
"""


def test_a_copy_that_fills_its_pipe_as_it_wakes_is_waited_for_once(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for a reader of its text, and the host for its word."""
    monkeypatch.setattr("cellblock.executors.process.kernel._WAKING_SECONDS", 0.5)
    session.run("state = [1]")
    assert session.run(WRITES_AS_IT_WAKES).ok
    session.run("state.append(2)")
    spent = time.process_time()
    with pytest.raises(CellblockError, match="did not start"):
        session.branch()
    session.undo()  # to before it was loud, as no later copy wakes
    assert time.process_time() - spent < 0.5
    assert session.run("state").value == [1]


def test_copies_that_never_get_ready_are_waited_for_together_and_once(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cellblock.executors.process.checkpoints._READY_SECONDS", 1)
    session.run("state = [1]")
    assert session.run("import os, time; os.register_at_fork(after_in_child=lambda: time.sleep(1000))").ok
    for _ in range(4):
        session.run("state.append(2)")
    began = time.monotonic()
    for _ in range(2):
        with pytest.raises(CellblockError, match="no checkpoint to branch from"):
            session.branch()
    assert time.monotonic() - began < 3
    session.undo(5)
    assert session.run("state").value == [1]


def test_no_step_from_before_the_branch_is_undone_in_it(session: Session) -> None:
    session.run("state = [1]")
    with session.branch() as branch, pytest.raises(CellblockError, match="nothing can be undone"):
        branch.undo()


def test_branches_of_branches_outlive_what_they_are_of() -> None:
    with Session(limits=LIMITS) as session:
        session.run("state = [0]")
        branch = session.branch()
    branch.run("state.append(1)")
    leaf = branch.branch()
    branch.close()
    assert leaf.run("state.append(2); state").value == [0, 1, 2]
    assert leaf.run("import os, signal\nos.kill(os.getpid(), 0); state").value == [0, 1, 2]
    leaf.close()
    with pytest.raises(SessionClosed):
        leaf.run("1")


def test_while_a_stream_is_read_the_branch_is_of_before_the_cell(session: Session) -> None:
    session.run("state = [1]")
    events = session.stream("import time\nstate.append(2)\nfor i in range(3): print(i); time.sleep(0.05)")
    next(events)
    with session.branch() as branch:
        assert branch.run("state").value == [1]
        *_, done = events
        assert done.cell.text == "0\n1\n2"
    assert session.run("state").value == [1, 2]


def test_a_session_without_a_cell_can_be_branched() -> None:
    with Session() as session:
        session.files.write("f", "1")
        with session.branch() as branch:
            assert branch.run("open('f').read()").value == "1"


def test_tools_go_along() -> None:
    def twice(x: int) -> int:
        return x * 2

    with Session(tools=[twice]) as session:
        session.run("y = twice(4)")
        with session.branch() as branch:
            assert branch.run("twice(y)").value == 16


def test_mounts_go_along(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("data")
    tmp_path.chmod(0o755)
    with Session(mounts={"data": str(tmp_path)}) as session:
        session.run("file = open('data/in.txt')")
        with session.branch() as branch:
            cell = branch.run("file.read(), open('data/x', 'w')")
            assert cell.error.message == "[Errno 30] Read-only file system: 'data/x'"
            assert branch.run("open('data/in.txt').read()").value == "data"


@pytest.mark.sampled(0)
def test_limits_are_the_branchs_own() -> None:
    forks = """
import os, time
count = 0
try:
    while count < 100:
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        count += 1
except BlockingIOError:
    pass
count
"""
    with Session(limits=ExecutionLimits(max_processes=20)) as session:
        session.run("1")
        with session.branch() as branch:
            counts = [one.run(forks).value for one in (branch, session)]
            assert all(15 <= count <= 30 for count in counts)
            assert [one.run("1").value for one in (branch, session)] == [1, 1]


def test_files_that_are_written_through_memory_go_back_in_a_branch_too(session: Session) -> None:
    session.run("1")
    with session.branch() as branch:
        branch.run("import mmap\nfile = open('f', 'w+b'); file.truncate(4096); memory = mmap.mmap(file.fileno(), 4096)")
        branch.run("memory[0] = 1")
        branch.run("memory[0] = 2")
        branch.undo()
        assert branch.run("open('f', 'rb').read(1)").value == b"\1"


def test_threads_and_loops(session: Session) -> None:
    session.run("import asyncio, threading\nawait asyncio.sleep(0)\nstop = threading.Event()")
    session.run("thread = threading.Thread(target=stop.wait, daemon=True); thread.start()")
    with session.branch() as branch:
        cell = branch.run("await asyncio.sleep(0, 5)")
        assert (cell.value, [loss.name for loss in cell.lost if loss.type == "Thread"]) == (5, ["thread"])
    assert session.run("thread.is_alive()").value is True


def test_without_checkpoints_it_is_refused_with_a_way_out() -> None:
    with (
        Session(limits=ExecutionLimits(max_checkpoints=0)) as session,
        pytest.raises(CellblockError, match="max_checkpoints above 0"),
    ):
        session.branch()


def test_its_walls_are_told(session: Session) -> None:
    session.run("1")
    with session.branch() as branch:
        walls = {wall.mechanism: getattr(wall, "detail", "") for wall in branch.capabilities.walls}
        assert walls["branch"] == "not dumpable, executes no programs"
        assert walls["namespaces"] == "user, mount, pid, net, ipc, uts; within its parent's"
        cell = branch.shell("true")
        assert (cell.error.type, cell.error.hint.partition(":")[0]) == (
            "PermissionError",
            "a branch executes no programs",
        )


_SIGNALS = """
import multiprocessing, os, signal, time

def waits():
    time.sleep(60)

def forked():
    if not (child := os.fork()):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        waits()
        os._exit(0)
    return child

def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def attempt(number, sent=9):
    try:
        os.kill(number, sent)
    except OSError as error:
        return type(error).__name__

def siblings():
    first, second = forked(), forked()
    if not (other := os.fork()):
        os.kill(first, signal.SIGTERM)
        os.kill(os.getppid(), 0)
        os._exit(7)
    return ended(other), ended(first), attempt(second), ended(second)

def group():
    child = forked()
    os.setpgid(child, child)
    os.killpg(child, 9)
    return ended(child)

def process():
    one = multiprocessing.get_context('fork').Process(target=waits)
    one.start()
    one.terminate()
    one.join()
    return one.exitcode

gone = forked()
killed = attempt(gone), ended(gone)
told = killed, siblings(), group(), process(), attempt(gone), attempt(1)
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("of", ["the session", "a branch", "a branch of a branch"])
def test_cell_of_a_branch_signals_its_processes_as_that_of_a_session_does(session: Session, of: str) -> None:
    session.run("state = 1")
    with ExitStack() as stack:
        for _ in range({"the session": 0, "a branch": 1, "a branch of a branch": 2}[of]):
            session = stack.enter_context(session.branch())
            session.run("state += 1")
        before = session.run("state").value
        cell = session.run(f"{_SIGNALS}\ntold")
        assert cell.value == ((None, -9), (7, -15, None, -9), -9, -15, "ProcessLookupError", "PermissionError")
        others = "{attempt(number) for number in range(2, 200) if number != os.getpid()}"
        assert set(session.run(others).value) <= {"PermissionError", "ProcessLookupError"}
        session.run("state = None")
        session.undo(2)
        assert session.run("state").value == before


@pytest.mark.anyio
async def test_of_an_async_session() -> None:
    async with AsyncSession() as session:
        await session.run("state = [1]")
        async with await session.branch() as branch:
            assert (await branch.run("state.append(2); state")).value == [1, 2]
        assert (await session.run("state")).value == [1]


@pytest.mark.slow
def test_a_hundred_leave_nothing(alike: Callable[[], tuple[int, int]]) -> None:
    with Session(limits=LIMITS) as session:
        for branch in [session.branch() for _ in range(10)]:  # some control groups are kept for the next ones
            branch.close()
        session.run("state = [1]")
        before = settled(alike)
        branches = [session.branch() for _ in range(100)]
        assert [one.run(f"state.append({n}); state").value for n, one in enumerate(branches)] == [
            [1, n] for n in range(100)
        ]
        assert session.run("state").value == [1]
        session.undo()
        for one in branches:
            one.close()
        more = [False, False]
        assert soon(lambda: [now > was for now, was in zip(alike(), before, strict=True)], more, seconds=20) == more


@pytest.fixture
def alike() -> Callable[[], tuple[int, int]]:
    """Processes below this one, and descriptors that it holds."""

    def count() -> tuple[int, int]:
        return len(below()), len(os.listdir("/proc/self/fd"))

    return count


def settled(count: Callable[[], tuple[int, int]]) -> tuple[int, int]:
    """What is counted once it stays the same for half a second."""
    counts = [count()]
    deadline = time.monotonic() + 20
    while counts[-10:] != counts[-1:] * 10 and time.monotonic() < deadline:
        time.sleep(0.05)
        counts.append(count())
    return counts[-1]


@pytest.mark.sampled(0)
@pytest.mark.anyio
@pytest.mark.parametrize("beside", ["hibernate", "checkout"])
async def test_branch_is_made_of_a_session_that_changes_its_processes_meanwhile(url: str, beside: str) -> None:
    async with AsyncSession("one", state=Versioned(url)) as session:
        for turns in range(24):
            await session.run("a = 1")
            await session.flush()
            task = asyncio.create_task(session.branch())
            for _ in range(turns):
                await asyncio.sleep(0)
            await (session.hibernate() if beside == "hibernate" else session.checkout("HEAD"))
            async with await task as branch:
                assert await branch.get("a") == 1


@pytest.mark.sampled(0)
def test_branches_without_a_name_have_names_of_their_own_after_reopening(opened: Callable[..., Session]) -> None:
    names = []
    for _ in range(3):
        session = opened()
        session.run("x = 1")
        with session.branch() as branch:
            names.append(branch.name)
        session.close()
    assert names == ["one-1", "one-2.1", "one-3.1"]


@pytest.mark.sampled(0)
@pytest.mark.anyio
@pytest.mark.threat("W10")
async def test_notebook_of_a_branch_ends_with_the_cell_that_its_state_is_of(url: str) -> None:
    async with AsyncSession("one", state=Versioned(url)) as session:
        await session.run("x = 0; open('large', 'wb').write(bytes(50_000_000))")  # branches take their time

        async def many() -> None:
            for count in range(1, 41):
                await session.run(f"x = {count}")

        async with anyio.create_task_group() as group:
            group.start_soon(many)
            await anyio.sleep(0.05)
            branch = await session.branch("two")
        last = list(branch.notebook)[-1].source
        assert last.split(";")[0] == f"x = {(await branch.run('x')).value}"
        await branch.close()


@pytest.mark.sampled(0)
@pytest.mark.parametrize("depth", [1, 5])
@pytest.mark.parametrize("before", ["a branch", "a crash and a branch", "a save"])
@pytest.mark.parametrize("within", ["a session", "a branch"])
def test_names_are_there_after_writes_of_files_and_a_set_back(within: str, before: str, depth: int, url: str) -> None:
    """A write of files is a state of its own, with the copy of the state before: all of them have that one."""
    with ExitStack() as stack:
        limits = ExecutionLimits(timeout_seconds=10, max_checkpoints=depth)
        session = stack.enter_context(Session("one", state=Versioned(url), limits=limits))
        session.run("left = (n for n in range(9))")
        if within == "a branch":
            session = stack.enter_context(session.branch())
        if "crash" in before:
            assert session.run("import os\nos._exit(3)").rolled_back
        if before == "a save":
            session.flush()
        else:
            session.branch().close()
        for count in range(depth + 2):
            session.files.write("count", str(count))
        cell = session.run("import os\nos._exit(3)")
        assert (cell.rolled_back, [one.name for one in cell.lost if not one.alive]) == (True, [])
        session.files.write("count", "last")
        session.undo()
        assert session.run("next(left), open('count').read()").value == (0, str(depth + 1))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("depth", [1, 5])
@pytest.mark.parametrize("before", ["nothing", "a branch"])
def test_names_are_there_after_a_write_and_as_many_cells_as_can_be_undone(
    before: str, depth: int, open_session: Callable[..., Session]
) -> None:
    session = open_session(limits=ExecutionLimits(timeout_seconds=10, max_checkpoints=depth))
    session.run("left = (n for n in range(9))")
    if before == "a branch":
        session.branch().close()
    session.files.write("kept", "kept")
    for count in range(depth):
        session.run(f"x = {count}")
    session.undo(depth)
    cell = session.run("next(left), 'x' in globals(), open('kept').read()")
    assert (cell.value, cell.lost) == ((0, False, "kept"), ())


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seconds", [0.05, 0.5])
def test_names_are_there_after_writes_of_files_beside_a_copy_that_is_late_or_never_made(
    seconds: float, open_session: Callable[..., Session]
) -> None:
    """No copy is made while a thread holds the import lock, which is waited for for 0.1 s."""
    session = open_session(limits=LIMITS)
    session.run("left = (n for n in range(9))")
    session.run(
        "import _imp, threading, time\nlater = (n for n in range(9))\nheld = threading.Event()\n"
        f"def hold():\n    _imp.acquire_lock(); held.set(); time.sleep({seconds}); _imp.release_lock()\n"
        "threading.Thread(target=hold).start(); held.wait()"
    )
    is_made = seconds < 0.1
    for count in range(3):
        session.files.write("count", str(count))
    if is_made:
        session.branch().close()
    session.files.write("count", "last")
    cell = session.run("import os\nos._exit(3)")
    lost = {one.name for one in cell.lost}
    assert (cell.rolled_back, "left" in lost, "later" in lost) == (is_made, False, not is_made)
    assert session.run("next(left), 'later' in globals()").value == (0, is_made)
    assert session.files.list() == ["count"][:is_made]


OF_BRANCHES: dict[str, Callable[[Session, Callable[[Session], Session]], Session]] = {
    "a branch": lambda session, within: within(session.branch()),
    "a branch of a branch": lambda session, within: within(within(session.branch()).branch()),
    "a branch of a session that is closed": lambda session, within: (within(session.branch()), session.close())[0],
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("of", OF_BRANCHES)
@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("os._exit(7)", "the session's process left with status 7"),
        ("os.kill(os.getpid(), 11)", "the session's process was killed by SIGSEGV"),
    ],
)
def test_end_of_a_branchs_first_process_is_told_as_that_of_a_later_one(
    session: Session, of: str, end: str, told: str
) -> None:
    session.run("import os\nx = 1")
    with ExitStack() as within:
        branch = OF_BRANCHES[of](session, within.enter_context)
        for _ in range(2):
            ended = branch.run(end)
            assert ended.error is not None
            assert (ended.error.message, ended.rolled_back, ended.lost) == (told, True, ())


@pytest.mark.sampled(0)
def test_branch_of_a_session_whose_process_cannot_be_kept_says_so_and_undo_mends_it(tmp_path: Path) -> None:
    """A limit that a cell sets ends its runner between the reply and the checkpoint, each time it is run."""
    with Session("notes", state=Versioned(f"sqlite:///{tmp_path}/cells.db")) as session:
        session.run("x = 1")
        session.run("from resource import *\nsetrlimit(RLIMIT_NOFILE, (0, getrlimit(RLIMIT_NOFILE)[1]))")
        with pytest.raises(CellblockError, match="branch") as caught:
            session.branch()
        assert not isinstance(caught.value, SessionClosed)
        session.undo()
        assert session.run("x").value == 1


HOSTILE_COPY = """
import os, sys, time

def reached():
    frame, found, todo = sys._getframe(), {}, []
    while frame:
        todo.append(frame.f_globals)
        frame = frame.f_back
    while todo:
        names = todo.pop()
        if id(names) in found: continue
        found[id(names)] = names
        for one in list(names.values()):
            inside = vars(one).values() if isinstance(one, type) else [one]
            todo += [each.__globals__ for each in inside if hasattr(each, "__globals__")]
            if isinstance(one, type(sys)): todo.append(vars(one))
    return found.values()

twin = next(one for one in reached() if "part" in one and str(one.get("__name__")).endswith("twin"))
real = twin["part"]

def part(message, ends, *more):
    kept = [os.dup(end) for end in ends]
    twin["part"] = real  # what a branch finds changed there ends it
    if os.fork():
        for end in kept: os.close(end)
        return real(message, ends, *more)
    for end in set(range(3, 200)).difference(kept):
        try: os.close(end)
        except OSError: pass
    calls = real.__globals__
    told = []
    for end, kind in zip(kept[4:], (calls["DOORS"][0], 0, *calls["ROOMS"])):
        try:
            kind and calls["setns"](end, kind)
            told.append(kind)
        except OSError as error:
            told.append(error.errno)
    with open("beside", "w") as file: file.write(repr(told))
    if not HOLDS:
        for end in kept: os.close(end)
    while True:
        time.sleep(0.01)
        with open("beat", "a") as file: file.write(".")

os.register_at_fork(after_in_child=lambda: twin.update(part=part))
"""


@pytest.mark.sampled(1)
@pytest.mark.threat("W2")
@pytest.mark.parametrize("holds", [False, True])
def test_process_that_a_copy_makes_beside_a_branch_is_not_in_it_and_ends(session: Session, holds: bool) -> None:
    assert session.run(f"HOLDS = {holds}\n{HOSTILE_COPY}").error is None
    session.run("pass")
    try:
        branch = session.branch()
    except CellblockError:  # a host that is root sees what such a process holds
        assert holds
    else:
        with branch:
            assert branch.run("6 * 7").value == 42
    told = session.run("eval(open('beside').read())").value
    assert isinstance(told, list)
    assert set(told[2:]) == {errno.EPERM}  # it may have come into the user namespace, and into no other
    before = session.run("os.path.getsize('beat') if os.path.exists('beat') else 0").value
    session.run("time.sleep(0.3)")
    assert session.run("os.path.getsize('beat') if os.path.exists('beat') else 0").value == before


def test_a_session_in_a_store_in_memory_has_branches() -> None:
    with Session("q3", state=Versioned("memory:")) as session:
        session.run("n = 1")
        with session.branch() as branch:
            assert branch.run("n += 1\nn").value == 2
            session.merge(branch)
        assert session.run("n").value == 2
