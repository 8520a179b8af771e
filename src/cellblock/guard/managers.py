"""Context managers in code that may be suspended: left alone where another thread ends that code."""

from __future__ import annotations

from typing import Any

from cellblock.guard.delegating import Delegating
from cellblock.guard.signals import Ending


class Manager:
    """Stands for a context manager, and leaves it alone where the cell is not what runs."""

    __slots__ = ("_ending", "_exit", "_manager")

    def __init__(self, ending: Ending, manager: Any) -> None:
        self._ending = ending
        self._manager = manager
        kind = type(manager)
        try:
            self._exit: Any = kind.__exit__
            kind.__enter__  # noqa: B018
        except AttributeError:
            raise TypeError(f"{kind.__name__!r} object does not support the context manager protocol") from None

    def __enter__(self) -> Any:
        return type(self._manager).__enter__(self._manager)

    def __exit__(self, *how: object) -> Any:
        return False if self._ending.foreign() else self._exit(self._manager, *how)


class AsyncManager:
    """As `Manager`, for `async with`."""

    __slots__ = ("_delegating", "_ending", "_manager")

    def __init__(self, ending: Ending, delegating: Delegating, manager: Any) -> None:
        self._ending = ending
        self._delegating = delegating
        self._manager = manager
        if not hasattr(type(manager), "__aenter__") or not hasattr(type(manager), "__aexit__"):
            name = type(manager).__name__
            raise TypeError(f"{name!r} object does not support the asynchronous context manager protocol")

    async def __aenter__(self) -> Any:
        return await self._delegating.awaited(type(self._manager).__aenter__(self._manager))

    async def __aexit__(self, *how: object) -> Any:
        if self._ending.foreign():
            return False
        return await self._delegating.awaited(type(self._manager).__aexit__(self._manager, *how))
