"""Objects that lead back to themselves; sets and dicts among them whose keys have a `__hash__` in Python.

Such a hash may need what the key holds, so these tables are filled last.
"""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterable
from types import FunctionType
from typing import Any

from cellblock.worker.saving import building
from cellblock.worker.saving.facts import is_a, own_attributes
from cellblock.worker.saving.losses import Unsaved
from cellblock.worker.saving.walk import (
    ARRAY,
    DEFINED,
    EARLY,
    ENTERED,
    HASHED,
    SPACE,
    TUPLE,
    VALUES,
    Walk,
    of_array,
    parts_of_class,
)  # fmt: skip

_SPECIAL = DEFINED | {ARRAY}
_TABLES = (dict, set, frozenset)


class Circles:
    """The graph of what roots hold, as pickling follows it."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk

    def tables(self, roots: Collection[Any]) -> tuple[list[Any], dict[int, dict[str, Any]]]:
        """Sets and dicts that a key of theirs leads back to. Of keys of such frozensets, by their ids, the attributes
        that lead nowhere: a frozenset cannot be filled later, so its keys have these early.

        Raises Unsaved for a frozenset with a key that has no hash by these alone.
        """
        reached = self._reached(self._entered(roots))
        found = [one for one in reached if is_a(one, *_TABLES) and any(map(self._is_hashed, _keys(one)))]
        keys = [key for one in found for key in _keys(one)]
        if set(map(id, found)).isdisjoint(map(id, self._reached(self._next(keys)))):
            return [], {}
        edges = {id(one): set(map(id, self._next([one]))) for one in self._reached(found)}
        circle = _numbered(edges)
        late = [one for one in found if not is_a(one, frozenset) and self._here(one, circle)]
        edges.update((id(one), set()) for one in late)
        circle = _numbered(edges)
        early: dict[int, dict[str, Any]] = {}
        for one in found:
            for key in self._leaves(self._here(one, circle)) if is_a(one, frozenset) else ():
                held = own_attributes(key) or {}
                early[id(key)] = {name: part for name, part in held.items() if self._is_early(part)}
                if circle.get(id(type(key))) == circle[id(one)] or not _has_hash(key, early[id(key)]):
                    raise Unsaved(one, "a frozenset of objects that lead back to it", "keep a set there in its place")
        return self._in_turn(roots, late), early

    def _in_turn(self, roots: Collection[Any], tables: list[Any]) -> list[Any]:
        """Tables as they are met in depth: in one order, whether an object's attributes lie in a dictionary or not."""
        wanted, found, seen = set(map(id, tables)), list[Any](), set[int]()
        work = self._entered(roots)[::-1]
        while work:
            one = work.pop()
            if id(one) not in seen:
                seen.add(id(one))
                found += [one] * (id(one) in wanted)
                work += self._next([one])[::-1]
        return found

    def _here(self, table: Any, circle: dict[int, int]) -> list[Any]:
        """The keys that lead back to what holds them."""
        return [key for key in _keys(table) if circle.get(id(key)) == circle[id(table)] and self._is_hashed(key)]

    def _leaves(self, keys: Iterable[Any]) -> list[Any]:
        """Keys, and in place of tuples what these consist of."""
        found: list[Any] = []
        for key in keys:
            if self._kind(key) == HASHED:
                found.append(key)
            elif is_a(key, tuple, frozenset):
                found += self._leaves(_parts(key))
        return found

    def reached_by(self, kind: type) -> set[int]:
        """The ids of all that a class leads to."""
        return set(map(id, self._reached(self._next([kind]))))

    def _reached(self, level: Collection[Any]) -> list[Any]:
        """These objects, and all that they lead to."""
        seen: dict[int, Any] = {}
        while level:
            fresh = {id(one): one for one in level if id(one) not in seen}
            seen.update(fresh)
            level = self._next(fresh.values())
        return list(seen.values())

    def _next(self, objects: Collection[Any]) -> list[Any]:
        """The objects that these lead to, all at once: most are nothing but what the collector tells of them."""
        kind_of = self._walk.kinds.get
        usual = [one for one in objects if kind_of(id(type(one))) not in _SPECIAL]
        found = gc.get_referents(*usual)
        if len(usual) < len(objects):
            for one in objects:
                if is_a(one, type):
                    found += parts_of_class(one)
                elif type(one) is FunctionType:
                    found += [one.__closure__, one.__defaults__, one.__kwdefaults__, one.__dict__]
                elif kind_of(id(type(one))) == ARRAY:
                    found += of_array(one)
        return self._entered(found)

    def _entered(self, found: Iterable[Any]) -> list[Any]:
        kind_of = self._walk.kinds.get
        return [
            one
            for one in found
            if (kind := kind_of(id(type(one)))) in ENTERED
            or (kind == SPACE and not self._walk.is_namespace(one))
            or (kind in DEFINED and id(one) in self._walk.definitions)
        ]

    def _kind(self, one: Any) -> int:
        return self._walk.kinds.of(type(one))

    def _is_hashed(self, key: Any) -> bool:
        """True if code of Python's works out the hash of a key, or of what it consists of."""
        return self._kind(key) == HASHED or (is_a(key, tuple, frozenset) and any(map(self._is_hashed, _parts(key))))

    def _is_early(self, held: Any) -> bool:
        kind = self._kind(held)
        return kind in EARLY or (kind == TUPLE and type(held) is tuple and all(map(self._is_early, held)))


def _numbered(edges: dict[int, set[int]]) -> dict[int, int]:
    """Of each object, by its id, the number of its circle."""
    return {one: number for number, some in enumerate(circles(edges)) for one in some}


def _parts(key: Any) -> Iterable[Any]:
    base: Any = tuple if is_a(key, tuple) else frozenset
    parts: Iterable[Any] = base.__iter__(key)
    return parts


def _keys(one: Any) -> Iterable[Any]:
    """The members or keys of a set or dict, where these are more than text and numbers."""
    base: Any = next((kind for kind in _TABLES if is_a(one, kind)), None)
    if base is None or VALUES.issuperset(map(id, map(type, base.__iter__(one)))):
        return ()
    keys: Iterable[Any] = base.__iter__(one)
    return keys


def _has_hash(key: Any, attributes: dict[str, Any]) -> bool:
    """True if the code of a key gives the same hash when the object has these attributes alone."""
    try:
        bare = object.__new__(type(key))
        building.set_state(bare, attributes)
        return hash(bare) == hash(key)
    except Exception:  # whatever it answers where attributes are missing
        return False


def circles(edges: dict[int, set[int]]) -> list[list[int]]:
    """Strongly connected components, each after those it leads to: Tarjan's algorithm, without recursion."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[list[int]] = []
    for start in edges:
        if start in order:
            continue
        work: list[tuple[int, Any]] = [(start, iter(sorted(edges[start])))]
        order[start] = low[start] = len(order)
        stack.append(start)
        on_stack.add(start)
        while work:
            here, following = work[-1]
            advanced = False
            for one in following:
                if one not in edges:  # it needs nothing
                    continue
                if one not in order:
                    order[one] = low[one] = len(order)
                    stack.append(one)
                    on_stack.add(one)
                    work.append((one, iter(sorted(edges.get(one, ())))))
                    advanced = True
                    break
                if one in on_stack:
                    low[here] = min(low[here], order[one])
            if advanced:
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[here])
            if low[here] == order[here]:
                circle = []
                while True:
                    one = stack.pop()
                    on_stack.discard(one)
                    circle.append(one)
                    if one == here:
                        break
                found.append(circle)
    return found
