"""`copy` behind the gates: what code made and what is data is copied; what the host holds is not."""

from __future__ import annotations

import copy
import copyreg
import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from cellblock.guard.anatomy import holder, lineage, module_of, name_of, namespace
from cellblock.guard.builtins import Globals
from cellblock.guard.names import names
from cellblock.guard.owndict import OwnDict
from cellblock.guard.printing import Stream
from cellblock.guard.refusal import denied
from cellblock.guard.standins import LongRange, Module, TypeOfTypes, TypeStandIn
from cellblock.guard.tables import ModuleAudit, audit

if TYPE_CHECKING:
    from cellblock.guard.world import World

_AS_THEY_ARE = (
    *(type(None), type(...), type(NotImplemented), int, float, bool, complex, str, bytes, range, slice, property),
    *(types.FunctionType, types.BuiltinFunctionType, types.MethodType, weakref.ref, types.UnionType, ZoneInfo),
    *(Stream, LongRange, Module, TypeOfTypes, TypeStandIn),
)
_MAKERS = (vars(copyreg)["__newobj__"], vars(copyreg)["__newobj_ex__"], vars(copyreg)["_reconstructor"])


class _Copier:
    """Copies values for one world. `memo` maps the `id` of what was copied to its copy."""

    def __init__(self, world: World) -> None:
        self._world = world

    def shallow(self, value: Any) -> Any:
        return self._copied(value, "__copy__", lambda one: one, None)

    def deep(self, value: Any, memo: dict[int, Any]) -> Any:
        found = memo.get(id(value), memo)
        if found is not memo:
            return found
        made = self._deep(value, memo)
        if made is not value:
            memo[id(value)] = made
            memo.setdefault(id(memo), []).append(value)  # so that its id stays its own
        return made

    def _deep(self, value: Any, memo: dict[int, Any]) -> Any:
        kind = type(value)
        if kind is list:
            made: Any = []
            memo[id(value)] = made
            made.extend(self.deep(one, memo) for one in value)
            return made
        if kind is dict:
            made = {}
            memo[id(value)] = made
            for key, one in value.items():
                made[self.deep(key, memo)] = self.deep(one, memo)
            return made
        if kind is tuple:
            parts = [self.deep(one, memo) for one in value]
            if id(value) in memo:
                return memo[id(value)]
            return value if all(one is part for one, part in zip(parts, value, strict=True)) else tuple(parts)
        return self._copied(value, "__deepcopy__", lambda one: self.deep(one, memo), memo)

    def _copied(self, value: Any, hook: str, part: Callable[[Any], Any], memo: dict[int, Any] | None) -> Any:
        kind = type(value)
        if kind in _AS_THEY_ARE or issubclass(kind, type):
            return value
        if kind is Globals or kind is OwnDict:
            return part(dict(value)) if memo is None else self.deep(dict(value), memo)
        own = self._world.classes.own(kind)
        if not own and module_of(kind) in self._world.trusted:
            return copy.copy(value) if memo is None else copy.deepcopy(value, memo)
        where = holder(lineage(kind), hook)
        if where is not None and self._world.classes.own(where):
            method = getattr(kind, hook)
            return method(value) if memo is None else method(value, memo)
        self._require(kind, own)
        if where is not None:
            return copy.copy(value) if memo is None else self._library(value, kind, memo)
        if memo is None and kind in (list, dict, set, bytearray, tuple, frozenset):
            return copy.copy(value)
        return self._rebuilt(value, kind, part, memo)

    def _library(self, value: Any, kind: type, memo: dict[int, Any]) -> Any:
        """By the class's own method, whose parts come from this copier where it can hold any."""
        if namespace(kind).get("__module__") == "collections":
            return kind.__deepcopy__(value, memo) if kind.__name__ != "deque" else self._deque(value, kind, memo)  # type: ignore[attr-defined]
        return kind.__deepcopy__(value, memo)  # type: ignore[attr-defined]

    def _deque(self, value: Any, kind: Any, memo: dict[int, Any]) -> Any:
        return kind((self.deep(one, memo) for one in value), value.maxlen)

    def _require(self, kind: type, own: bool) -> None:
        hosts = self._world.host_types
        if any(one in hosts for one in lineage(kind)):
            raise denied(f"{name_of(kind)} belongs to the host and cannot be copied")
        if not own and not any(one in self._world.types for one in lineage(kind)[:-1]) and kind is not object:
            raise denied(f"{name_of(kind)} cannot be copied")

    def _rebuilt(self, value: Any, kind: type, part: Callable[[Any], Any], memo: dict[int, Any] | None) -> Any:
        reduced = value.__reduce_ex__(4)
        if type(reduced) is str:
            return value
        parts: list[Any] = [*reduced, None, None, None, None]
        make, given, state, items, pairs = parts[:5]
        if make not in _MAKERS and make is not kind and getattr(make, "__module__", "").split(".")[0] not in _DATA:
            raise denied(f"{name_of(kind)} cannot be copied")
        made = make(*[part(one) for one in given])
        if memo is not None:
            memo[id(value)] = made
        if state is not None:
            self._restore(made, part(state) if memo is not None else state)
        for one in items or ():
            made.append(part(one))
        for key, one in pairs or ():
            made[part(key)] = part(one)
        return made

    def _restore(self, made: Any, state: Any) -> None:
        if hasattr(made, "__setstate__"):
            made.__setstate__(state)
            return
        held, slots = state if type(state) is tuple and len(state) == 2 else (state, None)
        if held:
            object.__getattribute__(made, "__dict__").update(held)
        for name, value in (slots or {}).items():
            object.__setattr__(made, name, value)


_DATA = names("builtins collections datetime decimal fractions uuid zoneinfo random array")
"""Packages whose functions rebuild data."""


def _copy(world: World) -> Callable[[Any], Any]:
    return _Copier(world).shallow


def _deepcopy(world: World) -> Callable[..., Any]:
    copier = _Copier(world)

    def deepcopy(x: Any, memo: Any = None) -> Any:
        if memo is not None and type(memo) is not dict:
            raise TypeError("memo is to be a dict")
        return copier.deep(x, {} if memo is None else memo)

    return deepcopy


def _replace(world: World) -> Callable[..., Any]:
    """`copy.replace`, of Python 3.13 and later."""

    def replaced(obj: Any, /, **changes: Any) -> Any:
        if hasattr(type(obj), "__dataclass_fields__"):
            return world.library.module("dataclasses")["replace"](obj, **changes)
        if not world.classes.own(type(obj)) and type(obj) in world.host_types:
            raise denied(f"{type(obj).__name__} cannot be copied")
        function: Any = vars(copy)["replace"]
        return function(obj, **changes)

    return replaced


_MADE = {"copy": _copy, "deepcopy": _deepcopy, "replace": _replace}

AUDITS = (
    ModuleAudit(
        name="copy",
        members=names("Error"),
        replaced={name: make for name, make in _MADE.items() if hasattr(copy, name)},
        types=(audit(copy.Error, subclassable=True),),
        note="objects of the host's are not copied; what code's own classes could say of how they are rebuilt, they "
        "cannot define",
    ),
)
