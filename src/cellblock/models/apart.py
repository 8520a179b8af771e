"""A call that blocks, in a thread that nobody has to wait for: not the event loop, nor a program that leaves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

import anyio

_T = TypeVar("_T")


async def apart(call: Callable[[], _T]) -> _T:
    """What `call` returns or raises. Cancelled, it leaves the thread to itself, and drops what it comes to."""
    outcome: list[tuple[_T | None, BaseException | None]] = []
    done = anyio.Event()
    wake, context = _waker(done), copy_context()

    def work() -> None:
        try:
            outcome.append((context.run(call), None))
        except BaseException as error:  # whatever it is, it is raised where the call was asked for
            outcome.append((None, error))
        wake()

    threading.Thread(target=work, name="cellblock model", daemon=True).start()
    await done.wait()
    [(value, error)] = outcome
    if error is not None:
        raise error
    return value  # type: ignore[return-value]  # None only where the call returned it


def _waker(event: anyio.Event) -> Callable[[], Any]:
    """What sets an event of the running loop, asyncio's or trio's, from another thread. Nothing once it is over."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        import trio

        token = trio.lowlevel.current_trio_token()

        def wake() -> None:
            with suppress(trio.RunFinishedError):
                token.run_sync_soon(event.set)
    else:

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(event.set)

    return wake
