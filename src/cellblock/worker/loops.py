"""Event loops in a process that is a copy: each gets a selector and a way to be woken up of its own."""

from __future__ import annotations

import asyncio
import selectors
from typing import Any


def renew(loop: asyncio.AbstractEventLoop) -> None:
    """Give a loop descriptors of its own. What it waited for over the old ones is gone, its timers and tasks stay."""
    selector_loop: Any = loop  # what follows is of selector loops, and has no public name
    selector_loop._selector = selectors.DefaultSelector()
    selector_loop._internal_fds = 0
    selector_loop._make_self_pipe()
