"""Signatures read off functions alone: of code, defaults and annotations, and of no text, which would be evaluated."""

from __future__ import annotations

import functools
import inspect
import types
from typing import TYPE_CHECKING, Any

from cellblock.guard.anatomy import held, holder, lineage, name_of, namespace
from cellblock.guard.tables import BUILTIN_TYPES

if TYPE_CHECKING:
    from cellblock.guard.world import World

_WRAPPERS = 100
"""Functions that one wraps, and that is followed to."""
_PLAIN = (int, float, str, bool, type(None))


def signature_of(world: World, value: Any) -> inspect.Signature:
    """The signature of what may be called; ValueError where none can be told, TypeError for anything else.

    Of functions of the host's, without what their defaults hold.
    """
    for _ in range(_WRAPPERS):
        inner = held(value).get("__wrapped__") if type(value) is not types.MethodType else None
        if inner is None:
            break
        value = inner
    kind: Any = type(value)
    if kind is types.FunctionType:
        found = inspect.signature(_bare(value))
        return found if world.made(value) else inspect.Signature([*map(_shown, found.parameters.values())])
    if kind is types.MethodType:
        return _without_first(signature_of(world, value.__func__))
    if issubclass(kind, functools.partial):
        func, given, named = (getattr(functools.partial, one).__get__(value) for one in ("func", "args", "keywords"))
        if type(func) is types.FunctionType and world.made(func):
            return inspect.signature(functools.partial(_bare(func), *given, **named))
    if kind is types.BuiltinFunctionType or (kind is type and value in BUILTIN_TYPES):
        return inspect.signature(value)
    if issubclass(kind, type):
        if world.classes.own(value) and (method := _first(lineage(value), "__init__", "__new__")) is not None:
            return _without_first(signature_of(world, method))
        if world.classes.own(value) and lineage(value)[1:] == (object,):
            return inspect.Signature()
    elif world.classes.own(kind) and (method := _first(lineage(kind), "__call__")) is not None:
        return _without_first(signature_of(world, method))
    elif holder(lineage(kind), "__call__") is None:
        raise TypeError(f"{value!r:.200} is not a callable object")
    raise ValueError(f"no signature found for {name_of(value if issubclass(kind, type) else kind)!r}")


def _bare(function: types.FunctionType) -> types.FunctionType:
    """A function without what was set on it."""
    bare = types.FunctionType(function.__code__, {}, function.__name__, function.__defaults__, function.__closure__)
    bare.__kwdefaults__, bare.__annotations__ = function.__kwdefaults__, function.__annotations__
    return bare


def _first(classes: tuple[type, ...], *names: str) -> Any:
    """The first function that classes have under one of some names."""
    for kind in classes:
        for name in names:
            found = namespace(kind).get(name)
            found = found.__func__ if type(found) is staticmethod else found
            if type(found) is types.FunctionType:
                return found
    return None


def _without_first(found: inspect.Signature) -> inspect.Signature:
    parameters = list(found.parameters.values())
    many = bool(parameters) and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL
    return found.replace(parameters=parameters if many else parameters[1:])


def _shown(one: inspect.Parameter) -> inspect.Parameter:
    plain = type(one.default) in _PLAIN or one.default is inspect.Parameter.empty
    return one.replace(annotation=inspect.Parameter.empty, default=one.default if plain else ...)
