"""Private data between agents: one that is asked from a private session works in private, and tells it if it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

from cellblock.session.tools import Mark, asking


@asynccontextmanager
async def marks_passed(mark: Mark, why_private: Callable[[], str]) -> AsyncIterator[None]:
    """Around the work of an agent, which `mark` makes private, and of which `why_private` tells why it is.

    Where the cell of a session has asked for it, what either holds may be private goes for both, however it ends.
    """
    asked_by = asking()
    if asked_by is not None and asked_by.private:
        await mark(f"asked from private data: {asked_by.private}")
    try:
        yield
    finally:
        tell = None if asked_by is None or asked_by.private else asked_by.mark
        if tell is not None and (why := why_private()):
            with anyio.CancelScope(shield=True):
                await tell(f"was answered from private data: {why}")
