"""Waiting of a thread for what others hold: up to a limit, and only as long as somebody waits for the thread."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextvars import ContextVar
from threading import Event

from cellblock.hosting import clock

LOCK_SECONDS = 30.0
"""Seconds for which a lock of another program's is waited for."""
_SHORTEST, _LONGEST = 0.001, 0.05


class Deadline:
    """A time by which work that is about to end waits for nothing any more; never, until it is given."""

    def __init__(self) -> None:
        self._at = math.inf

    def give(self, seconds: float) -> None:
        """Let the time be so many seconds from now, unless it was given before."""
        self._at = min(self._at, clock.now() + seconds)

    def seconds(self) -> float:
        """The time that is left of it."""
        return self._at - clock.now()


left: ContextVar[tuple[Event | Deadline, ...]] = ContextVar("left", default=())
"""An event of them is set once a caller of the work under way was cancelled: it then waits for nothing that others
hold, as when a deadline has passed."""


def patience(seconds: float) -> float:
    """Seconds to wait for others from now on, so many at most; 0 where the caller has left."""
    for one in left.get():
        if isinstance(one, Deadline):
            seconds = min(seconds, one.seconds())
        elif one.is_set():
            return 0.0
    return max(0.0, seconds)


def pauses(seconds: float) -> Iterator[float]:
    """The seconds to wait in each of several tries, none in the first; they end after so many seconds in all, or when
    the caller has left.
    """
    until, pause = clock.now() + seconds, _SHORTEST
    yield 0.0
    while patience(until - clock.now()) > 0:
        yield pause
        pause = min(2 * pause, _LONGEST)


def tries(seconds: float) -> Iterator[None]:
    """The tries themselves, each after its pause. A pause of 0 is none: a host's timers may all come late."""
    for pause in pauses(seconds):
        if pause:
            time.sleep(pause)
        yield
