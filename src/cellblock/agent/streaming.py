"""A run as a stream of what happens in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from queue import SimpleQueue

import anyio

from cellblock.agent.result import RunResult, Step
from cellblock.agent.setting import Tell
from cellblock.events import Event
from cellblock.session.hostloop import Run

Told = str | Event | Step | RunResult


async def told(run: Callable[..., Awaitable[RunResult]]) -> AsyncIterator[Told]:
    """What `run(tell=…)` tells, as it happens; the last is its result. Whoever leaves before that ends the run."""
    send, receive = anyio.create_memory_object_stream[Told](float("inf"))

    async def follow(tell: Tell) -> None:
        with send:
            send.send_nowait(await run(tell=tell))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow, send.send_nowait)
        with receive:
            async for one in receive:
                yield one
        tasks.cancel_scope.cancel()


def blocking(run: Callable[..., Awaitable[RunResult]]) -> Iterator[Told]:
    """The same from ordinary code."""
    events: SimpleQueue[Told | None] = SimpleQueue()
    under_way = Run(partial(run, tell=events.put), done=lambda: events.put(None))
    try:
        while (one := events.get()) is not None:
            yield one
        yield under_way.result()
    finally:
        under_way.end()
