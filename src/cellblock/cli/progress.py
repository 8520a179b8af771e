"""Progress of a list of steps: one line a step, redrawn while it runs where the stream is a terminal."""

from __future__ import annotations

import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TextIO

import anyio

from cellblock.cli.terminal import Paint, encodable
from cellblock.executors.container.steps import Line
from cellblock.text import plain

_TICK = 0.1
_CAPTION = 36


class Progress:
    """Prints lines like `✓ load the sales ... 12 ms`. Elsewhere than on a terminal each is written once."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._redraws = stream.isatty()
        self._paint = Paint(stream)
        self._yes = encodable("\N{CHECK MARK}", "ok", stream)
        self._no = encodable("\N{BALLOT X}", "NO", stream)

    @asynccontextmanager
    async def step(self, caption: str) -> AsyncIterator[Line]:
        """The line of one step; set its outcome before leaving."""
        line, began = Line(), time.perf_counter()
        if self._redraws:
            failure: Exception | None = None
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._tick, caption, began, line)
                    try:
                        yield line
                    except Exception as error:  # carried out of the task group as it is
                        failure = error
                    tasks.cancel_scope.cancel()
            except BaseException:  # Ctrl-C, as a rule: what is said of it begins a line
                self._write("\n")
                raise
            if failure is not None:
                self._write("\n")
                raise failure
        else:
            yield line
        mark = self._paint.good(self._yes) if line.good else self._paint.bad(self._no)
        took = _duration(time.perf_counter() - began)
        text = f"{caption:<{_CAPTION}} {took:>7}  {plain(line.outcome)}".rstrip()
        self._write(("\r\x1b[2K" if self._redraws else "") + f"{mark} {self._cut(text)}\n")

    async def _tick(self, caption: str, began: float, line: Line) -> None:
        while True:
            took = _duration(time.perf_counter() - began)
            text = f"{caption:<{_CAPTION}} {took:>7}  {plain(line.doing())}".rstrip()
            self._write(f"\r\x1b[2K  {self._cut(text)}")
            await anyio.sleep(_TICK)

    def _cut(self, text: str) -> str:
        """A redrawn line must not wrap."""
        return text[: shutil.get_terminal_size().columns - 3] if self._redraws else text

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1e3:.0f} ms"
