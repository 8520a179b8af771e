"""C code that goes on for long, made to pass through Python every so often, where a cell can be ended.

What C code goes through is given to it in portions. `map`, `sorted` and the like call what they are given without a
step between two calls: where that is C code which may itself take long, they are given a small function in its place.
Where they go through many things at once, `zip(*rows)` or `set().union(*sets)`, so does Python.
"""

from __future__ import annotations

import functools
import types
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from itertools import chain, islice
from time import perf_counter
from types import GeneratorType
from typing import Any

from cellblock.guard.budget import afford, require
from cellblock.guard.sizes import MAX_ITEMS
from cellblock.guard.weights import PLAIN, hashable

_MOST = 4096
_SECONDS = 0.002
_FEW_ITEMS = 16
"""Items that C code compares or hashes without delay, whatever they are."""
_SOME_ITEMS = 2000
"""The same of plain ones."""

_TABLE = 128
"""Bytes that a hash table has for each entry when it has just grown."""

_FLAT = frozenset((str, bytes, bytearray, array, range))
_KEYS = frozenset((set, frozenset, dict, type({}.keys())))
"""Types of what holds things that were hashed before."""
_CONTAINERS = frozenset((list, tuple, set, frozenset, dict, deque, type({}.keys()), type({}.values())))

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


def ticking(values: Iterable[Any], bytes: int = 0) -> Iterator[Any]:
    """The same values, no sooner than they are asked for, in portions between which a cell can be ended.

    A portion is as large as what was done with the last one was quick: about 10 ns a value. `bytes` are those that may
    be taken at once for each value so far, by what grows by them.
    """
    source = iter(values)
    return source if type(source) is GeneratorType and not bytes else chain.from_iterable(_portions(source, bytes))


def _portions(source: Iterator[Any], bytes: int) -> Iterator[Iterable[Any]]:
    size, count, began = 1, 0, perf_counter()
    looked = began
    for first in source:
        yield (first,)
        yield islice(source, size)
        now, count = perf_counter(), count + size
        size = min(2 * size, _MOST) if now - began < _SECONDS else max(size // 2, 1)
        began = now
        if now - looked > _SECONDS:
            require(count * bytes)
            looked = perf_counter()


def hashed(values: Any, look: Callable[[Any], Any] = hashable) -> Any:
    """The same as `fed` for what goes into a set or a dict, which grows to four times its size at once."""
    kind = type(values)
    if kind in _FLAT or kind in _KEYS or not hasattr(kind, "__iter__") or (kind in _CONTAINERS and plain(values)):
        return fed(values, _TABLE)
    if kind in _CONTAINERS and len(values) <= _FEW_ITEMS:
        return list(map(look, values))
    return ticking(map(look, values), _TABLE)


def entry(pair: Any) -> Any:
    """A pair that a dict is made of, whose key can be hashed."""
    kind = type(pair)
    if kind is tuple and pair and type(pair[0]) in PLAIN:
        return pair
    if kind is not tuple and kind is not list:
        if kind in PLAIN or not hasattr(kind, "__iter__"):
            return pair
        pair = list(pair)
    if pair:
        hashable(pair[0])
    return pair


def fed(values: Any, bytes: int = 0) -> Any:
    """Iterable for C code in place of some values: themselves where they are few or plain, else in portions."""
    kind = type(values)
    if kind in _CONTAINERS:
        size = len(values)
        if size <= _FEW_ITEMS or (size <= _SOME_ITEMS and plain(values)):
            return values
    elif (kind in _FLAT and len(values) <= _SOME_ITEMS) or not hasattr(kind, "__iter__"):
        return values
    return ticking(values, bytes)


def mixed(values: Any) -> bool:
    """True if decimal numbers stand among integers: each that is compared or added is made a decimal number first."""
    kinds = set(map(type, values)) if type(values) in (list, tuple) else ()
    return Decimal in kinds and int in kinds


def plain(values: Iterable[Any]) -> bool:
    """True if all are of types without parts."""
    return PLAIN.issuperset(map(type, values))


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
