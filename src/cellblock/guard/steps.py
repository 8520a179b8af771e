"""C code that calls C code over and over, made to pass through Python, where a cell can be ended.

`map`, `sorted` and the like call what they are given without a step between two calls. Where that is C code which may
itself take long, they are given a small function in its place. Where they go through many things at once, `zip(*rows)`
or `set().union(*sets)`, so does Python.
"""

from __future__ import annotations

import functools
import types
from array import array
from collections import deque
from collections.abc import Callable
from typing import Any

from cellblock.guard.budget import afford
from cellblock.guard.portions import ticking
from cellblock.guard.sizes import MAX_ITEMS
from cellblock.guard.weights import PLAIN

_FEW = 100
"""Plain items that a method goes through without delay."""
_MANY = 16
"""More than so many iterables or sets are gone through step by step."""

_TEXTS = (str, bytes, bytearray, range, array)
_SETS = (set, frozenset)
_POINTER = 8
_HELD = (list, tuple, deque, *_SETS)
_COPIED = frozenset((*_TEXTS, *_HELD, dict))
_COLLECTING = frozenset((list, tuple, set, frozenset, dict, bytes, bytearray, deque, enumerate, zip))
_SEARCHING = frozenset((max, min, sorted, any, all, sum))
_CALLING = (map, filter, sorted, min, max)
_QUICK = frozenset(("append", "appendleft", "pop", "popleft", "add", "discard"))
_OF_SETS = frozenset(("__contains__", "remove"))


def stepped(function: Any, by: Any = None) -> Any:
    """The function that C code may call in a function's place: itself, unless it is C code that may take long.

    `by` is what has the name of the function that calls it, which may be one of the code's own.
    """
    kind = type(function)
    if kind is types.FunctionType or not _is_slow(function, kind):
        return function
    if by is not None and not any(by is one for one in _CALLING):
        return function

    def calling(*given: Any, **named: Any) -> Any:
        return function(*given, **named)

    return calling


def _is_slow(function: Any, kind: type) -> bool:
    if kind is types.BuiltinFunctionType or kind is types.MethodWrapperType:
        owner = function.__self__
        if type(owner) is types.ModuleType:
            return function in _SEARCHING or owner.__name__ == "_operator"
        return _goes_through(owner, function.__name__)
    if kind is types.MethodDescriptorType or kind is types.WrapperDescriptorType:
        return issubclass(function.__objclass__, _HELD) and function.__name__ not in _QUICK
    if kind is type:
        return function in _COLLECTING
    if issubclass(kind, functools.partial):
        inner = functools.partial.func.__get__(function)
        return type(inner) is not types.FunctionType and _is_slow(inner, type(inner))
    return False


def _goes_through(owner: Any, name: str) -> bool:
    """True if a method goes through what it belongs to, and that is long or deep."""
    kind = type(owner)
    if name in _QUICK or (issubclass(kind, _SETS) and name in _OF_SETS):
        return False
    base: Any = next((one for one in (*_HELD, *_TEXTS, dict) if issubclass(kind, one)), None)
    if base is None or (base is dict and name in ("get", "__getitem__", "__contains__", "setdefault")):
        return False
    if base.__len__(owner) > _FEW:
        return True
    return base in _HELD and not PLAIN.issuperset(map(type, base.__iter__(owner)))


def spread(values: Any, by: Any) -> Any:
    """Iterables for `zip(*values)`: where these are many, the first of them in steps."""
    if by is not zip or (type(values) in (list, tuple) and len(values) <= _MANY):
        return values
    if not hasattr(type(values), "__iter__"):
        return values
    found = [*values]
    if len(found) > _MANY and hasattr(type(found[0]), "__iter__"):
        found[0] = ticking(found[0])
    return found


def gathered(base: type, name: str, owner: Any, others: tuple[Any, ...]) -> Any:
    """`base.name(owner, *others)` of a set with very many others, one by one."""
    return _STEPS[name](base, owner, others)


def _union(base: Any, owner: Any, others: tuple[Any, ...]) -> Any:
    found: set[Any] = set()
    for one in (owner, *others):
        found.update(one)
    return found if base is set else frozenset(found)


def _narrowed(name: str) -> Callable[[Any, Any, tuple[Any, ...]], Any]:
    def narrowed(base: Any, owner: Any, others: tuple[Any, ...]) -> Any:
        for one in others:
            owner = getattr(base, name)(owner, one)
        return owner

    return narrowed


_intersection = _narrowed("intersection")


def _each(name: str) -> Callable[[Any, Any, tuple[Any, ...]], None]:
    method = getattr(set, name)

    def each(base: Any, owner: Any, others: tuple[Any, ...]) -> None:
        for one in others:
            method(owner, one)

    return each


def _intersection_update(base: Any, owner: Any, others: tuple[Any, ...]) -> None:
    set.intersection_update(owner, _intersection(base, owner, others))


_STEPS: dict[str, Callable[[Any, Any, tuple[Any, ...]], Any]] = {
    "union": _union,
    "intersection": _intersection,
    "difference": _narrowed("difference"),
    "update": _each("update"),
    "difference_update": _each("difference_update"),
    "intersection_update": _intersection_update,
}


def pause(value: Any) -> Any:
    """The same value, in a step between which and the next a cell can be ended: it becomes part of another."""
    if type(value) in _COPIED:
        afford(len(value) * _POINTER)
        if (type(value) is list or type(value) is tuple) and len(value) > MAX_ITEMS // 2:
            raise MemoryError(f"{len(value):,} items that go into others [size]")
    return value


def passing(function: Any, values: Any) -> Any:
    """The values for C code to go through with a function: in steps, where the function has none."""
    if type(function) is types.FunctionType or not hasattr(type(values), "__iter__"):
        return values
    return ticking(values)
