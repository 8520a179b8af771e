"""Watches what the processes of a session hold together, which no limit of a single process bounds.

The cheap look adds up resident anonymous pages; pages that forked processes still share count in each, so only
when that sum is over the limit are they counted exactly, each divided by those who share it. Then the largest
process but the worker is killed: the worker's own memory has a limit that raises MemoryError instead.

A process may hide its exact count (by being undumpable, or by the end of its first thread): it counts in full.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

BUSY_SECONDS = 0.05
"""Between two looks while more than the worker runs."""
IDLE_SECONDS = 0.25

_REST = 10
"""After an exact count within the limit, this many times what it took pass before the next, unless the sum grows:
shared pages that are written stay in the sum as they were."""

_PAGE = os.sysconf("SC_PAGE_SIZE")
_SLACK_BYTES = 32 * 2**20


class Watch:
    """Looks at every process of this pid namespace but its first. `worker` is the one that is spared."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._worker = 0
        self._image = 0
        self._frozen: frozenset[int] = frozenset()
        self._counted_at = 0
        self._count_again = 0.0
        self._dying: set[int] = set()

    def begin(self) -> None:
        """A worker has just been put into the session: it is alone, and all it holds is its preloaded image."""
        self._worker = next(processes(), 0)
        self._image = _anonymous(self._worker)
        self._counted_at = 0

    def exempt(self, frozen: list[int]) -> None:
        """Leave frozen copies of the worker out: they hold what they share with it."""
        self._frozen = frozenset(frozen)

    def follow(self, worker: int) -> None:
        """A frozen copy was woken, and is the worker now."""
        self._worker = worker
        self._frozen -= {worker}
        self._counted_at = 0

    def look(self) -> tuple[float, int | None]:
        """Seconds until the next look, and the bytes held if that was too much and a process was killed for it."""
        alive = set(processes()) - self._frozen
        self._dying &= alive
        held = {process: _anonymous(process) for process in alive - self._dying}
        others = held.keys() - {self._worker}
        if not others:
            return IDLE_SECONDS, None
        estimate = sum(held.values()) - self._image
        if estimate <= self._limit + _SLACK_BYTES:
            return BUSY_SECONDS, None
        # pages shared by forks can keep the estimate high for ever, and each exact count takes its time
        began = time.monotonic()
        if estimate < self._counted_at * 1.1 and began < self._count_again:
            return BUSY_SECONDS, None
        exact = {process: _proportional(process) for process in held}
        total = sum(exact.values())
        if total <= self._limit + _SLACK_BYTES + self._image // 2:
            ended = time.monotonic()
            self._counted_at, self._count_again = estimate, ended + _REST * (ended - began)
            return BUSY_SECONDS, None
        self._counted_at = 0
        largest = max(others, key=lambda process: exact[process])
        self._dying.add(largest)
        _kill(largest)
        return 0.0, total


def processes() -> Iterator[int]:
    """Every process of this pid namespace but its first."""
    try:
        names = os.listdir("/proc")
    except OSError:  # masked on this host: nothing can be watched
        return
    for name in names:
        if name.isdigit() and name != "1":
            yield int(name)


def _anonymous(process: int) -> int:
    """Resident anonymous memory in bytes; 0 for a process that is gone."""
    held = _resident(f"/proc/{process}/statm")
    if held:
        return held
    try:  # its first thread has ended: nothing stands under the process's own entry, all of it under each thread's
        threads = os.listdir(f"/proc/{process}/task")
    except OSError:
        return 0
    return max((_resident(f"/proc/{process}/task/{thread}/statm") for thread in threads), default=0)


def _resident(statm: str) -> int:
    try:
        with open(statm, "rb") as file:
            words = file.read().split()
    except OSError:
        return 0
    return (int(words[1]) - int(words[2])) * _PAGE


def _proportional(process: int) -> int:
    """Anonymous memory in bytes, each page divided by the number of processes that share it; in full where hidden."""
    try:
        with open(f"/proc/{process}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss_Anon:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return _anonymous(process)


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return
