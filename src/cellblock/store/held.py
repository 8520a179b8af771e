"""A stored session that this process holds: its journal, its commits, and the names that lead to them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import TracebackType
from typing import Self

from cellblock.errors import LeaseLost, SessionClosed, StoreError, UnknownCommit
from cellblock.store import lease
from cellblock.store.address import JSON, canonical, digest, parsed, summed
from cellblock.store.batch import Batch
from cellblock.store.catalogue import Catalogue, Held
from cellblock.store.database import Database, Transaction, Uncertain, only, placed, text
from cellblock.store.history import BRANCH, TAG, commit_record, read_commit, shown
from cellblock.store.naming import checked_ref
from cellblock.store.objects import ObjectTable, in_parts
from cellblock.store.session import StoredSession
from cellblock.store.words import Commit, Entry, Head, Holder

_ENTRIES_AT_ONCE = 400


class HeldSession(StoredSession):
    """A session that this process holds, until `release`. Everything that it writes says so, and is refused if not."""

    def __init__(
        self, database: Database, objects: ObjectTable, user: str, name: str, held: Held, *,
        catalogue: Catalogue, keeper: lease.LeaseKeeper, holder: Holder,
    ) -> None:  # fmt: skip
        super().__init__(database, objects, user, name, held.found)
        self._catalogue = catalogue
        self._keeper = keeper
        self._holder = holder
        self._epoch = held.epoch
        self._newest = held.newest
        self._lock = threading.Lock()
        self._configuring = threading.Lock()
        self._lost = False
        self._released = False
        self._withdrawn: set[int] = set()
        """Entries that are in the journal no more, as its readers are told. The next write takes them out of it."""
        keeper.keep(self._id, self._epoch, self._lose, self._release_left)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    @property
    def held(self) -> bool:
        """True if the session is this process's still, as far as it knows."""
        return not (self._lost or self._released)

    @property
    def epoch(self) -> int:
        """Number of times that the session has been taken, this time included."""
        return self._epoch

    @property
    def is_here(self) -> bool:
        """True if the session is this process's to release, and not of the one that this was forked from."""
        return self.held and self._holder.pid == os.getpid()

    def watch(self, is_left: Callable[[], bool]) -> None:
        """Have the session free once `is_left` says that nobody is left who could release it. It takes no lock."""
        lease.watch(self._holder, is_left)

    def leave(self) -> None:
        """Let others of this process take the session before it is released. Takes no lock."""
        lease.forget(self._holder)

    def leave_soon(self) -> None:
        """Have others of this process who want the session wait until its last commits are written."""
        lease.drop(self._holder)

    # --- the journal ---

    def append(self, entry: Mapping[str, JSON]) -> int:
        """Note what happens next; its number. It survives the death of any process, and is durable after `flush`.

        With a server a round trip to that and its disk. StoreError: it is not in the journal, and will not be.
        """
        self._take_out()
        sql, fresh, line = self._insertion(entry)
        try:
            written = self._database.once(sql, fresh, line, self._id, self._epoch)
        except Uncertain:
            try:
                there = "SELECT 1 FROM journal WHERE session_id = ? AND number = ? AND entry = ?"
                written = len(self._database.select(there, self._id, fresh, line))
                written = written or self._database.once(sql, fresh, line, self._id, self._epoch)
            except StoreError:
                self._withdrawn.add(fresh)
                raise
        return self._appended(fresh, written)

    def append_at_once(self, entry: Mapping[str, JSON]) -> int | None:
        """The same, for an event loop: None, and nothing is noted, where anything has to be waited for. About 30 µs."""
        if self._withdrawn:
            return None
        sql, fresh, line = self._insertion(entry)
        written = self._database.at_once(sql, fresh, line, self._id, self._epoch)
        return None if written is None else self._appended(fresh, written)

    def withdraw(self, entries: Iterable[int]) -> None:
        """Have the journal hold some entries no more: at once, or with the next write where the store fails."""
        self._withdrawn.update(entries)
        with suppress(StoreError, SessionClosed):
            self._take_out()

    def readable(self) -> tuple[list[Entry], list[int]]:
        """Entries of the journal, in order, without those that are damaged; and the numbers of these."""
        entries, damaged = super().readable()
        here = [entry for entry in entries if entry.number not in self._withdrawn]
        return here, [entry for entry in damaged if entry not in self._withdrawn]

    def flush(self) -> None:
        """Return when everything that was written outlives a loss of power."""
        self._database.sync()

    # --- commits ---

    def batch(self) -> Batch:
        """A batch for the next commit."""
        return Batch(self._objects, self._cache.get, self._publish)

    def adopt(self, name: str) -> Head:
        """Have the commits of another session of the same user be known in this one too; where that one stands."""
        other = self._catalogue.find(self.user, name)
        head = StoredSession(self._database, self._objects, self.user, name, other).head()
        with self._writing() as transaction:
            transaction.run(_ADOPT, self._id, other.session_id, self._id)
        return head

    # --- names ---

    def branch(self, name: str, at: str = "HEAD") -> None:
        """Make a branch. StoreError: there is one of that name, or a tag."""
        self._new_ref(BRANCH, name, at)

    def tag(self, name: str, at: str = "HEAD") -> None:
        """Give a commit a name that stays. StoreError: there is a tag of that name, or a branch."""
        self._new_ref(TAG, name, at)

    def point(self, branch: str, at: str) -> None:
        """Have a branch lead to another commit; what it led to stays in the session, by its id."""
        commit, there = self.resolve(at), ", ".join(self.branches())
        with self._writing() as transaction:
            sql = "UPDATE refs SET address = ? WHERE session_id = ? AND kind = ? AND name = ?"
            if not transaction.run(sql, digest(commit.id), self._id, BRANCH, checked_ref(branch, BRANCH)):
                raise UnknownCommit(f"no branch {branch!r}", hint=f"there is {there}")
        self._database.sync()

    def drop(self, kind: str, name: str) -> None:
        """Take away a branch that the session does not stand on, or a tag; the commits stay."""
        if kind == BRANCH and self.head().branch == name:
            raise StoreError(f"branch {name!r} is the one that the session is on", hint="check out another first")
        with self._writing() as transaction:
            sql = "DELETE FROM refs WHERE session_id = ? AND kind = ? AND name = ?"
            if not transaction.run(sql, self._id, kind, checked_ref(name, kind)):
                raise UnknownCommit(f"no {kind} {name!r}")
        self._database.sync()

    def move(self, to: str, *, entries: Iterable[int] = ()) -> Head:
        """Stand on a branch, or on the commit that `to` leads to; where the session stands then.

        `entries`: numbers of the journal entries that are let go with it.
        """
        branches = self.branches()
        commit = None if to in branches else self.resolve(to).id
        with self._writing() as transaction:
            sql = "UPDATE sessions SET head_branch = ?, head_commit = ? WHERE id = ?"
            transaction.run(sql, to if commit is None else None, commit and digest(commit), self._id)
            self._trim(transaction, tuple(entries))
        self._database.sync()
        return Head(to, branches[to]) if commit is None else Head(None, commit)

    def trim(self, entries: Iterable[int]) -> None:
        """Let go of journal entries, by their numbers."""
        if entries := tuple(entries):
            with self._writing() as transaction:
                self._trim(transaction, entries)

    def configure(self, settings: Mapping[str, JSON]) -> None:
        """Change some of the session's settings; the others stay, whoever changes them meanwhile."""
        with self._configuring:
            changed = {**self.settings, **settings}
            with self._writing() as transaction:
                transaction.run("UPDATE sessions SET settings = ? WHERE id = ?", canonical(changed).decode(), self._id)
            self._settings = changed

    def go_on_with(self, settings: Mapping[str, JSON]) -> None:
        """Have these settings, as those in the store are damaged. The next `configure` writes them, too."""
        self._settings = settings

    def release(self) -> None:
        """Hold the session no more. A second call does nothing."""
        if not self._released:
            try:
                with suppress(LeaseLost):
                    self._take_out()
            finally:
                self.abandon()
            self._catalogue.release(self._id, self._epoch)

    def abandon(self) -> None:
        """Write nothing more, and leave the lease to run out: for a holder that cannot reach the store."""
        self._released = True
        self._keeper.let_go(self._id, self._epoch)
        lease.forget(self._holder)

    # --- inside ---

    def _release_left(self) -> bool:
        """Release a session that nobody is left to release; True then."""
        if is_left := lease.is_gone(self._holder):
            self.release()
        return is_left

    def _insertion(self, entry: Mapping[str, JSON]) -> tuple[str, int, str]:
        """The statement that notes an entry while the session is held; its number, and its line."""
        self._check_held()
        with self._lock:
            fresh = self._newest = self._newest + 1  # used up, whether it is written or not
        line = summed(entry, self._id, fresh)
        lock = self._database.dialect.for_share
        return f"{_APPEND}{lock}", fresh, line

    def _appended(self, number: int, written: int) -> int:
        """The number of an entry that was written, if it was."""
        if not written:
            self._check_held()
            raise self._taken()
        return number

    def _publish(
        self, batch: Batch, draft: Commit, parents: tuple[str, ...] | None, entries: tuple[int, ...]
    ) -> Commit:
        """Make the commit of a batch, once its objects are stored."""
        head = self.head()
        if parents is None:
            parents = () if head.commit is None else (head.commit,)
        depth = 1 + max((self._load(one).depth for one in parents), default=0)
        unnamed = replace(draft, parents=parents, depth=depth, created=time.time_ns() // 1_000_000)
        record = commit_record(unnamed)
        commit = read_commit(batch.record(record), parsed(canonical(record)))
        batch.flush()
        try:
            self._link(commit, head, entries, batch)
        except Uncertain:
            sql = "SELECT 1 FROM commits WHERE session_id = ? AND address = ?"
            if not self._database.select(sql, self._id, digest(commit.id)):
                raise
        self._database.sync()
        return commit

    def _link(self, commit: Commit, head: Head, entries: tuple[int, ...], batch: Batch) -> None:
        address = digest(commit.id)
        with self._writing() as transaction:
            for parent in commit.parents:
                sql = "SELECT 1 FROM commits WHERE session_id = ? AND address = ?"
                if not transaction.rows(sql, self._id, digest(parent)):
                    raise UnknownCommit(f"the parent {shown(parent)} is not a commit of session {self.name!r}")
            self._check_head(transaction, head)
            batch.acquit(transaction)
            sql = "INSERT INTO commits VALUES (?, ?, ?) ON CONFLICT (session_id, address) DO NOTHING"
            transaction.run(sql, self._id, address, commit.depth)
            if head.branch is None:
                transaction.run("UPDATE sessions SET head_commit = ? WHERE id = ?", address, self._id)
            else:
                transaction.run(_SET_REF, self._id, BRANCH, head.branch, address)
            transaction.run("UPDATE sessions SET used = ? WHERE id = ?", commit.created, self._id)
            self._trim(transaction, entries)

    def _check_head(self, transaction: Transaction, head: Head) -> None:
        """The head may have been moved by another thread since the commit's parents were taken from it."""
        row = only(transaction.rows("SELECT head_branch, head_commit FROM sessions WHERE id = ?", self._id))
        tip = row[1]
        if row[0] is not None:
            sql = "SELECT address FROM refs WHERE session_id = ? AND kind = ? AND name = ?"
            found = transaction.rows(sql, self._id, BRANCH, row[0])
            tip = found[0][0] if found else None
        if row[0] != head.branch or tip != (head.commit and digest(head.commit)):
            raise StoreError(f"session {self.name!r} was moved while a commit was made", hint="make the commit again")

    def _new_ref(self, kind: str, name: str, at: str) -> None:
        name, commit = checked_ref(name, kind), self.resolve(at).id
        with self._writing() as transaction:
            for found in transaction.rows("SELECT kind FROM refs WHERE session_id = ? AND name = ?", self._id, name):
                raise StoreError(f"there is a {text(found[0])} {name!r} already", hint="choose another name")
            transaction.run(_SET_REF, self._id, kind, name, digest(commit))
        self._database.sync()

    def _trim(self, transaction: Transaction, entries: tuple[int, ...]) -> None:
        if not entries:
            return
        newest = max(entries)
        if newest > self._newest:
            raise StoreError(f"the journal has {self._newest} entries, not {newest}")
        for some in in_parts(entries, _ENTRIES_AT_ONCE):
            sql = placed("DELETE FROM journal WHERE session_id = ? AND number IN (??)", some)
            transaction.run(sql, self._id, *some)
        sql = "UPDATE sessions SET trimmed = ? WHERE id = ? AND trimmed < ?"
        transaction.run(sql, newest, self._id, newest)

    @contextmanager
    def _writing(self) -> Iterator[Transaction]:
        """A transaction that begins with a look at who holds the session, and is refused to everybody else."""
        self._check_held()
        with self._database.writing() as transaction:
            lock = self._database.dialect.for_update
            if transaction.rows(f"SELECT epoch FROM sessions WHERE id = ?{lock}", self._id) != [(self._epoch,)]:
                raise self._taken()
            withdrawn = tuple(self._withdrawn)
            self._trim(transaction, withdrawn)
            yield transaction
        self._withdrawn.difference_update(withdrawn)

    def _take_out(self) -> None:
        """Write that entries are withdrawn, if any are."""
        if self._withdrawn:
            with self._writing():
                pass

    def _check_held(self) -> None:
        if self._released:
            raise SessionClosed(f"session {self.name!r} was closed", hint="open it again")
        if self._lost:
            raise self._taken()

    def _lose(self) -> None:
        self._lost = True

    def _taken(self) -> LeaseLost:
        self._lost = True
        return LeaseLost(
            f"session {self.name!r} of {self.user!r} is no longer this process's: another host has taken it over,"
            " or it was deleted",
            hint="open it again; unless it was deleted, what was acknowledged is there",
        )


_APPEND = "INSERT INTO journal SELECT id, ?, ? FROM sessions WHERE id = ? AND epoch = ? AND holder IS NOT NULL"
_SET_REF = (
    "INSERT INTO refs VALUES (?, ?, ?, ?) ON CONFLICT (session_id, kind, name) DO UPDATE SET address = excluded.address"
)
_ADOPT = (
    "INSERT INTO commits SELECT CAST(? AS BIGINT), address, depth FROM commits c WHERE session_id = ? AND NOT EXISTS"
    " (SELECT 1 FROM commits o WHERE o.session_id = ? AND o.address = c.address)"
)
