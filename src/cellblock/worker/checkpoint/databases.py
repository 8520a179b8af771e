"""Connections of sqlite3's in a copy that was woken: connected again where their files are other ones since.

SQLite writes to no file that has another inode number than the one it opened. The files of a branch have other
numbers, and so have those that were put back after they had been removed.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cellblock.worker import late
from cellblock.worker.checkpoint.descriptors import Held

_CODECS = "cellblock.worker.saving.codecs"
_ATTRIBUTES = ("row_factory", "text_factory", "autocommit")
_LOG = "-wal"
_ENDINGS = ("", _LOG, "-shm", "-journal")
"""Of the files that SQLite opens for a database."""


@dataclass(eq=False, slots=True)
class _Connection:
    """A connection, the files of its databases, and the function that connects it again after it was closed.

    There is no such function where the connection has what only the cells can give it.
    """

    value: Any
    files: tuple[str, ...]
    connect: Callable[[], None] | None = None


def connect_again(anew: Collection[Held]) -> tuple[list[tuple[Any, str]], set[str]]:
    """Connect again what is connected to one of these files; the connections that cannot be, each with its file, and
    what of theirs the others had open.

    The first are in a transaction, have functions of the cells' own, or share a file with one that is or has.
    """
    if not anew or "sqlite3" not in sys.modules:
        return [], set()
    were = {one.path: one for one in anew if one.path is not None}
    touched = [one for one in _connections() if any(file + end in were for file in one.files for end in _ENDINGS)]
    for one in touched:
        with contextlib.suppress(Exception):  # the cells' own classes and callbacks may raise anything
            one.connect = _connecting(one.value, were)
    able = [one for one in touched if one.connect is not None]
    unable = [one for one in touched if one.connect is None]
    while bound := [one for one in able if any({*one.files} & {*other.files} for other in unable)]:
        able = [one for one in able if one not in bound]
        unable += bound
    unable += _closed_and_connected(able)
    whole = {file + end for one in able if one not in unable for file in one.files for end in _ENDINGS}
    return [(one.value, file) for one in unable for file in one.files if _is_another(file, were)], whole


def _connections() -> list[_Connection]:
    import sqlite3

    found = []
    for value in [one for one in gc.get_objects() if issubclass(type(one), sqlite3.Connection)]:
        with contextlib.suppress(sqlite3.Error):  # closed, or of a thread that is no more
            found.append(_Connection(value, tuple(file for _, file in _databases(value) if file)))
    return found


def _databases(value: Any) -> list[tuple[str, str]]:
    """The names of a connection's databases, each with its file; "" for one in memory."""
    with _telling_text(value):
        rows = late.load(_CODECS)._ask(value, "pragma database_list")
    return [(name, file) for _, name, file in rows if name != "temp"]


@contextlib.contextmanager
def _telling_text(value: Any) -> Iterator[None]:
    text_factory, value.text_factory = value.text_factory, str
    try:
        yield
    finally:
        value.text_factory = text_factory


def _connecting(value: Any, were: Mapping[str, Held]) -> Callable[[], None] | None:
    import sqlite3

    codecs = late.load(_CODECS)
    attributes = {one: getattr(value, one) for one in _ATTRIBUTES if hasattr(value, one)}
    own = object.__getstate__(value)
    databases = _databases(value)
    with _telling_text(value), contextlib.closing(sqlite3.connect(":memory:")) as fresh:
        if (
            value.in_transaction
            or any(type(one) is type(sys) for one in gc.get_referents(value))  # which a callback has with it
            or any({*codecs._ask(value, one)} - {*codecs._ask(fresh, one)} for one in codecs._REGISTERED)
            or codecs._ask(value, "select name from sqlite_temp_master limit 1")
        ):
            return None
        held = {name: file or codecs._bytes_of(value, name) for name, file in databases}
        told = {one: codecs._ask(value, f"pragma {one}")[0][0] for one in codecs._PRAGMAS}
        changed = {one: now for one, now in told.items() if [(now,)] != codecs._ask(fresh, f"pragma {one}")}
        if codecs._ask(value, "select 'a' like 'A'") == [(0,)]:
            changed["case_sensitive_like"] = 1
        options = {"isolation_level": value.isolation_level, "detect_types": codecs._detected(value)}
    sqlite3.Connection.create_function(value, "abs", 1, None)  # raises where a statement is under way

    def connect() -> None:
        main = held["main"]
        path = main if isinstance(main, str) else ":memory:"
        reads = path in were and were[path].flags & os.O_ACCMODE == os.O_RDONLY
        place = f"file:{''.join(f'%{byte:02x}' for byte in os.fsencode(path))}?mode=ro" if reads else path
        sqlite3.Connection.__init__(value, place, check_same_thread=False, uri=reads, **options)
        codecs.building.set_state(value, own)  # connecting takes attributes of the cells' own away
        for name, content in held.items():
            if name != "main":
                file = content if isinstance(content, str) else ":memory:"
                sqlite3.Cursor(value).execute("attach ? as " + '"' + name.replace('"', '""') + '"', (file,))
            if isinstance(content, bytes) and content:
                value.deserialize(content, name=name)
        for setting, now in changed.items():
            sqlite3.Cursor(value).execute(f"pragma {setting} = {now}")
        for attribute, now in attributes.items():
            setattr(value, attribute, now)

    return connect


def _closed_and_connected(those: list[_Connection]) -> list[_Connection]:
    """The ones that could not be connected again. All are closed before the first is, and none writes as it closes."""
    import sqlite3

    failed = []
    with contextlib.ExitStack() as away:
        for file in {file for one in those for file in one.files if os.path.exists(file + _LOG)}:
            aside = f"{file}.{time.time_ns()}"
            os.rename(file, aside)  # SQLite leaves the log of a database alone that is not at its path
            away.callback(os.rename, aside, file)
        for one in those:
            sqlite3.Connection.close(one.value)
    for one in those:
        try:
            assert one.connect is not None
            one.connect()
        except Exception:  # the file is no database any more, say
            failed.append(one)
    return failed


def _is_another(file: str, were: Mapping[str, Held]) -> bool:
    """True for a file that has another inode number than it had: SQLite asks for no more."""
    return file in were and os.stat(file).st_ino != were[file].identity[1]
