"""Texts that a reader of the host may take too long for: sources, replies, notebooks, messages of failures, markup.

The invariant. A text of a bounded length holds up the thread that reads it for no longer than four million steps of
a loop (some 200 ms) and ten times what plain words of the same length take, in the same run; and no more than 32 MB of
memory are taken meanwhile. Texts are made as those that cost the square are: a beginning, a piece many times, an end.
"""

from __future__ import annotations

import io
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from cellblock.agent.context import approach, losses
from cellblock.agent.parse import read as read_reply
from cellblock.agent.trace import Trace
from cellblock.cell import Cell, CellState
from cellblock.cli.source import split
from cellblock.cli.terminal import Printer
from cellblock.executors.protocol import Written
from cellblock.models import Reply
from cellblock.models.failures import refused
from cellblock.nesting import Nesting
from cellblock.observe.redaction import Redactor
from cellblock.outputs import Output, OutputType
from cellblock.session.account import Account
from cellblock.session.jupyter import in_order, pieces
from cellblock.session.markup import sanitized
from cellblock.session.notebook import Notebook
from cellblock.session.page import page
from cellblock.session.record import Recorder
from cellblock.session.unreached import Reach
from cellblock.text import as_terminal
from cellblock.values.portable import encode, pack, unpack
from cellblock.wire import messages as m

LENGTH = 60_000
SPARE_STEPS, TIMES = 4_000_000, 10
MOST_BYTES = 32 * 2**20

PIECES = (
    " ", "\t", "\n", "\r", "\r\n", " \n", "a", "1", "é", "\u200b", "\x1b[", "\x1b]", "\x9b", "\x07", "\x00",
    "\\", "\\\\", "'", '"', "'''", '"""', "`", "```", "```py", "```py\n", "```md\n", "~~~", "> ", ">", "- ",
    "1. ", "* ", "# ", "#", "*", "_", "**a", "[", "](", "![", "]: ", "<", "</", "<a", "<a ", "<b>", "<!--",
    "-->", "<![CDATA[", "<style>", "</style>", "<script>", "<p x='", '<p x="', "&", "&#", "&amp;", "|", "|-",
    "$", "$$", "://", "a:", "@", "http://", "eyJ", "-eyJ", ".eyJ", "eyJ.", "sk-", "Bearer ", "-----BEGIN",
    "-----BEGIN PRIVATE KEY-----", "-----END", " PRIVATE KEY", "…", "...", "se", "cret-of-the-host", "%", "%%",
    "%cd ", "%time ", "-n 1 ", "!", "!ls", "?", "x = ", "x = !", "=", ",", ".", "x.", "(", ")", "{", "}", "{{",
    "<think>", "</think>", "<code>", "</code>", "{\"code\":", "tool use ", "not supported", "host='",
    "', port=", " is not in the network= list of this session", "leads to a ", "[Errno 111]", " at 0x", "f(",
    "lambda:", "not ", "~", "- -", "if x:\n", " if x else ", "x[", "# %%", "def f():\n ", "\x0c", "\u2028",
    "Traceback (most recent call last):\n", "During handling", "image/", "data:image/png;base64,", "url(",
    "rgb(",
)  # fmt: skip
"""What patterns and parsers look for."""


def _failed(message: str, *, source: str = "", kind: str = "X") -> None:
    draft = Cell(id="c1", number=1, source=source, state=CellState.RUNNING)
    recorder = Recorder(draft, 10_000, Account().share())
    recorder.reach = lambda: Reach(listed=("a.test:443",), door=True)
    failure = m.Failure(type=kind, message=message, traceback=message, kind="raised")
    finished = m.Finished(number=1, failure=failure, duration_ms=1.0, cpu_ms=1.0, memory_peak=1)
    cell = recorder.finish(finished, ended=None)
    notebook = Notebook()
    notebook.record(cell, {})
    notebook.to_html()
    notebook.to_ipynb()
    assert cell.error is not None
    approach(source, cell.error)
    losses(cell)


def _shown(text: str) -> None:
    """As what a cell prints and displays, on a page, in a document, on a terminal."""
    recorder = Recorder(Cell(id="c1", number=1, source=text, state=CellState.RUNNING), 10_000, Account().share())
    recorder.write(Written(stream="stdout", text=text))
    data = {"text/plain": text, "text/html": text, "image/svg+xml": text, "text/markdown": text}
    for mime in data:
        recorder.display(m.Display(data={mime: data[mime]}, mimes=(), is_result=False, mark=0))
    finished = m.Finished(number=1, failure=None, duration_ms=1.0, cpu_ms=1.0, memory_peak=1)
    notebook = Notebook()
    notebook.record(recorder.finish(finished, ended=None), recorder.blobs)
    notebook.to_html()
    notebook.to_ipynb()


def _printed(text: str) -> None:
    terminal = _Screen()
    printer = Printer(terminal)
    for at in range(0, len(text), 1000):
        printer.write(text[at : at + 1000])
    printer.line(text)
    as_terminal(text)
    trace = Trace(3, stream=terminal)
    trace(text)
    trace(Output(type=OutputType.TEXT, data={"text/plain": text}, stream="stdout"))


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def _notebook(kind: str) -> Callable[[str], None]:
    def read(text: str) -> None:
        cell = {"cell_type": kind, "metadata": {}, "source": f"x\n{text}"}
        document = {"nbformat": 4, "metadata": {}, "cells": [cell]}
        pieces(document)
        if kind == "markdown":
            page(in_order(document, {}))

    return read


def _typed(text: str) -> None:
    nesting = Nesting()
    for line in text.split("\n"):
        nesting.add(line)
    split(text)


_REDACTOR = Redactor(
    environment={"API_KEY": "secret-of-the-host", "B_TOKEN": '"C:\\\\x\\y"\n', "C_SECRET": "a  \\n \n a \t\\n  a\\ \\z"}
)

READERS: dict[str, Callable[[str], Any]] = {
    "a source that is no Python": lambda text: _failed("invalid syntax", source=text, kind="SyntaxError"),
    "a failure": _failed,
    "a reply": lambda text: read_reply(Reply(text=text, model="m")),
    "a notebook's code": _notebook("code"),
    "a notebook's prose": _notebook("markdown"),
    "an endpoint's refusal": lambda text: refused(400, text, model="m", place="u"),
    "a log": lambda text: _REDACTOR.data({"text": text}),
    "outputs": _shown,
    "a terminal": _printed,
    "typed lines": _typed,
    "markup": sanitized,
    "a value": lambda text: unpack(pack(encode({text: text, 1: [text]}))),
}


@dataclass(frozen=True, slots=True)
class Pumped:
    """A beginning, a piece over and over, an end."""

    start: str
    piece: str
    end: str

    def text(self, length: int = LENGTH) -> str:
        return self.start + self.piece * (length // len(self.piece)) + self.end


def pumped(pick: random.Random) -> Pumped:
    """One of the texts there are."""
    piece = "".join(pick.choices(PIECES, k=pick.choice((1, 1, 1, 2, 2, 3))))
    ends = ["".join(pick.choices(PIECES, k=pick.choice((0, 1, 1, 2)))) for _ in range(2)]
    return Pumped(ends[0], piece, ends[1])


@dataclass(slots=True)
class Standstill:
    """Reads texts with one reader, and keeps those that it took too long or too much for."""

    name: str
    finds: list[str] = field(default_factory=list)
    cases: int = 0

    def run(self, texts: Iterator[Pumped], *, measure_every: int = 20) -> None:
        read = READERS[self.name]
        plain = "some words\n" * (LENGTH // 11)
        read(plain)  # what is imported the first time

        def allowance() -> float:
            return max(_seconds(_steps, SPARE_STEPS) + TIMES * _seconds(read, plain) for _ in range(3))

        allowed = allowance()
        for case in texts:
            self.cases += 1
            text = case.text()
            if (took := min_seconds(read, text, allowed)) > allowed:
                allowed = max(allowed, allowance())  # a processor is slower at times
            if took > allowed:
                self.finds.append(f"{self.name}: {took:.2f} s for {case}, {allowed:.2f} s allowed")
            elif self.cases % measure_every == 0 and (held := _bytes(read, text)) > MOST_BYTES:
                self.finds.append(f"{self.name}: {held >> 20} MB for {case}")


def min_seconds(read: Callable[[str], Any], text: str, allowed: float) -> float:
    """Processor time of the thread; the least of three tries where it is too much, as others use the processor too."""
    took = _seconds(read, text)
    return took if took <= allowed or took > 20 * allowed else min(took, *(_seconds(read, text) for _ in range(2)))


def _steps(count: int) -> None:
    left = count
    while left:
        left -= 1


def _seconds(read: Callable[[Any], Any], text: Any) -> float:
    began = time.thread_time()
    read(text)
    return time.thread_time() - began


def _bytes(read: Callable[[str], Any], text: str) -> int:
    tracemalloc.start()
    try:
        read(text)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
