"""What people keep in notebooks: each scenario is run, saved, and loaded in a new process.

A check holds in the process that ran the cells, in the new one, and in another that loads what that one saved. What is
loaded is saved as the very bytes that it was loaded from. A name that is not there is told, with a reason and a remedy;
no other is missing.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
SCENARIOS = sorted(HERE.glob("scenarios/*.py"))


def run(half: str, scenario: Path, directory: Path) -> dict[str, Any]:
    driver = [sys.executable, str(HERE / "driver.py"), half, str(scenario), str(directory)]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "MPLBACKEND": "agg"}
    done = subprocess.run(driver, capture_output=True, text=True, env=environment, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    told: dict[str, Any] = json.loads((directory / f"{half}.json").read_text())
    return told


def expected(scenario: Path) -> tuple[list[list[str]], list[str]]:
    """The rows of `# lost: name | in the reason | in the remedy`, and the modules of `# needs: module`."""
    lines = scenario.read_text().splitlines()
    lost = [[part.strip() for part in line[7:].split("|")] for line in lines if line.startswith("# lost:")]
    needs = [part.strip() for line in lines if line.startswith("# needs:") for part in line[8:].split(",")]
    return lost, needs


def changing(scenario: Path) -> list[str]:
    """The names of `# changes: name, name | why`: what a load leaves out of them, or their own code makes other."""
    lines = [line[10:] for line in scenario.read_text().splitlines() if line.startswith("# changes:")]
    return sorted(name.strip() for line in lines for name in line.partition("|")[0].split(","))


def _cases() -> list[Any]:
    """Each scenario, of eight one with a second load, of what the first has saved; with the others that is slow."""
    found = []
    for number, path in enumerate(SCENARIOS):
        if number % 8:
            found.append(pytest.param(path, 1, id=path.stem))
        found.append(pytest.param(path, 2, id=f"{path.stem}, twice", marks=[pytest.mark.slow] if number % 8 else []))
    return found


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("scenario", "loads"), _cases())
def test_scenario_holds_warm_and_after_load(scenario: Path, loads: int, tmp_path: Path) -> None:
    lost, needs = expected(scenario)
    for module in needs:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    warm = run("save", scenario, tmp_path)
    assert [check for check in warm["checks"] if check[1]] == []
    for number in range(loads):
        loaded = run("load", scenario, tmp_path)
        assert [check for check in loaded["checks"] if check[1]] == []
        assert loaded["failed"] == []
        assert loaded["names"] == warm["names"]
        assert set(loaded["changed"]) <= {*changing(scenario)}
        assert number == 1 or sorted(loaded["changed"]) == changing(scenario)
    assert warm["unstable"] == []
    assert set(warm["bound"]) <= {*warm["names"], *(row[0] for row in warm["lost"])}
    rows = sorted([row[0], row[2], row[3]] for row in warm["lost"])
    assert [row[0] for row in rows] == sorted(name for name, *_ in lost), rows
    for row, (_, reason, remedy) in zip(rows, sorted(lost), strict=True):
        assert reason in row[1]
        assert remedy in row[2]
        assert row[2]
