"""Waking an event loop, asyncio's or trio's, from another thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress


def waker(call: Callable[[], object]) -> Callable[[], None]:
    """A function for any thread that has `call` called soon on the loop that runs here; nothing once that is over."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        import trio

        token = trio.lowlevel.current_trio_token()

        def wake() -> None:
            with suppress(trio.RunFinishedError):
                token.run_sync_soon(call)
    else:

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(call)

    return wake
