"""When a count that costs is made again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Pace:
    """Due after so many times the processor time that it took, and `least` seconds; until then the count is owed."""

    def __init__(self, times: float, *, least: float = 0.0) -> None:
        self._times, self._least = times, least
        self._next = 0.0
        self.owed = False

    def due(self) -> bool:
        """True to count now; until then the count is owed."""
        self.owed = time.monotonic() < self._next
        return not self.owed

    def again(self) -> None:
        """Let the next count be at once."""
        self._next = 0.0

    @contextmanager
    def timed(self) -> Iterator[None]:
        began = time.process_time()
        yield
        self._next = time.monotonic() + max(self._least, self._times * (time.process_time() - began))
