"""Programs that must show the same under the guard as under CPython: each file of `parity/`."""

from __future__ import annotations

from pathlib import Path

import pytest
from runner import guarded, plain

FILES = sorted((Path(__file__).parent / "parity").glob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_program_shows_what_it_shows_under_cpython(path: Path) -> None:
    source = path.read_text()
    under, by_itself = guarded(source), plain(source)
    assert (under.text, under.error, under.line) == (by_itself.text, by_itself.error, by_itself.line), under.message
