"""Finalizers of objects that a program may hold until the interpreter ends, when modules have lost all their names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def finalizer(method: Callable[[T], object]) -> Callable[[T], None]:
    """A `__del__` that leaves everything to the kernel while the interpreter ends."""
    is_ending = sys.is_finalizing

    def finalize(self: T) -> None:
        if not is_ending():
            method(self)

    finalize.__doc__ = method.__doc__
    return finalize
