"""A table of objects by their identity, which runs no code of theirs and keeps none of them alive."""

from __future__ import annotations

from typing import Any, Generic, TypeVar
from weakref import ref

T = TypeVar("T")


def leaving(rows: dict[int, Any], one: Any) -> ref[Any]:
    """A reference to an object, which takes the object's row out of a table by identity when that is gone."""
    key = id(one)

    def gone(_: object) -> None:
        rows.pop(key, None)

    return ref(one, gone)


class ByIdentity(Generic[T]):
    """Something known of each of some objects, for as long as that object lives.

    Looking an object up neither hashes nor compares it: both are up to a class's metaclass.
    """

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: dict[int, tuple[ref[Any], T]] = {}

    def put(self, one: Any, known: T) -> None:
        """Have this known of an object."""
        self._rows[id(one)] = (leaving(self._rows, one), known)

    def get(self, one: object) -> T | None:
        """The known of an object; None where it is in no row."""
        row = self._rows.get(id(one))
        return None if row is None else row[1]

    def __contains__(self, one: object) -> bool:
        return id(one) in self._rows
