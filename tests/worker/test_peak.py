"""The most that a process has held, counted anew for whoever could not be asked at the time."""

from __future__ import annotations

from pathlib import Path

import pytest

from cellblock.worker import procfs
from cellblock.worker.peak import Peak


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What tells the kernel to count anew, of a process that hides as long as the file is not there."""
    monkeypatch.setattr(procfs, "path", lambda rest: str(tmp_path / rest))
    (tmp_path / "42").mkdir()
    return tmp_path / "42" / "clear_refs"


def test_it_begins_again_when_asked(file: Path) -> None:
    file.touch()
    peak = Peak(42)
    assert file.read_text() == ""
    peak.reset()
    assert file.read_text() == "5"
    peak.close()


def test_a_reset_while_the_process_hides_is_made_up_for(file: Path) -> None:
    peak = Peak(42)
    peak.reset()
    file.touch()
    peak.find()
    assert file.read_text() == "5"
    peak.close()


def test_nothing_is_reset_that_was_not_to_be(file: Path) -> None:
    peak = Peak(42)
    file.touch()
    peak.find()
    assert file.read_text() == ""
    peak.close()
