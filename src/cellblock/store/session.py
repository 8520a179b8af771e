"""A stored session, read: by anyone who may open the store, whoever holds it."""

from __future__ import annotations

import difflib
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from cellblock.errors import StoreDamaged, UnknownCommit, UnknownSession
from cellblock.store import history
from cellblock.store.address import JSON, parsed, spelled
from cellblock.store.catalogue import Found, damaged_settings
from cellblock.store.database import Database, blob, text
from cellblock.store.history import BRANCH, TAG, damaged_entry, entries_of, read_commit, shown
from cellblock.store.objects import MOST_RECORD, ObjectTable
from cellblock.store.trie import Tree
from cellblock.store.upkeep import first_referrer
from cellblock.store.words import Commit, Entry, Head
from cellblock.text import valid

_CACHED = 8 << 20
_SPEC = re.compile(r"(?P<name>[^~^]+)(?P<steps>(?:[~^][0-9]{0,9})*)")
_STEP = re.compile(r"([~^])([0-9]*)")
_PREFIX = re.compile(r"(?:sha256-)?([0-9a-f]{4,64})")
_SHOWN = 5


class StoredSession:
    """A session in the store, read. Others may be writing: each call sees what is committed then."""

    def __init__(self, database: Database, objects: ObjectTable, user: str, name: str, found: Found) -> None:
        self.user = user
        self.name = name
        self.created = found.created
        self._settings = found.settings
        self._database = database
        self._objects = objects
        self._id = found.session_id
        self._cache = _RecordCache(partial(objects.get, most=MOST_RECORD))

    @property
    def settings(self) -> Mapping[str, JSON]:
        """The settings that it was given. StoreError: they are damaged."""
        if self._settings is None:
            raise damaged_settings(self.user, self.name)
        return self._settings

    # --- commits and names ---

    def head(self) -> Head:
        """The session's position."""
        sql = (
            "SELECT s.head_branch, s.head_commit, r.address FROM sessions s LEFT JOIN refs r"
            " ON r.session_id = s.id AND r.kind = ? AND r.name = s.head_branch WHERE s.id = ?"
        )
        rows = self._database.select(sql, BRANCH, self._id)
        if not rows:
            raise UnknownSession("the session was deleted from the store")
        branch, detached, tip = rows[0]
        found = detached if branch is None else tip
        return Head(None if branch is None else text(branch), None if found is None else spelled(blob(found)))

    def branches(self) -> dict[str, str]:
        """The newest commit of each branch."""
        return self._refs(BRANCH)

    def tags(self) -> dict[str, str]:
        """The commit of each tag."""
        return self._refs(TAG)

    def resolve(self, spec: str) -> Commit:
        """The commit that `HEAD`, a branch, a tag, an id or its first digits lead to, then `~N` parents up or to the
        `^N`th.

        UnknownCommit: nothing, or more than one.
        """
        match = _SPEC.fullmatch(spec := valid(spec))
        if match is None:
            how = "use HEAD, a branch, a tag or the first digits of an id, and ~N or ^N after it"
            raise UnknownCommit(f"{spec[:80]!r} is not the name of a commit", hint=how)
        commit = self._load(self._named(match["name"]))
        for sign, digits in _STEP.findall(match["steps"]):
            commit = self._up(commit, sign, int(digits or 1), spec)
        return commit

    def log(self, start: str = "HEAD") -> Iterator[Commit]:
        """The commits from `start` on, newest first, merged ones among them; each is read when it is asked for."""
        return history.log(self._load, self.resolve(start))

    def ancestors(self, ones: Iterable[str], other: str) -> list[Commit]:
        """The newest commits from which both another and any of some come, deepest first; none leads to another."""
        return history.ancestors(self._load, [self.resolve(one).id for one in ones], self.resolve(other).id)

    def added(self, before: str, after: str) -> Iterator[Commit]:
        """The commits that led to one and not to another before, deepest first; each is read when it is asked for."""
        return history.added(self._load, self.resolve(before).id, self.resolve(after).id)

    # --- contents ---

    def tree(self, root: str | None) -> Tree:
        """The tree of a root, as commits name it."""
        return Tree(self.record, root)

    def get(self, address: str) -> bytes:
        """The bytes of an object, which are those that its address names. StoreDamaged: they cannot be had."""
        return self._with_referrer(address, self._objects.get)

    @property
    def most_bytes(self) -> int:
        """Bytes of an object that are read, and of what several are together."""
        return self._objects.most

    def get_many(self, addresses: Iterable[str], most: int | None = None) -> Iterator[bytes]:
        """The bytes of several objects, in order: a few statements for all. StoreDamaged: one of them cannot be had.

        None may have more than `most`, or else than `read_at_most` has said.
        """
        for address, data in self._objects.get_many(addresses, most):
            yield self._with_referrer(address, self._objects.get) if isinstance(data, StoreDamaged) else data

    def read_at_most(self, most: int) -> None:
        """Bytes of an object, from now on."""
        self._objects.most = most

    def record(self, address: str) -> JSON:
        """Contents of a record."""
        return parsed(self._with_referrer(address, self._cache.get))

    def journal(self) -> list[Entry]:
        """Entries noted after the newest commit, in order. StoreError: one is damaged."""
        entries, damaged = self.readable()
        if damaged:
            raise damaged_entry(self._database, self._id, damaged[0])
        return entries

    def readable(self) -> tuple[list[Entry], list[int]]:
        """The same, without those that are damaged; and the numbers of these."""
        return entries_of(self._database, self._id)

    # --- inside ---

    def _load(self, id: str) -> Commit:
        return read_commit(id, self.record(id))

    def _refs(self, kind: str) -> dict[str, str]:
        sql = "SELECT name, address FROM refs WHERE session_id = ? AND kind = ? ORDER BY name"
        return {text(name): spelled(blob(address)) for name, address in self._database.select(sql, self._id, kind)}

    def _named(self, name: str) -> str:
        """The id that a name leads to."""
        if name == "HEAD":
            if (commit := self.head().commit) is None:
                raise UnknownCommit("the session has no commit yet")
            return commit
        sql = "SELECT address FROM refs WHERE session_id = ? AND name = ? ORDER BY kind"  # a branch before a tag
        if rows := self._database.select(sql, self._id, name.replace("\0", "\ufffd")):
            return spelled(blob(rows[0][0]))
        if (match := _PREFIX.fullmatch(name)) is not None:
            low, high = (bytes.fromhex(match[1].ljust(64, digit)) for digit in "0f")
            sql = "SELECT address FROM commits WHERE session_id = ? AND address BETWEEN ? AND ? ORDER BY address"
            rows = self._database.select(f"{sql} LIMIT {_SHOWN}", self._id, low, high)
        if not rows:
            known = ["HEAD", *self.branches(), *self.tags()]
            near = difflib.get_close_matches(name[:80], known, n=3) or known[:_SHOWN]
            raise UnknownCommit(f"no commit {name[:80]!r}", hint=f"there is {', '.join(near)}")
        if len(rows) > 1:
            several = ", ".join(blob(row[0]).hex()[:16] for row in rows)
            raise UnknownCommit(f"{name!r} begins the ids of several commits", hint=f"give more digits: {several}")
        return spelled(blob(rows[0][0]))

    def _up(self, commit: Commit, sign: str, many: int, spec: str) -> Commit:
        if sign == "^":
            if many > len(commit.parents):
                raise UnknownCommit(f"{spec!r}: commit {shown(commit.id)} has {len(commit.parents)} parents")
            return self._load(commit.parents[many - 1]) if many else commit
        for step in range(many):
            if not commit.parents:
                raise UnknownCommit(f"{spec!r} goes past the first commit", hint=f"it is {step} up from there")
            commit = self._load(commit.parents[0])
        return commit

    def _with_referrer(self, address: str, get: Callable[[str], bytes]) -> bytes:
        """Add to damage what it costs; that is looked for only then."""
        try:
            return get(address)
        except StoreDamaged as damage:
            found = first_referrer(self._database, self._objects, self._id, address)
            where = f"; {found} needs it" if found else ""
            raise StoreDamaged(
                f"{damage.args[0]}{where}",
                hint=damage.hint or "cellblock sessions verify lists all that is lost",
                address=address,
            ) from None


class _RecordCache:
    """The records that were read last, up to 8 MB: a commit reads those that the one before has written."""

    def __init__(self, get: Callable[[str], bytes]) -> None:
        self._get = get
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0

    def get(self, address: str) -> bytes:
        with self._lock:
            data = self._kept.get(address)
            if data is not None:
                self._kept.move_to_end(address)
                return data
        data = self._get(address)
        with self._lock:
            if address not in self._kept:
                self._kept[address] = data
                self._size += len(data)
            while self._size > _CACHED:
                self._size -= len(self._kept.popitem(last=False)[1])
        return data
