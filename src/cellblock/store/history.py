"""Commits as records and the ways between them, and the journal's entries, read: nothing here is ever changed."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping

from cellblock.documents import reading
from cellblock.errors import StoreError
from cellblock.store.address import CHANGED, JSON, linked, records, unsummed
from cellblock.store.database import Database, number, text
from cellblock.store.words import Commit, Entry

Load = Callable[[str], Commit]
"""The commit of an id."""

_OTHER, _BOTH, _BEHIND = 2, 3, 7
"""A commit from which the second side comes alone, one from which both come, and one that leads to another such."""

BRANCH, TAG = "branch", "tag"


def commit_record(commit: Commit) -> dict[str, JSON]:
    """A commit as JSON: its id is the address of this, so every field but that is in it."""
    return {
        "format": 1,
        "parents": records(*commit.parents),
        "created": commit.created,
        "depth": commit.depth,
        "kind": commit.kind,
        "message": commit.message,
        "number": commit.number,
        "snapshot": commit.snapshot,
        "trees": {name: None if root is None else records(root) for name, root in commit.trees.items()},
        "detail": commit.detail,
    }


def read_commit(id: str, record: JSON) -> Commit:
    """A commit from its JSON. StoreError: it is none, or of a newer format."""
    if not isinstance(record, Mapping) or record.get("format") != 1:
        raise StoreError(f"object {id} is not a commit that this version of cellblock reads", hint="upgrade cellblock")
    with reading(f"commit {id} is", StoreError):
        return _read(id, record)


def _read(id: str, record: Mapping[str, JSON]) -> Commit:
    trees, detail, created, depth, number = (record[key] for key in ("trees", "detail", "created", "depth", "number"))
    if not isinstance(trees, Mapping) or not isinstance(detail, Mapping):
        raise TypeError("trees and detail are mappings")
    if not isinstance(created, int) or not isinstance(depth, int) or not isinstance(number, int):
        raise TypeError("created, depth and number are integers")
    return Commit(
        id=id,
        parents=linked(record["parents"]),
        created=created,
        depth=depth,
        kind=str(record["kind"]),
        message=str(record["message"]),
        number=number,
        snapshot=bool(record["snapshot"]),
        trees={name: None if link is None else linked(link)[0] for name, link in trees.items()},
        detail=detail,
    )


def shown(id: str) -> str:
    """An id as people are shown it: its first twelve digits."""
    return id[7:19]


def entries_of(database: Database, session_id: int) -> tuple[list[Entry], list[int]]:
    """The entries of a journal that can be read, in order, and the numbers of those that are damaged."""
    found, damaged = list[Entry](), list[int]()
    sql = "SELECT number, entry FROM journal WHERE session_id = ? ORDER BY number"
    for row in database.select(sql, session_id):
        place = number(row[0])
        try:
            found.append(Entry(place, unsummed(text(row[1]), session_id, place)))
        except StoreError:
            damaged.append(place)
    return found, damaged


def damaged_entry(database: Database, session_id: int, entry: int) -> StoreError:
    """The error of who needs all entries of a journal."""
    sql = "SELECT u.name, s.name FROM sessions s JOIN users u ON u.id = s.user_id WHERE s.id = ?"
    whose = "".join(f" of session {name!r} of {user!r}" for user, name in database.select(sql, session_id))
    hint = "open the session: it goes on without that entry, and says so"
    return StoreError(f"entry {entry} of the journal{whose} {CHANGED}", hint=hint)


def log(load: Load, first: Commit) -> Iterator[Commit]:
    """A commit and all that it comes from, the deeper ones first; each is read once, when it is asked for.

    Of commits of one depth, that of the line of first parents is the first.
    """
    seen, found, line = {first.id}, {first.id: first}, first.id
    waiting = [_order(first)]
    while waiting:
        if (commit := found.pop(heapq.heappop(waiting)[-1], None)) is None:
            continue  # it was the line's
        yield commit
        for parent in commit.parents:
            if parent not in seen:
                seen.add(parent)
                found[parent] = load(parent)
                heapq.heappush(waiting, _order(found[parent]))
        if commit.id == line and (line := commit.parents[0] if commit.parents else "") in found:
            heapq.heappush(waiting, _order(found[line], is_first=True))


def ancestors(load: Load, ones: Iterable[str], other: str) -> list[Commit]:
    """The newest commits from which both another and any of some come, deepest first. Reads what is between.

    None of them leads to another of them. There are several where versions were merged crosswise.
    """
    return [commit for commit, side in _sides(load, ones, other) if side == _BOTH]


def added(load: Load, before: str, after: str) -> Iterator[Commit]:
    """The commits that lead to one and not to another before, deepest first. Reads what is between."""
    return (commit for commit, side in _sides(load, [before], after) if side == _OTHER)


def _sides(load: Load, ones: Iterable[str], other: str) -> Iterator[tuple[Commit, int]]:
    """The commits that lead to some and another, deepest first, each with those to which it leads."""
    sides = dict.fromkeys(ones, 1)
    sides[other] = sides.get(other, 0) | _OTHER
    found = {id: load(id) for id in sides}
    waiting = [_order(commit) for commit in found.values()]
    heapq.heapify(waiting)
    while any(sides[id] < _BEHIND for *_, id in waiting):
        commit = found[heapq.heappop(waiting)[-1]]  # all that it leads to came before
        side = sides[commit.id]
        yield commit, side
        for parent in commit.parents:
            if parent not in found:
                found[parent] = load(parent)
                heapq.heappush(waiting, _order(found[parent]))
            sides[parent] = sides.get(parent, 0) | (_BEHIND if side >= _BOTH else side)


def _order(commit: Commit, *, is_first: bool = False) -> tuple[int, bool, int, str]:
    """Deeper first, so that no commit comes before one that it is a parent of."""
    return (-commit.depth, not is_first, -commit.created, commit.id)
