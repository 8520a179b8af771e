"""A file that the host and a cell change at the same time: whoever was the last, is so when the session is reopened."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import pytest

from cellblock import Cell, ExecutionLimits, FileRefused, Session

Open = Callable[..., Session]

DELETE = object()
WAYS: dict[str, dict[str, Any]] = {
    "states": {},
    "no checkpoints": {"limits": ExecutionLimits(max_checkpoints=0)},
    "reduced walls": {"walls": "reduced"},
}
BEGIN = """
import os, time
def until(path, there=True):
    while os.path.exists(path) != there: time.sleep(0.002)
def put(path, text):
    with open(path, 'w') as file: file.write(text)
"""
CASES: dict[str, tuple[str, list[tuple[str, object]]]] = {
    "the cell writes": ("until('a'); put('a', 'by the cell')", [("a", "host")]),
    "the cell writes as much": ("until('a'); time.sleep(0.001); put('a', 'cell')", [("a", "host")]),
    "the cell adds": ("until('a')\nwith open('a', 'a') as file: file.write('cell')", [("a", "host")]),
    "the cell deletes": ("until('a'); os.remove('a')", [("a", "host")]),
    "the cell renames": ("until('a'); os.rename('a', 'b')", [("a", "host")]),
    "the cell renames another": ("put('b', 'cell'); until('a'); os.replace('b', 'a')", [("a", "host")]),
    "the cell makes it a directory": ("until('a'); os.remove('a'); os.mkdir('a')", [("a", "host")]),
    "the cell removes its directory": ("import shutil; until('d/a'); shutil.rmtree('d')", [("d/a", "host")]),
    "the host writes": ("put('a', 'cell'); put('r', ''); until('go')", [("r", None), ("a", "host"), ("go", "")]),
    "the cell changes only the mode": ("until('go'); os.chmod('a', 0o600)", [("a", "host"), ("go", "")]),
    "the host writes before and after": (
        "until('a'); put('a', 'cell'); put('r', ''); until('go')",
        [("a", "first"), ("r", None), ("a", "again"), ("go", "")],
    ),
    "the host writes twice before": ("until('go'); put('a', 'cell')", [("a", "first"), ("a", "again"), ("go", "")]),
    "the cell writes what the host deleted": ("until('old', False); put('old', 'cell')", [("old", DELETE)]),
    "the host deletes": ("until('old', False)", [("old", DELETE)]),
    "the host deletes what the cell wrote": (
        "put('a', 'cell'); put('r', ''); until('go')",
        [("r", None), ("a", DELETE), ("go", "")],
    ),
    "one is the last of each": (
        "put('b', 'cell'); put('r', ''); until('go'); put('a', 'cell')",
        [("r", None), ("a", "host"), ("b", "host"), ("go", "")],
    ),
}


def _content(session: Session, path: str) -> bytes | str:
    try:
        return session.files.read(path)
    except FileRefused as error:
        return str(error)


def _contents(session: Session) -> list[bytes | str]:
    return [_content(session, path) for path in ("a", "b", "d/a", "old")]


def _change(session: Session, changes: list[tuple[str, object]]) -> None:
    for path, content in changes:
        if content is None:
            while isinstance(_content(session, path), str):
                time.sleep(0.002)
        elif content is DELETE:
            session.files.delete(path)
        else:
            session.files.write(path, str(content))


@contextmanager
def _running(call: Callable[[str], Cell], session: Session, source: str) -> Iterator[list[Cell]]:
    """Within, a cell of this source runs; at the end it has ended."""
    ended: list[Cell] = []
    with ThreadPoolExecutor(1) as pool:
        count = len(session.notebook)
        cell = pool.submit(call, source)
        while len(session.notebook) == count:
            time.sleep(0.002)
        yield ended
        ended.append(cell.result())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", ["states", "no checkpoints"])
@pytest.mark.parametrize("case", CASES)
def test_whoever_changed_a_file_last_did_so_when_it_is_reopened(opened: Open, case: str, way: str) -> None:
    source, changes = CASES[case]
    session = opened(**WAYS[way])
    session.run(BEGIN)
    session.files.write("old", "old")
    with _running(session.run, session, source) as ended:
        _change(session, changes)
    assert ended[0].error is None
    _assert_the_same_when_reopened(session, opened, WAYS[way])


def _assert_the_same_when_reopened(session: Session, opened: Open, way: dict[str, Any]) -> None:
    before = _contents(session)
    for _ in range(2):  # the second time, of what was made again
        session.close()
        session = opened(**way)
        assert session.resumed is not None
        assert session.resumed.lost == ()
        assert _contents(session) == before


@pytest.mark.sampled(0)
@pytest.mark.parametrize("way", WAYS)
def test_new_file_appears_to_a_cell_that_waits_for_it_with_all_its_bytes(
    opened: Open, way: str, readable_python: str
) -> None:
    session = opened(**WAYS[way] | ({"python": readable_python} if way == "reduced walls" else {}))
    session.run(BEGIN)
    data = b"x" * (24 << 20)
    with _running(session.run, session, "until('d/a'); open('d/a', 'rb').read() == b'x' * (24 << 20)") as ended:
        session.files.write("d/a", data)
    assert ended[0].value is True
    assert session.files.list() == ["d/a"]


@pytest.mark.sampled(0)
@pytest.mark.parametrize("way", WAYS)
def test_every_session_that_is_made_again_by_its_cells_has_the_file_of_the_last(
    opened: Open, way: str, readable_python: str
) -> None:
    options = WAYS[way] | ({"python": readable_python} if way == "reduced walls" else {})
    session = opened(**options)
    session.run(BEGIN)
    with _running(session.run, session, "put('b', 'cell'); put('r', ''); until('go'); put('a', 'cell')") as ended:
        _change(session, [("r", None), ("a", "host"), ("b", "host"), ("go", "")])
    assert ended[0].error is None
    assert _contents(session)[:2] == [b"cell", b"host"]
    _assert_the_same_when_reopened(session, opened, options)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", ["states", "no checkpoints"])
@pytest.mark.parametrize("made_again", [False, True])
def test_what_only_the_journal_has_is_done_again_in_the_order_it_had(
    opened: Open, url: str, way: str, made_again: bool
) -> None:
    """The program is killed when the cell has answered, and no commit was made since the session was opened."""
    program = f"""
import os, signal, sys, threading, time
sys.path.insert(0, {str(__file__.rpartition("/")[0])!r})
from cellblock import ExecutionLimits, Session, Versioned
from cellblock.session import committer
from test_overwritten import BEGIN, WAYS, _change, _contents, _running
committer._READ_SECONDS = 0  # what is read here is not committed, either
session = Session("one", state=Versioned({url!r}), **WAYS[{way!r}])
session.run(BEGIN)
session.flush()
session._session._lasting.committer._work = time.sleep  # no commit is made, as if the program died before the next
source = "put('b', 'cell'); put('r', ''); until('go'); put('a', 'cell')"
with _running(session.run, session, source) as ended:
    _change(session, [("r", None), ("a", "host"), ("b", "host"), ("go", "")])
assert ended[0].error is None
print(_contents(session)[:2], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "[b'cell', b'host']\n", done.stderr
    session = opened(**WAYS[way])
    assert _contents(session)[:2] == [b"cell", b"host"]
    if made_again:
        _assert_the_same_when_reopened(session, opened, WAYS[way])


@pytest.mark.sampled(0)
@pytest.mark.parametrize("way", ["states", "no checkpoints"])
@pytest.mark.parametrize("change", ["put('a', 'cell')", "os.remove('a')"])
def test_a_cell_that_is_rolled_back_leaves_the_host_s_file(opened: Open, way: str, change: str) -> None:
    session = opened(**WAYS[way])
    session.run(BEGIN)
    with _running(session.run, session, f"until('a'); {change}; put('r', ''); until('go'); os._exit(1)") as ended:
        _change(session, [("a", "host"), ("r", None), ("go", "")])
    assert ended[0].error is not None
    if ended[0].rolled_back:
        assert _contents(session)[0] == b"host"
    _assert_the_same_when_reopened(session, opened, WAYS[way])


@pytest.mark.sampled(0)
def test_a_file_is_deleted_while_a_cell_runs_that_made_it_and_crashes(opened: Open) -> None:
    session = opened()
    session.run(BEGIN)
    with _running(session.run, session, "put('a', 'cell'); put('r', ''); until('go'); os._exit(1)") as ended:
        _change(session, [("r", None), ("a", DELETE), ("go", "")])
    assert ended[0].rolled_back
    _assert_the_same_when_reopened(session, opened, {})


@pytest.mark.sampled(1)
@pytest.mark.parametrize("step", ["noted", ""])
@pytest.mark.parametrize("host_is_last", [False, True])
def test_what_runs_aside_may_be_the_last_as_well(opened: Open, step: str, host_is_last: bool) -> None:
    way = WAYS["no checkpoints"]
    session = opened(**way)
    session.run(BEGIN)
    first, last = ("put('a', 'cell'); ", "") if host_is_last else ("", "; put('a', 'cell')")
    source = f"{first}put('r', ''); until('go'){last}"
    with ThreadPoolExecutor(1) as pool:
        aside = pool.submit(session.aside, source, step=step)
        _change(session, [("r", None), ("a", "host"), ("go", "")])
        aside.result()
    assert _content(session, "a") == (b"host" if host_is_last else b"cell")
    _assert_the_same_when_reopened(session, opened, way)


def test_a_cell_answers_where_the_store_does_not_take_that_it_was_the_last(opened: Open, url: str) -> None:
    way = WAYS["no checkpoints"]
    session = opened(**way)
    session.run(BEGIN)
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
        database.execute(
            """CREATE TRIGGER refused BEFORE INSERT ON journal WHEN NEW.entry LIKE '%overwritten%'
            BEGIN SELECT RAISE(FAIL, 'no'); END"""
        )
    with _running(session.run, session, "until('a'); put('a', 'by the cell')") as ended:
        session.files.write("a", "host")
    assert ended[0].error is None
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
        database.execute("DROP TRIGGER refused")
    _assert_the_same_when_reopened(session, opened, way)


@pytest.mark.parametrize(("by_cell", "is_hosts"), [(b"cell", False), (b"host", True), (b"cell wrote more", False)])
def test_what_a_cell_writes_within_the_hosts_own_write_is_not_taken_for_the_hosts(
    session: Session, monkeypatch: pytest.MonkeyPatch, by_cell: bytes, is_hosts: bool
) -> None:
    """After the last byte, and before the host has seen what it left: a moment that no cell can be made to meet."""
    session.run("1")
    files: Any = session._session._kernel.files
    utime = os.utime

    def after_the_cell(file: int, **times: Any) -> None:
        os.pwrite(file, by_cell, 0)
        utime(file, **times)

    monkeypatch.setattr(os, "utime", after_the_cell)
    assert (files.write("a", b"host") == files.version("a")) is is_hosts
