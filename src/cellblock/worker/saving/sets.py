"""Sets in one order: where their elements lie depends on which came first, and a load puts them in anew."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_ATOMS = frozenset(map(id, (type(None), bool, int, float, str, bytes)))
_MOST = 10_000


def order(found: Iterable[set[Any]]) -> None:
    """Put the elements of these sets in anew, in an order of their own. Only in a process that saves and then ends.

    Sets of more than 10,000 elements, and those of others than texts, numbers and tuples of them, stay as they are.
    """
    for one in found:
        if 1 < len(one) <= _MOST and all(map(_is_plain, one)):
            elements = sorted(one, key=repr)
            one.clear()
            one.update(elements)


def _is_plain(value: Any) -> bool:
    return id(type(value)) in _ATOMS or (type(value) is tuple and all(map(_is_plain, value)))
