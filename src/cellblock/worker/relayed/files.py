"""What a session's files take on the host's disk, seen from inside, and the stop to its writing when that is too much.

As the keeper of `worker.reduced` does it: no quota is to be had here either.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from cellblock.worker.reduced import disk
from cellblock.worker.reduced.walls import stop_writing

_GROWTH_BYTES = 16 * 2**20
_MOST_PAST_BYTES, _MOST_PAST_FILES = 256 * 2**20, 10_000
"""About what can be written between two looks."""


class Files:
    """Those below some directories, with limits for all of them together."""

    def __init__(self, places: Sequence[str], most_bytes: int, most_files: int) -> None:
        self._places = [os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for place in places]
        self._bytes, self._files = most_bytes, most_files
        self._stopped: disk.Usage | None = None
        """What they took when the session was kept from writing more."""

    @property
    def stopped(self) -> bool:
        """Whether the session is kept from writing."""
        return self._stopped is not None

    def look(self, processes: list[int]) -> str:
        """Count, and stop or allow writing; why the session has to be ended, "" where it has not."""
        most = 2 * self._files + _MOST_PAST_FILES
        try:
            counts = [disk.used(place, processes if not at else (), most) for at, place in enumerate(self._places)]
        except disk.Uncountable:
            return "its directories were nested too deep to be counted"
        used = disk.Usage(sum(one.bytes for one in counts), sum(one.files for one in counts))
        if used.bytes > 2 * self._bytes + _MOST_PAST_BYTES or used.files > most:
            return "its files took more than twice what max_disk_mb and max_files allow"
        if used.bytes <= self._bytes and used.files <= self._files:
            if self._stopped is not None:
                stop_writing(processes, None, most=None)
                self._stopped = None
            return ""
        stop_writing(processes, None, most=0)
        before = self._stopped = self._stopped or used
        if used.files > before.files + self._files // 10 or used.bytes > before.bytes + _GROWTH_BYTES:
            return "its files grew past max_disk_mb or max_files"
        return ""
