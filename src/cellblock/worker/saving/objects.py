"""Objects of classes that leave to a standard type how they are saved: built, filled and given attributes as parts.

Pickling hands the type's arguments to the derived class, which may take others, asks that class what the object holds,
leaves out attributes that the type knows nothing of, and copies a `__dict__` that others hold too.
"""

from __future__ import annotations

import copyreg
import sys
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from random import Random
from types import FunctionType, MemberDescriptorType
from typing import Any

from cellblock.worker.saving import building
from cellblock.worker.saving.facts import attributes_of, full_name, is_a, is_heap, mro_of, space_of
from cellblock.worker.saving.origins import Origins

NEW: Any = copyreg.__newobj__  # type: ignore[attr-defined]
_GIVES = ("__reduce__", "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__")
_HOOKS = frozenset(("__new__", "__class__", "__iter__", "items", "append", "extend", "__setitem__"))
"""Methods that pickling calls, or looks at, as an object is written and made again."""
_LISTS = (list, deque, set, bytearray)
_DICTS = (OrderedDict, dict)
_FILLED = (object, list, set, bytearray, OrderedDict, dict)
_WHOLE = frozenset(("collections", "datetime", "fractions", "ipaddress", "pathlib", "pathlib._local", "random"))
"""Modules in Python whose classes save all that is theirs: other attributes are the cells'."""
_dict_offset_of = type.__dict__["__dictoffset__"].__get__


def way_of(kind: type, origins: Origins) -> Callable[[Any], Any]:
    """From an object of this type to what `__reduce__` gives, or NotImplemented for the standard way."""
    by_parts = _Parts(kind, origins)
    return by_parts if by_parts.needed else by_parts.where_shared


def parts_of(value: Any, origins: Origins) -> Any:
    """The answer of `__reduce__` for one object, by parts."""
    return _Parts(type(value), origins)(value)


def as_it_is(value: Any) -> Any:
    """The same, past what the code of an object's class says of it; None where a standard type says what makes it."""
    kind = type(value)
    base: Any = next(base for base in mro_of(kind) if not is_heap(base))
    if base not in _FILLED:
        return None
    items = base.__iter__(value) if base in _LISTS else None
    pairs = base.items(value) if base in _DICTS else None
    held, slots = split(object.__getstate__(value))
    content = (None if one is None else list(one) for one in (items, pairs))
    return building.new_of, (base, kind), (None, held, slots, False, *content), None, None, building.set_parts


def made_of(value: Any, made: Any, arguments: tuple[Any, ...], origins: Origins) -> tuple[Any, tuple[Any, ...]]:
    """The same call with the constructor of the standard type that gave the arguments, past the object's class."""
    kind = type(value)
    giver = giver_of(kind)
    if made is NEW:
        gives = giver is not object and _is_standard(giver, origins)  # not a named tuple's class
        base: Any = giver if gives else next(one for one in mro_of(kind) if _is_standard(one, origins))
        if base is tuple:
            arguments = (kind, tuple.__getitem__(value, slice(None)))
        return building.new_of, (base, *(arguments[:1] if base.__new__ is object.__new__ else arguments))
    if made is kind:
        standard = _is_c if _is_c(giver, origins) else _is_standard
        base = next(one for one in mro_of(kind) if standard(one, origins))
        return (building.made_by, (base, kind, *arguments)) if base is not kind else (made, arguments)
    return made, arguments


def giver_of(kind: type) -> type:
    """The class that says how objects of this type are saved."""
    found: type = next(one for one in mro_of(kind) if not attributes_of(one).keys().isdisjoint(_GIVES))
    return found


def is_given(giver: type, origins: Origins) -> bool:
    """True if Python's own code says it, and not that of cells or of a package."""
    ways = [attributes_of(giver)[name] for name in _GIVES if name in attributes_of(giver)]
    return all(
        _of_library(origins.space(one.__globals__)) if is_a(one, FunctionType) else _is_standard(giver, origins)
        for one in ways
    )


class _Parts:
    """The way of one type."""

    def __init__(self, kind: type, origins: Origins) -> None:
        own = {name for base in mro_of(kind) if not _is_standard(base, origins) for name in attributes_of(base)}
        if "__getattr__" in {name for base in mro_of(type(kind)) for name in attributes_of(base)} and not _is_c(
            kind, origins
        ):
            # copyreg would ask it
            type.__setattr__(kind, "__slotnames__", _slots_of(kind))
        giver = giver_of(kind)
        self._own = own
        self._origins = origins
        self._registered = next((one for of, one in copyreg.dispatch_table.items() if of is kind), None)
        self._given = self._registered is None and is_given(giver, origins)
        reduces = giver is not object and not attributes_of(giver).keys().isdisjoint(("__reduce__", "__reduce_ex__"))
        self._whole = reduces and (_is_c(giver, origins) or origins.of(giver) in _WHOLE)
        self._fills = next((base for base in (*_LISTS, *_DICTS) if issubclass(kind, base)), None)
        self._sets = any("__setstate__" in attributes_of(base) for base in mro_of(kind))
        self._has_space = _dict_offset_of(kind) != 0
        asked = {name for base in mro_of(kind) if not _is_c(base, origins) for name in attributes_of(base)}
        self.needed = not self._sets and not asked.isdisjoint(("__getattr__", "__getattribute__"))
        """True if code of the class could stand in the way, or attributes be left out."""
        if self._given and not _is_standard(kind, origins):
            hooked = not own.isdisjoint(_HOOKS) or {"__slots__", "__setattr__"} <= own
            self.needed |= reduces or (origins.of(kind) is None and hooked)
        elif self._given:
            self.needed |= kind is Counter or kind is Random

    def where_shared(self, value: Any) -> Any:
        """By parts only where others hold its `__dict__` too."""
        if not (self._has_space and self._given and _references(value) > _ALONE):
            return NotImplemented
        reduced = self(value)
        return reduced if is_a(reduced, tuple) and len(reduced) == 6 and reduced[2][3] is True else NotImplemented

    def __call__(self, value: Any) -> Any:
        shared = self._has_space and _references(value) > _ALONE
        reduce = self._registered
        reduced = object.__getattribute__(value, "__reduce_ex__")(5) if reduce is None else reduce(value)
        if not is_a(reduced, tuple) or len(reduced) == 6:
            return reduced
        made, arguments, own, items, pairs = (*reduced, None, None, None)[:5]
        attributes = None
        if self._given:
            arguments, items, pairs = self._content(value, arguments)
            made, arguments = made_of(value, made, arguments, self._origins)
            if self._whole and _is_plain(own):
                own = object.__getattribute__(value, "__getstate__")()
            elif self._whole:
                attributes = object.__getstate__(value)
        if _is_plain(own) and not self._sets:
            own, attributes = None, own if attributes is None else attributes
        held, slots = split(attributes)
        if self._whole and slots:  # a standard type's own slots are made with it
            slots = {name: one for name, one in slots.items() if name in self._own}
        shared = shared and held is not None and held is space_of(value)
        items, pairs = (None if one is None else list(one) for one in (items, pairs))
        return made, arguments, (own, held, slots, shared, items, pairs), None, None, building.set_parts

    def _content(self, value: Any, arguments: tuple[Any, ...]) -> tuple[Any, Any, Any]:
        """The arguments, and what is put into the object once it is there: as the type itself tells it."""
        base: Any = self._fills
        if base in _DICTS:
            return () if is_a(value, Counter) else arguments, None, base.items(value)
        if base in (list, deque, set):
            return () if base is set else arguments, base.__iter__(value), None
        if is_a(value, frozenset):
            return (list(frozenset.__iter__(value)),), None, None
        return arguments, None, None


def split(attributes: Any) -> tuple[Any, Any]:
    """Attributes and slots that `__getstate__` gives, None for none."""
    return attributes if is_a(attributes, tuple) else (attributes, None)


def derived(value: Any, base: type, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """An object of a class derived from one that takes these arguments, with its attributes."""
    held, slots = split(object.__getstate__(value))
    kept = {name: one for name, one in held.items() if not name.startswith("__")} if held else None
    made = (base, type(value), *arguments)
    return building.made_by, made, (None, kept, slots, False, None, None), None, None, building.set_parts


def shared_space(value: Any) -> Any:
    """The `__dict__` of an object where anything else holds it too."""
    return space_of(value) if _references(value) > _ALONE else None


def _is_plain(state: Any) -> bool:
    """True if a state is no more than attributes, or those and slots."""
    parts = state if type(state) is tuple and len(state) == 2 else (state,)
    return all(one is None or is_a(one, dict) for one in parts)


def _slots_of(kind: type) -> list[str]:
    """The names of all slots, as attributes have them."""
    bases = filter(is_heap, mro_of(kind))
    return [name for base in bases for name, one in attributes_of(base).items() if type(one) is MemberDescriptorType]


def _references(value: Any) -> int:
    """Number of references to the `__dict__` of an object, as this function sees it."""
    space = space_of(value)
    return sys.getrefcount(space)


def _is_standard(base: type, origins: Origins) -> bool:
    return _is_c(base, origins) or _of_library(origins.of(base))


def _is_c(base: type, origins: Origins) -> bool:
    return not is_heap(base) or origins.of(base) == "builtins"


def _of_library(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in sys.stdlib_module_names


class _Sample:
    pass


_ALONE = _references(_Sample())


_LEFT_OUT: Any = object()
CACHES: dict[str, dict[str, Any]] = {
    "pandas": {"_cache": _LEFT_OUT},
    "matplotlib": {
        "_stale": True, "_invalid": 2, "_inverted": None, "_transformed_path": None, "_transformed_points": None,
    },
}  # fmt: skip
"""Of packages: what is saved of attributes of these names, wherever an object of their types has them."""


def without_caches(kind: type, way: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """From an object of this type to what `__reduce__` gives, without what its caches hold."""
    packages = {full_name(base).partition(".")[0] for base in mro_of(kind)}
    saved = {name: one for package in packages & CACHES.keys() for name, one in CACHES[package].items()}
    if not saved:
        return way

    def fixed(part: Any) -> Any:
        if not is_a(part, dict) or saved.keys().isdisjoint(part):
            return part
        items = ((name, saved.get(name, one)) for name, one in part.items())
        return {name: one for name, one in items if one is not _LEFT_OUT}

    def reduce(value: Any) -> Any:
        reduced = way(value)
        if reduced is NotImplemented:
            reduced = value.__reduce_ex__(5)
        if not is_a(reduced, tuple) or len(reduced) < 3:
            return reduced
        made, arguments, state, *rest = reduced
        if type(state) is tuple:
            *parts, last = map(fixed, state)
            state = tuple(parts) if is_a(last, dict) and not last and state[-1] else (*parts, last)
        return made, arguments, fixed(state), *rest

    return reduce
