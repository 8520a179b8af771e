"""Contents of one commit: objects, records and trees, gathered and stored before the commit that leads to them.

A record is stored only after everything that it links to, so a stored record never leads nowhere. What a batch links
to it has put itself, or it was reachable from a commit when the batch began; both are safe from a collection for as
long as a batch may take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Self, TypeAlias

from cellblock.errors import StoreDamaged, StoreError
from cellblock.hosting import clock
from cellblock.store import trie
from cellblock.store.address import JSON, address_of, canonical, links, parsed
from cellblock.store.database import Transaction
from cellblock.store.objects import LONGEST, MOST_RECORD, ObjectTable, Packed, pack
from cellblock.store.words import Commit

_FULL = 1 << 20
_OBJECT = 300
"""Bytes of an object beside its body: so few small ones are in one transaction that others who write wait little."""
_ASKED = 4096
"""Bytes from which it is cheaper to ask whether the store has an object than to compress it."""

Publish: TypeAlias = "Callable[[Batch, Commit, tuple[str, ...] | None, tuple[int, ...]], Commit]"
"""Makes a commit of a batch, of which id, parents, depth and time are still open; its parents, None for those of the
head; and the journal entries that it holds.
"""


class Batch:
    """One commit in the making. Of one thread at a time; holds up to 1 MB of what is not stored yet.

    Records count also as they are before they are compressed, since it holds them so.
    """

    def __init__(self, objects: ObjectTable, fetch: Callable[[str], bytes], publish: Publish) -> None:
        self._objects = objects
        self._fetch_stored = fetch
        self._publish = publish
        self._began: float | None = None
        self._there: set[str] = set()
        self._waiting: dict[str, Packed] = {}
        self._records: dict[str, bytes] = {}
        self._wanted: set[str] = set()
        """Records of the batch, and what they link to, since the last flush."""
        self._needed: set[str] = set()
        """The same until then."""
        self._size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is undone: what was put and leads nowhere is collected in time.

        Nothing is dropped either: a thread may be in the middle of the commit whose caller has gone.
        """

    def put(self, data: bytes | memoryview) -> str:
        """Store some bytes, unless the user has stored the same before; their address."""
        self._check_time()
        address = address_of(data)
        if not self._has(address, len(data)):
            self._add(pack(address, data))
        return address

    def record(self, value: JSON) -> str:
        """Store a record; its address. What it links to must be in the batch, or reachable from a commit."""
        self._check_time()
        data = canonical(value)
        if len(data) > MOST_RECORD:
            raise StoreError(
                f"a record of {len(data) / 2**20:,.0f} MB is more than the {MOST_RECORD >> 20} MB that are read of one",
                hint="have fewer names, or names and texts that are shorter",
            )
        address = address_of(data)
        self._wanted.update((address, *(link.address for link in links(value))))
        if not self._has(address, len(data)):
            self._records[address] = data
            self._size += len(data)
            self._add(pack(address, data))
        return address

    def known(self, addresses: Iterable[str]) -> set[str]:
        """The addresses of some that need not be put."""
        addresses = set(addresses)
        here = {one for one in addresses if one in self._there or one in self._waiting}
        found = self._objects.known(addresses - here)
        self._there |= found
        return here | found

    def tree(self, root: str | None, changes: Mapping[str, JSON]) -> str | None:
        """A tree with some keys set, and those whose value is None removed."""
        return trie.update(self._fetch, self.record, root, changes)

    def flush(self) -> None:
        """Store what was gathered. StoreDamaged: a record links to what is not stored. QuotaReached: no room."""
        missing = self._wanted - self._there - self._waiting.keys()
        missing -= self._objects.known(missing)
        if missing:
            address = min(missing)
            raise StoreDamaged(
                f"a record leads to {address}, which is not stored", hint="put it first", address=address
            )
        if self._waiting:
            self._objects.put(list(self._waiting.values()))
        self._there |= self._waiting.keys() | self._wanted
        self._needed |= self._wanted
        self._wanted.clear()
        self._waiting.clear()
        self._records.clear()
        self._size = 0

    def commit(
        self,
        *,
        kind: str,
        trees: Mapping[str, str | None],
        message: str = "",
        number: int = 0,
        snapshot: bool = True,
        detail: Mapping[str, JSON] | None = None,
        parents: tuple[str, ...] | None = None,
        entries: Iterable[int] = (),
    ) -> Commit:
        """Make a commit, durable when this returns, and move the branch or head to it, all at once.

        `parents`: those of the head unless given. `entries`: numbers of the journal entries that the commit holds; they
        leave the journal, and no others do. LeaseLost: another host has the session, nothing was written.
        """
        self._check_time()
        draft = Commit(
            id="",
            parents=(),
            created=0,
            depth=0,
            kind=kind,
            message=message,
            number=number,
            snapshot=snapshot,
            trees=trees,
            detail=detail or {},
        )
        return self._publish(self, draft, parents, tuple(entries))

    def acquit(self, transaction: Transaction) -> None:
        """Keep all that the records of the batch are and lead to, whatever a collection has condemned meanwhile."""
        self._objects.acquit(transaction.run, self._needed)

    # --- inside ---

    def _has(self, address: str, length: int) -> bool:
        if address in self._there or address in self._waiting:
            return True
        return length >= _ASKED and bool(self.known([address]))

    def _add(self, packed: Packed) -> None:
        self._waiting[packed.address] = packed
        self._size += len(packed.body) + _OBJECT
        if self._size >= _FULL:
            self.flush()

    def _fetch(self, address: str) -> JSON:
        data = self._records.get(address)
        return parsed(self._fetch_stored(address) if data is None else data)

    def _check_time(self) -> None:
        now = clock.now()
        if self._began is None:
            self._began = now
        elif now - self._began > LONGEST:
            raise StoreError(
                f"a commit was in the making for more than {LONGEST / 60:.0f} minutes", hint="begin a new batch"
            )
