"""The host's end of a worker that is no process of this machine."""

from __future__ import annotations

import os
import select

from cellblock.executors.process.link import Link, Taken

_NOBODY = -1
"""The number of no process: who would read or write the worker's memory by it is refused by the kernel."""


class RelayedLink(Link):
    """What comes on its socket is the worker's: the relay has dropped the rest. Its end is told by a descriptor."""

    def __init__(self, taken: Taken | None = None) -> None:
        super().__init__(taken)
        self.pidfd, self.death = os.pipe()
        self._epoll.register(self.pidfd, select.EPOLLIN)

    def close_ends(self) -> None:
        super().close_ends()
        os.close(self.death)

    def _recognise(self, pid: int) -> bool:
        self.pid = pid
        return True

    def _receive(self) -> tuple[bytes | None, int]:
        packet, sender = super()._receive()
        return packet, _NOBODY if sender else 0
