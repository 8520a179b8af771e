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


class _Shown:
    """What a cell has shown and nobody was told yet."""

    def __init__(self) -> None:
        self._text = ""
        self.cell: Cell | None = None
        self.failure: CellblockError | None = None

    def add(self, text: str) -> None:
        self._text = valid((self._text + text)[-_MOST_SAID:])

    def take(self) -> str | None:
        text, self._text = self._text, ""
        return text or None


async def follow(session: AsyncSession, source: str, kind: Literal["python", "shell"], report: Report) -> Cell:
    """Run a cell, and report what it shows every half second. A caller who is cancelled interrupts it."""
    shown = _Shown()
    async with anyio.create_task_group() as beside:
        beside.start_soon(_tell, shown, report)
        try:
            async with aclosing(session.stream(source, kind=kind)) as events:
                async for event in events:
                    match event:
                        case Done():
                            shown.cell = event.cell
                        case ToolCall():
                            shown.add(f"{event.name}()\n")
                        case _:
                            shown.add(event.text)
        except CellblockError as error:  # raised outside the task group, as it is
            shown.failure = error
        beside.cancel_scope.cancel()
    if shown.failure is not None:
        raise shown.failure
    assert shown.cell is not None  # the last event of every stream
    return shown.cell


async def _tell(shown: _Shown, report: Report) -> None:
    began = told = time.monotonic()
    while True:
        await anyio.sleep(_FIRST_SECONDS)
        text, now = shown.take(), time.monotonic()
        if text is not None or now - told >= _SILENT_SECONDS:
            told = now
            await report(now - began, None, text)
