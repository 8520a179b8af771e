"""Containers that are kept ready: as many as were asked for, none that has ended, none that nobody wants any more."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from cellblock.executors.container import launcher
from cellblock.executors.container.launcher import Pool

BOX: Any = "a box"
KIND: Any = "a kind"


class Family:
    """A container that takes no time to start."""

    ready = True

    def close(self) -> None:
        self.ready = False


def taken(pool: Pool) -> Family:
    family: Any = pool.take(BOX, KIND)
    assert isinstance(family, Family)
    return family


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Family]:
    """All containers that were started; what a thread would do beforehand is done at once."""
    families: list[Family] = []

    def start(*_: object) -> Family:
        families.append(Family())
        return families[-1]

    def begun(function: Callable[[], None], *, name: str) -> None:
        function()

    monkeypatch.setattr(launcher, "ContainerFamily", SimpleNamespace(started=start))
    monkeypatch.setattr(launcher, "begun", begun)
    return families


def test_one_that_is_taken_is_made_up_for(started: list[Family]) -> None:
    pool = Pool()
    assert taken(pool) is started[0]
    assert len(started) == 1
    pool.keep(BOX, KIND, 2)
    assert taken(pool) is started[1]
    assert len(started) == 4


def test_one_that_has_ended_is_not_given(started: list[Family]) -> None:
    pool = Pool()
    pool.keep(BOX, KIND, 2)
    started[0].close()
    assert taken(pool) is started[1]
    assert [one.ready for one in started] == [False, True, True, True]


def test_those_that_nobody_wants_are_ended(started: list[Family]) -> None:
    pool = Pool()
    pool.keep(BOX, KIND, 3)
    one_taken = taken(pool)
    pool.keep(BOX, KIND, 1)
    assert sum(one.ready for one in started) == 2
    pool.close()
    assert [one for one in started if one.ready] == [one_taken]


def test_failure_is_told_to_who_asks_and_no_more_are_kept(
    started: list[Family], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Family:
        raise OSError("no engine")

    pool = Pool()
    with monkeypatch.context() as without_engine:
        without_engine.setattr(launcher, "ContainerFamily", SimpleNamespace(started=fail))
        with pytest.raises(OSError, match="no engine"):
            pool.keep(BOX, KIND, 1)
    taken(pool)
    assert len(started) == 1


def test_failure_beforehand_is_logged_and_the_session_opens(
    started: list[Family], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> Family:
        raise OSError("no engine")

    pool = Pool()
    pool.keep(BOX, KIND, 1)
    monkeypatch.setattr(launcher, "ContainerFamily", SimpleNamespace(started=fail))
    assert taken(pool) is started[0]
    assert "no container could be started beforehand: no engine" in caplog.text
