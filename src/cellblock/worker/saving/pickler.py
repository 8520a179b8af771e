"""Pickles a group of values: what the standard pickler cannot is given to reducers, one for each type.

What gives the builders of values stands in the pickler's memo from the start, and so do the dictionaries that are the
globals of functions: neither is ever written out, and no stream names a module of the runner's.
"""

from __future__ import annotations

import sys
import types
from _pickle import Pickler
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from cellblock.worker.references import RUNNER
from cellblock.worker.saving import building
from cellblock.worker.saving.caches import without_caches
from cellblock.worker.saving.circles import Circles
from cellblock.worker.saving.deep import Deep
from cellblock.worker.saving.facts import attributes_of, flags_of, full_name, is_a, module_of, mro_of, names_in
from cellblock.worker.saving.imported import is_library
from cellblock.worker.saving.losses import REFUSED, STREAMS, Unsaved, advice
from cellblock.worker.saving.objects import as_it_is, giver_of, parts_of, way_of
from cellblock.worker.saving.walk import Walk

T = TypeVar("T")
Reduced = Any
"""A tuple as `__reduce__` gives, or NotImplemented: the usual way."""
Reducer = Callable[["Saving", Any], Reduced]

REDUCERS: dict[type, Reducer] = {}
"""Of exact types."""
FAMILIES: list[tuple[type, Reducer]] = []
"""Of types and those derived from them, the first that fits."""
NAMED: dict[str, Reducer] = {}
"""Of types of packages, by their full names."""
registered: dict[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {}
"""Functions that cells registered: for each type, one that saves a value and one that makes it again. Not fixed, so
not in capitals."""
OF_LOADER = ("shared", "array", "original", "hand")
"""Functions that streams call and that need the loading itself."""


def reducer(*kinds: type) -> Callable[[Reducer], Reducer]:
    def register(function: Reducer) -> Reducer:
        REDUCERS.update(dict.fromkeys(kinds, function))
        return function

    return register


def family(*kinds: type) -> Callable[[Reducer], Reducer]:
    def register(function: Reducer) -> Reducer:
        FAMILIES.extend((kind, function) for kind in kinds)
        return function

    return register


def named(*names: str) -> Callable[[Reducer], Reducer]:
    def register(function: Reducer) -> Reducer:
        NAMED.update(dict.fromkeys(names, function))
        return function

    return register


NAMED_FAMILIES: dict[str, Reducer] = {}
"""Of types of packages and those derived from them."""


def named_family(*names: str) -> Callable[[Reducer], Reducer]:
    def register(function: Reducer) -> Reducer:
        NAMED_FAMILIES.update(dict.fromkeys(names, function))
        return function

    return register


def _stand_in(name: str) -> Callable[..., Any]:
    def stand_in(*_: Any) -> Any:
        raise AssertionError(name)

    return stand_in


STAND_INS = {one: _stand_in(one) for one in OF_LOADER}
BUILDER = _stand_in("builder")
"""Stands for what gives a builder by its number; the first thing in the memo."""
NUMBERS = {id(one): number for number, one in enumerate((*STAND_INS.values(), *building.BUILDERS))}


class SpaceOf:
    """Stands for the globals of a function, those of a module in which others have its place."""

    def __init__(self, module: str) -> None:
        self.module = module


class Early:
    """Stands for attributes that an object is to have before its state is loaded."""

    def __init__(self, value: Any, attributes: dict[str, Any]) -> None:
        self.value, self.attributes = value, attributes


class Bound:
    """Stands for a value that is to be in a module's namespace as soon as it is loaded."""

    def __init__(self, space: dict[str, Any], name: str, value: Any) -> None:
        self.space, self.name, self.value = space, name, value


class Saving:
    """Context for reducers about the group that is pickled: its own definitions, and those that lie elsewhere."""

    def __init__(
        self,
        walk: Walk,
        namespace: dict[str, Any],
        origins: Any,
        group: Iterable[int],
        how: dict[int, Reducer],
        *,
        elsewhere: Callable[[Any], tuple[str, str | int] | None],
        buffer: Callable[[Any, Any], int],
        references: dict[int, tuple[str, int]],
        circles: tuple[list[Any], dict[int, dict[str, Any]]],
    ) -> None:
        self.walk = walk
        self.namespace = namespace
        self.origins = origins
        self.elsewhere = elsewhere
        self.buffer = buffer
        """Puts an array's memory away; the number by which the stream refers to it. With the object whose memory it is,
        None where it was made for the pickling."""
        self.references = references
        """Objects of other groups, by their ids: the key of the group, and the place in its memo."""
        self.reaches: set[str] = set()
        """Names that the functions of this group mention."""
        self.cells: dict[int, types.CellType] = {}
        """Cells whose contents are to be written by nobody yet."""
        self.filled: set[int] = set()
        self.later: list[tuple[Any, tuple[Any, ...]]] = []
        """Calls to be made once everything else is there: of which builder, with what."""
        self.notes: list[tuple[object, str, str]] = []
        """Parts that are left out of what is saved all the same: of what, what, and the remedy."""
        self.spaces: list[list[str]] = []
        self._held: dict[int, set[int]] = {}
        self.kept: list[Any] = []
        """Objects made while pickling, on whose identity the memo relies."""
        self.memory: dict[int, Any] = {}
        """Plain arrays that stand for the memory of those of derived classes, by the ids of these."""
        self.views: dict[int, bool] = {}
        """Of classes of arrays, by their ids, whether theirs can be views."""
        self._of_modules: dict[str, SpaceOf] = {}
        self.last: Any = None
        self.deep = False
        """True if values nest so deep that the standard pickler gives up."""
        self._how = how
        self._memo: dict[int, tuple[int, Any]] = {id(BUILDER): (0, BUILDER)}
        self._take_space(namespace, ["main"])
        for name in sorted({name for root in group for name in walk.modules_of.get(root, ())}):
            self._take_space(vars(building.module(name)), ["module", name])
        for root in group:
            for one in walk.spaces_of.get(root, ()):
                self._take_own(one)
        tables, self._early = circles
        self._late = {id(one) for one in tables}
        self._circled = self._late | self._early.keys()
        for one in tables:
            if type(one) in (set, dict) and id(one) not in self._memo:
                self._take_space(one, ["own" if type(one) is dict else "set"])
                items, pairs = (None, list(one.items())) if type(one) is dict else (list(one), None)
                self.later.append((building.set_content, (one, (None, items, pairs))))
        self.begin = len(self._memo)
        """Size of the memo before anything is written."""

    def _take_space(self, space: dict[str, Any], how: list[str]) -> None:
        self.spaces.append(how)
        self._memo[id(space)] = (len(self._memo), space)

    def space_of(self, mapping: dict[str, Any]) -> Any:
        """Form in which the globals of a function are written."""
        module = self.origins.space(mapping)
        return mapping if module is None else self._of_modules.setdefault(module, SpaceOf(module))

    def _take_own(self, space: dict[str, Any]) -> None:
        """The globals of functions that were made apart from every module: `exec` with a dictionary."""
        held = space.get("__builtins__")
        standard = held is not None and (is_a(held, types.ModuleType) or (type(held) is dict and "print" in held))
        builtins = "" if not standard else "builtins" if type(held) is dict else "builtins module"
        made = self.walk.hand.get(id(space))
        if made is not None:
            known = "known" if sys.modules.get(made.__name__) is made else ""
            self._take_space(space, ["hand", made.__name__, known, builtins])
        else:
            self._take_space(space, ["own", builtins] if standard else ["own"])
        items = [(key, one) for key, one in space.items() if not (standard and key == "__builtins__")]
        self.later.append((building.fill_space, (space, items)))

    def dump(self, value: Any, sink: Any, callback: Callable[[Any], object]) -> Any:
        """Pickle a value, and after it what was put off. Raises whatever a value's own code raises, and `Unsaved`.

        The pickler, which nothing here holds: its memo counts as a reference to what it holds.
        """
        if self.deep and self.references:
            raise Unsaved(value, "it nests too deep beside what it shares with names", "make it again")
        kind: Any = Deep if self.deep else _Referring if self.references else _Fast
        pickler = kind(sink, 5, buffer_callback=callback)
        pickler.saving = self
        pickler.memo = dict(self._memo)
        pickler.dump(value)
        while self.later or self.cells:
            calls, self.later = self.later, []
            cells = [one for key, one in self.cells.items() if key not in self.filled]
            self.filled.update(self.cells)
            self.cells = {}
            if cells:
                calls.append((building.fill_cells, ([(one, one.cell_contents) for one in cells if is_full(one)],)))
            self.kept.append(calls)
            pickler.dump(calls)
        pickler.dump(None)
        return pickler

    def reduce(self, value: Any) -> Reduced:
        self.last = value
        kind = type(value)
        how = self._how.get(id(kind))
        if how is None:
            self._how[id(kind)] = how = self._decide(kind)
            self.walk.kinds.of(kind)  # which holds it, so that its id is no other's
        if self._circled and id(value) in self._circled:
            return self._in_parts(value, how(self, value))
        return how(self, value)

    def _in_parts(self, value: Any, reduced: Reduced) -> Reduced:
        """An object on a circle with what its hash needs: some attributes come first, keys once all else is there."""
        if reduced is NotImplemented:
            reduced = parts_of(value, self.origins)
        if not is_a(reduced, tuple) or reduced[-1] is not building.set_parts:
            return reduced
        made, arguments, (own, held, slots, shared, items, pairs), *rest = reduced
        if id(value) in self._early and own is None:
            own = Early(value, self._early[id(value)])
        if id(value) in self._late:
            self.later.append((building.set_content, (value, (None, items, pairs))))
            items = pairs = None
        return made, arguments, (own, held, slots, shared, items, pairs), *rest

    def _decide(self, kind: type) -> Reducer:
        way = self._way(kind)
        standing = {id(getattr(sys, name, None)): name for name in STREAMS if type(getattr(sys, name, None)) is kind}
        if not standing:
            return way

        def unless_standing(saving: Saving, value: Any) -> Reduced:
            name = standing.get(id(value))
            return way(saving, value) if name is None else (building.stream_of, (name,))

        return unless_standing

    def _way(self, kind: type) -> Reducer:
        for base in mro_of(kind):
            ways = _of_exactly(base, registered)
            if ways is not None:
                return _by_codec(*ways)
        how = _of_exactly(kind, REDUCERS) or NAMED.get(full_name(kind))
        if how is not None:
            return how
        if self.origins.of(kind) == RUNNER:
            return refuse
        for base, how in FAMILIES:
            if issubclass(kind, base):
                return how
        for name in map(full_name, mro_of(kind)):
            if name in REFUSED:
                return refuse
            if name in NAMED_FAMILIES:
                return _or_else(NAMED_FAMILIES[name], self._usual(kind))
        return self._usual(kind)

    def _usual(self, kind: type) -> Reducer:
        way = without_caches(kind, way_of(kind, self.origins))
        giver = attributes_of(giver_of(kind)) if self.origins.of(kind) is None else {}
        is_named = any(is_a(giver.get(name), types.FunctionType) for name in ("__reduce__", "__reduce_ex__"))

        def usual(saving: Saving, value: Any) -> Reduced:
            reduced = way(value)
            if not is_named:
                return reduced
            reduced = value.__reduce_ex__(5) if reduced is NotImplemented else reduced
            if is_a(reduced, str) or id(value) in saving.held_by(kind):
                return as_it_is(value) or reduced  # it cannot be found, or its class be called, before these are made
            return reduced

        held = self._of_module(kind)
        if held:
            table = {id(value): name for name, value in held.items()}
            module = module_of(kind)

            def by_name(saving: Saving, value: Any) -> Reduced:
                name = table.get(id(value))
                return usual(saving, value) if name is None else (building.attribute, (module, name))

            return by_name
        return usual

    def held_by(self, kind: type) -> set[int]:
        """The ids of what a class of this group holds, itself or by others, where it is a cell's."""
        if self.elsewhere(kind) is not None or not self.walk.reaches(kind):
            return set()
        if id(kind) not in self._held:
            self._held[id(kind)] = Circles(self.walk).reached_by(kind)
        return self._held[id(kind)]

    def _of_module(self, kind: type) -> dict[str, Any]:
        """Objects of this type that the type's own module, one of a library's, holds: `dataclasses.MISSING`."""
        known = self.origins.of(kind) is not None or not flags_of(kind) & _HEAP  # as the type of `sys.version_info`
        module = sys.modules.get(module_of(kind)) if known else None
        if not is_a(module, types.ModuleType) or not is_library(module):  # type: ignore[arg-type]
            return {}
        return {name: value for name, value in list(names_in(module).items()) if type(value) is kind}


_HEAP = 1 << 9


def _of_exactly(kind: type, table: dict[type, T]) -> T | None:
    """Entry of a table for a type, whose metaclass may refuse to be hashed or compared."""
    return next((found for one, found in table.items() if one is kind), None)


def _by_codec(save: Callable[[Any], Any], load: Callable[[Any], Any]) -> Reducer:
    def reduce(_: Saving, value: Any) -> Reduced:
        return building.by_codec, (load, save(value))

    return reduce


def _or_else(way: Reducer, other: Reducer) -> Reducer:
    def reduce(saving: Saving, value: Any) -> Reduced:
        reduced = way(saving, value)
        return other(saving, value) if reduced is NotImplemented else reduced

    return reduce


def refuse(_: Saving, value: Any) -> Reduced:
    raise Unsaved(value, *advice(value))


class _Fast(Pickler):
    """The standard pickler, asking for each value that is not a plain container or atom."""

    saving: Saving

    def reducer_override(self, value: Any) -> Reduced:
        return self.saving.reduce(value)


class _Referring(_Fast):
    """The same, for what shares objects with other groups."""

    def persistent_id(self, value: Any) -> Any:
        return self.saving.references.get(id(value))


def is_full(one: types.CellType) -> bool:
    """True if a closure's cell holds something yet."""
    try:
        one.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


__all__ = [
    "REDUCERS", "Bound", "Early", "Reduced", "Saving", "SpaceOf", "family", "is_full", "named", "named_family",
    "reducer", "refuse",
]  # fmt: skip
