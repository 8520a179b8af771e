"""Programs that take their time: followed line by line while they run, and ended with all they started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass

import anyio
from anyio.abc import Process

_REMEMBERED_LINES = 12
_ENDING_SECONDS = 20.0


@dataclass(slots=True)
class Line:
    """Status line of a step that ends without an error: its success, its end, and what is going on until then."""

    good: bool = True
    outcome: str = ""
    doing: Callable[[], str] = str


Step = Callable[[str], AbstractAsyncContextManager[Line]]
"""Opens a step, by a few words for what it does."""


class Failed(Exception):
    """A program ended with another status than 0, or could not be run: the last lines it said."""


async def run(words: Sequence[str], line: Line, *, environment: Mapping[str, str] | None = None) -> None:
    """Run it to its end; its last line is what the step is doing. When cancelled it is ended, with time to tidy."""
    said: deque[str] = deque(maxlen=_REMEMBERED_LINES)
    line.doing = lambda: said[-1] if said else ""
    try:
        process = await anyio.open_process(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
    except OSError as error:
        raise Failed(f"{words[0]} cannot be run: {error.strerror}") from None
    async with process:
        try:
            await _follow(process, said)
            status = await process.wait()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await _end(process)
            raise
    if status:
        raise Failed("\n".join(said) or f"{words[0]} ended with status {status}")


_LONGEST_LINE = 10_000
"""Bytes of a line that are kept, the last ones."""


async def _follow(process: Process, said: deque[str]) -> None:
    assert process.stdout is not None
    begun = b""
    async for piece in process.stdout:
        *whole, begun = (begun[-_LONGEST_LINE:] + piece).replace(b"\r", b"\n").split(b"\n")
        said.extend(filter(None, (text.decode(errors="replace").strip() for text in whole)))
    if begun.strip():
        said.append(begun.decode(errors="replace").strip())


async def _end(process: Process) -> None:
    """End it, then what is left of what it started: engines and makers of roots tidy up when they are asked to go."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        with anyio.move_on_after(_ENDING_SECONDS):
            await process.wait()
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
