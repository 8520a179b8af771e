"""A call that blocks, in a thread that nobody has to wait for: not the event loop, nor a program that leaves."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

import anyio

from cellblock.hosting.threads import begun
from cellblock.waking import waker

_T = TypeVar("_T")


async def apart(call: Callable[[], _T]) -> _T:
    """What `call` returns or raises. Cancelled, it leaves the thread to itself, and drops what it comes to."""
    outcome: list[tuple[_T | None, BaseException | None]] = []
    done = anyio.Event()
    wake, context = waker(done.set), copy_context()

    def work() -> None:
        try:
            outcome.append((context.run(call), None))
        except BaseException as error:  # whatever it is, it is raised where the call was asked for
            outcome.append((None, error))
        wake()

    begun(work, name="cellblock model")
    await done.wait()
    [(value, error)] = outcome
    if error is not None:
        raise error
    return value  # type: ignore[return-value]  # None only where the call returned it
