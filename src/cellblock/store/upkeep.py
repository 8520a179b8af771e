"""Verification and garbage collection: every object that a session's commits and journal lead to, and all others.

A collection condemns what nothing leads to, and a later one deletes it if it still finds it so. In between lies an
hour at least, and a batch is committed within half an hour of its first put. So what was condemned less than half an
hour ago is there for a batch, whose commit acquits all that it put or leads to; what was condemned before counts as not
there, and who needs it puts it again, which acquits it. A commit that a collection did not see, as it was made
meanwhile, is seen by its second look. So nobody has to stop for a collection, and no commit is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cellblock.errors import SessionHeld, StoreDamaged
from cellblock.store import lease
from cellblock.store.address import CHANGED, JSON, Link, digest, links, parsed, spelled
from cellblock.store.catalogue import damaged_columns
from cellblock.store.database import Database, Transaction, Value, blob, number, placed, text
from cellblock.store.history import damaged_entry, entries_of, shown
from cellblock.store.objects import GRACE, ObjectTable, by_size, in_parts
from cellblock.store.places import Place
from cellblock.store.words import Damage, Swept, VerifyReport

_READ_AT_ONCE, _CHANGED_AT_ONCE = 200, 400
_WRITTEN_AT_ONCE = 2**18
"""Bytes of objects that one transaction condemns: small enough for what is left on a full disk."""


def verify(database: Database, objects: ObjectTable, user_id: int, user: str) -> VerifyReport:
    """Read all objects of a user, follow every link, and tell what is damaged and what needs it."""
    sizes = dict(objects.listed())
    broken = {
        address: "its body is missing" if "missing" in str(data) else "its bytes are others"
        for address, data in objects.get_many(sizes)
        if isinstance(data, StoreDamaged)
    }

    def is_whole(address: str) -> bool:
        """A writer may have stored it since all were listed, before what leads to it."""
        return address not in broken and (address in sizes or bool(objects.known([address])))

    sql = "SELECT id, name, settings, holder FROM sessions WHERE user_id = ? ORDER BY name"
    sessions = database.select(sql, user_id)
    damage = list[Damage]()
    commits = 0
    for row in sessions:
        session_id, name = number(row[0]), text(row[1])
        unread: list[int] = []
        roots = [*session_roots(database, session_id, unread)]
        commits += sum(not root.path for root in roots)
        rows = [f"entry {entry} of the journal" for entry in unread]
        damage += (
            Damage(user=user, session=name, commit="", path=path, address="", problem=f"it {CHANGED}")
            for path in (*rows, *damaged_columns(row[2], row[3]))
        )
        damage += (
            Damage(
                user=user, session=name, commit=reference.commit, path=reference.path, address=reference.link.address,
                problem=broken.get(reference.link.address, "it is missing"),
            )
            for reference, unreadable in walk(objects, roots)
            if unreadable is not None or not is_whole(reference.link.address)
        )  # fmt: skip
    return VerifyReport(
        objects=len(sizes),
        bytes=sum(sizes.values()),
        sessions=len(sessions),
        commits=commits,
        unreferenced=len(broken.keys() - {one.address for one in damage}),
        damage=tuple(damage),
    )


class Collection:
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
        listed = list(self._objects.listed())  # before the look, which sees who needs these
        live = self._marked()
        garbage = {address: size for address, size in listed if address not in live}
        self._acquit(live)
        if condemned := self._condemn(garbage):
            condemned -= self._acquit(self._marked())
        deleted, freed = self._delete(garbage)
        return Swept(kept=len(live), condemned=condemned, deleted=deleted, bytes=freed, strays=self._delete_strays())

    def _marked(self) -> set[str]:
        live: set[str] = set()
        rows = self._database.select("SELECT id FROM sessions WHERE user_id = ?", self._user_id)
        roots = [reference for row in rows for reference in session_roots(self._database, number(row[0]))]
        for reference, damage in walk(self._objects, roots):
            if damage is not None:
                raise StoreDamaged(
                    f"nothing of user {self._user!r} is collected: {damage.args[0]}, and what it leads to is not known",
                    hint="cellblock sessions verify lists what is lost; delete those sessions first",
                    address=damage.address,
                )
            live.add(reference.link.address)
        return live

    def _acquit(self, live: Iterable[str]) -> int:
        sql = "SELECT address FROM objects WHERE user_id = ? AND condemned IS NOT NULL"
        condemned = {blob(row[0]) for row in self._database.select(sql, self._user_id)}
        return self._objects.acquit(self._database.once, (one for one in live if digest(one) in condemned))

    def _condemn(self, garbage: Mapping[str, int]) -> int:
        """Condemn objects, by their sizes: a database may write the whole of each again, on a disk that is full."""
        now, condemned = self._database.now(), 0
        sql = "UPDATE objects SET condemned = ? WHERE user_id = ? AND condemned IS NULL AND address IN (??)"
        for part in by_size(garbage.items(), _WRITTEN_AT_ONCE):
            for some in in_parts(part, _CHANGED_AT_ONCE):
                with self._database.writing() as transaction:
                    condemned += transaction.run(placed(sql, some), now, self._user_id, *map(digest, some))
        return condemned

    def _delete(self, garbage: Iterable[str]) -> tuple[int, int]:
        """Delete what has been condemned for long enough: how many, and the bytes they took."""
        now = self._database.now()
        deleted, freed = 0, 0
        for some in in_parts(garbage, _CHANGED_AT_ONCE):
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
        for some in in_parts(old, _CHANGED_AT_ONCE):
            sql = placed("SELECT place FROM objects WHERE user_id = ? AND place IN (??)", some)
            wanted = {text(row[0]) for row in self._database.select(sql, self._user_id, *some)}
            for key in some:
                if key not in wanted:
                    self._place.delete(key)
                    total += 1
        return total


# --- links ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reference:
    """One link: from which commit ("" for the journal), in what of it, to what."""

    commit: str
    path: str
    link: Link

    def __str__(self) -> str:
        start = f"commit {shown(self.commit)}" if self.commit else "the journal"
        return f"{start}, {self.path}" if self.path else start


def first_referrer(database: Database, objects: ObjectTable, session_id: int, address: str) -> str:
    """Description of the newest thing in a session that leads to an object; "" if nothing."""
    roots = session_roots(database, session_id, [])
    return next((str(reference) for reference, _ in walk(objects, roots) if reference.link.address == address), "")


def session_roots(database: Database, session_id: int, damaged: list[int] | None = None) -> Iterator[Reference]:
    """A session's commits, the deepest first, and what the entries of its journal link to.

    The numbers of entries that cannot be read are added to `damaged`. StoreError: there is one, and nothing to add to.
    """
    sql = "SELECT address FROM commits WHERE session_id = ? ORDER BY depth DESC, address"
    for row in database.select(sql, session_id):
        id = spelled(blob(row[0]))
        yield Reference(id, "", Link(id, True))
    entries, unread = entries_of(database, session_id)
    if unread and damaged is None:
        raise damaged_entry(database, session_id, unread[0])
    if damaged is not None:
        damaged += unread
    for entry in entries:
        for link in links(entry.value):
            yield Reference("", f"entry {entry.number}", link)


def walk(objects: ObjectTable, roots: Iterable[Reference]) -> Iterator[tuple[Reference, StoreDamaged | None]]:
    """Every link from the roots on; with what is wrong where a record cannot be read, from which nothing goes on.

    Each record is read once. Links to bytes are told, not followed.
    """
    waiting, seen = list(roots), set[str]()
    waiting.reverse()
    while waiting:
        some: dict[str, Reference] = {}
        while waiting and len(some) < _READ_AT_ONCE:
            reference = waiting.pop()
            if reference.link.to_record and reference.link.address not in seen:
                seen.add(reference.link.address)
                some[reference.link.address] = reference
            else:
                yield reference, None
        for address, data in objects.get_many(some):
            reference = some[address]
            if isinstance(data, StoreDamaged):
                yield reference, data
            else:
                yield reference, None
                waiting.extend(_onward(reference, parsed(data)))


def _onward(reference: Reference, record: JSON) -> Iterator[Reference]:
    """The links of a record, each with the words for what it belongs to."""
    parts: list[tuple[str, JSON]]
    if isinstance(record, Mapping) and "parents" in record and "trees" in record:
        for link in links(record["parents"]):
            yield Reference(link.address, "", link)
        named = (record["trees"], record.get("detail"))
        parts = [pair for some in named if isinstance(some, Mapping) for pair in some.items()]
    elif isinstance(record, Mapping) and "here" in record:
        parts = [
            (repr(pair[0]), pair[1])
            for pairs in (record["here"], record.get("apart"))
            for pair in (pairs if isinstance(pairs, list) else [])
            if isinstance(pair, list) and len(pair) == 2
        ]
    else:
        parts = [("", record)]
    for word, value in parts:
        for link in links(value):
            yield Reference(reference.commit, f"{reference.path} {word}".strip(), link)
