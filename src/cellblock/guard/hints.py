"""The `typing` that cells have: the running Python's own source, evaluated once more, without its caches.

The program's own keeps what is subscripted by what that says of its hash and of what it equals. So an object of a
cell's could stand where the program has one of its classes, and be asked by the program from then on. From Python 3.12
on, parts of `typing` are written in C and lead to the program's own: there, and beside trusted packages, which know the
program's own alone, cells have that.
"""

from __future__ import annotations

import builtins
import functools
import importlib.util
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

from cellblock.guard.anatomy import held

_MOST_TEXT = 10_000
"""Characters of a text that stands for a type."""


def _uncached(function: Any = None, **_: Any) -> Any:
    """`functools.lru_cache`, which keeps nothing."""
    if function is None:
        return _uncached
    function.cache_clear = lambda: None
    return function


def _compile(source: str, *given: Any, **named: Any) -> Any:
    if len(source) > _MOST_TEXT:
        raise SyntaxError(f"a text of {len(source):,} characters is no type: the most are {_MOST_TEXT:,} [size]")
    return compile(source, *given, **named)


def _beside(module: types.ModuleType, **other: Any) -> types.ModuleType:
    """A module with the members of another, and others in place of some."""
    found = types.ModuleType(module.__name__)
    vars(found).update(vars(module), **other)
    return found


def _made() -> types.ModuleType:
    loader: Any = getattr(importlib.util.find_spec("typing"), "loader", None)
    instead = {
        "functools": _beside(functools, lru_cache=_uncached),
        "sys": _beside(sys, modules={}),  # it puts modules of its own there
    }

    def imported(name: str, *given: Any) -> Any:
        return instead.get(name) or builtins.__import__(name, *given)

    made = types.ModuleType("typing")
    vars(made)["__builtins__"] = {**vars(builtins), "__import__": imported, "compile": _compile}
    exec(loader.get_code("typing"), vars(made))  # noqa: S102 - the running Python's own
    vars(made)["sys"] = sys
    return made


OF_CELLS: Any = _made() if sys.version_info < (3, 12) else typing
BOTH: tuple[Any, ...] = (typing, OF_CELLS) if OF_CELLS is not typing else (typing,)
"""Modules whose types cells meet: what the program has annotated is of its own."""
_KINDS = frozenset(id(one) for one in vars(OF_CELLS).values() if isinstance(one, type))


def of(value: object) -> Any:
    """The module that a class, or an object of one of its classes, is of; the program's for any other object."""
    return OF_CELLS if id(type(value)) in _KINDS or id(value) in _KINDS else typing


def each(look: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The same of each of the modules."""
    return tuple(look(one) for one in BOTH)


_FORWARDING = tuple(typing._BaseGenericAlias for typing in BOTH)
_origin = vars(types.GenericAlias)["__origin__"].__get__
_super_self = vars(super)["__self__"].__get__


def unaliased(value: Any) -> Any:
    """The object that an alias, `list[int]` or `Annotated[x, 1]`, a method or a `super` takes its attributes from; any
    other as it is.
    """
    while True:
        kind = type(value)
        if issubclass(kind, types.GenericAlias):
            value = _origin(value)
        elif kind is types.MethodType and type(value.__func__) is not types.FunctionType:
            value = value.__func__
        elif kind is super:
            value = _super_self(value)
        elif issubclass(kind, _FORWARDING):
            value = held(value)["__origin__"]
        else:
            return value
