"""Random histories against a model of dicts: through crashes, branches, merges and collections nothing is lost."""

from __future__ import annotations

import copy
import tempfile
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from cellblock.store import HeldSession, Store, blobs, linked, open_store
from cellblock.store import held as stored
from cellblock.store.database import Database
from cellblock.store.sqlite import SqliteDatabase

KEYS = st.sampled_from([f"n{n}" for n in range(4)])
VALUES = st.one_of(st.none(), st.integers(0, 3), st.binary(max_size=3).map(lambda data: data * 2000))
CHANGES = st.dictionaries(KEYS, VALUES, max_size=5)
NAMES = st.sampled_from(["one", "two", "three"])


class Model:
    """A session as plain values: commits are (parents, names), by id."""

    def __init__(self) -> None:
        self.commits: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {}
        self.branches: dict[str, str] = {}
        self.tags: dict[str, str] = {}
        self.branch: str | None = "main"
        self.detached: str | None = None
        self.journal: list[tuple[int, int]] = []
        self.newest = 0

    @property
    def head(self) -> str | None:
        return self.detached if self.branch is None else self.branches.get(self.branch)

    @property
    def names(self) -> dict[str, Any]:
        return {} if self.head is None else self.commits[self.head][1]

    def ancestors(self, id: str) -> set[str]:
        return {id}.union(*(self.ancestors(one) for one in self.commits[id][0]))


class Clock:
    """Time for commits that is the same in each run, so that their ids are."""

    def __init__(self) -> None:
        self.now = 0

    def time_ns(self) -> int:
        self.now += 1_000_000
        return self.now


class Histories(RuleBasedStateMachine):
    """Two sessions of one user, written, left without a word, held again, copied, deleted, collected."""

    store: Store

    def open(self) -> Store:
        raise NotImplementedError

    @initialize()
    def begin(self) -> None:
        stored.time = Clock()  # type: ignore[attr-defined]
        self.store = self.open()
        self.models: dict[str, Model] = {}
        self.held: dict[str, HeldSession] = {}
        self.hold("a")

    def hold(self, name: str) -> None:
        self.held[name] = self.store.hold("ana", name)
        self.models.setdefault(name, Model())

    @property
    def now(self) -> list[str]:
        return sorted(self.held)

    @rule(data=st.data(), changes=CHANGES, snapshot=st.booleans())
    def commit(self, data: st.DataObject, changes: dict[str, Any], snapshot: bool) -> None:
        name = data.draw(st.sampled_from(self.now))
        held, model = self.held[name], self.models[name]
        left = data.draw(st.sets(st.sampled_from(model.journal))) if model.journal else set()
        with held.batch() as batch:
            root = None if model.head is None else held.resolve("HEAD").trees["names"]
            written = {
                key: blobs(batch.put(value)) if isinstance(value, bytes) else value for key, value in changes.items()
            }
            made = batch.commit(
                kind="cell", snapshot=snapshot, trees={"names": batch.tree(root, written)},
                entries=[number for number, _ in left],
            )  # fmt: skip
        names = {**model.names, **changes}
        self._note(model, made.id, () if model.head is None else (model.head,), names)
        model.journal = [entry for entry in model.journal if entry not in left]

    def _note(self, model: Model, id: str, parents: tuple[str, ...], names: dict[str, Any]) -> None:
        model.commits[id] = (parents, {key: value for key, value in names.items() if value is not None})
        if model.branch is None:
            model.detached = id
        else:
            model.branches[model.branch] = id

    @rule(data=st.data(), value=st.integers(0, 9))
    def append(self, data: st.DataObject, value: int) -> None:
        name = data.draw(st.sampled_from(self.now))
        model = self.models[name]
        model.newest += 1
        assert self.held[name].append({"value": value}) == model.newest
        model.journal.append((model.newest, value))

    @rule(data=st.data(), branch=NAMES, tag=st.booleans())
    def mark(self, data: st.DataObject, branch: str, tag: bool) -> None:
        name = data.draw(st.sampled_from(self.now))
        held, model = self.held[name], self.models[name]
        there = model.tags if tag else model.branches
        if model.head is None or branch == model.branch or branch in {*model.tags, *model.branches}:
            return
        at = data.draw(st.sampled_from(sorted(model.commits)))
        (held.tag if tag else held.branch)(branch, at)
        there[branch] = at

    @rule(data=st.data())
    def move(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.now))
        held, model = self.held[name], self.models[name]
        if not model.commits:
            return
        to = data.draw(
            st.sampled_from(sorted([*model.branches, *model.tags, *model.commits]))
        )
        head = held.move(to)
        if to in model.branches:
            model.branch, model.detached = to, None
        else:
            model.branch, model.detached = None, model.tags.get(to, to)
        assert (head.branch, head.commit) == (model.branch, model.head)

    @rule(data=st.data())
    def merge(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.now))
        held, model = self.held[name], self.models[name]
        if model.head is None:
            return
        apart = model.commits.keys() - model.ancestors(model.head)
        theirs = data.draw(st.sampled_from(sorted(apart or model.commits)))
        another = data.draw(st.sampled_from(sorted(model.commits)))
        for ones in ([model.head, another], [model.head]):
            common = set[str]().union(*map(model.ancestors, ones)) & model.ancestors(theirs)
            newest = [one for one in common if not any(one in model.ancestors(other) - {other} for other in common)]
            bases = [one.id for one in held.ancestors(ones, theirs)]
            assert sorted(bases) == sorted(newest)
        old = model.commits[bases[0]][1] if bases else {}
        ours, yours = model.names, model.commits[theirs][1]
        changed = {key for key in old.keys() | yours.keys() if old.get(key) != yours.get(key)}
        mine_changed = {key for key in old.keys() | ours.keys() if old.get(key) != ours.get(key)}
        taken = {key: yours.get(key) for key in changed - mine_changed}
        with held.batch() as batch:
            rows = dict(held.tree(held.resolve(theirs).trees["names"]).pairs())
            root = batch.tree(held.resolve("HEAD").trees["names"], {key: rows.get(key) for key in taken})
            made = batch.commit(kind="merge", trees={"names": root}, parents=(model.head, theirs))
        names = {**ours, **taken}
        self._note(model, made.id, (model.head, theirs), names)

    @rule(data=st.data(), politely=st.booleans())
    def leave_and_return(self, data: st.DataObject, politely: bool) -> None:
        """A holder that is gone without a word, as after a crash, is not waited for."""
        name = data.draw(st.sampled_from(self.now))
        held = self.held.pop(name)
        with held.batch() as batch:
            batch.put(b"never committed" * 300)
            batch.flush()
        (held.release if politely else held.abandon)()
        self.hold(name)
        self.agree(name)

    @rule()
    @precondition(lambda self: "b" not in self.models and self.models["a"].head is not None)
    def fork(self) -> None:
        self.store.fork("ana", "a", "b")
        old, new = self.models["a"], Model()
        new.commits, new.tags = copy.copy(old.commits), copy.copy(old.tags)
        assert old.head is not None
        new.branches = {"main": old.head}
        self.models["b"] = new
        self.hold("b")

    @rule(keep=st.booleans())
    @precondition(lambda self: "b" in self.models)
    def rename_or_delete(self, keep: bool) -> None:
        self.held.pop("b").release()
        if keep:
            self.store.rename("ana", "b", "c")
            self.store.rename("ana", "c", "b")
            self.hold("b")
        else:
            self.store.delete("ana", "b")
            del self.models["b"]

    @rule(at_once=st.booleans())
    def collect(self, at_once: bool) -> None:
        if at_once:
            for held in self.held.values():
                held.release()
            self.store.gc(grace_seconds=0)
            for name in list(self.held):
                self.hold(name)
        else:
            self.store.gc()

    @rule()
    def reopen(self) -> None:
        for held in self.held.values():
            held.abandon()
        self.store = self.open()
        for name in list(self.held):
            self.hold(name)

    def agree(self, name: str) -> None:
        """The session says of itself what the model does."""
        held, model = self.held[name], self.models[name]
        assert (held.head().branch, held.head().commit) == (model.branch, model.head)
        assert (held.branches(), held.tags()) == (model.branches, model.tags)
        assert [(entry.number, entry.value) for entry in held.journal()] == [
            (n, {"value": v}) for n, v in model.journal
        ]
        if model.head is not None:
            assert {one.id for one in held.log()} == model.ancestors(model.head)
        for id, (parents, names) in model.commits.items():
            commit = held.resolve(id)
            assert commit.parents == parents
            stored = dict(held.tree(commit.trees["names"]).pairs())
            assert {
                key: held.get(linked(value)[0]) if isinstance(value, dict) else value for key, value in stored.items()
            } == names

    def teardown(self) -> None:
        stored.time = time  # type: ignore[attr-defined]
        if not hasattr(self, "models"):
            return
        for name in self.held:
            self.agree(name)
        report = self.store.verify()
        assert report.ok, report
        usage = self.store.usage("ana")
        assert (report.objects, report.bytes, report.sessions) == (usage.objects, usage.bytes, len(self.models))
        for held in self.held.values():
            held.release()
        self.finish()

    def finish(self) -> None:
        self.store.close()


class InMemory(Histories):
    database: Database | None = None

    def open(self) -> Store:
        self.database = self.database or SqliteDatabase(None)
        return Store(self.database, shown="memory")


class InFile(Histories):
    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory(prefix="cb-model-")
        self.opened: list[Store] = []

    def open(self) -> Store:
        self.opened.append(open_store(f"sqlite:///{self.directory.name}/cells.db"))
        return self.opened[-1]

    def finish(self) -> None:
        for store in self.opened:
            store.close()
        self.directory.cleanup()


def _settings(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, derandomize=examples < 100,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )  # fmt: skip


TestInMemory = InMemory.TestCase
TestInMemory.settings = _settings(60, 30)
TestInMemory.pytestmark = [pytest.mark.threat("D1")]


class TestInFile(InFile.TestCase):  # type: ignore[name-defined,misc]
    settings = _settings(8, 20)


@pytest.mark.slow
@pytest.mark.timeout(1800)
class TestLong(InFile.TestCase):  # type: ignore[name-defined,misc]
    settings = _settings(300, 60)
