"""Paths that a session without a root of its own may learn of. Pure path work."""

from __future__ import annotations

import os
from collections.abc import Iterable

from cellblock.hosting.machine import DEVICES
from cellblock.worker.confine import layout

WRITABLE_DEVICES = ("/dev/full", "/dev/null")


class Sight:
    """Paths that may be seen, read-only, and paths of the session's own."""

    def __init__(self, seen: layout.Exposure, own: Iterable[str]) -> None:
        self.trees = tuple(path for path in (*seen.early, *seen.late) if path not in DEVICES)
        self.own = tuple(own)
        places = (*self.trees, *self.own, *DEVICES, *(link for link, _ in seen.links))
        ways = {parent for place in places for parent in _parents(place)}
        self._exact = frozenset((*DEVICES, *ways, *(link for link, _ in seen.links)))
        self._below = tuple(path + "/" for path in (*self.trees, *self.own))
        self._own_below = tuple(path + "/" for path in self.own)

    def sees(self, path: str) -> bool:
        """True if a resolved path may be known of: what is exposed, the session's own, and the ways there."""
        return path in self._exact or (path + "/").startswith(self._below)

    def owns(self, path: str) -> bool:
        """True if a resolved path is the session's to change."""
        return (path + "/").startswith(self._own_below)


def _parents(path: str) -> Iterable[str]:
    while path != "/":
        path = os.path.dirname(path)
        yield path
