"""Pickles a group of values: what the standard pickler cannot is given to reducers, one for each type.

What gives the builders of values stands in the pickler's memo from the start, and so do the dictionaries that are the
globals of functions: neither is ever written out, and no stream names a module of the runner's.
"""

from __future__ import annotations

import sys
import types
from _pickle import Pickler
from collections.abc import Callable, Iterable
from typing import Any

from cellblock.worker.saving import building
from cellblock.worker.saving.deep import Deep
from cellblock.worker.saving.losses import REFUSED, Unsaved, advice
from cellblock.worker.saving.objects import way_of
from cellblock.worker.saving.patches import is_library
from cellblock.worker.saving.walk import Walk

Reduced = Any
"""A tuple as `__reduce__` gives, or NotImplemented: the standard way."""
Reducer = Callable[["Saving", Any], Reduced]

REDUCERS: dict[type, Reducer] = {}
"""Of exact types."""
FAMILIES: list[tuple[type, Reducer]] = []
"""Of types and those derived from them, the first that fits."""
NAMED: dict[str, Reducer] = {}
"""Of types of packages, by their full names."""
registered: dict[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {}
"""What cells registered: of each type, what saves a value and what makes it again. Not fixed, so not in capitals."""
OF_LOADER = ("shared", "array", "original", "hand")
"""What streams call that needs the loading itself."""


_STREAMS = ("stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__")


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


class Saving:
    """What reducers have to know of the group that is pickled: what it defines itself, and what lies elsewhere."""

    def __init__(
        self,
        walk: Walk,
        namespace: dict[str, Any],
        origins: Any,
        group: Iterable[int],
        how: dict[type, Reducer],
        *,
        elsewhere: Callable[[Any], tuple[str, str | int] | None],
        buffer: Callable[[Any, Any], int],
    ) -> None:
        self.walk = walk
        self.namespace = namespace
        self.origins = origins
        self.elsewhere = elsewhere
        self.buffer = buffer
        """Puts an array's memory away; the number by which the stream refers to it. With the object whose memory it is,
        None where it was made for the pickling."""
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
        self.kept: list[Any] = []
        """What was made while pickling and whose identity the memo relies on."""
        self.last: Any = None
        self.deep = False
        """Whether values nest so deep that the standard pickler gives up."""
        self._how = how
        self._memo: dict[int, tuple[int, Any]] = {id(BUILDER): (0, BUILDER)}
        self._take_space(namespace, ["main"])
        for name in sorted({name for root in group for name in walk.modules_of.get(root, ())}):
            self._take_space(vars(building.module(name)), ["module", name])
        for root in group:
            for one in walk.spaces_of.get(root, ()):
                self._take_own(one)

    def _take_space(self, space: dict[str, Any], how: list[str]) -> None:
        self.spaces.append(how)
        self._memo[id(space)] = (len(self._memo), space)

    def _take_own(self, space: dict[str, Any]) -> None:
        """The globals of functions that were made apart from every module: `exec` with a dictionary."""
        held = space.get("__builtins__")
        standard = held is not None and (isinstance(held, types.ModuleType) or "print" in held)
        made = self.walk.hand.get(id(space))
        if made is not None:
            known = "known" if sys.modules.get(made.__name__) is made else ""
            self._take_space(space, ["hand", made.__name__, known, "builtins" if standard else ""])
        else:
            self._take_space(space, ["own", "builtins"] if standard else ["own"])
        items = [(key, one) for key, one in space.items() if not (standard and key == "__builtins__")]
        self.later.append((building.fill_space, (space, items)))

    def dump(self, value: Any, sink: Any, callback: Callable[[Any], object]) -> None:
        """Pickle a value, and after it what was put off. Raises whatever a value's own code raises, and `Unsaved`."""
        pickler: Any = (Deep if self.deep else _Fast)(sink, 5, buffer_callback=callback)
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

    def reduce(self, value: Any) -> Reduced:
        self.last = value
        kind = type(value)
        how = self._how.get(kind)
        if how is None:
            self._how[kind] = how = self._decide(kind)
        return how(self, value)

    def _decide(self, kind: type) -> Reducer:
        way = self._way(kind)
        standing = {id(getattr(sys, name, None)): name for name in _STREAMS if type(getattr(sys, name, None)) is kind}
        if not standing:
            return way

        def unless_standing(saving: Saving, value: Any) -> Reduced:
            name = standing.get(id(value))
            return way(saving, value) if name is None else (building.stream_of, (name,))

        return unless_standing

    def _way(self, kind: type) -> Reducer:
        for base in kind.__mro__:
            if base in registered:
                return _by_codec(*registered[base])
        how = REDUCERS.get(kind) or NAMED.get(f"{kind.__module__}.{kind.__qualname__}")
        if how is not None:
            return how
        for base, how in FAMILIES:
            if issubclass(kind, base):
                return how
        for base in kind.__mro__:
            name = f"{base.__module__}.{base.__qualname__}"
            if name in REFUSED:
                return refuse
            if name in NAMED_FAMILIES:
                return NAMED_FAMILIES[name]
        way = way_of(kind, self.origins)

        def usual(_: Saving, value: Any) -> Reduced:
            return way(value)

        held = self._of_module(kind)
        if held:
            table = {id(value): name for name, value in held.items()}
            module = kind.__module__

            def by_name(saving: Saving, value: Any) -> Reduced:
                name = table.get(id(value))
                return usual(saving, value) if name is None else (building.attribute, (module, name))

            return by_name
        return usual

    def _of_module(self, kind: type) -> dict[str, Any]:
        """Objects of this type that the type's own module, one of a library's, holds: `dataclasses.MISSING`."""
        module = sys.modules.get(kind.__module__) if self.origins.of(kind) is not None else None
        if module is None or not is_library(module):
            return {}
        return {name: value for name, value in list(vars(module).items()) if type(value) is kind}


def _by_codec(save: Callable[[Any], Any], load: Callable[[Any], Any]) -> Reducer:
    def reduce(_: Saving, value: Any) -> Reduced:
        return building.by_codec, (load, save(value))

    return reduce


def refuse(_: Saving, value: Any) -> Reduced:
    raise Unsaved(value, *advice(value))


class _Fast(Pickler):
    """The standard pickler, asking for each value that is not a plain container or atom."""

    saving: Saving

    def reducer_override(self, value: Any) -> Reduced:
        return self.saving.reduce(value)


def is_full(one: types.CellType) -> bool:
    """Whether a closure's cell holds something yet."""
    try:
        one.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


__all__ = ["REDUCERS", "Reduced", "Saving", "family", "is_full", "named", "named_family", "reducer", "refuse"]
