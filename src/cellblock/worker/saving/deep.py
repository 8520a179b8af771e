"""The pickler for values that nest deeper than C code may call itself: in Python, where calls nest without bound."""

from __future__ import annotations

import copyreg
import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

_NO_BOUND = 2**30
_RAISED = (None,) * 4


class Deep(pickle._Pickler):  # type: ignore[name-defined]  # not in the type stubs
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
            reduced = of_kind(obj) if of_kind is not None else obj.__reduce_ex__(5)
        if isinstance(reduced, str):
            self.save_global(obj, reduced)
            return
        function, arguments, state, items, pairs, setter = (*reduced, *_RAISED)[:6]
        self.save_reduce(function, arguments, state, items, pairs, setter, obj=obj)


@contextmanager
def unlimited() -> Iterator[None]:
    """Lift the bound on how deep Python calls may nest."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(_NO_BOUND)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
