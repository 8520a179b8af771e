"""What was saved once is read for ever: the records of all scenarios, and the numbers of what their streams call."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cellblock.worker.saving import building
from cellblock.worker.saving.pickler import OF_LOADER

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
OURS = GOLDEN / f"streams-1.python-{sys.version_info.major}.{sys.version_info.minor}.json.xz"

pytestmark = pytest.mark.threat("D1")


@pytest.mark.sampled(0)
@pytest.mark.skipif(not OURS.exists(), reason="there are none of this version of Python, and no other reads any")
def test_records_of_every_format_are_read() -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "0", "MPLBACKEND": "agg"}
    program = [sys.executable, str(HERE / "golden_streams.py"), "load", str(OURS)]
    done = subprocess.run(program, capture_output=True, text=True, env=environment, timeout=100)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert {name: wrong for name, wrong in told.items() if wrong} == {}
    assert len(told) >= 60


def test_what_streams_call_has_the_numbers_it_always_had() -> None:
    """Streams name it by its place. Who adds some adds them at the end, there and in the golden file."""
    names = [*OF_LOADER, *(one.__name__ for one in building.BUILDERS)]
    assert names == json.loads((GOLDEN / "builders.json").read_text())
