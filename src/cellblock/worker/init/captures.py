"""Checkpoints that the host is saving: their files stay for it, and their scribes are let be.

Each has a channel of the host's. While it is open the files of its checkpoint are kept, its frozen copy may make a
scribe, and the scribe it names is spared what ends the session's other processes. When it closes, for whatever reason,
the scribe ends.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
from dataclasses import dataclass

from cellblock.hosting import sockets
from cellblock.worker import control, holdings

MOST = 8
"""Channels at once: two for each that the host allows, and one that is just ending."""


@dataclass(slots=True)
class Capture:
    """One that is under way. `copy` may make a scribe; the scribe is -1 until it is known."""

    channel: socket.socket
    copy: int
    pinned: object
    scribe: int = 0
    end: int = -1


class Captures:
    """Those under way, by the number of their channel's descriptor."""

    def __init__(self, wait: select.poll) -> None:
        self._wait = wait
        self._under_way: dict[int, Capture] = {}

    def begin(self, channel: int, copy: int, pinned: object) -> Capture | None:
        """One more; None where there are too many. `pinned` are the files, which this keeps alive."""
        if len(self._under_way) >= MOST:
            return None
        capture = Capture(sockets.adopted(channel), copy, pinned)
        self._under_way[channel] = capture
        self._wait.register(channel, select.POLLIN)
        return capture

    @property
    def copies(self) -> frozenset[int]:
        """The frozen copies that may make a scribe, whose scribe is not known yet."""
        return frozenset(one.copy for one in self._under_way.values() if one.copy and not one.scribe)

    @property
    def scribes(self) -> frozenset[int]:
        """The scribes that are known."""
        return frozenset(one.scribe for one in self._under_way.values() if one.scribe)

    @property
    def pinned(self) -> list[object]:
        """The files of every one."""
        return [one.pinned for one in self._under_way.values()]

    def hear(self, descriptor: int) -> bool:
        """Something came on a channel, or it was closed; whether it is one of these."""
        capture = self._under_way.get(descriptor)
        if capture is None:
            return False
        message, descriptors = control.receive(capture.channel)
        control.close_all(descriptors)
        if message is None:
            self._finish(descriptor)
        elif "scribe" in message and not capture.scribe:
            self._know(capture, int(str(message["scribe"])))
        return True

    def _know(self, capture: Capture, scribe: int) -> None:
        with contextlib.suppress(OSError):  # it has ended
            capture.end = os.pidfd_open(scribe)
            capture.scribe = scribe
            holdings.be_killed_first(scribe)

    def _finish(self, descriptor: int) -> None:
        capture = self._under_way.pop(descriptor)
        self._wait.unregister(descriptor)
        capture.channel.close()
        if capture.end >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(capture.end, signal.SIGKILL)
            os.close(capture.end)

    def drop_files(self) -> bool:
        """Let go of what is pinned, where room is short; whether there was any."""
        pinned = [one for one in self._under_way.values() if one.pinned is not None]
        for one in pinned:
            one.pinned = None
        return bool(pinned)
