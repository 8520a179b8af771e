"""Decides what may be called: what code of the world made, and what a row, the policy or a granted module hands out.

Source names most of it, and rewritten code then calls it without asking: a function, a method of a type with a row, a
built-in under its own name. The rest passes here, by its identity and its exact type: a class, a built-in function or
an object of the host's that came into the code's hands by another way is of no use in them.
"""

from __future__ import annotations

import functools
import types
from collections import defaultdict, deque
from collections.abc import Callable
from difflib import Differ, HtmlDiff, SequenceMatcher
from enum import property as enum_property
from json import JSONDecoder, JSONEncoder
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from cellblock.guard import hints, sizes, steps
from cellblock.guard.anatomy import held, holder, leaving, lineage, name_of
from cellblock.guard.bounded import FORMS
from cellblock.guard.refusal import denied
from cellblock.guard.standins import TypeOfTypes, TypeStandIn

if TYPE_CHECKING:
    from cellblock.guard.world import World

_DESCRIPTORS = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)
_BOUND = (types.BuiltinFunctionType, types.MethodWrapperType)
_FIRST, _KEY = (map, filter), (sorted, min, max)
_CONTAINERS = frozenset((list, dict, set, str, bytes, deque))
_STANDING = (TypeOfTypes, TypeStandIn)
_ALIASES: tuple[type, ...] = tuple({type(one) for typing in hints.BOTH for one in (typing.List, typing.List[int])})
MAKERS: tuple[type, ...] = (
    *(property, enum_property, defaultdict, SequenceMatcher, Differ, HtmlDiff, JSONDecoder, JSONEncoder),
)
"""Classes whose objects call what they are made with."""
_CACHED: type = type(functools.lru_cache(lambda: None))
_partial_func, _partial_args, _partial_keywords = (
    vars(functools.partial)[name].__get__ for name in ("func", "args", "keywords")
)
_origin = vars(types.GenericAlias)["__origin__"].__get__


_BOUNDED_TYPES = {id(one): form for one, form in FORMS.items() if isinstance(one, type) and one is not ZoneInfo}
"""Bounded forms of classes, by the identity of those: a class of the code's own is asked for nothing."""


def _is_alias(value: Any) -> bool:
    return issubclass(type(value), _ALIASES)


def _instead_of(function: Any, by: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, **named: by(function, *given, **named)


class Calls:
    """All that one world's code may call. `known` has by identity what may be called whatever its type says."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.known: dict[int, Any] = {}
        self._instead: dict[int, Callable[..., Any]] = {
            **{id(one): form for one, form in FORMS.items()},
            **{id(one): _instead_of(one, self._first) for one in _FIRST},
            **{id(one): _instead_of(FORMS[one], self._keyed) for one in _KEY},
            id(int): sizes.integer,
            id(types.MappingProxyType): self._viewed,
        }

    def grant(self, value: Any) -> None:
        """Have an object of the host's called by code, as long as the world lasts."""
        asked = _is_alias(value) or (isinstance(value, type) and issubclass(value, MAKERS))
        if id(value) not in self._instead and not asked:
            self.known[id(value)] = value

    def remember(self, value: Any) -> None:
        """The same for an object that may be called, as long as that lasts."""
        self.known[id(value)] = leaving(self.known, value)

    def __call__(self, value: Any) -> Any:
        """Give what is called where code calls this. Raises where that may not be; passes what no one can call."""
        kind = type(value)
        if kind is types.FunctionType or kind is _CACHED:
            return value
        if kind in _BOUND:
            return self._bound(value)
        if kind is types.MethodType:
            function = value.__func__
            if type(function) is not types.FunctionType:
                self(function)
        elif kind in _DESCRIPTORS:
            self._require(value.__objclass__, value)
        elif issubclass(kind, type):
            return self._class(value)
        elif issubclass(kind, types.GenericAlias):
            origin = _origin(value)
            if (checked := self(origin)) is not origin:
                return checked
        elif issubclass(kind, _ALIASES):
            origin = held(value)["__origin__"]
            if (checked := self(origin)) is not origin:
                return checked
        elif issubclass(kind, functools.partial):
            if id(value) not in self.known and (checked := self(function := _partial_func(value))) is not function:
                return functools.partial(checked, *_partial_args(value), **_partial_keywords(value))
        elif self._has_row(kind) or kind in _STANDING:
            if kind.__weakrefoffset__:
                self.remember(value)
        elif not self._is_granted(value) and holder(lineage(kind), "__call__") is not None:
            raise denied(f"calling a {name_of(kind)!r} object is not granted")
        return self._instead.get(id(value), value)

    def _bound(self, value: Any) -> Any:
        owner = value.__self__
        if type(owner) in _CONTAINERS and value.__name__ != "sort":
            return value
        if (instead := self._instead.get(id(value))) is not None:
            return instead
        if self._is_granted(value):
            return value
        if owner is None or type(owner) is types.ModuleType:
            raise denied(f"calling {value.__name__} is not granted")
        self._require(owner if issubclass(type(owner), type) else type(owner), value)
        if type(owner) is list and value.__name__ == "sort":
            return functools.partial(self._keyed, value)
        return value

    def _class(self, value: type) -> Any:
        if id(value) not in self.known and id(value) not in self._instead and not self._world.classes.own(value):
            audit = self._world.types.get(value)
            if audit is None or not audit.constructable:
                raise denied(f"{name_of(value)} cannot be created here", "class")
        if issubclass(value, MAKERS):
            return functools.partial(self._made_with, _BOUNDED_TYPES.get(id(value), value))
        return self._instead.get(id(value), value)

    def _is_granted(self, value: Any) -> bool:
        """True if an object of the host's was handed out, or is a function of a trusted package."""
        return id(value) in self.known or getattr(value, "__module__", None) in self._world.trusted

    def _require(self, kind: type, value: Any) -> None:
        if not self._has_row(kind):
            raise denied(f"calling {value.__name__} of {name_of(kind)!r} is not granted")

    def _has_row(self, kind: type) -> bool:
        """True if code made a class, or a row is about it or one that it inherits from."""
        world = self._world
        if world.classes.own(kind) or id(kind) in self.known or kind in world.types:
            return True
        return any(one in world.types for one in lineage(kind)[:-1])

    def member(self, value: Any) -> Any:
        """The same for what was read of an object of the host's, where a row or a grant names it."""
        if _is_alias(value):
            return self(value)
        return self._class(value) if issubclass(type(value), type) else self._instead.get(id(value), value)

    def require_method(self, name: str, value: Any) -> None:
        """That the interpreter may call what a class has under one of the names that it calls by itself."""
        inner = value.__func__ if type(value) in (staticmethod, classmethod) else value
        kind = type(inner)
        if inner is None or kind is types.FunctionType:
            return
        if issubclass(kind, property) or (self._world.classes.own(kind) and holder(lineage(kind), "__get__")):
            raise denied(f"{name} is to be a function", "class")
        if self(inner) is not inner:  # the interpreter would call it past its bounded form
            raise denied(f"{name} is to be a function of the cell's own", "class")

    def method(self, name: str, value: Any) -> Any:
        """Give what is set on a class under such a name, once it is known that the interpreter may call it."""
        self.require_method(name, value)
        return value

    # ------------------------------------------------------------- what C code calls on behalf of code

    def given(self, function: Any) -> Any:
        """Give what a function of C is handed to call: what code may call itself, or what no one can, `None` say.

        A class with a bounded form stays itself, as code may look at what it has handed over.
        """
        called = self.called(function)
        return function if id(function) in _BOUNDED_TYPES else called

    def called(self, function: Any) -> Any:
        """The same, where code does not come to see what was handed over: in place of such a class its form."""
        return function if type(function) is types.FunctionType or not callable(function) else self(function)

    def original(self, function: Any) -> Any:
        """Python's own function, for what stands in place of one where C calls it; any other object as it is."""
        return next((one for one in (*_FIRST, *FORMS, int) if self._instead[id(one)] is function), function)

    def giving(self, function: Any) -> Any:
        """A function of the host's that calls what it is given: it gets what code may call.

        A `cls` is a class that it looks at itself.
        """
        check = self.called

        @functools.wraps(function)
        def giving(*given: Any, **named: Any) -> Any:
            if named:
                named = {name: one if name == "cls" else check(one) for name, one in named.items()}
            return function(*map(check, given), **named)

        del giving.__wrapped__
        return giving

    def naming(self, function: Any) -> Any:
        """A function or class of the library that uses what it is given by name: it gets no object of the host's.

        A class stays itself, and is called so.
        """

        form = self._instead.get(id(function), function)

        def called(*given: Any, **named: Any) -> Any:
            own = self._world.gates.without_hosts
            return form(*map(own, given), **{name: own(one) for name, one in named.items()})

        if issubclass(type(function), type):
            self.known.pop(id(function), None)
            self._instead[id(function)] = called
            self._world.gates.ask_of_modules(name_of(function))
            return function
        return functools.update_wrapper(called, function, ("__name__", "__qualname__", "__doc__"), ())

    def stepped(self, function: Any, by: Any = None) -> Any:
        """Give what `map` and the like call in a function's place; `by` is what has the name of one of them."""
        if by is not None and not any(by is one for one in (*_FIRST, *_KEY)):
            return function
        return steps.stepped(self(function), by)

    def _viewed(self, mapping: Any) -> Any:
        """A view, whose methods are those of what it shows."""
        if not self._world.gates.shows(mapping, ("copy", "get", "items", "keys", "values")):
            raise denied(f"a view of {name_of(type(mapping))!r}, whose methods are not granted")
        return types.MappingProxyType(mapping)

    def _first(self, by: Any, /, *given: Any, **named: Any) -> Any:
        return by(*([self.stepped(given[0]), *given[1:]] if given else given), **named)

    def _keyed(self, by: Any, /, *given: Any, **named: Any) -> Any:
        if "key" in named:
            named["key"] = self.stepped(named["key"])
        return by(*given, **named)

    def _made_with(self, kind: Any, /, *given: Any, **named: Any) -> Any:
        def check(one: Any) -> Any:
            return one if one is int else self.given(one)  # which code may look at

        return kind(*map(check, given), **{name: check(one) for name, one in named.items()})
