"""The engine's clock, which goes on where a program has stopped `time.monotonic`, as tests of other things do."""

from __future__ import annotations

import time

if hasattr(time, "clock_gettime"):

    def now() -> float:
        """Seconds since some time in the past."""
        return time.clock_gettime(time.CLOCK_MONOTONIC)

else:  # on Windows
    now = time.monotonic
