"""`typing.get_type_hints` behind the guard: what annotations say as text is source, and is checked before it is run."""

from __future__ import annotations

import functools
import operator
import types
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cellblock.guard.anatomy import lineage, namespace

if TYPE_CHECKING:
    from cellblock.guard.world import World

_ALIASES = (types.GenericAlias, types.UnionType, vars(typing)["_GenericAlias"])
_WRAPPERS = (typing.Annotated, typing.Required, typing.NotRequired)


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
        if type(value) is typing.ForwardRef:
            return self.hint(self._world.evaluate(value.__forward_arg__, self._names))
        return value

    def _of_alias(self, value: Any) -> Any:
        origin: Any = typing.get_origin(value)
        if origin is typing.Literal:
            return value
        if origin in _WRAPPERS and not self._extras:
            return self.hint(value.__origin__ if origin is typing.Annotated else value.__args__[0])
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
