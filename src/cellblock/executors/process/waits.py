"""Steps that wait, and belong to no event loop until one drives them.

A step is a generator. It yields a descriptor, to go on once that can be read, with the seconds it will wait at most if
they are not `SECONDS`; or a call that blocks, which is made in a thread, to go on with what it returned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any, TypeVar

import anyio

from cellblock.errors import CellblockError
from cellblock.hosting import to_thread

T = TypeVar("T")
Wait = int | tuple[int, float] | Callable[[], object]
Waits = Generator[Wait, Any, T]

_LATER_SECONDS = 0.002
SECONDS = 60.0
"""How long one descriptor is waited for; then the step is thrown a TimeoutError."""


async def awaited(waits: Waits[T]) -> T:
    """Drive a step on the running event loop; its result. A cancelled step is closed."""
    try:
        wait = next(waits)
        while True:
            if callable(wait):
                try:
                    result, error = await to_thread.run_sync(_outcome, wait)
                except CellblockError as not_started:
                    result, error = None, not_started
            else:
                descriptor, seconds = wait if isinstance(wait, tuple) else (wait, SECONDS)
                with anyio.move_on_after(seconds) as scope:
                    await anyio.wait_readable(descriptor)
                result, error = None, TimeoutError() if scope.cancelled_caught else None
            wait = waits.send(result) if error is None else waits.throw(error)
    except StopIteration as end:
        value: T = end.value
        return value
    finally:
        waits.close()


def soon(call: Callable[[], object]) -> None:
    """Have something called that nobody waits for, two milliseconds from now.

    Another thread, which has just been given an answer, goes first.
    """
    asyncio.get_running_loop().call_later(_LATER_SECONDS, call)


def _outcome(call: Callable[[], object]) -> tuple[object, Exception | None]:
    """What a call returned, or what it raised: that is the step's to handle."""
    try:
        return call(), None
    except Exception as error:
        return None, error
