"""The sessions of a graph's threads: opened when a tool needs them, one call at a time, closed when idle or in the way.

They live on the event loop of blocking sessions, so that tools may be called with and without one, from any thread.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import time
import weakref
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from cellblock.errors import CellblockError, LeaseLost, SessionBusy, SessionClosed, StoreError
from cellblock.limits import ExecutionLimits
from cellblock.session.hostloop import Run, our_loop
from cellblock.session.session import AsyncSession
from cellblock.state import Versioned
from cellblock.store.naming import checked_name

T = TypeVar("T")

_LOG = logging.getLogger(__name__)
_RETRY_SECONDS = 0.1


@dataclass
class Thread:
    """One thread: its session where that is open, and results of calls that changed it, by what tells them apart."""

    name: str
    session: AsyncSession | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    callers: int = 0
    used: float = 0.0

    @property
    def opened(self) -> AsyncSession:
        assert self.session is not None
        return self.session


class Threads:
    """Sessions by thread, kept in a store under the name of their thread.

    At most `most_open` are open at once: past that, the one that was used longest ago is closed, or a call waits until
    one is free. One that nobody has used for `idle_seconds` is closed, so that another program can have its thread; a
    call that needs one which another program has open waits for `wait_seconds`. Other `Threads` of this program give up
    one that they do not use. All that a session was is in the store,
    and is there again when it opens.
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
        self.limits = limits or ExecutionLimits()
        self._given = limits
        self._user = user
        self._preload = preload
        self._most = most_open
        self._idle = idle_seconds
        self._wait = wait_seconds
        self._threads: dict[str, Thread] = {}
        self._pid = os.getpid()
        self._open = 0
        self._freed = asyncio.Event()
        self._closing: set[asyncio.Task[None]] = set()
        _ALL.add(self)

    def __repr__(self) -> str:
        return f"Threads(user={self._user!r}, open={self._open})"

    @property
    def url(self) -> str | None:
        """The store's."""
        return self._state.url

    @property
    def open(self) -> int:
        """How many sessions are open, or being opened or closed."""
        return self._open

    # ------------------------------------------------------------------------------ callers

    def call(self, thread_id: str, work: Callable[[Thread], Awaitable[T]]) -> T:
        """Have work done with a thread's session, and wait for it. Whatever stops opening or the work is raised."""
        return Run(partial(self._use, thread_id, work)).result()

    async def acall(self, thread_id: str, work: Callable[[Thread], Awaitable[T]]) -> T:
        """The same, without blocking the caller's loop. A caller that is cancelled ends the work."""
        future = asyncio.run_coroutine_threadsafe(self._use(thread_id, work), our_loop())
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Close every session that is open. The next call opens its own again."""
        Run(self._close_all).result()

    # ------------------------------------------------------------------------------ on our loop

    async def _use(self, thread_id: str, work: Callable[[Thread], Awaitable[T]]) -> T:
        self._forget_after_fork()
        name = session_name(thread_id)
        thread = self._threads.setdefault(name, Thread(name))
        thread.callers += 1
        try:
            if thread.session is not None:
                thread.session._require_not_calling()
            async with thread.turn:
                if thread.session is None:
                    await self._open_one(thread)
                try:
                    return await work(thread)
                except (SessionClosed, LeaseLost):  # it is of no use any more: the next call opens it again
                    await self._close_one(thread)
                    raise
        finally:
            thread.callers -= 1
            thread.used = time.monotonic()
            self._leave(thread)

    async def _open_one(self, thread: Thread) -> None:
        await self._make_room()
        try:
            thread.session = await self._opened(thread.name)
        except BaseException:
            self._give_room()
            raise

    async def _opened(self, name: str) -> AsyncSession:
        """A thread's session, once no other program has it."""
        patience = time.monotonic() + self._wait
        while True:
            session = AsyncSession(name, user=self._user, state=self._state, limits=self._given, preload=self._preload)
            try:
                return await session.open()
            except SessionBusy:
                if await self._have_another_close(name):
                    continue
                if time.monotonic() > patience:
                    raise
                await asyncio.sleep(_RETRY_SECONDS)

    async def _have_another_close(self, name: str) -> bool:
        """Close a thread's session that other `Threads` of this program have open and nobody uses; whether one was."""
        for other in list(_ALL):
            thread = other._threads.get(name)
            ours = other._pid == self._pid and (other._state.url, other._user) == (self._state.url, self._user)
            if other is not self and ours and thread is not None and thread.session is not None and not thread.callers:
                await _quietly(partial(other._close_idle, thread))
                return True
        return False

    async def _make_room(self) -> None:
        """Take one of the places for open sessions: a free one, that of an idle session, or the next to be free."""
        while self._open >= self._most:
            idle = [one for one in self._threads.values() if one.session is not None and not one.callers]
            if idle:
                await _quietly(partial(self._close_idle, min(idle, key=lambda one: one.used)))
            else:
                self._freed.clear()
                await self._freed.wait()
        self._open += 1

    def _give_room(self) -> None:
        self._open -= 1
        self._freed.set()

    async def _close_one(self, thread: Thread) -> None:
        session, thread.session = thread.session, None
        if session is not None:
            try:
                await session.close()
            finally:
                self._give_room()

    async def _close_idle(self, thread: Thread) -> None:
        async with thread.turn:
            if not thread.callers:
                await self._close_one(thread)
        if not thread.callers and thread.session is None:
            self._threads.pop(thread.name, None)

    def _leave(self, thread: Thread) -> None:
        """What follows when nobody uses a thread any more: it is closed later, or now, for one that waits for room."""
        if thread.callers:
            return
        if thread.session is None:
            self._threads.pop(thread.name, None)
            return
        asyncio.get_running_loop().call_later(self._idle, self._close_later, thread, thread.used)
        self._freed.set()

    def _close_later(self, thread: Thread, used: float) -> None:
        if thread.used == used and not thread.callers and thread.session is not None:
            task = asyncio.get_running_loop().create_task(_quietly(partial(self._close_idle, thread)))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def _close_all(self) -> None:
        for thread in list(self._threads.values()):
            async with thread.turn:
                await self._close_one(thread)

    def _forget_after_fork(self) -> None:
        if os.getpid() != self._pid:  # the sessions are the parent's
            self._pid, self._open, self._threads = os.getpid(), 0, {}
            self._freed = asyncio.Event()


_ALL: weakref.WeakSet[Threads] = weakref.WeakSet()
"""Of this program."""


def session_name(thread_id: str) -> str:
    """The name of a thread's session: its own where a session can have it, and else one made of it."""
    try:
        if checked_name(thread_id, "thread") == thread_id and not thread_id.startswith(_MADE):
            return thread_id
    except StoreError:
        pass
    return _MADE + hashlib.sha256(thread_id.encode("utf-8", "surrogatepass")).hexdigest()


_MADE = "thread-sha256-"


async def _quietly(function: Callable[[], Awaitable[None]]) -> None:
    """Close a session that nobody waits for: what the store does not take then, it tells whoever opens it next."""
    try:
        await function()
    except CellblockError as error:
        _LOG.error("a thread's session was not closed as it should be: %s", error)
