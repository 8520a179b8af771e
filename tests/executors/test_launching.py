"""A family's first process may be started before it is asked for, and then is taken, or ends with the program."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from cellblock.cli import main
from cellblock.errors import IsolationUnavailable
from cellblock.executors.process import launching
from cellblock.executors.process.family import Family, Profile


@pytest.fixture
def early() -> Iterator[launching.Launched]:
    launching.launch_early(sys.executable)
    assert launching._early is not None
    yield launching._early
    launching.let_go()


def end(launched: launching.Launched) -> None:
    launched.close()
    launched.process.wait(10)


def test_process_started_early_is_taken_once(early: launching.Launched) -> None:
    assert launching.launch(sys.executable) is early
    another = launching.launch(sys.executable)
    assert another.process.pid != early.process.pid
    end(early)
    end(another)


def test_process_started_early_is_a_familys(early: launching.Launched) -> None:
    family = Family.start(Profile(sys.executable))
    assert family._started.process is early.process
    family.close()


def test_process_of_another_interpreter_is_left(early: launching.Launched) -> None:
    with pytest.raises(IsolationUnavailable) as caught:
        Family.start(Profile("/nonexistent/python"))
    assert caught.value.mechanism == "python"
    assert early.process.poll() is None


def test_process_that_ended_meanwhile_is_not_taken(early: launching.Launched) -> None:
    early.process.kill()
    early.process.wait()
    other = launching.launch(sys.executable)
    assert other is not early
    end(other)


def test_process_that_nobody_took_is_ended(early: launching.Launched) -> None:
    launching.let_go()
    assert early.process.returncode is not None
    launching.let_go()
    other = launching.launch(sys.executable)
    assert other is not early
    end(other)


def test_command_that_opens_no_session_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[launching.Launched] = []

    class Noted(launching.Launched):
        def __init__(self, python: str) -> None:
            super().__init__(python)
            started.append(self)

    monkeypatch.setattr(launching, "Launched", Noted)
    assert main(["run", "/nonexistent/script.py"]) == 2
    assert launching._early is None
    with pytest.raises(ChildProcessError):
        os.waitpid(started[0].process.pid, os.WNOHANG)


def test_early_start_of_no_interpreter_is_told_when_it_is_asked_for() -> None:
    launching.launch_early("/nonexistent/python")
    with pytest.raises(FileNotFoundError):
        launching.launch("/nonexistent/python")
