"""Two versions of a stored session made one: names with what they share, files, and what surrounds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cellblock.errors import CellblockError, MergeConflict
from cellblock.labels import DECLARED, DUNDER, LAST, called
from cellblock.session.mergedtrees import Tree, merge_files, put, three_way
from cellblock.session.past import state_of
from cellblock.session.timeline import is_same
from cellblock.store import JSON, Batch, Commit, HeldSession
from cellblock.worker.saving.losses import PART

_MOST_TOLD = 20
_TREES = ("names", "groups", "files")
_AGAIN = "run the cells again that made it"
_GENERATORS = ("@random", "@numpy.random", "@torch")
"""What draws random numbers: each session goes on with its own."""
_BOOKKEEPING = f"{DUNDER}__warningregistry__"
_OF_ITSELF = (LAST, "@order:", "@sources:", "@types", _BOOKKEEPING, *_GENERATORS)
"""What any two versions differ in, which nobody needs to be told."""
_DECLARATIONS = "__annotations__"
_UNNAMED = "."
"""How the key of a group begins that is a definition without a name: two versions may call two of them the same."""


def merge(
    session: HeldSession, ours: Commit, theirs: Commit, prefer: Literal["ours", "theirs"] | None, step: str
) -> Commit:
    """Make a commit of what two commits both changed since they parted: a step of this id, after ours.

    Ours itself where theirs has led to it. Names that share objects change together. `MergeConflict` where both changed
    the same, unless one is preferred. Of what surrounds the names, such as options of packages, that version's stays
    where both changed it, or else ours, and it is told as lost; random numbers go on as ours. A commit whose state was
    not saved cannot be merged, nor what parted at one.
    """
    base = session.ancestor(ours.id, theirs.id)
    if base is not None and base.id == theirs.id:
        return ours
    for one in (ours, theirs):
        if not one.snapshot:
            raise CellblockError(
                f"nothing was merged: the state of cell {one.number}, {one.message!r}, was not saved",
                hint="run a cell there, and merge again; under a policy, or without checkpoints, no states are kept",
            )
    parted = None if base is None else state_of(session, base)
    if base is not None and parted is None:
        raise CellblockError(
            f"nothing was merged: the state of cell {base.number}, {base.message!r}, where both parted, was not saved",
            hint="make another branch while no cell runs, and make the changes of one of the two there",
        )
    first, second = (theirs, ours) if prefer == "theirs" else (ours, theirs)
    merging = _Merging(session, parted, first, second, ours)
    conflicts = merging.conflicts()
    if prefer is None and any(conflicts.values()):
        raise _conflict(conflicts)
    merging.let_go(conflicts["names"])
    with session.batch() as batch:
        return batch.commit(
            kind="merge",
            message=f"merged {theirs.id.removeprefix('sha256-')[:12]}",
            number=max(ours.number, theirs.number),
            trees={**ours.trees, **merging.trees(batch, first)},
            detail={**merging.detail(), "environment": _environment(first, second), "step": step},
            parents=(ours.id, theirs.id),
        )


def _environment(first: Commit, second: Commit) -> JSON:
    """What a state was saved with; a version in which nothing has run has none, and takes the other's."""
    return first.detail.get("environment") or second.detail.get("environment")


@dataclass(frozen=True, slots=True)
class _Version:
    """The contents of one commit. Among the names are those that have no row in the commit: these have a `label`."""

    names: Tree
    groups: Tree
    files: Tree
    ambient: Mapping[str, str]
    lost: Mapping[str, list[list[str]]]

    @classmethod
    def of(cls, session: HeldSession, commit: Commit | None) -> _Version:
        if commit is None:
            return cls({}, {}, {}, {}, {})
        detail: Any = commit.detail
        lost: dict[str, list[list[str]]] = {}
        for row in detail.get("lost", ()):
            lost.setdefault(row[0], []).append(row)
        names, groups, files = (dict(session.tree(commit.trees.get(kind)).pairs()) for kind in _TREES)
        ambient: dict[str, str] = dict(detail.get("ambient", ()))
        for label in [one for one in ambient if one.startswith((DUNDER, DECLARED)) and one != _BOOKKEEPING]:
            key = ambient.pop(label)
            names[called(label)] = {"label": label, "type": "", "group": key, "record": groups.get(key)}
        return cls(names, groups, files, ambient, lost)

    def around(self, label: str) -> tuple[str, Any] | None:
        """Where something that surrounds the names is, and that group."""
        key = self.ambient.get(label)
        return None if key is None else (key, self.groups.get(key))

    def told(self, name: str) -> tuple[Any, Any]:
        """A name, and what is lost of it."""
        return self.names.get(name), self.lost.get(name)


class _Merging:
    """A merge under way: the first version, with what the second changed since the base."""

    def __init__(self, session: HeldSession, base: Commit | None, first: Commit, second: Commit, ours: Commit) -> None:
        self._session = session
        self._base, self._first, self._second = (_Version.of(session, one) for one in (base, first, second))
        self._ours = self._first if first is ours else self._second
        self._names, self._changed = three_way(self._base.names, self._first.names, self._second.names, is_same)
        self._groups, self._parted = three_way(self._base.groups, self._first.groups, self._second.groups)
        self._files, self._paths = merge_files(self._base.files, self._first.files, self._second.files)
        for label in _GENERATORS:
            if (own := self._ours.around(label)) is not None:
                put(self._groups, *own)
        self._dropped: list[list[str]] = []
        self._read: dict[str, list[str]] = {}

    def conflicts(self) -> dict[str, tuple[str, ...]]:
        """Names and files that both changed."""
        names = {*self._changed, *self._astray(), *(name for name, _ in self._lost() if name)}
        return {"names": tuple(sorted(names)), "files": tuple(sorted(self._paths))}

    def let_go(self, names: Iterable[str]) -> None:
        """Have the first version's of these names and of those that cannot stand beside them; tell which it has not."""
        let_go: set[str] = set()
        while astray := {*names, *self._astray()} - let_go:
            let_go |= astray
            rows = [self._first.names[name] for name in astray if name in self._first.names]
            for name in astray:
                put(self._names, name, self._first.names.get(name))
            for key in self._with_needs([row["group"] for row in rows]):
                self._groups[key] = self._first.groups[key]
        for name in sorted(let_go - self._base.names.keys() - self._first.names.keys()):
            if name in self._second.names:
                why = "what it is made of has the place of something else in the version that was preferred"
                self._dropped.append([name, self._second.names[name]["type"], why, _AGAIN])

    def trees(self, batch: Batch, first: Commit) -> dict[str, str | None]:
        """The roots of the trees, after `let_go`."""
        merged = {"names": self._names, "groups": self._groups, "files": self._files}
        return {
            kind: batch.tree(first.trees.get(kind), _changes(getattr(self._first, kind), tree))
            for kind, tree in merged.items()
        }

    def detail(self) -> dict[str, JSON]:
        """What surrounds the names, and what is lost, after `let_go`."""
        ambient: dict[str, str] = {row["label"]: row["group"] for row in self._names.values() if "label" in row}
        for label in sorted({*self._first.ambient, *self._second.ambient}):
            base, first, second = (one.around(label) for one in (self._base, self._first, self._second))
            chosen = self._ours.around(label) if label in _GENERATORS else second if first == base else first
            held = [one for one in (chosen, first, second) if one is not None and self._is_whole(label, one)]
            if base not in (first, second) and first != second and not label.startswith(_OF_ITSELF):
                self._dropped.append([called(label), "", "both versions changed it, and one of them was kept", _AGAIN])
            if chosen is not None and held:
                ambient[label] = held[0][0]
            elif chosen is not None:
                self._dropped.append(
                    [called(label), "", "the other version changed what it shares objects with", _AGAIN]
                )
        lost = [row for _, rows in self._lost() for row in rows] + self._dropped
        return {"ambient": [[label, key] for label, key in sorted(ambient.items())], "lost": lost}

    def _is_whole(self, label: str, around: tuple[str, Any]) -> bool:
        """Whether what surrounds the names is there as one version has it; of the last value, all that it refers to."""
        key, link = around
        if self._groups.get(key) != link or label != "@last":
            return bool(self._groups.get(key) == link)
        version = self._first if self._first.groups.get(key) == link else self._second
        return all(self._groups.get(need) == version.groups.get(need) for need in self._needs(link))

    def _lost(self) -> Iterator[tuple[str, list[list[str]]]]:
        """What is lost, name by name; the name comes with it where both versions changed it."""
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
        """Whether a group needs what the merge does not have of its version; one of both may have what one changed."""
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
