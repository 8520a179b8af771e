"""Checks that keys from inside can be put into a dict or set in linear time, before CPython tries in one call.

Text and bytes are hashed with a secret of this process. Hashes of numbers, and of tuples of them, can be chosen: so
that they are equal, or so that the places meet at which a table looks for room, one after the other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from operator import eq

from cellblock.values.forms import MalformedValue
from cellblock.values.pieces import AT_ONCE, parts

_EQUAL = 64
"""Keys with one hash that a dict or set may hold; n of them cost n² comparisons."""
_FEW = 2_000
"""Keys that cost about as much again where all their places meet."""
_STEPS, _MOST_STEPS = 40, 2_000
"""Places that are taken before one is free, on average and for one key. Keys that nobody chose take 35 at most."""
_WORD, _SHIFT = 2**64 - 1, 5
_SECRET = int.from_bytes(os.urandom(8)) | 1
_ROW = 10
"""Places that a set tries next to each other before it steps on; a dict tries one."""


def check_keys(keys: Sequence[object], *, is_set: bool) -> None:
    """Raise MalformedValue for keys that take more than linear time. TypeError for one that cannot be hashed."""
    if len(keys) <= _EQUAL or all(set(map(type, some)) <= {str, bytes} for some in parts(keys)):
        return
    hashes = [one for some in parts(keys) for one in map(hash, some)]
    for alike in _apart(hashes):
        ordered = sorted(alike)
        if any(map(eq, ordered, ordered[_EQUAL:])):
            raise MalformedValue(f"more than {_EQUAL} keys with one hash")
    if len(hashes) > _FEW:
        for size, most in _sizes(is_set=is_set):
            if most > _FEW:
                _check_places(hashes[:most], size, _ROW if is_set else 1)
            if most >= len(hashes):
                break


def _apart(hashes: Sequence[int]) -> Sequence[Sequence[int]]:
    """The hashes in lots that are sorted in no time, equal ones in one lot. Nobody can choose who meets in a lot."""
    if len(hashes) <= AT_ONCE:
        return [hashes]
    count = 2 * len(hashes) // AT_ONCE
    lots: list[list[int]] = [[] for _ in range(count)]
    for one in hashes:
        lots[(one * _SECRET >> 61) % count].append(one)
    return lots


def _sizes(*, is_set: bool) -> Iterator[tuple[int, int]]:
    """The tables that a dict or set has while it grows, and how many keys each holds.

    Those of CPython's `dictobject.c` and `setobject.c`.
    """
    size = 8
    while True:
        most = -(-(size - 1) * 3 // 5) if is_set else 2 * size // 3
        yield size, most
        size = 2 ** (most * (2 if most > 50_000 else 4)).bit_length() if is_set else 2 * size


def _check_places(hashes: Sequence[int], size: int, row: int) -> None:
    """Look for room as the tables do."""
    mask, left = size - 1, _STEPS * len(hashes)
    taken = bytearray(size)
    for one in hashes:
        place = one & mask
        if taken[place]:
            perturb, steps = one & _WORD, 0
            while (free := taken.find(0, place, place + row if place + row <= size else place + 1)) < 0:
                perturb >>= _SHIFT
                place = (place * 5 + perturb + 1) & mask
                steps += 1
                if steps > _MOST_STEPS:
                    raise MalformedValue("keys whose places in a table meet")
            place = free
            left -= steps
            if left < 0:
                raise MalformedValue("keys whose places in a table meet")
        taken[place] = 1
