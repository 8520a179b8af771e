"""Methods read from a class that code did not make: they take its instances and nothing else.

CPython asks that of what is written in C. A Python function takes whatever it is given, and reads and sets attributes
of it that no gate is asked about.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from cellblock.guard.anatomy import lineage, name_of, namespace
from cellblock.guard.refusal import denied

_CACHED = type(functools.lru_cache(lambda: None))
_FUNCTIONS = (types.FunctionType, _CACHED)
_CHECKED_BY_C = (
    types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType, types.BuiltinFunctionType,
    types.GetSetDescriptorType, types.MemberDescriptorType, staticmethod, classmethod,
)  # fmt: skip


class Unbound:
    """Functions and properties of classes, as code gets them from the class. Each is made once."""

    def __init__(self) -> None:
        self._made: dict[tuple[type, str], Any] = {}

    def of(self, where: type, name: str, *, host: bool) -> Any:
        """Stand-in for an attribute that `where` defines; None where that may be had as it is.

        `host`: the class is one that the policy grants, whose descriptors of other kinds are its own affair.
        """
        found = self._made.get((where, name))
        if found is None:
            found = self._checked(where, name, namespace(where).get(name), host=host)
            if found is not None:
                self._made[where, name] = found
        return found

    def _checked(self, where: type, name: str, value: Any, *, host: bool) -> Any:
        kind = type(value)
        if kind in _FUNCTIONS:
            return of_instances(where, name, value)
        if issubclass(kind, property):
            get, put, drop = (one and of_instances(where, name, one) for one in (value.fget, value.fset, value.fdel))
            return property(get, put, drop, value.__doc__)
        if not host and kind not in _CHECKED_BY_C and not isinstance(value, type) and hasattr(kind, "__get__"):
            raise denied(f"attribute {name!r} of class {name_of(where)!r} is not granted")
        return None


def of_instances(where: type, name: str, function: Any) -> Callable[..., Any]:
    """A function of a class, for its instances alone."""

    def unbound(instance: Any, /, *given: Any, **named: Any) -> Any:
        require_instance(where, name, instance)
        return function(instance, *given, **named)

    for part in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(unbound, part, getattr(function, part, None) or name)
    return unbound


def require_instance(where: type, name: str, instance: Any) -> None:
    """That an object inherits from a class, whatever either says of itself; a TypeError as CPython words it."""
    if where not in lineage(type(instance)):
        got = name_of(type(instance))
        raise TypeError(f"descriptor {name!r} for {name_of(where)!r} objects doesn't apply to a {got!r} object")
