"""A table of objects by their identity, which runs no code of theirs and keeps none of them alive."""

from __future__ import annotations

from typing import Any, Generic, TypeVar
from weakref import ref

T = TypeVar("T")


class ByIdentity(Generic[T]):
    """Something known of each of some objects, for as long as that object lives.

    Looking an object up neither hashes nor compares it: both are up to a class's metaclass.
    """

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: dict[int, tuple[ref[Any], T]] = {}

    def put(self, one: Any, known: T) -> None:
        """Have this known of an object."""
        rows, key = self._rows, id(one)

        def gone(_: object) -> None:
            rows.pop(key, None)

        rows[key] = (ref(one, gone), known)

    def get(self, one: object) -> T | None:
        """What is known of an object; None where it is in no row."""
        row = self._rows.get(id(one))
        return None if row is None else row[1]

    def __contains__(self, one: object) -> bool:
        return id(one) in self._rows
