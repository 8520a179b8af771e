"""From any state a program leaves: whatever its sessions, threads, loops, copies, tools and signals are at.

Each row is a small program that prints "fine" when it is about to leave. All that are selected run side by side.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import pytest

HANGING = 60
"""Seconds after which a program counts as hanging. Each takes about one."""
LEAVING = 20
"""Seconds that its end may take on a busy machine: ten times the 2 that it may on any other."""

BEGIN = """
import asyncio, atexit, contextlib, gc, multiprocessing, os, signal, sys, tempfile, threading, time
from cellblock import *
LOOP = "print(1)\\nwhile True: pass"
store = Versioned("sqlite:///" + tempfile.mkdtemp() + "/cells.db")
def open_session(kind=Session, **options):
    return {"live": lambda: kind(**options), "versioned": lambda: kind("one", state=store, **options),
            "local": lambda: kind(trust_level="local", **options)}[sys.argv[1]]()
def fine():
    print("fine", time.monotonic(), flush=True)
def interrupt_after(seconds, number=signal.SIGINT):
    threading.Timer(seconds, os.kill, (os.getpid(), number)).start()
"""


@dataclass(frozen=True)
class Program:
    source: str
    fails: bool = False
    """Whether it exits with another status than 0: that of Ctrl-C is not always the same."""
    says: str = ""
    """What it says on stderr, in parts; "" for nothing."""


ENDS = "SessionClosed: the interpreter ends, and all sessions with it (use sessions before that)"

PROGRAMS = {
    # the interpreter's end
    "closed by a finalizer": Program("""
class Owner:
    def __init__(self): self.session = open_session()
    def __del__(self): self.session.close()
owner = Owner(); owner.session.run("1"); fine()
"""),
    "used by a finalizer": Program(
        """
class Owner:
    def __init__(self): self.session = open_session()
    def __del__(self): self.session.run("1")
owner = Owner(); fine()
""",
        says=ENDS,
    ),
    "opened by a finalizer": Program(
        """
class Owner:
    def __del__(self, opened=Session): opened()
open_session().close(); owner = Owner(); fine()
""",
        says=ENDS,
    ),
    "a generator holds a session": Program("""
def values():
    with open_session() as session:
        while True: yield session.run("1").value
left = values(); next(left); fine()
"""),
    "a stream is not read to its end": Program("""
session = open_session(); left = session.stream(LOOP); next(left); fine()
"""),
    "used at exit": Program("""
session = open_session()
@atexit.register
def use():
    assert session.run("1").value == 1
    session.close(); fine()
"""),
    **{
        f"used by {whose} after the main thread has ended": Program(f"""
def tool(): return 1
async def main():
    async with AsyncSession(tools=[tool]) as other:
        await other.files.write("f", b"1"); return (await other.run("tool()")).value
def use():
    threading.main_thread().join(); time.sleep(0.2)
    for call in (lambda: session.run("tool()"), lambda: session.files.list() if level != "local" else 0,
                 lambda: session.__setitem__("x", b"1" * 10**6), lambda: asyncio.run(main()), lambda: open_other()):
        try: call()
        except CellblockError as error: assert "interpreter ends" in str(error), error
level = sys.argv[1]; session = open_session(tools=[tool])
def open_other(): Session(trust_level="local").close()
thread = threading.Thread(target=use, daemon={daemon}); thread.start()
if {daemon}: atexit.register(thread.join)
fine()
""")
        for whose, daemon in (("a thread", False), ("a daemon thread", True))
    },
    # threads
    "a daemon thread runs a cell": Program("""
session = open_session(); begun = threading.Event()
def follow():
    with contextlib.suppress(SessionClosed):
        for _ in session.stream(LOOP): begun.set()
threading.Thread(target=follow, daemon=True).start(); begun.wait(); fine()
"""),
    "left by a thread that has ended": Program("""
kept = []
thread = threading.Thread(target=lambda: kept.append(open_session())); thread.start(); thread.join(); fine()
"""),
    # garbage that is found on the event loop of the blocking sessions
    "closed on the loop by a finalizer": Program("""
class Owner:
    def __init__(self): self.session, self.me = open_session(), self
    def __del__(self): self.session.close()
async def collect(): gc.collect()
gc.disable(); Owner()
with Session(tools=[collect]) as other: assert other.run("await collect()").ok
fine()
"""),
    "a stream is dropped on the loop": Program("""
class Holder: pass
session = open_session()
def leave():
    holder = Holder(); holder.me, holder.stream = holder, session.stream(LOOP); next(holder.stream)
async def collect(): gc.collect()
gc.disable(); leave()
with Session(tools=[collect]) as other: assert other.run("await collect()").ok
assert session.run("1").value == 1
fine()
"""),
    "used on the loop by an async tool": Program("""
inner = open_session()
async def use(): return inner.run("1").value
with Session(tools=[use]) as session: error = session.run("await use()").error
assert error.message.startswith("use() waits for the event loop of the blocking sessions"), error
fine()
"""),
    # copies
    "a forked copy exits": Program("""
session = open_session(); session.run("x = 1")
if not (pid := os.fork()): sys.exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
assert session.run("x").value == 1; fine()
"""),
    "a forked copy closes, and drops a stream": Program("""
session = open_session(); left = session.stream("print(1)\\nimport time\\nfor _ in range(5): time.sleep(0.1)\\n2")
next(left)
if not (pid := os.fork()):
    try: next(left)
    except SessionClosed: session.close(); sys.exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
assert [one.cell.value for one in left if isinstance(one, Done)] == [2]; fine()
"""),
    "a copy forked by a thread opens its own": Program("""
session = open_session(); session.run("x = 1")
def copy():
    if not (pid := os.fork()):
        with Session() as own: os._exit(own.run("3").value)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    assert session.run("x").value == 1; fine()
thread = threading.Thread(target=copy); thread.start(); thread.join()
"""),
    "multiprocessing drops it in a copy": Program("""
session = open_session(); session.run("x = 1")
def work():
    global session
    del session; gc.collect()
process = multiprocessing.get_context("fork").Process(target=work); process.start(); process.join()
assert process.exitcode == 0 and session.run("x").value == 1; fine()
"""),
    # event loops
    "an async session is not closed": Program("""
async def main():
    global kept; kept = await open_session(AsyncSession).open(); await kept.run("1")
asyncio.run(main()); fine()
"""),
    "an async stream is not read to its end": Program("""
async def main():
    global kept; session = await open_session(AsyncSession).open(); stream = session.stream(LOOP); await anext(stream)
    kept = session, stream
asyncio.run(main()); fine()
"""),
    "an opening is given up": Program("""
python = tempfile.mkdtemp() + "/python3"
with open(python, "w") as file:
    file.write(f"#!{sys.executable}\\nimport socket, sys\\nhost = socket.socket(fileno=int(sys.argv[6]))\\n"
               "while host.recv(9): pass")
os.chmod(python, 0o755)
async def main():
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(AsyncSession(python=python).open(), 0.5)
asyncio.run(main()); fine()
"""),
    "the loop is closed under a cell": Program("""
async def main():
    for call in (lambda: session.run("1"), lambda: session.clear(), session.undo):
        try: await call()
        except SessionClosed as error: assert "event loop" in str(error)
    await session.close()
loop = asyncio.new_event_loop(); session = loop.run_until_complete(open_session(AsyncSession).open())
task = loop.create_task(session.run("while True: pass")); loop.run_until_complete(asyncio.sleep(0.2))
loop.set_exception_handler(lambda *_: None)  # a task is destroyed that is pending
loop.close(); asyncio.run(main()); fine()
"""),
    "the loop stops in its thread": Program("""
loop = asyncio.new_event_loop(); thread = threading.Thread(target=loop.run_forever); thread.start()
session = asyncio.run_coroutine_threadsafe(open_session(AsyncSession).open(), loop).result()
asyncio.run_coroutine_threadsafe(session.run("1"), loop).result()
loop.call_soon_threadsafe(loop.stop); thread.join(); fine()
"""),
    "a daemon thread's loop runs a cell": Program("""
loop = asyncio.new_event_loop(); threading.Thread(target=loop.run_forever, daemon=True).start()
session = asyncio.run_coroutine_threadsafe(open_session(AsyncSession).open(), loop).result()
asyncio.run_coroutine_threadsafe(session.run("while True: pass"), loop); time.sleep(0.2); fine()
"""),
    # tools
    "a tool does not come back": Program("""
def stuck(): time.sleep(1000)
session = open_session(tools=[stuck], limits=ExecutionLimits(timeout_seconds=0.3, interrupt_grace_seconds=0.3))
assert not session.run("stuck()").ok; fine()
"""),
    "a tool of an async host does not come back": Program("""
def stuck(): time.sleep(1000)
limits = ExecutionLimits(timeout_seconds=0.3, interrupt_grace_seconds=0.3)
async def main():
    async with open_session(AsyncSession, tools=[stuck], limits=limits) as session:
        assert not (await session.run("stuck()")).ok
asyncio.run(main()); fine()
"""),
    "an async tool is waited for": Program("""
begun = threading.Event()
async def stuck(): begun.set(); await asyncio.sleep(1000)
session = open_session(tools=[stuck])
def follow():
    with contextlib.suppress(SessionClosed): session.run("await stuck()")
threading.Thread(target=follow, daemon=True).start(); begun.wait(); fine()
"""),
    # signals
    "Ctrl-C while a cell runs": Program(
        "session = open_session(); fine(); interrupt_after(0.3); session.run('while True: pass')",
        fails=True,
        says="KeyboardInterrupt",
    ),
    "Ctrl-C while an async host's cell runs": Program(
        """
async def main():
    async with open_session(AsyncSession) as session:
        fine(); interrupt_after(0.3); await session.run("while True: pass")
asyncio.run(main())
""",
        fails=True,
        says="KeyboardInterrupt",
    ),
    "a signal handler exits while a cell runs": Program("""
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
session = open_session(); fine(); interrupt_after(0.3, signal.SIGTERM); session.run("while True: pass")
"""),
    **{
        f"Ctrl-C after {seconds} s of opening, running and closing": Program(
            f"""
fine(); interrupt_after({seconds})
while True:
    session = open_session(); session.run("1"); list(session.stream("2")); session.close()
""",
            fails=True,
            says="KeyboardInterrupt",
        )
        for seconds in (0.0, 0.02, 0.1, 0.4)
    },
}

QUICK = {
    "closed by a finalizer", "used by a finalizer", "a generator holds a session", "a stream is not read to its end",
    "a daemon thread runs a cell", "closed on the loop by a finalizer", "used on the loop by an async tool",
    "a forked copy closes, and drops a stream", "the loop is closed under a cell", "a tool does not come back",
    "a tool of an async host does not come back", "Ctrl-C while a cell runs", "an opening is given up",
}  # fmt: skip
"""One or more of each kind; the rest, and all other levels, are thorough."""

ROWS = [
    pytest.param(
        name, level, id=f"{name}, {level}", marks=[] if name in QUICK and level == "live" else [pytest.mark.thorough]
    )
    for name in PROGRAMS
    for level in ("live", "versioned", "local")
]


def run(program: Program, level: str) -> tuple[subprocess.CompletedProcess[str], float]:
    """How it ended, and when."""
    quiet = ("-W", "ignore::ResourceWarning", "-W", "ignore::DeprecationWarning")  # of forks beside threads
    command = [sys.executable, *quiet, "-c", BEGIN + program.source, level]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGING, stdin=subprocess.DEVNULL)
    return done, time.monotonic()


@pytest.fixture(scope="module")
def endings(
    request: pytest.FixtureRequest,
) -> Iterator[dict[str, Future[tuple[subprocess.CompletedProcess[str], float]]]]:
    """What becomes of all programs of the rows that are selected, as many at a time as there are processors."""
    items = [one for one in request.session.items if getattr(one, "originalname", "") == "test_program_leaves"]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        started = {}
        for item in items:
            name, level = (item.callspec.params[key] for key in ("name", "level"))  # type: ignore[attr-defined]
            started[f"{name}, {level}"] = pool.submit(run, PROGRAMS[name], level)
        yield started


@pytest.mark.sampled(1)
@pytest.mark.alone  # as many programs as there are processors, whose time is measured
@pytest.mark.parametrize(("name", "level"), ROWS)
def test_program_leaves(
    endings: dict[str, Future[tuple[subprocess.CompletedProcess[str], float]]], name: str, level: str
) -> None:
    program = PROGRAMS[name]
    done, ended = endings[f"{name}, {level}"].result()
    fine, _, left = done.stdout.partition(" ")
    assert (bool(done.returncode), fine) == (program.fails, "fine"), done.stderr
    assert ended - float(left) < LEAVING
    assert program.says in done.stderr if program.says else not done.stderr, done.stderr
