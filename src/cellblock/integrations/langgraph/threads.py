"""The sessions of a graph's threads: opened when a tool needs them, one call at a time, closed when idle or in the way.

They live on the event loop of blocking sessions, so that tools may be called with and without one, from any thread.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import weakref
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from cellblock.errors import StoreError
from cellblock.limits import ExecutionLimits
from cellblock.pool import SessionPool
from cellblock.session.hostloop import Run, our_loop
from cellblock.session.session import AsyncSession
from cellblock.state import Versioned
from cellblock.store.naming import checked_name
from cellblock.text import half_made

T = TypeVar("T")


class Threads:
    """Sessions by thread, kept in a store under the name of their thread.

    At most `most_open` are open at once: past that, the one that was used longest ago is closed, or a call waits until
    one is free. One that nobody has used for `idle_seconds` is closed, so that another program can have its thread; a
    call that needs one which another program has open waits for `wait_seconds`. Other `Threads` of this program give up
    one that they do not use. All that a session was is in the store, and is there again when it opens.
    """

    def __init__(
        self,
        store: str | None = None,
        *,
        user: str = "langgraph",
        limits: ExecutionLimits | None = None,
        preload: tuple[str, ...] = (),
        most_open: int = 16,
        idle_seconds: float = 30.0,
        wait_seconds: float = 60.0,
    ) -> None:
        """`store` is a URL as `Versioned` takes it."""
        self._state = Versioned(store)
        del store  # no frame of an error holds it
        if most_open < 1 or not idle_seconds > 0:
            raise ValueError(
                f"most_open must be at least 1 and idle_seconds above 0, not {most_open} and {idle_seconds}"
            )
        self._user = user
        self._options: dict[str, Any] = {"limits": limits, "preload": preload}
        self._options |= {"max_sessions": most_open, "idle_seconds": idle_seconds, "wait_seconds": wait_seconds}
        self._pid = 0
        self._here()

    @half_made
    def __repr__(self) -> str:
        return f"Threads(user={self._user!r}, open={self.open})"

    @property
    def url(self) -> str | None:
        """The store's."""
        return self._state.url

    @property
    def open(self) -> int:
        """Number of sessions that are open, or being opened or closed."""
        return len(self._here())

    # ------------------------------------------------------------------------------ callers

    def call(self, thread_id: str, work: Callable[[AsyncSession], Awaitable[T]]) -> T:
        """Do work with a thread's session, and wait for it. Errors of opening it and of the work are raised."""
        return Run(partial(self._use, thread_id, work)).result()

    async def acall(self, thread_id: str, work: Callable[[AsyncSession], Awaitable[T]]) -> T:
        """The same, without blocking the caller's loop. Cancelling it ends the work."""
        future = asyncio.run_coroutine_threadsafe(self._use(thread_id, work), our_loop())
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Close every session that is open. The next call opens its own again."""
        Run(self._close_all).result()

    # ------------------------------------------------------------------------------ on our loop

    def _here(self) -> SessionPool:
        """The pool of this process: after a fork the sessions are the parent's."""
        if os.getpid() != self._pid:
            self._pid = os.getpid()
            self._pool = SessionPool(self._state, when_idle="close", **self._options)
            self._turns: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()
        return self._pool

    def _turn(self, name: str) -> asyncio.Lock:
        return self._turns.setdefault(name, asyncio.Lock())

    async def _use(self, thread_id: str, work: Callable[[AsyncSession], Awaitable[T]]) -> T:
        pool, name = self._here(), session_name(thread_id)
        if (session := pool.found(name, user=self._user)) is not None:
            session._require_not_calling()
        async with self._turn(name), pool.session(name, user=self._user) as session:
            return await work(session)

    async def _close_all(self) -> None:
        for user, name in self._here():
            async with self._turn(name):
                await self._pool.release(name, user=user)


def session_name(thread_id: str) -> str:
    """Name of a thread's session: the thread's id where a session may be named so, else made of its hash."""
    try:
        if checked_name(thread_id, "thread") == thread_id and not thread_id.startswith(_MADE):
            return thread_id
    except StoreError:
        pass
    return _MADE + hashlib.sha256(thread_id.encode("utf-8", "surrogatepass")).hexdigest()


_MADE = "thread-sha256-"
