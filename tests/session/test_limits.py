"""Limits of time, memory and source: what meets one is reported by its kind, and the session goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from family_tree import below, soon

from cellblock import CellblockError, CellState, ExecutionLimits, Session
from cellblock_attacks.attack import prelude
from cellblock_attacks.protocol import _FORGE


def hang(session: Session, source: str) -> None:
    """A cell that times out and leaves a session that works."""
    began = time.monotonic()
    cell = session.run(source)
    assert (cell.state, cell.error.kind, cell.error.type) == (CellState.TIMEOUT, "timeout", "TimeoutError")  # type: ignore[union-attr]
    assert cell.error.message == "the cell ran longer than 0.3 s"  # type: ignore[union-attr]
    assert time.monotonic() - began < 10
    assert session.run("6 * 7").value == 42


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "source",
    [
        "while True: pass",
        "import time\ntime.sleep(60)",
        "import asyncio\nawait asyncio.sleep(60)",
        "import threading\nthreading.Event().wait()",
        "input_ = open('/dev/zero', 'rb')\nwhile True: input_.read(100)",
        "import subprocess\nsubprocess.run(['sleep', '60'])",
        "try:\n    while True: pass\nexcept KeyboardInterrupt: pass",
        "class Hung:\n    def __repr__(self):\n        while True: pass\nHung()",
        "class Hung:\n    def _repr_html_(self):\n        while True: pass\nHung()",
        "def f():\n    while True: yield\nany(f())",
        "import re\nre.match('(a+)+$', 'a' * 64 + 'b')",
        "10 ** 10 ** 10",
    ],
)
def test_interrupted_cell_keeps_the_sessions_names(hasty: Session, source: str) -> None:
    hasty.run("x = 41")
    hang(hasty, source)
    assert not hasty.notebook[1].rolled_back
    assert hasty.run("x + 1").value == 42


@pytest.mark.sampled(0)
def test_interrupted_cell_keeps_what_it_did_and_can_be_undone(hasty: Session) -> None:
    hasty.run("x = 41")
    hang(hasty, "x = 42\nwhile True: pass")
    assert hasty.run("x").value == 42
    hasty.undo(3)
    assert hasty.run("x").value == 41


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "source",
    [
        "sum(range(10**12))",
        "import time\nwhile True:\n    try: time.sleep(60)\n    except BaseException: pass",
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\nwhile True: pass",
        "class Hung(Exception):\n    def __str__(self):\n        while True: pass\nraise Hung",
    ],
)
def test_killed_cell_costs_itself_alone_and_says_so(hasty: Session, source: str) -> None:
    hasty.run("x = 41\nopen('kept', 'w').write('1')")
    hang(hasty, "x = 42\nopen('kept', 'w').write('2')\n" + source)
    cell = hasty.notebook[1]
    assert (cell.rolled_back, cell.lost) == (True, ())
    assert cell.error is not None
    assert cell.error.hint == (
        "do less in one cell, or raise ExecutionLimits(timeout_seconds=…); the session is as it was before this cell"
    )
    assert hasty.run("open('kept').read(), x").value == ("1", 41)


@pytest.mark.sampled(0)
def test_without_checkpoints_a_killed_cell_loses_names_keeps_files_and_says_so(
    open_session: Callable[..., Session],
) -> None:
    limits = ExecutionLimits(timeout_seconds=0.3, interrupt_grace_seconds=0.3, max_checkpoints=0)
    hasty = open_session(limits=limits)
    hasty.run("x = 41\nopen('kept', 'w').write('1')")
    hang(hasty, "sum(range(10**12))")
    cell = hasty.notebook[1]
    assert not cell.rolled_back
    assert [(loss.name, loss.type) for loss in cell.lost] == [("x", "int")]
    assert cell.lost[0].remedy == "run the cells that defined it again"
    assert "lost: x" in cell.text
    assert hasty.run("open('kept').read(), 'x' in globals()").value == ("1", False)


def test_text_printed_before_a_timeout_is_kept(hasty: Session) -> None:
    assert hasty.run("print('before')\nwhile True: pass").text.startswith("before\n")


def test_shell_command_that_times_out_ends_with_all_it_started(hasty: Session) -> None:
    cell = hasty.shell("sleep 61 & sleep 62; echo never")
    assert (cell.state, cell.error.kind) == (CellState.TIMEOUT, "timeout")  # type: ignore[union-attr]
    found = hasty.run(
        "import os\nleft = []\nfor p in os.listdir('/proc'):\n    if p.isdigit():\n"
        "        try: left.append(open(f'/proc/{p}/cmdline').read())\n        except OSError: pass\n"
        "[line for line in left if line.startswith('sleep')]"
    )
    assert found.value == []


# --- memory ----------------------------------------------------------------------------------------------------


@pytest.fixture
def small(open_session: Callable[..., Session]) -> Session:
    return open_session(limits=ExecutionLimits(timeout_seconds=20, max_memory_mb=64))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "source",
    [
        "b = bytearray(2_000_000_000)",
        "b = 'x' * 200_000_000",
        "many = []\nwhile True: many.append(bytearray(10_000))",
        "many = []\nwhile True: many.append([len(many)] * 10)",
        "d = {}\nwhile True: d[len(d)] = str(len(d))",
        "raise MemoryError",
        "b = list(range(10**9))",
    ],
)
def test_memory_limit_is_an_error_that_costs_the_cell_alone(small: Session, source: str) -> None:
    small.run("x = 41\nopen('kept', 'w').write('1')")
    cell = small.run("x = 42\nopen('kept', 'w').write('2')\n" + source)
    assert cell.error is not None
    assert (cell.state, cell.error.kind, cell.error.type) == (CellState.ERROR, "memory", "MemoryError")
    assert cell.error.message == "the cell ran out of memory"
    assert cell.error.hint == (
        "use less memory at a time, or raise ExecutionLimits(max_memory_mb=…); "
        "the session is as it was before this cell"
    )
    assert (cell.rolled_back, cell.lost) == (True, ())
    assert small.run("x, open('kept').read(), 'b' in globals(), 'many' in globals()").value == (41, "1", False, False)


def test_memory_is_free_again_after_a_cell_that_filled_it(small: Session) -> None:
    for _ in range(3):
        assert small.run("many = []\nwhile True: many.append(bytearray(100_000))").error.kind == "memory"  # type: ignore[union-attr]
        assert small.run("b = bytearray(30_000_000)\nlen(b)").value == 30_000_000


def test_without_checkpoints_a_memory_error_keeps_what_the_cell_did(open_session: Callable[..., Session]) -> None:
    small = open_session(limits=ExecutionLimits(timeout_seconds=20, max_memory_mb=64, max_checkpoints=0))
    cell = small.run("many = []\nwhile True: many.append(bytearray(100_000))")
    assert cell.error is not None
    assert (cell.error.kind, cell.rolled_back) == ("memory", False)
    assert cell.error.hint == "use less memory at a time, or raise ExecutionLimits(max_memory_mb=…)"
    assert small.run("del many").ok
    assert small.run("b = bytearray(30_000_000)\nlen(b)").value == 30_000_000


def test_array_that_does_not_fit_is_a_memory_error(open_session: Callable[..., Session]) -> None:
    session = open_session(limits=ExecutionLimits(timeout_seconds=20, max_memory_mb=128), preload=["numpy"])
    session.run("import numpy")
    cell = session.run("numpy.ones(10**9)")
    assert (cell.state, cell.error.kind) == (CellState.ERROR, "memory")  # type: ignore[union-attr]
    assert session.run("float(numpy.ones(1000).sum())").value == 1000.0


def test_memory_error_that_the_cell_catches_is_its_own_matter(small: Session) -> None:
    source = "try:\n    b = bytearray(2_000_000_000)\nexcept MemoryError:\n    caught = True\ncaught"
    assert small.run(source).value is True


# --- source ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["", "\n\n", "# only a comment", "pass", "   # indented comment\n", "''''''"])
def test_source_that_does_nothing_completes(session: Session, source: str) -> None:
    assert session.run(source).state is CellState.COMPLETED


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "source",
    [
        "x = 1\0",
        "x = '\ud800'",
        "\ud800",
        "(" * 100_000,
        "(" * 100_000 + ")" * 100_000,
        "-" * 100_000 + "1",
        "[" * 300 + "]" * 300,
        "x" + ".y" * 100_000,
        "x = 9" + "9" * 100_000,
        "lambda: " * 20_000 + "1",
        "  indented",
        "def f(",
        "'unclosed",
        "return",
        "await",
        "x = 1\n\x0c\x00y",
        "# coding: no-such-codec\nx = = 1",
        "f'{'",
        "\xa0",
    ],
    ids=lambda source: ascii(source[:20]),
)
def test_source_that_cannot_be_parsed_is_a_syntax_error(session: Session, source: str) -> None:
    session.run("x = 41")
    cell = session.run(source)
    assert cell.error is not None
    assert cell.state is CellState.ERROR
    assert cell.error.type in ("SyntaxError", "IndentationError"), cell.error
    assert len(cell.text.encode("utf-8", "replace")) < 11_000
    assert session.run("x + 1").value == 42


@pytest.mark.sampled(0)
def test_ten_megabytes_of_source_run(session: Session) -> None:
    assert session.run("x = '" + "a" * 10_000_000 + "'\nlen(x)").value == 10_000_000
    assert len(session.run("# " + "a" * 10_000_000).text) == 0


def test_source_is_text(session: Session) -> None:
    with pytest.raises(TypeError, match="source must be str, not bytes"):
        session.run(b"1")  # type: ignore[arg-type]
    assert session.run("1").number == 1


# --- limits as values ------------------------------------------------------------------------------------------

_OF_THEIR_OWN = {"max_checkpoints", "max_checkpoint_mb", "max_files", "max_open_files"}


@pytest.mark.parametrize("name", ["max_files", "max_open_files"])
@pytest.mark.parametrize("value", [0, 7, None, "10", True, float("nan")])
def test_limit_too_low_to_start_a_process_is_refused_by_its_name(name: str, value: object) -> None:
    with pytest.raises(ValueError, match="must be") as caught:
        ExecutionLimits(**{name: value})  # type: ignore[arg-type]
    assert str(caught.value) == f"ExecutionLimits.{name} must be 8 or more, not {value!r}"


@pytest.mark.parametrize("name", ["max_open_files", "max_files", "max_processes", "max_memory_mb", "max_disk_mb"])
def test_lowest_value_of_each_limit_starts_a_session_or_is_refused_by_its_name(
    open_session: Callable[..., Session], name: str
) -> None:
    low = 8 if name in ("max_open_files", "max_files") else 1
    assert open_session(limits=ExecutionLimits(**{name: low})).run("1 + 1").value == 2


_MOST = {"max_output_bytes": 10**9, "max_checkpoints": 1000}


@pytest.mark.parametrize("name", [one for one in ExecutionLimits.__slots__ if not one.endswith("_seconds")])
def test_highest_value_of_each_limit_starts_a_session_and_more_is_refused_by_its_name(
    open_session: Callable[..., Session], name: str
) -> None:
    high = _MOST.get(name, 10**12)
    assert open_session(limits=ExecutionLimits(**{name: high})).run("1 + 1").value == 2
    with pytest.raises(ValueError, match="or less") as caught:
        ExecutionLimits(**{name: high + 1})
    assert str(caught.value) == f"ExecutionLimits.{name} must be {high:,} or less, not {high + 1}"


def test_files_too_few_for_mounts_are_refused_by_the_name_of_that_limit(open_session: Callable[..., Session]) -> None:
    mounts = {f"m{number}": "/etc/hostname" for number in range(8)}
    with pytest.raises(CellblockError, match=r"raise ExecutionLimits\(max_files=…\)"):
        open_session(limits=ExecutionLimits(max_files=8), mounts=mounts)


@pytest.mark.parametrize("name", sorted(set(ExecutionLimits.__slots__) - _OF_THEIR_OWN))
@pytest.mark.parametrize("value", [0, -1, None, "10", True, float("nan")])
def test_limit_that_is_no_number_above_0_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"ExecutionLimits.{name} must be a number above 0, not "):
        ExecutionLimits(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0, -1, "10", True, 1.5])
def test_budget_of_checkpoints_is_a_whole_number_above_0_or_that_of_memory(value: object) -> None:
    assert ExecutionLimits(max_memory_mb=100).checkpoint_bytes == 100 * 2**20
    assert ExecutionLimits(max_memory_mb=100, max_checkpoint_mb=7).checkpoint_bytes == 7 * 2**20
    with pytest.raises(ValueError, match=r"ExecutionLimits\.max_checkpoint_mb must be a "):
        ExecutionLimits(max_checkpoint_mb=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [-1, None, "10", True, float("nan")])
def test_number_of_checkpoints_may_be_0_and_no_less(value: object) -> None:
    assert ExecutionLimits(max_checkpoints=0).max_checkpoints == 0
    with pytest.raises(ValueError, match="must be 0 or more") as caught:
        ExecutionLimits(max_checkpoints=value)  # type: ignore[arg-type]
    assert str(caught.value) == f"ExecutionLimits.max_checkpoints must be 0 or more, not {value!r}"


@pytest.mark.parametrize("name", [name for name in ExecutionLimits.__slots__ if not name.endswith("_seconds")])
def test_limit_that_counts_is_a_whole_number(name: str) -> None:
    with pytest.raises(ValueError, match=f"ExecutionLimits.{name} must be a whole number, not 10.5"):
        ExecutionLimits(**{name: 10.5})


def test_limits_are_those_of_the_documents_by_default() -> None:
    limits = ExecutionLimits()
    assert (limits.timeout_seconds, limits.max_memory_mb, limits.max_output_bytes, limits.max_steps) == (
        30,
        256,
        10_000,
        10,
    )
    assert limits.max_host_mb == 512


def test_where_memory_ends_other_processes_are_killed_before_the_one_with_the_names(session: Session) -> None:
    session.run("import os, signal, time\nchild = os.fork()\nif child == 0: signal.pause()")
    score = """
def score(pid): return int(open(f"/proc/{pid}/oom_score_adj").read())
end = time.monotonic() + 5
while score(child) < 1000 and time.monotonic() < end: time.sleep(0.01)
score("self") < score(child)
"""
    assert session.run(score).value is True


@pytest.mark.sampled(0)
@pytest.mark.parametrize("walls", ["full", "reduced"])
def test_a_new_worker_is_not_killed_before_other_processes(
    walls: str, readable_python: str, open_session: Callable[..., Session]
) -> None:
    """It is there for a moment before init, or the keeper, is told that it is the worker."""
    limits = ExecutionLimits(timeout_seconds=20, max_checkpoints=0)
    session = open_session(walls=walls, python=readable_python, limits=limits)
    scores = set()
    for _ in range(30):
        session.run("for one in range(300_000): pass\nimport os\nos._exit(3)")
        worker = session._session._living()._link.pid
        scores.add(Path(f"/proc/{worker}/oom_score_adj").read_text())
    assert scores == {"500\n"}


@pytest.mark.sampled(0)
def test_descriptors_that_are_hidden_while_a_copy_is_tried_are_no_excess(session: Session) -> None:
    """The worker hides meanwhile, and so does the copy: nobody can tell that these are not pipes."""
    session.run("import os\nhoard = []\ntry:\n    while True: hoard.append(os.dup(0))\nexcept OSError: pass")
    for _ in range(200):
        assert session.run("len(hoard) > 400").value is True


@pytest.mark.sampled(0)
def test_descriptors_that_stay_hidden_count_as_pipes(open_session: Callable[..., Session]) -> None:
    session = open_session(limits=ExecutionLimits(max_processes=16, max_open_files=1024))
    cell = session.run(
        "import ctypes, os, time\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n"
        "    hoard = [os.open('/dev/null', os.O_RDONLY) for _ in range(800)]\n"
        "    time.sleep(20)\n"
        "os.waitpid(child, 0)[1]"
    )
    assert cell.value == 9, cell.text


@pytest.mark.hostile
@pytest.mark.threat("W7")
def test_failure_that_a_process_forges_is_cut_to_the_limit_of_the_output(open_session: Callable[..., Session]) -> None:
    session = open_session(limits=ExecutionLimits(timeout_seconds=20, max_output_bytes=1000))
    said = '{"type": "X", "message": text, "traceback": text, "kind": "raised"}'
    forged = f"text = 'a' * 2 ** 20\nsay(FINISHED | {{'failure': {said}}})\nimport time\ntime.sleep(60)"
    error = session.run(f"{prelude({})}{_FORGE}\n{forged}").error
    assert error is not None
    for text in (error.message, error.traceback):
        assert text.startswith("a" * 500)
        assert len(text) < 1200


_GROWING = "while not os.path.exists('go'): time.sleep(0.01)\nheld = b'1' * (180 << 20)\ntime.sleep(60)"


@pytest.mark.sampled(0)
@pytest.mark.parametrize("source", ["z = 5\nraise ValueError('no such key')", "!"], ids=["cell", "command"])
def test_a_process_that_is_killed_for_memory_between_two_cells_is_no_doing_of_the_next(
    open_session: Callable[..., Session], source: str
) -> None:
    session = open_session(limits=ExecutionLimits(timeout_seconds=20, max_memory_mb=256))
    session.run(f"import subprocess, sys\nprogram = {'import os, time' + chr(10) + _GROWING!r}")
    session.run("two = [subprocess.Popen([sys.executable, '-c', program]) for _ in range(2)]")
    assert soon(lambda: sum(any(_GROWING in word for word in one.words) for one in below()), 2) == 2
    session.files.write("go", b"")
    assert soon(lambda: sum(any(_GROWING in word for word in one.words) for one in below()), 1) == 1
    cell = session.shell("echo hello > f; ls nowhere") if source == "!" else session.run(source)
    assert cell.error is not None
    assert (cell.error.kind, cell.error.hint, cell.rolled_back) == ("raised", "", False)
    assert cell.text.startswith("[between two cells a process was killed: together the session's processes held ")
    after = session.run("'z' in globals() or os.path.exists('f')" if source != "!" else "open('f').read()")
    assert after.value in (True, "hello\n")
    assert "killed" not in after.text


BETWEEN: dict[str, Callable[[Session], object]] = {
    "get": lambda session: session["x"],
    "set": lambda session: session.__setitem__("y", 2),
    "set of a large value": lambda session: session.__setitem__("y", np.zeros(2**18)),
    "names": lambda session: session.names(),
    "aside": lambda session: session.aside("x", reads=True),
    "clear": lambda session: session.clear(),
}


@pytest.mark.sampled(0)
@pytest.mark.parametrize("call", BETWEEN)
def test_a_process_that_is_killed_for_memory_before_a_call_of_the_host_is_told_by_the_next_cell(
    open_session: Callable[..., Session], call: str
) -> None:
    session = open_session(limits=ExecutionLimits(timeout_seconds=20, max_memory_mb=256))
    session.run(f"x = 1\nimport subprocess, sys\nprogram = {'import os, time' + chr(10) + _GROWING!r}")
    session.run("two = [subprocess.Popen([sys.executable, '-c', program]) for _ in range(2)]")
    assert soon(lambda: sum(any(_GROWING in word for word in one.words) for one in below()), 2) == 2
    session.files.write("go", b"")
    assert soon(lambda: sum(any(_GROWING in word for word in one.words) for one in below()), 1) == 1
    BETWEEN[call](session)
    told = session.run("1")
    assert told.text.startswith("[between two cells a process was killed: together the session's processes held ")
    assert told.text.count("killed") == 1
    assert told.value == 1
    assert "killed" not in session.run("1").text


@pytest.mark.sampled(0)
def test_a_process_that_is_ended_for_what_it_holds_leaves_the_checkpoint_that_is_being_made() -> None:
    slow = "import os, time\nos.register_at_fork(after_in_child=lambda: time.sleep(0.5))"
    locks = "import fcntl\nfile = open('l', 'wb')\nfor at in range(99_999): fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * at)"
    with Session() as session:
        session.run(f"{slow}\nx = 1")
        cell = session.run(locks)
        assert "file locks" in cell.text
        assert cell.rolled_back
        assert cell.lost == ()
        assert session.run("x").value == 1
