"""The seam between the store and where its tables lie: a few methods, and SQL that both SQLite and PostgreSQL read.

Statements have `?` for parameters and take them apart from the text. What they cannot say in common is in `Dialect`.
Errors of a driver come out as `StoreError`. Stores of one process over one database share it: one set of connections,
and one queue of writers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from cellblock.errors import StoreError
from cellblock.hosting.forks import Lock

Value: TypeAlias = "int | float | str | bytes | None"
Row: TypeAlias = "tuple[Value, ...]"
_Key = TypeVar("_Key", bytes, tuple[str, str])


LOCKED = "is locked by another program that writes to it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """Differences between databases: types of columns, what makes a table one tree by key, how a SELECT keeps its rows
    from others, and what has an INSERT take an `id` that it names."""

    name: str
    serial: str
    keyed: str
    blob: str
    text: str
    real: str
    for_update: str
    for_share: str
    own_id: str


class Transaction(Protocol):
    """Statements that take effect together or not at all, and alone."""

    def rows(self, sql: str, *parameters: Value) -> list[Row]:
        """Rows that a statement selects."""

    def run(self, sql: str, *parameters: Value) -> int:
        """Execute a statement; how many rows it changed."""

    def many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        """Execute a statement for each of some rows."""


class Database(Protocol):
    """A database with the tables. Methods may be called from any thread."""

    dialect: Dialect

    def select(self, sql: str, *parameters: Value) -> list[Row]:
        """One SELECT by itself."""

    def once(self, sql: str, *parameters: Value) -> int:
        """One statement as a transaction of its own; how many rows it changed. Others' `writing` may be waited for."""

    def at_once(self, sql: str, *parameters: Value) -> int | None:
        """The same, for an event loop: None, and nothing is done, where anything has to be waited for."""

    def writing(self) -> AbstractContextManager[Transaction]:
        """A transaction that is committed at its end, or rolled back by an exception."""

    def sync(self) -> None:
        """Return when all that was committed outlives a loss of power."""

    def now(self) -> float:
        """Seconds since 1970 by a clock that all hosts of the database share. Not within `writing`."""

    def home(self) -> str:
        """What tells it from a copy of it, elsewhere or in its place."""

    def check(self) -> list[str]:
        """Damage of the tables themselves, as the database tells it; empty where that cannot be asked."""

    def compact(self) -> None:
        """Give the space of deleted rows back to the disk, as far as that can be had beside others."""

    def close(self) -> None:
        """Let go of it."""


class Uncertain(StoreError):
    """The connection broke while a transaction was being committed: it may have taken effect or not."""


# --- databases that stores of this process share --------------------------------------------------------------

Key: TypeAlias = "tuple[str | int, ...]"
"""Identity of a database within a process."""

_lock = Lock()
_open: dict[Key, _Entry] = {}


@dataclass(slots=True)
class _Entry:
    database: Database
    users: int = 0


def shared(identify: Callable[[], Key | None], connect: Callable[[], Database]) -> Database:
    """A database that is open already, or else the one that `connect` opens; closed when nobody has it any more.

    `identify` is asked before and after: it answers None for one that is not there yet, or is nobody else's.
    """
    found = _taken(identify(), None)
    if found is None:
        database = connect()
        found = _taken(identify(), database) or database
    return found


def _taken(key: Key | None, fresh: Database | None) -> Database | None:
    """One more user of an open database; `fresh` becomes it, or is closed if another thread was sooner."""
    if key is None:
        return None
    key = (os.getpid(), *key)
    with _lock:
        if fresh is not None:
            _open.setdefault(key, _Entry(fresh))
        if (entry := _open.get(key)) is None:
            return None
        entry.users += 1
    if fresh is not None and entry.database is not fresh:
        fresh.close()
    return cast(Database, _SharedDatabase(entry, key))


class _SharedDatabase:
    """A database that other stores may have open as well, until this one closes it."""

    def __init__(self, entry: _Entry, key: Key) -> None:
        self._entry = entry
        self._key = key
        self._closed = False

    def __getattr__(self, name: str) -> Any:
        if self._closed:
            raise StoreError("the store was closed")
        return getattr(self._entry.database, name)

    def close(self) -> None:
        with _lock:
            if self._closed:
                return
            self._closed = True
            self._entry.users -= 1
            if self._entry.users:
                return
            _open.pop(self._key, None)
        self._entry.database.close()


# --- statements and columns -----------------------------------------------------------------------------------


def placed(sql: str, values: Sequence[object]) -> str:
    """A statement with `(??)` made into a place for each value."""
    return sql.replace("(??)", "(" + ",".join("?" * len(values)) + ")")


def number(value: Value) -> int:
    """A column that holds an integer. StoreError: it does not, as in a damaged file."""
    if not isinstance(value, int):
        raise _damaged(value, "integer")
    return value


def text(value: Value) -> str:
    """A column that holds text."""
    if not isinstance(value, str):
        raise _damaged(value, "text")
    return value


def blob(value: Value) -> bytes:
    """A column that holds bytes."""
    if not isinstance(value, bytes):
        raise _damaged(value, "bytes")
    return value


def only(rows: Sequence[Row]) -> Row:
    """The one row of a key that others name. StoreError: it is out of sight, as in a damaged file."""
    if not rows:
        raise StoreError("a table of the store is damaged: a row that others name is not there", hint=_REPAIR)
    return rows[0]


def risen(last: _Key, key: _Key) -> _Key:
    """The key of the next of some rows in order. StoreError: it is no larger than the last, as in a damaged file, where
    a reader of page after page would come to the same rows again and again.
    """
    if key <= last:
        raise StoreError("a table of the store is damaged: its rows are in no order", hint=_REPAIR)
    return key


def _damaged(value: Value, wanted: str) -> StoreError:
    return StoreError(
        f"a table of the store is damaged: {str(value)[:40]!r} stands where {wanted} should", hint=_REPAIR
    )


_REPAIR = "cellblock sessions verify tells what is lost; restore a copy"
