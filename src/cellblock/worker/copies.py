"""Frozen copies of the worker that are still being made: each says on a channel of its own that it is ready."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable

from cellblock.worker import control


class Copies:
    """Tells `found` the number of each copy once it is ready. The channels are the host's, and only looked at."""

    def __init__(self, wait: select.poll, found: Callable[[int], None]) -> None:
        self._wait = wait
        self._found = found
        self._expected: set[int] = set()

    def expect(self, channel: int) -> None:
        """A copy will speak on a channel."""
        self._expected.add(channel)
        self._wait.register(channel, select.POLLIN)

    def hear(self, channel: int) -> None:
        """Something is to be read on a channel, or its other end is closed."""
        if channel in self._expected:
            with socket.socket(fileno=os.dup(channel)) as told:
                process = control.ready(told)
            self._let_go(channel)
            if process:
                self._found(process)

    def forget(self) -> None:
        """No copy is being made any more."""
        for channel in list(self._expected):
            self._let_go(channel)

    def _let_go(self, channel: int) -> None:
        self._expected.discard(channel)
        self._wait.unregister(channel)
        os.close(channel)
