"""Verification: every object hashed again, every reference followed, and for what is damaged, what that costs."""

from __future__ import annotations

from collections.abc import Iterator

from cellblock.errors import StoreDamaged
from cellblock.store.address import CHANGED
from cellblock.store.catalogue import damaged_columns
from cellblock.store.database import Database, Value, number, text
from cellblock.store.objects import ObjectTable
from cellblock.store.reaching import session_roots, walk
from cellblock.store.words import Damage, VerifyReport


class UserVerification:
    """The objects and sessions of one user, looked at once."""

    def __init__(self, database: Database, objects: ObjectTable, user_id: int, user: str) -> None:
        self._database = database
        self._objects = objects
        self._user_id = user_id
        self._user = user
        self._whole: set[str] = set()
        self._broken: dict[str, str] = {}
        self._bytes = 0

    def report(self) -> VerifyReport:
        """Read all there is; takes as long as that."""
        self._hash()
        sessions = self._sessions()
        damage = tuple(one for session in sessions for one in self._damage(*session))
        commits = sum(self._commits(session_id) for session_id, *_ in sessions)
        return VerifyReport(
            objects=len(self._whole) + len(self._broken),
            bytes=self._bytes,
            sessions=len(sessions),
            commits=commits,
            unreferenced=len(self._broken.keys() - {one.address for one in damage}),
            damage=damage,
        )

    def _hash(self) -> None:
        def addresses() -> Iterator[str]:
            for address, stored in self._objects.listed():
                self._bytes += stored
                yield address

        for address, data in self._objects.get_many(addresses()):
            if isinstance(data, StoreDamaged):
                self._broken[address] = "its body is missing" if "missing" in str(data) else "its bytes are others"
            else:
                self._whole.add(address)

    def _damage(self, session_id: int, name: str, settings: Value, holder: Value) -> Iterator[Damage]:
        unread: list[int] = []
        ways = [*session_roots(self._database, session_id, unread)]
        rows = [f"entry {entry} of the journal" for entry in unread]
        for path in (*rows, *damaged_columns(settings, holder)):
            yield Damage(user=self._user, session=name, commit="", path=path, address="", problem=f"it {CHANGED}")
        for way, damage in walk(self._objects, ways, set()):
            address = way.link.address
            if damage is None and address in self._whole:
                continue
            problem = self._broken.get(address, "it is missing")
            yield Damage(
                user=self._user, session=name, commit=way.commit, path=way.path, address=address, problem=problem
            )

    def _sessions(self) -> list[tuple[int, str, Value, Value]]:
        sql = "SELECT id, name, settings, holder FROM sessions WHERE user_id = ? ORDER BY name"
        return [(number(row[0]), text(row[1]), row[2], row[3]) for row in self._database.select(sql, self._user_id)]

    def _commits(self, session_id: int) -> int:
        return number(self._database.select("SELECT count(*) FROM commits WHERE session_id = ?", session_id)[0][0])


def first_referrer(database: Database, objects: ObjectTable, session_id: int, address: str) -> str:
    """Description of the newest thing in a session that leads to an object; "" if nothing."""
    for way, _ in walk(objects, session_roots(database, session_id, []), set()):
        if way.link.address == address:
            return str(way)
    return ""
