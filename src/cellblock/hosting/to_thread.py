"""Calls that may block, awaited from an event loop: in the engine's threads, with the caller's context."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar, TypeVarTuple

import anyio.to_thread

from cellblock.hosting.threads import hand
from cellblock.unhurried import TakesLong, hurried

T = TypeVar("T")
Given = TypeVarTuple("Given")

LARGE = 2**16
"""Bytes of a value that would hold up the event loop while they are read or written."""


async def off_loop(size: int, function: Callable[..., T], *args: object) -> T:
    """Carry out work that grows with `size` bytes: in a thread, unless it is short. It begins anew there where it is
    not short after all.
    """
    if size < LARGE:
        token = hurried.set(True)
        try:
            return function(*args)
        except TakesLong:
            pass
        finally:
            hurried.reset(token)
    alone = anyio.CapacityLimiter(1)  # the default one is for functions, which may take for ever
    return await run_sync(function, *args, limiter=alone)


async def run_sync(  # type: ignore[return]  # nobody cancels the scope within itself
    function: Callable[[*Given], T],
    *args: *Given,
    abandon_on_cancel: bool = False,
    limiter: anyio.CapacityLimiter | None = None,
) -> T:
    """Call a function that may block in a thread; `CellblockError` where none can be started.

    As `anyio.to_thread.run_sync`, whose threads keep a program that has given up a call from leaving until it returns.
    """
    loop = asyncio.get_running_loop()
    async with limiter or anyio.to_thread.current_default_thread_limiter():
        with anyio.CancelScope(shield=not abandon_on_cancel):
            result: asyncio.Future[T] = loop.create_future()
            context = copy_context()
            if (sniffio := sys.modules.get("sniffio")) is not None:  # no loop runs in the thread
                context.run(sniffio.current_async_library_cvar.set, None)
            hand(partial(_carry_out, loop, [result, partial(context.run, function, *args)]))
            try:
                return await result
            finally:
                del result  # what the function raises leads to this frame


def _carry_out(loop: asyncio.AbstractEventLoop, shared: list[Any]) -> None:
    """In a thread. Nothing is called for who left before, and nothing is told to a loop that has been closed.

    `shared` is a future and a function, then the future, a value and an error. The loop empties it: a thread that goes
    on late holds nothing that the caller has let go of.
    """
    result, call = shared
    shared.clear()
    if result.cancelled():
        return
    try:
        shared += result, call(), None
    except StopIteration as error:
        shared += result, None, _of_no_future(error)
    except BaseException as error:  # for who waits for it
        shared += result, None, error
    del result, call
    try:
        loop.call_soon_threadsafe(_tell, shared)
    except RuntimeError:
        shared.clear()  # an error leads to this frame


def _of_no_future(error: StopIteration) -> RuntimeError:
    """The error for one that no future can hold."""
    told = RuntimeError("the function raised StopIteration")
    told.__cause__ = error
    return told


def _tell(shared: list[Any]) -> None:
    result, value, error = shared
    shared.clear()
    if result.cancelled():
        return
    if error is None:
        result.set_result(value)
    else:
        result.set_exception(error)
