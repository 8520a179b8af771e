"""Users and their sessions: made, listed, held, renamed, copied and deleted, each in one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from shlex import quote

from cellblock.errors import QuotaReached, SessionHeld, StoreError, UnknownSession
from cellblock.hosting.unique import unique_bytes
from cellblock.store import lease
from cellblock.store.address import JSON, canonical, digest, parsed_mapping, spelled
from cellblock.store.database import Database, Row, Transaction, Value, blob, number, only, risen, text
from cellblock.store.naming import checked_name
from cellblock.store.words import Holder, Quota, SessionRow, StoreUsage

MAIN = "main"
"""The branch that a new session stands on."""


@dataclass(frozen=True, slots=True)
class Found:
    """A session as a handle needs it: the numbers that stand for it and its user, when it was made, its settings; None
    where these are damaged."""

    user_id: int
    session_id: int
    created: int
    settings: Mapping[str, JSON] | None


@dataclass(frozen=True, slots=True)
class Held:
    """A session that this process has taken: its epoch, and the number of the journal's newest entry."""

    found: Found
    epoch: int
    newest: int


class Catalogue:
    """The users and sessions of a store. `quota` is of users that have none of their own, `shown` the store's URL."""

    def __init__(self, database: Database, quota: Quota, lease_seconds: float, shown: str) -> None:
        self._database = database
        self._shown = shown
        self._quota = quota
        self._lease_seconds = lease_seconds

    def find(self, user: str, name: str) -> Found:
        """A session. UnknownSession: there is none."""
        sql = f"{_FIND} WHERE u.name = ? AND s.name = ?"
        rows = self._database.select(sql, checked_name(user, "user"), checked_name(name, "session"))
        if not rows:
            raise self._unknown(user, name)
        return _found(rows[0])

    def take(self, user: str, name: str, holder: Holder, *, settings: Mapping[str, JSON] | None, create: bool) -> Held:
        """Hold a session, made if there is none and `create`. SessionHeld: a process that lives holds it."""
        user, name = checked_name(user, "user"), checked_name(name, "session")
        now = self._database.now()
        with self._database.writing() as transaction:
            user_id = self._lock_user(transaction, user, create=create)
            found = None if user_id is None else self._lock_session(transaction, user_id, name)
            if found is None:
                if user_id is None or not create:
                    raise self._unknown(user, name)
                self._create(transaction, user_id, user, name, settings or {})
                found = self._lock_session(transaction, user_id, name)
                assert found is not None
            _refuse_held(found, user, name, now)
            return self._hold(transaction, found, holder, now)

    def held_by(self, holder: Holder) -> Held | None:
        """The session that a holder has just been given, where the database failed to say so; None: it has none."""
        rows = self._database.select(f"{_LOCKED} WHERE holder = ?", lease.as_text(holder))
        return self._as_held(self._database.select, rows[0], number(rows[0][4])) if rows else None

    def release(self, session_id: int, epoch: int) -> None:
        """Hold a session no more; nothing if another has taken it."""
        self._database.once("UPDATE sessions SET holder = NULL WHERE id = ? AND epoch = ?", session_id, epoch)

    def listed(self, user: str | None, after: tuple[str, str], limit: int) -> list[SessionRow]:
        """Sessions by user and name, of all users or of one, past a given one."""
        one = "" if user is None else " AND u.name = ?"
        sql = f"{_LIST} WHERE (u.name > ? OR (u.name = ? AND s.name > ?)){one} ORDER BY u.name, s.name LIMIT ?"
        parameters: list[Value] = [after[0], after[0], after[1]]
        if user is not None:
            parameters.append(checked_name(user, "user"))
        found = [_row(row) for row in self._database.select(sql, *parameters, limit)]
        for row in found:
            after = risen(after, (row.user, row.name))
        return found

    def users(self) -> list[tuple[int, str]]:
        """Every user: the number that stands for them, and the name."""
        return [
            (number(row[0]), text(row[1])) for row in self._database.select("SELECT id, name FROM users ORDER BY id")
        ]

    def user_id(self, user: str) -> int | None:
        """The number that stands for a user; None if they have never had a session."""
        rows = self._database.select("SELECT id FROM users WHERE name = ?", checked_name(user, "user"))
        return number(rows[0][0]) if rows else None

    def delete(self, user: str, name: str) -> None:
        """Delete a session and all that only it has; a collection frees the space."""
        now = self._database.now()
        with self._database.writing() as transaction:
            found = self._locked(transaction, user, name)
            _refuse_held(found, user, name, now)
            for table in ("journal", "refs", "commits"):
                transaction.run(f"DELETE FROM {table} WHERE session_id = ?", found[1])
            transaction.run("DELETE FROM sessions WHERE id = ?", found[1])

    def rename(self, user: str, name: str, new: str) -> None:
        """Give a session that nobody holds another name."""
        new, now = checked_name(new, "session"), self._database.now()
        with self._database.writing() as transaction:
            found = self._locked(transaction, user, name)
            _refuse_held(found, user, name, now)
            self._refuse_taken(transaction, number(found[0]), user, new)
            transaction.run("UPDATE sessions SET name = ? WHERE id = ?", new, found[1])

    def fork(
        self, user: str, name: str, new: str, commit: str, *,
        settings: Mapping[str, JSON] | None = None, holder: Holder | None = None,
    ) -> Held | None:  # fmt: skip
        """A new session of the same user with all of another's commits and tags; its `main` is at `commit`.

        It has the other's settings, or those given, and is held from the start where there is a `holder`.
        """
        new, now = checked_name(new, "session"), self._database.now()
        with self._database.writing() as transaction:
            found = self._locked(transaction, user, name)
            user_id = number(found[0])
            self._refuse_taken(transaction, user_id, user, new)
            settings = _found(found).settings if settings is None else settings
            if settings is None:
                raise damaged_settings(user, name)
            self._create(transaction, user_id, user, new, settings)
            copy = self._lock_session(transaction, user_id, new)
            assert copy is not None
            transaction.run(f"{_COPY_COMMITS} session_id = ?", copy[1], found[1])
            transaction.run(f"{_COPY_REFS} session_id = ? AND kind = 'tag'", copy[1], found[1])
            transaction.run("INSERT INTO refs VALUES (?, 'branch', ?, ?)", copy[1], MAIN, digest(commit))
            return None if holder is None else self._hold(transaction, copy, holder, now)

    def usage(self, user: str) -> StoreUsage:
        """Usage of a user; zero for one who has never had a session."""
        rows = self._database.select(f"{_USAGE} WHERE u.name = ?", checked_name(user, "user"))
        if not rows:
            return StoreUsage(sessions=0, objects=0, bytes=0, quota=self._quota)
        sessions, objects, taken, most, room = rows[0]
        quota = Quota(
            sessions=self._quota.sessions if most is None else number(most),
            bytes=self._quota.bytes if room is None else number(room),
        )
        return StoreUsage(sessions=number(sessions), objects=number(objects), bytes=number(taken), quota=quota)

    def set_quota(self, user: str, quota: Quota) -> None:
        """Give a user a quota of their own, for all hosts of the store."""
        with self._database.writing() as transaction:
            user_id = self._lock_user(transaction, checked_name(user, "user"), create=True)
            sql = "UPDATE users SET quota_sessions = ?, quota_bytes = ? WHERE id = ?"
            transaction.run(sql, quota.sessions, quota.bytes, user_id)

    # --- inside ---

    def _unknown(self, user: str, name: str) -> UnknownSession:
        listed = f"cellblock sessions list --user {quote(user)} --store {quote(self._shown)}"
        if self._shown == "memory:":  # which no other program sees
            listed = f"store.sessions({user!r})"
        return UnknownSession(f"user {user!r} has no session {name!r}", hint=f"see which there are: {listed}")

    def _hold(self, transaction: Transaction, found: Row, holder: Holder, now: float) -> Held:
        """Write down who holds the session of a locked row from now on."""
        last = number(found[4])
        epoch = last + 1 + (int.from_bytes(unique_bytes(4)) if last else 0)  # another, where the store is set back
        transaction.run(
            "UPDATE sessions SET epoch = ?, holder = ?, until = ?, used = ? WHERE id = ?",
            epoch, lease.as_text(holder), now + self._lease_seconds, _ms_now(), found[1],
        )  # fmt: skip
        return self._as_held(transaction.rows, found, epoch)

    def _as_held(self, select: Callable[..., list[Row]], found: Row, epoch: int) -> Held:
        newest = select("SELECT max(number) FROM journal WHERE session_id = ?", found[1])[0][0]
        return Held(_found(found), epoch, max(number(found[7]), 0 if newest is None else number(newest)))

    def _lock_user(self, transaction: Transaction, user: str, *, create: bool) -> int | None:
        if create:
            sql = (
                f"INSERT INTO users (id, name, created, objects, bytes){self._database.dialect.own_id}"
                " SELECT CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS BIGINT), 0, 0"
                " WHERE NOT EXISTS (SELECT 1 FROM users WHERE name = ?) ON CONFLICT (name) DO NOTHING"
            )
            transaction.run(sql, _new_id(), user, _ms_now(), user)
        rows = transaction.rows(f"SELECT id FROM users WHERE name = ?{self._database.dialect.for_update}", user)
        return number(rows[0][0]) if rows else None

    def _lock_session(self, transaction: Transaction, user_id: int, name: str) -> Row | None:
        lock = self._database.dialect.for_update
        rows = transaction.rows(f"{_LOCKED} WHERE user_id = ? AND name = ?{lock}", user_id, name)
        return rows[0] if rows else None

    def _locked(self, transaction: Transaction, user: str, name: str) -> Row:
        """The locked row of a session. UnknownSession: there is none."""
        user, name = checked_name(user, "user"), checked_name(name, "session")
        user_id = self._lock_user(transaction, user, create=False)
        found = None if user_id is None else self._lock_session(transaction, user_id, name)
        if found is None:
            raise self._unknown(user, name)
        return found

    def _refuse_taken(self, transaction: Transaction, user_id: int, user: str, name: str) -> None:
        if self._lock_session(transaction, user_id, name) is not None:
            raise StoreError(f"user {user!r} has a session {name!r} already", hint="choose another name")

    def _create(
        self, transaction: Transaction, user_id: int, user: str, name: str, settings: Mapping[str, JSON]
    ) -> None:
        counted = (
            "SELECT (SELECT count(*) FROM sessions WHERE user_id = u.id), quota_sessions FROM users u WHERE id = ?"
        )
        many, most = only(transaction.rows(counted, user_id))
        allowed = self._quota.sessions if most is None else number(most)
        if number(many) >= allowed:
            raise QuotaReached(
                f"user {user!r} may keep {allowed:,} sessions, and has {number(many):,}",
                hint="delete a session, or raise the quota",
            )
        now = _ms_now()
        sql = f"{_CREATE}{self._database.dialect.own_id} VALUES (?, ?, ?, ?, ?, ?, ?, NULL, 0, NULL, 0, 0)"
        transaction.run(sql, _new_id(), user_id, name, now, now, canonical(settings).decode(), MAIN)


_FIND = "SELECT s.user_id, s.id, s.created, s.settings FROM sessions s JOIN users u ON u.id = s.user_id"
_LOCKED = "SELECT user_id, id, created, settings, epoch, holder, until, trimmed FROM sessions"
_LIST = (
    "SELECT u.name, s.name, s.created, s.used, s.head_branch, coalesce(r.address, s.head_commit), c.depth,"
    " (SELECT count(*) FROM journal j WHERE j.session_id = s.id), s.holder, s.settings FROM sessions s"
    " JOIN users u ON u.id = s.user_id"
    " LEFT JOIN refs r ON r.session_id = s.id AND r.kind = 'branch' AND r.name = s.head_branch"
    " LEFT JOIN commits c ON c.session_id = s.id AND c.address = coalesce(r.address, s.head_commit)"
)
_USAGE = (
    "SELECT (SELECT count(*) FROM sessions s WHERE s.user_id = u.id), u.objects, u.bytes,"
    " u.quota_sessions, u.quota_bytes FROM users u"
)
_CREATE = (
    "INSERT INTO sessions (id, user_id, name, created, used, settings, head_branch, head_commit, epoch, holder,"
    " until, trimmed)"
)
_COPY_COMMITS = "INSERT INTO commits SELECT CAST(? AS BIGINT), address, depth FROM commits WHERE"
_COPY_REFS = "INSERT INTO refs SELECT CAST(? AS BIGINT), kind, name, address FROM refs WHERE"


def _new_id() -> int:
    """A number that nobody else comes to, whatever was there before: a store may be set back to a backup of it."""
    return int.from_bytes(unique_bytes(8)) >> 2


def _ms_now() -> int:
    """For people to read: no lease goes by it."""
    return time.time_ns() // 1_000_000


class StillWriting(SessionHeld):
    """The session that holds it was dropped in this process, and writes its last commits."""


def _refuse_held(found: Row, user: str, name: str, now: float) -> None:
    """SessionHeld: a lease on the locked session has not run out, and its holder is not known to be dead."""
    until = found[6] if isinstance(found[6], float) else number(found[6])
    if found[5] is None or until <= now:
        return
    if (holder := _holder(found[5])) is None:
        raise SessionHeld(
            f"session {name!r} of {user!r} may be open elsewhere: its row is damaged, and does not tell where",
            hint=f"it is free when it has not been heard of for {until - now:.0f} s",
            holder="unknown",
        )
    if lease.is_gone(holder):
        return
    if lease.is_here(holder):
        raise (StillWriting if lease.is_dropped(holder) else SessionHeld)(
            f"session {name!r} of {user!r} is open in this process",
            hint="close() that one or its agent, or del it first: a variable bound anew drops the old one too late",
            holder=str(holder),
        )
    ended = "once that process has ended, or " if lease.is_near(holder) else ""
    raise SessionHeld(
        f"session {name!r} of {user!r} is open in {holder}",
        hint=f"close it there; it is free {ended}when it has not been heard of for {until - now:.0f} s",
        holder=str(holder),
    )


def damaged_settings(user: str, name: str) -> StoreError:
    """The error of who needs the settings of a session."""
    return StoreError(
        f"the row of session {name!r} of {user!r} is damaged: its settings cannot be read",
        hint="open the session: it goes on without them, as a private one",
    )


def _found(row: Row) -> Found:
    return Found(number(row[0]), number(row[1]), number(row[2]), _settings(row[3]))


def damaged_columns(settings: Value, holder: Value) -> list[str]:
    """Those of two columns of a session's row that cannot be read."""
    unread = {"settings": _settings(settings) is None, "holder": holder is not None and _holder(holder) is None}
    return [name for name, is_damaged in unread.items() if is_damaged]


def _settings(column: Value) -> Mapping[str, JSON] | None:
    try:
        return parsed_mapping(text(column))
    except StoreError:
        return None


def _holder(column: Value) -> Holder | None:
    try:
        return lease.from_text(text(column))
    except StoreError:
        return None


def _row(row: Row) -> SessionRow:
    user, name, created, used, branch, commit, depth, pending, holder, column = row
    settings, damaged = _settings(column), ""
    if unread := damaged_columns(column, holder):
        damaged = f"its {' and '.join(unread)} cannot be read"
    elif commit is not None and depth is None:
        damaged = f"its newest commit, {spelled(blob(commit))}, is missing"
    return SessionRow(
        user=text(user),
        name=text(name),
        created=number(created),
        used=number(used),
        branch=None if branch is None else text(branch),
        commit=None if commit is None else spelled(blob(commit)),
        depth=0 if depth is None else number(depth),
        pending=number(pending),
        holder=None if (found := _holder(holder)) is None or lease.is_gone(found) else found,
        private=damaged if settings is None else str(settings.get("private") or ""),  # as it opens
        damaged=damaged,
    )
