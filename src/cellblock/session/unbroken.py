"""Work that goes on to its end, whatever becomes of the task that waits for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import Any, TypeVar

import anyio

from cellblock.patience import left

T = TypeVar("T")


async def unbroken(function: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Result of a coroutine function, which no cancellation ends: that takes effect once it has ended, without its
    result.

    A scope of anyio's shields from other scopes alone, and not from `asyncio.timeout`, `asyncio.wait_for` and
    `task.cancel`: the work has a task of its own, which these do not know. From the first of them on it
    waits for no lock of a store's any more.
    """
    caller, context = threading.Event(), copy_context()
    context.run(left.set, (*left.get(), caller))
    work = context.run(asyncio.create_task, function())
    asyncio._unregister_task(work)  # `asyncio.run` cancels every task that it knows, and waits for the caller's
    cancelled = None
    try:
        await asyncio.wait([work])
    except asyncio.CancelledError as error:
        cancelled = error
        caller.set()
    with anyio.CancelScope(shield=True):
        while not work.done():
            try:
                await asyncio.wait([work])
            except asyncio.CancelledError as error:
                cancelled = error
    try:
        if cancelled is not None:
            raise cancelled from (None if work.cancelled() else work.exception())
        return work.result()
    finally:
        del cancelled, work  # a traceback leads to this frame
