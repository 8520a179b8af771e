"""The runner's own modules: out of reach by import, and the same after each cell as before the first.

A cell that replaces functions in every module it can import, as mocking and patching tools do, finds none of the
runner's. What frames and the collector lead to can still be changed: then the process ends, and another is started.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from operator import attrgetter, is_, itemgetter
from sys import modules
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from cellblock.worker.interrupts import raise_postponed, sheltered, was_postponed

T = TypeVar("T")
_PACKAGE = "cellblock"
_SERVING = tuple(f"{_PACKAGE}.{name}" for name in ("hosting.", "text", "values.", "wire.", "worker."))
_DONE = tuple(
    f"{_PACKAGE}.worker.{name}" for name in ("confine.", "family.", "init.", "main", "reduced.", "relayed.", "saving")
)
"""Modules whose work is over before a cell runs, but for `_CALLS`; what the first zygote of a family has of the
nursery; and what saves in a process of its own: a cell that changes it spoils what is saved of its own session.
"""
_CALLS = f"{_PACKAGE}.worker.confine.syscalls"


_written = attrgetter("__code__", "__defaults__", "__kwdefaults__")
_LEADS = ("__", "frame", "f_back", "f_globals", "ctypes", "gc", "signal", "meta_path")


class Broken(BaseException):
    """The runner's own code failed at what no cell can make it fail at: a cell has changed it."""


def ours(function: Callable[..., T], *args: object, cells: tuple[type[Exception], ...] = ()) -> T:
    """Call what is the runner's own, and guards against the code of values by itself. `cells` errors are the cell's."""
    try:
        result = sheltered(function, *args)
    except Exception as error:
        if isinstance(error, (MemoryError, RecursionError, *cells)) or was_postponed(error):
            raise
        raise Broken from error
    raise_postponed()
    return result


def take_out() -> list[ModuleType]:
    """Remove the runner's modules from `sys.modules`: from here on an import of the package is another's."""
    names = [name for name in modules if name == _PACKAGE or name.startswith(f"{_PACKAGE}.")]
    return [modules.pop(name) for name in names]


@contextmanager
def put_back(runner: list[ModuleType]) -> Iterator[list[ModuleType]]:
    """While more of the runner's modules are imported: they stand where an import finds them, and another's do not.

    Gives what was added, once it is over. Not while code of a cell's can run.
    """
    others = take_out()
    modules.update((module.__name__, module) for module in runner)
    added: list[ModuleType] = []
    try:
        yield added
    finally:
        known = set(map(id, runner))
        added += [module for module in take_out() if id(module) not in known]
        modules.update((module.__name__, module) for module in others)


class Integrity:
    """Contents of the runner's modules, classes and tables when this was made."""

    __slots__ = ("_functions", "_getters", "_held", "_modules", "_objects", "_size", "_spaces")

    def __init__(self, runner: list[ModuleType]) -> None:
        serving = [module for module in runner if _serves(module.__name__)]
        for module in serving:  # made with the first warning that comes of what it calls, such as of a file left open
            vars(module).setdefault("__warningregistry__", {})
        spaces: list[Mapping[str, Any]] = [vars(module) for module in serving]
        classes = [
            vars(held)
            for space in spaces
            for held in space.values()
            if isinstance(held, type) and held.__module__ == space["__name__"]
        ]
        tables = [held for space in spaces for name, held in space.items() if type(held) is dict and _is_fixed(name)]
        functions = {id(held): held for space in (*spaces, *classes) for held in space.values() if _is_written(held)}
        self._functions = list(functions.values())
        self._objects: list[tuple[attrgetter[Any], object]] = []
        self._spaces = [*spaces, *classes, *tables]
        self._getters = [
            *((_getter(_names(space)), space) for space in (*spaces, vars(builtins)) if _names(space)),
            *((_getter(list(space)), space) for space in (*classes, *tables) if space),
        ]
        self._held = list(self._now())
        self._size = sum(map(len, self._spaces))
        self._modules = 0

    def watch(self, *objects: tuple[object, tuple[str, ...]]) -> None:
        """Objects, too, keep their classes and what they hold in these attributes."""
        self._objects = [(attrgetter(*names, names[0]), one) for one, names in objects]  # at least two: a tuple
        self.renew()

    def renew(self) -> None:
        """Take the present contents for right: they were looked at, and then changed by the runner itself."""
        self._held = list(self._now())

    def holds(self) -> bool:
        """True if that is all there still, each of it the same, and nothing else. Takes about 60 µs, and as much of
        the next cell, which finds other things in the processor's caches.
        """
        try:
            return sum(map(len, self._spaces)) == self._size and all(map(is_, self._now(), self._held))
        except (AttributeError, LookupError):
            return False

    def holds_after(self, source: str) -> bool:
        """The same after a cell, looked at only where its source names what may lead here, or it imported something."""
        before, self._modules = self._modules, len(modules)
        if before == self._modules and not any(word in source for word in _LEADS):
            return True
        return self.holds()

    def _now(self) -> Iterator[object]:
        named = chain.from_iterable([get(space) for get, space in self._getters])
        written = chain.from_iterable(map(_written, self._functions))
        objects = chain.from_iterable([(type(one), *get(one)) for get, one in self._objects])
        return chain(named, written, objects)


def _serves(name: str) -> bool:
    return name == _CALLS or (name.startswith(_SERVING) and not name.startswith(_DONE))


def _names(space: Mapping[str, Any]) -> list[str]:
    return [name for name in space if not name.startswith("__")]


def _is_fixed(name: str) -> bool:
    return name.isupper()


def _is_written(held: object) -> bool:
    return type(held) is FunctionType


def _getter(keys: list[Any]) -> itemgetter[Any]:
    return itemgetter(*keys * 2) if len(keys) == 1 else itemgetter(*keys)  # of one alone, itemgetter gives no tuple
