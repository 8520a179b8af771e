"""An event loop of our own, in a thread of its own, on which blocking interfaces carry out what is async."""

from __future__ import annotations

import asyncio
import os
import threading
import warnings
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_loop: asyncio.AbstractEventLoop | None = None
_starting = threading.Lock()
_tasks: set[asyncio.Task[None]] = set()
_warned = False


def call(function: Callable[..., Awaitable[T]], *args: object, **options: object) -> T:
    """Run a coroutine function on our loop and wait for it."""
    result: T = answer_of(in_task, _tasks, partial(function, *args, **options))
    return result


def answer_of(start: Callable[..., None], *args: object) -> Any:
    """Have `start` called on our loop, with a future for its last argument, and wait for that."""
    _warn_inside_a_loop()
    answer: Future[Any] = Future()
    our_loop().call_soon_threadsafe(partial(start, *args, answer))
    return answer.result()


def in_task(tasks: set[asyncio.Task[None]], function: Callable[[], Awaitable[object]], answer: Future[Any]) -> None:
    """On our loop: carry out a call in a task. `tasks` holds it until it is done; the loop itself holds none."""
    task = asyncio.get_running_loop().create_task(_fulfil(function, answer))
    tasks.add(task)
    task.add_done_callback(partial(_ended, tasks, answer))


def _ended(tasks: set[asyncio.Task[None]], answer: Future[Any], task: asyncio.Task[None]) -> None:
    tasks.discard(task)
    if not answer.done():
        answer.set_exception(asyncio.CancelledError())  # before it began


async def _fulfil(function: Callable[[], Awaitable[object]], answer: Future[Any]) -> None:
    try:
        answer.set_result(await function())
    except BaseException as error:  # the caller's
        answer.set_exception(error)


class Run(Generic[T]):
    """A coroutine function that runs on our loop."""

    def __init__(self, function: Callable[[], Awaitable[T]], *, done: Callable[[], None] | None = None) -> None:
        """`done` is called on our loop once it has ended."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._answer: Future[T] = Future()
        if done is not None:
            self._answer.add_done_callback(lambda _: done())
        _warn_inside_a_loop()
        self._loop = our_loop()
        self._loop.call_soon_threadsafe(in_task, self._tasks, function, self._answer)

    def result(self) -> T:
        """Wait for what it gives. Ctrl-C cancels it, and is raised once it has ended."""
        try:
            return self._answer.result()
        except KeyboardInterrupt:
            self.end()
            raise

    def end(self) -> None:
        """Cancel it, and wait until it has ended, however it does."""
        self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in self._tasks])
        wait([self._answer])


def interruptibly(function: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine function on our loop and wait for it. Ctrl-C cancels it, and is raised once it has ended."""
    return Run(function).result()


def our_loop() -> asyncio.AbstractEventLoop:
    """The loop of our thread, which is a daemon: it must not keep the interpreter from leaving."""
    global _loop
    if _loop is None:
        with _starting:
            if _loop is None:
                started: Future[asyncio.AbstractEventLoop] = Future()
                threading.Thread(target=asyncio.run, args=(_serve(started),), name="cellblock", daemon=True).start()
                _loop = started.result()
    return _loop


async def _serve(started: Future[asyncio.AbstractEventLoop]) -> None:
    loop = asyncio.get_running_loop()
    started.set_result(loop)
    await loop.create_future()  # for ever


def _warn_inside_a_loop() -> None:
    global _warned
    if _warned or asyncio._get_running_loop() is None:
        return
    _warned = True
    warnings.warn(
        "a blocking Session blocks the running event loop; use AsyncSession there",
        RuntimeWarning,
        stacklevel=5,
    )


def _after_fork_in_child() -> None:
    global _loop, _starting
    _loop, _starting = None, threading.Lock()
    _tasks.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_after_fork_in_child)
