"""Commits, the names that lead to them, and the ways between: nothing here is ever changed, names apart."""

from __future__ import annotations

import difflib
import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from cellblock.documents import reading
from cellblock.errors import StoreError, UnknownCommit, UnknownSession
from cellblock.store.address import JSON, digest, linked, records, spelled
from cellblock.store.database import Database, blob, text
from cellblock.store.words import Commit, Head
from cellblock.text import valid

_SPEC = re.compile(r"(?P<name>[^~^]+)(?P<steps>(?:[~^][0-9]{0,9})*)")
_STEP = re.compile(r"([~^])([0-9]*)")
_PREFIX = re.compile(r"(?:sha256-)?([0-9a-f]{4,64})")
_SHOWN = 5
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


class History:
    """The commits of one session, read."""

    def __init__(self, database: Database, session_id: int, record: Callable[[str], JSON]) -> None:
        self._database = database
        self._session_id = session_id
        self._record = record

    def load(self, id: str) -> Commit:
        """A commit by its whole id."""
        return read_commit(id, self._record(id))

    def head(self) -> Head:
        """The session's position."""
        sql = (
            "SELECT s.head_branch, s.head_commit, r.address FROM sessions s LEFT JOIN refs r"
            " ON r.session_id = s.id AND r.kind = ? AND r.name = s.head_branch WHERE s.id = ?"
        )
        rows = self._database.select(sql, BRANCH, self._session_id)
        if not rows:
            raise UnknownSession("the session was deleted from the store")
        branch, detached, tip = rows[0]
        found = detached if branch is None else tip
        return Head(None if branch is None else text(branch), None if found is None else spelled(blob(found)))

    def refs(self, kind: str) -> dict[str, str]:
        """Branches or tags, by name."""
        sql = "SELECT name, address FROM refs WHERE session_id = ? AND kind = ? ORDER BY name"
        return {
            text(name): spelled(blob(address)) for name, address in self._database.select(sql, self._session_id, kind)
        }

    def has(self, id: str) -> bool:
        """True if a commit belongs to the session."""
        sql = "SELECT 1 FROM commits WHERE session_id = ? AND address = ?"
        return bool(self._database.select(sql, self._session_id, digest(id)))

    def resolve(self, spec: str) -> Commit:
        """The commit that `HEAD`, a branch, a tag, an id or its first digits lead to, then `~N` parents up or to the
        `^N`th.

        UnknownCommit: nothing, or more than one.
        """
        match = _SPEC.fullmatch(spec := valid(spec))
        if match is None:
            raise UnknownCommit(f"{spec[:80]!r} is not the name of a commit", hint=_HOW)
        commit = self.load(self._named(match["name"]))
        for sign, digits in _STEP.findall(match["steps"]):
            commit = self._up(commit, sign, int(digits or 1), spec)
        return commit

    def log(self, start: str) -> Iterator[Commit]:
        """The commits from `start` on, the deeper ones first; each is read once, when it is asked for.

        Of commits of one depth, that of the line of first parents is the first.
        """
        first = self.resolve(start)
        seen, found, line = {first.id}, {first.id: first}, first.id
        waiting = [_order(first)]
        while waiting:
            if (commit := found.pop(heapq.heappop(waiting)[-1], None)) is None:
                continue  # it was the line's
            yield commit
            for parent in commit.parents:
                if parent not in seen:
                    seen.add(parent)
                    found[parent] = self.load(parent)
                    heapq.heappush(waiting, _order(found[parent]))
            if commit.id == line and (line := commit.parents[0] if commit.parents else "") in found:
                heapq.heappush(waiting, _order(found[line], is_first=True))

    def ancestors(self, ones: Iterable[str], other: str) -> list[Commit]:
        """The newest commits from which both another and any of some come, deepest first. Reads what is between.

        None of them leads to another of them. There are several where versions were merged crosswise.
        """
        return [commit for commit, side in self._sides(ones, other) if side == _BOTH]

    def added(self, ones: Iterable[str], other: str) -> Iterator[Commit]:
        """The commits that lead to another and to none of some, deepest first. Reads what is between."""
        return (commit for commit, side in self._sides(ones, other) if side == _OTHER)

    def _sides(self, ones: Iterable[str], other: str) -> Iterator[tuple[Commit, int]]:
        """The commits that lead to some and another, deepest first, each with those to which it leads."""
        sides = dict.fromkeys(ones, 1)
        sides[other] = sides.get(other, 0) | _OTHER
        found = {id: self.load(id) for id in sides}
        waiting = [_order(commit) for commit in found.values()]
        heapq.heapify(waiting)
        while any(sides[id] < _BEHIND for *_, id in waiting):
            commit = found[heapq.heappop(waiting)[-1]]  # all that it leads to came before
            side = sides[commit.id]
            yield commit, side
            for parent in commit.parents:
                if parent not in found:
                    found[parent] = self.load(parent)
                    heapq.heappush(waiting, _order(found[parent]))
                sides[parent] = sides.get(parent, 0) | (_BEHIND if side >= _BOTH else side)

    # --- inside ---

    def _named(self, name: str) -> str:
        if name == "HEAD":
            head = self.head()
            if head.commit is None:
                raise UnknownCommit("the session has no commit yet")
            return head.commit
        sql = "SELECT address FROM refs WHERE session_id = ? AND name = ? ORDER BY kind"  # a branch before a tag
        rows = self._database.select(sql, self._session_id, name.replace("\0", "\ufffd"))
        return spelled(blob(rows[0][0])) if rows else self._by_prefix(name)

    def _by_prefix(self, name: str) -> str:
        match = _PREFIX.fullmatch(name)
        if match is None:
            raise UnknownCommit(f"no commit {name[:80]!r}", hint=self._near(name))
        low, high = match[1].ljust(64, "0"), match[1].ljust(64, "f")
        sql = "SELECT address FROM commits WHERE session_id = ? AND address BETWEEN ? AND ? ORDER BY address LIMIT ?"
        rows = self._database.select(sql, self._session_id, bytes.fromhex(low), bytes.fromhex(high), _SHOWN)
        if len(rows) == 1:
            return spelled(blob(rows[0][0]))
        if not rows:
            raise UnknownCommit(f"no commit {name[:80]!r}", hint=self._near(name))
        several = ", ".join(blob(row[0]).hex()[:16] for row in rows)
        raise UnknownCommit(f"{name!r} begins the ids of several commits", hint=f"give more digits: {several}")

    def _near(self, name: str) -> str:
        known = ["HEAD", *self.refs(BRANCH), *self.refs(TAG)]
        near = difflib.get_close_matches(name[:80], known, n=3) or known[:_SHOWN]
        return f"there is {', '.join(near)}"

    def _up(self, commit: Commit, sign: str, many: int, spec: str) -> Commit:
        if sign == "^":
            if many > len(commit.parents):
                raise UnknownCommit(f"{spec!r}: commit {shown(commit.id)} has {len(commit.parents)} parents")
            return self.load(commit.parents[many - 1]) if many else commit
        for step in range(many):
            if not commit.parents:
                raise UnknownCommit(f"{spec!r} goes past the first commit", hint=f"it is {step} up from there")
            commit = self.load(commit.parents[0])
        return commit


_HOW = "use HEAD, a branch, a tag or the first digits of an id, and ~N or ^N after it"


def shown(id: str) -> str:
    """An id as people are shown it: its first twelve digits."""
    return id[7:19]


def _order(commit: Commit, *, is_first: bool = False) -> tuple[int, bool, int, str]:
    """Deeper first, so that no commit comes before one that it is a parent of."""
    return (-commit.depth, not is_first, -commit.created, commit.id)
