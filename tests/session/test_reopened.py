"""A session that is opened again goes on as one that stayed open: memory, settings, what holds for later cells."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cellblock import CellblockError, ExecutionLimits, Session, Versioned
from cellblock.store import JSON, open_store

Open = Callable[..., Session]


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    ("made", "let_go", "seen"),
    [
        ("class H:\n    def __del__(self): print('closed')\none = H()", "one = None", "closed"),
        ("class Row(list): pass\none = Row()\nref = weakref.ref(one, lambda _: print('gone'))", "del one", "gone"),
        ("one = array.array('d', [1] * 10**6)\nref = weakref.ref(one)", "del one\nprint(ref())", "None"),
        ("import numpy as np\none = np.ones(10**6)\nref = weakref.ref(one)", "del one\nprint(ref())", "None"),
        (
            "import pandas as pd\none = pd.DataFrame({'a': [1]})\nref = weakref.ref(one)",
            "del one\nprint(ref())",
            "None",
        ),
    ],
    ids=["finalizer", "callback", "array", "numpy", "pandas"],
)
def test_what_a_cell_lets_go_of_is_freed_at_once(opened: Open, made: str, let_go: str, seen: str) -> None:
    session = opened()
    assert session.run(f"import array, gc, weakref\ngc.disable()\n{made}").ok
    session.close()
    session = opened()
    cell = session.run(let_go)
    assert cell.text.strip() == seen


@pytest.mark.sampled(0)
def test_weak_reference_that_died_in_a_reopened_session_is_kept(opened: Open) -> None:
    session = opened()
    session.run("import weakref\nclass Sensor: pass\nsensor = Sensor()")
    session.run("hub = {'seen': weakref.ref(sensor), 'readings': [1.5]}")
    session.close()
    session = opened()
    session.run("del sensor")
    session.close()
    session = opened()
    assert session.resumed is not None
    assert session.resumed.lost == ()
    assert session.run("hub['readings'], hub['seen']()").value == ([1.5], None)


@pytest.mark.sampled(0)
def test_future_imports_hold_for_later_cells(opened: Open) -> None:
    session = opened()
    session.run("from __future__ import annotations")
    session.run("x = ][")
    for _ in range(2):
        session.close()
        session = opened()
        assert session.run("class Node:\n    left: Tree = None\nNode.__annotations__").value == {"left": "Tree"}
    plain = opened("two")
    plain.run("text = 'from __future__ import annotations'")
    plain.close()
    assert not opened("two").run("class Node:\n    left: Tree = None").ok


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("change", "ask"),
    [
        ("import logging; logging.disable(30)", "logging.root.manager.disable"),
        ("import os; os.umask(0o077)", "open('u', 'w').close(); oct(os.stat('u').st_mode & 0o777)"),
        ("import gc; gc.disable()", "gc.isenabled()"),
        ("import sys; sys.setswitchinterval(0.02)", "sys.getswitchinterval()"),
        ("import sys; sys.unraisablehook = lambda _: print(1)", "class A:\n    def __del__(self): 1 / 0\nA() and 1"),
        ("import signal; old = signal.signal(signal.SIGTERM, signal.SIG_IGN)", "int(signal.getsignal(signal.SIGTERM))"),
        ("import signal; old = None", "int(signal.getsignal(signal.SIGTERM)), int(signal.getsignal(signal.SIGPIPE))"),
    ],
)
def test_settings_of_the_process_stay(opened: Open, change: str, ask: str) -> None:
    session = opened()
    session.run(change)
    expected = session.run(ask).text
    for _ in range(2):
        session.close()
        session = opened()
        assert session.resumed is not None
        assert session.resumed.lost == ()
        assert session.run(ask).text == expected


HAD = """
import os, sys
from cellblock import ExecutionLimits, Session, Versioned
def bump(by): return by
url, folder, checkpoints = sys.argv[1:]
session = Session("one", state=Versioned(url), tools=[bump], mounts={"given": folder},
                  limits=ExecutionLimits(max_checkpoints=int(checkpoints)))
session.run("kept = []")
session.flush()
for n in range(3):
    assert session.run("kept.append(bump(1) + len(open('given/row').read()))").ok
print("told")
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.sampled(1)
@pytest.mark.threat("D1")
@pytest.mark.parametrize("checkpoints", ["5", "0"], ids=["killed", "no states are saved"])
@pytest.mark.parametrize("lacks", ["tools", "mounts"])
def test_session_without_what_it_had_is_not_opened_and_loses_nothing(
    tmp_path: Path, lacks: str, checkpoints: str
) -> None:
    url, folder = f"sqlite:///{tmp_path}/cells.db", tmp_path / "given"
    folder.mkdir()
    (folder / "row").write_text("a")
    kept_from_committing = "session._session._lasting.committer._go_on = lambda: None\n"
    program = HAD if checkpoints == "0" else HAD.replace("for n", f"{kept_from_committing}for n")
    command = [sys.executable, "-c", program, url, str(folder), checkpoints]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.startswith("told")

    def bump(by: int) -> int:
        raise AssertionError("it was answered before")

    given: dict[str, Any] = {"tools": [bump], "mounts": {"given": str(folder)}}
    state, limits = Versioned(url), ExecutionLimits(max_checkpoints=int(checkpoints))
    lacking = {name: value for name, value in given.items() if name != lacks}
    for _ in range(2):
        with pytest.raises(CellblockError, match="its state was not saved, and run again it fails") as raised:
            Session("one", state=state, limits=limits, **lacking)
        assert f"{lacks}=" in raised.value.hint
    with Session("one", state=state, limits=limits, **given) as session:
        assert session.run("kept").value == [2, 2, 2]


@pytest.mark.sampled(0)
def test_object_that_stood_for_stdout_is_what_it_was(opened: Open) -> None:
    session = opened()
    session.run("import io, sys\nkept, before = io.StringIO(), sys.stdout\nsys.stdout = kept")
    session.run("print('captured')")
    session.close()
    session = opened()
    assert session.resumed is not None
    assert session.resumed.lost == ()
    assert session.run("before is sys.__stdout__, kept.getvalue()").value == (True, "captured\n")


@pytest.mark.sampled(0)
@pytest.mark.threat("W9")
def test_sockets_that_a_cell_forbids_are_its_own(opened: Open) -> None:
    session = opened()
    session.run("import socket, time\ndef guard(*_): raise RuntimeError\nmade = time.time_ns()")
    session.run("socket.socket = guard")
    made = session.run("made").value
    session.flush()
    assert session.run("import os; os._exit(1)").rolled_back
    session.close()
    session = opened()
    assert session.resumed is not None
    assert (session.resumed.replayed, session.run("made").value) == ((), made)


@pytest.fixture
def state(tmp_path: Path) -> Versioned:
    return Versioned(f"sqlite:///{tmp_path}/cells.db")


@pytest.mark.sampled(0)
def test_opening_that_fails_changes_nothing_of_the_stored_session(state: Versioned) -> None:
    with Session("one", state=state) as session:
        session.run("big = bytearray(100_000_000)")
    before = _settings(state)
    for options in ({"limits": ExecutionLimits(max_memory_mb=20)}, {"preload": ["no_such_module"]}):
        with pytest.raises(CellblockError):
            Session("one", state=state, **options)  # type: ignore[arg-type]
        assert _settings(state) == before
    with Session("one", state=state) as session:
        assert session.run("len(big)").value == 100_000_000


@pytest.mark.sampled(0)
def test_first_opening_that_fails_leaves_a_session_as_if_it_were_new(state: Versioned) -> None:
    with pytest.raises(CellblockError):
        Session("one", state=state, limits=ExecutionLimits(max_memory_mb=20), preload=["no_such_module"])
    assert _settings(state) == {}
    with Session("one", state=state) as session:
        assert (session.limits, session.run("1 + 1").value) == (ExecutionLimits(), 2)


def test_session_is_private_before_its_opening_can_fail(state: Versioned) -> None:
    Session("one", state=state).close()
    with pytest.raises(CellblockError):
        Session("one", state=state, private=True, preload=["no_such_module"])
    assert _settings(state)["private"] == "opened as private"


def _settings(state: Versioned) -> dict[str, object]:
    with open_store(state.url) as store:
        return dict(store.read("default", "one").settings)


def _begin(number: int, source: str) -> dict[str, JSON]:
    step = f"s{number}"
    return {"do": "begin", "step": step, "id": f"c{number}", "number": number, "kind": "python", "source": source}


def _end(number: int, *, ok: bool = True) -> dict[str, JSON]:
    return {"do": "end", "step": f"s{number}", "number": number, "rolled_back": False, "stopped": False, "ok": ok}


def _written(name: str, do: str) -> dict[str, JSON]:
    """An entry of a file that the host writes, or of a piece of it."""
    return {"do": do, "step": f"of {name}", "what": "write", "name": name, "during": "", "buffers": ["aGk="]}


def _answer(number: int) -> dict[str, JSON]:
    return {"do": "answer", "step": f"s{number}", "name": "ask", "error": None, "buffers": []}


_ENTRIES: tuple[tuple[dict[str, JSON], tuple[str, ...]], ...] = (
    (_begin(2, "x = 2"), ("cell 3", "a.txt", "b.txt", "cell 4")),
    (_end(2), ("cell 2", "cell 3", "a.txt", "b.txt", "cell 4")),
    (_begin(3, "x = 3"), ("a.txt", "b.txt", "cell 4")),
    (_written("a.txt", "part"), ("cell 3", "a.txt", "b.txt", "cell 4")),
    (_answer(3), ("cell 3", "a.txt", "b.txt", "cell 4")),
    (_written("a.txt", "host"), ("cell 3", "b.txt", "cell 4")),
    (_end(3, ok=False), ("cell 3", "b.txt", "cell 4")),  # else that it asks for no answer is told as well
    (_written("b.txt", "host"), ("cell 4",)),
    (_begin(4, "x = 4"), ()),
    (_end(4), ("cell 4",)),
)
"""A journal, and what is lost where each of its entries is damaged."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("damage", ["replace(entry, 'do', 'od')", "CAST(x'ff' || CAST(entry AS BLOB) AS TEXT)"])
@pytest.mark.parametrize("number", range(len(_ENTRIES)))
def test_session_whose_journal_is_damaged_opens_with_what_had_ended_before_and_says_so(
    state: Versioned, number: int, damage: str
) -> None:
    with Session("one", state=state) as session:
        session.run("x = 1")
    with open_store(state.url) as store, store.hold("default", "one", create=False) as held:
        entries = [held.append(entry) for entry, _ in _ENTRIES]
    _change(state, f"UPDATE journal SET entry = {damage} WHERE number = {entries[number]}")
    with open_store(state.url) as store:
        assert [one.path for one in store.verify().damage] == [f"entry {entries[number]} of the journal"]
    with Session("one", state=state) as session:
        assert session.resumed is not None
        lost = [one.name for one in session.resumed.lost]
        assert lost == [f"journal entry {entries[number]}", *_ENTRIES[number][1]]
        made: Any = session.run("import os\nx, sorted(os.listdir())").value
        lasts = {"cell 2": 1, "a.txt": 5, "cell 3": 6, "b.txt": 7, "cell 4": 9}
        whole = [step for step, last in lasts.items() if last < number]
        x = max([1, *(int(step[-1]) for step in whole if step.startswith("cell"))])
        assert made == (x, [step for step in whole if step.endswith(".txt")])
        assert session.run("x").lost == ()
    with Session("one", state=state) as session:
        assert session.resumed is not None
        assert (session.resumed.lost, session.run("x").value) == ((), x)


def test_session_whose_settings_are_damaged_opens_as_a_private_one_and_says_so(state: Versioned) -> None:
    with Session("one", state=state, limits=ExecutionLimits(max_files=1000)) as session:
        session.run("x = 1")
    _change(state, "UPDATE sessions SET settings = '{'")
    with Session("one", state=state, network=["example.org:443"]) as session:
        assert session.resumed is not None
        assert [one.name for one in session.resumed.lost] == ["settings"]
        why = "the row of session 'one' of 'default' is damaged: its settings cannot be read"
        assert session.private == why
        assert session.run("x").value == 1
    with Session("one", state=state) as session:
        assert session.resumed is not None
        assert (session.resumed.lost, session.private[:27]) == ((), "the row of session 'one' of")


def _change(state: Versioned, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(str(state.url).removeprefix("sqlite:///"))) as database, database:
        assert database.execute(statement).rowcount == 1
