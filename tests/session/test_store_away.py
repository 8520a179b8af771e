"""A store that fails in the middle of a call: the call says so, and nothing is left of what it had begun."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from cellblock import Session, StoreError
from cellblock.store import open_store
from cellblock.store.database import Transaction, Uncertain
from cellblock.store.sqlite import SqliteDatabase

Open = Callable[..., Session]
NEVER = 10**9


class Failing:
    """Has the store's database fail: by number, from one call on or at one, before or after that has taken effect."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls, self._first, self._last, self._done = 0, NEVER, NEVER, False
        for name in ("select", "once", "at_once", "sync"):
            monkeypatch.setattr(SqliteDatabase, name, self._failing(getattr(SqliteDatabase, name)))
        writing = SqliteDatabase.writing

        @contextmanager
        def failing(database: SqliteDatabase) -> Iterator[Transaction]:
            fails = self._fails()
            if fails and not self._done:
                raise StoreError("the store is away")
            with writing(database) as transaction:
                yield transaction
            if fails:
                raise Uncertain("the answer was lost")

        monkeypatch.setattr(SqliteDatabase, "writing", failing)

    def fail(self, first: int, last: int, *, done: bool = False) -> None:
        """From now on count calls, and fail at those between two numbers; with `done` once they are done."""
        self.calls, self._first, self._last, self._done = 0, first, last, done

    def _fails(self) -> bool:
        self.calls += 1
        return self._first <= self.calls <= self._last

    def _failing(self, call: Callable[..., object]) -> Callable[..., object]:
        def failing(database: SqliteDatabase, *arguments: object) -> object:
            fails = self._fails()
            if fails and not self._done:
                raise StoreError("the store is away")
            found = call(database, *arguments)
            if fails:
                raise Uncertain("the answer was lost")
            return found

        return failing


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Failing:
    return Failing(monkeypatch)


def _names(url: str) -> list[str]:
    with open_store(url) as store:
        return [one.name for one in store.sessions("default")]


@pytest.mark.sampled(0)
@pytest.mark.parametrize("how", ["fails once", "is away until the caller is told", "loses its answer once"])
def test_failed_branch_leaves_its_name_free_and_nothing_in_the_store(
    opened: Open, url: str, store: Failing, how: str
) -> None:
    session = opened()
    session.run("x = [1]")
    failed = 0
    for number in count(1):
        session.flush()
        store.fail(number, NEVER if "until" in how else number, done="answer" in how)
        try:
            branch = session.branch("other")
        except StoreError:
            failed += 1
            store.fail(NEVER, NEVER)
            assert _names(url) == ["one"], number
            branch = session.branch("other")
        calls, _ = store.calls, store.fail(NEVER, NEVER)
        assert branch.run("x").value == [1], number
        branch.close()
        with open_store(url) as other:
            other.delete("default", "other")
        if calls < number:
            break
    assert failed > ("answer" not in how)
    assert session.run("x").value == [1]


THEN: dict[str, Callable[[Session], object]] = {
    "nothing else": lambda session: None,
    "another cell": lambda session: session.run("x.append(3)"),
    "sleep": lambda session: (session.hibernate(), session["x"]),
    "undo": lambda session: session.undo(),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("then", THEN)
def test_cell_that_the_store_refused_is_in_no_notebook(
    opened: Open, store: Failing, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    """Its entry may have been written: the server went away before it could say so."""
    session = opened()
    session.run("x = [1]")
    session.run("x.append(2)")
    session.flush()
    at_once = SqliteDatabase.at_once
    monkeypatch.setattr(SqliteDatabase, "at_once", lambda *_: None)  # as of a server
    store.fail(1, 1, done=True)
    select = SqliteDatabase.select
    away = [True]

    def selected(*arguments: object) -> object:
        if away:
            raise StoreError("the store is away")
        return select(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(SqliteDatabase, "select", selected)
    with pytest.raises(StoreError):
        session.run("x.append('never')")
    away.clear()
    store.fail(NEVER, NEVER)
    monkeypatch.setattr(SqliteDatabase, "at_once", at_once)
    THEN[then](session)
    had = session["x"], [cell.source for cell in session.notebook if not cell.undone]
    assert "never" not in str(had)
    session.close()
    session = opened()
    assert session.resumed is not None
    assert session.resumed.interrupted is None
    assert (session["x"], [cell.source for cell in session.notebook if not cell.undone]) == had
