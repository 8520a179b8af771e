"""Threads for functions of the host that may block, and need not ever come back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any, TypeAlias

import anyio

from cellblock.hosting.finalizers import finalizer
from cellblock.hosting.threads import begun
from cellblock.session.account import Share
from cellblock.session.hostloop import carried_out
from cellblock.waking import waker

_MOST = 40
_SHORT_WAIT = 0.0002
"""Seconds that a call is waited for without giving the event loop a turn, which costs as much."""

_Work: TypeAlias = "SimpleQueue[tuple[Future[Any], Context, Callable[[], Any]] | None]"


class Threads:
    """Up to 40 threads, which end with this object.

    They are daemons, unlike those of an executor or of anyio: a function that is stuck does not keep the interpreter
    from leaving.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: _Work = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._count = 0
        self._under_way: set[Future[Any]] = set()

    async def run(self, function: Callable[[], Any], left: Callable[[], Share]) -> Any:
        """Result of a function, called with this task's context. A caller that is cancelled leaves it alone.

        `left` is asked for what it holds from then on.
        """
        future: Future[Any] = Future()
        context = copy_context()
        context.run(carried_out.set, False)  # a function of the host's waits for whatever it calls
        if not self._idle.acquire(blocking=False) and self._count < _MOST:
            begun(_serve, self._work, self._idle, name=self._name)  # before there is work: what failed is never done
            self._count += 1
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)
        self._work.put((future, context, function))
        if not wait([future], _SHORT_WAIT).done:
            done = anyio.Event()
            wake = waker(done.set)
            future.add_done_callback(lambda _: wake())
            try:
                await done.wait()
            finally:
                if not future.done():
                    share = left()
                    future.add_done_callback(lambda _: share.close())
        return future.result()

    def drop_waiting(self) -> None:
        """Drop the calls that have not begun."""
        for future in tuple(self._under_way):
            future.cancel()

    @finalizer
    def __del__(self) -> None:
        """May be called by a collector, in any thread: it takes no lock."""
        for _ in range(self._count):
            self._work.put(None)


def _serve(work: _Work, idle: threading.Semaphore) -> None:
    while (taken := work.get()) is not None:
        future, context, function = taken
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(context.run(function))
            except BaseException as error:  # for who waits for it
                future.set_exception(error)
        del taken, future, context, function  # they lead to the session, which is to end when nobody holds it
        idle.release()
