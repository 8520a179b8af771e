"""Waking an event loop from another thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress


def waker(call: Callable[[], object]) -> Callable[[], None]:
    """A function for any thread that has `call` called soon on the loop that runs here; nothing once that is closed."""
    loop = asyncio.get_running_loop()

    def wake() -> None:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(call)

    return wake
