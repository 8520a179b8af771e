"""The standard streams: closed, full or unread; and what the engine quotes of a document on its way to a terminal."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cellblock.cli import main

Cellblock = Callable[..., "subprocess.CompletedProcess[bytes]"]
ME = f"{sys.executable} -W error -m cellblock"
FULL = "cellblock: stdout cannot be written: No space left on device\n"


@pytest.fixture
def shell(tmp_path: Path) -> Callable[[str], tuple[int, str]]:
    """Runs a line of the shell; its status, and what stderr said."""
    (tmp_path / "a.py").write_text("import sys\nprint('out')\nprint('err', file=sys.stderr)\n")

    def run(line: str) -> tuple[int, str]:
        done = subprocess.run(line, shell=True, cwd=tmp_path, stderr=subprocess.PIPE, text=True, timeout=60)
        return done.returncode, done.stderr

    return run


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        (f"{ME} run a.py >&-", 0, "err\n"),
        (f"{ME} run a.py 2>&- >/dev/null", 0, ""),
        (f"{ME} run - <&-", 0, ""),
        (f"{ME} run a.py <&- >&- 2>&-", 0, ""),
        (f"{ME} sessions list --store memory: >&-", 0, "cellblock: no sessions of 'default' in memory:\n"),
        (f"{ME} run a.py >/dev/full", 1, FULL),
        (f"{ME} run --json a.py >/dev/full", 1, FULL),
        (f"{ME} sessions list --json --store memory: >/dev/full", 1, FULL),
        (f"{ME} --help >/dev/full", 1, FULL),
        (f"{ME} run a.py 2>/dev/full >/dev/null", 1, ""),
        (f"echo 'for i in range(100_000): print(i)' | {ME} run - | head -1 >/dev/null", 0, ""),
    ],
)
def test_a_stream_that_is_closed_takes_nothing_and_one_that_fails_is_told(
    shell: Callable[[str], tuple[int, str]], line: str, status: int, said: str
) -> None:
    assert shell(line) == (status, said)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("environment", ["PYTHONIOENCODING=ascii", "LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0"])
@pytest.mark.parametrize("words", ["", "run", "mcp"])
def test_help_is_shown_whatever_the_encoding(
    shell: Callable[[str], tuple[int, str]], environment: str, words: str
) -> None:
    assert shell(f"{environment} {ME} {words} --help >help") == (0, "")


@pytest.mark.threat("W8")
@pytest.mark.parametrize("words", [["run", "a.py"], ["run", "--p={}", "a.py"], ["sessions", "list"], []])
def test_what_a_usage_error_quotes_of_the_command_line_is_one_line_without_escapes(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    nasty = "\x1b[2J\x1b]0;title\x07\ncellblock: forged"
    filled = [word.format(nasty) for word in words]
    assert main(filled if filled != words else [*words, nasty]) == 2
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert not any(row.startswith("cellblock: forged") for row in said.splitlines())
    assert "\\ncellblock: forged" in said.splitlines()[-1]


_LONG = "a" * 5_000
_NO_NAME = "the name of a {} must have 1 to 200 characters, not 0"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--file", "/proc/self/mem", "a.py"], "/proc/self/mem: Input/output error"),
        (["run", "--file", "large", "a.py"], "large: File too large"),
        (["run", "--file", _LONG, "a.py"], f"--file {_LONG!r}: {_LONG!r} does not exist"),
        (["run", "--save", _LONG, "a.py"], f"--save {_LONG!r}: File name too long"),
        (["run", "--save", f"{_LONG}/b", "a.py"], f"--save '{_LONG}/b': File name too long"),
        (["notebook", "run", "n.ipynb", "--save", f"{_LONG}.html"], f"--save '{_LONG}.html': File name too long"),
        (["sessions", "export", "s", f"{_LONG}.html", "--store", "memory:"], f"'{_LONG}.html': File name too long"),
        (["sessions", "list", "--store", "memory:", "--user", ""], _NO_NAME.format("user")),
        (["sessions", "log", "--store", "memory:", ""], _NO_NAME.format("session")),
        (["sessions", "delete", "--store", "memory:", ""], _NO_NAME.format("session")),
        (["sessions", "branch", "--store", "memory:", "a", ""], _NO_NAME.format("session")),
        (["sessions", "tag", "--store", "memory:", "a", ""], _NO_NAME.format("tag")),
        (["mcp", "--http", f"127.0.0.1:{'9' * 5_000}"], f"'127.0.0.1:{'9' * 5_000}' is not HOST:PORT"),
        (["mcp", "--store", "x.db"], "this is not the URL of a store"),
        (["mcp", "--store", "sqlite:////nowhere/x.db"], "the store /nowhere/x.db: No such file or directory"),
        (["mcp", "--store", "memory:", "--session", "a\nb"], "the session name 'a\\nb' has a character"),
    ],
)
def test_what_the_command_line_names_and_the_system_does_not_take_is_a_line(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("print('ran')")
    (tmp_path / "n.ipynb").write_text('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}')
    with open(tmp_path / "large", "wb") as large:
        large.truncate(1 << 40)
    assert main(words) == 2
    shown = capsys.readouterr()
    assert (shown.out, len(shown.err.splitlines())) == ("", 1)
    assert shown.err.startswith(f"cellblock: {said}")


@pytest.mark.threat("W8")
def test_what_an_error_quotes_of_a_document_is_one_line_without_escapes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nasty = "\x1b[2J\x1b]0;title\x07\ncellblock: forged"
    log, notebook = tmp_path / "log.jsonl", tmp_path / "n.ipynb"
    log.write_text(json.dumps({"event": "run", "format": nasty}) + "\n")
    cell = {"cell_type": nasty, "source": "1", "metadata": {}}
    kernel = {"kernelspec": {"name": nasty, "language": nasty, "display_name": nasty}}
    notebook.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": [cell]}))
    assert main(["sessions", "replay", str(log)]) == 2
    assert main(["notebook", "run", str(notebook)]) == 2
    assert main(["notebook", "run", nasty + ".ipynb"]) == 2
    assert main(["sessions", "show", nasty, "--store", f"sqlite:///{tmp_path}/{nasty}.db"]) == 2
    rows = capsys.readouterr().err.splitlines()
    assert len(rows) == 4
    assert all(row.startswith("cellblock: ") and row.isprintable() for row in rows)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 100_000, "it is nested too deeply"),
        ('{"cells": ' * 900 + "1" + "}" * 900, "it is nested too deeply"),
        ("1" * 5_000, "it has a number of too many digits"),
    ],
    ids=["very deep", "deep", "long"],
)
def test_a_document_that_is_too_deep_or_long_is_refused(
    text: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text(text)
    assert main(["notebook", "run", str(path)]) == 2
    assert capsys.readouterr().err == f"cellblock: {str(path)!r} is not a Jupyter document: {why}\n"


@pytest.mark.parametrize("steps", ["9" * 5_000, "0", "\u0663", "-1"])
def test_a_number_of_steps_that_is_none_is_refused(steps: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "undo", "--store", "memory:", "--", "x", steps]) == 2
    assert "is not a number of steps above 0" in capsys.readouterr().err
