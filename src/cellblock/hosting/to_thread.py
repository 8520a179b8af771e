"""anyio's worker threads, whose errors say so where none can be started."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

import anyio.to_thread

from cellblock.hosting.threads import told

T = TypeVar("T")
Given = TypeVarTuple("Given")

LARGE = 2**16
"""Bytes of a value that would hold up the event loop while they are read or written."""


async def off_loop(size: int, function: Callable[..., T], *args: object) -> T:
    """Carry out work that grows with `size` bytes: in a thread, unless it is short."""
    if size < LARGE:
        return function(*args)
    alone = anyio.CapacityLimiter(1)  # the default one is for functions, which may take for ever
    return await run_sync(function, *args, limiter=alone)


async def run_sync(
    function: Callable[[*Given], T],
    *args: *Given,
    abandon_on_cancel: bool = False,
    limiter: anyio.CapacityLimiter | None = None,
) -> T:
    """Call a function that may block in a thread; `CellblockError` where none can be started."""
    has_begun = False

    def carried_out() -> T:
        nonlocal has_begun
        has_begun = True
        return function(*args)

    try:
        return await anyio.to_thread.run_sync(carried_out, abandon_on_cancel=abandon_on_cancel, limiter=limiter)
    except RuntimeError as error:
        if has_begun or (meant := told(error)) is error:  # the function's own
            raise
        raise meant from error
