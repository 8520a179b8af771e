"""Files that are changed through memory: undone, saved and branched as others are, though no time of change tells it.

A page that was read before it is written leaves none.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from cellblock import Session, Versioned

_PREPARE = "import mmap, os, subprocess, sys, threading, time\nopen('f', 'wb').write(b'old!' + bytes(4092))"
_OPEN = "file = open('f', 'r+b'); shared = mmap.mmap(file.fileno(), 0); file.close()"
_WRITE = "shared[0:4]; shared[0:4] = NEW"
_CONTENT = "open('f', 'rb').read(4)"
_AT_ONCE = "with open('f', 'r+b') as file, mmap.mmap(file.fileno(), 0) as there:\n    there[0:4]; there[0:4] = NEW"
_BY_A_PROGRAM = f"subprocess.run([sys.executable, '-c', 'import mmap\\n' + {_AT_ONCE!r}], check=True)"
_WITHOUT_ITS_FIRST_THREAD = """
import ctypes
if os.fork() == 0:
    there = mmap.mmap(os.open('f', os.O_RDWR), 0)
    def work():
        while not os.path.exists('/tmp/go'): time.sleep(0.01)
        there[0:4]; there[0:4] = b'new!'
        open('/tmp/done', 'w').close()
        time.sleep(600)
    threading.Thread(target=work).start()
    ctypes.CDLL(None).syscall(60, 0)
"""
_GO = "open('/tmp/go', 'w').close()\nwhile not os.path.exists('/tmp/done'): time.sleep(0.01)"


def _ran(session: Session, *sources: str, new: bytes = b"new!") -> None:
    for source in sources:
        cell = session.run(source.replace("NEW", repr(new)))
        assert cell.ok, cell.text


_WAYS = {
    "mapped and closed in one cell": ([], [_AT_ONCE]),
    "mapped in the cell before": ([_OPEN, "1"], [_WRITE]),
    "written in the cell before, too": ([_OPEN, _WRITE.replace("NEW", "b'old!'"), "1"], [_WRITE]),
    "by a program": ([], [_BY_A_PROGRAM]),
    "by a process whose first thread has ended": ([_WITHOUT_ITS_FIRST_THREAD, "1"], [_GO]),
}


@pytest.mark.parametrize("where", ["a session", "a branch"])
@pytest.mark.parametrize("way", _WAYS)
def test_change_through_memory_is_undone_and_saved(way: str, where: str, url: str) -> None:
    if (way, where) == ("by a program", "a branch"):
        pytest.skip("a branch executes no programs")
    before, change = _WAYS[way]
    with ExitStack() as stack:
        session = stack.enter_context(Session("one", state=Versioned(url)))
        _ran(session, _PREPARE)
        if where == "a branch":
            session = stack.enter_context(session.branch("two"))
        _ran(session, *before, *change)
        session.flush()
        with session.branch() as beside:
            assert beside.run(_CONTENT).value == b"new!"
        name = session.name
    with Session(name, state=Versioned(url)) as session:
        assert session.run(_CONTENT).value == b"new!"
        session.undo(len(change) + 1)
        assert session.run(_CONTENT).value == b"old!"


@pytest.mark.parametrize("where", ["a session", "a branch"])
def test_change_through_memory_is_undone_by_the_kernel(where: str, open_session: Callable[..., Session]) -> None:
    with ExitStack() as stack:
        session = open_session()
        _ran(session, _PREPARE)
        if where == "a branch":
            session = stack.enter_context(session.branch())
        _ran(session, _OPEN, "1", _WRITE, "2")
        _ran(session, _WRITE, new=b"late")
        session.undo()
        assert session.run(_CONTENT).value == b"new!"
        session.undo(3)
        assert session.run(_CONTENT).value == b"old!"
        _ran(session, _WRITE, "3")
        session.undo(2)
        assert session.run(_CONTENT).value == b"old!"


def test_change_through_memory_that_an_older_checkpoint_had_mapped(open_session: Callable[..., Session]) -> None:
    session = open_session()
    _ran(session, _PREPARE, _OPEN, "shared.close()", "1")
    session.undo(2)
    _ran(session, _WRITE)
    _ran(session, _WRITE, new=b"late")
    session.undo()
    assert session.run(_CONTENT).value == b"new!"


@pytest.mark.parametrize(
    "step",
    [
        "open('g', 'wb').write(bytes(4096)); os.rename('g', 'f')",
        "os.rename('f', 'g')",
        "os.remove('f')",
        "os.link('f', 'g')",
        "os.remove('f'); os._exit(3)",
    ],
)
def test_mapping_whose_file_is_made_anew_is_told(step: str, open_session: Callable[..., Session]) -> None:
    session = open_session()
    _ran(session, _PREPARE, _OPEN)
    if not session.run(step).rolled_back:
        session.undo()
    cell = session.run(f"shared[0:4] = b'new!'; {_CONTENT}")
    told = [one for one in (*cell.lost, *session.notebook[-2].lost) if one.type == "mmap"]
    assert [(one.remedy, one.name[:10]) for one in told] == [("map it again", "mapping of")], told
    session.undo()
    assert [one for one in session.run("1").lost if one.type == "mmap"] == []  # told once
