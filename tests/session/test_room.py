"""Past a resource of the machine's a session is refused by its name, and open ones go on; closing gives all back."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from accounts import ordinary, why_no_other_user

from cellblock import AsyncSession, CellblockError
from cellblock.executors.room import opening

_FULL = """
import asyncio, os, resource, sys, tempfile
from cellblock import *

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 4096))
url = f"sqlite:///{tempfile.mkdtemp()}/cells.db"

def one(number):
    return AsyncSession(f"s{number}", state=Versioned(url)) if sys.argv[1] == "versioned" else AsyncSession()

async def filled():
    sessions = []
    while True:
        try:
            sessions.append(await one(len(sessions)).open())
        except CellblockError as error:
            return sessions, str(error)

async def main():
    async with one("first") as first:
        await first.run("1")
    before = len(os.listdir("/proc/self/fd"))
    sessions, said = await filled()
    for number in range(8):
        cells = await asyncio.gather(*(one.run(f"x = {number}") for one in sessions))
        assert all(cell.ok for cell in cells), cells
    cells = await asyncio.gather(*(one.run("import os; os._exit(1)") for one in sessions))
    assert all(cell.rolled_back for cell in cells), cells
    await asyncio.gather(*(one.undo(2) for one in sessions))
    assert [(await one.run("x")).value for one in sessions] == [5] * len(sessions)
    try:
        await sessions[0].branch()
    except CellblockError as error:
        assert "RLIMIT_NOFILE" in str(error)
    await sessions.pop().close()
    if sys.argv[1] == "live":  # what is being saved of others holds some for a moment
        sessions.append(await one("last").open())
    for one_ in sessions:
        await one_.close()
    print(len(sessions), len(os.listdir("/proc/self/fd")) - before, said, sep="\\n")

asyncio.run(main())
"""


@pytest.mark.sampled(0)
@pytest.mark.parametrize(("kind", "least"), [("live", 10), ("versioned", 4)])
def test_past_the_descriptors_a_session_is_refused_and_open_ones_go_on(kind: str, least: int) -> None:
    done = subprocess.run([sys.executable, "-c", _FULL, kind], capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    count, more, said = done.stdout.splitlines()
    assert int(count) >= least
    assert int(more) <= 0
    assert said.startswith("no room for another session: this process has ")
    assert said.endswith(
        " of the 256 that it is allowed (RLIMIT_NOFILE) "
        "(close sessions that are not used, or raise the limit: ulimit -n 4096)"
    )


_USED_UP = """
import os, resource, sys, tempfile
from cellblock import *

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
state = Versioned(f"sqlite:///{tempfile.mkdtemp()}/cells.db") if sys.argv[1] == "versioned" else Live()
session = Session("a" if sys.argv[1] == "versioned" else None, state=state)
session.run("x = []; import os; os.makedirs('d/e'); open('d/e/f', 'w').close()")
kept, told = [], []

def call(made, *given):
    try:
        return made(*given)
    except CellblockError as error:
        assert "(RLIMIT_NOFILE)" in str(error), repr(error)
        told.append(made)

for free in range(12):
    held = []
    try:
        while True:
            held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    for _ in range(free):
        os.close(held.pop())
    for number in range(2):
        cell = call(session.run, f"x.append({10 * free + number})")
        if cell is not None and cell.ok:
            kept.append(10 * free + number)
    assert call(session.files.list) in (None, ["d/e/f"])
    call(session.__getitem__, "x")
    call(session.files.read, "d/e/f")
    if (branch := call(session.branch)) is not None:
        call(branch.close)
    cell = call(session.run, "x.append(0)")
    if cell is not None and cell.ok:
        before = len(told)
        call(session.undo)
        kept += [0] * (len(told) - before)
    if sys.argv[1] == "versioned":
        call(session.flush)
    while held:
        os.close(held.pop())
    assert session["x"] == kept, (free, session["x"], kept)
    assert session.files.list() == ["d/e/f"]
session.close()
if sys.argv[1] == "versioned":
    with Session("a", state=state) as again:
        assert again["x"] == kept
print(bool(kept), bool(told))
"""


@pytest.mark.sampled(0)
@pytest.mark.parametrize("kind", ["live", "versioned"])
def test_program_that_uses_up_its_descriptors_is_told_so_and_loses_nothing(kind: str) -> None:
    done = subprocess.run([sys.executable, "-c", _USED_UP, kind], capture_output=True, text=True, timeout=200)
    assert (done.stdout, done.stderr) == ("True True\n", "")


@pytest.mark.sampled(0)
@pytest.mark.anyio
async def test_closed_sessions_give_every_descriptor_back() -> None:
    async def many() -> None:
        sessions = [AsyncSession() for _ in range(12)]
        for session in sessions:
            await session.open()
            assert (await session.run("1")).value == 1
        for session in sessions:
            await session.close()

    await many()
    before = sorted(os.listdir("/proc/self/fd"))
    await many()
    assert sorted(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EMFILE, "x"), "RLIMIT_NOFILE"),
        (OSError(errno.ENFILE, "x"), "no open files of the whole machine"),
        (BlockingIOError(errno.EAGAIN, "x"), "no processes and threads .RLIMIT_NPROC is "),
        (RuntimeError("can't start new thread"), "no processes and threads"),
        (OSError(errno.ENOMEM, "x"), "no memory of this machine"),
        (OSError(errno.ENOSPC, "x", "/tmp/here"), "no space on the disk of /tmp/here is left .free some"),
    ],
)
def test_resource_that_runs_out_is_told_by_its_name(error: Exception, said: str) -> None:
    with pytest.raises(CellblockError, match=said), opening(0):
        raise error


_NO_SPACE = """
import resource, sys
from cellblock import Session
name, of = sys.argv[1:]
with open("/proc/self/status") as status:
    used = next(int(line.split()[1]) << 10 for line in status if line.startswith(of))
resource.setrlimit(getattr(resource, name), (used + 1_000_000,) * 2)
try: Session()
except Exception as error: print(type(error).__name__, error)
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("name", "of", "option"), [("RLIMIT_AS", "VmSize:", "-v"), ("RLIMIT_DATA", "VmData:", "-d")])
def test_limit_of_the_address_space_is_told_by_its_name(name: str, of: str, option: str) -> None:
    ran = subprocess.run([sys.executable, "-c", _NO_SPACE, name, of], capture_output=True, text=True, timeout=60)
    assert ran.stdout.startswith("CellblockError no thread can be started: of the ")
    assert f"of address space that this program may have ({name}) few are left" in ran.stdout
    assert f"ulimit {option} unlimited" in ran.stdout


def test_other_errors_of_an_opening_stay_what_they_are() -> None:
    with pytest.raises(FileNotFoundError), opening(0):
        raise FileNotFoundError(errno.ENOENT, "x")


_DAEMON = 1
_NO_PROCESSES = """
import resource, sys
from cellblock import *
resource.setrlimit(resource.RLIMIT_NPROC, (24, 24))
sessions = []
try:
    while True:
        sessions.append(Session(walls=sys.argv[1]))
except CellblockError as error:
    print(len(sessions) >= 2, error, sep="\\n")
print([session.run("2").value for session in sessions] == [2] * len(sessions))
for session in sessions:
    session.close()
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("walls", ["full", "reduced"])
def test_past_the_processes_a_session_is_refused_and_open_ones_go_on(walls: str) -> None:
    if reason := why_no_other_user():  # as root it does not count
        pytest.skip(reason)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        account = replace(ordinary(Path(folder)), uid=_DAEMON)  # the other has the tests' PostgreSQL, which would count
        process = account.start("-c", _NO_PROCESSES, walls)
        out, err = process.communicate(timeout=100)
    assert (out.splitlines()[0], out.splitlines()[2], err) == ("True", "True", "")
    assert out.splitlines()[1].startswith(
        "no room for another session: no processes and threads (RLIMIT_NPROC is 24; a control group's pids.max "
    )


_NO_COPY = """
import os, resource, time
from cellblock import *

resource.setrlimit(resource.RLIMIT_NPROC, (24, 24))
session = Session()
session.run("x = 1")
others = []
try:
    while True:
        if not (pid := os.fork()):
            time.sleep(60)
            os._exit(0)
        others.append(pid)
except BlockingIOError:
    pass
session.run("x = 2"), session.run("x = 3")
try:
    print(session.undo())
except CellblockError as error:
    print(error)
print(session.run("x").value)
for pid in others:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
session.run("x = 4"), session.run("x = 5")
session.undo()
print(session.run("x").value)
session.close()
"""


def test_a_state_of_which_no_copy_could_be_made_is_not_gone_back_past() -> None:
    if reason := why_no_other_user():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        account = replace(ordinary(Path(folder)), uid=_DAEMON)
        out, err = account.start("-c", _NO_COPY).communicate(timeout=100)
    assert (out.splitlines()[1:], err) == (["3", "4"], "")
    assert "has ended, or could not be made" in out.splitlines()[0]


_NO_THREADS = """
import asyncio, sys, tempfile, threading
from cellblock import *

starts = threading._start_new_thread

def refuses(*_):
    raise RuntimeError("can't start new thread")

async def opened():
    if sys.argv[1] == "live":
        session = await AsyncSession().open()
    else:
        session = await AsyncSession("a", state=Versioned(f"sqlite:///{tempfile.mkdtemp()}/cells.db")).open()
    await session.run("x = 1")
    await session.run("x = 2")
    if session.name:
        await session.flush()
    return session

async def branched(session):
    await (await session.branch()).close()

async def used(session):
    while any(thread.name == "cellblock work" for thread in threading.enumerate()):  # which idle for a while
        await asyncio.sleep(0.05)
    threading._start_new_thread = refuses
    for call in (
        lambda: session.run("x = 3"), lambda: session.run("x = 3; open('a', 'w').close()"), session.files.list,
        session.undo, lambda: branched(session), session.names,
    ):
        try:
            await call()
        except CellblockError as error:
            print(error)

if sys.argv[1] == "open":
    threading._start_new_thread = refuses
    try:
        Session()
    except CellblockError as error:
        print(error)
    threading._start_new_thread = starts
    Session().close()
else:
    session = asyncio.run(opened())
    asyncio.run(used(session))
    threading._start_new_thread = starts
    assert asyncio.run(session.run("x")).ok
    asyncio.run(session.close())
"""


@pytest.mark.sampled(0)
@pytest.mark.parametrize("kind", ["open", "live", "versioned"])
def test_where_no_thread_can_be_started_each_call_that_needs_one_says_so(kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _NO_THREADS, kind], capture_output=True, text=True, timeout=120
    )
    assert done.stderr == ""
    told = re.compile("no (thread can be started|room for another session): no processes and threads .RLIMIT_NPROC is ")
    assert told.match(done.stdout)
    assert [line for line in done.stdout.splitlines() if not told.match(line) or "ulimit -u" not in line] == []
