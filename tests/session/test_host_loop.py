"""The thread that serves blocking sessions: where it ends, or cannot hear, no call waits for it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import weakref
from contextvars import copy_context
from functools import partial
from pathlib import Path

import pytest

from cellblock import AsyncSession, CellblockError, Session, Versioned
from cellblock.session.hostloop import Run

_TELL = """
import asyncio, os, sys, threading, time
from cellblock import Session

def tell(call):
    try: print(call())
    except BaseException as error: print(f"{type(error).__name__}: {error.args[0]}")
"""
_CLOSED = (
    "SessionClosed: this program has closed the descriptors of cellblock, so no session can be used in it any more"
)


def _told(program: str) -> list[str]:
    ran = subprocess.run([sys.executable, "-c", _TELL + program], capture_output=True, text=True, timeout=60)
    ended = "the event loop of the blocking sessions ended", "Bad file descriptor"
    assert "Traceback" not in ran.stderr or any(told in ran.stderr for told in ended), ran.stderr
    return ran.stdout.splitlines()


@pytest.mark.sampled(0)
def test_program_that_closes_all_descriptors_is_told_at_once() -> None:
    assert _told(
        "session = Session()\n"
        "tell(lambda: session.run('1').value)\n"
        "os.closerange(3, 4096)\n"
        "tell(lambda: session.run('2').value)\n"
        "tell(lambda: session.files.list())\n"
        "tell(lambda: Session())\n"
        "tell(session.close)\n"
    ) == ["1", _CLOSED, _CLOSED, _CLOSED, "None"]


@pytest.mark.sampled(0)
def test_program_that_looks_at_other_files_has_closed_no_descriptors() -> None:
    """As pyfakefs does, which puts functions of its own into the module `os`."""
    assert _told(
        "session = Session()\n"
        "def fstat(descriptor): raise OSError(9, 'Bad file descriptor')\n"
        "os.fstat = fstat\n"
        "tell(lambda: session.run('2').value)\n"
        "tell(session.close)\n"
    ) == ["2", "None"]


@pytest.mark.sampled(0)
def test_caller_that_waits_is_told_when_the_descriptors_are_closed() -> None:
    assert _told(
        "session = Session()\n"
        "threading.Timer(0.5, os.closerange, (3, 4096)).start()\n"
        "tell(lambda: session.run('import time; time.sleep(50)').value)\n"
    ) == [_CLOSED]


@pytest.mark.sampled(0)
def test_descriptors_closed_on_the_loop_itself_are_told_to_every_later_call() -> None:
    assert _told(
        "async def end(): os.closerange(3, 4096)\n"
        "session = Session(tools=[end])\n"
        "tell(lambda: session.run('await end()').value)\n"
        "time.sleep(0.2)\n"
        "tell(lambda: session.run('2').value)\n"
        "tell(lambda: Session())\n"
        "tell(session.close)\n"
    ) == [_CLOSED, _CLOSED, _CLOSED, "None"]


@pytest.mark.sampled(0)
def test_loop_that_cannot_be_started_is_told_and_the_next_session_begins_another() -> None:
    assert _told(
        "import warnings; warnings.simplefilter('ignore')\n"
        "def none(*_): raise RuntimeError('not here')\n"
        "class Policy(asyncio.DefaultEventLoopPolicy): new_event_loop = none\n"
        "asyncio.set_event_loop_policy(Policy())\n"
        "really, asyncio.BaseEventLoop.__init__ = asyncio.BaseEventLoop.__init__, none\n"
        "tell(Session)\n"
        "asyncio.BaseEventLoop.__init__ = really\n"
        "asyncio.set_event_loop_policy(None)\n"
        "tell(lambda: Session().run('1').value)\n"
    ) == ["CellblockError: no event loop could be started for blocking sessions: RuntimeError: not here", "1"]


def test_session_in_a_call_from_another_async_library_runs() -> None:
    library = pytest.importorskip("sniffio").current_async_library_cvar

    def used() -> object:
        library.set("trio")
        with Session(tools=[library.get]) as session:
            session.run("a = [1]")
            session.undo()
            return session.run("get()").value, library.get()

    assert copy_context().run(used) == (None, "trio")


@pytest.mark.sampled(0)
def test_thread_that_ends_in_a_call_is_told_and_a_new_session_opens() -> None:
    assert _told(
        "async def end(): asyncio.get_running_loop()._selector.close()\n"
        "session = Session(tools=[end])\n"
        "tell(lambda: session.run('await end(); import time; time.sleep(50)').value)\n"
        "tell(lambda: Session().run('1').value)\n"
    ) == ["SessionClosed: the thread of the blocking sessions ended in the middle of a call", "1"]


@pytest.mark.sampled(0)
@pytest.mark.anyio
async def test_session_in_use_on_another_running_loop_is_told_at_once() -> None:
    async with AsyncSession() as session:
        running = asyncio.create_task(session.run("import time; time.sleep(1); 7"))
        await asyncio.sleep(0.2)

        def elsewhere() -> object:
            return asyncio.run(session.run("1"))

        with pytest.raises(CellblockError, match="in use on another event loop, in another thread"):
            await asyncio.to_thread(elsewhere)
        assert (await running).value == 7
        assert (await session.run("2")).value == 2


@pytest.mark.parametrize("stored", [False, True])
def test_session_is_used_on_several_loops_one_after_another(stored: bool, tmp_path: Path) -> None:
    state = Versioned(f"sqlite:///{tmp_path}/cells.db")
    session = AsyncSession("one", state=state) if stored else AsyncSession()

    async def used(source: str) -> object:
        await session.open()
        cell = await session.run(source)
        if stored:
            await session.flush()
        return cell.value

    values: list[object] = [asyncio.run(used("x = 1; x"))]
    thread = threading.Thread(target=lambda: values.append(asyncio.run(used("x += 1; x"))))
    thread.start()
    thread.join()
    values.append(asyncio.run(used("x += 1; x")))
    asyncio.run(session.close())
    assert values == [1, 2, 3]


class _Used:
    """What a call uses, an agent say."""

    async def fail(self, may_end: threading.Event) -> None:
        await asyncio.to_thread(may_end.wait)
        raise ValueError("failed")


def test_call_that_failed_has_let_go_of_what_it_used_when_its_caller_hears_of_it() -> None:
    used, may_end, left, heard = _Used(), threading.Event(), list[object](), threading.Event()
    gone = weakref.ref(used)

    def look() -> None:
        run._answer.take()  # as the caller does, who drops it then
        left.append(gone())
        heard.set()

    run = Run(partial(used.fail, may_end), done=look)
    del used
    may_end.set()
    assert heard.wait(60)
    assert left == [None]
