"""Weights of structures, for C code that goes through all of one and meets shared parts again and again.

`x = [x, x]`, sixty times, is sixty lists and more than 10**18 steps for `repr`, `==` and `hash`. So what is shown,
compared or hashed and is no plain value is measured first: of two that are compared, one, as no more steps are taken
than either has parts. Each part is measured once; where there are cycles, the walk is made as `repr` makes it, up to
the limit.
"""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Callable, Iterator, MappingView
from typing import Any

from cellblock.guard.anatomy import lineage

MOST = 20_000_000
"""Parts that may be gone through at once: a second or two."""
_MOST_STEPS = 200_000
"""Of a walk through cycles."""
_CYCLES = -1

PLAIN = frozenset((int, float, complex, bool, str, bytes, type(None), type(...), types.FunctionType, range))
"""Types without parts."""
_FLAT = frozenset((list, tuple, set, frozenset, deque))
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()), types.MappingProxyType)
_VIEWING = frozenset(_VIEWS)
_ALIASES = frozenset((types.GenericAlias, types.UnionType))
_HASHED = _ALIASES | {tuple, frozenset, slice}
"""Types whose hash goes through their parts."""
_HELD = _FLAT | _VIEWING | _ALIASES | {types.SimpleNamespace, dict, slice, BaseException, MappingView}


def holds(kind: type) -> bool:
    """True if objects of a class have parts."""
    return not _HELD.isdisjoint(lineage(kind))


def light(value: Any) -> Any:
    """The value, if what goes through all of it ends in reasonable time; else MemoryError."""
    kind = type(value)
    if kind in PLAIN or (kind in _FLAT and _is_flat(value)) or not holds(kind):
        return value
    size = weigh(value)
    if size > MOST:
        raise MemoryError(f"a structure that shares its parts, of {size:.1g} parts in all [size]")
    return value


def hashable(value: Any) -> Any:
    """The same for what is hashed: a list, which cannot be, is not looked at."""
    kind = type(value)
    if kind in PLAIN or (kind is tuple and PLAIN.issuperset(map(type, value))) or _HASHED.isdisjoint(lineage(kind)):
        return value
    return light(value)


def weighing(function: Any, look: Callable[[Any], Any] = light) -> Any:
    """A function of C's that compares or hashes what it is given: that is looked at first."""

    @functools.wraps(function)
    def weighed(*given: Any, **named: Any) -> Any:
        for one in given:
            if type(one) not in PLAIN:
                look(one)
        for one in named.values():
            look(one)
        return function(*given, **named)

    del weighed.__wrapped__
    return weighed


def keyed(key: Any) -> Any:
    """A function by which things are compared, of whose results each is looked at; None for none."""
    if key is None:
        return None

    def weighed(value: Any) -> Any:
        found = key(value)
        return found if type(found) in PLAIN else light(found)

    return weighed


def _is_flat(value: Any) -> bool:
    return PLAIN.issuperset(map(type, value))


def weigh(value: Any) -> float:
    """Number of parts, counting each as often as it is come upon."""
    known: dict[int, float] = {}
    stack: list[tuple[Any, Iterator[Any], list[float]]] = [(value, iter(_parts(value)), [1.0])]
    known[id(value)] = _CYCLES
    cycles = False
    while stack:
        of, parts, size = stack[-1]
        for part in parts:
            if type(part) in PLAIN:
                size[0] += 1
                continue
            found = known.get(id(part))
            if found is None:
                known[id(part)] = _CYCLES
                stack.append((part, iter(_parts(part)), [1.0]))
                break
            if found == _CYCLES:
                cycles = True
                size[0] += 1
            else:
                size[0] += found
        else:
            stack.pop()
            known[id(of)] = size[0]
            if stack:
                stack[-1][2][0] += size[0]
    return _walk(value) if cycles else known[id(value)]


def _walk(value: Any) -> float:
    """The steps of a walk that stops where it comes back to what it is within."""
    steps, path = 1, {id(value)}
    stack = [(value, iter(_parts(value)))]
    while stack:
        of, parts = stack[-1]
        for part in parts:
            steps += 1
            if steps > _MOST_STEPS:
                return float("inf")
            if type(part) in PLAIN or id(part) in path:
                continue
            path.add(id(part))
            stack.append((part, iter(_parts(part))))
            break
        else:
            stack.pop()
            path.discard(id(of))
    return steps


def _parts(value: Any) -> Any:
    kinds = lineage(type(value))
    if dict in kinds:
        return [*dict.keys(value), *dict.values(value)]
    flat: Any = next((one for one in kinds if one in _FLAT), None)
    if flat is not None:
        return list(flat.__iter__(value))
    if slice in kinds:
        return [value.start, value.stop, value.step]
    if BaseException in kinds:
        return [BaseException.args.__get__(value)]  # type: ignore[attr-defined]
    if types.SimpleNamespace in kinds:
        return [object.__getattribute__(value, "__dict__")]
    if MappingView in kinds:
        return [MappingView._mapping.__get__(value)]  # type: ignore[attr-defined]
    if not _ALIASES.isdisjoint(kinds):
        return [value.__args__]
    return () if _VIEWING.isdisjoint(kinds) else list(value)
