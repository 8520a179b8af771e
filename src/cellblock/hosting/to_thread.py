"""anyio's worker threads, whose errors say so where the interpreter ends and starts none any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

import anyio.to_thread

from cellblock.hosting.threads import told

T = TypeVar("T")
Given = TypeVarTuple("Given")


async def run_sync(
    function: Callable[[*Given], T],
    *args: *Given,
    abandon_on_cancel: bool = False,
    limiter: anyio.CapacityLimiter | None = None,
) -> T:
    """Call a function that may block in a thread; `SessionClosed` where the interpreter ends and starts no thread."""
    try:
        return await anyio.to_thread.run_sync(function, *args, abandon_on_cancel=abandon_on_cancel, limiter=limiter)
    except RuntimeError as error:
        if (meant := told(error)) is error:  # the function's own
            raise
        raise meant from error
