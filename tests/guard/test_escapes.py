"""Known ways out of a sandbox within a Python process, tried against the guard: nothing is reached, nothing changed."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache

import corpus
import pytest
from levels import why_not_local
from seeds import mark_of

from cellblock.guard.rules import BY_ID

FILES = {path.stem: path for path in corpus.ESCAPES}
ATTEMPTS = [program for path in FILES.values() for program in corpus.programs(path)]
SPARE_MB = 250
"""What an interpreter takes for itself, and a cell between two looks at its memory, beyond the limit."""


@cache
def outcomes(how: str, file: str) -> dict[str, dict[str, object]]:
    """What became of the attempts of a file, by name."""
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "cellblock_attacks.language", how, str(FILES[file])],
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert told.returncode == 0, told.stderr
    return {one["name"]: one for one in map(json.loads, told.stdout.splitlines())}


CITED = {
    "L1": pytest.mark.threat("L1"),
    "L2": pytest.mark.threat("L2"),
    "L3": pytest.mark.threat("L3"),
    "L4": pytest.mark.threat("L4"),
    "L5": pytest.mark.threat("L5"),
    "L6": pytest.mark.threat("L6"),
    "L7": pytest.mark.threat("L7"),
    "L8": pytest.mark.threat("L8"),
    "L9": pytest.mark.threat("L9"),
    "L10": pytest.mark.threat("L10"),
}
"""The rows of the register that the attempts try."""


def test_the_corpus_is_wide():
    assert len(ATTEMPTS) >= 600
    assert {attempt.keys["threat"] for attempt in ATTEMPTS} == {f"L{number}" for number in range(1, 11)}


def test_an_attempt_says_where_it_is_from_and_what_it_proves():
    for attempt in ATTEMPTS:
        assert attempt.keys["from"], attempt.name
        assert attempt.keys["proves"] in ("canary", "mutates", "hangs", "memory"), attempt.name
        assert len({"refused", "ended", "harmless", "open"} & set(attempt.keys)) == 1, attempt.name
        assert set(_said(attempt, "refused")) <= set(BY_ID), attempt.name
        assert set(_said(attempt, "ended")) <= {"timeout", "memory", "raised", "completed"}, attempt.name


def _said(attempt: corpus.Program, key: str) -> list[str]:
    return attempt.keys[key].split(", ") if key in attempt.keys else []


def _ending():
    """The files of attempts that end without a guard; all but the first are slow, as they try nothing of ours."""
    files = [file for file in FILES if not file.startswith(("L07", "L10"))]
    return [files[0], *(pytest.param(file, marks=pytest.mark.slow) for file in files[1:])]


@pytest.mark.parametrize("file", _ending())
def test_without_a_guard_an_attempt_succeeds(file):
    """So that what the guard stops is an attempt, and no program that fails by itself. But for what does not end."""
    for attempt in corpus.programs(FILES[file]):
        if attempt.runs_here and "plain" not in attempt.keys:
            found = outcomes("plain", file)[attempt.name]
            assert found["canary"] if attempt.keys["proves"] == "canary" else found["changed"], (attempt.name, found)


def _cases():
    for file, path in FILES.items():
        for attempt in corpus.programs(path):
            if attempt.runs_here:
                marks = [CITED[attempt.keys["threat"]]]
                if file.startswith("L10_calls_"):  # each takes its time limit or its memory
                    marks.append(pytest.mark.slow)
                elif file.startswith("L10_") and file != "L10_nesting":
                    marks.append(getattr(pytest.mark, mark_of(file)))
                if "open" in attempt.keys:
                    marks.append(pytest.mark.xfail(run=False, reason=attempt.keys["open"]))
                yield pytest.param(file, attempt, id=f"{file}-{attempt.name}", marks=marks)


@pytest.mark.skipif(bool(why_not_local()), reason=why_not_local())
@pytest.mark.parametrize(("file", "attempt"), list(_cases()))
def test_behind_the_guard_it_reaches_nothing(file, attempt):
    found = outcomes("guard", file)[attempt.name]
    assert found["canary"] is False, found
    assert found["changed"] == [], found
    assert found["ended"] in ("completed", "raised", "refused", "timeout", "memory"), found
    if "refused" in attempt.keys:
        assert found["rules"] == _said(attempt, "refused"), found
    elif "ended" in attempt.keys:
        assert found["ended"] in _said(attempt, "ended"), found
    else:
        assert found["rules"] == [], (found, "it is not what it does that is harmless: a rule refused it")
    assert found["left"] == 0, found
    assert found["megabytes"] <= 64 + SPARE_MB, found
