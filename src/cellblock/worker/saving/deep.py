"""The pickler for values that nest deeper than C code may call itself: in Python, where calls nest without bound."""

from __future__ import annotations

import copyreg
import pickle
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

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
