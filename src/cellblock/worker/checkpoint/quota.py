"""How many processes there may be: frozen copies of the worker do not count to what the cells may have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from resource import RLIMIT_NPROC, getrlimit, setrlimit

_LEAVING = 2
"""Copies that were let go, and have not quite ended."""
SPARE_PROCESSES = _LEAVING + 2
"""Besides the copies that are kept: these, one that is made, and the step between."""

_LIMIT = RLIMIT_NPROC


class Quota:
    """Holds the soft limit at what the cells may have, and as many more as there are copies: a few over, rather
    than one too few.

    The hard limit leaves room for one to be made when the cells have taken all of theirs.
    """

    def __init__(self, copies: int) -> None:
        """For at most so many copies."""
        self._most = copies
        self._copies = 0
        self._set = self._cells = getrlimit(_LIMIT)[0]

    @contextmanager
    def for_a_copy(self) -> Iterator[None]:
        """Around the making of a copy. In the copy too the limit is for as many copies as there are in its state."""
        soft, hard = getrlimit(_LIMIT)
        _set(hard, hard)
        try:
            yield
        except OSError:
            _set(soft, hard)
            raise
        if soft == self._set:  # else it is a cell's own
            self._copies = min(self._copies + 1, self._most)
            soft = self._set = self._cells + self._copies + _LEAVING
        _set(soft, hard)


def _set(soft: int, hard: int) -> None:
    try:
        setrlimit(_LIMIT, (min(soft, hard), hard))
    except (ValueError, OSError):  # the cell has lowered the hard limit
        return
