"""Objects of one user: put, found again by address, read. Users share none, so a guessed address leads nowhere.

An object is compressed where that saves a tenth, and hashed again when it is read. Where the store has a place for
large ones, a body of 64 KB and more lies there, under a key that no other put has.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from cellblock.errors import QuotaReached, StoreDamaged, StoreError
from cellblock.store.address import address_of, digest, spelled
from cellblock.store.database import (
    Database,
    Row,
    Uncertain,
    Value,
    blob,
    number,
    only,
    placed,
    risen,
    text,
)
from cellblock.store.places import Place
from cellblock.store.words import Quota

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

T = TypeVar("T")

GRACE = 3600.0
"""Seconds that a collection waits, at the least, between finding that nothing leads to an object and deleting it."""
LONGEST = GRACE / 2
"""Seconds that a batch may take. What was condemned within as many is there for it: it is committed before the object
is deleted, and acquits it.
"""
LARGE = 64 * 1024
_AT_ONCE = 400
_IN_MEMORY = 4 << 20
MOST_BYTES, MOST_RECORD = 512 << 20, 64 << 20
"""Bytes that an object may have, and a record: some that compress well take thousands of times what a store holds."""

RAW, ZSTD = 0, 1
_LEVEL = 1
"""On pickles, arrays and source, level 3 takes a fifth longer and saves no more than a fiftieth."""
_WORTH = 0.9
_SMALL = 128
_SAMPLED = 64 * 1024
_PIECE = 4096


@dataclass(frozen=True, slots=True)
class Packed:
    """One object: its address, how its body is coded (RAW, ZSTD), its length in bytes uncoded, its body.

    `place` is the key under which the body lies outside of the database, "" where it lies inside.
    """

    address: str
    codec: int
    length: int
    body: bytes
    place: str = ""


class ObjectTable:
    """The objects of one user in a database, and those of them that lie outside of it."""

    def __init__(
        self, database: Database, place: Place | None, user_id: int, prefix: str, default: Quota,
        note: Callable[[], object] = int,
    ) -> None:  # fmt: skip
        """`note` is called before a body is put into the place."""
        self._database = database
        self._place = place
        self._user_id = user_id
        self._root = prefix
        self._note = note
        self.prefix = f"{prefix}/{user_id}"
        self._default = default
        self.most = MOST_BYTES
        """Bytes of an object that is read."""

    def known(self, addresses: Iterable[str]) -> set[str]:
        """Those of some addresses that are stored, and will be for as long as a batch may take."""
        found: dict[str, Value] = {}
        for some in in_parts(addresses, _AT_ONCE):
            sql = "SELECT address, condemned FROM objects WHERE user_id = ? AND address IN (??)"
            rows = self._database.select(placed(sql, some), self._user_id, *map(digest, some))
            found.update((spelled(blob(row[0])), row[1]) for row in rows)
        if condemned := {one: at for one, at in found.items() if at is not None}:
            since = self._database.now() - LONGEST
            return found.keys() - {one for one, at in condemned.items() if not isinstance(at, float) or at < since}
        return set(found)

    def acquit(self, run: Callable[..., int], addresses: Iterable[str]) -> int:
        """Have those of some objects be condemned no more that are: how many. `run` executes a statement."""
        sql = "UPDATE objects SET condemned = NULL WHERE user_id = ? AND condemned IS NOT NULL AND address IN (??)"
        return sum(run(placed(sql, some), self._user_id, *map(digest, some)) for some in in_parts(addresses, _AT_ONCE))

    def put(self, objects: Sequence[Packed]) -> None:
        """Store those that are not there yet. QuotaReached: the user has no room for them; none is stored then."""
        moved: list[Packed] = []
        try:
            moved.extend(map(self._put_outside, objects))
            unneeded = self._stored(moved)
        except Uncertain:  # what was stored after all is there the second time; a body outside is a stray then
            unneeded = self._stored([self._put_outside(one) for one in objects])
        except StoreError:
            with suppress(StoreError):  # a collection finds what stays
                self._delete_bodies(one.place for one in moved if one.place)
            raise
        self._delete_bodies(unneeded)

    def get(self, address: str, most: int | None = None) -> bytes:
        """The bytes of one object. StoreDamaged: it is missing, its bytes are others, or more than may be read."""
        rows = self._database.select(f"{_SELECT} address = ?", self._user_id, digest(address))
        return self._unpacked(address, _packed(rows[0]) if rows else None, most)

    def get_many(
        self, addresses: Iterable[str], most: int | None = None
    ) -> Iterator[tuple[str, bytes | StoreDamaged]]:
        """Each address with its bytes, or with what is wrong with it, in order; holds some 4 MB at a time."""
        for part in self._parts(addresses):
            rows = self._database.select(placed(f"{_SELECT} address IN (??)", part), self._user_id, *map(digest, part))
            found = {one.address: one for one in map(_packed, rows)}
            for address in part:
                try:
                    data: bytes | StoreDamaged = self._unpacked(address, found.get(address), most)
                except StoreDamaged as damage:
                    data = damage
                yield address, data

    def listed(self) -> Iterator[tuple[str, int]]:
        """Every address and the bytes its body takes, in order."""
        last = b""
        sql = "SELECT address, stored FROM objects WHERE user_id = ? AND address > ? ORDER BY address LIMIT 10000"
        while rows := self._database.select(sql, self._user_id, last):
            for row in rows:
                last = risen(last, blob(row[0]))
                yield spelled(last), number(row[1])

    # --- inside ---

    def _parts(self, addresses: Iterable[str]) -> Iterator[list[str]]:
        """Addresses in lists whose bytes take some 4 MB together."""
        for some in in_parts(addresses, _AT_ONCE):
            sql = placed("SELECT address, length FROM objects WHERE user_id = ? AND address IN (??)", some)
            rows = self._database.select(sql, self._user_id, *map(digest, some))
            sizes = {spelled(blob(address)): number(length) for address, length in rows}
            yield from by_size(((address, sizes.get(address, 0)) for address in some), _IN_MEMORY)

    def _unpacked(self, address: str, packed: Packed | None, most: int | None) -> bytes:
        if packed is None:
            raise StoreDamaged(f"object {address} is missing from the store", address=address)
        return unpack(self._with_body(packed), self.most if most is None else most)

    def _put_outside(self, packed: Packed) -> Packed:
        if self._place is None or len(packed.body) < LARGE:
            return packed
        require_place(self._place, self._root, self._database)
        self._note()
        return replace(packed, place=self._place.put(f"{self.prefix}/{packed.address}", packed.body))

    def _delete_bodies(self, keys: Iterable[str]) -> None:
        for key in keys:
            assert self._place is not None
            self._place.delete(key)

    def _with_body(self, packed: Packed) -> Packed:
        if not packed.place:
            return packed
        if self._place is None:
            raise StoreError(
                f"object {packed.address} lies outside of the database, at {packed.place}",
                hint="name the directory or bucket in the store's URL: ?objects=…",
            )
        body = self._place.get(packed.place, packed.length)
        if body is None:
            hint = "" if self._place.has(self._root) else _PLACE_GONE
            raise StoreDamaged(
                f"object {packed.address} is missing from {self._place}", hint=hint, address=packed.address
            )
        return replace(packed, body=body)

    def _stored(self, objects: Sequence[Packed]) -> list[str]:
        """Insert what is new, and acquit what was condemned; the keys of bodies outside that were there already."""
        with self._database.writing() as transaction:
            lock = self._database.dialect.for_update
            sql = f"SELECT bytes, quota_bytes, name FROM users WHERE id = ?{lock}"
            used, most, user = only(transaction.rows(sql, self._user_id))
            there: dict[str, bool] = {}
            for some in in_parts((one.address for one in objects), _AT_ONCE):
                sql = placed("SELECT address, condemned FROM objects WHERE user_id = ? AND address IN (??)", some)
                found = transaction.rows(sql, self._user_id, *map(digest, some))
                there.update((spelled(blob(address)), condemned is not None) for address, condemned in found)
            new = [one for one in objects if one.address not in there]
            taken = sum(len(one.body) for one in new)
            allowed = self._default.bytes if most is None else number(most)
            if new and number(used) + taken > allowed:
                raise QuotaReached(
                    f"user {user!r} may keep {allowed:,} bytes, has {number(used):,}, and would need {taken:,} more",
                    hint="delete sessions and collect what they leave, or raise the quota",
                )
            transaction.many(_INSERT, [_row(self._user_id, one) for one in new])
            self.acquit(transaction.run, (address for address, condemned in there.items() if condemned))
            if new:
                sql = "UPDATE users SET objects = objects + ?, bytes = bytes + ? WHERE id = ?"
                transaction.run(sql, len(new), taken, self._user_id)
            return [one.place for one in objects if one.place and one.address in there]


def require_place(place: Place, root: str, database: Database) -> None:
    """StoreError where a store has objects in a place that has nothing of it."""
    if not place.has(root) and database.select("SELECT 1 FROM objects WHERE place <> '' LIMIT 1"):
        raise StoreError(f"{place} has nothing of this store, which has objects there", hint=_PLACE_GONE)


_PLACE_GONE = "see that its volume is mounted, and that ?objects= names the directory that the store was given first"
_SELECT = "SELECT address, codec, length, body, place FROM objects WHERE user_id = ? AND"
_INSERT = (
    "INSERT INTO objects (user_id, address, codec, length, stored, condemned, place, body)"
    " VALUES (?, ?, ?, ?, ?, NULL, ?, ?)"
)


def in_parts(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """Values in lists of up to `size`: a statement takes only so many parameters."""
    rest = iter(values)
    while part := list(islice(rest, size)):
        yield part


def by_size(sizes: Iterable[tuple[str, int]], most: int) -> Iterator[list[str]]:
    """Addresses in lists of at most so many bytes, by the size that stands with each; one that is larger is alone."""
    part: list[str] = []
    room = most
    for address, size in sizes:
        if part and size > room:
            yield part
            part, room = [], most
        part.append(address)
        room -= size
    if part:
        yield part


def _row(user_id: int, one: Packed) -> tuple[int, bytes, int, int, int, str, bytes]:
    body = b"" if one.place else one.body
    return (user_id, digest(one.address), one.codec, one.length, len(one.body), one.place, body)


def _packed(row: Row) -> Packed:
    address, codec, length, body, place = row
    return Packed(spelled(blob(address)), number(codec), number(length), blob(body), text(place))


def pack(address: str, data: bytes | memoryview) -> Packed:
    """Bytes, ready to be stored. 1 to 5 ms for a megabyte that can be compressed, 0.1 ms for one that cannot."""
    if len(data) >= _SMALL and _is_compressible(data):
        body = zstd.compress(data, _LEVEL)
        if len(body) < _WORTH * len(data):
            return Packed(address, ZSTD, len(data), body)
    return Packed(address, RAW, len(data), bytes(data))


def unpack(packed: Packed, most: int) -> bytes:
    """The bytes of an object. StoreDamaged: they are not those that its address names, or more than `most`."""
    if packed.length > most:
        raise StoreDamaged(
            f"object {packed.address} takes {packed.length / 2**20:,.0f} MB, where {most / 2**20:,.0f} are read at most"
            " (ExecutionLimits.max_host_mb)",
            address=packed.address,
        )
    data = _decoded(packed)
    if data is None or len(data) != packed.length or address_of(data) != packed.address:
        raise StoreDamaged(
            f"object {packed.address} is damaged: its bytes are not those that were stored", address=packed.address
        )
    return data


def _decoded(packed: Packed) -> bytes | None:
    if packed.codec == RAW:
        return packed.body
    if packed.codec != ZSTD:
        return None
    try:  # never more than was noted, whatever a damaged frame claims
        data: bytes = zstd.ZstdDecompressor().decompress(packed.body, max_length=packed.length + 1)
    except zstd.ZstdError:
        return None
    return data


def _is_compressible(data: bytes | memoryview) -> bool:
    """Tries four pieces of a large one: most of what does not compress is seen there, at a tenth of the cost."""
    if len(data) < _SAMPLED:
        return True
    step = len(data) // 4
    sample = b"".join(bytes(data[start : start + _PIECE]) for start in range(0, 4 * step, step))
    return len(zstd.compress(sample, _LEVEL)) < _WORTH * len(sample)
