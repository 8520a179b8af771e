"""Signatures and type hints: a signature is read off code, defaults and annotations, and evaluates no text.

Annotations that are texts are source, and are checked before `get_type_hints` has them evaluated.
"""

from __future__ import annotations

import functools
import inspect
import operator
import types
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from cellblock.guard import hints
from cellblock.guard.anatomy import held, holder, lineage, name_of, namespace
from cellblock.guard.tables import BUILTIN_TYPES

if TYPE_CHECKING:
    from cellblock.guard.world import World

_WRAPPERS = 100
"""Functions that one wraps, and that is followed to."""
_PLAIN = (int, float, str, bool, type(None))
_ALIASES = (types.GenericAlias, types.UnionType, *hints.each(lambda typing: typing._GenericAlias))
_ANNOTATED, _LITERAL = (hints.each(attrgetter(name)) for name in ("Annotated", "Literal"))
_WRAPPING = (*_ANNOTATED, *hints.each(lambda typing: typing.Required), *hints.each(lambda typing: typing.NotRequired))
_TEXTS = hints.each(lambda typing: typing.ForwardRef)


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


class Resolver:
    """Resolves the texts in one object's annotations, where the given names are known beside the world's own."""

    def __init__(self, world: World, names: dict[str, Any], *, extras: bool) -> None:
        self._world = world
        self._names = names
        self._extras = extras

    def hint(self, value: Any) -> Any:
        """An annotation without texts, and without what wraps types where extras are not wanted."""
        return self._hint(value) if not isinstance(value, _ALIASES) else self._of_alias(value)

    def _hint(self, value: Any) -> Any:
        if value is None:
            return type(None)
        if isinstance(value, str):
            return self.hint(self._world.evaluate(str.__str__(value), self._names))
        if type(value) in _TEXTS:
            return self.hint(self._world.evaluate(value.__forward_arg__, self._names))
        return value

    def _of_alias(self, value: Any) -> Any:
        origin: Any = hints.of(value).get_origin(value)
        if origin in _LITERAL:
            return value
        if origin in _WRAPPING and not self._extras:
            return self.hint(value.__origin__ if origin in _ANNOTATED else value.__args__[0])
        given: tuple[Any, ...] = value.__args__
        parts = tuple(self.hint(one) for one in given)
        if all(one is other for one, other in zip(parts, given, strict=True)):
            return value
        if isinstance(value, types.UnionType):
            return functools.reduce(operator.or_, parts)
        return types.GenericAlias(origin, parts) if isinstance(value, types.GenericAlias) else value.copy_with(parts)


def get_type_hints_of(world: World) -> Callable[..., dict[str, Any]]:
    """`get_type_hints` of a world."""
    get = world.builtins["getattr"]

    def get_type_hints(
        obj: Any, globalns: Any = None, localns: Any = None, include_extras: bool = False
    ) -> dict[str, Any]:
        given = {**_spelled(world, globalns), **_spelled(world, localns)}
        found: dict[str, Any] = {}
        sources = [obj]
        if isinstance(obj, type):
            sources = [one for one in reversed(lineage(obj)) if world.classes.own(one)]
        elif not callable(obj):
            raise TypeError(f"{obj!r} is not a module, class, method, or function.")
        for source in sources:
            own = world.shown(namespace(source)) if isinstance(source, type) else {}
            resolver = Resolver(world, {**own, **given}, extras=include_extras)
            annotations = get(source, "__annotations__", None) or {}
            found |= {name: resolver.hint(kind) for name, kind in dict(annotations).items()}
        return found

    return get_type_hints


def _spelled(world: World, names: Any) -> dict[str, Any]:
    """Names that code gave: none of those that the guard is called by."""
    return world.shown(dict(names)) if names is not None else {}
