"""Waiting, written once for an event loop and for a thread.

A step that waits is a generator. It yields a descriptor, to go on once that can be read, with the seconds it will wait
at most if they are not `SECONDS`; or a call that blocks, to go on with what it returned. `awaited` drives it on the
event loop, `blocked` in a thread of its own.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Generator
from typing import Any, TypeVar

import anyio
from anyio import to_thread

T = TypeVar("T")
Wait = int | tuple[int, float] | Callable[[], object]
Waits = Generator[Wait, Any, T]

SECONDS = 60.0
"""How long one descriptor is waited for; then the step is thrown a TimeoutError."""


async def awaited(waits: Waits[T]) -> T:
    """Drive a step on the running event loop; its result. A cancelled step is closed."""
    try:
        wait = next(waits)
        while True:
            if callable(wait):
                wait = await _called(waits, wait)
                continue
            descriptor, seconds = wait if isinstance(wait, tuple) else (wait, SECONDS)
            with anyio.move_on_after(seconds) as scope:
                await anyio.wait_readable(descriptor)
            wait = waits.throw(TimeoutError()) if scope.cancelled_caught else waits.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        waits.close()


async def _called(waits: Waits[T], call: Callable[[], object]) -> Wait:
    try:
        result = await to_thread.run_sync(call)
    except Exception as error:  # the step's own to handle
        return waits.throw(error)
    return waits.send(result)


def blocked(waits: Waits[T]) -> T:
    """Drive a step in this thread; its result."""
    try:
        wait = next(waits)
        while True:
            if callable(wait):
                try:
                    result = wait()
                except Exception as error:  # the step's own to handle
                    wait = waits.throw(error)
                else:
                    wait = waits.send(result)
                continue
            descriptor, seconds = wait if isinstance(wait, tuple) else (wait, SECONDS)
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            wait = waits.send(None) if poll.poll(seconds * 1e3) else waits.throw(TimeoutError())
    except StopIteration as end:
        outcome: T = end.value
        return outcome
    finally:
        waits.close()
