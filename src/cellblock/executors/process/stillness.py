"""Processes that say nothing: one that waits, or computes, stands still; one that gets no processor does not."""

from __future__ import annotations

import time

_SHARE = 4
_OF_SCHEDULER = 2  # CPUCLOCK_SCHED


def processor_seconds(process: int) -> float:
    """What a process has had of the processors; 0 where it is gone."""
    try:
        return time.clock_gettime(~process << 3 | _OF_SCHEDULER)
    except OSError:
        return 0.0


def stands_still(process: int, before: float, patience: float) -> bool:
    """Whether a process that has said nothing for `patience` seconds was able to: it waits, or had a quarter of that
    time on a processor since it had had `before`.
    """
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            state = file.read().rpartition(b") ")[2][:1]
    except OSError:
        return True
    return state not in (b"R", b"D") or processor_seconds(process) - before >= patience / _SHARE
