"""What saves looks at the whole process, so its tests have one to themselves: the files `alone_*.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPTIONS = ("-o", "python_files=alone_*.py", "-o", "pythonpath=tests/saving")


@pytest.mark.sampled(0)
@pytest.mark.parametrize("name", ["alone_graphs.py", "alone_hostile.py", "alone_saving.py"])
def test_tests_pass_in_a_process_of_their_own(name: str) -> None:
    path = Path(__file__).with_name(name)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *OPTIONS, str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
