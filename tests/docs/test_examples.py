"""The programs of `examples/` print what their last lines, `#> …`, say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cellblock

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*.py"))


@pytest.mark.sampled(1)
@pytest.mark.hostile
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_example_prints_what_its_last_lines_say(program: Path, tmp_path: Path) -> None:
    told = [line[3:] for line in program.read_text(encoding="utf-8").splitlines() if line.startswith("#> ")]
    environment = {**os.environ, "PYTHONPATH": str(Path(cellblock.__file__).parents[1])}
    done = subprocess.run([sys.executable, program], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.stdout.splitlines(), done.stderr, done.returncode) == (told, "", 0)
    assert told


def test_page_of_the_examples_names_each_of_them() -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| \[`(\w+\.py)`\]", page, re.M)) == [program.name for program in PROGRAMS]
