"""Groups of names that are saved together, in order: definitions come before what needs them."""

from __future__ import annotations

import abc
import copyreg
import datetime
import enum
import re
import sys
import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cellblock.worker.saving.circles import circles
from cellblock.worker.saving.facts import attributes_of, is_a, mro_of, own_attributes, sayable
from cellblock.worker.saving.origins import Origins
from cellblock.worker.saving.pickler import is_full, registered
from cellblock.worker.saving.walk import Walk, parts_of_class


@dataclass(frozen=True, slots=True)
class Together:
    """One group to be: the roots that share objects, by number. `key` is its first name, or tells its first class."""

    key: str
    roots: list[int]


def arrange(walk: Walk, labels: dict[int, str]) -> tuple[list[Together], dict[int, int]]:
    """The groups, each after those it needs; and for each root the position of its group.

    `labels` are the names of the roots that have one. Groups that need each other are one.
    """
    representatives = [walk.find(number) for number in range(len(walk.values))]
    edges: dict[int, set[int]] = {}
    for number, needs in enumerate(walk.needs):
        here = representatives[number]
        edges.setdefault(here, set()).update(representatives[one] for one in needs)
        edges[here].discard(here)
    members: dict[int, list[int]] = {}
    for number, here in enumerate(representatives):
        members.setdefault(here, []).append(number)
    groups: list[Together] = []
    place: dict[int, int] = {}
    taken: dict[str, int] = {}
    alone = [[number] for number, needed in edges.items() if not needed]
    for circle in (*alone, *circles({number: needed for number, needed in edges.items() if needed})):
        roots = sorted(number for one in circle for number in members[one])
        groups.append(Together(_key(walk, roots, labels, taken), roots))
        place.update(dict.fromkeys(roots, len(groups) - 1))
    return groups, place


def _key(walk: Walk, roots: Iterable[int], labels: dict[int, str], taken: dict[str, int]) -> str:
    """A name belongs to one group, so that its first one is a key; a class without a name is told by its own."""
    names = sorted(labels[number] for number in roots if number in labels)
    if names:
        return names[0]
    value = walk.values[min(roots)]
    told = sayable(f".{getattr(value, '__qualname__', 'definition')}")
    taken[told] = taken.get(told, 0) + 1
    return told if taken[told] == 1 else f"{told}.{taken[told]}"


_DEEPEST, _LONGEST, _LARGE = 20, 1000, 4096
_HOOKS = frozenset(
    ("__getattr__", "__getattribute__", "__setattr__", "__new__", "__setstate__", "__getstate__", "__reduce__",
     "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__", "__slots__")
)  # fmt: skip
_ATOMS = (type(None), bool, int, float, complex, type(...), type(NotImplemented))
_KEYS = (*_ATOMS, str, bytes)
_SIMPLE = (*_ATOMS, re.Pattern, datetime.date, datetime.timedelta)
_SLOTS = (types.MemberDescriptorType, types.GetSetDescriptorType)


class Quiet:
    """Quiet roots of one snapshot, once they are walked: loading them runs no code of the cells' and cannot fail."""

    def __init__(self, walk: Walk, origins: Origins) -> None:
        self._walk, self._origins = walk, origins
        self._met: set[int] = set()
        """Functions of the root that is looked at."""

    def tie(self, labels: dict[int, str], modules: dict[int, str]) -> None:
        """Have what is quiet of each module saved together. `modules` are those that hold roots."""
        walk = self._walk
        sets: dict[int, list[int]] = {}
        for number in range(len(walk.values)):
            sets.setdefault(walk.find(number), []).append(number)
        quiet, loud = set[int](), list[int]()
        needed: dict[int, list[int]] = {}
        for here, roots in sets.items():
            for need in {walk.find(one) for number in roots for one in walk.needs[number]}:
                needed.setdefault(need, []).append(here)
            if all(number not in walk.failed and self._root(number, labels, modules) for number in roots):
                quiet.add(here)
            else:
                loud.append(here)
        while loud:  # what needs something that is loaded in its own way comes after that
            for here in needed.get(loud.pop(), ()):
                if here in quiet:
                    quiet.remove(here)
                    loud.append(here)
        first: dict[tuple[str, bool], int] = {}
        for here in quiet:
            held = {modules[number] for number in sets[here] if number in modules}
            is_data = not any(walk.needs[number] or walk.defines(number) for number in sets[here])  # which changes more
            if len(held) == 1:
                walk.tie(first.setdefault((held.pop(), is_data), here), here)

    def _root(self, number: int, labels: dict[int, str], modules: dict[int, str]) -> bool:
        value = self._walk.values[number]
        self._met = set()
        if number in labels and number not in modules:
            return False
        if not self._walk.defines(number):
            return self._is(value, 0)
        if is_a(value, type):
            kind: Any = type(value)
            usual = kind in (type, abc.ABCMeta) or self._origins.of(kind) is None
            odd = issubclass(kind, enum.EnumMeta) or any(one.__module__ == "_ctypes" for one in mro_of(kind))
            return usual and not odd and all(self._is(one, 1) for one in parts_of_class(value))
        return type(value) is types.FunctionType and self._function(value, 0)

    def _function(self, value: types.FunctionType, depth: int) -> bool:
        if id(value) in self._met:
            return True
        self._met.add(id(value))
        parts = [value.__defaults__, value.__kwdefaults__, value.__annotations__, value.__dict__]
        parts += [one.cell_contents for one in value.__closure__ or () if is_full(one)]
        return all(self._is(one, depth + 1) for one in parts)

    def _is(self, value: Any, depth: int) -> bool:
        kind: Any = type(value)
        if kind in _SIMPLE or is_a(value, *_SLOTS):
            return True
        if kind in (str, bytes):
            return len(value) < _LARGE
        if depth > _DEEPEST:
            return False
        if kind in (tuple, list):
            return len(value) < _LONGEST and all(self._is(one, depth + 1) for one in list(value))
        if kind in (set, frozenset):
            return len(value) < _LONGEST and all(map(_is_key, list(value)))
        if kind is dict:
            items = list(value.items())
            return len(items) < _LONGEST and all(_is_key(one) and self._is(held, depth + 1) for one, held in items)
        if kind is types.ModuleType:
            return self._stands(self._origins.module(value))
        if is_a(value, type):
            return id(value) in self._walk.definitions or self._stands(self._origins.of(value))
        if kind is types.FunctionType:
            if id(value) in self._walk.definitions:
                return True
            origin = self._origins.of(value)
            return self._function(value, depth) if origin is None else self._stands(origin)
        if kind is types.BuiltinFunctionType:
            return type(value.__self__) is types.ModuleType and self._stands(value.__module__)
        if kind is datetime.datetime:
            return value.tzinfo is None
        if kind in (staticmethod, classmethod):
            return self._is(value.__func__, depth + 1)
        if kind is property:
            return all(self._is(one, depth + 1) for one in (value.fget, value.fset, value.fdel, value.__doc__))
        return self._is_plain(kind) and self._is(own_attributes(value), depth + 1)

    def _is_plain(self, kind: Any) -> bool:
        """True if objects of a class are made by nothing but their attributes."""
        if kind in copyreg.dispatch_table or any(one in registered for one in mro_of(kind)):
            return False
        own = (one for one in mro_of(kind) if one is not object)
        return all(id(one) in self._walk.definitions and _HOOKS.isdisjoint(attributes_of(one)) for one in own)

    def _stands(self, module: str | None) -> bool:
        """True if a module is there in every process."""
        return module in self._origins.own or (module or "").partition(".")[0] in sys.stdlib_module_names


def _is_key(value: Any) -> bool:
    """True if a member of a set, or a key, has a hash that is no code of the cells'."""
    return type(value) in _KEYS or (type(value) is tuple and all(type(one) in _KEYS for one in value))
