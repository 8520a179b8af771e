"""Types that have a way to be saved and loaded, but cannot be pickled. Cells may register more."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from cellblock.worker.import_hooks import on_import
from cellblock.worker.saving import building, imported, settings
from cellblock.worker.saving.losses import Unsaved, advice
from cellblock.worker.saving.pickler import Reduced, Saving, reducer, registered

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
    otherwise in a module of its name that holds nothing else. The settings of the process are those of a new worker,
    and modules that are imported from here on keep their code.
    """
    on_import(_NAME, _give)
    sys.meta_path.append(_Face())
    settings.begin()
    imported.begin()


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


@reducer("sqlite3.Connection")
def _database(saving: Saving, value: sqlite3.Connection) -> Reduced:
    """A database in memory, with those attached to it, or a closed one."""
    if _is_closed(value):
        attributes = {"row_factory": value.row_factory, "text_factory": value.text_factory}
        return building.closed_database, (), attributes, None, None, building.set_foreign
    if dict(databases_of(value))["main"]:  # where `losses` could not tell
        raise Unsaved(value, *advice(value))
    found = connected(value)
    saving.notes += [(value, what, remedy) for what, remedy in found.left_out]
    arguments = found.options, found.databases, found.settings
    return building.databases, arguments, found.attributes, None, None, building.set_foreign


@dataclass(frozen=True, slots=True)
class Connected:
    """The makings of a connection like one: arguments, databases by name with their file or bytes, settings that are
    not the usual ones, and attributes. `left_out` is what it has that no other can be given, each with the remedy.
    """

    options: dict[str, Any]
    databases: list[tuple[str, bytes | str]]
    settings: dict[str, Any]
    attributes: dict[str, Any]
    left_out: list[tuple[str, str]]


def connected(value: sqlite3.Connection) -> Connected:
    """Read a connection. `sqlite3.Error` where it does not tell, as it is closed or of another thread."""
    attributes = {one: getattr(value, one) for one in _ATTRIBUTES if hasattr(value, one)}
    with _telling_text(value), closing(sqlite3.connect(":memory:")) as fresh:
        settings = {one: _ask(value, f"pragma {one}")[0][0] for one in _PRAGMAS}
        changed = {one: told for one, told in settings.items() if [(told,)] != _ask(fresh, f"pragma {one}")}
        if _ask(value, "select 'a' like 'A'") == [(0,)]:
            changed["case_sensitive_like"] = 1
        left_out = (
            ("its open transaction", "commit or roll back before the cell ends (what it changed comes back committed)",
             value.in_transaction),
            ("its temporary tables", "create them again in the next cell",
             _ask(value, "select name from sqlite_temp_master limit 1")),
            ("its registered functions and collations", "register them again in the next cell",
             any(set(_ask(value, one)) - set(_ask(fresh, one)) for one in _REGISTERED)),
        )  # fmt: skip
        return Connected(
            options={"isolation_level": value.isolation_level, "detect_types": _detected(value)},
            databases=[(name, file or _bytes_of(value, name)) for name, file in databases_of(value)],
            settings=changed,
            attributes=attributes,
            left_out=[(what, remedy) for what, remedy, is_there in left_out if is_there],
        )


def databases_of(value: sqlite3.Connection) -> list[tuple[str, str]]:
    """The names of a connection's databases, each with its file; "" for one in memory."""
    with _telling_text(value):
        listed = [(name, file) for _, name, file in _ask(value, "pragma database_list") if name != "temp"]
    return [(name, file if file.startswith("/") else "") for name, file in listed]


@contextmanager
def _telling_text(value: sqlite3.Connection) -> Iterator[None]:
    """While a connection gives text as `str`, whatever its cells have it give."""
    text_factory, value.text_factory = value.text_factory, str
    try:
        yield
    finally:
        value.text_factory = text_factory


def _is_closed(connection: sqlite3.Connection) -> bool:
    try:
        connection.total_changes  # noqa: B018  # any use of a closed one raises
    except sqlite3.ProgrammingError:
        return True
    return False


_ATTRIBUTES = ("row_factory", "text_factory", "autocommit")
"""The last is there from Python 3.12 on."""
_PRAGMAS = (
    "analysis_limit", "automatic_index", "busy_timeout", "cache_size", "cell_size_check", "foreign_keys",
    "full_column_names", "ignore_check_constraints", "journal_mode", "legacy_alter_table", "max_page_count",
    "query_only", "recursive_triggers", "reverse_unordered_selects", "secure_delete", "short_column_names",
    "synchronous", "temp_store", "trusted_schema", "writable_schema",
)  # fmt: skip
"""Settings of a connection; those of a database are in its bytes."""
_REGISTERED = (
    "select name, narg from pragma_function_list where name not like 'like'",
    "select name from pragma_collation_list",
)


def _ask(connection: sqlite3.Connection, query: str) -> list[Any]:
    """The rows of a query, past what a cell's own class or settings make of them."""
    cursor = sqlite3.Cursor(connection)
    cursor.row_factory = None
    return cursor.execute(query).fetchall()


def _bytes_of(connection: sqlite3.Connection, name: str) -> bytes:
    pages = _ask(connection, f'pragma "{name}".page_count')[0][0]
    return connection.serialize(name=name) if pages else b""


def _detected(connection: sqlite3.Connection) -> int:
    """The `detect_types` of a connection, which it does not tell: found by a column of a declared type, TEXT."""
    (column, *_), *_ = connection.execute("select 1 as 'one [two]'").description
    converters = sqlite3.converters
    before = dict(converters)
    converters["TEXT"] = lambda _: None
    try:
        declared = (None,) in _ask(connection, "select type from sqlite_master limit 1")
    finally:
        converters.clear()
        converters.update(before)
    return (sqlite3.PARSE_COLNAMES if column == "one" else 0) | (sqlite3.PARSE_DECLTYPES if declared else 0)
