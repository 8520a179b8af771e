"""Garbage collection: what nothing leads to is condemned, and deleted by a later collection that finds it so still.

In between lies an hour at least, and a batch is committed within half an hour of its first put. So what was condemned
less than half an hour ago is there for a batch, whose commit acquits all that it put or leads to; what was condemned
before counts as not there, and who needs it puts it again, which acquits it. A commit that a collection did not see,
as it was made meanwhile, is seen by its second look. So nobody has to stop for a collection, and no commit is refused.
"""

from __future__ import annotations

from collections.abc import Iterable

from cellblock.errors import SessionHeld, StoreDamaged
from cellblock.store import lease
from cellblock.store.address import digest
from cellblock.store.database import Database, Transaction, Value, blob, number, placed, text
from cellblock.store.objects import GRACE, ObjectTable, in_parts
from cellblock.store.places import Place
from cellblock.store.reaching import Way, session_roots, walk
from cellblock.store.words import Swept

_AT_ONCE = 400


class UserCollection:
    """One collection among one user's objects."""

    def __init__(
        self, database: Database, objects: ObjectTable, place: Place | None, user_id: int, user: str, grace: float
    ) -> None:
        self._database = database
        self._objects = objects
        self._place = place
        self._user_id = user_id
        self._user = user
        self._grace = grace

    def sweep(self) -> Swept:
        """Mark, acquit, condemn, delete. StoreDamaged: a record cannot be read, so what it leads to is not known."""
        listed = [address for address, _ in self._objects.listed()]  # before the look, which sees who needs these
        live = self._marked()
        garbage = [address for address in listed if address not in live]
        self._acquit(live)
        if condemned := self._condemn(garbage):
            condemned -= self._acquit(self._marked())
        deleted, freed = self._delete(garbage)
        return Swept(kept=len(live), condemned=condemned, deleted=deleted, bytes=freed, strays=self._delete_strays())

    def _marked(self) -> set[str]:
        live: set[str] = set()
        rows = self._database.select("SELECT id FROM sessions WHERE user_id = ?", self._user_id)
        roots: list[Way] = [way for row in rows for way in session_roots(self._database, number(row[0]))]
        for way, damage in walk(self._objects, roots, set()):
            if damage is not None:
                raise StoreDamaged(
                    f"nothing of user {self._user!r} is collected: {damage.args[0]}, and what it leads to is not known",
                    hint="cellblock sessions verify lists what is lost; delete those sessions first",
                    address=damage.address,
                )
            live.add(way.link.address)
        return live

    def _acquit(self, live: Iterable[str]) -> int:
        sql = "SELECT address FROM objects WHERE user_id = ? AND condemned IS NOT NULL"
        condemned = {blob(row[0]) for row in self._database.select(sql, self._user_id)}
        return self._objects.acquit(self._database.once, (one for one in live if digest(one) in condemned))

    def _condemn(self, garbage: Iterable[str]) -> int:
        now, total = self._database.now(), 0
        sql = "UPDATE objects SET condemned = ? WHERE user_id = ? AND condemned IS NULL AND address IN (??)"
        for some in in_parts(garbage, _AT_ONCE):
            total += self._database.once(placed(sql, some), now, self._user_id, *map(digest, some))
        return total

    def _delete(self, garbage: Iterable[str]) -> tuple[int, int]:
        """Delete what has been condemned for long enough: how many, and the bytes they took."""
        now = self._database.now()
        deleted, freed = 0, 0
        for some in in_parts(garbage, _AT_ONCE):
            with self._database.writing() as transaction:
                rows = self._delete_rows(transaction, some, now)
            deleted, freed = deleted + len(rows), freed + sum(size for size, _ in rows)
            for _, key in rows:
                if key and self._place is not None:
                    self._place.delete(key)
        return deleted, freed

    def _delete_rows(self, transaction: Transaction, some: list[str], now: float) -> list[tuple[int, str]]:
        lock = self._database.dialect.for_update
        transaction.rows(f"SELECT id FROM users WHERE id = ?{lock}", self._user_id)
        if self._grace < GRACE:
            self._refuse_beside_others(transaction, now)
        where = placed(" FROM objects WHERE user_id = ? AND condemned <= ? AND address IN (??)", some)
        parameters: list[Value] = [self._user_id, now - self._grace, *map(digest, some)]
        rows = [
            (number(size), text(key)) for size, key in transaction.rows(f"SELECT stored, place{where}", *parameters)
        ]
        transaction.run(f"DELETE{where}", *parameters)
        sql = "UPDATE users SET objects = objects - ?, bytes = bytes - ? WHERE id = ?"
        transaction.run(sql, len(rows), sum(size for size, _ in rows), self._user_id)
        return rows

    def _refuse_beside_others(self, transaction: Transaction, now: float) -> None:
        """SessionHeld: somebody may be making a commit of what a grace this short does not keep for them."""
        sql = "SELECT name, holder FROM sessions WHERE user_id = ? AND holder IS NOT NULL AND until > ?"
        for name, text_ in transaction.rows(sql, self._user_id, now):
            holder = lease.from_text(text(text_))
            if not lease.is_gone(holder):
                raise SessionHeld(
                    f"session {name!r} of {self._user!r} is open in {holder}",
                    hint=f"close it first, or leave a grace of {GRACE:.0f} s",
                    holder=str(holder),
                )

    def _delete_strays(self) -> int:
        """Delete bodies outside that no object has: of writers that died, or put what another had just put."""
        if self._place is None:
            return 0
        old = (one.key for one in self._place.listed(self._objects.prefix) if one.age > GRACE)
        total = 0
        for some in in_parts(old, _AT_ONCE):
            sql = placed("SELECT place FROM objects WHERE user_id = ? AND place IN (??)", some)
            wanted = {text(row[0]) for row in self._database.select(sql, self._user_id, *some)}
            for key in some:
                if key not in wanted:
                    self._place.delete(key)
                    total += 1
        return total
