"""The children of this process that have ended."""

from __future__ import annotations

import os
from collections.abc import Iterator


def ended_children() -> Iterator[tuple[int, int]]:
    """Reap each child that has ended: its pid and wait status. Does not wait for the others."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, status
