"""Versions of a stored session, found and compared. Reading them takes no lease and opens no session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from cellblock.differences import Diff, FileChange, NameChange, StepTaken
from cellblock.documents import reading
from cellblock.errors import CellblockError, StoreError, UnknownCommit, UnknownSession
from cellblock.session.commits import name_of, size_of
from cellblock.session.hoststeps import is_own
from cellblock.session.past import is_deletion, step_of
from cellblock.store import Commit, HeldSession, Store, StoredSession

_MOST_STEPS = 1000


def difference(session: StoredSession, before: Commit, after: Commit) -> Diff:
    """Difference between two commits. Trees that both share are not read."""
    with reading("a stored state is", StoreError):
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
        if not is_same(change.old, change.new):
            old, new = (None if row is None else name_of(row) for row in (change.old, change.new))
            yield NameChange(name=change.key, before=old, after=new)


def _files(session: StoredSession, before: Commit, after: Commit) -> Iterator[FileChange]:
    for change in _changes(session, before, after, "files"):
        if not is_cache(change.key):
            old, new = (None if row is None else size_of(row) for row in (change.old, change.new))
            yield FileChange(path=change.key, before=old, after=new)


CACHES = ("tmp/.cache/", "workspace/.cache/")
COMPILED = "__pycache__"
"""The directory's name, wherever it is."""


def is_same(before: Any, after: Any) -> bool:
    """True if two rows of a name are of one value: its own size and how it shows may differ where nothing changed."""
    return before == after or bool(before and after and before.get("record", before) == after.get("record", after))


def is_cache(path: str) -> bool:
    """True if a file is a cache of libraries', which they make again: kept with the rest, and no change of a cell's.
    """
    return f"{path}/".startswith(CACHES) or f"/{COMPILED}/" in f"{path}/"


def _changes(session: StoredSession, before: Commit, after: Commit, kind: str) -> Iterator[Any]:
    return session.tree(before.trees.get(kind)).diff(session.tree(after.trees.get(kind)))


def _steps(session: StoredSession, before: Commit, after: Commit) -> list[StepTaken]:
    newest = list(islice(session.added(before.id, after.id), _MOST_STEPS))
    return [StepTaken(commit=one.id, kind=one.kind, number=one.number, message=one.message) for one in newest[::-1]]


def before(session: StoredSession, steps: int) -> Commit:
    """The commit that so many steps lead back to; `UnknownCommit` if there are too few.

    A cell that was rolled back is no step.
    """
    commit, undone = session.resolve("HEAD"), 0
    while undone < steps:
        if not commit.parents:
            many = f"{steps} step{'s' * (steps != 1)}"
            raise UnknownCommit(f"undoing {many} goes past the first commit", hint=f"{undone} can be undone")
        undone += is_own(commit.kind, commit.detail.get("during")) and not commit.detail.get("rolled_back")
        commit = session.resolve(commit.parents[0])
    return commit


def led_to(session: StoredSession, stands: str, step: str, known: str | None) -> Commit:
    """The commit that a step led to, of those that lead to the one where the session `stands`: 0.1 ms for each between.

    CellblockError where it is none of these; it names the commit where that is `known`.
    """
    newest: Commit | None = None
    for commit in first_parents(session.log(stands)):
        newest = newest or commit  # one that only deletes cells stands for the commit before
        if step_of(commit) == step:
            return newest
        if not is_deletion(commit):
            newest = None
    raise CellblockError(
        f"the session cannot go back to step {step[:80]!a}: it did not lead to where the session stands",
        hint=f"checkout({'…' if known is None else repr(known[:19])}) goes to any commit of the session, undone or not",
    )


def deleted_since(session: StoredSession, stands: str, since: str) -> set[str]:
    """The cells that were deleted since a commit, of those that lead to the one where the session `stands`."""
    deleted: set[str] = set()
    for commit in first_parents(session.log(stands)):
        if commit.id == since:
            break
        told: Any = commit.detail.get("deleted", ())
        deleted.update(told)
    return deleted


def first_parents(log: Iterable[Commit]) -> Iterator[Commit]:
    """The commits of a log without those that were merged: `HEAD`, `HEAD~1`, and so on."""
    wanted: str | None = None
    for commit in log:
        if wanted in (None, commit.id):
            yield commit
            wanted = commit.parents[0] if commit.parents else ""


def find(store: Store, session: HeldSession, other: str) -> Commit:
    """The commit at which another session of the user stands, or else the commit of a revision; `UnknownCommit` if
    neither.

    CellblockError where what that session did last is in its journal alone.
    """
    try:
        if other != session.name and any(store.read(session.user, other).readable()):
            raise CellblockError(
                f"nothing was merged: what session {other[:80]!r} did last is not in a commit yet",
                hint="open it, so that it is resumed, or flush() it where it is open; then merge",
            )
        head = session.adopt(other)
    except UnknownSession:
        try:
            return session.resolve(other)
        except UnknownCommit as unknown:
            message = f"{other[:80]!r} is no session of the user {session.user!r}, and no revision of this session"
            raise UnknownCommit(message, hint=unknown.hint) from None
    if head.commit is None:
        raise UnknownCommit(f"session {other[:80]!r} has no commit yet")
    return session.resolve(head.commit)


def adopted(session: HeldSession, other: HeldSession, commit: str) -> Commit:
    """A commit of another session, which must be of the same user and in the same store."""
    with suppress(UnknownSession, UnknownCommit):
        if other.user == session.user:
            session.adopt(other.name)
            return session.resolve(commit)
    message = f"session {other.name!r} of {other.user!r} is of another user than {session.name!r}, or in another store"
    raise CellblockError(message, hint="merge a branch of the session")


def why_private(store: Store, user: str, other: str) -> str:
    """Why the user's session of that name holds private data; "" where it does not, or there is none."""
    try:
        return str(store.read(user, other).settings.get("private") or "")
    except UnknownSession:
        return ""
