"""Progress of a list of steps: one line a step, redrawn while it runs where the stream is a terminal."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import TextIO

from cellblock.cli.terminal import Paint
from cellblock.executors.container.steps import Line
from cellblock.text import plain

_TICK = 0.1
_CAPTION = 36
_CLEAR = "\r\x1b[2K"


class Progress:
    """Prints lines like `✓ load the sales ... 12 ms`. Elsewhere than on a terminal each is written once."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._redraws = stream.isatty()
        self._paint = Paint(stream)

    @asynccontextmanager
    async def step(self, caption: str) -> AsyncIterator[Line]:
        """The line of one step; set its outcome before leaving."""
        line, began = Line(), time.perf_counter()

        def text(seconds: float, outcome: str) -> str:
            took = f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1e3:.0f} ms"
            return f"{caption:<{_CAPTION}} {took:>7}  {outcome}".rstrip()

        drawn = redrawn(self._stream, lambda seconds: f"  {text(seconds, line.doing())}")
        async with drawn if self._redraws else nullcontext():
            try:
                yield line
            except BaseException:  # Ctrl-C, as a rule: the message about it begins a line
                if self._redraws:
                    _write(self._stream, "\n")
                raise
        whole = plain(text(time.perf_counter() - began, line.outcome))
        if self._redraws:
            whole = whole[: shutil.get_terminal_size().columns - 3]
        _write(self._stream, f"{self._paint.yes if line.good else self._paint.no} {whole}\n")


@asynccontextmanager
async def redrawn(stream: TextIO, text: Callable[[float], str], *, after: float = 0.0) -> AsyncIterator[None]:
    """Draw a line of a terminal, `text` of the seconds so far, while the body runs; then clear it.

    It is drawn for the first time after `after` seconds, and is cut where it would wrap.
    """
    began = time.perf_counter()

    async def draw() -> None:
        await asyncio.sleep(after)
        try:
            while True:
                line = plain(text(time.perf_counter() - began))
                _write(stream, _CLEAR + line[: shutil.get_terminal_size().columns - 1])
                await asyncio.sleep(_TICK)
        finally:
            _write(stream, _CLEAR)

    drawing = asyncio.ensure_future(draw())
    try:
        yield
    finally:
        drawing.cancel()
        with suppress(asyncio.CancelledError):
            await drawing


def _write(stream: TextIO, text: str) -> None:
    stream.write(text)
    stream.flush()
