"""The runner's own modules: out of reach by import, and the same after each cell as before the first.

A cell that replaces functions in every module it can import, as mocking and patching tools do, finds none of the
runner's. What frames and the collector lead to can still be changed: then the process ends, and another is started.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from itertools import chain
from operator import is_, itemgetter
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T")
_PACKAGE = "cellblock"
_SERVING = (f"{_PACKAGE}.values.", f"{_PACKAGE}.wire.", f"{_PACKAGE}.worker.")
_DONE = tuple(f"{_PACKAGE}.worker.{name}" for name in ("confine.", "main", "reduced.", "zygote"))
"""What is over before a cell runs, but for `_CALLS`."""
_CALLS = f"{_PACKAGE}.worker.confine.syscalls"


_LEADS = ("__", "frame", "f_back", "f_globals", "ctypes", "gc", "signal", "meta_path")


class Broken(BaseException):
    """The runner's own code failed at what no cell can make it fail at: a cell has changed it."""


def ours(function: Callable[..., T], *args: object, cells: tuple[type[Exception], ...] = ()) -> T:
    """Call what is the runner's own, and guards against the code of values by itself. `cells` errors are the cell's."""
    try:
        return function(*args)
    except Exception as error:
        if isinstance(error, (MemoryError, RecursionError, *cells)):
            raise
        raise Broken from error


def take_out() -> list[ModuleType]:
    """Remove the runner's modules from `sys.modules`: from here on an import of the package is another's."""
    names = [name for name in sys.modules if name == _PACKAGE or name.startswith(f"{_PACKAGE}.")]
    return [sys.modules.pop(name) for name in names]


class Integrity:
    """What the runner's modules and classes held when this was made."""

    def __init__(self, modules: list[ModuleType]) -> None:
        names = [module.__name__ for module in modules]
        spaces: list[Mapping[str, Any]] = [
            vars(module) for module, name in zip(modules, names, strict=True) if _serves(name)
        ]
        spaces += [
            vars(held)
            for space in list(spaces)
            for held in space.values()
            if isinstance(held, type) and held.__module__ == space["__name__"]
        ]
        self._spaces = spaces
        self._getters = [(itemgetter(*held), space) for space in spaces if (held := _names(space))]
        self._held = list(self._now())
        self._size = sum(map(len, spaces))
        self._modules = 0

    def holds(self) -> bool:
        """Whether that is all there still, each of it the same, and nothing else. Takes about 50 µs, and as much of
        the next cell, which finds other things in the processor's caches.
        """
        try:
            return sum(map(len, self._spaces)) == self._size and all(map(is_, self._now(), self._held))
        except KeyError:
            return False

    def holds_after(self, source: str) -> bool:
        """The same after a cell, looked at only where its source names what may lead here, or it imported something."""
        before, self._modules = self._modules, len(sys.modules)
        if before == self._modules and not any(word in source for word in _LEADS):
            return True
        return self.holds()

    def _now(self) -> chain[object]:
        return chain.from_iterable([get(space) for get, space in self._getters])


def _serves(name: str) -> bool:
    return name == _CALLS or (name.startswith(_SERVING) and not name.startswith(_DONE))


def _names(space: Mapping[str, Any]) -> list[str]:
    names = [name for name in space if not name.startswith("__")]
    return names * 2 if len(names) == 1 else names  # of one alone, itemgetter gives no tuple
