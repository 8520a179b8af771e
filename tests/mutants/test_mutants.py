"""Mutants: for each threat and wall a line of the package is made weaker, and the tests that `table.py` names notice.

A row's tests run in a pytest of their own, over a copy of the installed package with that line changed. The copy comes
first on `PYTHONPATH`, and the processes of a session are started from it, too: what runs inside the walls is changed
as the host is.
"""

from __future__ import annotations

import ast
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from seeds import seed

import cellblock
from cellblock_attacks.threats import THREATS

HERE = Path(__file__).parent
sys.path.append(str(HERE))
from table import PROMISES, ROWS, Mutant  # noqa: E402 - found from here on

sys.path.remove(str(HERE))

ROOT = HERE.parents[1]
PACKAGE = Path(cellblock.__file__).parent

A_DAY = 12
"""Rows that `make thorough` tries; `make endurance` tries all."""

SECONDS = 200
pytestmark = pytest.mark.timeout(SECONDS + 20)

UNHARMED = (
    "tests/session/test_local.py::test_what_cells_change_of_a_value_is_not_seen_by_the_host",
    "tests/session/test_cells.py::test_last_expression_is_the_value[41 + 1-42]",
)
"""Tests that run first, and pass: a mutant that breaks all sessions would be found by any test."""


def of_the_day() -> set[str]:
    return set(Random(seed()).sample([row.name for row in ROWS], A_DAY))


def rows() -> Iterator[object]:
    chosen = of_the_day()
    for row in ROWS:
        yield pytest.param(row, id=row.name, marks=pytest.mark.thorough if row.name in chosen else pytest.mark.slow)


@pytest.fixture
def copy() -> Iterator[Path]:
    """A copy of the package that accounts of sessions can read. Not below /tmp, which is the session's own inside."""
    (ROOT / "build").mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="mutant-", dir=ROOT / "build"))
    try:
        folder.chmod(0o755)
        shutil.copytree(PACKAGE, folder / "cellblock")
        yield folder
    finally:
        shutil.rmtree(folder)


def mutated(row: Mutant, package: Path) -> str:
    """The text of a row's file with its line changed."""
    text = (package / row.file).read_text()
    times = text.count(row.before)
    assert times == 1, f"{row.file} holds the row's text {times} times, not once: {row.before!r}"
    changed = text.replace(row.before, row.after)
    ast.parse(changed)
    return changed


def tried(folder: Path, tests: tuple[str, ...]) -> tuple[int, str]:
    """The status of pytest over a copy, and what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    command = (sys.executable, "-m", "pytest", "-x", "-rfE", "--tb=short", "-m", "", "-p", "no:cacheprovider")
    with subprocess.Popen(
        [*command, "--timeout", "40", *UNHARMED, *tests],
        cwd=ROOT,
        env={**environment, "PYTHONPATH": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            pytest.fail(f"the tests took more than {SECONDS} s", pytrace=False)
    assert f"cellblock: {folder}" in output, output[-4000:]
    return process.returncode, output


@pytest.mark.parametrize("row", list(rows()))
def test_mutant_fails_the_tests_of_its_row(row: Mutant, copy: Path) -> None:
    changed = mutated(row, copy / "cellblock")
    (copy / "cellblock" / row.file).write_text(changed)
    status, output = tried(copy, row.tests)
    failed = [line for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if status == 0 and " skipped" in output.splitlines()[-1]:
        pytest.skip("tests of the row are skipped on this machine")
    assert status == 1, f"no test of the row noticed:\n{output[-4000:]}"
    assert any(line.startswith(f"FAILED {test}") for line in failed for test in row.tests), output[-4000:]


@pytest.mark.thorough
def test_copy_without_a_change_passes_the_tests_of_rows(copy: Path) -> None:
    tests = {test for row in ROWS if row.name in of_the_day() for test in row.tests}
    status, output = tried(copy, tuple(sorted(tests)))
    assert status == 0, output[-4000:]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row_names_one_line_and_changes_it(row: Mutant) -> None:
    mutated(row, PACKAGE)
    assert row.before != row.after
    assert all((ROOT / test.partition("::")[0]).is_file() for test in row.tests)


def test_each_threat_and_promise_has_a_mutant() -> None:
    known = {threat.id for threat in THREATS} | PROMISES.keys()
    assert known - {id for row in ROWS for id in row.ids} == set()
    assert {id for row in ROWS for id in row.ids} - known == set()
    assert len({row.name for row in ROWS}) == len(ROWS)
