"""What a frozen copy of a session's process is when it is woken, besides the values of its names."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cellblock import ExecutionLimits, Session

MB = 2**20

TIMED = """
import random, signal, time
n = 0
def tick(*_):
    global n
    n += 1
def slow(call):
    def slowly(*args):
        try:
            return call(*args)
        finally:
            time.sleep(0.3)
    return slowly
signal.signal(signal.SIGALRM, tick)
"""


@pytest.fixture
def back(session: Session) -> Callable[[str, str], Session]:
    """A session after a first cell that a second was undone of."""

    def make(first: str, second: str = "pass") -> Session:
        for source in (first, second):
            cell = session.run(source)
            assert cell.ok, cell.text
        session.undo()
        return session

    return make


def test_memory_is_measured_for_each_cell(back: Callable[..., Session]) -> None:
    session = back("x = 1")
    large = session.run(f"len(bytearray({100 * MB}))").usage.memory_peak_bytes
    small = session.run("1").usage.memory_peak_bytes
    assert large > 100 * MB
    assert small < 50 * MB


COUNT = """
import os, signal
def children(most=1000):
    found = []
    try:
        while len(found) < most:
            pid = os.fork()
            if pid == 0:
                signal.pause()
                os._exit(0)
            found.append(pid)
    except BlockingIOError:
        pass
    return found
def end(found):
    for pid in found:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return len(found)
"""


@pytest.mark.sampled(0)
def test_copies_count_to_no_limit_of_processes(open_session: Callable[..., Session]) -> None:
    session = open_session(limits=ExecutionLimits(max_processes=12, max_checkpoints=3))
    session.run(COUNT)
    counts = [session.run("end(children())").value for _ in range(6)]
    session.undo(2)
    counts += [session.run("end(children())").value for _ in range(4)]
    # of 12 there are init and the worker; room for copies that are not made yet is for whoever comes first
    assert all(10 <= count <= 10 + 3 + 4 for count in counts), counts


def test_a_copy_is_made_where_a_cell_has_left_no_process_to_be_had(open_session: Callable[..., Session]) -> None:
    session = open_session(limits=ExecutionLimits(max_processes=12))
    session.run(COUNT)
    # once init has taken back the room of the copy before: a busy machine leaves that to the cell
    taken_back = "import resource, time\nwhile resource.getrlimit(resource.RLIMIT_NPROC)[0] > 15: time.sleep(0.01)\n"
    assert session.run(f"{taken_back}left = children()").ok
    session.run("x = 1")
    session.run("x = 2")
    session.undo()
    cell = session.run("x")
    assert (cell.value, cell.lost) == (1, ())


def test_the_limit_of_processes_is_for_no_cell_to_set(back: Callable[..., Session]) -> None:
    session = back("import resource\nlimit = resource.getrlimit(resource.RLIMIT_NPROC)")
    cell = session.run("resource.setrlimit(resource.RLIMIT_NPROC, (40, 50))")
    assert (cell.error.type, session.run("resource.getrlimit(resource.RLIMIT_NPROC)[1] == limit[1]").value) == (
        "ValueError",
        True,
    )


def test_timers_go_on(back: Callable[..., Session]) -> None:
    session = back(
        "import signal\nsignal.setitimer(signal.ITIMER_REAL, 1000, 50)", "signal.setitimer(signal.ITIMER_REAL, 0)"
    )
    left, interval = session.run("signal.getitimer(signal.ITIMER_REAL)").value
    assert 900 < left <= 1000
    assert interval == 50


@pytest.mark.sampled(0)
@pytest.mark.parametrize("meanwhile", ["random.getstate", "signal.pthread_sigmask"])
def test_timer_that_runs_out_as_its_process_is_copied_does_so_once(session: Session, meanwhile: str) -> None:
    session.run(TIMED)
    session.run(f"usual = {meanwhile}\n{meanwhile} = slow(usual)\nsignal.setitimer(signal.ITIMER_REAL, 0.2)")
    session.run(f"{meanwhile} = usual\nwhile not n:\n    pass")
    session.undo()
    assert session.run("time.sleep(0.4)\nn").value == 1


def test_handlers_masks_and_modes_are_as_they_were(back: Callable[..., Session]) -> None:
    session = back(
        "import os, resource, signal\nsignal.signal(signal.SIGUSR1, signal.SIG_IGN)\nos.umask(0o027)\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])\nbegun = os.nice(0)\nos.nice(3)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 1000))",
        "signal.signal(signal.SIGUSR1, signal.SIG_DFL)\nos.umask(0o022)\n"
        "signal.pthread_sigmask(signal.SIG_SETMASK, [])\nresource.setrlimit(resource.RLIMIT_FSIZE, (50, 1000))",
    )
    look = (
        "mask = os.umask(0)\n"
        "(signal.getsignal(signal.SIGUSR1) == signal.SIG_IGN, mask,"
        " [int(n) for n in signal.pthread_sigmask(signal.SIG_BLOCK, [])], os.nice(0) - begun,"
        " resource.getrlimit(resource.RLIMIT_FSIZE))"
    )
    assert session.run(look).value == (True, 0o027, [12], 3, (100, 1000))


def test_the_process_knows_its_new_number(back: Callable[..., Session]) -> None:
    session = back("import os, threading, signal\nbefore = os.getpid()")
    look = "os.getpid() != before, threading.main_thread().native_id == os.getpid() == threading.get_native_id()"
    assert session.run(look).value == (True, True)
    assert session.run("signal.raise_signal(signal.SIGINT)").error.type == "KeyboardInterrupt"


TAKEN = """
import fcntl, os
def is_taken(path, lock):
    pid = os.fork()
    if pid == 0:
        try:
            with open(path, "r+") as file:
                lock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
"""


@pytest.mark.parametrize("lock", ["flock", "lockf"])
def test_locked_files_are_locked_again(back: Callable[..., Session], lock: str) -> None:
    session = back(
        f"{TAKEN}\nheld = open('held', 'w+')\nfcntl.{lock}(held, fcntl.LOCK_EX)\nfree = open('free', 'w')",
        f"fcntl.{lock}(held, fcntl.LOCK_UN)\nheld.close()",
    )
    assert session.run(f"is_taken('held', fcntl.{lock}), is_taken('free', fcntl.{lock})").value == (True, False)


def test_part_of_a_file_is_locked_again(back: Callable[..., Session]) -> None:
    session = back(f"{TAKEN}\nheld = open('held', 'wb+')\nheld.truncate(100)\nfcntl.lockf(held, fcntl.LOCK_EX, 10, 20)")
    look = "[is_taken('held', lambda f, how: fcntl.lockf(f, how, 1, at)) for at in (19, 20, 29, 30)]"
    assert session.run(look).value == [False, True, True, False]


def test_a_file_without_a_name_is_where_it_was(back: Callable[..., Session]) -> None:
    session = back(
        "import tempfile\nfile = tempfile.TemporaryFile()\nfile.write(b'abcdef')\nfile.seek(2)", "file.read()"
    )
    cell = session.run("file.read(2)")
    assert (cell.value, cell.lost) == (b"cd", ())


def test_a_file_without_a_name_that_has_changed_is_told(back: Callable[..., Session]) -> None:
    session = back(
        "import tempfile\nfile = tempfile.TemporaryFile()\nfile.write(b'abc')\nfile.flush()",
        "file.write(b'd'); file.flush()",
    )
    (lost,) = session.run("1").lost
    assert (lost.type, lost.reason) == ("file", "it has no name, and was changed since")


def test_the_generator_of_numpy_goes_on(back: Callable[..., Session]) -> None:
    pytest.importorskip("numpy")
    session = back("import numpy\nnumpy.random.seed(7)\nfirst = numpy.random.random()", "numpy.random.random()")
    assert session.run("numpy.random.random()").value == pytest.approx(0.7799187922401146)


def test_loops_of_openmp_run_again(open_session: Callable[..., Session]) -> None:
    pytest.importorskip("sklearn")
    session = open_session(limits=ExecutionLimits(timeout_seconds=60, max_memory_mb=1024))
    fit = "KMeans(3, n_init=1, random_state=0).fit(data).n_iter_"
    cell = session.run(
        "import numpy, os\nfrom sklearn.cluster import KMeans\nfrom threadpoolctl import threadpool_limits\n"
        f"threadpool_limits(2)\ndata = numpy.random.rand(3000, 8)\nbefore = {fit}\nlen(os.listdir('/proc/self/task'))"
    )
    assert cell.value > 1, cell.text
    session.run("pass")
    session.undo()
    assert session.run(f"{fit} == before").value is True
