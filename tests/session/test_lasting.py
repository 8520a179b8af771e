"""Sessions that last: what is in the store after every step, and what a program finds that opens them again."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from family_tree import below, launchers, soon
from pythons import interpreters

from cellblock import (
    AsyncSession,
    CellblockError,
    CellState,
    ExecutionLimits,
    MergeConflict,
    Policy,
    Session,
    SessionBusy,
    StoreError,
    UnknownCommit,
    UnpicklableError,
    Versioned,
)
from cellblock.errors import LeaseLost, RestoreFailed
from cellblock.session.hoststeps import HostStep
from cellblock.session.past import host_entries, host_entry
from cellblock.store import open_store

Open = Callable[..., Session]


def _again(session: Session, opened: Open) -> Session:
    session.close()
    return opened(session.name)


def _dies(url: str, program: str) -> None:
    """A program opens the session `one`, and is killed at its end or before."""
    begin = f"from cellblock import *\nimport os, signal, time\nsession = Session('one', state=Versioned({url!r}))\n"
    end = "\nos.kill(os.getpid(), signal.SIGKILL)\n"
    done = subprocess.run(
        [sys.executable, "-c", begin + textwrap.dedent(program) + end], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_names_files_and_the_notebook_are_there_when_it_is_opened_again(opened: Open) -> None:
    session = opened()
    assert session.resumed is None
    session.run("x = [1, {'a': (2.5, None)}]\ny = x")
    session.run("open('kept.txt', 'w').write('text')\nprint('shown')")
    session.shell("mkdir -p deep/er && echo from a shell > deep/er/file && chmod 600 deep/er/file")
    session = _again(session, opened)
    assert session.resumed is not None
    assert session.resumed.replayed == ()
    assert session.run("x, x is y").value == ([1, {"a": (2.5, None)}], True)
    assert session.run("import os\nopen('kept.txt').read(), oct(os.stat('deep/er/file').st_mode)").value == (
        "text",
        "0o100600",
    )
    assert [(cell.number, cell.kind, cell.text) for cell in session.notebook.cells[:3]] == [
        (1, "python", ""),
        (2, "python", "shown"),
        (3, "shell", ""),
    ]
    assert session.notebook[3].number == 4


@pytest.mark.sampled(0)
def test_files_of_data_are_kept_and_told_as_lost_where_a_mount_takes_their_place(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir(mode=0o755)
    session = opened()
    session.run("open('/data/in.csv', 'w').write('a')\nx = 1")
    session = _again(session, opened)
    assert session.run("open('/data/in.csv').read()").value == "a"
    session.close()
    mounted = opened("one", mounts={"/data": tmp_path / "shared"})
    cell = mounted.run("import os\nx, os.listdir('/data')")
    assert cell.value == (1, [])
    assert [lost.name for lost in (*mounted.resumed.lost, *cell.lost)] != []  # type: ignore[union-attr]


def test_an_aside_that_is_a_step_is_in_the_store_and_no_cell(opened: Open) -> None:
    session = opened()
    session.run("x = 1")
    session.aside("x += 1", step="noted")
    session = _again(session, opened)
    assert session.run("x").value == 2
    assert [commit.message for commit in session.log()] == ["x", "noted", "x = 1", ""]
    assert [cell.source for cell in session.notebook.cells] == ["x = 1", "x"]


def test_an_aside_is_done_again_where_cells_are(opened: Open) -> None:
    session = opened(policy=Policy())
    session.run("x = [1]")
    session.aside("x.append(2)", step="noted")
    session.run("x.append(3)")
    session.close()
    assert opened(policy=Policy()).run("x").value == [1, 2, 3]


@pytest.mark.sampled(0)
def test_a_session_goes_back_to_a_state_that_an_aside_without_a_step_led_to(opened: Open) -> None:
    session = opened()
    session.run("x = 1")
    session.aside("x")
    state = session.checkpoint()
    session.run("x = 2")
    with pytest.raises(TypeError, match="not both"):
        session.undo(2, to=state)
    session.undo(to=state)
    assert session.run("x").value == 1
    session.undo(1)
    session.aside("x")
    session = _again(session, opened)
    assert session.run("x").value == 1
    assert [(commit.kind, commit.message) for commit in session.log()] == [
        ("python", "x"),
        ("aside", "x"),
        ("aside", "x"),
        ("python", "x = 1"),
        ("open", ""),
    ]


@pytest.mark.sampled(0)
def test_what_was_run_aside_is_in_a_commit_of_its_own(opened: Open) -> None:
    session = opened()
    session.run("x = [1]")
    session.aside("x.append(2)")
    session.tag("with")
    with session.branch("other") as other:
        assert other.run("x").value == [1, 2]
        other.aside("y = 3")
        session.merge(other)
    assert session.run("x, y").value == ([1, 2], 3)
    commits = len(session.log())
    session.aside("len(x)", reads=True)
    assert len(session.log()) == commits
    session.checkout("with")
    session = _again(session, opened)
    assert session.run("x").value == [1, 2]
    session.aside("x.append(5)")
    session.undo()
    assert session.run("x").value == [1, 2]
    session.undo(2)
    assert "x" not in session.names()


def test_functions_and_classes_of_cells_go_on_seeing_the_session(opened: Open) -> None:
    session = opened()
    session.run("import math\ndef f(x): return math.sqrt(x) + k\nk = 1")
    session.run("class P:\n    def __init__(self): self.v = 3\np = P()")
    session = _again(session, opened)
    assert session.run("f(9), p.v, isinstance(p, P), type(p) is P").value == (4.0, 3, True, True)
    assert session.run("k = 10\nf(9)").value == 13.0


def test_images_are_kept(opened: Open) -> None:
    session = opened()
    cell = session.run("class Picture:\n    def _repr_png_(self): return b'\\x89PNG\\r\\n\\x1a\\n picture'\nPicture()")
    uri = next(output.uri for output in cell.outputs if output.uri)
    session = _again(session, opened)
    assert session.read_output(uri) == b"\x89PNG\r\n\x1a\n picture"


def test_every_step_is_a_commit(opened: Open) -> None:
    session = opened()
    session.run("a = 1")
    session.shell("true")
    session["b"] = 2
    session.files.write("c.txt", "3")
    session.run("1/0")
    assert [(commit.kind, commit.message) for commit in reversed(session.log())] == [
        ("open", ""),
        ("python", "a = 1"),
        ("shell", "true"),
        ("host", "b = …"),
        ("host", "write c.txt"),
        ("python", "1/0"),
    ]
    assert [commit.number for commit in session.log(limit=2)] == [3, 2]


def test_a_cell_that_is_run_again_finds_the_file_that_it_waited_for(opened: Open) -> None:
    session = opened(limits=ExecutionLimits(max_checkpoints=0))
    wait = "import os, time\nwhile not os.path.exists('given.txt'): time.sleep(0.01)\nfound = open('given.txt').read()"
    with ThreadPoolExecutor(1) as pool:
        cell = pool.submit(session.run, wait)
        while not session.notebook.cells:
            time.sleep(0.01)
        session.files.write("given.txt", "given")
        assert cell.result().ok
    session = _again(session, opened)
    assert session.resumed is not None
    assert session.resumed.lost == ()
    assert session["found"] == "given"


@pytest.mark.sampled(0)
def test_a_session_whose_event_loops_end_in_the_middle_of_commits_has_all_of_them(url: str) -> None:
    session = AsyncSession("one", state=Versioned(url))
    asyncio.run(session.open())
    for number in range(60):

        async def one(number: int = number) -> None:
            assert (await session.run(f"x = {number}\nkept = [{number}] * 1000")).ok
            await asyncio.sleep(0.002 * (number % 7))

        asyncio.run(one())
    asyncio.run(session.close())
    with Session("one", state=Versioned(url)) as again:
        assert again["x"] == 59
        assert len(again.log(limit=100)) == 61
    with open_store(url) as store:
        assert store.verify().damage == ()


@pytest.mark.sampled(0)
def test_a_call_whose_cell_was_deleted_is_a_step_of_its_own_when_it_comes_again(opened: Open) -> None:
    session = opened()
    session.run("x = 0")
    for _ in range(2):
        session.run("x += 1", call_id="k")
        session.delete("k")
    session.undo()
    assert session["x"] == 1
    assert _again(session, opened)["x"] == 1


def test_states_that_were_not_saved_are_not_merged(opened: Open) -> None:
    session = opened(limits=ExecutionLimits(max_checkpoints=0))
    session.run("x = 1")
    session.run("z = 2")
    session.tag("there")
    session.checkout("HEAD~1")
    session.run("y = 2")
    with pytest.raises(CellblockError, match="nothing was merged: the state of cell 2, 'y = 2', was not saved"):
        session.merge("there")
    assert (session["x"], session["y"]) == (1, 2)


@pytest.mark.sampled(0)
def test_an_undo_that_the_store_refused_is_told_by_the_next_commit(opened: Open, url: str) -> None:
    session = opened()
    session.run("a = 1")
    session.run("b = 2")
    session.flush()
    moves = "BEFORE UPDATE OF head_commit ON sessions"
    _execute(url, f"CREATE TRIGGER refused {moves} BEGIN SELECT RAISE(FAIL, 'no'); END")
    with pytest.raises(StoreError):
        session.undo()
    _execute(url, "DROP TRIGGER refused")
    session["c"] = 3
    session.run("d = 4")
    assert sorted(_again(session, opened).names()) == ["a", "c", "d"]


def _execute(url: str, statement: str) -> None:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
        database.execute(statement)


@pytest.mark.sampled(0)
def test_what_the_host_changed_is_in_the_store_when_the_call_returns(opened: Open, url: str) -> None:
    _dies(url, "session['b'] = {'k': 2}\nsession.files.write('c.txt', 'text')")
    session = opened()
    assert session.run("b, open('c.txt').read()").value == ({"k": 2}, "text")


def test_a_cell_that_was_acknowledged_survives_the_death_of_its_program(opened: Open, url: str) -> None:
    _dies(url, "for n in range(30): session.run(f'x{n} = {n}')")
    session = opened()
    assert session.run("[globals()[f'x{n}'] for n in range(30)] == list(range(30))").value is True
    assert [cell.number for cell in session.notebook.cells] == list(range(1, 32))


@pytest.mark.sampled(0)
@pytest.mark.timeout(60)
@pytest.mark.parametrize("deaths", [1, 3])
def test_steps_that_are_taken_again_in_processes_that_end_are_taken_again_in_others(opened: Open, deaths: int) -> None:
    session = opened(limits=ExecutionLimits(max_checkpoints=0))
    for number in range(3):
        session.run(f"import time; time.sleep(0.5); x{number} = [{number}]")
    session["y"] = "set"
    session.close()
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(opened, "one")
        for _ in range(deaths):
            assert soon(lambda: any(len(one.inner) == 3 and one.inner[-1] != 1 for one in below()), True)
            time.sleep(0.3)  # it takes the first cell again
            for launcher in launchers():
                os.kill(launcher.pid, signal.SIGKILL)
        if deaths == 1:
            session = opening.result()
            assert session.resumed is not None
            assert session.resumed.lost == ()
        else:
            with pytest.raises(CellblockError, match="ended"):
                opening.result()
            session = opened("one")
    assert session.run("x0 + x1 + x2 + [y]").value == [0, 1, 2, "set"]
    assert [one.message for one in session.log()][1] == "y = …"


def test_a_cell_that_ran_when_the_program_died_is_told_and_not_run_again(opened: Open, url: str) -> None:
    _dies(
        url,
        """
        session.run("x = 1; open('ran', 'w').write('once')")
        session.flush()
        for event in session.stream("open('ran', 'a').write(' 2'); x = 2; print(x); import time; time.sleep(60)"):
            os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    session = opened()
    assert session.resumed is not None
    interrupted = session.resumed.interrupted
    assert interrupted is not None
    assert (interrupted.number, interrupted.state) == (2, CellState.ERROR)
    assert interrupted.error is not None
    assert interrupted.error.type == "Interrupted"
    assert interrupted.text.startswith("Interrupted: the session was closed, or the program that ran it ended, while")
    assert session.run("x, open('ran').read()").value == (1, "once")
    assert session.notebook[1] == interrupted
    session = _again(session, opened)
    assert session.resumed is not None
    assert session.resumed.interrupted is None


def test_host_functions_are_not_called_again_when_cells_are_replayed(opened: Open, url: str, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    _dies(
        url,
        f"""
        def pay(amount):
            with open({str(calls)!r}, 'a') as out: out.write(f'{{amount}} ')
            return {{'paid': amount}}
        session.close()
        session = Session('one', state=Versioned({url!r}), tools=[pay])
        session._session._lasting.committer._work = time.sleep  # commits stop, as if the program died before the next
        session.run('receipts = [pay(n) for n in (1, 2)]')
        """,
    )
    assert calls.read_text() == "1 2 "

    def pay(amount: int) -> object:
        raise AssertionError("called again")

    session = opened(tools=[pay])
    assert session.resumed is not None
    assert [cell.number for cell in session.resumed.replayed] == [1]
    assert session.run("receipts").value == [{"paid": 1}, {"paid": 2}]


def test_going_to_another_commit_and_on_from_there_loses_nothing(opened: Open) -> None:
    session = opened()
    for n in range(4):
        session.run(f"x = {n}; open('x', 'w').write('{n}')")
    newest = session.log(limit=1)[0].id
    session.tag("newest")
    session.checkout("HEAD~2")
    assert session.run("x, open('x').read()").value == (1, "1")
    assert [cell.source[:5] for cell in session.notebook.cells] == ["x = 0", "x = 1", "x, op"]
    session.run("x = 'other'")
    session.checkout("newest")
    assert session.run("x, open('x').read()").value == (3, "3")
    session.checkout(newest[:20])
    assert session.run("x").value == 3


def test_undo_goes_back_further_than_the_warm_states(opened: Open) -> None:
    session = opened(limits=ExecutionLimits(max_checkpoints=2))
    for n in range(6):
        session.run(f"x = {n}")
    session.undo()
    assert session.run("x").value == 4
    session.undo(5)
    assert session.run("x").value == 0
    assert [commit.message for commit in session.log(limit=2)] == ["x", "x = 0"]
    with pytest.raises(UnknownCommit):
        session.undo(50)


@pytest.mark.sampled(0)
def test_a_session_that_went_back_is_resumed_there(opened: Open) -> None:
    session = opened()
    session.run("x = 1")
    session.run("x = 2")
    session.undo()
    session = _again(session, opened)
    assert session.run("x").value == 1


def test_differences(opened: Open) -> None:
    session = opened()
    session.run("a = 1; b = [1]; open('f', 'w').write('12345')")
    session.run("a = 2; del b; c = 'new'; open('g', 'w').write('1')")
    diff = session.diff()
    told = [(one.name, one.before and one.before.preview, one.after and one.after.preview) for one in diff.names]
    assert told == [("a", "1", "2"), ("b", "[1]", None), ("c", None, "'new'")]
    assert [(one.path, one.before, one.after) for one in diff.files] == [("workspace/g", None, 1)]
    assert [step.message for step in diff.steps] == ["a = 2; del b; c = 'new'; open('g', 'w').write('1')"]
    assert not session.diff("HEAD", "HEAD")
    assert str(diff).splitlines()[1] == "~ a: 1 (int) → 2 (int)"


def test_branches_go_apart_and_are_merged(opened: Open) -> None:
    session = opened()
    session.run("both = [0]; ours = theirs = None; open('f', 'w').write('base')")
    branch = session.branch("idea")
    branch.run("theirs = 'b'; open('theirs', 'w').write('b')")
    session.run("ours = 'a'")
    merged = session.merge(branch)
    assert len(merged.parents) == 2
    assert session.run("ours, theirs, both, open('theirs').read()").value == ("a", "b", [0], "b")
    branch.run("both.append('b')")
    branch.flush()  # by its name, a branch is what the store has of it
    session.run("both.append('a')")
    with pytest.raises(MergeConflict) as conflict:
        session.merge("idea")
    assert conflict.value.names == ("both",)
    assert session.run("both").value == [0, "a"]
    session.merge("idea", prefer="theirs")
    assert session.run("both, ours").value == ([0, "b"], "a")
    branch.close()
    assert opened("idea").run("both, ours").value == ([0, "b"], None)


def test_a_second_program_is_told_who_has_the_session(opened: Open, url: str) -> None:
    opened()
    with pytest.raises(SessionBusy, match="is open in this process"):
        opened()
    program = f"from cellblock import *\nSession('one', state=Versioned({url!r}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert f"process {os.getpid()}" in done.stderr


def test_settings_are_those_it_was_made_with_unless_others_are_given(opened: Open) -> None:
    session = opened(limits=ExecutionLimits(timeout_seconds=7), seed=5)
    assert (session.limits.timeout_seconds, session.seed) == (7, 5)
    session = _again(session, opened)
    assert (session.limits.timeout_seconds, session.seed) == (7, 5)
    session.close()
    session = opened(limits=ExecutionLimits(timeout_seconds=9))
    assert (session.limits.timeout_seconds, session.seed) == (9, 5)
    session = _again(session, opened)
    assert session.limits.timeout_seconds == 9


BY_SOURCE: dict[str, dict[str, Any]] = {
    "policy": {"policy": Policy()},
    "no checkpoints": {"limits": ExecutionLimits(max_checkpoints=0)},
}


@pytest.mark.sampled(0)
@pytest.mark.parametrize("how", BY_SOURCE)
def test_cells_that_are_run_again_draw_what_they_drew(opened: Open, how: str) -> None:
    """Whatever seed is given at a later opening, and in a branch, too; the ids of cells are each session's own."""
    session = opened(seed=1, **BY_SOURCE[how])
    drawn = session.run("import random\nx = random.random(), len({*map(str, range(9))}), [*{'a', 'b', 'c'}]\nx").value
    session.close()
    session = opened(seed=2, **BY_SOURCE[how])
    assert (session.run("x").value, session.seed) == (drawn, 1)
    ids = {cell.id for cell in session.notebook}
    if how == "policy":  # without checkpoints there is nothing to branch from
        branch = session.branch("idea")
        branch.hibernate()
        assert branch.run("x").value == drawn
        branch.close()
        branch = opened("idea", **BY_SOURCE[how])
        session.close()
        session = opened(**BY_SOURCE[how])
        new = [one.run("x") for one in (branch, session)]
        assert [one.value for one in new] == [drawn, drawn]
        assert len({*ids, *(one.id for one in new)}) == len(ids) + 2


DRAWS = "import random, numpy\ndrawn = random.random(), float(numpy.random.rand())\ndrawn"


@pytest.mark.sampled(0)
@pytest.mark.parametrize("options", [{}, BY_SOURCE["policy"]], ids=["states", "source"])
def test_branch_draws_numbers_of_its_own_however_often_it_is_brought_back(
    opened: Open, options: dict[str, Any]
) -> None:
    """Before it has a state of its own, too: what it draws after a rest is what it would have drawn without."""
    if options:
        options = {"policy": Policy(modules=["random"], trusted=["numpy"])}
    stem = opened(seed=1, **options)
    assert stem.run("import random, numpy").ok
    branches = [stem.branch("first"), stem.branch("second"), stem.branch("third")]
    branches.append(branches[2].branch("third of third"))
    told = [one.run(DRAWS).value for one in (stem, *branches)]
    assert len({*told}) == 5
    for one in branches:
        one.hibernate()
    assert [one.run("drawn").value for one in (stem, *branches)] == told
    rested = stem.branch("rested")
    awake = [one.run(DRAWS).value for one in (stem, *branches)]
    for one in branches:
        one.undo()
        one.hibernate()
    assert [one.run(DRAWS).value for one in branches] == awake[1:]
    rested.hibernate()
    assert rested.run(DRAWS).value not in [*told, *awake]
    for one in (rested, *branches):
        one.close()


def _write_settings(url: str, **changed: object) -> None:
    """As somebody who can write to the store."""
    with sqlite3.connect(url.removeprefix("sqlite:///")) as database:
        (old,) = database.execute("SELECT settings FROM sessions").fetchone()
        database.execute("UPDATE sessions SET settings = ?", (json.dumps({**json.loads(old), **changed}),))
    database.close()


def test_a_store_decides_neither_what_the_host_executes_nor_what_cells_reach(
    opened: Open, url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\ntouch {tmp_path}/executed\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    session = opened()
    session.run("x = 1")
    session.close()
    _write_settings(
        url,
        python=str(python),
        preload=["decimal"],
        mounts={"m": "/etc"},
        network=["example.com:443"],
        trust_level="local",
        walls="reduced",
        container={"image": "theirs", "engine": "/tmp/podman", "runtime": "", "cpus": None},
        limits={"timeout_seconds": 600, "max_memory_mb": 100, "max_processes": 9999},
    )
    for _ in range(2):
        session = opened()
        assert session.run("import os\nx, os.path.exists('m')").value == (1, False)
        assert repr(session) == "<Session 'one' of 'default', isolated, open>"
        assert session.run("import urllib.request\nurllib.request.urlopen('https://example.com')").error is not None
        assert session.limits == replace(ExecutionLimits(), max_memory_mb=100)
        assert session.resumed is not None
        assert {told.split("=")[0] for told in session.resumed.left_out} == {
            "python", "preload", "mounts", "network", "trust_level", "walls", "container", "timeout_seconds",
            "max_processes",
        }  # fmt: skip
        session.close()
    assert not (tmp_path / "executed").exists()
    assert "not taken from its store: " in caplog.text
    assert "mounts={'m': '/etc'}" in caplog.text


def test_settings_that_only_narrow_are_those_of_the_store(opened: Open, url: str) -> None:
    session = opened(limits=ExecutionLimits(max_memory_mb=100, max_checkpoint_mb=50), private=True)
    session.run("x = 1")
    session = _again(session, opened)
    assert (session.limits.max_memory_mb, session.limits.max_checkpoint_mb) == (100, 50)
    assert session.private
    assert session.resumed is not None
    assert session.resumed.left_out == ()


def test_what_the_opener_says_comes_before_a_store(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir(mode=0o755)
    opened(mounts={"in": tmp_path / "one"}, limits=ExecutionLimits(timeout_seconds=50)).close()
    session = opened(mounts={"in": tmp_path / "one"}, limits=ExecutionLimits(timeout_seconds=60))
    assert session.run("import os\nos.path.isdir('in')").value is True
    assert session.limits.timeout_seconds == 60


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "entry",
    [
        {}, {"do": 1}, {"do": "begin"}, {"do": "begin", "id": [], "number": "x", "kind": 1, "source": None},
        {"do": "host", "step": "s", "what": "set", "name": "x", "buffers": "?", "during": ""},
        {"do": "host", "step": "s", "what": "set", "name": "x", "buffers": ["%"], "during": ""},
    ],
    ids=repr,
)  # fmt: skip
def test_a_journal_of_another_form_is_damage(opened: Open, url: str, entry: object) -> None:
    session = opened()
    session.run("x = 1")
    session.close()
    with sqlite3.connect(url.removeprefix("sqlite:///")) as database:
        database.execute("INSERT INTO journal SELECT id, 1000, ? FROM sessions", (json.dumps(entry),))
    database.close()
    try:
        assert opened().run("x").value == 1
    except StoreError as error:
        assert "the steps of the session are damaged" in str(error)  # noqa: PT017 - the other outcome is none


@pytest.mark.sampled(3)
@pytest.mark.parametrize("limits", [{"timeout_seconds": -1}, {"timeout_seconds": "1"}, {"nope": 1}, 5])
def test_limits_of_a_store_that_are_none_are_damage(opened: Open, url: str, limits: object) -> None:
    opened().close()
    _write_settings(url, limits=limits)
    with pytest.raises(StoreError, match="the settings of the session are damaged"):
        opened()


def test_sessions_that_do_not_last_say_so() -> None:
    with Session() as session:
        for call in (session.flush, session.log, session.diff, lambda: session.checkout("HEAD")):
            with pytest.raises(CellblockError, match="for sessions with versions"):
                call()
    with pytest.raises(ValueError, match="a session that lasts needs a name"):
        Session(state=Versioned("memory:"))
    with pytest.raises(TypeError, match="state must be"):
        Session("one", state="sqlite:///x.db")  # type: ignore[arg-type]


@pytest.mark.sampled(0)
def test_a_cell_that_was_rolled_back_is_a_commit_that_changes_nothing(opened: Open) -> None:
    session = opened()
    session.run("x = 1")
    assert session.run("x = 2; import os; os.kill(os.getpid(), 9)").rolled_back
    session = _again(session, opened)
    assert session.run("x").value == 1
    assert [cell.rolled_back for cell in session.notebook.cells] == [False, True, False]


@pytest.mark.sampled(0)
def test_undo_counts_no_cell_that_was_rolled_back_however_far_it_goes(opened: Open) -> None:
    session = opened()
    for source in ("x = 1", "x = 2", "import os; os._exit(3)"):
        session.run(source)
    session.undo()
    assert [commit.message for commit in session.log()] == ["x = 1", ""]
    for source in ("x = 2", "import os; os._exit(3)"):
        session.run(source)
    session = _again(session, opened)  # no state of it is warm
    with pytest.raises(UnknownCommit, match="undoing 3 steps goes past the first commit"):
        session.undo(3)
    session.undo()
    assert [commit.message for commit in session.log()] == ["x = 1", ""]
    assert session.run("x").value == 1


@pytest.mark.sampled(0)
def test_undo_of_steps_that_were_done_again_leads_to_their_commits(opened: Open) -> None:
    session = opened()
    for text in (b"one", b"two"):
        session.files.write("x", text)  # no cell has run: there is nothing of which it could be saved
    session = _again(session, opened)
    session.undo()
    assert [commit.message for commit in session.log()] == ["write x", ""]
    assert session.files.read("x") == b"one"
    session = _again(session, opened)
    assert session.files.read("x") == b"one"


def test_clear_and_delete_are_kept(opened: Open) -> None:
    session = opened()
    session.run("x = 1")
    cell = session.run("y = 2")
    session.delete(cell.id)
    session.run("z = 3")
    session = _again(session, opened)
    assert [cell.source for cell in session.notebook.cells] == ["x = 1", "z = 3"]
    session.clear()
    session = _again(session, opened)
    assert (len(session.notebook), session.names()) == (0, {})


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kept", [True, False], ids=["versions", "no versions"])
@pytest.mark.parametrize("steps", [[2], [1, 1]], ids=["at once", "one by one"])
def test_call_of_before_a_clearing_that_was_undone_runs_once(
    opened: Open, open_session: Open, kept: bool, steps: list[int]
) -> None:
    session = opened() if kept else open_session()
    session.run("paid = []")
    session.run("paid.append(1)", call_id="pay")
    session.clear()
    session.run("y = 1", call_id="pay")
    for count in steps:
        session.undo(count)
    assert session.run("paid.append(1)", call_id="pay").number == 2
    assert session.run("paid").value == [1]
    assert [cell.undone for cell in session.notebook] == [False] * 3


@pytest.mark.sampled(0)
@pytest.mark.parametrize("sleeps", [False, True], ids=["lives", "slept"])
def test_no_two_cells_of_a_notebook_have_one_number(opened: Open, sleeps: bool) -> None:
    session = opened()
    for number in range(4):
        session.run(f"x = {number}")
    session.undo(2)
    if sleeps:
        session.hibernate()
    assert session.run("x").number == 5
    assert [cell.number for cell in session.notebook] == [1, 2, 3, 4, 5]


def test_cell_deleted_before_a_clearing_stays_so_when_that_is_undone(opened: Open) -> None:
    session = opened()
    session.run("a = 1", call_id="a")
    session.run("b = 2", call_id="b")
    session.delete("a")
    session.clear()
    session.hibernate()
    session.undo()
    assert [cell.id for cell in session.notebook] == ["b"]
    session = _again(session, opened)
    assert [cell.id for cell in session.notebook] == ["b"]


def test_a_session_that_sleeps_holds_no_process_and_wakes_when_it_is_used(opened: Open) -> None:
    session = opened()
    pid = session.run("import os\nx = [1]\nopen('f', 'w').write('text')\nos.getpid()").value
    session.hibernate()
    assert "asleep" in repr(session)
    assert session.capabilities.walls
    session.interrupt()
    assert session.files.read("f") == b"text"
    assert "asleep" not in repr(session)
    session.hibernate()
    assert session.run("x").value == [1]
    assert [cell.number for cell in session.notebook.cells] == [1, 2]
    assert session.notebook[0].value == pid
    session.hibernate()
    session.close()
    assert opened().run("x").value == [1]


@pytest.mark.sampled(0)
@pytest.mark.parametrize("of", ["the session", "a branch"])
def test_a_session_that_is_not_used_goes_to_sleep(url: str, of: str) -> None:
    with ExitStack() as stack:
        session = stack.enter_context(Session("one", state=Versioned(url, hibernate_after=0.2)))
        if of == "a branch":
            session = stack.enter_context(session.branch("other"))
        session.run("x = 1")
        deadline = time.monotonic() + 10
        while "asleep" not in repr(session) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert "asleep" in repr(session)
        assert session.run("x").value == 1


def test_what_cannot_be_saved_is_told_when_it_is_gone(opened: Open) -> None:
    session = opened()
    session.run("file = open('out', 'w')\nkept = 1\nlines = (n for n in range(3)); next(lines)")
    assert session.run("next(lines)").value == 1
    session = _again(session, opened)
    assert session.resumed is not None
    lost = {one.name: one for one in session.resumed.lost}
    assert set(lost) == {"file", "lines"}
    assert (lost["lines"].type, bool(lost["lines"].reason), bool(lost["lines"].remedy)) == ("generator", True, True)
    assert {one.name for one in session.run("kept").lost} == {"file", "lines"}
    assert session.run("kept").lost == ()


@pytest.mark.parametrize("level", ["isolated", "local"])
def test_a_policy_holds_in_a_session_that_is_resumed(opened: Open, level: str) -> None:
    policy = Policy(modules=["math"])
    session = opened(trust_level=level, policy=policy)
    session.run("import math\nk = 2\ndef f(x): return x + k\nclass P:\n    v = 1\np = P()")
    session["given"] = {"from": ["the host"]}
    session.close()
    session = opened(policy=policy, trust_level=level)
    assert session.run("f(3), p.v, math.floor(2.5), given").value == (5, 1, 2, {"from": ["the host"]})
    for attack in ("import os", "f.__globals__", "().__class__"):
        cell = session.run(attack)
        assert cell.error is not None
        assert cell.error.type == "SecurityError"


def test_what_the_host_does_at_local_is_kept_as_far_as_it_is_plain_data(opened: Open) -> None:
    session = opened(trust_level="local")
    session["given"] = [1, {2}]
    session.run("given.append(3)")
    with pytest.raises(UnpicklableError, match="other: Path2 cannot be kept in a store"):
        session["other"] = type("Path2", (), {})()
    session.close()
    session = opened(trust_level="local")
    assert session.run("given").value == [1, {2}, 3]
    session.undo()
    session.undo()
    assert session.run("given").value == [1, {2}]
    session.clear()
    session.close()
    with pytest.raises(RestoreFailed, match='trust_level="local"'):  # which no store can say
        opened()
    assert opened(trust_level="local").names() == {}


def test_what_is_live_at_local_is_not_called_again_by_a_resume(opened: Open, url: str) -> None:
    calls = []

    def pay(amount: int) -> int:
        calls.append(amount)
        return amount

    session = opened(trust_level="local", tools=[pay])
    assert session.run("paid = pay(3)\npaid").value == 3
    session.close()
    assert opened(trust_level="local", tools=[pay]).run("paid").value == 3
    assert calls == [3]


@pytest.mark.sampled(0)
def test_a_cell_that_was_rolled_back_before_its_program_died_is_in_the_log(opened: Open, url: str) -> None:
    _dies(
        url,
        """
        session.run('x = 1')
        session.flush()
        session._session._lasting.committer._work = time.sleep  # commits stop, as if the program died before the next
        session.run('x = 2; import os; os._exit(3)')
        """,
    )
    session = opened()
    assert [commit.number for commit in session.log()] == [2, 1, 0]
    assert [(cell.rolled_back, cell.error and cell.error.type) for cell in session.notebook] == [
        (False, None),
        (True, "RolledBack"),
    ]
    assert session.run("x").value == 1


@pytest.mark.sampled(0)
def test_definitions_are_run_again_where_another_python_takes_over(opened: Open) -> None:
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    other = next((path for version, path in interpreters().items() if version != own), None)
    if other is None:
        pytest.skip("there is no other Python")
    session = opened()
    session.run(
        "import math\ndef f(x): return math.floor(x)\nclass P:\n    v = 1\np = P()\nopen('kept', 'w').write('text')"
    )
    session.close()
    session = opened(python=other)
    assert session.resumed is not None
    assert {one.name for one in session.resumed.lost} == {"p"}
    assert session.run("f(2.5), P().v, open('kept').read()").value == (2, 1, "text")


@pytest.mark.sampled(0)
def test_a_strict_session_refuses_a_step_for_its_own_names_alone(url: str) -> None:
    limits = ExecutionLimits(max_memory_mb=256)
    with Session("one", state=Versioned(url, strict=True), limits=limits) as session:
        with pytest.raises(UnpicklableError):
            session.aside("g = (one for one in [])")
        assert session.run("big = [[str(n)] for n in range(900_000)]").ok  # of which no state can be saved
        assert [one.name for one in session.unsaved] == ["everything since cell 1"]


@pytest.mark.sampled(0)
def test_a_strict_session_refuses_what_cannot_be_saved(url: str) -> None:
    with Session("one", state=Versioned(url, strict=True)) as session:
        session.run("x = 1")
        cell = session.run("x = 2\nlines = (n for n in range(3))\nprint('shown')")
        assert cell.error is not None
        assert (cell.error.type, cell.error.kind, cell.rolled_back) == ("UnpicklableError", "refused", True)
        assert "lines is a generator" in cell.error.message
        assert cell.text.startswith("shown")
        assert session.run("x, 'lines' in globals()").value == (1, False)
        assert session.run("def total():\n    lines = (n for n in range(3))\n    return sum(lines)\ntotal()").value == 3
        assert [commit.number for commit in session.log()] == [4, 3, 2, 1, 0]
        *_, done = session.stream("held = open('f', 'w')")
        assert done.cell.error.type == "UnpicklableError"  # type: ignore[union-attr]
    with Session("one", state=Versioned(url)) as session:
        assert session.run("x, total()").value == (1, 3)


def test_what_cannot_be_saved_is_told_by_its_cell_or_the_next(opened: Open) -> None:
    session = opened()
    cell = session.run("squares = (n * n for n in range(3))\nnext(squares)")
    assert [(one.name, one.type, one.alive) for one in cell.lost] == [("squares", "generator", True)]
    assert cell.text.splitlines() == ["0", "not saved: squares (make it again, or keep list(...) of it)"]
    assert session.run("deep = {'rows': [squares]}").lost == ()
    session.flush()
    assert [one.name for one in session.unsaved] == ["squares", "deep"]
    told = session.run("next(squares)")
    assert (told.value, [(one.name, one.alive) for one in told.lost]) == (1, [("deep", True)])
    assert "deep['rows'][0]: a generator" in told.lost[0].reason
    assert session.run("del deep, squares").lost == ()
    session.flush()
    assert session.unsaved == ()


_UNLOADABLE = {
    "leaves": ("import os; os._exit(1)", "its code ended the session's process: it left with status 1"),
    "is killed": (
        "import os; os.kill(os.getpid(), 9)",
        "its code ended the session's process: it was killed by SIGKILL",
    ),
    "never ends": ("while True: pass", "its code did not come to an end within 2 s"),
    "never ends in C": ("sum(range(10**12))", "its code did not come to an end within 2 s"),
    "raises": ("raise ValueError('damaged')", "ValueError: damaged"),
}


@pytest.mark.sampled(0)
@pytest.mark.parametrize("what", _UNLOADABLE)
def test_value_whose_own_code_fails_as_it_is_loaded_is_lost_and_the_rest_is_there(
    opened: Open, url: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cellblock.executors.suspects.STILL_SECONDS", 2.0)
    code, reason = _UNLOADABLE[what]
    session = opened(tools=[seven])
    session.run("kept = [1]; same = kept\nopen('f', 'w').write('text')")
    session.run(f"class A:\n    def __setstate__(self, state):\n        {code}\na = A(); a.x = 1; b = {{'of': a}}")
    session.run("after = [kept, 2]; import random; random.seed(3)")
    session.close()
    session = opened(tools=[seven])
    assert session.resumed is not None
    assert session.resumed.replayed == ()
    lost = {one.name: one for one in session.resumed.lost}
    assert set(lost) == {"a", "b"}
    assert lost["a"].type == "__main__.A"
    assert lost["a"].reason == f"it could not be loaded: {reason}"
    assert lost["a"].remedy == "register a codec for its type with cellblock.codec, and make it again"
    cell = session.run(
        "kept, same is kept, after[0] is kept, open('f').read(), random.random(), seven(), 'a' in globals()"
    )
    assert cell.value == ([1], True, True, "text", 0.23796462709189137, 7, False)
    assert {one.name for one in cell.lost} == {"a", "b"}
    session.run("a = 5")
    session.close()
    session = opened(tools=[seven])
    assert session.run("a, kept").value == (5, [1])
    assert session.resumed is not None
    assert session.resumed.lost == ()


@pytest.mark.sampled(0)
def test_session_of_many_values_that_end_the_process_when_loaded_is_opened_without_them(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cellblock.executors.suspects.STILL_SECONDS", 2.0)
    session = opened()
    session.run("kept = [1]")
    session.run("import os\nclass A:\n    def __setstate__(self, state): os._exit(1)")
    session.run("class B:\n    def __setstate__(self, state):\n        while True: pass")
    session.run("for n in range(9):\n    globals()[f'a{n}'] = A(); globals()[f'a{n}'].x = n\nb = B(); b.x = 1")
    session.close()  # before what was written was loaded once
    session = opened()
    assert session.resumed is not None
    assert session.resumed.replayed == ()
    assert {one.name for one in session.resumed.lost} == {"b", *(f"a{n}" for n in range(9))}
    assert session.run("kept, n, 'a0' in globals()").value == ([1], 8, False)


def seven() -> int:
    """Seven."""
    return 7


def test_a_cell_whose_session_another_program_has_taken_ends_with_an_error(
    opened: Open, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    def take() -> None:
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as other:
            other.execute("UPDATE sessions SET epoch = epoch + 1")
            other.commit()

    session = opened(tools=[take])
    session.run("x = 1")
    began = time.monotonic()
    with pytest.raises(LeaseLost):
        session.run("take()\nimport time\ntime.sleep(60)")
    assert time.monotonic() - began < 30
    session.close()
    gc.collect()
    assert "never retrieved" not in caplog.text


@pytest.mark.sampled(1)
@pytest.mark.parametrize("at", [0, 1, 2, 5, 10, 20, 50])
def test_a_branch_that_is_cancelled_is_there_whole_or_not_at_all(url: str, at: int) -> None:
    async def part() -> None:
        async with AsyncSession("one", state=Versioned(url)) as session:
            await session.run("x = 1")
            branching = asyncio.create_task(session.branch("other"))
            await asyncio.sleep(at / 1000)
            branching.cancel()
            try:
                await (await branching).close()
            except asyncio.CancelledError:
                async with await session.branch("other") as branch:
                    assert (await branch.run("x")).value == 1

    asyncio.run(part())


@pytest.mark.sampled(0)
@pytest.mark.threat("D1")
def test_step_that_a_commit_holds_is_not_taken_again_for_an_entry_that_was_left(opened: Open, url: str) -> None:
    session = opened("one")
    session.run("kept = []")
    session.aside("kept.append(1)")
    session.run("open('file', 'w').write('new')")
    session.flush()
    aside, name = session.log()[1].detail["step"], session.name
    session.close()
    with open_store(url) as store, store.hold("default", str(name)) as held:  # as where a server goes away in between
        held.append(host_entry(str(aside), HostStep("run", "", (b"kept.append(1)",)), ""))
    session = opened("one")
    assert session.resumed is not None
    assert (session.resumed.lost, session.run("kept").value) == ((), [1])
    session.close()
    with open_store(url) as store:
        assert store.read("default", str(name)).journal() == []


@pytest.mark.sampled(0)
@pytest.mark.threat("D1")
def test_file_that_is_written_while_a_cell_runs_is_logged_in_pieces(opened: Open, url: str) -> None:
    session = opened("one")
    with open_store(url) as store:
        events = session.stream("import os, time\nprint(1)\nwhile not os.path.exists('end'): time.sleep(0.01)")
        next(events)
        session.files.write("large", bytes(5_000_000))
        entries = [len(json.dumps(entry.value)) for entry in store.read("default", "one").journal()]
        session.files.write("end", b"")
        assert [*events]
        assert sum(entries) > 6_000_000
        assert max(entries) < 1_200_000
        session.flush()
        assert store.read("default", "one").journal() == []


@pytest.mark.threat("D1")
def test_file_that_was_not_logged_whole_leaves_nothing_behind(opened: Open, url: str) -> None:
    session = opened("one")
    session.run("kept = 1")
    session.close()
    with open_store(url) as store, store.hold("default", "one") as held:  # as where the program ended in between
        held.append(next(host_entries("s1", HostStep("write", "file", (bytes(5_000_000),)), "s0")))
    session = opened("one")
    assert session.resumed is not None
    assert (session.resumed.lost, session.files.list(), session["kept"]) == ((), [], 1)
    with open_store(url) as store:
        assert store.read("default", "one").journal() == []


@pytest.mark.threat("D1")
def test_function_that_was_called_aside_is_not_called_again(url: str) -> None:
    paid: list[int] = []

    def pay(amount: int) -> int:
        paid.append(amount)
        return amount

    limits = ExecutionLimits(max_checkpoints=0)  # no states are saved: all is done again
    for _ in range(2):
        with Session("one", state=Versioned(url), tools=[pay], limits=limits) as session:
            if session.resumed is None:
                session.aside("got = pay(7)")
            else:
                assert session.resumed.lost == ()
            assert session["got"] == 7
    assert paid == [7]


@pytest.mark.parametrize("seconds", [-1, 0, float("nan"), float("inf"), "60", True])
def test_hibernation_that_can_never_be_is_refused_at_once(seconds: object) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^hibernate_after must be"):
        Versioned(hibernate_after=seconds)  # type: ignore[arg-type]


def test_user_of_a_session_that_has_no_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^user='ana' is for a stored session, which has a name: Session\("):
        Session(user="ana")


def test_stored_session_shows_its_name_and_user(url: str) -> None:
    with Session("q3", user="ana", state=Versioned(url)) as session:
        assert repr(session) == "<Session 'q3' of 'ana', isolated, open>"
    assert repr(session) == "<Session 'q3' of 'ana', isolated, closed>"
