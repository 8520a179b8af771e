"""How long a thread waits for what others hold: up to a limit, and only as long as somebody waits for the thread."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextvars import ContextVar
from threading import Event

_SHORTEST, _LONGEST = 0.001, 0.05

left: ContextVar[tuple[Event, ...]] = ContextVar("left", default=())
"""One of them is set once a caller of the work under way was cancelled: it then waits for nothing that others hold."""


def pauses(seconds: float) -> Iterator[float]:
    """The seconds to wait in each of several tries, none in the first; they end after so many seconds in all, or when
    the caller has left.
    """
    callers, until, pause = left.get(), time.monotonic() + seconds, _SHORTEST
    yield 0.0
    while time.monotonic() < until and not any(caller.is_set() for caller in callers):
        yield pause
        pause = min(2 * pause, _LONGEST)
