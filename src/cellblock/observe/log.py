"""The log of one run: an event a line, as JSON, in the order in which they happened.

What varies from one run to the next, times and memory, stands under the key `measured` and nowhere else: without it,
two runs of the same task with the same answers of the model are the same to the byte.

| event | when | what it holds |
|---|---|---|
| run | first | format, version, task, model, level, limits, seed, tools with their signatures, inputs, files |
| begin | the session is open | what the model is asked, how many cells the session had |
| reply | the model has answered | step, text, requests, finish, tokens |
| tool | a tool has answered a cell | step, name, arguments, answer or error |
| accept | the host has looked at an answer | step, given, and what became of it or error |
| cell | a step's code has ended | step, number, code, state, text, error, value, signals, answer, lost, rolled_back, |
| | | undoes, and memory where that is other than before: observations, failed_approaches, variables |
| decision | the loop took one | step, kind, reason |
| resume | another program goes on with the run | version |
| end | last | reason, value, verified_by, steps, tokens, memory |

A step's line is written before anything else follows from it, so a log that ends anywhere tells where to go on.

A run of several attempts has the events of each one after the other, each with its number as `attempt`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any, Literal, Self, overload

from cellblock.errors import LogError
from cellblock.hosting.to_thread import LARGE, off_loop
from cellblock.observe.redaction import Redactor
from cellblock.private import open_private
from cellblock.session.account import Account, Share
from cellblock.session.unbroken import unbroken
from cellblock.text import BadJson, dumps, half_made, read_json, represent
from cellblock.values.forms import MAX_DEPTH
from cellblock.values.room import held

FORMAT = 1
MEASURED = "measured"
_MOST_BYTES, _LONGEST, _MOST_EVENTS = 64 * 2**20, 8 * 2**20, 250_000
"""Bounds of a log that is read: bytes of the file, bytes of a line, and lines."""
_DEEPEST = 5 * MAX_DEPTH
"""Levels of an event: up to four for each of a value's, and those around it."""

Event = Mapping[str, Any]


class EventLog:
    """The events of one run, in memory and, where there is a path, in a file that is readable after every line."""

    def __init__(self, path: str | os.PathLike[str] | None = None, *, redactor: Redactor | None = None) -> None:
        """LogError where a file is at `path` already, or none can be written."""
        self.path = None if path is None else Path(path)
        self.events: list[Event] = []
        self.held: Share = Account().share()
        """The part of a session's account on which the events count."""
        self._redactor = redactor or Redactor()
        self._file: FileIO | None = None if self.path is None else _opened(self.path, "x")
        self._closed = False
        self.failure: LogError | None = None
        """Why nothing more is written: the file ends with its last whole line then, and the run can be resumed."""
        self._whole = 0
        self._writing = threading.Lock()  # tools that are no coroutines answer in threads

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """A log as its file has it; one that its writer did not finish a line of ends before that line.

        Blocks, for seconds where it is long. LogError where it is no log of ours, or too large.
        """
        log = cls()
        log.path = Path(path)
        log.events, log._whole = _read(path)
        return log

    def reopened(self, redactor: Redactor) -> Self:
        """This log, which was read, for more events. A last line that its writer did not finish is cut off."""
        assert self.path is not None
        self._redactor, self._file = redactor, _opened(self.path, "r+")
        self._file.truncate(self._whole)
        self._file.seek(self._whole)
        return self

    async def add(
        self, event: str, told: Callable[[], Mapping[str, Any]] = dict, /, *, size: int = LARGE, **data: Any
    ) -> None:
        """`write` data and what `told` gives: off the event loop, where it is made of so many bytes as hold that up.

        It is written before all that follows, whoever is cancelled meanwhile.
        """
        write = partial(off_loop, size, lambda: self.write(event, **data, **told()))
        await (write() if size < LARGE else unbroken(write))

    def write(self, event: str, /, *, measured: Mapping[str, float] | None = None, **data: Any) -> Event:
        """Add an event; the event as it was written, without secrets. After `close` nothing is added any more."""
        row: dict[str, Any] = {"event": event}
        row |= {key: self._redactor.data(value) for key, value in data.items()}
        if measured is not None:
            row[MEASURED] = dict(measured)
        line = dumps(row, ensure_ascii=False).encode(
            "utf-8", "backslashreplace"
        )  # of a lone surrogate: its escape
        with self._writing:
            if not self._closed:
                if self._file is not None:
                    self._append(self._file, line + b"\n")
                self.events.append(row)
                self.held.add(held(row))
        return row

    def _append(self, file: FileIO, line: bytes) -> None:
        """Write a whole line or, with LogError, nothing of it and nothing ever after."""
        if self.failure is not None:
            raise self.failure
        try:
            left = memoryview(line)
            while left:
                left = left[file.write(left) :]
        except OSError as error:
            self.failure = LogError(
                f"the log {self.path} cannot be written: {error.strerror}", hint="make room, and resume the run"
            )
            with suppress(OSError):  # else a reader leaves out the line that is not whole
                file.truncate(self._whole)
            raise self.failure from None
        self._whole += len(line)

    def close(self) -> None:
        """Close the file; the events stay."""
        with self._writing:
            self._closed = True
            self.held.close()
            if self._file is not None:
                self._file.close()
                self._file = None

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    @overload
    def __getitem__(self, place: int) -> Event: ...
    @overload
    def __getitem__(self, place: slice) -> list[Event]: ...
    def __getitem__(self, place: int | slice) -> Event | list[Event]:
        return self.events[place]

    @half_made
    def __repr__(self) -> str:
        return f"<EventLog of {len(self.events)} events{f' in {self.path}' if self.path else ''}>"


def read_log(path: str | os.PathLike[str]) -> list[Event]:
    """The events of a log, as `EventLog.read` reads it."""
    return EventLog.read(path).events


def _read(path: str | os.PathLike[str]) -> tuple[list[Event], int]:
    """The events of a log, and how many bytes of it are whole lines."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise LogError(f"the log {path} cannot be read: {error.strerror}", hint="give the path of a log") from None
    whole = data.rfind(b"\n") + 1
    lines = data.split(b"\n")[:-1]
    if len(data) > _MOST_BYTES or len(lines) > _MOST_EVENTS or max(map(len, lines), default=0) > _LONGEST:
        raise LogError(
            f"the log {path} is too large: more than {_MOST_BYTES >> 20} MB, {_MOST_EVENTS:,} events or "
            f"{_LONGEST >> 20} MB in one",
            hint="a run that logs so much cannot be replayed or resumed",
        )
    events = [_event(one, path, number) for number, one in enumerate(lines, 1)]
    if not events or events[0]["event"] != "run":
        raise _no_log(path, 1)
    if events[0].get("format") != FORMAT:
        raise LogError(
            f"{path} is a log of format {represent(events[0].get('format'), max_chars=50)}, not {FORMAT}",
            hint="read it with the version that wrote it",
        )
    return events, whole


def _event(line: bytes, path: object, number: int) -> Event:
    try:
        event = read_json(line, deepest=_DEEPEST, halves=True)
    except BadJson:
        raise _no_log(path, number) from None
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        raise _no_log(path, number)
    return event


def _opened(path: Path, mode: Literal["x", "r+"]) -> FileIO:
    try:
        return FileIO(open_private(path, mode), "wb")
    except FileExistsError:
        raise LogError(f"there is a log at {path} already", hint="give another path, or resume that run") from None
    except OSError as error:
        raise LogError(f"no log can be written to {path}: {error.strerror}", hint="give another path") from None


def _no_log(path: object, number: int) -> LogError:
    return LogError(f"{path}, line {number}, is not a line of a run's log", hint="give a log that a run has written")
