"""`cell.text`, all that a model sees of a cell: how each kind of end reads, in words that a model can act on."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from cellblock import ExecutionLimits, Session

pytestmark = pytest.mark.hostile

LIMITS = ExecutionLimits(timeout_seconds=60, max_memory_mb=128)
BRIEF = ExecutionLimits(timeout_seconds=1, interrupt_grace_seconds=0.3)
OF_THE_PROGRAM = re.compile(r"ExecutionLimits|Policy\(|policy\.|network=|trust_level|session[.\[]|Session\(")
"""What the program around a session can do, and no code in it."""
AS_BEFORE = "the session is as it was before this cell"

ENDS = {
    "timeout": (
        "n = 1\nwhile True: pass",
        "    while True: pass\nTimeoutError: the cell ran longer than 1 s\n"
        "hint: do less in one cell; what it did until then is kept",
    ),
    "timeout of what does not stop": (
        "sum(range(10**12))",
        f"TimeoutError: the cell ran longer than 1 s\nhint: do less in one cell; {AS_BEFORE}",
    ),
    "memory": ("b'x' * 10**9", f"MemoryError\nhint: use less memory at a time; {AS_BEFORE}"),
    "crash": ("import os\nos._exit(7)", f"ProcessDied: the session's process left with status 7\nhint: {AS_BEFORE}"),
    "no network": (
        "import socket\nsocket.create_connection(('10.0.0.1', 1), 1)",
        "OSError: [Errno 101] Network is unreachable\nhint: the session has no network",
    ),
    "no package": (
        "import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'pip', 'install', 'nosuch'], check=True)",
        "returned non-zero exit status 1.\nhint: the session has no network",
    ),
    "input": (
        "input()",
        "EOFError: EOF when reading a line\nhint: nobody answers input() here: write the answer into the code",
    ),
    "magic": (
        "!ls",
        "SyntaxError: invalid syntax\nhint: IPython's % and ! lines are not Python: leave % lines out, "
        "and run commands with subprocess.run",
    ),
    "fences": (
        "```python\nx = 1\n```",
        "SyntaxError: invalid syntax\nhint: lines of ``` are not Python: give the code between them alone",
    ),
    "prompts": (
        ">>> 1 + 1\n2",
        "SyntaxError: invalid syntax\nhint: prompts are not Python: give the code alone, without >>> and ... "
        "and without what it answered",
    ),
    "return": (
        "x = 5\nreturn x",
        "SyntaxError: 'return' outside function\nhint: a cell is no function: its last expression is its result",
    ),
    "IPython's help": (
        "len?",
        "SyntaxError: invalid syntax\nhint: IPython's ? is not Python: help(…) shows the same",
    ),
    "IPython's help before a name": (
        "?len",
        "SyntaxError: invalid syntax\nhint: IPython's ? is not Python: help(…) shows the same",
    ),
    "a command": (
        "# first of all\npip install numpy",
        "SyntaxError: invalid syntax\nhint: a command of the shell is not Python: run commands with subprocess.run",
    ),
    "a debugger": ("breakpoint()", "bdb.BdbQuit\nhint: nobody steps through code here: print what you want to see"),
    "no await": ("async def f(): return 1\nf()", "\n[not run: write `await` before it]"),
    "no such module": (
        "import no_such_package",
        "ModuleNotFoundError: No module named 'no_such_package'\n"
        "hint: the interpreter of the session has no such package: use another",
    ),
    "no such file": (
        "open('sales.csv')",
        "FileNotFoundError: [Errno 2] No such file or directory: 'sales.csv'\n"
        "hint: cells see their own session's files: look with os.listdir()",
    ),
    "no such program": (
        "import subprocess\nsubprocess.run(['no-such'])",
        "FileNotFoundError: [Errno 2] No such file or directory: 'no-such'",
    ),
    "changed Python": (
        "import builtins\nvars(builtins).clear()\nprint(1)",
        "NameError: name 'print' is not defined\n"
        "hint: a cell has changed Python itself here, as by emptying builtins or sys.path",
    ),
    "leaves": ("exit()", ""),
    "leaves with a word": ("quit('done')", "SystemExit: done"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("end", ENDS)
def test_how_a_cell_ended_is_told_in_words_that_code_can_act_on(open_session: Callable[..., Session], end: str) -> None:
    source, last = ENDS[end]
    text = open_session(limits=BRIEF if end.startswith("timeout") else LIMITS).run(source).text
    assert text.endswith(last), text
    assert not OF_THE_PROGRAM.search(text)


def test_a_call_that_was_not_awaited_is_told_by_its_cell_and_no_later_one(session: Session) -> None:
    session.run("async def f(n): return n")
    assert "[not run: write `await` before it]" in session.run("f(2)").text
    assert session.run("await f(2)").text == "2"
    assert "[not run: write `await` before it]" in session.run("kept = f(3)\nkept").text
    assert session.run("await kept").text == "3"


@pytest.mark.parametrize("source", ["import os", "import ssl", "import numpy", "eval('1')", "().__class__", "import a"])
def test_a_refusal_names_nothing_that_code_cannot_do(source: str) -> None:
    with Session(trust_level="local") as session:
        cell = session.run(source)
    assert cell.error is not None
    assert cell.error.kind == "refused"
    assert not OF_THE_PROGRAM.search(cell.text)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("print('a', end='')\n5", "a\n5"),
        ("print('a', end='')\ndisplay(1)\nprint('b', end='')\n2", "a\n1\nb\n2"),
        ("print('a\\n')\n5", "a\n\n5"),
        ("import sys\nprint('a', end='', flush=True)\nprint('b', end='', file=sys.stderr)", "ab"),
        ("for i in range(100): print(f'\\r{i}%', end='')\nprint()\n7", "99%\n7"),
        ("for i in range(3): print(i, end='\\r')\nprint('a\\r\\nb')", "a\nb"),
        ("class M:\n    def _repr_markdown_(self): return '# Title'\nM()", "# Title"),
        ("class M:\n    def _repr_markdown_(self): return '- a\\n'\ndisplay(M())\nprint(1)", "- a\n1"),
        ("class S:\n    def _repr_svg_(self): return '<svg/>'\n    def __repr__(self): return 'S'\nS()", "S"),
    ],
)
def test_results_have_lines_of_their_own_and_printed_text_reads_as_a_terminal_leaves_it(
    open_session: Callable[..., Session], source: str, text: str
) -> None:
    assert open_session(limits=LIMITS).run(source).text == text


def test_an_error_has_a_line_of_its_own(open_session: Callable[..., Session]) -> None:
    text = open_session(limits=LIMITS).run("print('a', end='')\n1/0").text
    assert text.splitlines()[:2] == ["a", "Traceback (most recent call last):"]


def test_a_progress_bar_longer_than_the_limit_leaves_its_end(open_session: Callable[..., Session]) -> None:
    session = open_session(limits=ExecutionLimits(max_output_bytes=1000))
    text = session.run("print('begun')\nfor i in range(5000): print(f'\\r{i:4}%', end='')\nprint(' end')\n'value'").text
    begun, _, told, end, value = text.splitlines()
    assert (begun, end, value) == ("begun", "4999% end", "'value'")
    assert re.fullmatch(r"\[\.\.\. \d+ bytes of output cut: the limit is 1000 \.\.\.\]", told)


_FEWER = "too many processes and threads: let some end"


@pytest.mark.parametrize(
    ("source", "error", "hint"),
    [
        (
            "f = open('big', 'wb')\nwhile True: f.write(b'x' * 10**6)",
            "[Errno 27]",
            "one file is as large as all may be: write less",
        ),
        (
            "for i in range(99): open(f'f{i}', 'wb').write(b'x' * 10**6)",
            "[Errno 28]",
            "the session's files are at their limit: delete some",
        ),
        (
            "files = [open('/dev/null') for _ in range(99)]",
            "[Errno 24]",
            "the process has too many files open: close some",
        ),
        (
            "import threading\nend = threading.Event()\n"
            "while True: threading.Thread(target=end.wait, daemon=True).start()",
            "can't start new thread",
            _FEWER,
        ),
        ("import subprocess\nwhile True: subprocess.Popen(['sleep', '99'])", "[Errno 11]", _FEWER),
    ],
)
def test_a_limit_that_code_meets_is_named_with_what_to_do(
    open_session: Callable[..., Session], source: str, error: str, hint: str
) -> None:
    limits = ExecutionLimits(max_disk_mb=8, max_processes=24, max_open_files=64, max_memory_mb=1000)
    cell = open_session(limits=limits).run(source)
    assert error in cell.text
    assert cell.text.splitlines()[-1] == f"hint: {hint}"
    assert cell.error is not None
    assert "or raise ExecutionLimits(max_" in cell.error.hint
