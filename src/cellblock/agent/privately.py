"""Private data between agents: one that is asked from a private session works in private, and tells it if it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

from cellblock.session.tools import Mark, calling


@asynccontextmanager
async def marks_passed(mark: Mark, why_private: Callable[[], str]) -> AsyncIterator[None]:
    """Around the work of an agent, which `mark` makes private, and of which `why_private` tells why it is.

    Where the cell of a session has asked for it, what either holds may be private goes for both, however it ends.
    """
    asking = calling.get(None)
    if asking is not None and asking.private:
        await mark(f"asked from private data: {asking.private}")
    try:
        yield
    finally:
        tell = None if asking is None or asking.private else asking.mark
        if tell is not None and (why := why_private()):
            with anyio.CancelScope(shield=True):
                await tell(f"was answered from private data: {why}")
