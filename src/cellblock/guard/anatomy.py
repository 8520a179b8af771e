"""Looks at classes and objects without running any code of theirs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import GetSetDescriptorType, SimpleNamespace
from typing import Any

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
