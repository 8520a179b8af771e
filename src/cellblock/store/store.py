"""The store: opened by URL, it gives the sessions of its users."""

from __future__ import annotations

import hashlib
import itertools
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Self

from cellblock.errors import StoreError, UnknownSession
from cellblock.hosting.paths import absolute
from cellblock.hosting.unique import unique_word
from cellblock.patience import LOCK_SECONDS, tries
from cellblock.store import lease
from cellblock.store.address import JSON, address_of
from cellblock.store.catalogue import Catalogue, Held, StillWriting
from cellblock.store.database import Database, Uncertain, shared, text
from cellblock.store.held import HeldSession
from cellblock.store.objects import GRACE, ObjectTable, require_place
from cellblock.store.places import Place, open_place
from cellblock.store.session import StoredSession
from cellblock.store.sqlite import SqliteDatabase, file_identity
from cellblock.store.upkeep import Collection, verify
from cellblock.store.urls import StoreUrl, parse_url
from cellblock.store.words import Holder, Quota, SessionRow, StoreUsage, Swept, VerifyReport
from cellblock.text import half_made

_MOST_HOME = 10_000
_log = logging.getLogger("cellblock.store")
DEFAULT_QUOTA = Quota(sessions=10_000, bytes=64 << 30)


def open_store(url: str | None = None, *, quota: Quota = DEFAULT_QUOTA, lease_seconds: float = lease.SECONDS) -> Store:
    """Open the store of a URL, made if there is none: see `store.urls` for the forms.

    Without one it is `$CELLBLOCK_STORE`, else a file under the user's data directory. `quota` is each user's who has
    none of their own. `lease_seconds`: how long a host that is not heard of holds its sessions.
    """
    try:
        parts = parse_url(url)
    finally:
        del url  # no frame of an error holds it
    if parts.kind == "sqlite":  # this directory's, wherever the process goes
        parts = replace(parts, location=os.path.realpath(absolute(parts.location, StoreError)))
    memory = ("memory", next(_memories))

    def opened() -> Store:
        return Store(
            _database(parts, memory),
            open_place(parts.objects),
            shown=parts.shown,
            quota=quota,
            lease_seconds=lease_seconds,
            connect=None if parts.kind == "memory" else lambda: _reopened(parts),
            again=opened,
        )

    return opened()


_memories = itertools.count()
"""Numbers for stores in memory."""


def _after_last_commits(take: Callable[[], Held]) -> Held:
    """Take a session once one of this process that was dropped has written its last commits."""
    for _ in tries(LOCK_SECONDS):
        with suppress(StillWriting):
            return take()
    return take()


def _reopened(parts: StoreUrl) -> Database:
    """A database that has been open before."""
    if parts.kind == "sqlite" and not os.path.exists(parts.location):
        raise StoreError(f"the store {parts.location} is not there any more", hint="what was not read of it is lost")
    return _database(parts)


def _database(parts: StoreUrl, memory: tuple[str, int] | None = None) -> Database:
    if parts.kind == "postgresql":
        from cellblock.store.postgres import PostgresDatabase

        return shared(
            lambda: ("postgresql", hashlib.sha256(parts.location.encode()).hexdigest(), parts.schema),
            lambda: PostgresDatabase(parts),
        )
    if parts.kind == "sqlite":
        return shared(lambda: file_identity(parts.location), lambda: SqliteDatabase(parts.location))
    return shared(lambda: memory, lambda: SqliteDatabase(None))


class Store:
    """Stored sessions of users. Its methods block, and may be called from any thread."""

    def __init__(
        self,
        database: Database,
        place: Place | None = None,
        *,
        shown: str = "",
        quota: Quota = DEFAULT_QUOTA,
        lease_seconds: float = lease.SECONDS,
        connect: Callable[[], Database] | None = None,
        again: Callable[[], Store] | None = None,
    ) -> None:
        """`connect` opens the database again; None where it ends with its being closed. `again` is for `another`."""
        self.url = shown
        self._again = again
        self._connect = connect
        self._database = database
        self._place = place
        self._noted = False
        self._quota = quota
        self._catalogue = Catalogue(database, quota, lease_seconds, shown)
        self._keeper = lease.LeaseKeeper(database, lease_seconds)
        try:
            self.identity = self._identity()
        except BaseException:
            database.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @half_made
    def __repr__(self) -> str:
        return f"<Store {self.url}>"

    def another(self) -> Store:
        """The same store once more, for somebody else to close."""
        if self._again is None:
            raise StoreError("the store was not opened by its URL")
        return self._again()

    # --- sessions ---

    def hold(
        self, user: str, name: str, *, settings: Mapping[str, JSON] | None = None, create: bool = True
    ) -> HeldSession:
        """Take a session, made with `settings` if there is none and `create`, and keep it until it is released.

        Waits, up to `LOCK_SECONDS`, for one of this process that was dropped and writes its last commits.
        SessionHeld: a process that lives has it. UnknownSession: there is none. QuotaReached: the user has too many.
        """
        take = partial(self._catalogue.take, user, name, settings=settings, create=create)
        return self._held(user, name, lambda holder: _after_last_commits(partial(take, holder)))

    def read(self, user: str, name: str) -> StoredSession:
        """A session to look at, whoever holds it. UnknownSession: there is none."""
        found = self._catalogue.find(user, name)
        return StoredSession(self._database, self._objects(found.user_id), user, name, found)

    def sessions(
        self, user: str | None = None, *, after: SessionRow | None = None, limit: int = 100
    ) -> list[SessionRow]:
        """Up to `limit` sessions of a user or of all, by name; those that come after one."""
        return self._catalogue.listed(user, ("", "") if after is None else (after.user, after.name), limit)

    def delete(self, user: str, name: str) -> None:
        """Delete a session that nobody holds; `gc` gives its space back."""
        self._catalogue.delete(user, name)

    def rename(self, user: str, name: str, new: str) -> None:
        """Give a session that nobody holds another name."""
        self._catalogue.rename(user, name, new)

    def fork(self, user: str, name: str, new: str, *, at: str = "HEAD") -> None:
        """Make a session of the same user that shares another's history and goes on from `at`; nothing is copied."""
        self._catalogue.fork(user, name, new, self.read(user, name).resolve(at).id)

    def branch(self, session: StoredSession, new: str, commit: str, settings: Mapping[str, JSON]) -> HeldSession:
        """Fork a session at a commit and hold the new one, with settings of its own: in one transaction."""
        fork = partial(self._catalogue.fork, session.user, session.name, new, commit, settings=settings)
        return self._held(session.user, new, lambda holder: fork(holder=holder))

    def renew(self) -> None:
        """Say that this process still has the sessions it holds; a thread of the store's does so by itself."""
        self._keeper.renew()

    # --- users ---

    def usage(self, user: str) -> StoreUsage:
        """Usage and quota of a user."""
        return self._catalogue.usage(user)

    def set_quota(self, user: str, quota: Quota) -> None:
        """Give a user a quota of their own, for all hosts of the store."""
        self._catalogue.set_quota(user, quota)

    # --- the whole ---

    def verify(self, user: str | None = None) -> VerifyReport:
        """Read everything, or all of one user's, and tell what is damaged."""
        reports = [
            verify(self._database, self._objects(user_id), user_id, name) for user_id, name in self._users(user)
        ]
        return VerifyReport(
            objects=sum(one.objects for one in reports),
            bytes=sum(one.bytes for one in reports),
            sessions=sum(one.sessions for one in reports),
            commits=sum(one.commits for one in reports),
            unreferenced=sum(one.unreferenced for one in reports),
            damage=tuple(damage for one in reports for damage in one.damage),
            tables=tuple(self._database.check()),
        )

    def gc(self, user: str | None = None, *, grace_seconds: float = GRACE) -> Swept:
        """Delete what nothing has led to for `grace_seconds`, and note what nothing leads to now.

        Space comes back with the second call, an hour later. A shorter grace is for when nobody has a session open:
        SessionHeld otherwise.
        """
        place = self._place
        if others := self._others():  # which may need what nothing here leads to
            _log.warning("%s: nothing in %s is deleted: it is also of %s", self.url, self._place, ", ".join(others))
            place = None
        swept = [
            Collection(self._database, self._objects(user_id), place, user_id, name, grace_seconds).sweep()
            for user_id, name in self._users(user)
        ]
        self._database.compact()
        return Swept(
            kept=sum(one.kept for one in swept),
            condemned=sum(one.condemned for one in swept),
            deleted=sum(one.deleted for one in swept),
            bytes=sum(one.bytes for one in swept),
            strays=sum(one.strays for one in swept),
        )

    @property
    def lasts(self) -> bool:
        """True if there is anything to open again once it is closed."""
        return self._connect is not None

    def again(self) -> Store:
        """The same store, opened anew, after it was closed or in a process that was forked. StoreError: it is gone."""
        if self._connect is None:
            raise StoreError(f"the store {self.url} ended when it was closed")
        return Store(self._connect(), self._place, shown=self.url, quota=self._quota, connect=self._connect)

    def close(self) -> None:
        """Let go of the database. Sessions that are held stay so until released, or until their leases run out."""
        self._keeper.stop()
        self._database.close()

    # --- inside ---

    def _held(self, user: str, name: str, take: Callable[[Holder], Held | None]) -> HeldSession:
        """A session that `take` has the catalogue write down as this process's."""
        holder = lease.new_holder()
        try:
            try:
                held = take(holder)
            except Uncertain:
                if (held := self._catalogue.held_by(holder)) is None:
                    raise
            assert held is not None
            return HeldSession(
                self._database, self._objects(held.found.user_id), user, name, held,
                catalogue=self._catalogue, keeper=self._keeper, holder=holder,
            )  # fmt: skip
        except BaseException:  # of a session that was taken, too: whoever asks next may have it
            lease.forget(holder)
            raise

    def _objects(self, user_id: int) -> ObjectTable:
        return ObjectTable(self._database, self._place, user_id, self.identity, self._quota, self._note_home)

    def _note_home(self) -> None:
        """Have the place tell that this database has bodies in it: a copy of the database has, too."""
        if not self._noted:
            self._others()
            self._noted = True

    def _others(self) -> list[str]:
        """Other databases that have what this store has in its place: copies of it, or what it was before a move."""
        if self._place is None:
            return []
        require_place(self._place, self.identity, self._database)
        home, kept = self._database.home(), f"{self.identity}/databases"
        found = {key: self._place.get(key, _MOST_HOME) for key in [one.key for one in self._place.listed(kept)]}
        if home.encode() not in found.values():
            self._place.put(f"{kept}/{address_of(home.encode())}", home.encode())
        others = ((key, body.decode(errors="replace")) for key, body in sorted(found.items()) if body is not None)
        return [f"{body} (remove {key} there if that is gone)" for key, body in others if body != home]

    def _users(self, user: str | None) -> list[tuple[int, str]]:
        if user is None:
            return self._catalogue.users()
        user_id = self._catalogue.user_id(user)
        if user_id is None:
            raise UnknownSession(f"user {user!r} has no sessions")
        return [(user_id, user)]

    def _identity(self) -> str:
        """The word under which this store's bodies lie in a place that it may share with others."""
        sql = "SELECT value FROM meta WHERE name = 'store'"
        if not (rows := self._database.select(sql)):
            insert = "INSERT INTO meta (name, value) VALUES ('store', ?) ON CONFLICT (name) DO NOTHING"
            self._database.once(insert, unique_word())
            rows = self._database.select(sql)
        if not rows:
            raise StoreError(f"{self.url} has lost its identity")
        return text(rows[0][0])
