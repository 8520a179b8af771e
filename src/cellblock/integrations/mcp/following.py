"""A cell that is followed to its end, and whose progress is told meanwhile."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Literal

import anyio

from cellblock.cell import Cell
from cellblock.errors import CellblockError
from cellblock.events import Done, ToolCall
from cellblock.session.session import AsyncSession
from cellblock.text import valid

Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Seconds since the cell began, what they lead to, and what the cell has shown since it was asked last."""

_FIRST_SECONDS = 0.5
_SILENT_SECONDS = 5.0
"""A cell that shows nothing is told of that often, so that clients see that it is alive."""
_MOST_SAID = 500


async def follow(session: AsyncSession, source: str, kind: Literal["python", "shell"], report: Report) -> Cell:
    """Run a cell, and report what it shows every half second. A caller who is cancelled interrupts it."""
    shown, cell, failure = "", None, None

    async def tell() -> None:
        nonlocal shown
        began = told = time.monotonic()
        while True:
            await anyio.sleep(_FIRST_SECONDS)
            text, shown, now = shown, "", time.monotonic()
            if text or now - told >= _SILENT_SECONDS:
                told = now
                await report(now - began, None, text or None)

    async with anyio.create_task_group() as beside:
        beside.start_soon(tell)
        try:
            async with aclosing(session.stream(source, kind=kind)) as events:
                async for event in events:
                    if isinstance(event, Done):
                        cell = event.cell
                    else:
                        said = f"{event.name}()\n" if isinstance(event, ToolCall) else event.text
                        shown = valid((shown + said)[-_MOST_SAID:])
        except CellblockError as error:  # raised outside the task group, as it is
            failure = error
        beside.cancel_scope.cancel()
    if failure is not None:
        raise failure
    assert cell is not None  # the last event of every stream
    return cell
