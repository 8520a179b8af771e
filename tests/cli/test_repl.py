"""`cellblock repl` at a terminal: typing, pasting, Ctrl-C, history, the Tab key, commands, and what cells do to it."""

from __future__ import annotations

import json
import os
import pty
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Typed

Repl = Callable[..., "Typed"]
PICTURE = "type('P', (), {'_repr_png_': lambda self: b'\\x89PNG\\r\\n\\x1a\\n'})()"

WITHOUT_LANDLOCK = """
import struct, sys
from cellblock.worker.confine import syscalls
from cellblock.worker.confine.syscall_numbers import NUMBERS
number = NUMBERS[syscalls.MACHINE]["landlock_create_ruleset"]
program = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050026), (0x06, 0, 0, 0x7FFF0000)]
syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
syscalls.seccomp_install(b"".join(struct.pack("=HBBI", *instruction) for instruction in program))
from cellblock.cli import main
sys.exit(main())
"""


@pytest.mark.sampled(0)
def test_greeting_names_the_walls_in_one_line(repl: Repl) -> None:
    shown = repl().expect(r"(?s).*>>> ")
    assert re.search(r"^cellblock \S+, Python 3\.\d+\.\d+; 30 s and 256 MB a cell$", shown, re.M)
    assert re.search(r"^walls: namespaces, root, rlimits, capabilities, landlock, seccomp(, cgroup)?$", shown, re.M)


def test_names_live_on_and_results_are_shown(repl: Repl) -> None:
    terminal = repl()
    assert terminal.result("x = 20; y = 1") == ""
    assert terminal.result("x * 2 + y") == "41\n"
    assert terminal.result("_ + 1") == "42\n"
    assert terminal.result("print('a', end='')") == "a\n"
    assert terminal.result("None") == ""


@pytest.mark.sampled(0)
def test_block_goes_on_until_an_empty_line(repl: Repl) -> None:
    terminal = repl()
    for line in ("def double(n):", "    if n:", "        return 2 * n", "    else:", "        return 0", ""):
        terminal.line(line)
    assert terminal.result("double(4)") == "8\n"


@pytest.mark.sampled(0)
def test_brackets_quotes_and_decorators_go_on_and_await_stands_at_top_level(repl: Repl) -> None:
    terminal = repl()
    for line in ("text = '''one", "", "two'''", "import functools", "@functools.cache", "def f(n): return n", ""):
        terminal.line(line)
    terminal.line("[text,")
    terminal.line(" f(3)]")
    assert terminal.expect(r"\['one.*\n") == "['one\\n\\ntwo', 3]\n"
    assert terminal.result("import asyncio; await asyncio.sleep(0, 'slept')") == "'slept'\n"


@pytest.mark.sampled(0)
def test_pasted_block_is_one_cell_whatever_empty_lines_it_has(repl: Repl) -> None:
    terminal = repl()
    terminal.expect(">>> ")
    pasted = "  def f():\n      a = 1\n\n      return a\n\n  for i in range(2):\n      print(i)\n\n  f()"
    terminal.type(f"\x1b[200~{pasted}\x1b[201~\r")
    terminal.expect(r"\n0\n1\n1\n(?=>>> )")
    assert terminal.result("print(f.__code__.co_filename)") == "<cell 1>\n"


@pytest.mark.sampled(0)
def test_of_a_pasted_transcript_what_was_typed_is_run(repl: Repl) -> None:
    terminal = repl()
    terminal.expect(">>> ")
    terminal.type(
        "\x1b[200~    >>> x = 6\n    >>> for y in [7]:\n    ...     x * y\n    ...\n    >>> x * y\n    42\x1b[201~\r"
    )
    terminal.expect(r"\n42\n(?=>>> \Z)")
    assert terminal.result(">>> y") == "7\n"


def test_lines_that_come_at_once_are_pasted_as_well(repl: Repl) -> None:
    terminal = repl()
    terminal.expect(">>> ")
    terminal.type("def f():\r    a = 1\r\r    return a\r\rf() + 1\r")
    terminal.expect(r"\n2\n>>> \Z")


# --------------------------------------------------------------------------------- Ctrl-C, Ctrl-D


def test_ctrl_c_interrupts_a_cell_and_keeps_its_names(repl: Repl) -> None:
    terminal = repl()
    terminal.line("begun = 1")
    terminal.line("while begun < 3:")
    terminal.line("    if begun == 1: begun = 2; print('rea' + 'dy')")
    terminal.line("")
    terminal.expect("ready")
    terminal.type("\x03")
    terminal.expect(r"KeyboardInterrupt\n(?=>>> )")
    assert terminal.result("begun") == "2\n"


@pytest.mark.sampled(0)
def test_ctrl_c_clears_what_is_half_typed(repl: Repl) -> None:
    terminal = repl()
    terminal.line("for i in range(3):")
    terminal.line("    print(i)")
    for _ in range(50):  # at each it meets line editing at another place
        terminal.expect(r"(?:>>>|\.\.\.) \Z")
        terminal.type("1 / 0")
        terminal.type("\x03")
        terminal.expect(r"\n(?=>>> \Z)")
    assert terminal.result("'fresh'") == "'fresh'\n"


@pytest.mark.sampled(0)
def test_cell_that_ignores_ctrl_c_is_killed_after_a_warning(repl: Repl) -> None:
    terminal = repl("--timeout", "60")
    terminal.line("kept = 1; open('kept.txt', 'w').close()")
    terminal.line("if kept:")
    terminal.line("    kept = 2; import signal; signal.signal(2, signal.SIG_IGN); print('rea' + 'dy')")
    terminal.line("    while True: pass")
    terminal.line("")
    terminal.expect("ready")
    told = "cellblock: the cell goes on; Ctrl-C again ends its process and takes back what it did"
    terminal.press_until("\x03", told)
    terminal.type("\x03")
    terminal.expect(r"cellblock: crashed: the session's process was killed by SIGKILL\n")
    terminal.expect(r"cellblock: the session is as it was before this cell\n(?=>>> )")
    assert terminal.result("import os; kept, os.listdir()") == "(1, ['kept.txt'])\n"


@pytest.mark.sampled(0)
@pytest.mark.parametrize("how", ["\x04", "exit\r", "quit()\r", ":quit\r"])
def test_ways_to_leave(repl: Repl, how: str) -> None:
    terminal = repl()
    terminal.result("1 / 0")
    terminal.type(how)
    assert terminal.end() == 0


@pytest.mark.sampled(0)
def test_exit_is_a_name_like_any_other_once_it_is_bound(repl: Repl) -> None:
    terminal = repl()
    terminal.result("exit = 'a door'")
    assert terminal.result("exit") == "'a door'\n"


@pytest.mark.sampled(0)
@pytest.mark.parametrize("command", ["repl", "run"])
def test_ctrl_c_while_it_opens_leaves_at_once(repl: Repl, tmp_path: Path, command: str) -> None:
    (tmp_path / "python").write_text("#!/bin/sh\nexec sleep 4\n")
    (tmp_path / "python").chmod(0o755)
    (tmp_path / "script.py").write_text("")
    script = ["script.py"] if command == "run" else []
    terminal = repl("--python", str(tmp_path / "python"), *script, command=command)
    terminal.expect(r"opening a session \(\d\.\d s\)")
    terminal.type("\x03")
    terminal.expect("cellblock: interrupted\n")
    assert terminal.end() == 130


@pytest.mark.sampled(0)
@pytest.mark.parametrize("command", ["repl", "run", "demo"])
def test_machine_without_a_wall_is_one_line(repl: Repl, command: str) -> None:
    words = {"repl": [], "run": ["-"], "demo": ["--fast"]}[command]
    terminal = repl(*words, command=command, python=("-c", WITHOUT_LANDLOCK))
    if command == "run":
        terminal.type("\x04")
    terminal.expect(r"cellblock: landlock: the kernel does not offer Landlock \(.*\)\n")
    assert terminal.end() == 3
    assert "Traceback" not in terminal.screen


# ------------------------------------------------------------------------------- history, the Tab key


@pytest.mark.sampled(0)
def test_history_is_there_in_the_next_run_a_block_at_a_time(repl: Repl, tmp_path: Path) -> None:
    first = repl()
    first.line("def triple(n):")
    first.line("    return 3 * n")
    first.line("")
    first.result("triple(1)")
    first.type("\x04")
    first.end()
    second = repl()
    second.expect(">>> ")
    second.type("\x1b[A\x1b[A\r")
    second.expect(r"(?=>>> \Z)")
    assert second.result("triple(5)") == "15\n"
    path = tmp_path / ".local/state/cellblock/history"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [json.loads(line) for line in path.read_text().splitlines()][:2] == [
        "def triple(n):\n    return 3 * n", "triple(1)",
    ]  # fmt: skip


@pytest.mark.sampled(0)
def test_no_history_keeps_none(repl: Repl, tmp_path: Path) -> None:
    terminal = repl("--no-history")
    terminal.result("secret = 1")
    terminal.type("\x1b[A")
    terminal.expect("secret = 1")
    assert not (tmp_path / ".local").exists()


@pytest.mark.sampled(0)
def test_history_that_cannot_be_kept_is_said(repl: Repl, tmp_path: Path) -> None:
    (tmp_path / ".local").write_text("a file where a directory should be")
    terminal = repl()
    terminal.expect(r"cellblock: no history is kept: \S+: Not a directory\n")
    assert terminal.result("1 + 1") == "2\n"


@pytest.mark.sampled(0)
def test_history_that_meets_a_full_disk_is_given_up(repl: Repl) -> None:
    start = (
        "import sys\nfrom cellblock.cli import main\nfrom cellblock.cli.keyboard import History\n"
        "def full(*_): raise OSError(28, 'No space left on device')\nHistory.add = full\nsys.exit(main())"
    )
    terminal = repl(python=("-c", start))
    assert terminal.result("x = 1") == "cellblock: history is no longer kept: No space left on device\n"
    assert terminal.result("x + 1") == "2\n"


@pytest.mark.sampled(0)
def test_characters_that_the_locale_lacks_end_neither_this_repl_nor_the_next(
    repl: Repl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    for _ in range(2):
        terminal = repl()
        terminal.line("len('\u00e9')")
        terminal.expect(r"\n\d\n(?=>>> \Z)")
        assert terminal.result("1 + 1") == "2\n"
        terminal.type("\x04")
        assert terminal.end() == 0


@pytest.mark.sampled(0)
def test_entries_that_no_terminal_takes_do_not_keep_the_repl_from_starting(repl: Repl, tmp_path: Path) -> None:
    path = tmp_path / ".local/state/cellblock/history"
    path.parent.mkdir(parents=True)
    path.write_text('"a\\u0000b"\n"a\\ud800b"\n' + "[" * 100_000 + '\n"7 * 6"\n')
    terminal = repl()
    terminal.expect(">>> ")
    terminal.type("\x1b[A\r")
    terminal.expect(r"\n42\n>>> \Z")


@pytest.mark.sampled(0)
def test_tab_completes_names_of_the_session_and_indents(repl: Repl) -> None:
    terminal = repl()
    terminal.result("a_long_name_of_the_session = 41")
    terminal.type("a_lon\t + 1\r")
    terminal.expect(r"a_long_name_of_the_session \+ 1\n42\n")
    terminal.line("if True:")
    terminal.expect(r"\.\.\. \Z")
    terminal.type("\tprint('indented')\r\r")
    terminal.expect(r"    print\('indented'\)")
    terminal.expect(r"\nindented\n")


@pytest.mark.sampled(0)
def test_tab_completes_commands_and_their_files(repl: Repl, tmp_path: Path) -> None:
    (tmp_path / "a script-of-mine.py").write_text("print('loa' + 'ded')")
    (tmp_path / "prices-2024.py").write_text("print('loa' + 'ded')")
    terminal = repl()
    terminal.expect(">>> ")
    terminal.type(":loa\t pric\t\r")
    terminal.expect(r":load prices-2024\.py\nloaded\n>>> ")
    terminal.type(":load prices-2\t\r")
    terminal.expect(r":load prices-2024\.py\nloaded\n>>> ")


@pytest.mark.sampled(0)
@pytest.mark.threat("W8")
def test_tab_has_no_code_of_the_session_run_on_the_host(repl: Repl) -> None:
    terminal = repl()
    for line in ("class Spy:", "    def __repr__(self):", "        seen.append(os.uname().nodename); return ''", ""):
        terminal.line(line)
    terminal.result("import os; seen, a_spy_of_ours = [], Spy()")
    terminal.line("")
    terminal.expect(">>> ")
    terminal.type("a_sp\t == 0\r")
    terminal.expect("a_spy_of_ours == 0\nFalse\n")
    assert terminal.result("seen") == "['cellblock']\n"


@pytest.mark.sampled(0)
def test_tab_does_not_wait_for_a_session_that_does_not_answer(repl: Repl) -> None:
    terminal = repl()
    for line in ("class Slow:", "    def __repr__(self):", "        import time; time.sleep(3); return ''", ""):
        terminal.line(line)
    terminal.result("slow_one = Slow()")
    terminal.expect(">>> ")
    terminal.type("'slow_\t'\r")
    terminal.expect("'slow_'\n'slow_'\n")  # without the rest of the name, and once the session is free again


# ------------------------------------------------------------------------- what cells do to the terminal


@pytest.mark.threat("W8")
def test_escape_sequences_of_cells_do_not_reach_the_terminal(repl: Repl) -> None:
    terminal = repl()
    esc = r"\x1b[2J\x1b]0;owned\x07\x9b31m"
    assert terminal.result(f"print('a{esc}b')") == "ab\n"
    assert terminal.result(f"import sys; sys.stderr.write('c{esc}d'); 1") == "cd\n1\n"
    terminal.line(f"type('T', (), {{'__repr__': lambda self: 'e{esc}f'}})()")
    terminal.expect(r"\nef\n(?=>>> )")
    terminal.line(f"raise ValueError('g{esc}h')")
    terminal.expect(r"\nValueError: gh\n(?=>>> )")
    terminal.result(f"open('i{esc}j', 'w').close(); globals()['k{esc}l'] = 1")
    terminal.line(":files")
    terminal.expect(r"\n'i.*j'\n(?=>>> )")
    terminal.line(":names")
    terminal.expect(r"\n'k.*l'")
    terminal.line(r"!printf 'm\033[2J\033]0;owned\007n'")
    terminal.expect(r"\nmn\n>>> ")
    assert "\x1b" not in terminal.screen


@pytest.mark.sampled(0)
@pytest.mark.threat("W8")
def test_escape_sequence_that_does_not_end_hides_nothing_later(repl: Repl) -> None:
    terminal = repl()
    assert terminal.result(r"print('a\x1b]0;', end='')") == "a\n"
    assert terminal.result("'later'") == "'later'\n"


@pytest.mark.sampled(0)
def test_crash_is_told_with_what_it_took_along_and_costs_the_cell_alone(repl: Repl) -> None:
    terminal = repl()
    terminal.result("x = 1; y = 2")
    told = (
        "cellblock: crashed: the session's process left with status 7\n"
        "cellblock: the session is as it was before this cell\n"
    )  # fmt: skip
    assert terminal.result("x = 3; import os; os._exit(7)") == told
    assert terminal.result("x, y") == "(1, 2)\n"
    terminal.result("import os, socket; one, two = socket.socketpair()")
    assert terminal.result("os._exit(7)") == told + "cellblock: lost: one, two\n"
    assert terminal.result("x") == "1\n"


@pytest.mark.sampled(0)
def test_death_between_two_cells_is_told_with_the_next(repl: Repl) -> None:
    terminal = repl()
    terminal.result("import os, threading; threading.Timer(0.5, os._exit, [1]).start()")
    terminal.expect(">>> ")
    told = "cellblock: lost: thread Thread-1: a thread does not live on in a copy of its process"
    terminal.press_until("'alive'\r", told)


def test_cells_are_undone_with_their_files(repl: Repl) -> None:
    terminal = repl()
    terminal.result("x = [1]")
    terminal.result("x.append(2); _ = open('new', 'w').write('1')")
    assert terminal.result(":undo") == "undone: x.append(2); _ = open('new', 'w').write('1')\n"
    assert terminal.result("import os; x, os.listdir()") == "([1], [])\n"
    terminal.result("y = 1")
    assert terminal.result(":undo 3") == "undone: x = [1]; import os; x, os.listdir(); y = 1\n"
    assert terminal.result("'x' in globals()") == "False\n"


@pytest.mark.sampled(0)
def test_memory_and_time_limits_name_their_options(repl: Repl) -> None:
    terminal = repl("--timeout", "0.5", "--memory", "100")
    assert terminal.result("x = b'x' * 10**9").endswith(
        "cellblock: memory: the cell ran out of memory (--memory MB allows more)\n"
        "cellblock: the session is as it was before this cell\n"
    )  # fmt: skip
    shown = terminal.result("import time; time.sleep(60)")
    assert shown.endswith("cellblock: timeout: the cell ran longer than 0.5 s (--timeout S allows more)\n")


@pytest.mark.sampled(0)
def test_pictures_are_saved_and_named(repl: Repl, tmp_path: Path) -> None:
    terminal = repl()
    assert terminal.result(PICTURE) == "cellblock: picture: cellblock-pictures/cell-1.png\n"
    assert (tmp_path / "cellblock-pictures/cell-1.png").read_bytes() == b"\x89PNG\r\n\x1a\n"
    terminal = repl("--pictures", "elsewhere")
    assert terminal.result(PICTURE) == "cellblock: picture: elsewhere/cell-1.png\n"


@pytest.mark.sampled(0)
def test_tables_are_as_wide_as_the_terminal(repl: Repl) -> None:
    pytest.importorskip("pandas")
    terminal = repl()
    terminal.result("import pandas as pd")
    shown = terminal.result("pd.DataFrame({f'column {i}': [i] for i in range(20)})")
    assert 80 < max(map(len, shown.splitlines())) <= 100


# --------------------------------------------------------------------------------------- commands


@pytest.mark.sampled(0)
def test_help_lists_every_command(repl: Repl) -> None:
    from cellblock.cli.commands import COMMANDS

    shown = repl().result(":help")
    assert [name for name in COMMANDS if f"\n{name} " not in f"\n{shown}"] == []


@pytest.mark.sampled(0)
def test_names_files_limits_and_walls(repl: Repl) -> None:
    terminal = repl("--memory", "300")
    assert terminal.result(":names") == "nothing is bound\n"
    assert terminal.result(":files") == "no files\n"
    terminal.result("text = 'a\\nb'; open('out.csv', 'w').close()")
    assert re.fullmatch(r"text  str  \d+ B  'a\\nb'\n", terminal.result(":names"))
    assert terminal.result(":files") == "out.csv\n"
    assert re.search(r"^max_memory_mb +300 +--memory$", terminal.result(":limits"), re.M)
    assert re.search(r"^landlock +ABI \d+", terminal.result(":walls"), re.M)


@pytest.mark.sampled(0)
def test_shell_runs_inside_and_streams(repl: Repl) -> None:
    terminal = repl()
    assert terminal.result("!pwd; exit 3") == "/session/workspace\nCommandFailed: exit status 3\n"
    terminal.line(":shell echo begun; sleep 60")
    terminal.expect("\nbegun\n")
    terminal.type("\x03")
    terminal.expect("KeyboardInterrupt")


def test_files_go_in_and_out(repl: Repl, tmp_path: Path) -> None:
    (tmp_path / "in put.csv").write_bytes(b"1\n")
    terminal = repl()
    assert terminal.result(":put 'in put.csv' data.csv") == "put 2 bytes into data.csv\n"
    terminal.result("open('../workspace/out.csv', 'w').write(open('data.csv').read() * 2);")
    assert terminal.result(":get out.csv") == "saved out.csv\n"
    assert terminal.result(":get out.csv kept") == "saved kept/out.csv\n"
    assert (tmp_path / "kept/out.csv").read_bytes() == b"1\n1\n"
    assert terminal.result(":get none") == "cellblock: 'none' does not exist\n"
    assert terminal.result(":put none") == "cellblock: none: No such file or directory\n"
    assert terminal.result(":put in.csv ../../etc/passwd").startswith("cellblock: in.csv: No such file")


def test_cells_are_saved_and_loaded(repl: Repl, tmp_path: Path) -> None:
    terminal = repl()
    terminal.result("x = 6")
    terminal.result("x * 7")
    terminal.result("1 / 0")
    terminal.result("!true")
    assert terminal.result(":save mine.py") == "saved 4 cells to mine.py\n"
    assert (tmp_path / "mine.py").read_text() == (
        "# %%\nx = 6\n\n# %%\nx * 7\n\n# %% raised: ZeroDivisionError\n# 1 / 0\n\n# %%\n# !true\n"
    )
    assert terminal.result(":load mine.py") == "42\n"
    assert terminal.result(":save mine.ipynb") == "saved 8 cells to mine.ipynb\n"
    assert len(json.loads((tmp_path / "mine.ipynb").read_text())["cells"]) == 8
    assert terminal.result(":save mine.html") == "saved 8 cells to mine.html\n"
    assert (tmp_path / "mine.html").read_text().startswith("<!doctype html>")
    assert terminal.result(":save mine.py") == "saved 8 cells to mine.py\n"  # our own may be written again
    (tmp_path / "precious.py").write_text("mine")
    assert terminal.result(":save precious.py") == "cellblock: precious.py exists: give another name\n"
    assert terminal.result(":save x.txt") == "cellblock: x.txt: the name must end in .ipynb, .html or .py\n"
    assert (tmp_path / "precious.py").read_text() == "mine"


@pytest.mark.sampled(0)
def test_undo_counts_no_change_of_the_terminals_width(repl: Repl) -> None:
    terminal = repl()
    width = "__import__('os').environ['COLUMNS']"
    assert terminal.result(width) == "'100'\n"
    terminal.result("a = 1")
    for columns, line in [(120, f"b = 2; {width}"), (80, "__import__ = None; import os; os.environ['COLUMNS']")]:
        terminal.resize(columns)  # the prompt is drawn once more
        assert terminal.result(line).startswith(f"'{columns}'\n")
    assert terminal.result(":undo 3").startswith("undone: a = 1; b = 2; ")
    assert terminal.result(f"'a' in globals(), {width}").startswith("(False, '80')\n")


@pytest.mark.sampled(0)
def test_clear_keeps_files_and_restart_does_not(repl: Repl, tmp_path: Path) -> None:
    (tmp_path / "given.csv").write_bytes(b"")
    terminal = repl("--file", "given.csv")
    terminal.result("x = 1; open('made.csv', 'w').close()")
    assert terminal.result(":clear") == ""
    assert terminal.result(":names") == "nothing is bound\n"
    assert terminal.result(":files") == "given.csv\nmade.csv\n"
    terminal.result("x = 1")
    assert terminal.result(":restart").startswith("walls: namespaces, ")
    assert terminal.result(":names") == "nothing is bound\n"
    assert terminal.result(":files") == "given.csv\n"


@pytest.mark.sampled(0)
def test_commands_that_meet_unusable_paths_leave_the_session(repl: Repl, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with open(tmp_path / "large", "wb") as large:
        large.truncate(1 << 40)
    terminal = repl()
    terminal.result("keep = 1; open('a', 'w').close()")
    nobody = "~nosuchuser/f: no such user, or one without a home directory"
    for command, told in (
        (":put ~nosuchuser/f", nobody),
        (":load ~nosuchuser/f", nobody),
        (":get a ~nosuchuser/f", nobody),
        (":save ~nosuchuser/f.py", nobody.replace("/f", "/f.py")),
        (f":save {'a' * 300}.py", f"{'a' * 300}.py: File name too long"),
        (":put fifo", "fifo: not a regular file"),
        (":load fifo", "cannot read 'fifo': not a regular file"),
        (":put /dev/zero", "/dev/zero: not a regular file"),
        (":put /proc/self/mem", "/proc/self/mem: Input/output error"),
        (":put large", "large: File too large"),
    ):
        terminal.line(command)
        terminal.expect(r"(?s)cellblock: " + r"\s*".join(map(re.escape, told)) + r"\n(?=>>> \Z)")
    assert terminal.result("keep") == "1\n"


@pytest.mark.sampled(0)
def test_error_of_ours_in_a_command_is_a_line_and_the_session_lives_on(repl: Repl) -> None:
    start = (
        "import sys\nfrom cellblock.cli import commands, main\n"
        "def broken(*_, **__): raise KeyError('\\x1b[2Ja\\nb')\ncommands.listing = broken\nsys.exit(main())"
    )
    terminal = repl(python=("-c", start))
    terminal.result("keep = 1")
    assert terminal.result(":files") == "cellblock: KeyError: [U+001B][2Ja\\nb\n"
    assert terminal.result("keep") == "1\n"


@pytest.mark.sampled(0)
def test_commands_that_cannot_be_carried_out_say_why(repl: Repl) -> None:
    terminal = repl()
    for line, told in (
        (":undoo", "no command :undoo (:help lists them)"),
        (":load", "usage: :load FILE.py"),
        (":load none.py", "cannot read 'none.py': No such file or directory"),
        (":load 'a", "No closing quotation (usage: :load FILE.py)"),
        (":shell", "usage: :shell COMMAND"),
        (":undo -1", "usage: :undo [N]"),
        (":undo x", "usage: :undo [N]"),
    ):
        assert terminal.result(line) == f"cellblock: {told}\n"
    assert terminal.result(":undo 9").startswith("cellblock: ")
    assert terminal.result("import sys; sys.exit(3)") == "the cell has ended, the session goes on; :quit leaves\n"
    assert "\ncellblock: hint: IPython's % and ! lines are not Python" in terminal.result("%matplotlib inline")


@pytest.mark.sampled(0)
def test_results_alone_go_to_a_file_that_stdout_is(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with (
        open(tmp_path / "out", "wb") as out,
        subprocess.Popen(
            [sys.executable, "-m", "cellblock", "repl", "--no-history"], stdin=theirs, stderr=theirs, stdout=out,
            env={**os.environ, "NO_COLOR": "1"},
        ) as process,
    ):  # fmt: skip
        os.close(theirs)
        os.write(ours, b"for i in range(2): print(i)\n\n40 + 2\n\x04")
        assert process.wait(30) == 0
    shown = os.read(ours, 65536)
    os.close(ours)
    assert (tmp_path / "out").read_bytes() == b"0\n1\n42\n"
    assert b"walls: namespaces" in shown
    assert shown.rstrip().endswith(b">>>")


# ------------------------------------------------------------------------------------- other Pythons


@pytest.mark.sampled(0)
def test_python_without_readline_works(repl: Repl, tmp_path: Path) -> None:
    start = "import sys; sys.modules['readline'] = None\nfrom cellblock.cli import main\nsys.exit(main())"
    terminal = repl(python=("-c", start))
    terminal.line("def f():")
    terminal.line("    return 5")
    terminal.line("")
    assert terminal.result("f()") == "5\n"
    terminal.type("\x04")
    assert terminal.end() == 0
