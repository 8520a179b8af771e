"""The engine's threads. Their stacks have a size of their own, whatever a program has set by `threading.stack_size`."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread, stack_size

from cellblock.hosting.forks import Lock

_STACK_BYTES = 8 * 2**20
_starting = Lock()


def begun(function: Callable[..., object], *args: object, name: str, stack_bytes: int = _STACK_BYTES) -> Thread:
    """A thread that carries out a function, and keeps no interpreter from leaving."""
    thread = Thread(target=function, args=args, name=name, daemon=True)
    with _starting:  # the size is the process's, for threads that start from now on
        before = stack_size()
        stack_size(max(before, stack_bytes))
        try:
            thread.start()
        finally:
            stack_size(before)
    return thread
