"""The repr of containers that hold too much to be written out whole."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from gc import get_referents
from reprlib import Repr

_CONTAINERS = frozenset((list, dict, tuple, set, frozenset, deque, defaultdict, OrderedDict))
_TEXTS = frozenset((str, bytes, bytearray))
_MOST = 500
"""So many parts, or characters of text, are written out; of more the first ones are."""


def is_long(value: object) -> bool:
    """True if a plain container holds more than can be shown, at whatever depth."""
    if type(value) not in _CONTAINERS:
        return False
    seen = {id(value)}
    level, found = [value], 0
    while level and found <= _MOST:
        following = []
        for one in level:
            found += len(one)  # type: ignore[arg-type]
            if found > _MOST:
                return True
            for part in get_referents(one):
                if type(part) in _TEXTS:
                    found += len(part)
                elif type(part) in _CONTAINERS and id(part) not in seen:
                    seen.add(id(part))
                    following.append(part)
        level = following
    return found > _MOST


class Brief(Repr):
    """Writes the first parts of containers, and at most so many characters."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self.maxlevel = 4
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = self.maxdict = 20
        self.maxstring = self.maxother = self.maxlong = most // 2

    def repr(self, x: object) -> str:
        told = super().repr(x)
        return told if len(told) <= self._most else told[: self._most - 1] + "…"
