"""Versions that come from more than one common commit, as those do that were merged crosswise: what `merge` makes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import pytest

from cellblock import AsyncSession, MergeConflict, Session, Versioned

UNSETTLED = "unsettled"
"""The value, in a common base, of a key on which the commits that make it do not agree."""
NAMES, FILES = ("x0", "x1", "x2"), ("f0", "f1")
State: TypeAlias = Mapping[str, object]


@dataclass(eq=False)
class Node:
    """A commit of the model: names and files by one key each, which is absent where there is none."""

    state: State = field(default_factory=dict)
    parents: tuple[Node, ...] = ()

    def past(self) -> set[Node]:
        return {self}.union(*(one.past() for one in self.parents))


def bases(ones: Sequence[Node], other: Node) -> list[Node]:
    """The common ancestors that are no ancestors of another one."""
    shared = set[Node]().union(*(one.past() for one in ones)) & other.past()
    return [one for one in shared if not any(one in newer.past() for newer in shared - {one})]


def three_way(base: State, first: State, second: State) -> tuple[dict[str, object], set[str]]:
    merged, conflicts = dict(first), set()
    for key in {*base, *first, *second}:
        before, mine, theirs = base.get(key), first.get(key), second.get(key)
        if mine == theirs or (theirs == before != UNSETTLED):
            continue
        if mine != before or before == UNSETTLED:
            conflicts.add(key)
        else:
            merged[key] = theirs
    return {key: value for key, value in merged.items() if value is not None}, conflicts


def common(nodes: Sequence[Node]) -> State:
    """The state of one commit; of several, they are merged by their own common base."""
    if len(nodes) < 2:
        return nodes[0].state if nodes else {}
    *others, last = nodes
    first = common(others)
    merged, conflicts = three_way(common(bases(others, last)), first, last.state)
    kept = {key for key, value in first.items() if value == UNSETTLED}
    return {**merged, **dict.fromkeys(conflicts | kept, UNSETTLED)}


class Three:
    """Three sessions and their model, after steps that a seed draws."""

    def __init__(self, seed: int, session: Session) -> None:
        self.random = random.Random(seed)
        self.crossed = 0
        """The merges of versions that had more than one base."""
        self.count = 0
        self.nodes, self.sessions = [Node({"x0": 0, "f0": "0"})], [session]
        assert session.run("x0 = 0; open('f0', 'w').write('0'); None").ok
        for at in (1, 2):
            self.branch(0, at=at)

    def step(self) -> None:
        one, other, third = self.random.sample(range(3), 3)
        drawn = self.random.random()
        if drawn < 0.6:
            self.change(one, self.random.choice([*NAMES, *FILES]))
        elif drawn < 0.65:
            self.branch(one, at=third)
        elif drawn < 0.85:
            self.merge(one, other)
        else:  # each takes over the other as it was
            self.branch(one, at=third)
            self.merge(one, other)
            self.merge(other, third)

    def change(self, one: int, key: str) -> None:
        self.count += 1
        if self.random.random() < 0.4:
            value: object = None
            source = f"globals().pop({key!r}, None); None" if key in NAMES else REMOVES.format(key)
        elif key in NAMES:
            value = self.random.randrange(3)
            source = f"{key} = {value}"
        else:
            value = str(self.count)
            source = f"open({key!r}, 'w').write({value!r}); None"
        node = self.nodes[one]
        self.nodes[one] = Node({**node.state, key: value} if value is not None else without(node.state, key), (node,))
        assert self.sessions[one].run(source).ok
        self.sessions[one].flush()

    def branch(self, one: int, *, at: int) -> None:
        """Have a branch of one of the three in the place of another."""
        self.count += 1
        branch = self.sessions[one].branch(f"branch-{self.count}")
        for left in self.sessions[at : at + 1]:
            left.close()
        self.nodes[at : at + 1], self.sessions[at : at + 1] = [self.nodes[one]], [branch]

    def merge(self, one: int, other: int) -> None:
        ours, theirs = self.nodes[one], self.nodes[other]
        found = bases([ours], theirs)
        conflicts: set[str] = set()
        prefer: Literal["ours", "theirs"] | None = None
        if theirs not in found:
            self.crossed += len(found) > 1
            merged, conflicts = three_way(common(found), ours.state, theirs.state)
            if conflicts:
                prefer = self.random.choice(["ours", "theirs"])
                chosen = ours.state if prefer == "ours" else theirs.state
                merged |= {key: chosen.get(key) for key in conflicts}
                merged = {key: value for key, value in merged.items() if value is not None}
            self.nodes[one] = Node(merged, (ours, theirs))
        if conflicts:
            with pytest.raises(MergeConflict) as told:
                self.sessions[one].merge(self.sessions[other])
            assert {*told.value.names, *(path.removeprefix("workspace/") for path in told.value.files)} == conflicts
        self.sessions[one].merge(self.sessions[other], prefer=prefer)

    def seen(self, one: Session) -> State:
        files = {path: one.files.read(path).decode() for path in one.files.list()}
        return {name: one[name] for name in one.names()} | files


REMOVES = "import os; os.path.exists({0!r}) and os.remove({0!r}); del os"


def without(state: State, key: str) -> State:
    return {name: value for name, value in state.items() if name != key}


@pytest.mark.sampled(0)
@pytest.mark.parametrize("seed", [2, 9])
def test_random_merges_among_three_sessions_are_those_of_a_model(opened: Callable[..., Session], seed: int) -> None:
    three = Three(seed, opened())
    try:
        for _ in range(30):
            three.step()
            assert [three.seen(one) for one in three.sessions] == [node.state for node in three.nodes]
    finally:
        for one in three.sessions:
            one.close()
    assert three.crossed >= 3


@pytest.fixture
def crossed(opened: Callable[..., Session]) -> Iterator[tuple[Session, Session]]:
    """Two sessions that have both merged a third, each after another change."""
    session = opened()
    session.run("x = 0; v = 0; w = 0; both = 0")
    with session.branch("other") as other:
        other.run("z = 1; w = 1; both = 'theirs'; open('fb', 'w').write('1')")
        session.run("y = 1; v = 1; both = 'ours'; open('fa', 'w').write('1')")
        with session.branch("third") as third:
            third.run("c = 1")
            session.merge(other, prefer="ours")
            third.merge(other, prefer="ours")
            yield session, third


@pytest.mark.sampled(0)
def test_what_was_deleted_and_set_back_stays_so_in_a_merge_of_what_was_merged_crosswise(
    crossed: tuple[Session, Session],
) -> None:
    session, third = crossed
    session.run("import os\ndel y, z; v = 0; w = 0\nos.remove('fa'); os.remove('fb'); del os")
    session.merge(third)
    cell = session.run("sorted(name for name in globals() if len(name) == 1), v, w, both")
    assert (cell.value, cell.lost) == ((["c", "v", "w", "x"], 0, 0, "ours"), ())
    assert session.files.list() == []


@pytest.mark.sampled(0)
def test_name_on_which_common_commits_do_not_agree_is_a_conflict_unless_it_is_the_same(
    crossed: tuple[Session, Session],
) -> None:
    session, third = crossed
    session.run("both = 'theirs'")
    with pytest.raises(MergeConflict) as conflict:
        session.merge(third)
    assert (conflict.value.names, conflict.value.files) == (("both",), ())
    session.run("both = 'ours'; w = 2")
    session.merge(third)
    assert session.run("both, w, c").value == ("ours", 2, 1)


@pytest.mark.sampled(0)
def test_settings_and_names_that_share_objects_are_merged_crosswise(opened: Callable[..., Session]) -> None:
    session = opened()
    session.run("import os, decimal; a = [1]; b = [2]; class_ = type('class_', (), {})")
    with session.branch("other") as other:
        other.run("b.append(3); b2 = b; os.environ['THEIRS'] = '1'; __version__ = '1'")
        session.run("a.append(3); a2 = a; decimal.getcontext().prec = 9")
        with session.branch("third") as third:
            third.run("c = 1")
            session.merge(other)
            third.merge(other)
            session.run("del b2, __version__; a.clear(); decimal.getcontext().prec = 28; del os.environ['THEIRS']")
            session.merge(third)
            told = "a, a2 is a, b, 'b2' in globals(), '__version__' in globals(), c, 'THEIRS' in os.environ"
            cell = session.run(told + ", decimal.getcontext().prec")
            assert (cell.value, cell.lost) == (([], True, [2, 3], False, False, 1, False, 28), ())


@pytest.mark.sampled(0)
def test_sessions_that_merge_each_other_at_once_agree_on_what_is_deleted_afterwards(url: str) -> None:
    async def main() -> None:
        async with AsyncSession("one", state=Versioned(url)) as one:
            await one.run("x = 0")
            async with await one.branch("two") as two:
                await one.run("y = 1; open('fa', 'w').write('1')")
                await two.run("z = 1; open('fb', 'w').write('1')")
                await asyncio.gather(one.merge(two), two.merge(one))
                await one.run("import os\ndel y, z\nos.remove('fa'); os.remove('fb'); del os")
                await one.merge(two)
                assert (sorted(await one.names()), await one.files.list()) == (["x"], [])

    asyncio.run(main())


def test_versions_that_come_from_three_common_commits_are_merged(opened: Callable[..., Session]) -> None:
    first = opened()
    first.run("x = both = 0")
    with first.branch("second") as second, first.branch("third") as third:
        for number, one in enumerate((first, second, third)):
            one.run(f"y{number} = 1; open('f{number}', 'w').write('1'); both = {number}")
        with first.branch("first as it was") as before:
            for one, others in ((first, (second, third)), (third, (before, second))):
                for other in others:
                    one.merge(other, prefer="theirs")
        first.run("import os\ndel y0, y1, y2\nfor n in range(3): os.remove(f'f{n}')\ndel n, os")
        third.run("c = 1")
        with pytest.raises(MergeConflict) as conflict:
            first.merge(third)
        assert (conflict.value.names, conflict.value.files) == (("both",), ())
        third.run("both = 2")
        first.merge(third)
        assert sorted(first.names()) == ["both", "c", "x"]
        assert first.files.list() == []
