"""An undo whose store fails at any of its steps has happened or has not: in the session as in the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cellblock import Session, StoreError
from cellblock.store import HeldSession

Open = Callable[..., Session]
CALLS = ("log", "resolve", "head", "tree", "record", "get", "get_many", "move", "append", "append_at_once", "trim")


def _have_fail(monkeypatch: pytest.MonkeyPatch, at: int) -> list[str]:
    """Have that call of the store fail, counted from 0; the calls."""
    made: list[str] = []

    def failing(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*given: object, **options: object) -> Any:
            made.append(name)
            if len(made) == at + 1:
                raise StoreError(f"{name} failed")
            return call(*given, **options)

        return called

    for name in CALLS:
        monkeypatch.setattr(HeldSession, name, failing(name, getattr(HeldSession, name)))
    return made


@pytest.mark.sampled(0)
@pytest.mark.parametrize("sleeps", [False, True], ids=["lives", "slept"])
def test_undo_that_fails_in_the_store_is_undone_everywhere_or_nowhere(
    opened: Open, monkeypatch: pytest.MonkeyPatch, sleeps: bool
) -> None:
    at = 0
    while True:
        session = opened(f"s{at}")
        for number in range(1, 4):
            session.run(f"x = {number}", call_id=f"k{number}")
        session.delete("k1")
        session.flush()
        if sleeps:
            session.hibernate()
        with monkeypatch.context() as patched:
            made = _have_fail(patched, at)
            try:
                session.undo()
                undone = True
            except StoreError:
                undone = False
        x = session["x"]
        assert x == 2 or not undone
        assert session.run("y = x", call_id="k4").ok
        expected = [cell.id for cell in session.notebook if not cell.undone]
        assert expected == (["k2", "k4"] if x == 2 else ["k2", "k3", "k4"])
        session.close()
        session = opened(f"s{at}")
        assert ([cell.id for cell in session.notebook], session["x"], session["y"]) == (expected, x, x)
        session.undo()
        assert session["x"] == x
        session.close()
        if len(made) <= at:
            break
        at += 1
    assert at > 2
