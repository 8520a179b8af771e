"""Waits on the event loop for descriptors that processes of a session speak on."""

from __future__ import annotations

import socket

import anyio

from cellblock.errors import IsolationUnavailable

SECONDS = 60.0
"""How long a process that is to answer has for it."""


async def readable(descriptor: int, seconds: float = SECONDS) -> None:
    """Wait until a descriptor can be read, or is at its end; TimeoutError after so many seconds."""
    with anyio.fail_after(seconds):
        await anyio.wait_readable(descriptor)


async def answered(channel: socket.socket, who: str, *, mechanism: str) -> None:
    """Wait until a process of a session has said something on a channel; IsolationUnavailable if it says nothing."""
    try:
        await readable(channel.fileno())
    except TimeoutError:
        raise IsolationUnavailable(
            f"a session's {who} did not answer within {SECONDS:.0f} s",
            mechanism=mechanism,
            hint="see whether the machine is overloaded",
        ) from None
