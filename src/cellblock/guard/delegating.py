"""Iterators and awaitables that suspended code waits for: closed with it by its cell alone.

A generator or coroutine that is dropped closes what it waits for, by a method that the code may have written, in
whatever thread drops it, long after the cell. What is handed over here has no such method then. While it is waited for,
what is sent goes to a method that is called by its name: of an object of the host's, only if that is granted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cellblock.guard.anatomy import holder, lineage, name_of
from cellblock.guard.signals import Ending

if TYPE_CHECKING:
    from cellblock.guard.world import World

_FORWARDED = frozenset(("send", "throw", "close"))


class Delegate:
    """Stands for an iterator of the code's own, or of the host's."""

    __slots__ = ("_inner", "_world")

    def __init__(self, world: World, inner: Any) -> None:
        self._world = world
        self._inner = inner

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return next(self._inner)

    def __getattr__(self, name: str) -> Any:
        if name not in _FORWARDED or self._world.ending.foreign():
            raise AttributeError(name)
        return getattr(self._world.gates.read(self._inner, name), name)


class Delegating:
    """Hands over what is waited for."""

    def __init__(self, world: World) -> None:
        self._world = world

    def _decides(self, kind: type) -> bool:
        """True if a class of the code's own, or of the host's, may say how its objects are waited for."""
        world = self._world
        return world.classes.own(kind) or kind not in world.types or kind in world.host_types

    def iterated(self, value: Any) -> Any:
        """Iterator for `yield from value`."""
        found = iter(value)
        return Delegate(self._world, found) if self._decides(type(found)) else found

    def awaited(self, value: Any) -> Any:
        """Awaitable for `await value`."""
        kind = type(value)
        if not self._decides(kind) or holder(lineage(kind), "__await__") is None:
            return value
        return _Awaited(self, value)

    def stepped(self, value: Any) -> Any:
        """Iterator for `async for … in value`."""
        kind = type(value)
        if not self._decides(kind) or holder(lineage(kind), "__aiter__") is None:
            return value
        return _Stepped(self, value)


class _Awaited:
    __slots__ = ("_delegating", "_value")

    def __init__(self, delegating: Delegating, value: Any) -> None:
        self._delegating = delegating
        self._value = value

    def __await__(self) -> Any:
        return self._delegating.iterated(type(self._value).__await__(self._value))


class _Stepped:
    __slots__ = ("_delegating", "_steps", "_value")

    def __init__(self, delegating: Delegating, value: Any) -> None:
        self._delegating = delegating
        self._value = value

    def __aiter__(self) -> Any:
        self._steps = type(self._value).__aiter__(self._value)
        return self if self._delegating._decides(type(self._steps)) else self._steps

    def __anext__(self) -> Any:
        return self._delegating.awaited(type(self._steps).__anext__(self._steps))


def _require(kind: type, enter: str, leave: str, what: str) -> None:
    if not hasattr(kind, enter) or not hasattr(kind, leave):
        missed = f" (missed {leave} method)" if hasattr(kind, enter) else ""
        raise TypeError(f"{name_of(kind)!r} object does not support the {what} protocol{missed}")


class Manager:
    """Stands for a context manager in code that may be suspended: left alone where another thread ends that code."""

    __slots__ = ("_ending", "_exit", "_manager")

    def __init__(self, ending: Ending, manager: Any) -> None:
        self._ending = ending
        self._manager = manager
        _require(type(manager), "__enter__", "__exit__", "context manager")
        self._exit: Any = type(manager).__exit__

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
        _require(type(manager), "__aenter__", "__aexit__", "asynchronous context manager")

    async def __aenter__(self) -> Any:
        return await self._delegating.awaited(type(self._manager).__aenter__(self._manager))

    async def __aexit__(self, *how: object) -> Any:
        if self._ending.foreign():
            return False
        return await self._delegating.awaited(type(self._manager).__aexit__(self._manager, *how))
