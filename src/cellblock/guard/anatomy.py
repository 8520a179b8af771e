"""Looks at classes and objects, and knows them by identity, without running any code of theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import GetSetDescriptorType, SimpleNamespace
from typing import Any, Generic, TypeVar
from weakref import ref

T = TypeVar("T")

_DICT = type.__dict__["__dict__"].__get__
_MRO = type.__dict__["__mro__"].__get__
_MODULE = type.__dict__["__module__"].__get__
_NAME = type.__dict__["__name__"].__get__


def namespace(kind: type) -> Mapping[str, Any]:
    """Attributes that a class itself defines."""
    return _DICT(kind)  # type: ignore[no-any-return]


def lineage(kind: type) -> tuple[type, ...]:
    """A class and those it inherits from, in the order in which attributes are looked up."""
    return _MRO(kind)  # type: ignore[no-any-return]


def name_of(kind: type) -> str:
    """A class's own name."""
    return _NAME(kind)  # type: ignore[no-any-return]


def module_of(kind: type) -> str:
    """The name of the module that a class says it is of; "" where that is no text."""
    found = _MODULE(kind)
    return found if type(found) is str else ""


def holder(classes: Iterable[type], name: str) -> type | None:
    """The first of some classes that defines a name."""
    for kind in classes:
        if name in _DICT(kind):
            return kind
    return None


def kind_of(kind: type, name: str) -> type | None:
    """The type of what a class defines, or inherits, under a name; None where there is nothing."""
    where = holder(lineage(kind), name)
    return None if where is None else type(_DICT(where)[name])


def held(value: Any) -> dict[str, Any]:
    """Attributes that an object itself holds, whatever its class says of `__dict__`."""
    for kind in lineage(type(value)):
        found = _DICT(kind).get("__dict__")
        if type(found) is GetSetDescriptorType or (found is not None and kind is SimpleNamespace):
            return found.__get__(value)  # type: ignore[no-any-return]
    return {}


def plain(name: object) -> str:
    """A name as an exact `str`, whatever a subclass of it says of itself; TypeError for what is none."""
    if type(name) is str:
        return name
    if issubclass(type(name), str):
        return str.__str__(name)
    raise TypeError("attribute name must be string, not " + repr(name_of(type(name))))


def exact(value: Any) -> Any:
    """A text, bytes or number as it is without its class's own methods; anything else as it is."""
    if issubclass(type(value), str):
        return str.__str__(value)
    if issubclass(type(value), bytes):
        return value if type(value) is bytes else bytes(memoryview(value))
    if issubclass(type(value), int) and type(value) is not bool:
        return int.__pos__(value)
    return float.__pos__(value) if issubclass(type(value), float) else value


def exactly(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, given exact arguments: what it keeps for the whole process is no object of the code's own."""

    def called(*given: Any, **named: Any) -> Any:
        return function(*map(exact, given), **{name: exact(one) for name, one in named.items()})

    for name in ("__name__", "__qualname__", "__doc__"):
        setattr(called, name, getattr(function, name, None))
    return called


def leaving(rows: dict[int, Any], one: Any) -> ref[Any]:
    """A reference to an object, which takes the object's row out of a table by identity when that is gone.

    That is done by C code, which a cell's end does not interrupt.
    """
    return ref(one, partial(rows.pop, id(one)))


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
