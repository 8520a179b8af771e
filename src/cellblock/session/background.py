"""Tasks beside the caller of a session, which may be between two steps of a stream: no group can be open there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from cellblock.patience import Deadline, left


class Background:
    """Starts tasks on the event loop that runs, and ends them all."""

    def __init__(self, *deadlines: Deadline) -> None:
        """By the `deadlines` its tasks wait for no lock of a store's any more."""
        self._deadlines = deadlines
        self._tasks: dict[asyncio.Task[None], anyio.CancelScope] = {}

    def start(self, function: Callable[..., Awaitable[None]], *args: object) -> None:
        """Start a task, which handles its own failures, in the context of the caller's."""
        self._begin(anyio.CancelScope(), function, *args)

    def _begin(self, scope: anyio.CancelScope, function: Callable[..., Awaitable[None]], *args: object) -> None:
        has_begun = False

        async def run() -> None:
            nonlocal has_begun
            has_begun = True
            left.set(self._deadlines)  # whoever started it may leave
            with scope:
                if not scope.cancel_called:  # before it came to its turn
                    await function(*args)

        def ended(task: asyncio.Task[None]) -> None:
            if self._tasks.pop(task, None) is not None and not has_begun and not scope.cancel_called:
                self._begin(scope, function, *args)  # asyncio.run cancelled it before its first step

        task = asyncio.get_running_loop().create_task(run())
        self._tasks[task] = scope  # the loop itself holds none
        task.add_done_callback(ended)

    def cancel(self) -> None:
        """End every task that was started."""
        self.end_lost()
        for task, scope in list(self._tasks.items()):
            if not task.done():
                scope.cancel()

    @property
    def is_idle(self) -> bool:
        """True if every task that was started has ended."""
        return not self._tasks

    @property
    def is_here(self) -> bool:
        """True if there are tasks of the event loop that runs."""
        return any(task.get_loop() is asyncio.get_running_loop() for task in self._tasks)

    @property
    def has_lost(self) -> bool:
        """True if there are tasks that do not go on: their event loop was closed, or was stopped."""
        return any(not task.get_loop().is_running() for task in self._tasks)

    @property
    def is_left(self) -> bool:
        """True if there are tasks whose event loop was closed. For any thread."""
        return any(task.get_loop().is_closed() for task in [*self._tasks])

    def end_lost(self) -> None:
        """End these, as where they are cancelled, without waiting."""
        for task in [one for one in reversed(self._tasks) if not one.get_loop().is_running()]:
            del self._tasks[task]
            if not task.done():
                _end(task)


def _end(task: asyncio.Task[None]) -> None:
    """Have a task leave what it is in the middle of; scopes and locks ask which task does so, and wake who waits."""
    here, me, its = asyncio.get_running_loop(), asyncio.current_task(), task.get_loop()
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    task.add_done_callback(ignored)
    if its.is_closed():
        its.call_soon = _drop  # type: ignore[method-assign, assignment]
    if me is not None:
        asyncio._leave_task(here, me)
    asyncio._enter_task(here, task)
    try:
        task.get_coro().close()
    except RuntimeError as error:  # it does not end without waiting for something first
        here.call_exception_handler({"message": "a task is left as its event loop left it", "exception": error})
    finally:
        asyncio._leave_task(here, task)
        if me is not None:
            asyncio._enter_task(here, me)
        if its.is_closed():
            del its.call_soon


def ignored(ended: asyncio.Task[Any]) -> None:
    """Have no complaint come of what a task raises: there may be nobody whom it concerns."""
    if not ended.cancelled():
        ended.exception()


def _drop(*_: object, **_more: object) -> None:
    """Those who waited on a loop that was closed never go on."""
