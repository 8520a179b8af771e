"""A cell with a time limit of one call's own, shorter than its session's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import Literal

import anyio

from cellblock.cell import Cell
from cellblock.events import Done
from cellblock.outputs import Output
from cellblock.session.session import AsyncSession

Kind = Literal["python", "shell"]


async def run_timed(
    session: AsyncSession, source: str, kind: Kind, seconds: float | None, tell: Callable[[Output], None]
) -> Cell | None:
    """Run a cell and tell what it shows as it happens; None where it was interrupted after `seconds`."""
    cell: Cell | None = None
    with anyio.move_on_after(seconds):
        async with aclosing(session.stream(source, kind=kind)) as events:
            async for event in events:
                if isinstance(event, Output):
                    tell(event)
                elif isinstance(event, Done):
                    cell = event.cell
    return cell
