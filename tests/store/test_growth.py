"""What grows with what (F18): work and bytes of a step follow what it changes, not how much there was before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

import pytest

from cellblock.store import HeldSession, Quota, Store, blobs
from cellblock.store.database import Row, Transaction, Value
from cellblock.store.sqlite import SqliteDatabase


class Counting(SqliteDatabase):
    """Counts statements, and the bytes of what they give and take."""

    statements = 0
    moved = 0

    def select(self, sql: str, *parameters: Value) -> list[Row]:
        rows = super().select(sql, *parameters)
        self._count(rows)
        return rows

    def once(self, sql: str, *parameters: Value) -> int:
        self._count([parameters])
        return super().once(sql, *parameters)

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        with super().writing() as transaction:
            yield _Counted(self, transaction)

    def _count(self, rows: list[tuple[Value, ...]]) -> None:
        self.statements += 1
        self.moved += sum(len(value) if isinstance(value, bytes | str) else 8 for row in rows for value in row)

    def told(self) -> tuple[int, int]:
        """Statements and bytes since the last time."""
        out = (self.statements, self.moved)
        self.statements = self.moved = 0
        return out


class _Counted:
    def __init__(self, counting: Counting, transaction: Transaction) -> None:
        self._counting = counting
        self._transaction = transaction

    def rows(self, sql: str, *parameters: Value) -> list[Row]:
        rows = self._transaction.rows(sql, *parameters)
        self._counting._count(rows)
        return rows

    def run(self, sql: str, *parameters: Value) -> int:
        self._counting._count([parameters])
        return self._transaction.run(sql, *parameters)

    def many(self, sql: str, rows: list[tuple[Value, ...]]) -> None:
        self._counting._count(rows)
        self._transaction.many(sql, rows)


@pytest.fixture
def database() -> Iterator[Counting]:
    database = Counting(None)
    yield database
    database.close()


@pytest.fixture
def store(database: Counting) -> Store:
    return Store(database, quota=Quota(sessions=10_000, bytes=1 << 34))


def fresh(store: Store, held: HeldSession) -> HeldSession:
    """The session as a new process meets it, with nothing read before."""
    held.release()
    return store.hold(held.user, held.name)


def cells(held: HeldSession, many: int) -> None:
    """Commits that change one of some names each."""
    root = None if held.head().commit is None else held.resolve("HEAD").trees["names"]
    for number in range(many):
        held.append({"cell": number})
        with held.batch() as batch:
            root = batch.tree(root, {f"n{number % 50}": {"at": number, "of": many}})
            batch.commit(kind="cell", number=number, trees={"names": root}, entries=[held._newest])


@pytest.mark.sampled(0)
def test_opening_log_diff_and_commit_do_not_grow_with_history(store: Store, database: Counting) -> None:
    costs = []
    for name, many in (("short", 60), ("long", 600)):
        held = store.hold("ana", name)
        cells(held, many)
        held = fresh(store, held)
        database.told()
        held = fresh(store, held)
        held.head()
        held.journal()
        cost = [database.told()]
        list(islice(held.log(), 20))
        cost.append(database.told())
        old, new = (held.tree(held.resolve(spec).trees["names"]) for spec in ("HEAD~1", "HEAD"))
        assert len(list(new.diff(old))) == 1
        cost.append(database.told())
        held.resolve(str(held.head().commit)[7:20])
        cost.append(database.told())
        cells(held, 1)
        cost.append(database.told())
        costs.append(cost)
        held.release()
    for (statements, moved), (statements_long, moved_long) in zip(*costs, strict=True):
        assert statements_long == statements
        assert moved_long < 1.2 * moved + 200


@pytest.mark.sampled(0)
def test_commit_follows_what_changed_not_how_many_names_there_are(store: Store, database: Counting) -> None:
    costs = []
    for many in (1_000, 10_000):
        held = store.hold("ana", f"names {many}")
        with held.batch() as batch:
            root = batch.tree(None, {f"name {n}": {"group": f"g{n}", "size": n} for n in range(many)})
            batch.commit(kind="cell", trees={"names": root})
        held = fresh(store, held)
        database.told()
        before = store.usage("ana").bytes
        with held.batch() as batch:
            root = batch.tree(root, {"name 7": {"group": "other", "size": 1}})
            batch.commit(kind="cell", trees={"names": root})
        costs.append((*database.told(), store.usage("ana").bytes - before))
    (statements, moved, stored), (statements_more, moved_more, stored_more) = costs
    assert statements_more <= statements + 3  # one node more on the way
    assert moved_more < 3 * moved
    assert stored_more < 3 * stored
    assert stored_more < 10_000


def test_integer_that_changes_a_hundred_times_beside_large_state_costs_the_integer(store: Store) -> None:
    held = store.hold("ana", "large")
    with held.batch() as batch:
        big = [batch.put(bytes([n % 256]) * 4096 + n.to_bytes(8, "big")) for n in range(1024)]
        groups = batch.tree(None, {"big": {"chunks": blobs(*big)}, "k": {"chunks": blobs(batch.put(b"0"))}})
        batch.commit(kind="cell", trees={"groups": groups})
    before = store.usage("ana")
    for number in range(100):
        with held.batch() as batch:
            small = {"chunks": blobs(batch.put(b"%d" % number))}
            groups = batch.tree(groups, {"k": small})
            batch.commit(kind="cell", number=number, trees={"groups": groups})
    after = store.usage("ana")
    assert after.objects - before.objects <= 300  # the integer, a node, a commit
    assert (after.bytes - before.bytes) / 100 < 1500


@pytest.mark.sampled(0)
def test_listing_sessions_reads_a_page(store: Store, database: Counting) -> None:
    for n in range(300):
        with store.hold("ana", f"s{n:03}") as held:
            held.append({"n": n})
    database.told()
    page = store.sessions("ana", limit=20)
    statements, moved = database.told()
    assert (len(page), statements) == (20, 1)
    page = store.sessions("ana", after=store.sessions("ana", limit=250)[-1], limit=20)
    assert [row.name for row in page] == [f"s{n}" for n in range(250, 270)]
    assert moved < 20 * 600


@pytest.mark.sampled(0)
def test_one_step_of_a_session_does_not_touch_others(store: Store, database: Counting) -> None:
    costs = []
    for n in (0, 200):
        for other in range(n):
            with store.hold("ana", f"other{n} {other}") as held:
                cells(held, 2)
        held = store.hold("ana", f"mine {n}")
        cells(held, 3)
        database.told()
        cells(held, 1)
        costs.append(database.told())
        held.release()
    assert costs[0][0] == costs[1][0]
    assert costs[1][1] < 1.2 * costs[0][1] + 200


class Slicing(SqliteDatabase):
    """Notes how many rows each transaction inserts."""

    def __init__(self) -> None:
        super().__init__(None)
        self.inserted: list[int] = []

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        with super().writing() as transaction:
            counted = _Slice(transaction)
            yield counted
        self.inserted.append(counted.rows_inserted)


class _Slice:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self.rows, self.run, self.rows_inserted = transaction.rows, transaction.run, 0

    def many(self, sql: str, rows: list[tuple[Value, ...]]) -> None:
        self.rows_inserted += len(rows)
        self._transaction.many(sql, rows)


def test_many_small_objects_are_stored_some_at_a_time_and_others_write_between() -> None:
    with Store(database := Slicing()) as store, store.hold("ana", "many") as held:
        with held.batch() as batch:
            for number in range(20_000):
                batch.put(number.to_bytes(4, "big"))
            batch.flush()
        assert store.usage("ana").objects == sum(database.inserted) == 20_000
        assert max(database.inserted) < 4_000


def test_commit_takes_no_longer_for_what_nothing_leads_to(store: Store, database: Counting) -> None:
    held = store.hold("ana", "many")
    with held.batch() as batch:
        for number in range(20_000):
            batch.put(number.to_bytes(4, "big"))
        batch.flush()
        root = batch.tree(None, {"x": 1})
        database.told()
        batch.commit(kind="cell", trees={"names": root})
    assert database.told()[0] < 20
