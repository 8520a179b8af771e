"""Bytes that a session makes its host hold: one account, on which all that is held for the session counts."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable


class Account:
    """Bytes held for one session, against `ExecutionLimits(max_host_mb)`. Every thread may count on it.

    Nothing is refused here: who makes the session hold more asks `has_room` before or after.
    """

    def __init__(self, limit: int = sys.maxsize, name: str = "ExecutionLimits.max_host_mb") -> None:
        """`name` is that of the limit, for people."""
        self.limit = limit
        self.name = name
        self.held = 0
        self._lock = threading.RLock()
        self.relieve: Callable[[int], object] = int
        """Lets go of what the record of cells holds, oldest first, for so many bytes. Does nothing by default."""

    def share(self, size: int = 0) -> Share:
        """A new share of it for one holder."""
        return Share(self, size)

    def has_room(self, size: int = 0) -> bool:
        """True if so much more can be held, once the record of cells has let go of what it can."""
        if self.held + size > self.limit:
            self.relieve(size)
        return self.held + size <= self.limit

    def add(self, size: int) -> None:
        """Hold so many bytes more, or less."""
        with self._lock:
            self.held += size


class Share:
    """One holder's part of an account."""

    __slots__ = ("_account", "_closed", "size")

    def __init__(self, account: Account, size: int = 0) -> None:
        self._account, self._closed, self.size = account, False, 0
        self.add(size)

    def add(self, size: int) -> None:
        """Hold so many bytes more, or less; nothing once it is closed."""
        if size and not self._closed:
            self.size += size
            self._account.add(size)

    def take(self, size: int) -> bool:
        """Hold so many bytes more, where there is room for them; whether there was."""
        if has_room := self._account.has_room(size):
            self.add(size)
        return has_room

    def close(self) -> None:
        """Hold nothing any more. Safe to call twice."""
        self.add(-self.size)
        self._closed = True
