"""Display of a running script: as text on a screen, or as one JSON object a cell."""

from __future__ import annotations

import base64
import sys
from collections.abc import Mapping
from contextlib import aclosing, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal

from cellblock.advice import for_command_line
from cellblock.cell import Cell, CellError
from cellblock.cli.export import Shelf
from cellblock.cli.terminal import Paint, Printer, say, write_data
from cellblock.errors import UnknownCell
from cellblock.events import Done
from cellblock.outputs import Output, OutputType
from cellblock.text import name

if TYPE_CHECKING:
    from cellblock.session.session import AsyncSession

_MOST_NAMED = 20
_OPTION = {"timeout": "--timeout S allows more", "memory": "--memory MB allows more"}


class Screen:
    """Text as it comes: stdout to stdout, stderr to stderr, results and tables to stdout, images by name.

    `option` is the one that would save images, named where `shelf` is None; "" for none. `tells` is for the prompt: the
    path of each image at once, and a line for a cell that was rolled back.
    """

    def __init__(self, session: AsyncSession, shelf: Shelf | None, *, option: str, tells: bool = False) -> None:
        self._session = session
        self._shelf = shelf
        self._option = option
        self._tells = tells
        self._out = Printer(sys.stdout)
        self._err = Printer(sys.stderr)
        self._paint = Paint(sys.stderr)

    async def run(self, source: str, kind: Literal["python", "shell"] = "python") -> Cell:
        """Run a cell to its end and show it meanwhile."""
        async with aclosing(self._session.stream(source, kind=kind)) as events:
            async for event in events:
                if isinstance(event, Output) and event.type is not OutputType.ERROR:  # `_explain` tells that
                    self._show(event)
                elif isinstance(event, Done):
                    cell = event.cell
        for output in cell.outputs:
            for image in _binary(self._session, output).values():
                self._keep(image, cell.number)
        if cell.error is not None:
            self._explain(cell.error)
        if cell.rolled_back and self._tells:
            say("the session is as it was before this cell")
        if cell.lost:
            say(_lost(cell))
        return cell

    def end_lines(self) -> None:
        """Leave the cursor at the start of a line."""
        self._out.end_line()
        self._err.end_line()

    async def end(self, before: Mapping[str, bytes]) -> None:
        """Save the files and images, and print their paths."""
        if self._shelf is None:
            return
        await self._shelf.put_new(self._session, before)
        for path in self._shelf.saved:
            say(f"saved {path}")
        for failure in self._shelf.failed:
            say(f"not saved: {failure}")

    def _show(self, output: Output) -> None:
        if output.stream is not None:
            (self._err if output.stream == "stderr" else self._out).write(output.text)
        elif output.type is not OutputType.IMAGE or output.uri is None:  # SVG is text, and no terminal draws it
            self._out.line(output.text)
        # other images are read, and named, when the cell has ended

    def _keep(self, image: bytes, number: int) -> None:
        if self._shelf is None:
            if self._option:
                say(f"an image of {len(image)} bytes ({self._option} keeps it)")
        elif not self._tells:
            self._shelf.put_image(image)
        elif (path := self._shelf.put_image(image, f"cell-{number}")) is not None:
            say(f"picture: {path}")
        else:
            say(f"picture not saved: {self._shelf.failed[-1]}")

    def _explain(self, error: CellError) -> None:
        """Print the traceback as Python does; then the limit or the wall that ended the cell."""
        if error.type == "SystemExit" and error.kind == "raised":
            if not error.message.lstrip("-").isdigit():  # sys.exit("message")
                self._err.line(error.message)
            return
        if error.traceback:
            self._err.line(error.traceback, self._paint.traceback)
        if error.kind != "raised":
            option = _OPTION.get(error.kind, "")
            say(f"{error.kind}: {error.message}" + (f" ({option})" if option else ""))
        elif not error.traceback:
            self._err.line(f"{error.type}: {error.message}", self._paint.traceback)
        if error.hint and error.kind == "raised":
            say(f"hint: {for_command_line(error.hint)}")


class JsonLines:
    """One object a cell, in a line of its own, when the next one begins. Images in base64 unless they are saved."""

    def __init__(self, session: AsyncSession, shelf: Shelf | None) -> None:
        self._session = session
        self._shelf = shelf
        self._waiting: dict[str, object] | None = None

    async def run(self, source: str, kind: Literal["python", "shell"] = "python") -> Cell:
        """Run a cell to its end and print the one before it."""
        async with aclosing(self._session.stream(source, kind=kind)) as events:
            async for event in events:
                if isinstance(event, Done):
                    cell = event.cell
        self._flush()
        self._waiting = self._cell(cell)
        return cell

    async def end(self, before: Mapping[str, bytes]) -> None:
        """Save the files, and print the last cell with their paths."""
        if self._shelf is not None and self._waiting is not None:
            await self._shelf.put_new(self._session, before)
            self._waiting |= {"saved": self._shelf.saved, "not_saved": self._shelf.failed}
        self._flush()

    def _flush(self) -> None:
        if self._waiting is not None:
            write_data(self._waiting)
            self._waiting = None

    def _cell(self, cell: Cell) -> dict[str, object]:
        fields = {name: one for name, one in cell.to_json().items() if name not in ("source", "kind")}
        lost = [asdict(loss) for loss in cell.lost if loss.name != "__file__"]
        return {**fields, "lost": lost, "outputs": [self._output(output) for output in cell.outputs]}

    def _output(self, output: Output) -> dict[str, object]:
        shown: dict[str, object] = output.to_json()
        parts = _binary(self._session, output)
        if self._shelf is None:
            inline = {mime: base64.b64encode(data).decode("ascii") for mime, data in parts.items()}
            shown["data"] = {**output.data, **inline}
        elif parts:
            shown["files"] = [self._shelf.put_image(data) for data in parts.values()]
        return shown


def _lost(cell: Cell) -> str:
    """The names lost with a process; the reason, where the cell's error does not say it."""
    names = [name(loss.name) for loss in cell.lost[:_MOST_NAMED]]
    more = len(cell.lost) - _MOST_NAMED
    some = ", ".join(names) + (f" and {more} more" if more > 0 else "")
    reasons = {loss.reason for loss in cell.lost}
    return f"lost: {some}" + (f": {reasons.pop()}" if cell.error is None and len(reasons) == 1 else "")


def _binary(session: AsyncSession, output: Output) -> dict[str, bytes]:
    """The binary parts of an output by MIME type. Text that only looks like the URI of one is none."""
    parts = {}
    for mime, part in output.data.items():
        if isinstance(part, str) and part.startswith("notebook://"):
            with suppress(UnknownCell):
                blob = session.notebook.blob(part)
                if blob.mime == mime:
                    parts[mime] = blob.data
    return parts
