"""An event loop of our own, in a thread of its own, on which blocking interfaces carry out what is async."""

from __future__ import annotations

import asyncio
import os
import sys
import warnings
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from contextvars import ContextVar
from functools import partial
from typing import Any, Generic, TypeVar

import anyio

from cellblock.callers import callers
from cellblock.errors import CellblockError, SessionClosed
from cellblock.hosting.clock import now
from cellblock.hosting.conditions import replaced, require
from cellblock.hosting.forks import Lock, emptied, importing
from cellblock.hosting.threads import BEFORE_THE_END, begun, told

T = TypeVar("T")

carried_out: ContextVar[bool] = ContextVar("carried_out", default=False)
"""Whether this is a step of what our loop carries out, in a worker thread too: such a step never waits for the loop."""

_loop: asyncio.AbstractEventLoop | None = None
_starting = Lock()
_tasks: set[asyncio.Task[None]] = emptied(set())
_warned = False


def call(function: Callable[..., Awaitable[T]], *args: object, **options: object) -> T:
    """Run a coroutine function on our loop and wait for it."""
    result: T = answer_of(in_task, _tasks, partial(function, *args, **options))
    return result


def answer_of(start: Callable[..., None], *args: object) -> Any:
    """Have `start` called on our loop, with a future for its last argument, and wait for that."""
    loop = _loop_to_wait_for()
    answer: Future[Any] = Future()
    loop.call_soon_threadsafe(partial(start, *args, answer))
    return answer.result()


def finish(function: Callable[[], Awaitable[object]]) -> None:
    """Run what ends something on our loop, and wait for it. For finalizers too, which run in any thread at any time.

    Where the loop itself, or a step of its work, is what runs, the end is only begun. When the interpreter ends nothing
    is done: the kernel ends all that is open.
    """
    if sys.is_finalizing():
        return
    answer: Future[Any] = Future()
    our_loop().call_soon_threadsafe(in_task, _tasks, function, answer)
    if not is_own_step():
        answer.result()


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
    carried_out.set(True)
    try:
        answer.set_result(await function())
    except BaseException as error:  # the caller's
        answer.set_exception(told(error))


class Run(Generic[T]):
    """A coroutine function that runs on our loop."""

    def __init__(self, function: Callable[[], Awaitable[T]], *, done: Callable[[], None] | None = None) -> None:
        """`done` is called on our loop once it has ended."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._answer: Future[T] = Future()
        if done is not None:
            self._answer.add_done_callback(lambda _: done())
        self._loop = _loop_to_wait_for()
        self._loop.call_soon_threadsafe(in_task, self._tasks, function, self._answer)

    def result(self) -> T:
        """Wait for what it gives. Ctrl-C cancels it, and is raised once it has ended."""
        try:
            return self._answer.result()
        except KeyboardInterrupt:
            self.end()
            raise

    def end(self) -> None:
        """Cancel it, and wait until it has ended, however it does, as `finish` waits."""
        if sys.is_finalizing() or self._loop is not _loop:  # or this process was forked from the one that runs it
            return
        self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in self._tasks])
        if not is_own_step():
            wait([self._answer])


def interruptibly(function: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine function on our loop and wait for it. Ctrl-C cancels it, and is raised once it has ended."""
    return Run(function).result()


def our_loop() -> asyncio.AbstractEventLoop:
    """Our loop, begun with its first use. Its thread is a daemon: it must not keep the interpreter from leaving."""
    global _loop
    if _loop is None:
        require(replaced)
        with _starting:
            if _loop is None:
                started: Future[asyncio.AbstractEventLoop] = Future()
                begun(_serve, started, name="cellblock")
                _loop = started.result()
    return _loop


def _loop_to_wait_for() -> asyncio.AbstractEventLoop:
    """Our loop, for one who waits for what it carries out; an error where that would be for ever."""
    if sys.is_finalizing():
        raise SessionClosed("the interpreter ends, and all sessions with it", hint=BEFORE_THE_END)
    if asyncio._get_running_loop() is not None:
        if asyncio._get_running_loop() is _loop:
            who = callers.get()[-1].name if callers.get() else "this"
            raise CellblockError(
                f"{who} waits for the event loop of the blocking sessions, on which it runs",
                hint="make it a plain function, without async: that runs in a thread; or await an AsyncSession",
            )
        _warn_inside_a_loop()
    return our_loop()


def is_own_step() -> bool:
    """Whether our loop, or a step of what it carries out, is what runs: as where a finalizer happens to be called."""
    running = asyncio._get_running_loop()
    return carried_out.get() if running is None else running is _loop


def _new_loop() -> asyncio.AbstractEventLoop:
    """A loop as the program's own are, uvloop's say, since its tools run there; asyncio's go by the engine's clock.

    A border: a policy of the program's that raises, whatever it is, is passed over.
    """
    try:
        loop = asyncio.new_event_loop()
    except Exception:
        loop = asyncio.SelectorEventLoop()
    if isinstance(loop, asyncio.BaseEventLoop):
        loop.time = now  # type: ignore[method-assign]
    return loop


def _serve(started: Future[asyncio.AbstractEventLoop]) -> None:
    """Run the loop for ever. A task of a tool's that raises SystemExit or KeyboardInterrupt, or stops it, does not."""
    loop = _new_loop()
    asyncio.set_event_loop(loop)
    for_ever = loop.create_task(_for_ever(started))
    while True:
        try:
            loop.run_until_complete(for_ever)
        except (KeyboardInterrupt, SystemExit, RuntimeError) as error:
            loop.call_exception_handler({"message": "a task of a tool ended the event loop", "exception": error})


async def _for_ever(started: Future[asyncio.AbstractEventLoop]) -> None:
    loop = asyncio.get_running_loop()
    with importing():
        anyio.get_cancelled_exc_class()  # imports what anyio has for loops, while nobody waits for a turn of this one
    started.set_result(loop)
    await loop.create_future()


def _warn_inside_a_loop() -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "a blocking Session blocks the running event loop; use AsyncSession there",
            RuntimeWarning,
            stacklevel=6,
        )


def _after_fork_in_child() -> None:
    global _loop
    _loop = None


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_after_fork_in_child)
