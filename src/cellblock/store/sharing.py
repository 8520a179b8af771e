"""Databases that several stores of one process have open: one set of connections and one queue of writers for all."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeAlias

from cellblock.errors import StoreError
from cellblock.hosting.forks import Lock
from cellblock.store.database import Database, Row, Transaction, Value

Key: TypeAlias = "tuple[str | int, ...]"
"""Identity of a database within a process."""

_lock = Lock()
_open: dict[Key, _Entry] = {}


class _Entry:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.users = 0


def shared(identify: Callable[[], Key | None], connect: Callable[[], Database]) -> Database:
    """A database that is open already, or else the one that `connect` opens; closed when nobody has it any more.

    `identify` is asked before and after: it answers None for one that is not there yet, or is nobody else's.
    """
    found = _taken(identify(), None)
    if found is None:
        database = connect()
        found = _taken(identify(), database)
        if found is None:
            return database
    return found


def file_key(path: str) -> Key | None:
    """Identity of a file, other than that of one that was at the same path before."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return ("file", found.st_dev, found.st_ino)


def _taken(key: Key | None, fresh: Database | None) -> Database | None:
    """One more user of an open database; `fresh` becomes it, or is closed if another thread was sooner."""
    if key is None:
        return None
    key = (os.getpid(), *key)
    with _lock:
        entry = _open.get(key)
        if entry is None and fresh is not None:
            entry = _open[key] = _Entry(fresh)
        if entry is None:
            return None
        entry.users += 1
    if fresh is not None and entry.database is not fresh:
        fresh.close()
    return Shared(entry, key)


class Shared:
    """One store's hold of a database that others may have open as well."""

    def __init__(self, entry: _Entry, key: Key) -> None:
        self.dialect = entry.database.dialect
        self._entry = entry
        self._key = key
        self._closed = False

    def select(self, sql: str, *parameters: Value) -> list[Row]:
        return self._database.select(sql, *parameters)

    def once(self, sql: str, *parameters: Value) -> int:
        return self._database.once(sql, *parameters)

    def at_once(self, sql: str, *parameters: Value) -> int | None:
        return self._database.at_once(sql, *parameters)

    def writing(self) -> AbstractContextManager[Transaction]:
        return self._database.writing()

    def sync(self) -> None:
        self._database.sync()

    def now(self) -> float:
        return self._database.now()

    def check(self) -> list[str]:
        return self._database.check()

    def compact(self) -> None:
        self._database.compact()

    def close(self) -> None:
        with _lock:
            if self._closed:
                return
            self._closed = True
            self._entry.users -= 1
            last = self._entry.users == 0
            if last:
                _open.pop(self._key, None)
        if last:
            self._entry.database.close()

    @property
    def _database(self) -> Database:
        if self._closed:
            raise StoreError("the store was closed")
        return self._entry.database
