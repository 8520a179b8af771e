"""The command line as its users meet it: a process with arguments, two streams and an exit status."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "scripts"
Cellblock = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def cellblock(tmp_path: Path) -> Cellblock:
    """Runs `python -m cellblock` in a directory of its own."""

    def run(
        *words: str | Path, stdin: bytes = b"", environment: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-W", "error", "-m", "cellblock", *map(str, words)],
            input=stdin,
            capture_output=True,
            cwd=tmp_path,
            timeout=60,
            env={**os.environ, **(environment or {})},
        )

    return run


@pytest.fixture
def scripts() -> Path:
    """Where the sample scripts are."""
    return SCRIPTS
