"""Types that have a way to be saved and loaded, but cannot be pickled. Cells may register more."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from types import ModuleType
from typing import Any

from cellblock.worker.saving import building
from cellblock.worker.saving.losses import Unsaved
from cellblock.worker.saving.pickler import CODECS, Reduced, Saving, named


def codec(kind: type, *, save: Callable[[Any], Any], load: Callable[[Any], Any]) -> None:
    """Have values of a type, and of types derived from it, saved by `save(value)` and made again by `load(saved)`.

    What `save` gives is anything that can be saved itself, such as bytes. Both functions are saved with the session.
    """
    given: Any = kind
    if not isinstance(given, type):
        raise TypeError(f"a codec is for a type, not for {type(given).__name__} (give it the class itself)")
    for name, function in (("save", save), ("load", load)):
        if not callable(function):
            raise TypeError(f"{name} of a codec is a function, not {type(function).__name__}")
    CODECS[kind] = (save, load)


def face(name: str = "cellblock") -> ModuleType:
    """The module that cells find when they import the package: `codec` is all it has."""
    made = ModuleType(name, "What code in a session may ask of the session itself.")
    made.codec = codec  # type: ignore[attr-defined]
    return made


@named("sqlite3.Connection")
def _database(_: Saving, value: sqlite3.Connection) -> Reduced:
    """A database in memory. One that is a file is opened again by whoever needs it."""
    files = [row[2] for row in _unformatted(value, "pragma database_list")]
    if any(files):
        raise Unsaved(value, "an open database", "connect again in the next cell")
    return building.database, (value.serialize(), value.isolation_level, value.row_factory, value.text_factory)


def _unformatted(connection: sqlite3.Connection, query: str) -> list[Any]:
    cursor = sqlite3.Cursor(connection)
    cursor.row_factory = None
    return cursor.execute(query).fetchall()
