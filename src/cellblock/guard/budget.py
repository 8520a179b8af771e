"""The memory that the cell of this thread may still take: asked before a single operation that takes much of it."""

from __future__ import annotations

import mmap
import sys
import threading

_FREE = 4 << 20
"""Bytes that are taken without asking."""


class _Limit(threading.local):
    most: int | None = None
    """Bytes that this process may hold while the thread's cell runs; None where nothing bounds it here."""


_limit = _Limit()


def begin(megabytes: int | None) -> None:
    """A cell begins in this thread: from now on the process may grow by so many megabytes."""
    _limit.most = None if megabytes is None else resident() + (megabytes << 20)


def afford(size: int) -> None:
    """Raise MemoryError where so many bytes more would be past the limit."""
    if size > _FREE:
        require(size)


def require(size: int = 0) -> None:
    """The same, for few bytes too."""
    most = _limit.most
    if most is not None and resident() + size > most:
        raise MemoryError(f"{size:,} bytes more than the limit has room for [size]" if size else "")


def resident() -> int:
    """Bytes of this process in memory; the most that there ever were without a /proc, and 0 on Windows."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE
    except OSError:
        return _peak()


def _peak() -> int:
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
