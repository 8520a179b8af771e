"""Result of running code, by E2B's classes: results as MIME views, printed text, an error."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from typing import Literal, cast

from cellblock.cell import Cell
from cellblock.errors import UnknownCell
from cellblock.events import Done, Event
from cellblock.integrations.commands import time_limit, timed_out
from cellblock.integrations.e2b.exceptions import TimeoutException, told
from cellblock.outputs import Output, OutputType
from cellblock.session.blocking import Session
from cellblock.session.rich import rich
from cellblock.session.shown import IMAGES
from cellblock.text import as_terminal, write_json

Kind = Literal["python", "shell"]
_VIEWS = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
}
_NOUN = {"python": "code", "shell": "command"}
_BINARY = IMAGES | {"application/pdf"}


@dataclass
class OutputMessage:
    """Printed text. `timestamp` in nanoseconds since 1970; `error` is True for stderr."""

    line: str
    timestamp: int
    error: bool = False

    def __str__(self) -> str:
        return self.line


@dataclass
class ExecutionError:
    """Why the code failed."""

    name: str
    value: str
    traceback: str

    def to_json(self) -> str:
        """As JSON text."""
        return write_json(asdict(self))


@dataclass(repr=False)
class Result:
    """An output in each of its views, binary ones in base64. `extra` holds other MIME types."""

    text: str | None = None
    html: str | None = None
    markdown: str | None = None
    svg: str | None = None
    png: str | None = None
    jpeg: str | None = None
    pdf: str | None = None
    latex: str | None = None
    json: object = None
    javascript: str | None = None
    is_main_result: bool = False
    extra: dict[str, object] = field(default_factory=dict)

    def formats(self) -> list[str]:
        """The views that there are."""
        return [name for name in _VIEWS.values() if getattr(self, name)] + list(self.extra)

    def __getitem__(self, name: str) -> object:
        return self.extra[name] if name in self.extra else getattr(self, name)

    def __repr__(self) -> str:
        return as_terminal(f"Result({self.text or 'Formats: ' + ', '.join(self.formats())})")

    __str__ = __repr__

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        """The views for Jupyter's page, which drives the host's kernel: SVG and Markdown as HTML without scripts."""
        return rich({mime: self[name] for mime, name in _VIEWS.items() if self[name] is not None} | self.extra).bundle()

    def _repr_html_(self) -> object:
        return self._repr_mimebundle_().get("text/html")

    def _repr_png_(self) -> object:
        return self._repr_mimebundle_().get("image/png")

    def _repr_jpeg_(self) -> object:
        return self._repr_mimebundle_().get("image/jpeg")

    def _repr_latex_(self) -> object:
        return self._repr_mimebundle_().get("text/latex")

    def _repr_svg_(self) -> None: ...

    def _repr_markdown_(self) -> None: ...


@dataclass
class Logs:
    """Printed text, in pieces."""

    stdout: list[str] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)

    def to_json(self) -> str:
        """As JSON text."""
        return write_json(asdict(self))


@dataclass
class Execution:
    """Result of one run of code."""

    results: list[Result] = field(default_factory=list)
    logs: Logs = field(default_factory=Logs)
    error: ExecutionError | None = None
    execution_count: int | None = None

    @property
    def text(self) -> str | None:
        """The last expression's value, as text; None without one."""
        return next((result.text for result in self.results if result.is_main_result), None)

    def to_json(self) -> str:
        """As JSON text."""
        results = [{**{name: one[name] for name in one.formats()}, "text": one.text} for one in self.results]
        error = None if self.error is None else self.error.to_json()
        return write_json({"results": results, "logs": self.logs.to_json(), "error": error})


def run_cell(session: Session, source: str, kind: Kind, timeout: float | None, show: Callable[[Output], None]) -> Cell:
    """Run a cell, and call `show` in this thread. What that raises, Ctrl-C too, interrupts the cell.

    TimeoutException past `timeout` seconds, None or 0 for none, and at the session's own limit.
    """
    cell: Cell | None = None
    seconds = time_limit(session.limits, timeout)
    events = cast("Generator[Event]", session.stream(source, kind=kind, timeout=seconds))
    with closing(events):
        for event in events:
            if isinstance(event, Output):
                show(event)
            elif isinstance(event, Done):
                cell = event.cell
    assert cell is not None  # the last event of every stream
    if timed_out(cell.error):
        what = _NOUN[kind]
        raise TimeoutException(f"the {what} ran longer than {seconds:g} s", hint="give timeout=, or do less in one run")
    return cell


def execution(cell: Cell, read: Callable[[str], bytes]) -> Execution:
    """A cell as E2B's `Execution`; `read` gives the bytes behind an output's URI."""
    found = Execution(execution_count=cell.number)
    for output in cell.outputs:
        if output.stream == "stdout":
            found.logs.stdout.append(output.text)
        elif output.stream is not None:
            found.logs.stderr.append(output.text)
        elif output.type is not OutputType.ERROR:
            found.results.append(result(output, read))
    if cell.error is not None:
        found.error = ExecutionError(cell.error.type, told(cell.error), cell.error.traceback)
    return found


def result(output: Output, read: Callable[[str], bytes]) -> Result:
    """An output that is not printed text, as E2B's `Result`."""
    parts = dict(output.data)
    for mime, uri in output.data.items():
        if mime in _BINARY and isinstance(uri, str):
            with suppress(UnknownCell):  # text that only looks like a URI
                parts[mime] = base64.b64encode(read(uri)).decode()
    views = {_VIEWS[mime]: parts.pop(mime) for mime in _VIEWS if mime in parts}
    return Result(**views, is_main_result=output.is_result, extra=parts)  # type: ignore[arg-type]  # by the table


def message(output: Output) -> OutputMessage:
    """Printed text, for a callback while code runs."""
    return OutputMessage(output.text, time.time_ns(), error=output.stream == "stderr")
