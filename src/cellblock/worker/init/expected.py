"""Frozen copies of the worker that are still being made: each says on a channel of its own that it is ready."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Collection

from cellblock.hosting import sockets
from cellblock.hosting.waiting import ready
from cellblock.worker import control


class Copies:
    """Tells `found` of each copy once it is ready: its process, its checkpoints' numbers and the channel, which is
    `found`'s to close. The channels are the host's, which takes the word later: each is looked at once."""

    def __init__(self, wait: select.poll, found: Callable[[int, set[int], int], None]) -> None:
        self._wait = wait
        self._found = found
        self._expected: dict[int, set[int]] = {}

    @property
    def being_made(self) -> bool:
        """True if a copy has not said yet that it is ready."""
        return bool(self._expected)

    def expect(self, channel: int, numbers: set[int]) -> None:
        """A copy will speak on a channel."""
        self._expected[channel] = numbers
        self._wait.register(channel, select.POLLIN)

    def share(self, number: int, earlier: int) -> None:
        """A checkpoint's copy is that of an earlier one."""
        for numbers in self._expected.values():
            if earlier in numbers:
                numbers.add(number)

    def hear(self, channel: int) -> None:
        """Something is to be read on a channel, or its other end is closed."""
        if channel in self._expected:
            with sockets.adopted(os.dup(channel)) as told:
                process = control.ready(told)
            self._wait.unregister(channel)
            numbers = self._expected.pop(channel)
            if process:
                self._found(process, numbers, channel)
            else:
                os.close(channel)

    def hear_all(self) -> None:
        """Take the word of those that have spoken."""
        for channel in tuple(self._expected):
            if ready(channel):
                self.hear(channel)

    def drop(self, numbers: Collection[int]) -> None:
        """These checkpoints are none any more: a copy that is being made for no other ends when the host lets go."""
        for channel, expected in tuple(self._expected.items()):
            expected.difference_update(numbers)
            if not expected:
                self._close(channel)

    def forget(self) -> None:
        """No copy is being made any more."""
        for channel in tuple(self._expected):
            self._close(channel)

    def _close(self, channel: int) -> None:
        del self._expected[channel]
        self._wait.unregister(channel)
        os.close(channel)
