"""Processes of the engine's own that somebody has stopped, as by `kill -STOP`: sessions wait for them."""

from __future__ import annotations

import logging
import os
import signal

_log = logging.getLogger("cellblock")


def go_on(process: int, who: str, *, generations: int = 0) -> None:
    """Continue a process where it was stopped; and so its children, and theirs, for so many generations."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            state = file.read().rpartition(b") ")[2][:1]
        if state == b"T":
            os.kill(process, signal.SIGCONT)
            _log.warning("%s (process %d) has been stopped, and goes on", who, process)
        children = []
        if generations:
            with open(f"/proc/{process}/task/{process}/children", "rb") as file:
                children = [int(child) for child in file.read().split()]
    except OSError:  # it has ended, is not to be seen, or nothing can be opened: who waits for it says what is so
        return
    for child in children:
        go_on(child, who, generations=generations - 1)


def pid_of(pidfd: int) -> int:
    """The process behind a descriptor of it; below 1 where it is gone, and 0 where that cannot be seen."""
    try:
        with open(f"/proc/self/fdinfo/{pidfd}", encoding="ascii") as told:
            return next((int(line.split()[1]) for line in told if line.startswith("Pid:")), 0)
    except OSError:
        return 0
