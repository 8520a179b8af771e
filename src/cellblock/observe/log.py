"""The log of one run: an event a line, as JSON, in the order in which they happened.

What varies from one run to the next, times and memory, stands under the key `measured` and nowhere else: without it,
two runs of the same task with the same answers of the model are the same to the byte.

| event | when | what it holds |
|---|---|---|
| run | first | version, task, model, level, limits, seed, tools |
| reply | the model has answered | step, text, requests, tokens |
| cell | a step's code has ended | step, code, state, text, error, value, signals, lost, rolled_back |
| tool | a tool has answered a cell | step, name, arguments, answer or error |
| decision | the loop took one | step, kind, reason |
| end | last | reason, value, verified_by, steps, tokens |
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from cellblock.errors import CellblockError
from cellblock.observe.redaction import Redactor

FORMAT = 1
MEASURED = "measured"

Event = Mapping[str, Any]


class EventLog:
    """The events of one run, in memory and, where there is a path, in a file that is readable after every line."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        redactor: Redactor | None = None,
        before: Iterable[Event] = (),
    ) -> None:
        """`before` are the events of a run that is gone on with: they are in the file already."""
        self.path = None if path is None else Path(path)
        self._redactor = redactor or Redactor()
        self.events: list[Event] = list(before)
        self._file: TextIO | None = None
        if self.path is not None:
            self._file = _opened(self.path, go_on=bool(self.events))

    def write(self, event: str, /, *, measured: Mapping[str, float] | None = None, **data: Any) -> Event:
        """Add an event; the event as it was written, without secrets."""
        row: dict[str, Any] = {"event": event, **data}
        if measured is not None:
            row[MEASURED] = dict(measured)
        clean: Any = self._redactor.data(row)
        self.events.append(clean)
        if self._file is not None:
            self._file.write(json.dumps(clean, ensure_ascii=False, default=repr) + "\n")
            self._file.flush()
        return clean  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close the file; the events stay."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    def __repr__(self) -> str:
        return f"<EventLog of {len(self.events)} events{f' in {self.path}' if self.path else ''}>"


def read_log(path: str | os.PathLike[str]) -> list[Event]:
    """The events of a log; one that its writer did not finish a line of ends before that line.

    CellblockError where it is no log of ours.
    """
    events: list[Event] = []
    lines = Path(path).read_text(encoding="utf-8").splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line)
        except ValueError:
            if number == len(lines) and not line.endswith("\n"):
                break
            raise _no_log(path, number) from None
        if not isinstance(event, dict) or not isinstance(event.get("event"), str):
            raise _no_log(path, number)
        events.append(event)
    if not events or events[0]["event"] != "run":
        raise _no_log(path, 1)
    if events[0].get("format") != FORMAT:
        raise CellblockError(
            f"{path} is a log of format {events[0].get('format')!r}, not {FORMAT}",
            hint="read it with the version that wrote it",
        )
    return events


def without_measures(events: Iterable[Event]) -> list[dict[str, Any]]:
    """The events without what differs from run to run."""
    return [{key: value for key, value in event.items() if key != MEASURED} for event in events]


def _opened(path: Path, *, go_on: bool) -> TextIO:
    try:
        return path.open("a" if go_on else "x", encoding="utf-8")
    except FileExistsError:
        raise CellblockError(
            f"there is a log at {path} already", hint="give another path, or resume that run"
        ) from None
    except OSError as error:
        raise CellblockError(f"no log can be written to {path}: {error.strerror}", hint="give another path") from None


def _no_log(path: object, number: int) -> CellblockError:
    return CellblockError(f"{path}, line {number}, is no line of a run's log", hint="give a log that a run has written")
