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
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from cellblock.worker import late
from cellblock.worker.checkpoint.descriptors import Held

_CODECS = "cellblock.worker.saving.codecs"
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
            found.append(_Connection(value, tuple(file for _, file in late.load(_CODECS).databases_of(value) if file)))
    return found


def _connecting(value: Any, were: Mapping[str, Held]) -> Callable[[], None] | None:
    import sqlite3

    codecs = late.load(_CODECS)
    own = object.__getstate__(value)
    found = codecs.connected(value)
    if found.left_out or any(type(one) is type(sys) for one in gc.get_referents(value)):  # which a callback has with it
        return None
    sqlite3.Connection.create_function(value, "abs", 1, None)  # raises where a statement is under way

    def connect() -> None:
        main = dict(found.databases)["main"]
        path = main if isinstance(main, str) else ":memory:"
        reads = path in were and were[path].flags & os.O_ACCMODE == os.O_RDONLY
        place = f"file:{''.join(f'%{byte:02x}' for byte in os.fsencode(path))}?mode=ro" if reads else path
        sqlite3.Connection.__init__(value, place, check_same_thread=False, uri=reads, **found.options)
        codecs.building.set_state(value, own)  # connecting takes attributes of the cells' own away
        codecs.building.furnish(value, found.databases, found.settings)
        codecs.building.set_foreign(value, found.attributes)

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
