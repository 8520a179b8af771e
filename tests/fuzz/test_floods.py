"""Hostile sequences of messages: the host's loop goes on, and it holds no more than the session may make it hold."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("floods.py")
pytestmark = [pytest.mark.hostile, pytest.mark.threat("W7"), pytest.mark.threat("W11")]

FOUND = (5, 15)
"""Rounds that broke the invariant: a cell that filled what may be held left no room for the next."""


SAVED = (21, 62)
"""The same of files that are saved: paths were not counted, and a description was held before it was asked for."""


def finds(seed: int, rounds: int, *options: str, seconds: int = 10) -> list[str]:
    """What breaks the invariant, in a process of its own, whose memory is nobody else's."""
    command = [sys.executable, PROGRAM, *options, "--seed", str(seed), "--rounds", str(rounds), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30 + seconds * rounds)
    assert done.stderr == ""
    tried = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["seed"] for one in tried] == list(range(seed, seed + rounds))
    program = " ".join([PROGRAM.name, *options])
    return [f"{program} --rounds 1 --seed {one['seed']}: {one['broke']}" for one in tried if one["broke"]]


def test_host_goes_on_under_hostile_sequences_of_messages() -> None:
    assert finds(1, 4) == []


@pytest.mark.sampled(0)
@pytest.mark.parametrize("seed", FOUND)
def test_sequence_that_broke_it_does_so_no_more(seed: int) -> None:
    assert finds(seed, 1) == []


@pytest.mark.sampled(0)
@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", SAVED)
def test_description_of_what_is_saved_broke_it_and_does_so_no_more(seed: int) -> None:
    assert finds(seed, 1, "--saved", seconds=120) == []


@pytest.mark.thorough
@pytest.mark.timeout(1200)
def test_host_goes_on_while_it_saves_what_no_run_before_left(thorough_seed: int) -> None:
    assert finds(1000 * thorough_seed, 8, "--saved", seconds=120) == []


@pytest.mark.thorough
@pytest.mark.timeout(1200)
def test_host_goes_on_under_sequences_that_no_run_before_tried(thorough_seed: int) -> None:
    assert finds(1000 * thorough_seed, int(os.environ.get("CELLBLOCK_EXAMPLES", "30"))) == []
