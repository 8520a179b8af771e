"""Versions of a stored session, compared and merged. Reading them takes no lease and opens no session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from cellblock.differences import Diff, FileChange, Name, NameChange, StepTaken
from cellblock.errors import MergeConflict, UnknownCommit, UnknownSession
from cellblock.store import Commit, HeldSession, StoredSession

_MOST_STEPS = 1000
_MOST_TOLD = 20
_MERGED = ("groups", "names", "files")


def difference(session: StoredSession, before: Commit, after: Commit) -> Diff:
    """What lies between two commits. Trees that both share are not read."""
    return Diff(
        before=before.id,
        after=after.id,
        names=tuple(sorted(_names(session, before, after), key=lambda one: one.name)),
        files=tuple(sorted(_files(session, before, after), key=lambda one: one.path)),
        steps=tuple(_steps(session, before, after)),
        exact=before.snapshot and after.snapshot,
    )


def _names(session: StoredSession, before: Commit, after: Commit) -> Iterator[NameChange]:
    for change in _changes(session, before, after, "names"):
        yield NameChange(name=change.key, before=_name(change.old), after=_name(change.new))


def _files(session: StoredSession, before: Commit, after: Commit) -> Iterator[FileChange]:
    for change in _changes(session, before, after, "files"):
        yield FileChange(path=change.key, before=_size(change.old), after=_size(change.new))


def _changes(session: StoredSession, before: Commit, after: Commit, kind: str) -> Iterator[Any]:
    return session.tree(before.trees.get(kind)).diff(session.tree(after.trees.get(kind)))


def _name(plain: Any) -> Name | None:
    return None if plain is None else Name(type=plain["type"], size=plain["size"], preview=plain["preview"])


def _size(plain: Any) -> int | None:
    return None if plain is None else int(plain["size"])


def _steps(session: StoredSession, before: Commit, after: Commit) -> list[StepTaken]:
    shared = session.ancestor(before.id, after.id)
    steps: list[StepTaken] = []
    for commit in session.log(after.id):
        if (shared is not None and commit.depth <= shared.depth) or len(steps) >= _MOST_STEPS:
            break
        steps.append(StepTaken(commit=commit.id, kind=commit.kind, number=commit.number, message=commit.message))
    return steps[::-1]


def find(session: HeldSession, other: str) -> Commit:
    """The commit that a revision means, or where another session of the user stands; `UnknownCommit` if neither."""
    try:
        return session.resolve(other)
    except UnknownCommit as unknown:
        try:
            head = session.adopt(other)
        except UnknownSession:
            raise unknown from None
        if head.commit is None:
            raise
        return session.resolve(head.commit)


def merge(session: HeldSession, theirs: Commit, prefer: Literal["ours", "theirs"] | None) -> Commit:
    """Make a commit of what the session and another commit both changed since they parted: names and files.

    Names that share objects change together. `MergeConflict` where both changed the same, unless one is preferred.
    """
    ours = session.resolve("HEAD")
    base = session.ancestor(ours.id, theirs.id)
    first, second = (theirs, ours) if prefer == "theirs" else (ours, theirs)
    trees = dict(ours.trees)
    conflicts: dict[str, tuple[str, ...]] = {}
    with session.batch() as batch:
        for kind in _MERGED:
            roots = (one.trees.get(kind) if one is not None else None for one in (base, first, second))
            merged = batch.merge(*roots)
            trees[kind] = merged.root
            if kind != "groups":  # what names and files are made of: who changes one changes those
                conflicts[kind] = merged.conflicts
        if prefer is None and any(conflicts.values()):
            raise _conflict(theirs, conflicts)
        return batch.commit(
            kind="merge",
            message=f"merged {theirs.id.removeprefix('sha256-')[:12]}",
            number=max(ours.number, theirs.number),
            trees=trees,
            detail=first.detail,
            parents=(ours.id, theirs.id),
        )


def _conflict(theirs: Commit, conflicts: dict[str, tuple[str, ...]]) -> MergeConflict:
    listed = [f"{kind}: {', '.join(sorted(keys)[:_MOST_TOLD])}" for kind, keys in conflicts.items() if keys]
    return MergeConflict(
        f"both changed {'; '.join(listed)}",
        hint='make one of them as the other is, or merge(…, prefer="ours") or prefer="theirs"',
        names=tuple(sorted(conflicts["names"])),
        files=tuple(sorted(conflicts["files"])),
    )
