"""A map from text to small JSON as content-addressed nodes: equal maps have one root, whatever made them.

A node of up to 64 keys is a leaf. A larger one is a branch by the next hex digit of the keys' SHA-256, so that a map
of 10,000 keys is three nodes deep, and a changed key writes three of them. A value of more than 1 KB lies apart, as a
record of its own. Subtrees with the same address are equal, and are neither read nor compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from cellblock.errors import StoreError
from cellblock.store.address import JSON, canonical, linked, records
from cellblock.store.words import Change

LEAF = 64
"""Keys up to which a node is a leaf. It and `APART` are part of the format: another number makes other addresses."""
APART = 1024

Fetch: TypeAlias = Callable[[str], JSON]
"""Address of a record to what it holds."""
Put: TypeAlias = Callable[[JSON], str]
"""A record to its address."""


@dataclass(frozen=True, slots=True)
class _Apart:
    """Address of a value that is a record of its own."""

    address: str


@dataclass(frozen=True, slots=True)
class _Kid:
    """A child of a branch: its node, and how many keys are in it."""

    address: str
    count: int


_Slot: TypeAlias = "_Apart | JSON"
"""Value at a key; never None, which removes it."""
_Leaf: TypeAlias = dict[str, _Slot]


@dataclass(frozen=True, slots=True)
class _Branch:
    """A node whose keys are in its children, by a hex digit each."""

    kids: Mapping[str, _Kid]


class Tree(Mapping[str, JSON]):
    """A stored map, read as it is asked for; its keys come ordered by their hashes."""

    def __init__(self, fetch: Fetch, root: str | None) -> None:
        self._fetch = fetch
        self.root = root

    def __getitem__(self, key: str) -> JSON:
        address = self.root
        for digit in _digits(key):
            if address is None:
                break
            node = _load(self._fetch, address)
            if not isinstance(node, _Branch):
                if key in node:
                    return _value(self._fetch, node[key])
                break
            address = node.kids[digit].address if digit in node.kids else None
        raise KeyError(key)

    def __len__(self) -> int:
        return 0 if self.root is None else _count(_load(self._fetch, self.root))

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in _slots(self._fetch, self.root))

    def pairs(self) -> Iterator[tuple[str, JSON]]:
        """Every key and its value; `items()` looks each up by itself."""
        return ((key, _value(self._fetch, slot)) for key, slot in _slots(self._fetch, self.root))

    def diff(self, newer: Tree) -> Iterator[Change]:
        """Changes of keys to a newer tree; parts that are the same in both are not read."""
        for key, before, after in _differing(self._fetch, self.root, newer.root):
            yield Change(key, _value(self._fetch, before), _value(self._fetch, after))


def update(fetch: Fetch, put: Put, root: str | None, changes: Mapping[str, JSON]) -> str | None:
    """The root of the map with some keys set, and those whose new value is None removed."""
    slots: _Leaf = {
        key: _Apart(put(value)) if value is not None and len(canonical(value)) > APART else value
        for key, value in changes.items()
    }
    if not slots:
        return root
    old = None if root is None else _Kid(root, _count(_load(fetch, root)))
    new = _Update(fetch, put).of(old, slots, 0)
    return None if new is None else new.address


# --- changing ------------------------------------------------------------------------------------------------


class _Update:
    """One change of a map: reads the nodes on the ways to the changed keys, and writes those anew."""

    def __init__(self, fetch: Fetch, put: Put) -> None:
        self._fetch = fetch
        self._put = put

    def of(self, old: _Kid | None, changes: _Leaf, depth: int) -> _Kid | None:
        node = {} if old is None else _load(self._fetch, old.address)
        if not isinstance(node, _Branch):
            slots: _Leaf = {key: slot for key, slot in {**node, **changes}.items() if slot is not None}
            return old if slots == node else self._built(slots, depth)
        kids = dict(node.kids)
        for digit, some in _parted(changes, depth).items():
            kids.pop(digit, None)
            if (kid := self.of(node.kids.get(digit), some, depth + 1)) is not None:
                kids[digit] = kid
        if kids == node.kids:
            return old
        if sum(kid.count for kid in kids.values()) > LEAF:
            return self._branch(kids)
        way = _digits(next(iter(changes)))[:depth]
        left = (_slots(self._fetch, kid.address, way + digit) for digit, kid in kids.items())
        return self._built(dict(pair for slots in left for pair in slots), depth)

    def _built(self, slots: _Leaf, depth: int) -> _Kid | None:
        if not slots:
            return None
        if len(slots) <= LEAF:
            return _Kid(self._put(_leaf_as_json(slots)), len(slots))
        kids = {digit: self._built(some, depth + 1) for digit, some in _parted(slots, depth).items()}
        return self._branch({digit: kid for digit, kid in kids.items() if kid is not None})

    def _branch(self, kids: Mapping[str, _Kid]) -> _Kid:
        ordered = sorted(kids.items())
        address = self._put(
            {
                "digits": "".join(digit for digit, _ in ordered),
                "counts": [kid.count for _, kid in ordered],
                "kids": {"@": [kid.address for _, kid in ordered]},
            }
        )
        return _Kid(address, sum(kid.count for kid in kids.values()))


# --- comparing -----------------------------------------------------------------------------------------------


def _differing(
    fetch: Fetch, old: str | None, new: str | None, way: str = ""
) -> Iterator[tuple[str, _Slot, _Slot]]:
    if old == new:
        return
    before = None if old is None else _load(fetch, old)
    after = None if new is None else _load(fetch, new)
    if isinstance(before, _Branch) and isinstance(after, _Branch):
        for digit in sorted(before.kids.keys() | after.kids.keys()):
            one, other = (side.kids[digit].address if digit in side.kids else None for side in (before, after))
            yield from _differing(fetch, one, other, way + digit)
        return
    mine, yours = dict(_slots(fetch, old, way)), dict(_slots(fetch, new, way))
    for key in sorted(mine.keys() | yours.keys()):
        if mine.get(key) != yours.get(key):
            yield key, mine.get(key), yours.get(key)


# --- nodes ---------------------------------------------------------------------------------------------------


def _leaf_as_json(slots: _Leaf) -> JSON:
    """Lists of pairs: a key that cells chose never stands where it could make a link of its value."""
    here: list[JSON] = []
    apart: list[JSON] = []
    for key, slot in sorted(slots.items()):
        if isinstance(slot, _Apart):
            apart.append([key, records(slot.address)])
        else:
            here.append([key, slot])
    return {"here": here, "apart": apart} if apart else {"here": here}


def _load(fetch: Fetch, address: str) -> _Leaf | _Branch:
    node = fetch(address)
    if isinstance(node, Mapping) and "here" in node:
        apart = ((key, _Apart(linked(link)[0])) for key, link in _pairs(node.get("apart", []), address))
        return {**dict(_pairs(node["here"], address)), **dict(apart)}
    if isinstance(node, Mapping) and "digits" in node:
        digits, counts, kids = str(node["digits"]), node.get("counts"), linked(node.get("kids"))
        if isinstance(counts, list) and len(digits) == len(counts) == len(kids):
            return _Branch({digit: _Kid(kid, int(many)) for digit, many, kid in zip(digits, counts, kids, strict=True)})
    raise _no_node(address)


def _pairs(value: JSON, address: str) -> Iterator[tuple[str, JSON]]:
    for pair in value if isinstance(value, list) else [None]:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise _no_node(address)
        yield pair[0], pair[1]


def _no_node(address: str) -> StoreError:
    return StoreError(f"object {address} is not a node of a tree")


def _count(node: _Leaf | _Branch) -> int:
    return sum(kid.count for kid in node.kids.values()) if isinstance(node, _Branch) else len(node)


def _slots(fetch: Fetch, root: str | None, way: str = "") -> Iterator[tuple[str, _Slot]]:
    """The keys and values of a node to which some digits lead. A leaf of a branch has keys, and those that begin so: so
    there are no more steps than keys, whoever wrote the nodes.
    """
    if root is None:
        return
    node = _load(fetch, root)
    if isinstance(node, _Branch):
        for digit in sorted(node.kids):
            yield from _slots(fetch, node.kids[digit].address, way + digit)
        return
    slots = sorted((_digits(key), key) for key in node)
    if way and not (slots and all(digits.startswith(way) for digits, _ in slots)):
        raise _no_node(root)
    yield from ((key, node[key]) for _, key in slots)


def _value(fetch: Fetch, slot: _Slot) -> JSON:
    return fetch(slot.address) if isinstance(slot, _Apart) else slot


def _parted(slots: _Leaf, depth: int) -> dict[str, _Leaf]:
    parts: dict[str, _Leaf] = {}
    for key, slot in slots.items():
        parts.setdefault(_digits(key)[depth], {})[key] = slot
    return parts


def _digits(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
