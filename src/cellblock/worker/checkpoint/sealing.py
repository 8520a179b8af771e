"""The walls that a scribe puts around itself before anything of the session's is looked at.

It keeps no descriptor but its socket; memory that was shared becomes its own; it opens files to read them, and none of
the session's; it starts, signals and meets no other process, and gets the processor after the others.
"""

from __future__ import annotations

import os
import resource
import sys

from cellblock.walls import Unavailable
from cellblock.worker.checkpoint import owning
from cellblock.worker.confine import landlock, layout, rlimits, seccomp

_NICE = 10
_NO_DEVICE = -1
_OWN = {layout.HOME[1:], "workspace", "tmp", layout.DATA[1:], "proc"}
"""Of the root, what leads to files of the session's."""
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def wall_in(end: int, seconds: int) -> list[str]:
    """Give away everything but a socket; the walls' names. OSError where that cannot be done.

    `seconds` are of processor time.
    """
    _close_all_but(end)
    os.nice(_NICE)
    rlimits.lower(resource.RLIMIT_CPU, seconds, seconds)
    owning.make_own(_NO_DEVICE)
    put_up = [
        landlock.apply(read_only=_readable(), read_write=(), connect_ports=None, scope=False),
        seccomp.apply(seccomp.build_for_scribe()),
    ]
    for wall in put_up:
        if isinstance(wall, Unavailable):
            raise OSError(f"{wall.mechanism}: {wall.reason}")
    return [wall.mechanism for wall in put_up]


def _close_all_but(end: int) -> None:
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    for number in range(3):
        os.dup2(null, number)
    os.closerange(3, end)
    os.closerange(end + 1, 2**31 - 1)


def _readable() -> list[str]:
    """The system, the interpreter and its packages, and no file of the session's."""
    places = [f"/{name}" for name in os.listdir("/") if name not in _OWN]
    places += (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, _PACKAGE)
    return [place for place in dict.fromkeys(places) if os.path.exists(place)]
