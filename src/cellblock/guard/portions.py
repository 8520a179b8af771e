"""Iterators that C code cannot run away with: what they give passes through Python every so often."""

from __future__ import annotations

import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from itertools import chain, islice
from time import perf_counter
from types import GeneratorType
from typing import Any

from cellblock.guard.budget import require
from cellblock.guard.weights import PLAIN, hashable

_MOST = 4096
_SECONDS = 0.002
_FEW = 16
"""Items that C code compares or hashes without delay, whatever they are."""
_SOME = 2000
"""The same of plain ones."""

_TABLE = 128
"""Bytes that a hash table has for each entry when it has just grown."""

_TEXTS = frozenset((str, bytes, bytearray, array.array, range))
_KEYS = frozenset((set, frozenset, dict, type({}.keys())))
"""Types of what holds things that were hashed before."""
_HELD = frozenset((list, tuple, set, frozenset, dict, deque, type({}.keys()), type({}.values())))


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
    if kind in _TEXTS or kind in _KEYS or not hasattr(kind, "__iter__") or (kind in _HELD and plain(values)):
        return fed(values, _TABLE)
    if kind in _HELD and len(values) <= _FEW:
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
    if kind in _HELD:
        size = len(values)
        if size <= _FEW or (size <= _SOME and plain(values)):
            return values
    elif (kind in _TEXTS and len(values) <= _SOME) or not hasattr(kind, "__iter__"):
        return values
    return ticking(values, bytes)


def mixed(values: Any) -> bool:
    """True if decimal numbers stand among integers: each that is compared or added is made a decimal number first."""
    kinds = set(map(type, values)) if type(values) in (list, tuple) else ()
    return Decimal in kinds and int in kinds


def plain(values: Iterable[Any]) -> bool:
    """True if all are of types without parts."""
    return PLAIN.issuperset(map(type, values))
