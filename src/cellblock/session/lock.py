"""One call of a session at a time: first come, first served, on one event loop at a time."""

from __future__ import annotations

import asyncio

import anyio

from cellblock.errors import CellblockError, SessionBusy, SessionClosed
from cellblock.hosting import clock


class SessionLock:
    """A session's turn. Whoever waits for it waits on the event loop that the session is used on."""

    def __init__(self) -> None:
        self._turn = anyio.Semaphore(1, fast_acquire=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        """The event loop of asyncio's that the session was used on last."""
        self._used = clock.now()

    @property
    def is_free(self) -> bool:
        """True if no call has the turn."""
        return bool(self._turn.value)

    @property
    def waiting(self) -> int:
        """Number of calls that wait for it."""
        return self._turn.statistics().tasks_waiting

    @property
    def idle_seconds(self) -> float:
        """Seconds since a call last gave it on, or used the session without it."""
        return clock.now() - self._used

    def use(self) -> None:
        """The session is used just now, by a call that needs no turn."""
        self._used = clock.now()

    def bind(self) -> None:
        """The session is used on the event loop that runs here from now on."""
        self._loop = asyncio._get_running_loop()

    def acquire_at_once(self) -> bool:
        """Take the turn if it is free; whether it was."""
        try:
            self._turn.acquire_nowait()
        except anyio.WouldBlock:
            return False
        self.bind()
        return True

    async def acquire(self, *, wait: bool = True) -> None:
        """Take the turn once it is free. SessionBusy without `wait`; an error where it would never be free."""
        if self.is_free:
            self.bind()  # before the turn is taken: other threads look at both
            self._turn.acquire_nowait()
            return
        if not wait:
            raise SessionBusy("another call is using the session", hint="wait for it, or interrupt()")
        self.require_going_on()
        await self._turn.acquire()
        self.bind()

    def release(self) -> None:
        """Give the turn to whoever waits longest."""
        self.use()
        self._turn.release()

    async def free(self, seconds: float) -> None:
        """Until no call has the turn, or for so long; not where it has another event loop's call."""
        if self._loop is asyncio._get_running_loop():
            with anyio.move_on_after(seconds):
                await self._turn.acquire()
                self._turn.release()

    # ----------------------------------------------------------------------------- event loops

    @property
    def is_of_running_loop(self) -> bool:
        """True if the session is used on the event loop that runs here, as far as it was used."""
        return self._loop in (None, asyncio._get_running_loop()) or self.loop_is_gone

    @property
    def loop_is_gone(self) -> bool:
        """True if nothing that was begun on the session's event loop goes on."""
        return self._loop is not None and self._loop.is_closed()

    @property
    def is_left(self) -> bool:
        """True once nobody gives the turn on: its event loop was closed in the middle of a call."""
        return self.loop_is_gone and not self.is_free

    def require_one_loop(self, *, saving: bool) -> None:
        """CellblockError while another running event loop has work of the session's: it never wakes a waiter here.

        `saving`: what the session did is on its way into a store.
        """
        loop, here = self._loop, asyncio._get_running_loop()
        if loop is None or loop is here or not loop.is_running() or (self.is_free and not saving):
            return
        raise CellblockError(
            "the session is in use on another event loop, in another thread",
            hint="use a Session, which any thread may call, or call this one on its own loop"
            " (asyncio.run_coroutine_threadsafe)",
        )

    def require_going_on(self) -> None:
        """An error where the call that has the turn does not go on: its event loop was closed, or stopped."""
        what = "the event loop that the session was used on was {} in the middle of a call"
        if self.loop_is_gone:
            raise SessionClosed(what.format("closed"), hint="open a new one")
        if self._loop is not None and not self._loop.is_running():
            raise CellblockError(what.format("stopped"), hint="have it run until that call has ended")
