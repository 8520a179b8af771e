"""Pickles a group of values: what the standard pickler cannot is given to reducers, one for each type.

What gives the builders of values stands in the pickler's memo from the start, and so do the dictionaries that are the
globals of functions: neither is ever written out, and no stream names a module of the runner's.
"""

from __future__ import annotations

import copyreg
import pickle
import re
import sys
import types
from _pickle import Pickler
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FunctionType
from typing import Any, TypeVar

from cellblock.worker.references import RUNNER, key_of, referred
from cellblock.worker.saving import building
from cellblock.worker.saving.circles import Circles
from cellblock.worker.saving.facts import HEAP, attributes_of, flags_of, full_name, is_a, module_of, mro_of, names_in
from cellblock.worker.saving.imported import is_library
from cellblock.worker.saving.losses import OF_RUNNER, REMEDIES, STREAMS, Unsaved, advice, at_once
from cellblock.worker.saving.objects import as_it_is, giver_of, parts_of, way_of, without_caches
from cellblock.worker.saving.walk import Walk

T = TypeVar("T")
Reduced = Any
"""A tuple as `__reduce__` gives, or NotImplemented: the usual way."""
Reducer = Callable[["Saving", Any], Reduced]

REDUCERS: dict[type | str, Reducer] = {}
"""Of exact types; of those of packages by their full names."""
FAMILIES: dict[type | str, Reducer] = {}
"""Of types and those derived from them: the first type that fits, and otherwise the first name."""
registered: dict[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {}
"""Functions that cells registered: for each type, one that saves a value and one that makes it again. Not fixed, so
not in capitals."""
OF_LOADER = ("shared", "array", "original", "hand")
"""Functions that streams call and that need the loading itself."""


def reducer(*kinds: type | str) -> Callable[[Reducer], Reducer]:
    def register(function: Reducer) -> Reducer:
        REDUCERS.update(dict.fromkeys(kinds, function))
        return function

    return register


def family(*kinds: type | str) -> Callable[[Reducer], Reducer]:
    def register(function: Reducer) -> Reducer:
        FAMILIES.update(dict.fromkeys(kinds, function))
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


class Call:
    """Stands for what a builder gives as the stream is loaded."""

    def __init__(self, builder: Callable[..., Any], *arguments: Any) -> None:
        self.reduced = builder, arguments


@reducer(Call)
def _call(_: Saving, value: Call) -> Reduced:
    return value.reduced


class Saving:
    """Context for reducers about the group that is pickled.

    A derived class says where the definitions of other groups lie, and where the memory of arrays goes.
    """

    def __init__(
        self,
        walk: Walk,
        namespace: dict[str, Any],
        origins: Any,
        group: Iterable[int],
        how: dict[int, Reducer],
        *,
        references: dict[int, tuple[str, int]],
        circles: tuple[list[Any], dict[int, dict[str, Any]]],
    ) -> None:
        self.walk = walk
        self.namespace = namespace
        self.origins = origins
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
        self._of_modules: dict[str, Call] = {}
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

    def elsewhere(self, value: Any) -> tuple[str, str | int] | None:
        """Place of a definition that is not of this group."""
        raise NotImplementedError

    def buffer(self, data: Any, owner: Any) -> int:
        """Put an array's memory away; the number by which the stream refers to it. `owner` is the object whose memory
        it is, None where it was made for the pickling.
        """
        raise NotImplementedError

    def reference_to(self, value: Any, path: str) -> Reduced | None:
        """A definition as it is told where it lies elsewhere: in a module, under this path, or in another group."""
        module = self.origins.of(value)
        if module == RUNNER:
            key = key_of(value)
            if key is None:
                raise Unsaved(value, *OF_RUNNER)
            return referred, (key,)
        if module is not None:
            return building.attribute, (module, path)
        place = self.elsewhere(value)
        return None if place is None else (STAND_INS["shared"], place)

    def _take_space(self, space: dict[str, Any], how: list[str]) -> None:
        self.spaces.append(how)
        self._memo[id(space)] = (len(self._memo), space)

    def space_of(self, mapping: dict[str, Any]) -> Any:
        """Form in which the globals of a function are written."""
        module = self.origins.space(mapping)
        if module is None:
            return mapping
        return self._of_modules.setdefault(module, Call(building.attribute, module, "__dict__"))

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
            own = Call(building.set_state, value, self._early[id(value)])
        if id(value) in self._late:
            self.later.append((building.set_content, (value, (None, items, pairs))))
            items = pairs = None
        return made, arguments, (own, held, slots, shared, items, pairs), *rest

    def _decide(self, kind: type) -> Reducer:
        names = list(map(full_name, mro_of(kind)))
        standing = {id(getattr(sys, name, None)): name for name in STREAMS if type(getattr(sys, name, None)) is kind}
        given = next((ways for base in mro_of(kind) if (ways := _of_exactly(base, registered)) is not None), None)
        way = self._way(kind, names) if given is None else _by_codec(*given)
        may_be_lost = given is None and not REMEDIES.keys().isdisjoint(names)
        if not standing and not may_be_lost:
            return way

        def reduce(saving: Saving, value: Any) -> Reduced:
            if id(value) in standing:
                return building.stream_of, (standing[id(value)],)
            return refuse(saving, value) if may_be_lost and at_once(value) is not None else way(saving, value)

        return reduce

    def _way(self, kind: type, names: list[str]) -> Reducer:
        how = _of_exactly(kind, REDUCERS) or REDUCERS.get(names[0])
        if how is not None:
            return how
        if self.origins.of(kind) == RUNNER:
            return refuse
        for base, how in FAMILIES.items():
            if isinstance(base, type) and issubclass(kind, base):
                return how
        how = next((FAMILIES[name] for name in names if name in FAMILIES), None)
        return self._usual(kind) if how is None else _or_else(how, self._usual(kind))

    def _usual(self, kind: type) -> Reducer:
        way = without_caches(kind, way_of(kind, self.origins))
        giver = attributes_of(giver_of(kind)) if self.origins.of(kind) is None else {}
        is_named = any(is_a(giver.get(name), types.FunctionType) for name in ("__reduce__", "__reduce_ex__"))
        module, standing = module_of(kind), self._of_module(kind)

        def usual(saving: Saving, value: Any) -> Reduced:
            if id(value) in standing:
                return building.attribute, (module, standing[id(value)])
            reduced = way(value)
            if not is_named:
                return reduced
            reduced = value.__reduce_ex__(5) if reduced is NotImplemented else reduced
            if is_a(reduced, str) or id(value) in saving.held_by(kind):
                return as_it_is(value) or reduced  # it cannot be found, or its class be called, before these are made
            return reduced

        return usual

    def held_by(self, kind: type) -> set[int]:
        """The ids of what a class of this group holds, itself or by others, where it is a cell's."""
        if self.elsewhere(kind) is not None or not self.walk.reaches(kind):
            return set()
        if id(kind) not in self._held:
            self._held[id(kind)] = Circles(self.walk).reached_by(kind)
        return self._held[id(kind)]

    def _of_module(self, kind: type) -> dict[int, str]:
        """The names of objects of this type that its own module, one of a library's, holds: `dataclasses.MISSING`."""
        known = self.origins.of(kind) is not None or not flags_of(kind) & HEAP  # as the type of `sys.version_info`
        module = sys.modules.get(module_of(kind)) if known else None
        if not is_a(module, types.ModuleType) or not is_library(module):  # type: ignore[arg-type]
            return {}
        return {id(value): name for name, value in list(names_in(module).items()) if type(value) is kind}


def _of_exactly(kind: type, table: Mapping[Any, T]) -> T | None:
    """Entry of a table for a type, whose metaclass may refuse to be hashed or compared."""
    return next((found for one, found in table.items() if one is kind), None)


def _by_codec(save: Callable[[Any], Any], load: Callable[[Any], Any]) -> Reducer:
    return lambda _, value: (building.by_codec, (load, save(value)))


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


_BOUND = 5_000_000
"""Of nested calls; each takes some hundred bytes of the heap."""
_FOR_VALUES = 1000
"""Depth to which the code of values may nest calls, as it may elsewhere."""
_ONE_STACK = sys.version_info < (3, 12)
"""True if the bound counts calls of C as well, for which the stack has room only up to the usual bound."""
_Pickler: Any = pickle._Pickler
_ABSENT = (None,) * 4


class Deep(_Pickler):  # type: ignore[misc]  # the type stubs do not tell of its parts
    """Writes what the standard pickler writes, some fifty times slower.

    Every call on the way from a value to what it holds is one from Python to Python, which takes no C stack.
    """

    saving: Any

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        self.framer.commit_frame()
        known = self.memo.get(id(obj))
        if known is not None:
            self.write(self.get(known[0]))
            return
        kind = type(obj)
        known_way = self.dispatch.get(kind)
        if known_way is not None and kind is not FunctionType and kind is not type:
            known_way(self, obj)
            return
        reduced = self.saving.reduce(obj)
        if reduced is NotImplemented:
            if issubclass(kind, type):
                self.save_global(obj)
                return
            of_kind = copyreg.dispatch_table.get(kind)
            with _bounded():
                reduced = of_kind(obj) if of_kind is not None else obj.__reduce_ex__(5)
        if isinstance(reduced, str):
            self.save_global(obj, reduced)
            return
        function, arguments, state, items, pairs, setter = (*reduced, *_ABSENT)[:6]
        self.save_reduce(function, arguments, state, items, pairs, setter, obj=obj)


@contextmanager
def unlimited() -> Iterator[None]:
    """Lift the bound on how deep Python calls may nest."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(_BOUND)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


@contextmanager
def _bounded() -> Iterator[None]:
    """While code of a value's own runs: from here on, the usual bound."""
    if _ONE_STACK:
        try:
            sys.setrecursionlimit(1)
        except RecursionError as error:  # it tells how deep the calls are nested now
            sys.setrecursionlimit(int(re.findall(r"depth (\d+)", str(error))[0]) + _FOR_VALUES)
    try:
        yield
    finally:
        sys.setrecursionlimit(_BOUND)
