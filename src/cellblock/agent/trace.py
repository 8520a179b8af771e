"""A run followed while it goes on: as a stream of what happens, and on a terminal for `verbose=True`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from functools import partial
from queue import SimpleQueue
from typing import TextIO

import anyio

from cellblock.agent.result import RunResult, Step
from cellblock.agent.signals import Tell
from cellblock.events import Done, Event, ToolCall
from cellblock.outputs import Output, OutputType
from cellblock.session.background import Background
from cellblock.session.hostloop import Run
from cellblock.text import as_terminal, inert, line, represent

Told = str | Event | Step | RunResult

_MOST_LINES = 20
_WIDTH = 72
_WIDEST = 400
"""Characters of a line, past which it is cut."""
_MOST_WORDS = 1_000_000
_GUTTER = "  │ "


async def stream(run: Callable[..., Awaitable[RunResult]]) -> AsyncGenerator[Told, None]:
    """Events of `run(tell=…)` as they happen; the last is its result. Whoever leaves before that ends the run."""
    send, receive = anyio.create_memory_object_stream[Told](float("inf"))
    background, left, ended = Background(), anyio.Event(), anyio.Event()
    failures: list[BaseException] = []

    def tell(one: Told) -> None:
        if not left.is_set():
            send.send_nowait(one)

    async def follow() -> None:
        try:
            tell(await run(tell=tell))
        except (Exception, asyncio.CancelledError) as error:  # the caller's
            failures.append(error)
        finally:
            send.close()
            ended.set()

    background.start(follow)
    try:
        async for one in receive:
            yield one
        if failures:
            raise failures[0]
    finally:
        left.set()
        receive.close()  # before anything is awaited: a loop that shuts down gives no time
        background.cancel()
        with anyio.CancelScope(shield=True):
            await ended.wait()
        failures.clear()  # their tracebacks lead to what holds them, and to the agent


def blocking_stream(run: Callable[..., Awaitable[RunResult]]) -> Iterator[Told]:
    """`stream` for blocking code."""
    events: SimpleQueue[Told | None] = SimpleQueue()
    under_way = Run(partial(run, tell=events.put), done=lambda: events.put(None))
    try:
        while (one := events.get()) is not None:
            yield one
        yield under_way.result()
    finally:
        under_way.end()
        del under_way  # what is raised leads to this frame


class Trace:
    """Prints steps to stderr: the model's words and what its code shows, as they come; then how it ended.

    What a cell shows stands behind a bar: its first 20 lines, and the last ones of its error. All of it is inert:
    nothing that a model or a cell writes drives the terminal.
    """

    def __init__(
        self, most_steps: int, then: Tell | None = None, *, stream: TextIO | None = None, before: int = 0
    ) -> None:
        """`then` is told the same. `before` is how many steps the run has had already."""
        self._most = most_steps
        self._then = then
        self._stream = stream or sys.stderr
        self._number = before + 1
        self._begun = False
        self._words = ""
        self._in_line = False
        self._lines = 0
        self._column = 0
        self._left_out = 0

    def __call__(self, told: str | Event | Step) -> None:
        match told:
            case str():
                self._begin()
                self._words += told[: _MOST_WORDS - len(self._words)]
                self._write(inert(told))
            case ToolCall():
                self._end_line()
                self._show(f"→ {told.name}({_arguments(told)})\n")
            case Output() if told.stream:
                self._show(as_terminal(told.text))
            case Output(type=OutputType.ERROR):
                pass  # its step shows it
            case Output():
                self._end_line()
                self._show(as_terminal(told.text) + "\n")
            case Step():
                self._end(told)
            case Done():
                pass
        if self._then is not None:
            self._then(told)

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._write(f"── step {self._number} of {self._most} ".ljust(_WIDTH, "─") + "\n")

    def _end(self, step: Step) -> None:
        """Show how a step ended: one line with a mark of its own."""
        self._begin()
        self._end_line()
        if self._left_out:
            self._write(f"{_GUTTER}… {self._left_out} more lines\n")
        if step.code.strip() and step.code.strip() not in self._words:  # it came in a call, beside other words
            for one in ("the code that ran:", *inert(step.code).strip().split("\n")):
                self._write(_GUTTER + one + "\n")
        self._words = ""
        if step.cell is not None and step.cell.error is not None:
            error = step.cell.error
            for one in as_terminal(error.traceback or f"{error.type}: {error.message}").splitlines()[-_MOST_LINES:]:
                self._write(_GUTTER + _cut(one, _WIDEST) + "\n")
        self._write(f"  {_how(step)}\n\n")
        self._number, self._begun, self._lines, self._left_out = step.number + 1, False, 0, 0

    def _show(self, text: str) -> None:
        """A part of what a cell shows, behind the gutter; it may end within a line."""
        if not self._lines:
            self._end_line()
        for one in text.splitlines(keepends=True):
            if not self._in_line:
                if self._lines >= _MOST_LINES:
                    self._left_out += 1
                    continue
                self._lines, self._column = self._lines + 1, 0
                self._write(_GUTTER)
            self._write(_cut(one, _WIDEST - self._column))
            self._column += len(one)

    def _end_line(self) -> None:
        if self._in_line:
            self._write("\n")

    def _write(self, text: str) -> None:
        if text:
            self._in_line = not text.endswith("\n")
            encoding = self._stream.encoding or "utf-8"
            self._stream.write(text.encode(encoding, "replace").decode(encoding))
            self._stream.flush()


def _how(step: Step) -> str:
    cell = step.cell
    if cell is None:
        return f"✗ nothing was run: {step.decision}"
    took = f"{step.duration_ms:.0f} ms" if step.duration_ms < 1000 else f"{step.duration_ms / 1000:.1f} s"
    if cell.error is None:
        return f"✓ {step.decision or 'ran'}, {took}"
    kind = {"timeout": "time limit", "memory": "memory limit", "refused": "refused", "crashed": "its process ended"}
    back = "; rolled back" if cell.rolled_back and step.decision != "rolled back" else ""
    return f"✗ {kind.get(cell.error.kind, 'failed')}{'; ' + step.decision if step.decision else ''}{back}, {took}"


def _arguments(call: ToolCall) -> str:
    given = [_short(one) for one in call.args]
    given += [f"{name}={_short(value)}" for name, value in call.kwargs.items()]
    return ", ".join(given)


def _short(value: object) -> str:
    return line(represent(value, max_chars=200), 59)


def _cut(text: str, room: int) -> str:
    """A line, or a part of one, within the room that is left for it; nothing, where it was cut before."""
    if len(text.rstrip("\n")) <= room:
        return text
    return (text[:room] + "…" if room >= 0 else "") + ("\n" if text.endswith("\n") else "")
