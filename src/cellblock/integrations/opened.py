"""Sessions of many users by name, a share of the places for each: opened on demand, asleep or closed when idle."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Self, TypeVar

import anyio

from cellblock.errors import CellblockError, LeaseLost, SessionClosed
from cellblock.hosting import to_thread
from cellblock.session.commits import cells_of
from cellblock.session.notebook import Kept
from cellblock.session.session import AsyncSession
from cellblock.state import Versioned
from cellblock.store import SessionRow, Store, open_store
from cellblock.store.naming import checked_name
from cellblock.text import valid

Open = Callable[[str, str], Awaitable[AsyncSession]]
"""Opens the session of a user and a name."""

_LOG = logging.getLogger(__name__)
_MOST_CALLS = 32
_MOST_READINGS = 2
"""Notebooks of one user that are read at once, each in a thread."""

T = TypeVar("T")


@dataclass
class _Share:
    """Calls of one user that are under way, and the threads that read her notebooks."""

    calls: int = 0
    readings: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(_MOST_READINGS))


@dataclass
class _Entry:
    """One session. `callers` use it, or wait until it is open; None where it is not."""

    key: tuple[str, str]
    session: AsyncSession | None = None
    callers: int = 0
    used: float = 0.0
    opening: anyio.Lock = field(default_factory=anyio.Lock)


class OpenSessions:
    """The sessions of one program, at most `most` of which are open at once. Use it as `async with`.

    The places are shared evenly by so many `users`, at least one for each: no call of a user takes another's place. A
    session that nobody has used for `idle_seconds` ends its processes, until it is used again. Where a user's places
    are taken, the one of hers that was used longest ago is closed: all that it was is in the store.

    With `lends` other programs have the same sessions: one that is idle is closed, so that they can, and a call for
    which there is no place waits for one.
    """

    def __init__(
        self, opened: Open, *, url: str | None = None, most: int = 16, idle_seconds: float = 600.0, lends: bool = False
    ) -> None:
        """`url` is the store in which the sessions that `opened` opens are kept."""
        self._state = Versioned(url)
        del url  # no frame of an error holds it
        if most < 1 or not idle_seconds > 0:
            raise ValueError(f"most must be at least 1 and idle_seconds above 0, not {most} and {idle_seconds}")
        self._opened = opened
        self._most = most
        self._idle_seconds = idle_seconds
        self.users = 1
        self._shares: dict[str, _Share] = {}
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._lends = lends
        self._freed = asyncio.Event()
        self._resting: set[asyncio.Task[None]] = set()
        self._store: Store | None = None
        self._storing = anyio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        with anyio.CancelScope(shield=True):
            for task in (resting := list(self._resting)):
                task.cancel()
            await asyncio.gather(*resting, return_exceptions=True)
            for entry in list(self._entries.values()):
                await self._close_quietly(entry)
            if self._store is not None:
                await to_thread.run_sync(self._store.close)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Users and names of those that are open, or being opened."""
        return iter(list(self._entries))

    def __len__(self) -> int:
        """How many are open, or being opened."""
        return len(self._entries)

    def is_open(self, user: str, name: str) -> bool:
        """Whether a session is open here."""
        return (user, name) in self._entries

    def found(self, user: str, name: str) -> AsyncSession | None:
        """A session that is open here, without using it."""
        entry = self._entries.get((user, name))
        return None if entry is None else entry.session

    def is_idle(self, user: str, name: str) -> bool:
        """True if a session is open here that nobody uses."""
        entry = self._entries.get((user, name))
        return entry is not None and entry.session is not None and not entry.callers

    async def close(self, user: str, name: str) -> None:
        """Close a session, if it is open here."""
        if (entry := self._entries.get((user, name))) is not None:
            await self._close(entry)

    @contextmanager
    def calling(self, user: str) -> Iterator[None]:
        """A call of a user, while it is under way. `CellblockError` where as many are as may be."""
        share = self._share(user)
        if share.calls >= _MOST_CALLS:
            raise CellblockError(f"{_MOST_CALLS} of your calls are under way", hint="try again when one has ended")
        share.calls += 1
        try:
            yield
        finally:
            share.calls -= 1

    @asynccontextmanager
    async def use(self, user: str, name: str, *, create: bool = True) -> AsyncIterator[AsyncSession]:
        """A session while it is used, opened if it is not. It is not closed meanwhile, but for the end of the program.

        `UnknownSession` where there is none and `create` is false; `CellblockError` where as many are in use as may be.
        """
        key = (user, checked_name(name, "session"))
        if not create and key not in self._entries:
            store = await self._opened_store()
            await to_thread.run_sync(store.read, *key)
        await self._make_room(key)
        entry = self._entries.setdefault(key, _Entry(key))
        entry.callers += 1
        try:
            async with entry.opening:
                if entry.session is None:
                    entry.session = await self._opened(*key)
                session = entry.session
            try:
                yield session
            except (SessionClosed, LeaseLost):  # it is of no use any more: whoever comes next opens it again
                if entry.session is session:
                    entry.session = None
                await session.close()
                raise
        finally:
            entry.used = time.monotonic()
            self._leave(entry)

    async def adopt(self, session: AsyncSession) -> None:
        """Take over a session that is open, as a branch is. It is closed where there is no room."""
        key = (session.user, str(session.name))
        try:
            await self._make_room(key)
        except CellblockError:
            await session.close()
            return
        entry = self._entries[key] = _Entry(key, session=session, callers=1, used=time.monotonic())
        self._leave(entry)

    async def read(self, user: str, name: str, take: Callable[[Iterator[Kept], str], T]) -> T:
        """The result of `take`, called in a thread with the cells of a session's notebook and why it is private.

        Those of a session that is not open come from the store, a hundred at a time: no process is started.
        """
        key = (user, checked_name(name, "session"))
        opened, store = self.found(*key), await self._opened_store()

        def read() -> T:
            if opened is not None:
                return take(opened.notebook.every(), opened.notebook.private)
            stored = store.read(*key)
            return take(cells_of(stored, stored.resolve("HEAD")), str(stored.settings.get("private") or ""))

        return await to_thread.run_sync(read, limiter=self._share(user).readings)

    async def list(self, user: str, *, after: str | None = None, limit: int = 100) -> list[SessionRow]:
        """The first sessions of a user whose names come after one, by name, open or not."""
        store = await self._opened_store()
        return await to_thread.run_sync(lambda: store.sessions(user, after=_place(user, after), limit=limit))

    async def _opened_store(self) -> Store:
        async with self._storing:
            if self._store is None:
                self._store = await to_thread.run_sync(lambda: open_store(self._state.url))
            return self._store

    def _share(self, user: str) -> _Share:
        return self._shares.setdefault(user, _Share())

    async def _make_room(self, key: tuple[str, str]) -> None:
        most = max(1, self._most // self.users)
        while key not in self._entries:
            own = [entry for entry in self._entries.values() if entry.key[0] == key[0]]
            idle = [entry for entry in own if not entry.callers]
            if len(own) < most:
                return
            if idle:
                await self._close_quietly(min(idle, key=lambda entry: entry.used))
            elif self._lends:
                self._freed.clear()
                await self._freed.wait()
            else:
                raise CellblockError(
                    f"all {most} sessions that may be open are in use", hint="try again when a call has ended"
                )

    async def _close_quietly(self, entry: _Entry) -> None:
        """Close a session; what the store does not take is for the log, since no caller of it is there to be told."""
        try:
            await self._close(entry)
        except CellblockError as error:
            _LOG.error("session %r of %r was not closed as it should be: %s", *reversed(entry.key), error)

    async def _close(self, entry: _Entry) -> None:
        entry.callers += 1
        try:
            async with entry.opening:
                session, entry.session = entry.session, None
                if session is not None:
                    await session.close()
        finally:
            self._leave(entry)

    def _leave(self, entry: _Entry) -> None:
        """A caller has gone: a session that has none rests after a while, or makes way for one that waits for room."""
        entry.callers -= 1
        if entry.callers:
            return
        self._freed.set()
        if entry.session is not None:
            asyncio.get_running_loop().call_later(self._idle_seconds, self._rest_if_idle, entry, entry.used)
        elif self._entries.get(entry.key) is entry:
            del self._entries[entry.key]

    def _rest_if_idle(self, entry: _Entry, used: float) -> None:
        if entry.used == used and not entry.callers and entry.session is not None:
            entry.callers += 1
            task = asyncio.get_running_loop().create_task(self._rest(entry, entry.session))
            self._resting.add(task)
            task.add_done_callback(self._resting.discard)

    async def _rest(self, entry: _Entry, session: AsyncSession) -> None:
        """Have a session sleep that nobody uses. What the store does not take keeps it awake, and is logged."""
        try:
            await (self._close_quietly(entry) if self._lends else session.hibernate())
        except CellblockError as error:
            _LOG.error("session %r of %r could not be put to sleep: %s", *reversed(entry.key), error)
        finally:
            self._leave(entry)


def _place(user: str, name: str | None) -> SessionRow | None:
    """Where a list of sessions goes on: of a row, the user and the name say that."""
    if name is None:
        return None
    return SessionRow(
        user=user, name=valid(name), created=0, used=0, branch=None, commit=None, depth=0, pending=0, holder=None
    )
