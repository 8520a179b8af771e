"""Conformance kit of stores: tests to inherit by whoever writes a `Database` or a `Place` for it.

    class TestMine(StoreConformance):
        @pytest.fixture
        def connect(self) -> Callable[[], Database]:
            return lambda: MyDatabase(...)

Each call of `connect` opens the same empty database, as another host would. No test waits for a time to pass.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice

import pytest

from cellblock.errors import (
    CellblockError,
    LeaseLost,
    QuotaReached,
    SessionBusy,
    SessionClosed,
    SessionHeld,
    StoreDamaged,
    StoreError,
    UnknownCommit,
    UnknownSession,
)
from cellblock.hosting.threads import in_thread
from cellblock.store import BRANCH, JSON, TAG, Change, Commit, HeldSession, Quota, Store, address_of, blobs, records
from cellblock.store.address import digest
from cellblock.store.database import Database
from cellblock.store.places import Place

PATIENCE = 60.0
"""Seconds after which a thread that should have ended is taken to hang."""

_LONG = 1e6
"""A lease in seconds that no test outlives, so that nothing is renewed by the clock."""

HOSTILE = ("'; DROP TABLE sessions; --", "../../etc/passwd", "%s%s%n", "?", "a" * 200, "名前", "x y", "\\x00", "NULL")
"""Names that are names."""

REFUSED = (
    "",
    "a\0b",
    "a" * 201,
    "a" * 10_000,
    "a\nb",
    "a\u202eb",
    "a\u200bb",
    " a",
    "a ",
    "\ufb01le",
    "p\u0430ypal",
    "\ud800",
)
"""Names that are refused: empty, long, unseen characters, spaces at the ends, look-alikes."""


def _random(seed: int) -> Callable[[int], bytes]:
    """Bytes that do not compress, the same each time."""
    return random.Random(seed).randbytes  # noqa: S311 - nothing is secret here


def commit(
    held: HeldSession, names: dict[str, JSON], *, message: str = "", entries: Iterable[int] = (), number: int = 0
) -> Commit:
    """A commit whose tree `names` is that of the head with some keys changed."""
    head = held.head().commit
    root = None if head is None else held.resolve(head).trees["names"]
    with held.batch() as batch:
        root = batch.tree(root, names)
        return batch.commit(kind="cell", message=message, number=number, trees={"names": root}, entries=entries)


def names(held: HeldSession, spec: str = "HEAD") -> dict[str, JSON]:
    """Contents of a commit's tree `names`."""
    return dict(held.tree(held.resolve(spec).trees["names"]).pairs())


def unheard(database: Database) -> None:
    """As if no holder of any session had been heard of for longer than its lease."""
    database.once("UPDATE sessions SET until = 0")


class StoreConformance:
    """The contract of a `Database`, by what a `Store` over it does."""

    @pytest.fixture
    def connect(self) -> Callable[[], Database]:
        """Opens the database under test."""
        raise NotImplementedError("give a fixture `connect`")

    @pytest.fixture
    def place(self) -> Place | None:
        """Place for bodies of 64 KB and more, if not in the database."""
        return None

    @pytest.fixture
    def host(self, connect: Callable[[], Database], place: Place | None) -> Iterator[Callable[..., Store]]:
        """Opens the store as one more host of it."""
        opened: list[Store] = []

        def host(*, quota: Quota | None = None) -> Store:
            quota = Quota(sessions=1000, bytes=1 << 30) if quota is None else quota
            opened.append(Store(connect(), place, shown="under test", quota=quota, lease_seconds=_LONG))
            return opened[-1]

        yield host
        for store in opened:
            store.close()

    @pytest.fixture
    def store(self, host: Callable[..., Store]) -> Store:
        """The store of one host."""
        return host()

    @pytest.fixture
    def held(self, store: Store) -> HeldSession:
        """A new session."""
        return store.hold("ana", "q3")

    # --- objects ---

    @pytest.mark.parametrize("size", [0, 1, 127, 128, 4096, 70_000, 1 << 20])
    @pytest.mark.parametrize("kind", ["random", "repeated"])
    def test_bytes_come_back_as_they_were(
        self, held: HeldSession, host: Callable[..., Store], size: int, kind: str
    ) -> None:
        data = _random(size)(size) if kind == "random" else (b"cell" * size)[:size]
        with held.batch() as batch:
            address = batch.put(memoryview(data))
            batch.commit(kind="cell", trees={}, detail={"data": blobs(address)})
        assert address == address_of(data)
        assert host().read("ana", "q3").get(address) == data

    def test_many_objects_come_in_the_order_they_were_asked_for(self, held: HeldSession) -> None:
        data = [_random(n)(700_000 if n % 3 else 10) for n in range(30)]
        with held.batch() as batch:
            addresses = [batch.put(one) for one in data]
            batch.commit(kind="cell", trees={}, detail={"all": blobs(*addresses)})
        assert list(held.get_many(addresses)) == data
        assert list(held.get_many([*addresses[::-1], addresses[0]])) == [*data[::-1], data[0]]
        assert list(held.get_many([])) == []
        with pytest.raises(StoreDamaged, match="missing"):
            list(held.get_many([addresses[0], address_of(b"nothing")]))

    def test_equal_bytes_are_stored_once_for_a_user(self, store: Store, held: HeldSession) -> None:
        other = store.hold("ana", "other")
        for session in (held, other, held):
            with session.batch() as batch:
                batch.put(b"x" * 5000)
                batch.put(b"x" * 5000)
                batch.put(b"short")
                batch.flush()
        assert store.usage("ana").objects == 2

    @pytest.mark.threat("D3")
    def test_one_users_objects_do_not_exist_for_another(self, store: Store, held: HeldSession) -> None:
        with held.batch() as batch:
            address = batch.put(b"secret" * 1000)
            batch.commit(kind="cell", trees={}, detail={"data": blobs(address)})
        eve = store.hold("eve", "q3")
        with pytest.raises(StoreDamaged, match="missing"):
            eve.get(address)
        with eve.batch() as batch:
            assert batch.known([address]) == set()
            batch.record({"mine": blobs(address)})
            with pytest.raises(StoreDamaged, match="not stored"):
                batch.flush()
        with eve.batch() as batch:
            batch.put(b"secret" * 1000)
            batch.flush()
        assert store.usage("eve").objects == 1

    def test_known_are_those_stored_and_those_in_the_batch(self, held: HeldSession) -> None:
        with held.batch() as batch:
            stored = batch.put(b"stored")
            batch.flush()
        with held.batch() as batch:
            waiting = batch.put(b"waiting")
            assert batch.known([stored, waiting, address_of(b"neither")]) == {stored, waiting}

    def test_record_that_leads_nowhere_is_not_stored(self, store: Store, held: HeldSession) -> None:
        for link in (blobs(address_of(b"nothing")), records(address_of(b"nothing"))):
            with held.batch() as batch:
                batch.record({"deep": [1, {"er": link}]})
                with pytest.raises(StoreDamaged, match="not stored"):
                    batch.commit(kind="cell", trees={})
        assert store.usage("ana").objects == 0
        assert held.head().commit is None

    def test_text_that_looks_like_a_link_is_text(self, held: HeldSession) -> None:
        fake = address_of(b"nothing")
        with held.batch() as batch:
            address = batch.record({"preview": fake, "/": 1, "more": {"/": "path", "@": fake}})
            batch.commit(kind="cell", trees={}, detail={"it": records(address)})
        assert held.record(address) == {"preview": fake, "/": 1, "more": {"/": "path", "@": fake}}

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: 2}.keys(), b"bytes", {"a": object()}])
    def test_what_is_not_json_is_no_record(self, held: HeldSession, value: JSON) -> None:
        with held.batch() as batch, pytest.raises(StoreError, match="must be JSON"):
            batch.record(value)

    # --- trees ---

    @pytest.mark.parametrize("count", [0, 1, 64, 65, 1000])
    def test_tree_holds_what_was_set(self, held: HeldSession, count: int) -> None:
        wanted: dict[str, JSON] = {f"name {n}": {"n": n} for n in range(count)}
        commit(held, wanted)
        tree = held.tree(held.resolve("HEAD").trees["names"])
        assert dict(tree.pairs()) == dict(tree.items()) == wanted
        assert len(tree) == count
        assert "name 0" in tree if count else tree.root is None
        assert "no such name" not in tree

    @pytest.mark.threat("D2")
    def test_key_that_is_spelled_as_a_link_makes_none(self, store: Store, held: HeldSession) -> None:
        nothing = address_of(b"nothing")
        for key in ("/", "@"):
            for value in (nothing, [nothing], "x" * 2000):
                commit(held, {"/": None, "@": None, key: value})
                assert names(held) == {key: value}
        assert store.verify().ok

    def test_equal_trees_have_one_root_whatever_made_them(self, held: HeldSession) -> None:
        keys = [f"n{n}" for n in range(200)]
        roots = set()
        with held.batch() as batch:
            for seed in range(5):
                order = random.Random(seed)  # noqa: S311 - nothing is secret here
                root = batch.tree(None, {f"extra{n}": {"big": "x" * 2000} for n in range(seed * 30)})
                for part in (order.sample(keys, 200)[n::7] for n in range(7)):
                    root = batch.tree(root, {key: {"v": key} for key in part})
                root = batch.tree(root, {key: {"v": key} for key in keys})
                root = batch.tree(root, {f"extra{n}": None for n in range(seed * 30)})
                roots.add(root)
        assert len(roots) == 1

    def test_diff_tells_what_came_changed_and_went(self, held: HeldSession) -> None:
        commit(held, {f"n{n}": n for n in range(1, 500)})
        commit(held, {"n7": 70, "n8": None, "new": "x" * 5000})
        old, new = (held.tree(held.resolve(spec).trees["names"]) for spec in ("HEAD~1", "HEAD"))
        assert sorted(old.diff(new), key=lambda change: change.key) == [
            Change("n7", 7, 70),
            Change("n8", 8, None),
            Change("new", None, "x" * 5000),
        ]
        assert list(new.diff(new)) == []

    def test_changed_key_stores_a_few_nodes(self, store: Store, held: HeldSession) -> None:
        commit(held, {f"n{n}": {"n": n} for n in range(5000)})
        before = store.usage("ana")
        commit(held, {"n17": {"n": "other"}})
        after = store.usage("ana")
        assert after.objects - before.objects <= 4  # a leaf, two branches and the commit
        assert after.bytes - before.bytes < 10_000

    # --- commits and names ---

    def test_commit_says_all_it_was_given_and_its_id_is_its_address(self, held: HeldSession) -> None:
        first = commit(held, {"x": 1})
        with held.batch() as batch:
            text = batch.put(b"x = 2")
            second = batch.commit(
                kind="shell", message="é\0\ud800", number=7, snapshot=False,
                trees={"names": first.trees["names"], "files": None}, detail={"cell": blobs(text), "n": [1, None, 2.5]},
            )  # fmt: skip
        assert second == held.resolve("HEAD") == held.resolve(second.id)
        assert (second.parents, second.depth, second.kind, second.number) == ((first.id,), 2, "shell", 7)
        assert (second.message, second.snapshot) == ("é\0\ud800", False)
        assert second.trees == {"names": first.trees["names"], "files": None}
        assert second.detail == {"cell": blobs(text), "n": [1, None, 2.5]}
        assert address_of(held.get(second.id)) == second.id

    def test_new_session_stands_on_main_without_a_commit(self, held: HeldSession) -> None:
        assert (held.head().branch, held.head().commit) == ("main", None)
        assert held.branches() == held.tags() == {}
        with pytest.raises(UnknownCommit, match="no commit yet"):
            held.resolve("HEAD")

    def test_names_lead_to_commits(self, held: HeldSession) -> None:
        made = [commit(held, {"x": n}, number=n) for n in range(1, 6)]
        held.tag("v1", "HEAD~3")
        held.branch("side", "v1")
        for spec, number in {
            "HEAD": 5, "main": 5, "HEAD~": 4, "HEAD~0": 5, "HEAD~3": 2, "HEAD^": 4, "HEAD^0": 5, "HEAD~1^~": 2,
            "v1": 2, "v1~1": 1, "side": 2, made[2].id: 3, made[2].id[7:19]: 3, made[2].id[:19]: 3,
        }.items():  # fmt: skip
            assert held.resolve(spec).number == number, spec
        assert held.tags() == {"v1": made[1].id}
        assert held.branches() == {"main": made[4].id, "side": made[1].id}

    @pytest.mark.parametrize(
        "spec",
        ["mian", "HEAD~5", "HEAD~999999999", "HEAD^2", "", "~", "HEAD~~x", "0" * 64, "0000", "a\0b", "x" * 10_000,
         "HEAD~" + "9" * 99, "' OR 1=1", "sha256-", "sha256-" + "0" * 64],
    )  # fmt: skip
    def test_what_leads_nowhere_is_an_unknown_commit(self, held: HeldSession, spec: str) -> None:
        for n in range(3):
            commit(held, {"x": n})
        with pytest.raises(UnknownCommit) as raised:
            held.resolve(spec)
        assert len(str(raised.value)) < 400
        if spec == "mian":
            assert raised.value.hint == "there is main"

    def test_first_digits_of_several_ids_are_told_apart(
        self, held: HeldSession, connect: Callable[[], Database]
    ) -> None:
        made = commit(held, {"x": 1})
        session_id = connect().select("SELECT id FROM sessions")[0][0]
        like = digest(made.id)[:8] + bytes(24)
        connect().once("INSERT INTO commits VALUES (?, ?, 1)", session_id, like)
        with pytest.raises(UnknownCommit, match="several") as raised:
            held.resolve(made.id[7:15])
        assert made.id[7:23] in raised.value.hint
        assert held.resolve(made.id[7:39]).id == made.id

    def test_log_goes_back_through_merges_each_commit_once(self, held: HeldSession) -> None:
        commit(held, {"x": 1}, message="1")
        held.branch("side")
        commit(held, {"x": 2}, message="2 on main")
        held.move("side")
        commit(held, {"y": 2}, message="2 on side")
        commit(held, {"y": 3}, message="3 on side")
        both = held.branches()["side"], held.branches()["main"]
        for parents, second in ((both, "side"), (both[::-1], "main")):  # of one depth: the line of first parents first
            with held.batch() as batch:
                merged = batch.commit(kind="merge", message="4", trees={}, parents=parents)
            messages = [one.message for one in held.log(merged.id)]
            assert messages[:3] == ["4", "3 on side", f"2 on {second}"]
            assert sorted(messages[3:]) == ["1", f"2 on {'main' if second == 'side' else 'side'}"]
        assert [one.message for one in islice(held.log("main"), 1)] == ["2 on main"]

    def test_common_ancestors_are_the_newest(self, held: HeldSession) -> None:
        commit(held, {"x": 0})
        fork = commit(held, {"x": 1})
        held.branch("side")
        mine = commit(held, {"x": 2})
        held.move("side")
        theirs = commit(held, {"x": 3})
        assert held.ancestors(["main"], "side") == [fork]
        assert held.ancestors(["main"], "HEAD~1") == [fork]
        assert held.ancestors([mine.id], mine.id) == [mine]
        with held.batch() as batch:
            batch.commit(kind="merge", trees={}, parents=(theirs.id, mine.id))
        assert held.ancestors(["main"], "side") == [mine]
        assert list(held.added("main", "side")) == [held.resolve("side"), theirs]
        assert list(held.added("side", "main")) == []
        held.move("main")
        with held.batch() as batch:
            batch.commit(kind="merge", trees={}, parents=(mine.id, theirs.id))
        assert {one.id for one in held.ancestors(["main"], "side")} == {mine.id, theirs.id}
        assert held.ancestors([mine.id, theirs.id], fork.id) == [fork]

    def test_sessions_of_no_common_history_have_no_common_ancestor(self, store: Store, held: HeldSession) -> None:
        mine = commit(held, {"x": 1})
        other = store.hold("ana", "other")
        theirs = commit(other, {"y": 1})
        with pytest.raises(UnknownCommit):
            held.resolve(theirs.id)
        assert held.adopt("other").commit == theirs.id
        assert held.ancestors([mine.id], theirs.id) == []
        assert names(held, theirs.id) == {"y": 1}

    def test_moving_changes_where_commits_go(self, held: HeldSession) -> None:
        first, second = commit(held, {"x": 1}), commit(held, {"x": 2})
        assert held.move("HEAD~1").commit == first.id
        assert held.head().branch is None
        alone = commit(held, {"x": 3})
        assert (held.head().commit, held.branches()) == (alone.id, {"main": second.id})
        held.branch("kept")
        assert held.move("main").commit == second.id
        commit(held, {"x": 4})
        assert names(held) == {"x": 4}
        assert names(held, "kept") == {"x": 3}
        held.point("kept", "main~1")
        assert held.resolve("kept") == second
        assert held.resolve(alone.id) == alone

    def test_names_are_taken_once_and_dropped_by_name(self, held: HeldSession) -> None:
        commit(held, {"x": 1})
        held.branch("side")
        held.tag("v1")
        for call in (
            lambda: held.branch("side"),
            lambda: held.branch("main"),
            lambda: held.branch("v1"),
            lambda: held.tag("v1"),
            lambda: held.tag("main"),
            lambda: held.drop(BRANCH, "main"),
            lambda: held.drop(BRANCH, "nothing"),
            lambda: held.drop(TAG, "side"),
            lambda: held.point("nothing", "HEAD"),
            lambda: held.move("nothing"),
        ):
            with pytest.raises((StoreError, UnknownCommit)):
                call()
        held.drop(BRANCH, "side")
        held.drop(TAG, "v1")
        assert (list(held.branches()), held.tags()) == (["main"], {})

    def test_parent_of_another_session_is_refused(self, store: Store, held: HeldSession) -> None:
        theirs = commit(store.hold("ana", "other"), {"x": 1})
        with held.batch() as batch, pytest.raises(UnknownCommit, match="is not a commit of session"):
            batch.commit(kind="cell", trees={}, parents=(theirs.id,))
        assert held.head().commit is None

    # --- the journal ---

    def test_journal_keeps_entries_in_order_until_a_commit_takes_them(self, held: HeldSession) -> None:
        values: list[JSON] = ["x = 1", "\0", "\ud800", "日本語", None, 1.5, ["deep", {"er": {}}], "x" * 100_000]
        numbers = [held.append({"value": value}) for value in values]
        assert numbers == list(range(1, 9))
        assert [(entry.number, entry.value) for entry in held.journal()] == [
            (number, {"value": value}) for number, value in zip(numbers, values, strict=True)
        ]
        commit(held, {"x": 1}, entries=[1, 2, 5])
        assert [entry.number for entry in held.journal()] == [3, 4, 6, 7, 8]
        held.trim([8, 3])
        assert [entry.number for entry in held.journal()] == [4, 6, 7]
        held.move("HEAD", entries=[7, 6, 4])
        assert held.journal() == []
        assert held.append({}) == 9

    def test_numbers_go_on_for_the_next_holder(self, host: Callable[..., Store], held: HeldSession) -> None:
        held.append({"n": 1})
        held.append({"n": 2})
        held.release()
        second = host().hold("ana", "q3")
        assert second.append({"n": 3}) == 3
        second.trim([1, 2, 3])
        second.release()
        third = host().hold("ana", "q3")
        assert third.journal() == []
        assert third.append({}) == 4

    def test_journal_cannot_be_trimmed_past_its_end(self, held: HeldSession) -> None:
        held.append({})
        with pytest.raises(StoreError, match="has 1 entries"):
            commit(held, {"x": 1}, entries=[2])
        assert held.head().commit is None
        assert len(held.journal()) == 1

    # --- who holds it ---

    def test_held_session_is_refused_to_others_who_are_told_by_whom(
        self, host: Callable[..., Store], held: HeldSession
    ) -> None:
        other = host()
        for call in (
            lambda: other.hold("ana", "q3"),
            lambda: other.delete("ana", "q3"),
            lambda: other.rename("ana", "q3", "new"),
        ):
            with pytest.raises(SessionHeld, match=r"'q3' of 'ana' is open in this process") as raised:
                call()
            assert isinstance(raised.value, SessionBusy)
            assert raised.value.holder
        row = other.sessions()[0]
        assert str(row.holder) == raised.value.holder
        held.release()
        held.release()
        with other.hold("ana", "q3"):
            assert other.sessions()[0].holder is not None
        assert other.sessions()[0].holder is None

    def test_everything_a_holder_writes_after_losing_the_session_is_refused(
        self, host: Callable[..., Store], held: HeldSession, connect: Callable[[], Database]
    ) -> None:
        commit(held, {"x": 1})
        held.branch("side")
        held.append({"n": 1})
        late = held.batch()
        root = late.tree(None, {"x": "late"})
        unheard(connect())
        second = host().hold("ana", "q3")
        before = (second.head(), second.branches(), second.tags(), second.journal(), second.settings)
        for call in (
            lambda: held.append({"n": 2}),
            lambda: late.commit(kind="cell", trees={"names": root}),
            lambda: held.branch("new"),
            lambda: held.tag("v1"),
            lambda: held.point("side", "HEAD"),
            lambda: held.drop(BRANCH, "side"),
            lambda: held.move("side"),
            lambda: held.trim([1]),
            lambda: held.configure({"a": 1}),
            lambda: held.adopt("q3"),
        ):
            with pytest.raises(LeaseLost, match="another host has taken it over"):
                call()
        assert not held.held
        held.release()
        third = host().read("ana", "q3")
        assert (third.head(), third.branches(), third.tags(), third.journal(), third.settings) == before
        assert second.held
        second.append({"n": 2})
        assert names(second) == {"x": 1}

    def test_holder_that_has_not_heard_of_its_loss_is_refused_its_first_write(
        self, host: Callable[..., Store], held: HeldSession, connect: Callable[[], Database]
    ) -> None:
        before = commit(held, {"x": 1}).id
        held.branch("side")
        numbers = [held.append({"n": 1})]
        writes: tuple[Callable[[HeldSession], object], ...] = (
            lambda held: held.append({"n": 2}),
            lambda held: commit(held, {"x": "late"}),
            lambda held: held.branch("new"),
            lambda held: held.drop(BRANCH, "side"),
            lambda held: held.move("side"),
            lambda held: held.trim(numbers),
            lambda held: held.configure({"a": 1}),
        )
        for write in writes:  # whoever takes the session is the next to lose it
            unheard(connect())
            other = host().hold("ana", "q3")
            with pytest.raises(LeaseLost, match="another host has taken it over"):
                write(held)
            held = other
        assert (held.head().commit, held.head().branch, sorted(held.branches())) == (before, "main", ["main", "side"])
        assert ([entry.number for entry in held.journal()], dict(held.settings)) == (numbers, {})

    def test_holder_that_says_so_keeps_the_session(
        self, store: Store, host: Callable[..., Store], held: HeldSession, connect: Callable[[], Database]
    ) -> None:
        unheard(connect())
        store.renew()
        with pytest.raises(SessionHeld):
            host().hold("ana", "q3")
        held.append({})

    def test_holder_that_forgot_to_release_is_not_waited_for(self, host: Callable[..., Store]) -> None:
        first = host()
        abandoned = first.hold("ana", "q3")
        abandoned.abandon()
        host().hold("ana", "q3").append({})
        with pytest.raises(SessionClosed):
            abandoned.append({})

    def test_deleted_session_takes_no_more_writes(
        self, host: Callable[..., Store], held: HeldSession, connect: Callable[[], Database]
    ) -> None:
        unheard(connect())
        host().delete("ana", "q3")
        with pytest.raises(LeaseLost):
            held.append({})
        again = host().hold("ana", "q3")
        with pytest.raises(LeaseLost):
            held.trim([1])
        with pytest.raises(UnknownSession, match="was deleted"):
            held.head()
        assert again.journal() == []

    def test_of_many_hosts_one_gets_the_session(self, host: Callable[..., Store]) -> None:
        hosts = [host() for _ in range(6)]
        start = threading.Barrier(len(hosts))
        got: list[HeldSession] = []

        def take(store: Store) -> None:
            start.wait(PATIENCE)
            try:
                got.append(store.hold("ana", "new"))
            except SessionHeld:
                return

        _together([partial(take, one) for one in hosts])
        assert len(got) == 1
        assert len(hosts[0].sessions("ana")) == 1

    def test_appends_and_commits_of_one_holder_from_many_threads_are_all_there(self, held: HeldSession) -> None:
        def append() -> None:
            for n in range(50):
                held.append({"n": n})

        def commits() -> None:
            for n in range(10):
                commit(held, {f"n{n}": n})

        _together([append, append, commits])
        assert [entry.number for entry in held.journal()] == list(range(1, 101))
        assert [one.depth for one in held.log()] == list(range(10, 0, -1))

    def test_hosts_write_different_sessions_of_one_user_at_once(self, host: Callable[..., Store]) -> None:
        shared = b"shared" * 2000

        def work(store: Store, name: str) -> None:
            with store.hold("ana", name) as held:
                for n in range(8):
                    held.append({"n": n})
                    with held.batch() as batch:
                        data = batch.put(shared)
                        mine = batch.put(f"{name} {n}".encode() * 1000)
                        root = batch.tree(None, {"shared": blobs(data), "mine": blobs(mine)})
                        batch.commit(kind="cell", trees={"names": root}, entries=[n + 1])

        stores = [host() for _ in range(4)]
        _together([partial(work, one, f"s{n}") for n, one in enumerate(stores)])
        assert [row.depth for row in stores[0].sessions("ana")] == [8] * 4
        report = stores[0].verify()
        assert report.ok
        assert report.objects == stores[0].usage("ana").objects

    # --- sessions of users ---

    def test_sessions_are_listed_by_name_a_page_at_a_time(self, store: Store) -> None:
        for user in ("ana", "bob"):
            for n in range(7):
                with store.hold(user, f"s{n}") as held:
                    commit(held, {"x": n})
                    held.append({})
        mine = store.sessions("ana", limit=5)
        mine += store.sessions("ana", after=mine[-1], limit=5)
        assert [row.name for row in mine] == [f"s{n}" for n in range(7)]
        assert {(row.user, row.branch, row.depth, row.pending, row.holder) for row in mine} == {
            ("ana", "main", 1, 1, None)
        }
        everyone = store.sessions(limit=8)
        everyone += store.sessions(after=everyone[-1])
        assert [row.user for row in everyone] == ["ana"] * 7 + ["bob"] * 7
        assert store.sessions("nobody") == []

    def test_settings_are_of_the_first_opening_until_they_are_changed(self, host: Callable[..., Store]) -> None:
        settings: dict[str, JSON] = {"seed": 1, "text": "é\0"}
        with host().hold("ana", "q3", settings=settings) as held:
            assert held.settings == settings
        with host().hold("ana", "q3", settings={"seed": 2}) as held:
            assert held.settings == settings
            held.configure({"seed": 3})
        assert host().read("ana", "q3").settings == {**settings, "seed": 3}

    def test_session_that_is_not_there_is_unknown(self, store: Store) -> None:
        for call in (
            lambda: store.read("ana", "q3"),
            lambda: store.hold("ana", "q3", create=False),
            lambda: store.delete("ana", "q3"),
            lambda: store.rename("ana", "q3", "q4"),
            lambda: store.fork("ana", "q3", "q4"),
            lambda: store.verify("ana"),
        ):
            with pytest.raises(UnknownSession, match="'ana'"):
                call()
        assert store.sessions() == []

    def test_renamed_session_is_the_same(self, store: Store, held: HeldSession) -> None:
        made = commit(held, {"x": 1})
        store.hold("ana", "taken").release()
        held.release()
        with pytest.raises(StoreError, match="already"):
            store.rename("ana", "q3", "taken")
        store.rename("ana", "q3", "q4")
        assert store.read("ana", "q4").head().commit == made.id
        with pytest.raises(UnknownSession):
            store.read("ana", "q3")

    def test_fork_shares_history_and_goes_its_own_way(self, store: Store, held: HeldSession) -> None:
        commit(held, {"x": 1})
        held.tag("v1")
        commit(held, {"x": 2})
        before = store.usage("ana").objects
        store.fork("ana", "q3", "q4", at="HEAD~1")
        assert store.usage("ana").objects == before
        copy = store.hold("ana", "q4")
        assert names(copy) == names(copy, "v1") == {"x": 1}
        commit(copy, {"y": 1})
        assert names(copy) == {"x": 1, "y": 1}
        assert names(held) == {"x": 2}
        held.release()
        store.delete("ana", "q3")
        store.gc()
        assert [one.depth for one in copy.log()] == [2, 1]
        assert store.verify().ok
        with pytest.raises(StoreError, match="already"):
            store.fork("ana", "q4", "q4")

    @pytest.mark.threat("D2")
    @pytest.mark.parametrize("name", HOSTILE)
    def test_hostile_name_is_a_name(self, store: Store, name: str) -> None:
        store.hold("bob", "bystander").release()
        with store.hold(name, name) as held:
            commit(held, {name: name})
            if " " not in name and "?" not in name and "\\" not in name:
                held.tag(name)
                assert held.resolve(name) == held.resolve("HEAD")
        assert [(row.user, row.name) for row in store.sessions(name)] == [(name, name)]
        store.rename(name, name, "plain")
        store.delete(name, "plain")
        assert [row.name for row in store.sessions()] == ["bystander"]

    @pytest.mark.threat("D2")
    @pytest.mark.parametrize("name", REFUSED, ids=ascii)
    def test_name_that_cannot_be_told_apart_is_refused(self, store: Store, held: HeldSession, name: str) -> None:
        commit(held, {"x": 1})
        for call in (
            lambda: store.hold(name, "x"),
            lambda: store.hold("x", name),
            lambda: store.read(name, name),
            lambda: store.rename("ana", "q3", name),
            lambda: held.branch(name),
            lambda: held.tag(name),
        ):
            with pytest.raises(StoreError) as raised:
                call()
            assert len(str(raised.value)) < 400
            str(raised.value).encode()
        assert len(store.sessions()) == 1

    # --- quotas ---

    def test_user_may_keep_so_many_sessions(self, host: Callable[..., Store]) -> None:
        store = host(quota=Quota(sessions=2, bytes=1 << 30))
        for name in ("a", "b"):
            store.hold("ana", name).release()
        for call in (lambda: store.hold("ana", "c"), lambda: store.fork("ana", "a", "c", at="HEAD")):
            with pytest.raises((QuotaReached, UnknownCommit)):
                call()
        with pytest.raises(QuotaReached, match="may keep 2 sessions, and has 2"):
            store.hold("ana", "c")
        store.hold("ana", "a").release()
        store.hold("bob", "c").release()
        store.delete("ana", "b")
        store.hold("ana", "c").release()

    def test_user_may_keep_so_many_bytes(self, host: Callable[..., Store]) -> None:
        store = host()
        store.set_quota("ana", Quota(sessions=10, bytes=250_000))
        held = host().hold("ana", "q3")
        commit(held, {"x": 1})
        with held.batch() as batch:
            for n in range(10):
                batch.put(_random(n)(100_000))
            with pytest.raises(QuotaReached, match=r"may keep 250,000 bytes, has \d+, and would need 1,000,000 more"):
                batch.flush()
        usage = store.usage("ana")
        assert usage.bytes <= 250_000
        assert usage.quota == Quota(sessions=10, bytes=250_000)
        assert names(held) == {"x": 1}
        held.release()
        store.gc(grace_seconds=0)
        assert store.usage("ana").bytes < 10_000
        store.set_quota("ana", Quota(sessions=10, bytes=1 << 30))
        assert store.usage("nobody").bytes == 0

    # --- verification and collection ---

    def test_whole_store_verifies(self, store: Store, held: HeldSession) -> None:
        with held.batch() as batch:
            big = batch.put(_random(1)(100_000))
            root = batch.tree(None, {f"n{n}": {"data": blobs(big)} for n in range(100)})
            batch.commit(kind="cell", trees={"names": root})
        with held.batch() as batch:
            noted = batch.put(b"noted")
            batch.flush()
        held.append({"cell": blobs(noted)})
        report = store.verify()
        assert report.ok
        assert (report.sessions, report.commits, report.unreferenced) == (1, 1, 0)
        assert report.objects == store.usage("ana").objects
        assert report.bytes == store.usage("ana").bytes

    @pytest.mark.threat("D1")
    @pytest.mark.parametrize("how", ["deleted", "changed", "cut", "of an unknown coding"])
    def test_damage_is_told_by_object_and_by_what_needs_it(
        self, store: Store, held: HeldSession, connect: Callable[[], Database], how: str
    ) -> None:
        with held.batch() as batch:
            lost = batch.put(b"lost" * 100)
            kept = batch.put(b"kept" * 100)
            root = batch.tree(None, {"x": {"data": blobs(lost)}, "y": {"data": blobs(kept)}})
            made = batch.commit(kind="cell", trees={"names": root})
        _damage(connect(), lost, how)
        report = store.verify()
        assert not report.ok
        (damage,) = report.damage
        assert (damage.user, damage.session, damage.commit) == ("ana", "q3", made.id)
        assert (damage.path, damage.address) == ("names 'x'", lost)
        with pytest.raises(
            StoreDamaged, match=f"object {lost} is .*; commit {made.id[7:19]}, names 'x' needs it"
        ) as raised:
            held.get(lost)
        assert raised.value.address == lost
        assert held.get(kept) == b"kept" * 100
        assert len(names(held)) == 2

    @pytest.mark.threat("D1")
    def test_damaged_object_can_be_put_again_after_its_row_is_gone(
        self, store: Store, held: HeldSession, connect: Callable[[], Database]
    ) -> None:
        with held.batch() as batch:
            data = batch.put(b"data" * 2000)
            batch.commit(kind="cell", trees={}, detail={"it": blobs(data)})
        _damage(connect(), data, "deleted")
        with held.batch() as batch:
            batch.put(b"data" * 2000)
            batch.flush()
        assert store.verify().ok

    def test_collection_deletes_what_nothing_leads_to_and_nothing_else(
        self, store: Store, held: HeldSession, host: Callable[..., Store]
    ) -> None:
        shared, mine = b"shared" * 20_000, b"mine" * 30_000
        other = store.hold("ana", "other")
        for session in (held, other):
            with session.batch() as batch:
                data = [batch.put(shared), batch.put(session.name.encode() + mine)]
                batch.commit(kind="cell", trees={"names": batch.tree(None, {"d": blobs(*data)})})
        with held.batch() as batch:
            noted = batch.put(b"noted" * 1000)
            batch.put(b"left" * 1000)
            batch.flush()
        held.append({"cell": blobs(noted)})
        before = store.usage("ana")
        other.release()
        store.delete("ana", "other")
        assert (store.gc().deleted, store.usage("ana")) == (0, before.__class__(
            sessions=1, objects=before.objects, bytes=before.bytes, quota=before.quota
        ))  # fmt: skip
        with pytest.raises(SessionHeld):
            store.gc(grace_seconds=0)
        held.release()
        swept = store.gc(grace_seconds=0)
        assert swept.deleted == 4  # a commit, its tree, its data, and what was left
        assert store.usage("ana").objects == before.objects - 4 == store.verify().objects
        assert store.usage("ana").bytes == before.bytes - swept.bytes
        again = host().read("ana", "q3")
        assert again.get(noted) == b"noted" * 1000
        assert store.verify().ok

    def test_condemned_object_that_is_put_again_is_kept(
        self, store: Store, held: HeldSession, connect: Callable[[], Database]
    ) -> None:
        with held.batch() as batch:
            data = batch.put(b"data" * 2000)
            record = batch.record({"to": blobs(data)})
            batch.flush()
        assert store.gc().condemned == 2
        connect().once("UPDATE objects SET condemned = condemned - 1900 WHERE condemned IS NOT NULL")
        with held.batch() as batch:
            assert batch.known([data, record]) == set()
            with pytest.raises(StoreDamaged, match="not stored"):
                batch.commit(kind="cell", trees={}, detail={"it": records(record)})
        with held.batch() as batch:
            batch.put(b"data" * 2000)
            batch.record({"to": blobs(data)})
            batch.commit(kind="cell", trees={}, detail={"it": records(record)})
        connect().once("UPDATE objects SET condemned = 1 WHERE condemned IS NOT NULL")
        assert store.gc().deleted == 0
        assert held.get(data) == b"data" * 2000
        assert store.verify().ok

    @pytest.mark.parametrize("met", ["before", "after"])
    def test_object_that_a_commit_came_to_need_is_acquitted(
        self, store: Store, held: HeldSession, connect: Callable[[], Database], met: str
    ) -> None:
        """A batch has met an object as stored before a collection condemns it, or soon afterwards."""
        with held.batch() as batch:
            data = batch.put(b"data" * 2000)
            batch.flush()
        if met == "after":
            assert store.gc().condemned == 1
        with held.batch() as batch:
            assert batch.known([data]) == {data}
            store.gc()
            batch.commit(kind="cell", trees={}, detail={"it": blobs(data)})
        connect().once("UPDATE objects SET condemned = 1 WHERE condemned IS NOT NULL")
        with held.batch() as batch:
            assert batch.known([data]) == {data}
        assert store.gc().deleted == 0
        assert store.verify().ok

    def test_commits_and_collections_go_on_beside_each_other(self, store: Store, held: HeldSession) -> None:
        """Each commit has new bytes, some that nothing had led to, and all of the one before."""
        with held.batch() as batch:
            left = [batch.put(b"left%d" % number * 2000) for number in range(30)]
            batch.flush()
        root: str | None = None

        def commit_all() -> None:
            nonlocal root
            for number, old in enumerate(left):
                with held.batch() as batch:
                    data = batch.put(b"new%d" % number * 2000)
                    root = batch.tree(root, {f"n{number}": blobs(data), f"l{number}": blobs(old)})
                    batch.commit(kind="cell", trees={"names": root})

        committed = in_thread(commit_all, "commits")
        while not committed.done():
            store.gc()
        committed.result()
        with held.batch() as batch:
            assert batch.known(left) == set(left)
        assert store.gc().condemned == 0
        assert store.verify().ok

    @pytest.mark.threat("D1")
    def test_nothing_is_collected_where_it_is_not_known_what_is_needed(
        self, store: Store, held: HeldSession, connect: Callable[[], Database]
    ) -> None:
        made = commit(held, {"x": 1})
        held.release()
        root = made.trees["names"]
        assert root is not None
        _damage(connect(), root, "changed")
        with pytest.raises(StoreDamaged, match="nothing of user 'ana' is collected"):
            store.gc(grace_seconds=0)
        assert store.usage("ana").objects == 2

    def test_batch_is_refused_when_a_collection_may_have_overtaken_it(
        self, held: HeldSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        batch = held.batch()
        batch.put(b"early")
        monkeypatch.setattr("cellblock.store.batch.LONGEST", -1.0)
        with pytest.raises(StoreError, match="in the making"):
            batch.commit(kind="cell", trees={})

    # --- closing ---

    def test_closed_store_says_so(self, host: Callable[..., Store]) -> None:
        store = host()
        held = store.hold("ana", "q3")
        held.release()
        store.close()
        store.close()
        with pytest.raises(CellblockError, match="closed"):
            store.sessions()


def _damage(database: Database, address: str, how: str) -> None:
    """Harm one object's row as a failing disk might; of a body outside the database, the row."""
    if how == "deleted":
        database.once("DELETE FROM objects WHERE address = ?", digest(address))
        return
    rows = database.select("SELECT body FROM objects WHERE address = ?", digest(address))
    body = rows[0][0]
    assert isinstance(body, bytes)
    if how == "of an unknown coding":
        database.once("UPDATE objects SET codec = 99 WHERE address = ?", digest(address))
        return
    body = body[:-1] if how == "cut" else body[:-1] + bytes([body[-1] ^ 1])
    database.once("UPDATE objects SET body = ? WHERE address = ?", body, digest(address))


def _together(calls: list[Callable[[], None]]) -> None:
    """Run each in a thread of its own; the first error of any is raised."""
    for call in [in_thread(call, "together") for call in calls]:
        call.result(PATIENCE)
