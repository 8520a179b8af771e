"""Watches what the processes of a session hold together, which no limit of a single process bounds.

The cheap look adds up resident anonymous pages; pages that forked processes still share count in each, so only
when that sum is over the limit are they counted exactly, each divided by those who share it. Then the largest
process but the worker is killed: the worker's own memory has a limit that raises MemoryError instead.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

BUSY_SECONDS = 0.05
"""Between two looks while more than the worker runs."""
IDLE_SECONDS = 0.25

_PAGE = os.sysconf("SC_PAGE_SIZE")
_SLACK_BYTES = 32 * 2**20


class Watch:
    """Looks at every process of this pid namespace but its first. `worker` is the one that is spared."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._worker = 0
        self._image = 0
        self._counted_at = 0

    def begin(self) -> None:
        """A worker has just been put into the session: it is alone, and all it holds is its preloaded image."""
        self._worker = next(_processes(), 0)
        self._image = _anonymous(self._worker)
        self._counted_at = 0

    def look(self) -> tuple[float, int | None]:
        """Seconds until the next look, and the bytes held if that was too much and a process was killed for it."""
        held = {process: _anonymous(process) for process in _processes()}
        others = held.keys() - {self._worker}
        if not others:
            return IDLE_SECONDS, None
        estimate = sum(held.values()) - self._image
        # Pages shared by forks can keep the estimate high for ever: count again only when it has grown.
        if estimate <= self._limit + _SLACK_BYTES or estimate < self._counted_at * 1.1:
            return BUSY_SECONDS, None
        exact = {process: _proportional(process) for process in held}
        total = sum(exact.values())
        if total <= self._limit + _SLACK_BYTES + self._image // 2:
            self._counted_at = estimate
            return BUSY_SECONDS, None
        self._counted_at = 0
        _kill(max(others, key=lambda process: exact[process]))
        return 0.0, total


def _processes() -> Iterator[int]:
    try:
        names = os.listdir("/proc")
    except OSError:  # masked on this host: nothing can be watched
        return
    for name in names:
        if name.isdigit() and name != "1":
            yield int(name)


def _anonymous(process: int) -> int:
    """Resident anonymous memory in bytes; 0 for a process that is gone."""
    try:
        with open(f"/proc/{process}/statm", "rb") as file:
            words = file.read().split()
    except OSError:
        return 0
    return (int(words[1]) - int(words[2])) * _PAGE


def _proportional(process: int) -> int:
    """Anonymous memory in bytes, each page divided by the number of processes that share it."""
    try:
        with open(f"/proc/{process}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss_Anon:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        return 0
    return 0


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return
