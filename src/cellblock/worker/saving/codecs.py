"""Types that have a way to be saved and loaded, but cannot be pickled. Cells may register more."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from cellblock.worker.import_hooks import on_import
from cellblock.worker.saving import building
from cellblock.worker.saving.losses import Unsaved
from cellblock.worker.saving.pickler import Reduced, Saving, named, registered

_NAME = "cellblock"


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
    registered[kind] = (save, load)


def offer() -> None:
    """Have `cellblock.codec` of cells be the above: in the package where the session's environment has it, and
    otherwise in a module of its name that holds nothing else.
    """
    on_import(_NAME, _give)
    sys.meta_path.append(_Face())


def _give(module: Any) -> None:
    module.codec = codec


class _Face:
    """Finds the module where no other finder does."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(_NAME, self) if name == _NAME else None  # type: ignore[arg-type]

    def create_module(self, _: ModuleSpec) -> ModuleType:
        return ModuleType(_NAME, "What code in a session may ask of the session itself.")

    def exec_module(self, _: ModuleType) -> None:
        """All that it holds is given to it once it is imported."""


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
