"""The border of a supervisor's loop: what fails is told, and nothing ends but what nobody can look at."""

from __future__ import annotations

from collections.abc import Mapping

from cellblock.worker.border import Border


def _fail() -> None:
    raise OSError("no more")


def test_failure_is_told_once_of_its_kind_and_each_time_to_who_asked() -> None:
    told: list[Mapping[str, object]] = []
    border = Border(told.append)
    assert [border.carry_out("hear", _fail) for _ in range(3)] == [False] * 3
    assert [border.carry_out("keep", _fail, asked=True) for _ in range(2)] == [False] * 2
    assert [one["failed"] for one in told] == ["hear", "keep", "keep"]
    assert str(told[0]["reason"]).startswith("OSError: no more (test_border.py:")
    assert border.carry_out("hear", lambda: None)


def test_session_that_cannot_be_looked_at_three_times_in_a_row_is_ended() -> None:
    ended: list[int] = []
    border = Border(lambda _: None)
    for step in (_fail, _fail, lambda: None, _fail, _fail, _fail, _fail):
        border.look(step, lambda: ended.append(1))
    assert len(ended) == 2
