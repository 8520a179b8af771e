"""A wait for descriptors that blocks, of any number: `select.select` takes none past 1,023."""

from __future__ import annotations

import select
from socket import socket


def ready(*descriptors: int | socket, seconds: float = 0.0, event: int | None = None) -> bool:
    """Wait until one can be read, or has ended, at most so long, or for another `event`; False where none did."""
    wait = select.poll()
    for descriptor in descriptors:
        wait.register(descriptor, select.POLLIN if event is None else event)
    return bool(wait.poll(max(0.0, seconds) * 1e3))
