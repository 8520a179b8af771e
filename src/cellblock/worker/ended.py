"""The children of this process that have ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator


def ended_children(look: Callable[[int], object] | None = None) -> Iterator[tuple[int, int]]:
    """Reap each child that has ended: its pid and wait status. Does not wait for the others.

    `look` is called with the pid of each before, while the kernel still tells of it.
    """
    which = -1
    while True:
        try:
            if look is not None:
                if (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is None:
                    return
                look(which := ended.si_pid)
            pid, status = os.waitpid(which, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, status
