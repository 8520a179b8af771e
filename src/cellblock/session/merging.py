"""Two versions of a stored session made one: names with what they share, files, and what surrounds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from cellblock.errors import CellblockError, MergeConflict
from cellblock.labels import DECLARED, DUNDER, LAST, called
from cellblock.session.commits import get_lost, put_lost
from cellblock.session.mergedtrees import Tree, merge_files, put, three_way
from cellblock.session.past import state_of
from cellblock.session.timeline import is_cache, is_same
from cellblock.store import JSON, Batch, Commit, HeldSession
from cellblock.worker.saving.losses import PART

_MOST_TOLD = 20
_MOST_ROUNDS = 50
_MOST_BASES = 16
"""Versions that are held while the bases of bases are merged."""
_TREES = ("names", "groups", "files")
_AGAIN = "run the cells again that made it"
_GENERATORS = ("@random", "@numpy.random", "@torch")
"""Keys of random generators: each session goes on with its own."""
_BOOKKEEPING = f"{DUNDER}__warningregistry__"
_OF_ITSELF = (LAST, "@order:", "@sources:", "@types", _BOOKKEEPING, *_GENERATORS)
"""Keys in which any two versions differ, which nobody needs to be told."""
_DECLARATIONS = "__annotations__"
_UNNAMED = "."
"""Prefix of the key of a group that is a definition without a name: two versions may call two of them the same."""


def merge(
    session: HeldSession, ours: Commit, theirs: Commit, name: str, prefer: Literal["ours", "theirs"] | None, step: str
) -> Commit:
    """Make a commit of what two commits both changed since they parted: a step of this id, after ours. Theirs has the
    name of its session, or what led to it.

    Ours itself where theirs has led to it. Names that share objects change together. `MergeConflict` where both changed
    the same, unless one is preferred. Of what surrounds the names, such as options of packages, that version's stays
    where both changed it, or else ours, and it is told as lost; random numbers go on as ours. A commit whose state was
    not saved cannot be merged, nor what parted at one. Where both come from several commits, the base is what these
    make when they are merged; they may differ in something, which has no common value then.
    """
    bases = session.ancestors([ours.id], theirs.id)
    if theirs in bases:
        return ours
    for one in (ours, theirs):
        if not one.snapshot:
            raise CellblockError(
                f"nothing was merged: the state of cell {one.number}, {one.message!r}, was not saved",
                hint="run a cell there, and merge again; under a policy, or without checkpoints, no states are kept",
            )
    first, second = (theirs, ours) if prefer == "theirs" else (ours, theirs)
    versions = [_Version.of(session, one) for one in (first, second)]
    merging = _Merging(session, _Bases(session).of(bases), *versions, ours=versions[first is not ours])
    conflicts = merging.conflicts()
    if prefer is None and any(conflicts.values()):
        raise _conflict(conflicts)
    merging.let_go(conflicts["names"])
    with session.batch() as batch:
        return batch.commit(
            kind="merge",
            message=f"merged {name}",
            number=max(ours.number, theirs.number),
            trees={**ours.trees, **merging.trees(batch, first)},
            detail={**merging.detail(batch), "environment": _environment(first, second), "step": step},
            parents=(ours.id, theirs.id),
        )


def _environment(first: Commit, second: Commit) -> JSON:
    """Environment that a state was saved with; a version in which nothing has run has none, and takes the other's."""
    return first.detail.get("environment") or second.detail.get("environment")


class _Bases:
    """The bases of merges: one commit, or what several make, merged by their own base, of which the same holds."""

    def __init__(self, session: HeldSession) -> None:
        self._session = session
        self._of = lru_cache(_MOST_BASES)(self._made)

    def of(self, commits: Sequence[Commit]) -> _Version:
        """The state of one commit, or what several make when they are merged; nothing where there is none."""
        chain = [tuple(commit.id for commit in commits)]
        while len(chain[-1]) > 1:
            chain.append(self._base_of(chain[-1]))
        for ids in reversed(chain[1:]):  # the oldest first, so that no call waits for many others
            self._of(*ids)
        return self._of(*chain[0])

    def _made(self, *ids: str) -> _Version:
        if len(ids) < 2:
            return _Version.of(self._session, *map(self._state_of, ids))
        *others, last = ids
        first = self._of(*others)
        merging = _Merging(self._session, self._of(*self._base_of(ids)), first, self._of(last), ours=first)
        return merging.common()

    def _base_of(self, ids: Sequence[str]) -> tuple[str, ...]:
        return tuple(commit.id for commit in self._session.ancestors(ids[:-1], ids[-1]))

    def _state_of(self, id: str) -> Commit:
        commit = self._session.resolve(id)
        if (state := state_of(self._session, commit)) is None:
            where = f"the state of cell {commit.number}, {commit.message!r}, where both parted"
            raise CellblockError(
                f"nothing was merged: {where}, was not saved",
                hint="make another branch while no cell runs, and make the changes of one of the two there",
            )
        return state


@dataclass(frozen=True, slots=True)
class _Version:
    """The contents of one commit. Among the names are those that have no row in the commit: these have a `label`.

    Of a version that several commits make, `unsettled` says by its kind what these do not agree on.
    """

    names: Tree
    groups: Tree
    files: Tree
    ambient: Mapping[str, str]
    lost: Mapping[str, list[list[str]]]
    unsettled: Mapping[str, Set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, session: HeldSession, commit: Commit | None = None) -> _Version:
        if commit is None:
            return cls({}, {}, {}, {}, {})
        detail: Any = commit.detail
        names, groups, files = (dict(session.tree(commit.trees.get(kind)).pairs()) for kind in _TREES)
        ambient: dict[str, str] = dict(detail.get("ambient", ()))
        for label in [one for one in ambient if one.startswith((DUNDER, DECLARED)) and one != _BOOKKEEPING]:
            key = ambient.pop(label)
            names[called(label)] = {"label": label, "type": "", "group": key, "record": groups.get(key)}
        return cls(names, groups, files, ambient, _by_name(get_lost(session, commit)))

    def around(self, label: str) -> tuple[str, Any] | None:
        """Key of something that surrounds the names, and its group."""
        if label in self.unsettled.get("ambient", ()):
            return label, object()  # which no other is
        key = self.ambient.get(label)
        return None if key is None else (key, self.groups.get(key))

    def told(self, name: str) -> tuple[Any, Any]:
        """A name, and what is lost of it."""
        row = object() if name in self.unsettled.get("names", ()) else self.names.get(name)
        return row, self.lost.get(name)


class _Merging:
    """A merge under way: the first version, with what the second changed since the base."""

    def __init__(
        self, session: HeldSession, base: _Version, first: _Version, second: _Version, *, ours: _Version
    ) -> None:
        self._session = session
        self._base, self._first, self._second, self._ours = base, first, second, ours
        names, groups, files = (base.unsettled.get(kind, frozenset()) for kind in _TREES)
        self._names, self._changed = three_way(base.names, first.names, second.names, names, is_same)
        self._groups, self._parted = three_way(base.groups, first.groups, second.groups, groups)
        self._files, self._paths = merge_files(base.files, first.files, second.files, files)
        for label in _GENERATORS:
            if (own := self._ours.around(label)) is not None:
                put(self._groups, *own)
        self._dropped: list[list[str]] = []
        self._read: dict[str, list[str]] = {}

    def conflicts(self) -> dict[str, tuple[str, ...]]:
        """Names and files that both changed."""
        names = {*self._changed, *self._astray(), *(name for name, _ in self._lost() if name)}
        return {"names": tuple(sorted(names)), "files": tuple(sorted(one for one in self._paths if not is_cache(one)))}

    def common(self) -> _Version:
        """The tree that both make, as the base of versions that come from both; what both changed is unsettled."""
        names = self.let_go(self.conflicts()["names"])
        ambient, contested = self._surroundings()
        lost = _by_name(row for _, rows in self._lost() for row in rows)
        unsettled = {"names": names, "groups": self._parted, "files": self._paths, "ambient": contested}
        unsettled = {kind: keys | self._first.unsettled.get(kind, set()) for kind, keys in unsettled.items()}
        return _Version(self._names, self._groups, self._files, ambient, lost, unsettled)

    def let_go(self, names: Iterable[str]) -> set[str]:
        """Have the first version's of these names and of those that cannot stand beside them; return all of these.

        Those that it has not are told. Where one leads to another again and again, all that the second changed go.
        """
        let_go: set[str] = set()
        rounds = 0
        while astray := {*names, *self._astray()} - let_go:
            rounds += 1
            if rounds > _MOST_ROUNDS:
                rows, self._groups = self._first.names, dict(self._first.groups)
                astray |= {one for one in {**self._names, **rows} if self._names.get(one) != rows.get(one)} - let_go
            let_go |= astray
            for name in astray:
                put(self._names, name, self._first.names.get(name))
            groups = [self._first.names[name]["group"] for name in astray if name in self._first.names]
            for key in self._with_needs(groups):
                self._groups[key] = self._first.groups[key]
        for name in sorted(let_go - self._base.names.keys() - self._first.names.keys()):
            if name in self._second.names:
                why = "what it is made of has the place of something else in the version that was preferred"
                self._dropped.append([name, self._second.names[name]["type"], why, _AGAIN])
        return let_go

    def trees(self, batch: Batch, first: Commit) -> dict[str, str | None]:
        """The roots of the trees, after `let_go`."""
        merged = {"names": self._names, "groups": self._groups, "files": self._files}
        return {
            kind: batch.tree(first.trees.get(kind), _changes(getattr(self._first, kind), tree))
            for kind, tree in merged.items()
        }

    def detail(self, batch: Batch) -> dict[str, JSON]:
        """The surroundings of the names, and the losses, after `let_go`."""
        labels: dict[str, str] = {row["label"]: row["group"] for row in self._names.values() if "label" in row}
        labels |= self._surroundings()[0]
        lost = [row for _, rows in self._lost() for row in rows] + self._dropped
        return {"ambient": [[label, key] for label, key in sorted(labels.items())], "lost": put_lost(batch, lost)}

    def _surroundings(self) -> tuple[dict[str, str], set[str]]:
        """The groups of what surrounds the names, and what of it both changed or was not kept, which is told."""
        ambient, contested = dict[str, str](), set[str]()
        for label in sorted({*self._first.ambient, *self._second.ambient}):
            base, first, second = (one.around(label) for one in (self._base, self._first, self._second))
            chosen = self._ours.around(label) if label in _GENERATORS else second if first == base else first
            held = [one for one in (chosen, first, second) if one is not None and self._is_whole(label, one)]
            if base not in (first, second) and first != second and label not in _GENERATORS:
                contested.add(label)
            if label in contested and not label.startswith(_OF_ITSELF):
                self._dropped.append([called(label), "", "both versions changed it, and one of them was kept", _AGAIN])
            if chosen is not None and held:
                ambient[label] = held[0][0]
            elif chosen is not None:
                self._dropped.append(
                    [called(label), "", "the other version changed what it shares objects with", _AGAIN]
                )
            if chosen not in (None, *held[:1]):
                contested.add(label)
        return ambient, contested

    def _is_whole(self, label: str, around: tuple[str, Any]) -> bool:
        """True if what surrounds the names is there as one version has it; of the last value, all that it refers to.
        """
        key, link = around
        if self._groups.get(key) != link or label != "@last":
            return bool(self._groups.get(key) == link)
        version = self._first if self._first.groups.get(key) == link else self._second
        return all(self._groups.get(need) == version.groups.get(need) for need in self._needs(link))

    def _lost(self) -> Iterator[tuple[str, list[list[str]]]]:
        """Losses, name by name; the name comes with it where both versions changed it."""
        for name in sorted({*self._base.lost, *self._first.lost, *self._second.lost}):
            base, first, second = (one.told(name) for one in (self._base, self._first, self._second))
            if first == base:
                yield "", second[1] or []
            else:
                is_part = all(row[1].startswith(PART) for row in (*(first[1] or ()), *(second[1] or ())))
                yield "" if second in (base, first) or is_part or name == called(LAST) else name, first[1] or []

    def _astray(self) -> Iterator[str]:
        """Names of which what they are made of, or a definition without a name, would be another one or not there."""
        for name, row in self._names.items():
            if "record" in row and self._groups.get(row["group"]) != row["record"]:  # older stores have none
                yield name
        for side, other in ((self._first, self._second), (self._second, self._first)):
            astray = {
                key
                for key, link in self._groups.items()
                if side.groups.get(key) == link and self._is_astray(side, key, alone=other.groups.get(key) != link)
            }
            yield from (name for name, row in side.names.items() if row["group"] in astray)

    def _is_astray(self, side: _Version, key: str, *, alone: bool) -> bool:
        """True if a group needs what the merge does not have of its version; one of both may have what one changed."""
        for need in self._needs(side.groups[key]):
            there = self._groups.get(need)
            if there is None:
                return True
            other = need.startswith(_UNNAMED) and there != side.groups.get(need)
            if other and (alone or need in self._parted):
                return True
        return False

    def _needs(self, link: Any) -> list[str]:
        address = link["@"]
        if address not in self._read:
            record: Any = self._session.record(address)
            self._read[address] = list(record["needs"])
        return self._read[address]

    def _with_needs(self, keys: Iterable[str]) -> Iterator[str]:
        """These groups of the first version and all that they need."""
        seen: set[str] = set()
        work = list(keys)
        while work:
            if (key := work.pop()) not in seen and key in self._first.groups:
                seen.add(key)
                yield key
                work += self._needs(self._first.groups[key])


def _by_name(lost: Iterable[list[str]]) -> dict[str, list[list[str]]]:
    rows: dict[str, list[list[str]]] = {}
    for row in lost:
        rows.setdefault(row[0], []).append(row)
    return rows


def _changes(before: Tree, after: Tree) -> dict[str, Any]:
    """The changes that make one tree of the other: None for a key that goes. Names with a label are in no tree."""
    return {
        key: after.get(key)
        for key, row in {**before, **after}.items()
        if before.get(key) != after.get(key) and "label" not in row
    }


def _conflict(conflicts: dict[str, tuple[str, ...]]) -> MergeConflict:
    names = {_DECLARATIONS if one.startswith(f"{_DECLARATIONS}[") else one for one in conflicts["names"]}
    conflicts = {**conflicts, "names": tuple(sorted(names))}
    listed = [f"{kind}: {', '.join(keys[:_MOST_TOLD])}" for kind, keys in conflicts.items() if keys]
    return MergeConflict(
        f"both changed {'; '.join(listed)}",
        hint='make one of them as the other is, or merge(…, prefer="ours") or prefer="theirs"',
        names=conflicts["names"],
        files=conflicts["files"],
    )
