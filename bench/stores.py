"""The store by itself: noting a cell, a durable commit, reading, and what they cost beside many names and sessions.

References are the least that the same could cost on this disk: one INSERT, one `fsync`, one hash.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from bench.sampling import Measure, Plan, Ratio, Reported, Samples, interleaved, timed
from cellblock.store import HeldSession, Store, open_store

_MEGABYTE = 2**20


@contextmanager
def _store() -> Iterator[tuple[Store, str]]:
    with tempfile.TemporaryDirectory() as directory, open_store(f"sqlite:///{directory}/cells.db") as store:
        yield store, directory


class _Names:
    """A session with so many names, of which each commit changes one."""

    def __init__(self, store: Store, many: int) -> None:
        self.held: HeldSession = store.hold("ana", f"{many} names")
        self._numbers = count()
        with self.held.batch() as batch:
            self._root = batch.tree(None, {f"name {n}": {"group": f"g{n}", "size": n} for n in range(many)})
            batch.commit(kind="cell", trees={"names": self._root})

    def commit(self) -> None:
        number = next(self._numbers)
        with self.held.batch() as batch:
            self._root = batch.tree(self._root, {"name 7": {"group": "g7", "size": -number - 1}})
            batch.commit(kind="cell", number=number, trees={"names": self._root})


def _append(plan: Plan) -> Samples:
    entry = {"begun": "c12", "source": "total = sum(row.price for row in rows)\ntotal"}
    with _store() as (store, directory), store.hold("ana", "q3") as held:
        bare = sqlite3.connect(f"{directory}/bare.db", isolation_level=None)
        bare.execute("PRAGMA journal_mode = WAL").fetchone()
        bare.execute("PRAGMA synchronous = NORMAL")
        bare.execute("CREATE TABLE journal (number INTEGER PRIMARY KEY, entry TEXT)")
        try:
            return interleaved(
                plan.rounds,
                lambda: timed(lambda: held.append(entry)),
                lambda: timed(lambda: bare.execute("INSERT INTO journal VALUES (NULL, ?)", (str(entry),))),
            )
        finally:
            bare.close()


def _commit(plan: Plan) -> Samples:
    with _store() as (store, directory):
        names = _Names(store, 10_000)
        descriptor = os.open(f"{directory}/bare", os.O_RDWR | os.O_CREAT)

        def written() -> None:
            os.write(descriptor, os.urandom(2048))
            os.fsync(descriptor)

        try:
            return interleaved(plan.rounds, lambda: timed(names.commit), lambda: timed(written))
        finally:
            os.close(descriptor)
            names.held.release()


def _beside_fewer(plan: Plan) -> Samples:
    with _store() as (store, _):
        many, few = _Names(store, 10_000), _Names(store, 1_000)
        try:
            return interleaved(plan.rounds, lambda: timed(many.commit), lambda: timed(few.commit))
        finally:
            many.held.release()
            few.held.release()


def _read(plan: Plan) -> Samples:
    data = [os.urandom(_MEGABYTE) for _ in range(100)]
    with _store() as (store, _), store.hold("ana", "q3") as held:
        with held.batch() as batch:
            addresses = [batch.put(one) for one in data]
            batch.flush()

        def read() -> None:
            for _ in held.get_many(addresses):
                pass

        def hashed() -> None:
            for one in data:
                hashlib.sha256(one).digest()

        return interleaved(plan.rounds, lambda: timed(read), lambda: timed(hashed), warm=1)


def _put(plan: Plan) -> Samples:
    numbers = count()
    with _store() as (store, _), store.hold("ana", "q3") as held:
        data = [os.urandom(_MEGABYTE) for _ in range(10)]

        def put() -> None:
            stamp = next(numbers).to_bytes(8, "big")
            with held.batch() as batch:
                for one in data:
                    batch.put(one + stamp)
                batch.commit(kind="cell", trees={})

        def hashed() -> None:
            for one in data:
                hashlib.sha256(one).digest()

        return interleaved(plan.rounds, lambda: timed(put), lambda: timed(hashed), warm=1)


def _hold(plan: Plan) -> Samples:
    """Open and release a session of a user with a thousand, and of one with a hundred."""
    with _store() as (store, _):
        for user, many in (("many", 1000), ("few", 100)):
            for number in range(many):
                store.hold(user, f"session {number}").release()
        return interleaved(
            plan.rounds,
            lambda: timed(lambda: store.hold("many", "session 7").release()),
            lambda: timed(lambda: store.hold("few", "session 7").release()),
        )


MEASURES = tuple(
    Measure(id=f"store/{name}", what=what, reference=reference, goal=goal, rounds=rounds, take=take)
    for name, what, reference, goal, rounds, take in (
        ("append", "noting a cell in the journal", "one INSERT", Reported(), 500, _append),
        ("commit", "a durable commit of one name among 10,000", "writing and syncing 2 KB", Reported(), 60, _commit),
        ("names", "a durable commit of one name among 10,000", "of one among 1,000", Ratio(1.5), 60, _beside_fewer),
        ("read", "reading 100 MB", "hashing it", Reported(), 5, _read),
        ("put", "a durable commit of 10 MB that does not compress", "hashing it", Reported(), 10, _put),
        ("hold", "taking and releasing one of 1,000 sessions", "of 100", Ratio(1.5), 60, _hold),
    )
)
