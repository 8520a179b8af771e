"""Waits on the event loop for descriptors that processes of a session speak on."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

import anyio

from cellblock.errors import IsolationUnavailable

SECONDS = 60.0
"""Seconds that a process has for an answer."""
_AT_ONCE = 1.0
"""Seconds in which one who goes on answers, but on a machine that is overloaded."""


async def readable(descriptor: int, seconds: float = SECONDS, *, rouse: Callable[[], object] | None = None) -> None:
    """Wait until a descriptor can be read, or is at its end; TimeoutError after so many seconds.

    `rouse` is called for every second in which nothing came: it has go on who was stopped.
    """
    with anyio.fail_after(seconds):
        while rouse is not None:
            with anyio.move_on_after(_AT_ONCE):
                await anyio.wait_readable(descriptor)
                return
            rouse()
        await anyio.wait_readable(descriptor)


async def answered(
    channel: socket.socket, who: str, *, mechanism: str, rouse: Callable[[], object] | None = None
) -> None:
    """Wait until a process of a session has said something on a channel; IsolationUnavailable if it says nothing."""
    try:
        await readable(channel.fileno(), rouse=rouse)
    except TimeoutError:
        raise IsolationUnavailable(
            f"a session's {who} did not answer within {SECONDS:.0f} s",
            mechanism=mechanism,
            hint="see whether the machine is overloaded",
        ) from None


_SHARE = 4
_OF_SCHEDULER = 2  # CPUCLOCK_SCHED


def processor_seconds(process: int) -> float:
    """The time that a process has had of the processors; 0 where it is gone."""
    try:
        return time.clock_gettime(~process << 3 | _OF_SCHEDULER)
    except OSError:
        return 0.0


def stands_still(process: int, before: float, patience: float) -> bool:
    """True if a process that has said nothing for `patience` seconds was able to: it waits, or had a quarter of that
    time on a processor since it had had `before`.
    """
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            state = file.read().rpartition(b") ")[2][:1]
    except OSError:
        return True
    return state not in (b"R", b"D") or processor_seconds(process) - before >= patience / _SHARE
