"""Sessions of many users, kept in one store: opened when they are used, asleep or closed when they are not."""

from __future__ import annotations

import asyncio
import logging
import os
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeVar

import anyio

from cellblock.errors import Busy, CellblockError, SessionBusy, SessionClosed
from cellblock.hosting import clock, to_thread
from cellblock.session.commits import cells_of
from cellblock.session.notebook import Kept
from cellblock.session.session import AsyncSession
from cellblock.state import Versioned
from cellblock.store import SessionRow, Store, open_store
from cellblock.store.naming import checked_name
from cellblock.text import half_made, valid

_LOG = logging.getLogger(__name__)
_MOST_CALLS = 32
_MOST_READINGS = 2
"""Notebooks of one user that are read at once, each in a thread."""
_MOST_OPENINGS = 4
_LOOK_SECONDS = 0.1
"""Between two attempts to open a session that another program has open."""

T = TypeVar("T")
Key = tuple[str, str]


@dataclass
class _Share:
    """Calls of one user that are under way, and the threads that read her notebooks."""

    calls: int = 0
    readings: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(_MOST_READINGS))


@dataclass
class _Entry:
    """One session, by user and name. `callers` use it, or wait until it is open; `session` is None where it is not."""

    key: Key
    session: AsyncSession | None = None
    callers: int = 0
    used: float = 0.0
    stays: float = 0.0
    """Time until which calls that can wait leave it open, for as long as its opening took; 0 once it is over."""
    asleep: bool = False
    rest: asyncio.TimerHandle | None = None
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    after: set[asyncio.Task[None]] = field(default_factory=set)
    """Sessions that are being closed, and have to be before this one has processes."""

    @property
    def idle(self) -> bool:
        """True if the session is open and nobody uses it."""
        return self.session is not None and not self.callers

    @property
    def awake(self) -> bool:
        """True if the session has processes, or is about to."""
        return bool(self.callers) or not self.asleep


class SessionPool:
    """The sessions of one store, by user and name, each opened when it is used. Use it as `async with`, on one loop.

        async with SessionPool("sqlite:///cells.db", max_sessions=100) as pool:
            async with pool.session("q3", user="ana") as session:
                cell = await session.run("1 + 1")

    Two callers of one name have the same session at the same time; its cells come one after the other.

    At most `max_sessions` are open at once, and of one user `max_per_user`. Where those places are taken, the session
    that was used longest ago is closed, one of the same user's first: all that it was is in the store. A session that
    nobody has used for `idle_seconds` ends its processes, until it is used again.

    `max_memory_mb` bounds the memory that all sessions with processes may use together, each counted with its whole
    `limits.max_memory_mb`: past it, the one that was used longest ago ends its processes.

    Where every place is in use, or another program has the session open, a call waits for `wait_seconds`, and is
    refused then: `Busy`, or `SessionHeld`. Calls get places in the order in which they came; one whose user has all
    that `max_per_user` gives lets the others by. A session whose program has died is taken over by the store's lease.
    """

    def __init__(
        self,
        store: str | Versioned | None = None,
        *,
        max_sessions: int = 100,
        max_per_user: int | None = None,
        max_memory_mb: int | None = None,
        idle_seconds: float = 600.0,
        wait_seconds: float = 30.0,
        when_idle: Literal["sleep", "close"] = "sleep",
        warm: int = 0,
        **options: Any,
    ) -> None:
        """Nothing is opened yet.

        `store`: a URL as `Versioned` takes it, None for the user's own store.

        `when_idle="close"` closes idle sessions, so that other programs can open them.

        `warm`: sessions that are kept ready to be opened, as by `keep_ready`.

        `options` go to each `AsyncSession`: limits, mounts, network, policy, preload, private, tools and so on.
        """
        state = self._state = store if isinstance(store, Versioned) else Versioned(store)
        del store  # no frame of an error holds it
        most = {"max_sessions": max_sessions, "max_per_user": max_per_user, "max_memory_mb": max_memory_mb}
        for name, count in most.items():
            if count is not None and (type(count) is not int or count < 1):
                raise ValueError(f"{name} must be a whole number of at least 1, not {count!r}")
        if not _is_number(idle_seconds) or not idle_seconds > 0:
            raise ValueError(f"idle_seconds must be above 0, not {idle_seconds!r}")
        if not _is_number(wait_seconds) or not wait_seconds >= 0:
            raise ValueError(f"wait_seconds must be 0 or more, not {wait_seconds!r}")
        if when_idle not in ("sleep", "close"):
            raise ValueError(f'when_idle must be "sleep" or "close", not {when_idle!r}')
        if type(warm) is not int or warm < 0:
            raise ValueError(f"warm must be a whole number of at least 0, not {warm!r}")
        if given := {"state", "user", "name"} & options.keys():
            raise TypeError(f"{min(given)} is not an option of a pool: sessions are named as they are used")
        self._options = options
        self._template = AsyncSession("warm", state=state, **options)  # tells what is wrong with the options, at once
        self.max_sessions = max_sessions
        self.max_per_user = max_per_user
        each = self._template.limits.max_memory_mb
        if max_memory_mb is not None and max_memory_mb < each:
            raise ValueError(f"max_memory_mb={max_memory_mb} has no room for one session, which may use {each} MB")
        self._most_awake = None if max_memory_mb is None else max_memory_mb // each
        self._idle_seconds, self._wait_seconds = idle_seconds, wait_seconds
        self._closes = when_idle == "close"
        self._warm = warm
        self._shares: dict[str, _Share] = {}
        self._entries: dict[Key, _Entry] = {}
        self._openings = asyncio.Semaphore(_MOST_OPENINGS)
        self._line: dict[asyncio.Future[_Entry], tuple[Key, float]] = {}
        """Calls that wait for a place, in their order: the session that each is for, and until when it waits."""
        self._leaving: dict[Key, tuple[_Entry, asyncio.Task[None]]] = {}
        """Sessions that have no place any more, and are being closed."""
        self._resting: set[asyncio.Task[None]] = set()
        self._store: Store | None = None
        self._storing = anyio.Lock()
        self._closed = False
        self._pid = os.getpid()
        self._loop: asyncio.AbstractEventLoop | None = None
        _ALL.add(self)

    async def __aenter__(self) -> Self:
        if self._warm:
            await to_thread.run_sync(self._keep_warm, self._warm)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __iter__(self) -> Iterator[Key]:
        """Users and names of the sessions that are open, or being opened."""
        return iter(list(self._entries))

    def __len__(self) -> int:
        """Number of sessions that are open, or being opened."""
        return len(self._entries)

    def share(self, users: int) -> None:
        """Share the places evenly among so many users, at least one for each: nobody takes another's place."""
        self.max_per_user = max(1, self.max_sessions // users)
        self.max_sessions = max(self.max_sessions, users)
        self._hand_out()

    @half_made
    def __repr__(self) -> str:
        return f"SessionPool({len(self)} of {self.max_sessions} sessions open)"

    @asynccontextmanager
    async def session(self, name: str, *, user: str = "default", create: bool = True) -> AsyncIterator[AsyncSession]:
        """A session while it is used, opened if it is not. It stays open meanwhile, but for the end of the pool.

        `UnknownSession` where there is none and `create` is false; `Busy` where no place became free in time;
        `SessionHeld` where another program had it open for that long.
        """
        key = (user, checked_name(name, "session"))
        if not create and key not in self._entries:
            store = await self._opened_store()
            await to_thread.run_sync(store.read, *key)
        until = clock.now() + self._wait_seconds
        entry = await self._admit(key, until)
        try:
            async with entry.opening:
                if entry.after:
                    await asyncio.wait(entry.after)
                    entry.after.clear()
                await self._drop_spent(entry)
                if entry.session is None:
                    entry.session = await self._opened(entry, until)
                session, entry.asleep = entry.session, False
            yield session
        finally:
            try:
                await self._drop_spent(entry)
            finally:
                entry.used = clock.now()
                self._leave(entry)

    async def close(self) -> None:
        """Close every session, for good. What the store does not take is one line of the log for each."""
        self._closed = True
        for place in self._line:
            place.cancel()
        self._line.clear()
        with anyio.CancelScope(shield=True):
            for task in (resting := list(self._resting)):
                task.cancel()
            await asyncio.gather(*resting, return_exceptions=True)
            for entry in list(self._entries.values()):
                with suppress(CellblockError):  # the log has it
                    await self._close(entry)
            if closing := [task for _, task in self._leaving.values()]:
                await asyncio.wait(closing)
            if self._store is not None:
                await to_thread.run_sync(self._store.close)
                self._store = None
            if self._warm:
                await to_thread.run_sync(self._keep_warm, 0)

    async def release(self, name: str, *, user: str = "default") -> None:
        """Close a session, whoever uses it; nothing where it is not open here."""
        if (entry := self._entries.get((user, name))) is not None:
            await self._close(entry)

    def found(self, name: str, *, user: str = "default") -> AsyncSession | None:
        """A session that is open here, without using it."""
        entry = self._entries.get((user, name))
        return None if entry is None else entry.session

    async def adopt(self, session: AsyncSession) -> None:
        """Take over a stored session that is open, such as a branch. It is closed where there is no place for it."""
        key = (session.user, str(session.name))
        try:
            entry = await self._admit(key, clock.now())
        except CellblockError:
            await session.close()
            return
        try:
            if entry.session is None:  # else it was closed meanwhile, and opened again by who waited for it
                entry.session, entry.used = session, clock.now()
        finally:
            self._leave(entry)

    @contextmanager
    def calling(self, user: str) -> Iterator[None]:
        """A call of a user, while it is under way. `Busy` where as many are as may be."""
        share = self._share(user)
        if share.calls >= _MOST_CALLS:
            raise Busy(f"{_MOST_CALLS} of your calls are under way", hint="try again when one has ended")
        share.calls += 1
        try:
            yield
        finally:
            share.calls -= 1
            readings = share.readings.statistics()
            if not (share.calls or readings.borrowed_tokens or readings.tasks_waiting):
                self._shares.pop(user, None)

    async def read(self, name: str, take: Callable[[Iterator[Kept], str], T], *, user: str = "default") -> T:
        """The result of `take`, called in a thread with the cells of a session's notebook and why it is private.

        Those of a session that is not open come from the store, a hundred at a time: no process is started.
        """
        key = (user, checked_name(name, "session"))
        opened, store = self.found(name, user=user), await self._opened_store()

        def read() -> T:
            if opened is not None:
                return take(opened.notebook.every(), opened.notebook.private)
            stored = store.read(*key)
            return take(cells_of(stored, stored.resolve("HEAD")), str(stored.settings.get("private") or ""))

        return await to_thread.run_sync(read, limiter=self._share(user).readings)

    async def list(self, user: str = "default", *, after: str | None = None, limit: int = 100) -> list[SessionRow]:
        """The first sessions of a user whose names come after one, by name, open or not."""
        store = await self._opened_store()
        return await to_thread.run_sync(lambda: store.sessions(user, after=_place(user, after), limit=limit))

    # --- places ---

    async def _admit(self, key: Key, until: float) -> _Entry:
        """The entry of a session that is to be used, once there is a place for it. `Busy` where there is none in time.

        The caller counts as one of its callers already.
        """
        self._require_open()
        loop = asyncio.get_running_loop()
        if self._loop not in (None, loop):
            raise CellblockError(
                "the pool was used on another event loop", hint="use it as `async with`: each asyncio.run makes a loop"
            )
        self._loop = loop
        place: asyncio.Future[_Entry] = loop.create_future()
        self._line[place] = key, until
        self._hand_out()
        try:
            if not place.done():
                await asyncio.wait([place], timeout=max(0.0, until - clock.now()))
            self._require_open()
        except BaseException:
            if place.done() and not place.cancelled():
                self._leave(place.result())
            raise
        finally:
            self._line.pop(place, None)
        if place.done():
            return place.result()
        limit, taken = self._reached(key, [])
        may = {
            "max_per_user": f"user {key[0]!r} may have open",
            "max_sessions": "may be open",
            "max_memory_mb": "may have processes",
        }
        reason = f"all {len(taken)} sessions that {may[limit]} are in use ({limit})" if taken else "others came first"
        raise Busy(reason, hint="try again when a call has ended")

    def _hand_out(self) -> None:
        """Give places to the calls that wait for one, in their order, and close the idle sessions that are in the way.

        A call that only its user's own bound stops does not stop those behind it.
        """
        is_full = False
        for place, (key, until) in list(self._line.items()):
            entry = self._entries.get(key)
            if takes_room := entry is None or not entry.awake:
                in_use = () if is_full else self._make_room(key, until)
                is_full = is_full or any(one.key[0] != key[0] for one in in_use)
                if is_full or in_use:
                    continue
            entry = self._entries.setdefault(key, entry or _Entry(key))
            self._enter(entry)
            if takes_room:
                entry.after |= self._leaving_before(entry)
            del self._line[place]
            place.set_result(entry)

    def _make_room(self, key: Key, until: float) -> Sequence[_Entry]:
        """Close the idle sessions that are in the way of one that is to be used, those used longest ago first.

        Where that would not do yet, nothing is closed, and it gives the sessions that are in the way.
        """
        going: list[_Entry] = []
        while full := self._reached(key, going)[1]:
            if not (idle := [entry for entry in full if entry.idle]):
                return full
            one = min(idle, key=lambda entry: (entry.key[0] != key[0], entry.used))
            if 0 < one.stays <= until:
                return full
            going.append(one)
        for entry in going:
            _ = self._let_go(entry)
        return ()

    def _has_stayed(self, entry: _Entry) -> None:
        entry.stays = 0.0
        self._hand_out()

    def _leaving_before(self, entry: _Entry) -> set[asyncio.Task[None]]:
        """The sessions that are being closed and have to be before this one has processes, which has a place already.

        All of them where they and those with a place are too many together, so that those that are open never are.
        """
        leaving = self._leaving
        too_many = len(self._entries) + len(leaving) > self.max_sessions
        if self._most_awake is not None:
            awake = [one for one in (*self._entries.values(), *(left for left, _ in leaving.values())) if one.awake]
            too_many = too_many or len(awake) > self._most_awake
        return {task for key, (_, task) in leaving.items() if too_many or key == entry.key}

    def _require_open(self) -> None:
        if self._closed:
            raise SessionClosed("the pool was closed", hint="make a new SessionPool")

    def _reached(self, key: Key, going: Sequence[_Entry]) -> tuple[str, Sequence[_Entry]]:
        """The limit that keeps a session from being used, and the sessions, without those that are `going`, of which
        one has to end its processes before it can be; none where none has to.
        """
        entry = self._entries.get(key)
        others = [one for one in self._entries.values() if one is not entry and one not in going]
        own = [one for one in others if one.key[0] == key[0]]
        awake = [one for one in others if one.awake]
        if entry is None:
            if self.max_per_user is not None and len(own) >= self.max_per_user:
                return "max_per_user", own
            if len(others) >= self.max_sessions:
                return "max_sessions", others
        if self._most_awake is not None and len(awake) >= self._most_awake and (entry is None or not entry.awake):
            return "max_memory_mb", awake
        return "", ()

    # --- opening and closing ---

    async def _opened(self, entry: _Entry, until: float) -> AsyncSession:
        """A session, opened as soon as no other program has it open; or the one that was adopted meanwhile."""
        user, name = entry.key
        loop = self._loop = asyncio.get_running_loop()
        while True:
            async with self._openings:
                self._require_open()
                begun = clock.now()
                try:
                    session = await AsyncSession(name, user=user, state=self._state, **self._options).open()
                    took = clock.now() - begun
                    entry.stays = begun + 2 * took
                    loop.call_later(took, self._has_stayed, entry)
                    if not self._closed:
                        return session
                    await session.close()
                    self._require_open()
                except SessionBusy:
                    if clock.now() > until:
                        raise
            if not await self._given_up(entry.key):
                await asyncio.sleep(_LOOK_SECONDS)
            if entry.session is not None and not entry.session._is_spent:
                return entry.session

    async def _drop_spent(self, entry: _Entry) -> None:
        """Take a session out that is closed, or another program's by now: whoever comes next opens it again."""
        if (session := entry.session) is not None and session._is_spent:
            entry.session = None
            await session.close()

    async def _given_up(self, key: Key) -> bool:
        """True if another pool of this loop had the session open, and closed it as nobody used it there."""
        for other in list(_ALL):
            here = other is not self and other._pid == os.getpid() and other._loop is self._loop
            if here and other._closes and other._state.url == self._state.url:
                entry = other._entries.get(key)
                if entry is not None and entry.idle:
                    await asyncio.wait([other._let_go(entry)])
                    return True
        return False

    def _let_go(self, entry: _Entry) -> asyncio.Task[None]:
        """Close an idle session, which has no place from here on: a call that wants it again waits as all do."""
        del self._entries[entry.key]
        self._stop_rest(entry)
        task = _closing(entry)
        self._leaving[entry.key] = entry, task
        task.add_done_callback(lambda _: self._leaving.pop(entry.key))
        return task

    async def _close(self, entry: _Entry) -> None:
        """Close a session, whoever uses it: those keep its place."""
        if entry.idle:
            await _ended(self._let_go(entry))
            return
        self._enter(entry)
        try:
            async with entry.opening:
                if entry.session is not None:
                    await _ended(_closing(entry))
        finally:
            self._leave(entry)

    def _enter(self, entry: _Entry) -> None:
        """A caller has come: the session does not rest."""
        entry.callers += 1
        self._stop_rest(entry)

    @staticmethod
    def _stop_rest(entry: _Entry) -> None:
        if entry.rest is not None:
            entry.rest.cancel()
            entry.rest = None

    def _leave(self, entry: _Entry) -> None:
        """A caller has gone: a session that has none rests after a while, or makes way for one that waits for room."""
        entry.callers -= 1
        if entry.callers:
            return
        if entry.session is None:
            del self._entries[entry.key]
        elif not entry.asleep:
            entry.rest = asyncio.get_running_loop().call_later(self._idle_seconds, self._rest, entry)
        self._hand_out()

    def _rest(self, entry: _Entry) -> None:
        """Close an idle session, or have it sleep."""
        if self._closes:
            _ = self._let_go(entry)
            return
        task = asyncio.get_running_loop().create_task(self._sleep(entry))
        self._resting.add(task)
        task.add_done_callback(self._resting.discard)

    async def _sleep(self, entry: _Entry) -> None:
        """Have a session sleep that nobody uses. What the store does not take keeps it awake, and is logged."""
        if not entry.idle:
            return
        self._enter(entry)
        try:
            async with entry.opening:
                if entry.callers == 1 and entry.session is not None:
                    await entry.session.hibernate()
                    entry.asleep = entry.callers == 1
        except CellblockError as error:
            _log(entry, "put to sleep", error)
        finally:
            self._leave(entry)

    # --- what it stands on ---

    def _share(self, user: str) -> _Share:
        return self._shares.setdefault(user, _Share())

    async def _opened_store(self) -> Store:
        async with self._storing:
            self._require_open()
            if self._store is None:
                self._store = await to_thread.run_sync(lambda: open_store(self._state.url))
            return self._store

    def _keep_warm(self, count: int) -> None:
        self._template._launcher.keep_ready(self._template._spec, count)


_ALL: weakref.WeakSet[SessionPool] = weakref.WeakSet()
"""Of this program."""


def _closing(entry: _Entry) -> asyncio.Task[None]:
    """A task that closes a session, whoever is cancelled meanwhile. What the store does not take is logged."""
    assert entry.session is not None
    task = asyncio.get_running_loop().create_task(entry.session.close())
    entry.session = None

    def done(_: object) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            _log(entry, "closed as it should be", error)

    task.add_done_callback(done)
    return task


async def _ended(task: asyncio.Task[None]) -> None:
    """Wait for a task, which is not cancelled with its caller."""
    await asyncio.wait([task])
    task.result()


def _log(entry: _Entry, what: str, error: BaseException) -> None:
    _LOG.error("session %r of %r was not %s: %s", *reversed(entry.key), what, error)


def _place(user: str, name: str | None) -> SessionRow | None:
    """Cursor at which a list of sessions goes on: a row's user and name."""
    if name is None:
        return None
    return SessionRow(
        user=user, name=valid(name), created=0, used=0, branch=None, commit=None, depth=0, pending=0, holder=None
    )


def _is_number(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool)
