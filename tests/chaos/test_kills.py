"""Versioned sessions, their programs and processes killed at any moment: nothing acknowledged is lost or done twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import postgres_server
import pytest

PROGRAM = Path(__file__).with_name("kills.py")
SUPPORT = Path(__file__).parents[1] / "support"
KILLS = int(os.environ.get("CELLBLOCK_KILLS", "2000"))
"""In all, of the long test."""
SECONDS = max(3000, KILLS)
"""For the kills of one store; two stores at a time."""


def killed(url: str, seed: int, kills: int, seconds: float) -> dict[str, object]:
    """What became of a session that was killed so many times."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), url, str(seed), str(kills), str(seconds)],
        stdout=subprocess.PIPE, text=True, check=False, env={**os.environ, "PYTHONPATH": str(SUPPORT)},
    )  # fmt: skip
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def _check(found: dict[str, object], seed: int) -> int:
    assert found["wrong"] == [], f"kills.py with seed {seed}: {found}"
    kills = found["kills"]
    assert isinstance(kills, dict)
    return sum(kills.values())


@pytest.mark.timeout(300)
def test_a_session_is_as_it_was_acknowledged_whoever_is_killed(tmp_path: Path) -> None:
    assert _check(killed(f"sqlite:///{tmp_path}/cells.db", 1, 10, 120), 1) == 10


@pytest.mark.thorough
@pytest.mark.timeout(2 * SECONDS)
def test_thousands_of_kills_lose_nothing_in_any_store(tmp_path: Path, thorough_seed: int) -> None:
    """Half in SQLite, the rest in PostgreSQL, with a directory and with a bucket for what is large."""
    with postgres_server.server() as server:
        (tmp_path / "bucket").mkdir()
        urls = [
            f"sqlite:///{tmp_path}/one.db",
            f"{server.url}&schema=kills",
            f"sqlite:///{tmp_path}/two.db?objects={tmp_path}/objects",
            f"sqlite:///{tmp_path}/three.db?objects=file://{tmp_path}/bucket",
        ]
        shares = [KILLS // 2, KILLS // 4, KILLS // 8, KILLS // 8]
        with ThreadPoolExecutor(2) as pool:
            runs = [
                pool.submit(killed, url, thorough_seed + place, share, SECONDS)
                for place, (url, share) in enumerate(zip(urls, shares, strict=True))
            ]
        kills = sum(_check(run.result(), thorough_seed + place) for place, run in enumerate(runs))
    assert kills == sum(shares)
