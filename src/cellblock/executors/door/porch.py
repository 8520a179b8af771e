"""The thread in which all doors of this program are served: they are, whatever the program's own loops are doing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from typing import Any, TypeVar

from cellblock.hosting.forks import Lock
from cellblock.hosting.threads import begun

T = TypeVar("T")

_lock = Lock()
_loops: dict[int, asyncio.AbstractEventLoop] = {}
"""By process: that of a program which was forked has no thread in the copy."""


def loop() -> asyncio.AbstractEventLoop:
    """The loop of that thread, which is started with the first door and stays."""
    with _lock:
        here = os.getpid()
        if here not in _loops:
            _loops.clear()
            _loops[here] = asyncio.new_event_loop()
            begun(_loops[here].run_forever, name="cellblock-doors")
        return _loops[here]


def done(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine gives that is run there. Blocks, and must not be called from there."""
    return asyncio.run_coroutine_threadsafe(work, loop()).result()
