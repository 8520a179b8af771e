"""A quota on what a session's files take on the host's disk: its processes are stopped writing when that is too much.

File systems give no quota to who has no rights over them. So the files are counted, as often as counting is cheap.
Past the quota writing fails with EFBIG, for every process of the session; removing works. What grows all the same, by
the number of its files or through mappings, ends the processes. Only what is left then can end the session.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cellblock.worker.init.pace import Pace
from cellblock.worker.reduced import disk

GREW = "its files grew past max_disk_mb or max_files"
_REST = 10
_GROWTH_BYTES = 16 * 2**20
_MOST_PAST_BYTES, _MOST_PAST_FILES = 256 * 2**20, 10_000
"""About what can be written between two counts."""

Limit = Callable[[list[int], int | None], None]
"""Sets the size that files of some processes may have, None for what their hard limit says."""

Tell = Callable[[dict[str, object]], object]


class Quota:
    """The quota of the directories that are open as `places`, together. `limit` stops processes writing."""

    def __init__(self, places: Sequence[int], most_bytes: int, most_files: int, limit: Limit, *, least: float) -> None:
        """`least`: seconds between two counts."""
        self._places = places
        self._bytes, self._files = most_bytes, most_files
        self._limit = limit
        self._pace = Pace(_REST, least=least)
        self._stopped: disk.Usage | None = None
        """Usage of the files once the session was kept from writing."""

    @property
    def stopped(self) -> bool:
        """True if the session is stopped writing."""
        return self._stopped is not None

    def due(self) -> bool:
        """True to look now."""
        return self._pace.due()

    def hold(self, processes: list[int], tell: Tell, sweep: Callable[[], object]) -> bool:
        """Count, and stop or allow writing; `sweep` the processes where that is not enough, and `tell` why.

        True where the session has to end, too.
        """
        if not (reason := self._look(processes)):
            return False
        tell({"outgrown": reason})
        sweep()
        if reason := self._left():
            tell({"outgrown": reason})
        return bool(reason)

    def _look(self, processes: list[int]) -> str:
        """Why the processes have to be ended, "" where they have not."""
        with self._pace.timed():
            try:
                used = self._used(processes)
                if used.bytes <= self._bytes and used.files <= self._files:
                    if self._stopped is not None:
                        self._limit(processes, None)
                        self._stopped = None
                    return ""
                self._limit(processes, 0)
                if self._stopped is None:  # counted anew: what was written until now is no growth
                    self._stopped = used = self._used(processes)
            except disk.Uncountable as error:
                return str(error)
            before = self._stopped
            grew = used.files > before.files + self._files // 10 or used.bytes > before.bytes + _GROWTH_BYTES
            return GREW if grew or used.files > self._most_files else ""

    def _left(self) -> str:
        """Once the processes have ended: why the session has to, too, "" where it can go on and remove some."""
        try:
            used = self._stopped = self._used(())
        except disk.Uncountable as error:
            return str(error)
        if used.bytes > 2 * self._bytes + _MOST_PAST_BYTES or used.files > self._most_files:
            return "its files took more than twice what max_disk_mb and max_files allow"
        return ""

    @property
    def _most_files(self) -> int:
        return 2 * self._files + _MOST_PAST_FILES

    def _used(self, processes: Sequence[int]) -> disk.Usage:
        return disk.used(self._places, processes, self._most_files)
