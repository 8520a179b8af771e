"""What is held on an event loop ends with it: where that was closed, or stopped, nobody on it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar, cast

T = TypeVar("T")


class OfLoop(Generic[T]):
    """An attribute that is made with its first use, and anew for another event loop where that of its last use ended.

    A lock that is held there, by a task that does not go on, is free for those of the other loop.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._key = f"{name} of a loop"

    def __get__(self, instance: object, owner: type | None = None) -> T:
        if instance is None:  # as of a class
            return cast("T", self)
        here = asyncio._get_running_loop()
        value: T
        value, loop = vars(instance).get(self._key) or (self._make(), here)
        if loop is not here is not None:
            if loop is not None and not loop.is_running():
                value = self._make()
            loop = here
        vars(instance)[self._key] = value, loop
        return value
