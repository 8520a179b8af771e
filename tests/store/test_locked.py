"""A lock that somebody else holds in a PostgreSQL server: it is waited for so long, told with its remedy, and once."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cellblock import Session, StoreError, Versioned

_SECONDS = 4.0


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> float:
    for place in ("store.postgres._LOCK_SECONDS", "store.sqlite._PATIENCE", "session.session.LOCK_SECONDS"):
        monkeypatch.setattr(f"cellblock.{place}", _SECONDS)
    return _SECONDS


class Locker:
    """Another program that holds what every write needs, from `lock` to `unlock`."""

    def __init__(self, url: str) -> None:
        self._is_sqlite = url.startswith("sqlite")
        if self._is_sqlite:
            self._connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
            return
        import psycopg

        location, _, schema = url.partition("&schema=")
        self._connection = psycopg.connect(location, autocommit=True)
        self._connection.execute(f'SET search_path = "{schema}"')

    def lock(self) -> None:
        if self._is_sqlite:
            self._connection.execute("BEGIN EXCLUSIVE")
        else:
            self._connection.execute("BEGIN")
            self._connection.execute("LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE")

    def unlock(self) -> None:
        self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/cells.db"
    else:
        yield str(request.getfixturevalue("postgres_url"))


@pytest.mark.sampled(1)
def test_lock_of_another_program_is_told_with_its_remedy_and_loses_nothing(url: str, patience: float) -> None:
    with Session("one", state=Versioned(url)) as session:
        session.run("L = []")
        session.flush()
        other = Locker(url)
        other.lock()
        with pytest.raises(StoreError, match="is locked by another program that writes to it") as told:
            session.run("L.append(1)")
        assert "wait until that has ended" in told.value.hint
        other.unlock()
        other.close()
        assert session.run("L.append(2)\nlist(L)").value == [2]
    with Session("one", state=Versioned(url)) as again:
        assert again["L"] == [2]


@pytest.mark.sampled(0)
def test_close_waits_for_a_lock_once(url: str, patience: float) -> None:
    session = Session("one", state=Versioned(url))
    first = session.run("x = 1")
    session.flush()
    other = Locker(url)
    other.lock()
    session.delete(first.id)
    began = time.monotonic()
    with pytest.raises(StoreError, match="is locked by another program that writes to it"):
        session.close()
    assert time.monotonic() - began < 2 * patience
    other.unlock()
    other.close()
