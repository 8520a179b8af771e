"""A stored session, read: by anyone who may open the store, whoever holds it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping

from cellblock.errors import StoreDamaged
from cellblock.store import trie
from cellblock.store.address import JSON, parsed
from cellblock.store.catalogue import Found, damaged_settings
from cellblock.store.database import Database
from cellblock.store.history import BRANCH, TAG, History
from cellblock.store.objects import ObjectTable
from cellblock.store.reaching import damaged_entry, entries_of
from cellblock.store.words import Change, Commit, Entry, Head

_CACHED = 8 << 20


class Tree(Mapping[str, JSON]):
    """A stored map, read as it is asked for; its keys come ordered by their hashes."""

    def __init__(self, fetch: trie.Fetch, root: str | None) -> None:
        self._fetch = fetch
        self.root = root

    def __getitem__(self, key: str) -> JSON:
        return trie.lookup(self._fetch, self.root, key)

    def __len__(self) -> int:
        return trie.count(self._fetch, self.root)

    def __iter__(self) -> Iterator[str]:
        return trie.keys(self._fetch, self.root)

    def pairs(self) -> Iterator[tuple[str, JSON]]:
        """Every key and its value; `items()` looks each up by itself."""
        return trie.items(self._fetch, self.root)

    def diff(self, newer: Tree) -> Iterator[Change]:
        """Changes of keys to a newer tree; parts that are the same in both are not read."""
        return trie.diff(self._fetch, self.root, newer.root)


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
        self._cache = _Cache(objects.get_record)
        self._history = History(database, found.session_id, self.record)

    @property
    def settings(self) -> Mapping[str, JSON]:
        """The settings that it was given. StoreError: they are damaged."""
        if self._settings is None:
            raise damaged_settings(self.user, self.name)
        return self._settings

    def head(self) -> Head:
        """The session's position."""
        return self._history.head()

    def branches(self) -> dict[str, str]:
        """The newest commit of each branch."""
        return self._history.refs(BRANCH)

    def tags(self) -> dict[str, str]:
        """The commit of each tag."""
        return self._history.refs(TAG)

    def resolve(self, spec: str) -> Commit:
        """The commit that `HEAD~3`, a branch, a tag, or the first digits of an id lead to. UnknownCommit: none."""
        return self._history.resolve(spec)

    def log(self, start: str = "HEAD") -> Iterator[Commit]:
        """The commits from `start` on, newest first, merged ones among them; each is read when it is asked for."""
        return self._history.log(start)

    def ancestors(self, ones: Iterable[str], other: str) -> list[Commit]:
        """The newest commits from which both another and any of some come, deepest first; none leads to another."""
        return self._history.ancestors([self.resolve(one).id for one in ones], self.resolve(other).id)

    def added(self, before: str, after: str) -> Iterator[Commit]:
        """The commits that led to one and not to another before, deepest first; each is read when it is asked for."""
        return self._history.added([self.resolve(before).id], self.resolve(after).id)

    def tree(self, root: str | None) -> Tree:
        """The tree of a root, as commits name it."""
        return Tree(self.record, root)

    def get(self, address: str) -> bytes:
        """The bytes of an object, which are those that its address names. StoreDamaged: they cannot be had."""
        return self._telling(address, self._objects.get)

    def get_many(self, addresses: Iterable[str], most: int | None = None) -> Iterator[bytes]:
        """The bytes of several objects, in order: a few statements for all. StoreDamaged: one of them cannot be had.

        None may have more than `most`, or else than `read_at_most` has said.
        """
        for address, data in self._objects.get_many(addresses, most):
            yield self._telling(address, self._objects.get) if isinstance(data, StoreDamaged) else data

    def read_at_most(self, most: int) -> None:
        """Bytes of an object, from now on."""
        self._objects.most = most

    def record(self, address: str) -> JSON:
        """Contents of a record."""
        return parsed(self._telling(address, self._cache.get))

    def journal(self) -> list[Entry]:
        """Entries noted after the newest commit, in order. StoreError: one is damaged."""
        entries, damaged = self.readable()
        if damaged:
            raise damaged_entry(self._database, self._id, damaged[0])
        return entries

    def readable(self) -> tuple[list[Entry], list[int]]:
        """The same, without those that are damaged; and the numbers of these."""
        return entries_of(self._database, self._id)

    def _telling(self, address: str, get: Callable[[str], bytes]) -> bytes:
        """Add to damage what it costs; that is looked for only then."""
        try:
            return get(address)
        except StoreDamaged as damage:
            from cellblock.store.verifying import first_referrer

            found = first_referrer(self._database, self._objects, self._id, address)
            where = f"; {found} needs it" if found else ""
            raise StoreDamaged(
                f"{damage.args[0]}{where}", hint="cellblock sessions verify lists all that is lost", address=address
            ) from None


class _Cache:
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
