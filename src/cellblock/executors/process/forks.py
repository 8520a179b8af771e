"""What a forked copy of the host must let go of: it would keep the other ends waiting, and they end with the host."""

from __future__ import annotations

import os
import socket
import weakref

_ours: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def watch_forks(*sockets: socket.socket) -> None:
    """Have forked copies of this process close their copies of these."""
    _ours.update(sockets)


def _after_fork_in_child() -> None:
    for one in list(_ours):
        one.close()


os.register_at_fork(after_in_child=_after_fork_in_child)
