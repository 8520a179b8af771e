"""Tasks beside the caller of a session, which may be between two steps of a stream: no group can be open there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import anyio

from cellblock.patience import Deadline, left


class Background:
    """Starts tasks on the event loop that runs, and ends them all."""

    def __init__(self, *deadlines: Deadline) -> None:
        """By the `deadlines` its tasks wait for no lock of a store's any more."""
        self._deadlines = deadlines
        self._scopes: set[anyio.CancelScope] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, function: Callable[..., Awaitable[None]], *args: object) -> None:
        """Start a task, which handles its own failures, in the context of the caller's."""

        scope = anyio.CancelScope()
        self._scopes.add(scope)

        async def run() -> None:
            left.set(self._deadlines)  # whoever started it may leave
            try:
                with scope:
                    if not scope.cancel_called:  # before it came to its turn
                        await function(*args)
            finally:
                self._scopes.discard(scope)

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)  # the loop itself holds none
        task.add_done_callback(self._tasks.discard)

    def cancel(self) -> None:
        """End every task that was started."""
        for scope in list(self._scopes):
            scope.cancel()
