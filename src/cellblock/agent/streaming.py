"""A run as a stream of what happens in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from functools import partial
from queue import SimpleQueue

import anyio

from cellblock.agent.result import RunResult, Step
from cellblock.events import Event
from cellblock.session.background import Background
from cellblock.session.hostloop import Run

Told = str | Event | Step | RunResult


async def told(run: Callable[..., Awaitable[RunResult]]) -> AsyncGenerator[Told, None]:
    """Events of `run(tell=…)` as they happen; the last is its result. Whoever leaves before that ends the run."""
    send, receive = anyio.create_memory_object_stream[Told](float("inf"))
    background, left, ended = Background(), anyio.Event(), anyio.Event()
    failures: list[BaseException] = []

    def tell(one: Told) -> None:
        if not left.is_set():
            send.send_nowait(one)

    async def follow() -> None:
        try:
            tell(await run(tell=tell))
        except (Exception, asyncio.CancelledError) as error:  # the caller's
            failures.append(error)
        finally:
            send.close()
            ended.set()

    background.start(follow)
    try:
        async for one in receive:
            yield one
        if failures:
            raise failures[0]
    finally:
        left.set()
        receive.close()  # before anything is awaited: a loop that shuts down gives no time
        background.cancel()
        with anyio.CancelScope(shield=True):
            await ended.wait()
        failures.clear()  # their tracebacks lead to what holds them, and to the agent


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
        del under_way  # what is raised leads to this frame
