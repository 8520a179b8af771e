"""`cellblock sessions replay`: a table or JSON, and an exit status that tells same, differs and no log apart."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cellblock import CodeAgent, ScriptedModel

pytestmark = pytest.mark.hostile

Cellblock = Callable[..., "subprocess.CompletedProcess[bytes]"]


def look(name: str) -> int:
    """Look something up."""
    return len(name)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    codes = ["n = look('ab')\nn", "print('n is', n, '\\x1b[2J')", "final_answer(n)"]
    agent = CodeAgent(ScriptedModel([f"```python\n{code}\n```" for code in codes]), tools=[look])
    agent.run("look", files={"a.txt": b"x" * 700_000}, log=tmp_path / "run.jsonl")
    (tmp_path / "a.txt").write_bytes(b"x" * 700_000)
    return tmp_path / "run.jsonl"


def test_same_run_is_exit_status_0(cellblock: Cellblock, log: Path) -> None:
    done = cellblock("sessions", "replay", log, "--file", "a.txt")
    said = b"cellblock: 3 cells, 1 tool call: all as the log says\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", said)


@pytest.mark.sampled(0)
def test_difference_is_a_row_and_exit_status_1(cellblock: Cellblock, log: Path) -> None:
    log.write_text(log.read_text().replace('"answer": 2', '"answer": 3', 1))
    done = cellblock("sessions", "replay", log, "--file", "a.txt")
    assert done.returncode == 1
    assert [line.split() for line in done.stdout.decode().splitlines()[:4]] == [
        ["STEP", "WHAT", "LOGGED", "REPLAYED"],
        ["1", "text", "2", "3"],
        ["1", "value", "2", "3"],
        ["2", "text", "n", "is", "2", "n", "is", "3"],
    ]
    told = json.loads(cellblock("sessions", "replay", log, "--file", "a.txt", "--json").stdout)
    assert (told["same"], told["cells"], told["differences"][0]["replayed"]) == (False, 3, "3")


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run.jsonl"], "cellblock: the file 'a.txt' is not in run.jsonl (give it: files= (--file LOCAL:a.txt))"),
        (["none"], "cellblock: the log none cannot be read: No such file or directory (give the path of a log)"),
        (["a.txt"], "cellblock: a.txt, line 1, is not a line of a run's log (give a log that a run has written)"),
        (["run.jsonl", "--file", "b.txt"], "cellblock: --file 'b.txt': 'b.txt' does not exist"),
    ],
)
def test_what_cannot_be_replayed_is_exit_status_2(cellblock: Cellblock, log: Path, words: list[str], said: str) -> None:
    done = cellblock("sessions", "replay", *words)
    assert (done.returncode, done.stdout, done.stderr.decode().strip()) == (2, b"", said)
