"""Folds the events of one turn into a `Cell`."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import accumulate
from sys import getsizeof

from cellblock.advice import for_model
from cellblock.cell import NOTHING, Cell, CellError, CellState, Deferred, ErrorKind, Lost
from cellblock.executors.protocol import Curbed, Died, Recovery, Written
from cellblock.limits import Usage
from cellblock.network import Traffic
from cellblock.outputs import Output, OutputType, type_of
from cellblock.session.account import Share
from cellblock.session.notebook import Blob
from cellblock.text import cut, line
from cellblock.values.room import held
from cellblock.wire.frames import Buffer
from cellblock.wire.messages import Display, Failure, Finished

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellblock.session.unreached import Reach

_NOT_PYTHON = {
    "IPython's % and ! lines are not Python: leave % lines out, and run commands with session.shell(…)": re.compile(
        r"^[ \t]*+(?:%%?[a-z]|![^=])", re.MULTILINE
    ),
    "lines of ``` are not Python: give the code between them alone": re.compile(r"^[ \t]*+```", re.MULTILINE),
    "prompts are not Python: give the code alone, without >>> and ... and without what it answered": re.compile(
        r"^[ \t]*+>>>", re.MULTILINE
    ),
    "IPython's ? is not Python: help(…) shows the same": re.compile(
        r"^[ \t]*+\?|^[^\n#'\"?]*+\?\??+[ \t]*+$", re.MULTILINE
    ),
    "a command of the shell is not Python: run commands with session.shell(…)": re.compile(
        r"\A(?:\s++|#[^\n]*+\n)*+(?:pip3?|conda|uv|apt|apt-get|npm|git|curl|wget|cd|ls|mkdir)[ \t]++[a-z./~-]"
    ),
}
"""Hints for what models write that Python does not take, by what tells it in the source."""
_RETURNS = "'return' outside function"

_LESS_MEMORY = "use less memory at a time, or raise ExecutionLimits(max_memory_mb=…)"
_IN_TURN = (
    "in a crowd processes are stopped until it is their turn: leave it to the session to continue them (SIGCONT), "
    "or start fewer at once"
)
_OF_STATUS = {
    126: "the shell may not execute that file: give it to its interpreter, as in `python3 FILE`",
    127: "the session has no program of that name: `command -v NAME` finds those it has",
}
"""Meanings of a shell's exit statuses; the others are the command's own, which its output explains."""
_NO_MODULE = (
    "the interpreter of the session has no such package: use another, or install it there (python=…), "
    "or give it the file of a module of your own (session.files.write, mounts=…)"
)
_FEWER = "too many processes and threads: let some end, or raise ExecutionLimits(max_processes=…)"
_AT_LIMITS = (
    ("[Errno 28] ", "", "the session's files are at their limit: delete some, or raise ExecutionLimits(max_disk_mb=…)"),
    ("[Errno 27] ", "", "one file is as large as all may be: write less, or raise ExecutionLimits(max_disk_mb=…)"),
    ("[Errno 24] ", "", "the process has too many files open: close some, or raise ExecutionLimits(max_open_files=…)"),
    ("can't start new thread", "", _FEWER),
    ("[Errno 11] ", "fork", _FEWER),
)
"""Hints for limits that code meets as errors of the system: the message's beginning, a word of the traceback, the hint.
"""
_NO_FILE = "cells see their own session's files: look with os.listdir(), or give it one (session.files.write, mounts=…)"
_TRY_AGAIN = "see to the store; flush() tries again, and so does the next cell"
_WRECKED = (
    "a cell has changed Python itself here, as by emptying builtins or sys.path: session.undo() goes back to before it"
)
_RESTORED = "the session is as it was before this cell"
_RESUMES = "the next call resumes the session from its newest commit, as it was before this cell"
_OLDER = "the session is as it was some cells ago, as its newest checkpoints were gone: run what is missing again"
_DEAD = "the session is dead: what it called goes on and cannot be ended; open a new one"
_EMPTY = "the namespace is empty again, files are kept: run what defined the lost names again"

MAX_DISPLAYS = 500
MAX_DISPLAY_BYTES = 64 * 2**20
MAX_OUTPUTS = 10_000
"""Past which text that goes from stream to stream is no longer told apart."""
_BUFFER = 256
"""Bytes that a buffer takes beside what is in it."""
MOST_NOTE = 100
"""Characters by which a worker says how much it has cut."""


@dataclass(frozen=True, slots=True)
class Note:
    """A note of `cut` bytes left out: the number of its output, and its place and length there, in characters."""

    output: int
    place: int
    length: int
    cut: int


class Recorder:
    """Takes a cell's events in order; `blobs` are the binary parts of its outputs by URI.

    `curbed`: a process that the cell started was killed for the memory that all hold.
    """

    def __init__(self, cell: Cell, max_output_bytes: int, share: Share) -> None:
        """`share` is what the cell has shown until there is a `Cell` of it."""
        self._cell = cell
        self._limit = max_output_bytes
        self._share = share
        self.held = 0
        """Bytes that were shown, once the cell has ended."""
        self._display_bytes = 0
        self._dropped = 0
        self._cut = 0
        self.notes: list[Note] = []
        """Notes in the outputs of printed text that is left out."""
        self.curbed = False
        self.killed = ""
        """Processes that were killed, in the words of a cell that begins after it."""
        self.reach: Callable[[], Reach] | None = None
        """The hosts that the session can connect to."""
        self.failures: Collection[str] = ()
        """Errors of host functions that the cell called, in words."""
        self.traffic: Callable[[], Traffic] | None = None
        """Traffic through the session's door since the cell began, where there is one."""
        self._outputs: list[Output] = []
        self._stream: str | None = None
        self._pieces: list[str] = []
        """Text printed since the last output, all of it to that stream."""
        self.blobs: dict[str, Blob] = {}

    def write(self, written: Written) -> Output:
        """Printed text. Joined to the output before it where that is of the same stream, or where there are many."""
        text = written.text
        if self._stream != written.stream and not (self._stream and len(self._outputs) >= MAX_OUTPUTS):
            self._end_stream()
            self._stream = written.stream
        if written.cut:
            self._cut += written.cut
            note = f"\n[... {written.cut} bytes of output cut: the limit is {self._limit} ...]\n"
            self.notes.append(Note(len(self._outputs), sum(map(len, self._pieces)), len(note), written.cut))
            text = note + text
        self._pieces.append(text)
        self._share.add(len(text))
        return _stream(text, written.stream)

    def _end_stream(self) -> None:
        if self._stream is not None:
            text = "".join(self._pieces)
            self._share.add(getsizeof(text) - sum(map(len, self._pieces)))  # one wide character makes all of them wide
            self._outputs.append(_stream(text, self._stream))
            self._stream = None
            self._pieces.clear()

    def curb(self, event: Curbed) -> Output:
        """A process was killed. If the cell was under way, what fails after that is for want of memory."""
        self.curbed |= not event.between
        note = f"a process was killed: together the session's processes held {event.held}]\n"
        self.killed += (between := f"[between two cells {note}")
        return self.write(Written(stream="stderr", text=between if event.between else f"[{note}"))

    def ended(self, count: int) -> Output:
        """Processes that the cell had started were killed at its time limit."""
        which = "a process that the cell had started was" if count == 1 else f"{count} processes of the cell were"
        return self.write(Written(stream="stderr", text=f"[{which} killed at its time limit]\n"))

    def display(self, event: Display) -> Output | None:
        """A MIME bundle; None when there were too many already."""
        if len(self._outputs) >= MAX_DISPLAYS or self._display_bytes + event.size > MAX_DISPLAY_BYTES:
            self._dropped += 1
            return None
        self._end_stream()
        self._display_bytes += event.size
        self._share.add(event.size)
        uris = {}
        for mime, buffer in zip(event.mimes, event.buffers, strict=True):
            uri = uris[mime] = f"notebook://cell/{self._cell.id}/image/{len(self.blobs)}"
            self.blobs[uri] = Blob(mime, bytes(buffer))
        data = {**event.data, **uris}
        output = Output(type=type_of(data), data=data, uri=next(iter(uris.values()), None), is_result=event.is_result)
        self._outputs.append(output)
        return output

    def finish(
        self, event: Finished, *, ended: CellError | None, lost: tuple[Lost, ...] = (), rolled_back: bool = False
    ) -> Cell:
        """The cell as it ended. `ended` is what it was interrupted for, if it was; `lost` went before it began."""
        error = None if event.failure is None else _raised(event.failure, self._cell, self._limit)
        if ended is not None:
            error = replace(ended, traceback="" if error is None else _named(error.traceback, ended))
        if error is not None and error.kind == "raised" and self.curbed:
            error = replace(error, kind="memory", hint=_LESS_MEMORY)
        if error is not None and rolled_back:
            error = replace(error, hint=f"{error.hint}; {_RESTORED}")
        if error is not None and error.kind == "raised" and not error.hint:
            network = "" if self.reach is None else self._hint_of_network(error, self.reach())
            error = replace(error, hint=network or _OF_STATUS.get(error.status or 0, ""))
        usage = Usage(duration_ms=event.duration_ms, cpu_ms=event.cpu_ms, memory_peak_bytes=event.memory_peak)
        result = Deferred(partial(_decode, event.buffers), _size(event.buffers), held) if event.buffers else NOTHING
        return self._close(error, usage, result, lost, rolled_back)

    def _hint_of_network(self, error: CellError, reach: Reach) -> str:
        from cellblock.session.unreached import hint, is_refused  # cells that end well need none of it

        self._end_stream()
        said = f"{error.type}: {error.message}\n{error.traceback}"
        if not is_refused(error.message) and any(one and one in said for one in self.failures):
            return ""
        command = error.status is not None or error.type == "CalledProcessError"
        printed = "".join(one.text for one in self._outputs if one.stream) if command else ""
        if self.traffic is None or not self.traffic().connections_refused:
            reach = replace(reach, unlisted="")  # it was refused to another cell
        return hint(said, printed, reach)

    def die(self, error: CellError, lost: tuple[Lost, ...], duration_ms: float, *, rolled_back: bool = False) -> Cell:
        """The cell whose process ended under it, and what could not be brought back."""
        return self._close(error, Usage(duration_ms=duration_ms), NOTHING, lost, rolled_back)

    def _close(
        self, error: CellError | None, usage: Usage, result: Deferred, lost: tuple[Lost, ...], rolled_back: bool
    ) -> Cell:
        self._end_stream()
        lost = tuple({(one.name, one.alive): one for one in lost}.values())  # what went twice is told once
        if error is not None:
            self._share.add(len(error.message) + len(error.traceback))
        self.held = self._share.size
        self._share.close()
        if self._dropped:
            self._outputs.append(_stream(f"[{self._dropped} displays left out: too many or too large]\n", "stderr"))
        if error is not None:
            self._outputs.append(_error_output(error))
        state = CellState.COMPLETED
        if error is not None:
            state = CellState.TIMEOUT if error.kind == "timeout" else CellState.ERROR
        if self.traffic is not None:
            usage = replace(usage, **asdict(self.traffic()))
        return replace(
            self._cell,
            state=state,
            outputs=tuple(self._outputs),
            error=error,
            lost=lost,
            rolled_back=rolled_back,
            usage=usage,
            text=model_text(self._outputs, error, lost, self._limit, self.notes),
            cut=self._cut,
            result=result,
        )


def model_text(
    outputs: Sequence[Output], error: CellError | None, lost: tuple[Lost, ...], limit: int, notes: Sequence[Note]
) -> str:
    """All outputs in order, then hint and losses; head and tail where it is longer than the limit.

    What is not printed begins a line of its own.
    """
    parts: list[str] = []

    def add(text: str) -> None:
        if parts and not parts[-1].endswith("\n"):
            parts[-1] += "\n"
        parts.append(text if text.endswith("\n") else text + "\n")

    for output in outputs:
        if output.stream:
            parts.append(_as_left(output.text))
        else:
            add(output.text)
    if error is not None and (advice := for_model(error.hint)):
        add(f"hint: {advice}")
    for said, alive in (("lost", False), ("not saved", True)):
        if found := [one for one in lost if one.alive is alive]:
            add(f"{said}: {_listed(found)}")
    if parts:
        parts[-1] = parts[-1].removesuffix("\n")
    starts = [0, *accumulate(map(len, parts))]
    places = (len(_as_left(outputs[note.output].text[: note.place])) for note in notes)
    moved = [replace(note, place=starts[note.output] + place) for note, place in zip(notes, places, strict=True)]
    return within(parts, limit, moved)


def _as_left(printed: str) -> str:
    """Printed text without what a carriage return overwrote, as progress bars expect."""
    if "\r" not in printed:
        return printed
    rows = (row.rstrip("\r") for row in printed.split("\n"))
    return "\n".join(row[row.rfind("\r") + 1 :] for row in rows)


def within(parts: Sequence[str], limit: int, notes: Sequence[Note] = ()) -> str:
    """The parts as one text; its head and tail where it has more bytes than the limit. Notes have their places in it,
    past the head: one that the tail would begin within is left out with the middle."""
    size = sum(len(part) if part.isascii() else len(_encoded(part)) for part in parts)
    if size <= limit:
        return "".join(parts)
    half = limit // 2
    head = _encoded(_beginning(parts, half))[:half]
    tail = _encoded(_beginning((part[-half:][::-1] for part in reversed(parts)), half)[::-1])[-half:]
    end = tail.decode("utf-8", "ignore")
    start = sum(map(len, parts)) - len(end)
    hidden = [note for note in notes if note.place < start]
    if hidden and (rest := hidden[-1].place + hidden[-1].length - start) > 0:
        end, tail = end[rest:], tail[len(_encoded(end[:rest])) :]
    cut = size - len(head) - len(tail) + sum(note.cut - note.length for note in hidden)
    return f"{head.decode('utf-8', 'ignore')}\n[... {cut} bytes cut ...]\n{end}"


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _beginning(parts: Iterable[str], length: int) -> str:
    """So many characters, without a copy of the whole."""
    found: list[str] = []
    for part in parts:
        if length <= 0:
            break
        found.append(part[:length])
        length -= len(found[-1])
    return "".join(found)


def _listed(lost: Sequence[Lost]) -> str:
    """Names by what brings them back. Both may come from inside: none begins a line of its own."""
    names: dict[str, list[str]] = {}
    for loss in lost[:50]:
        names.setdefault(line(loss.remedy), []).append(line(loss.name))
    listed = ", ".join(f"{', '.join(alike)} ({remedy})" for remedy, alike in names.items())
    return listed + (", …" if len(lost) > 50 else "")


def full_error(megabytes: int, *, recovery: Recovery | None = None) -> CellError:
    """The error of a cell that had its host hold more than it may; with a recovery, of one that was killed for it."""
    hint = "show, return and pass less at a time, or raise ExecutionLimits(max_host_mb=…)"
    return CellError(
        type="MemoryError",
        message=f"the session had the program around it hold more than {megabytes} MB",
        hint=hint if recovery is None else f"{hint}; {_left(recovery)}",
        kind="memory",
    )


def timeout_error(seconds: float, *, recovery: Recovery | None = None, given: bool = False) -> CellError:
    """The error of a cell that met its time limit, `given` with its call; with a recovery, of one that had to be killed
    for it.
    """
    kept = "what it did until then is kept" if recovery is None else _left(recovery)
    more = "call it with a larger timeout=" if given else "raise ExecutionLimits(timeout_seconds=…)"
    return CellError(
        type="TimeoutError",
        message=f"the cell ran longer than {seconds:g} s",
        hint=f"do less in one cell, or {more}; {kept}",
        kind="timeout",
    )


def death_error(death: Died, recovery: Recovery) -> CellError:
    """The error of a cell whose process ended under it."""
    if death.unruly:
        return CellError(
            type="ProcessDied",
            message=f"the session's process {how(death)}",
            hint=f"{_IN_TURN}; {_left(recovery)}",
            kind="crashed",
        )
    if death.excess:
        return CellError(
            type="MemoryError",
            message=f"the session's process {how(death)}",
            hint=f"{_LESS_MEMORY}; {_left(recovery)}",
            kind="memory",
        )
    return CellError(
        type="ProcessDied",
        message=f"the session's process {how(death)}",
        hint=_left(recovery),
        kind="crashed",
    )


def ended_error(reason: str) -> CellError:
    """The error of a cell under which every process of a session ended that is resumed by the next call."""
    return CellError(type="ProcessDied", message=reason, hint=_RESUMES, kind="crashed")


def unsaved_error(lost: Sequence[Lost], *, otherwise: str) -> CellError | None:
    """The error of a cell that bound names to what cannot be saved, in a session where each has to be.

    `otherwise` is what its opener can do to keep such names.
    """
    if not lost:
        return None
    first, more = lost[0], len(lost) - 1
    also = f", and {more} more names are like it" if more else ""
    return CellError(
        type="UnpicklableError",
        message=f"{first.name} is a {first.type}, which cannot be saved: {first.reason}{also}",
        hint=f"{first.remedy}; use it in a `with`, or within a function; {otherwise}; {_RESTORED}",
        kind="refused",
    )


def at_risk(what: str, why: str) -> Lost:
    """The loss that a caller is told of for steps that the store has not taken."""
    return Lost(name=what, type="step", reason=f"the store has not taken it: {why}", remedy=_TRY_AGAIN, alive=True)


def also_lost(cell: Cell, one: Lost, max_output_bytes: int, notes: Sequence[Note]) -> Cell:
    """A cell that had ended, with one more loss, in its text too."""
    lost = (*cell.lost, one)
    return replace(cell, lost=lost, text=model_text(cell.outputs, cell.error, lost, max_output_bytes, notes))


def failed_cell(cell: Cell, error: CellError, max_output_bytes: int, notes: Sequence[Note] = ()) -> Cell:
    """A cell with an error in the end, and rolled back."""
    outputs = (*cell.outputs, _error_output(error))
    text = model_text(outputs, error, cell.lost, max_output_bytes, notes)
    return replace(
        cell, state=CellState.ERROR, error=error, outputs=outputs, text=text, rolled_back=True, result=NOTHING
    )


def _named(traceback: str, ended: CellError) -> str:
    """The traceback of a cell that was interrupted, with what that was for as its last line."""
    return f"{traceback.rstrip().removesuffix('KeyboardInterrupt').rstrip()}\n{ended.type}: {ended.message}"


def _error_output(error: CellError) -> Output:
    return Output(type=OutputType.ERROR, data={"text/plain": error.traceback or f"{error.type}: {error.message}"})


def _left(recovery: Recovery) -> str:
    """Description of the session after it went back."""
    if recovery.exact:
        again = f"; {recovery.failed} cells in a row have ended so there: session.undo() goes further back"
        return _RESTORED + (again if recovery.failed > 1 else "")
    if recovery.dead:
        return _DEAD
    return _EMPTY if recovery.fresh else _OLDER


_OUT_OF_TIME = getattr(signal, "SIGXCPU", None)  # there is none on Windows


def how(death: Died) -> str:
    """The end of a process, in words that follow its name in a sentence."""
    if death.reason:
        return death.reason
    if death.excess:
        return f"was killed, as the session held {death.excess}"
    if death.signal is not None:
        known = death.signal in signal.valid_signals()
        why = ", at its limit of CPU time (RLIMIT_CPU, ulimit -t)" if death.signal == _OUT_OF_TIME else ""
        return f"was killed by {signal.Signals(death.signal).name if known else death.signal}{why}"
    return "ended" if death.status is None else f"left with status {death.status}"


def losses(recovery: Recovery, reason: str) -> tuple[Lost, ...]:
    """Losses of a session that went back. Without a reason of its own, a loss has the given one."""
    return tuple(
        Lost(name=name, type=kind, reason=why or reason, remedy=remedy) for name, kind, why, remedy in recovery.lost
    )


_NO_INPUT = "EOF when reading a line"
_KINDS: dict[str, ErrorKind] = {"memory": "memory", "refused": "refused"}


def _raised(failure: Failure, cell: Cell, limit: int) -> CellError:
    """The error that a failure tells of. A worker cuts its texts to the limit; those of a forged one are cut here."""
    most = limit + MOST_NOTE
    hint, message = failure.hint, cut(failure.message, most)
    if failure.kind == "memory":
        hint, message = _LESS_MEMORY, message or "the cell ran out of memory"
    elif failure.type == "SyntaxError" and failure.message.startswith(_RETURNS):
        hint = "a cell is no function: its last expression is its result"
    elif failure.type == "SyntaxError":
        hint = next((hint for hint, sign in _NOT_PYTHON.items() if sign.search(cell.source)), hint)
    elif failure.is_wrecked:
        hint = _WRECKED
    elif failure.type == "ModuleNotFoundError":
        hint = hint or _NO_MODULE
    elif failure.type == "FileNotFoundError" and "subprocess.py" not in failure.traceback:
        hint = hint or _NO_FILE
    elif failure.type == "EOFError" and failure.message == _NO_INPUT:
        hint = 'nobody answers input() here: bind what it asks for to a name before the cell (session["name"] = …)'
    elif met := [one for said, word, one in _AT_LIMITS if message.startswith(said) and word in failure.traceback]:
        hint = hint or met[0]
    elif failure.type == "BdbQuit":
        hint = "nobody steps through code here: print what you want to see"
    elif failure.type == "PermissionError" and cell.kind == "shell":
        hint = "a branch executes no programs: run this in the session it is of, or in another"
    return CellError(
        type=failure.type,
        message=message,
        traceback="" if cell.kind == "shell" else cut(failure.traceback, most),  # a command has no Python frames
        hint=hint,
        kind=_KINDS.get(failure.kind, "raised"),
        status=failure.status if cell.kind == "shell" else None,
    )


def _stream(text: str, stream: str) -> Output:
    return Output(type=OutputType.TEXT, data={"text/plain": text}, stream=stream)


def _size(buffers: tuple[Buffer, ...]) -> int:
    """Bytes that a value holds until it is decoded."""
    return sum(map(len, buffers)) + _BUFFER * len(buffers)


def _decode(buffers: tuple[Buffer, ...]) -> object:
    """Security border: a value from inside, decoded on first access; one that is malformed is `Opaque`."""
    from cellblock.values import portable

    try:
        return portable.unpack(buffers)
    except portable.MalformedValue as error:
        return portable.Opaque("malformed", str(error))
