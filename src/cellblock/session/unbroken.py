"""Work that goes on to its end, whatever becomes of the task that waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import anyio

T = TypeVar("T")


async def unbroken(function: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What a coroutine function gives. Whoever is cancelled meanwhile is so once it has ended, and not told of it.

    A scope of anyio's shields from other scopes alone, and not from `asyncio.timeout`, `asyncio.wait_for` and
    `task.cancel`: on asyncio the work has a task of its own, which these do not know.
    """
    if not _on_asyncio():
        with anyio.CancelScope(shield=True):
            return await function()
    work = asyncio.create_task(function())
    cancelled = None
    with anyio.CancelScope(shield=True):
        while not work.done():
            try:
                await asyncio.wait([work])
            except asyncio.CancelledError as error:
                cancelled = error
    if cancelled is not None:
        raise cancelled from (None if work.cancelled() else work.exception())
    return work.result()


def _on_asyncio() -> bool:
    try:
        return asyncio.current_task() is not None
    except RuntimeError:  # no loop of asyncio's runs here
        return False
