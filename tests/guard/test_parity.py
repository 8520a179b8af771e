"""What small programs do under CPython, they do behind the guard: same text, same exception, same line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import corpus
import pytest
from levels import local_session, why_not_local

FILES = {path.stem: path for path in corpus.files(corpus.PARITY)}
CASES = [(theme, program) for theme, path in FILES.items() for program in corpus.programs(path) if program.runs_here]
DIFFERS = frozenset(
    line.split()[-1]
    for line in (Path(__file__).parent / "differs.txt").read_text().splitlines()
    if "." not in line or sys.version_info >= tuple(map(int, line.split()[0].split(".")))
)
"""Programs that the guard does not leave as they are yet; after a version, from that one on."""
REFERENCE = Path(__file__).parent / "reference.py"


@cache
def expected(theme: str) -> dict[str, dict[str, object]]:
    """What CPython does with the programs of a file, by name."""
    told = subprocess.run(
        [sys.executable, "-X", "utf8", str(REFERENCE), str(FILES[theme])],
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    ).stdout.splitlines()
    found = {one["name"]: one for one in map(json.loads, told[:-1])}
    assert len(found) == int(told[-1]), f"of {told[-1]} programs, {len(found)} told what they did"
    return found


def test_the_corpus_is_wide():
    assert len(FILES) >= 35
    assert sum(len(corpus.programs(path)) for path in FILES.values()) >= 750


@pytest.mark.sampled(1)
@pytest.mark.parametrize("theme", FILES)
def test_cpython_runs_every_program_of_a_file(theme):
    """A program shows something, or ends in the exception that its header names."""
    for program in corpus.programs(FILES[theme]):
        if not program.runs_here:
            continue
        found = expected(theme)[program.name]
        error = found["error"]
        assert program.keys.get("raises") == (error and error[0]), (program.name, error)
        assert error or found["stdout"], program.name


def _cases():
    for theme, program in CASES:
        marks = [pytest.mark.xfail(reason="not yet as under CPython", strict=False)] * (
            f"{theme}/{program.name}" in DIFFERS
        )
        yield pytest.param(theme, program, id=f"{theme}-{program.name}", marks=marks)


def test_what_differs_are_few_programs_of_the_corpus():
    known = {f"{theme}/{program.name}" for theme, path in FILES.items() for program in corpus.programs(path)}
    assert sorted(DIFFERS - known) == []
    assert len(DIFFERS) <= len(known) // 40


@pytest.mark.sampled(115)
@pytest.mark.skipif(bool(why_not_local()), reason=why_not_local())
@pytest.mark.parametrize(("theme", "program"), list(_cases()))
def test_the_guard_changes_nothing(theme, program):
    want = expected(theme)[program.name]
    with local_session() as session:
        # `pass`, so that the last expression is a statement as under exec()
        cell = session.run(program.source + "pass\n")
    assert corpus.outcome(cell) == {"stdout": want["stdout"], "error": want["error"]}
