"""The engine's clocks, which go on where a program has set or stopped `time.monotonic` and `time.time`, as tests of
other things do.
"""

from __future__ import annotations

import time

if hasattr(time, "clock_gettime"):

    def now() -> float:
        """Seconds since some time in the past."""
        return time.clock_gettime(time.CLOCK_MONOTONIC)

    def wall() -> float:
        """Seconds since 1970."""
        return time.clock_gettime(time.CLOCK_REALTIME)

else:  # on Windows
    now, wall = time.monotonic, time.time
