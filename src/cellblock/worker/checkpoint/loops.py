"""Event loops in a process that is a copy: each gets a selector and a way to be woken up of its own."""

from __future__ import annotations

from selectors import DefaultSelector
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


def renew(loop: AbstractEventLoop) -> frozenset[str]:
    """Give a loop descriptors of its own, and threads where it is asked for them; the names of those it had.

    What it waited for over the old ones is gone, its timers and tasks stay.
    """
    selector_loop: Any = loop  # what follows is of selector loops, and has no public name
    threads = frozenset(thread.name for thread in getattr(selector_loop._default_executor, "_threads", ()))
    selector_loop._default_executor = None  # else it would wait for threads that are not here
    selector_loop._selector = DefaultSelector()
    selector_loop._internal_fds = 0
    selector_loop._make_self_pipe()
    return threads
