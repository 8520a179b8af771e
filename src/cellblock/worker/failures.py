"""Error of a guarded cell as text: a traceback of the cell's own lines, or the places that were refused."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from types import TracebackType

from cellblock.errors import SourceRejected
from cellblock.guard.refusal import Denied, Refusal
from cellblock.guard.rules import BY_ID
from cellblock.guard.signals import Stop
from cellblock.text import type_name, valid
from cellblock.wire.messages import Failure
from cellblock.worker.interpreter import cut, lacks_memory, linked

_REWORDED = (SyntaxError, NameError, AttributeError, ImportError)
"""Errors whose summaries say something else than they do, such as what was meant."""


def refused(error: SourceRejected) -> Failure:
    """The failure of a source that did not run."""
    return Failure(
        type=type(error).__name__,
        message=valid(error.args[0]),
        traceback=valid(f"{error.excerpts}\n{type(error).__name__}: {error.args[0]}\n"),
        kind="refused",
        rule=_rule_of(error),
        hint=error.hint,
    )


def describe(error: BaseException, lines: Mapping[str, list[str]], max_text: int) -> Failure:
    """A failure from what was raised. `lines` are those of each cell, by the name of its file."""
    if isinstance(error, Stop):
        memory = error.reason == "memory"
        return Failure(
            type="MemoryError" if memory else "KeyboardInterrupt",
            message="",
            traceback="",
            kind="memory" if memory else "raised",
        )
    name = type_name(error)
    try:
        _forget_others(error, lines)
        summary = traceback.TracebackException.from_exception(error, lookup_lines=False, capture_locals=False)
        _keep_cells(summary, lines)
        text = "".join(summary.format())
        message = str(error) if isinstance(error, _REWORDED) else str(summary)
    except Stop:
        raise
    except BaseException as broken:  # the cell's exception class may raise anything from what it overrides
        text, message = f"{name}: <no traceback: {type_name(broken)}>\n", _own_message(error)
    kind = "memory" if lacks_memory(error) else "refused" if isinstance(error, Denied) else "raised"
    rule = error.rule if isinstance(error, Denied) else ""
    return Failure(
        type=valid(name),
        message=valid(cut(message, max_text)),
        traceback=valid(cut(text, max_text)),
        kind=kind,
        rule=rule,
        hint=BY_ID[rule].instead if rule else "",
    )


def _rule_of(error: SourceRejected) -> str:
    """That of its first refusal, which is what its message tells."""
    first = error.refusals[0]
    assert isinstance(first, Refusal)
    return first.rule


def chained(error: BaseException) -> Iterator[BaseException]:
    """An error and all that it was raised from, during or together with, each once, past what its class says."""
    pending: list[BaseException | None] = [error]
    seen: set[int] = set()
    while pending:
        one = pending.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        pending += [_CAUSE.__get__(one), _CONTEXT.__get__(one)]
        if isinstance(one, BaseExceptionGroup):
            pending += _PARTS.__get__(one)


def _forget_others(error: BaseException, lines: Mapping[str, list[str]]) -> None:
    """Take the frames that are no cell's out of the tracebacks: to format them would have their files noted."""
    for one in chained(error):
        _TRACEBACK.__set__(one, _of_cells(_TRACEBACK.__get__(one), lines))


_TRACEBACK, _CAUSE, _CONTEXT = (BaseException.__dict__[name] for name in ("__traceback__", "__cause__", "__context__"))
_PARTS = BaseExceptionGroup.__dict__["exceptions"]
"""These of an error, past what its class says of them."""


def _of_cells(trace: TracebackType | None, lines: Mapping[str, list[str]]) -> TracebackType | None:
    kept: list[TracebackType] = []
    while trace is not None:
        if trace.tb_frame.f_code.co_filename in lines:
            kept.append(trace)
        trace = trace.tb_next
    rest: TracebackType | None = None
    for one in reversed(kept):
        rest = TracebackType(rest, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return rest


def _keep_cells(summary: traceback.TracebackException, lines: Mapping[str, list[str]]) -> None:
    """Leave the frames of cells, each with its line: what stands above and between is the runner's and the guard's."""
    for one in linked(summary):
        one.stack[:] = [_with_line(frame, lines) for frame in one.stack if frame.filename in lines]


def _with_line(frame: traceback.FrameSummary, lines: Mapping[str, list[str]]) -> traceback.FrameSummary:
    number = frame.lineno or 0
    source = lines[frame.filename]
    line = source[number - 1] + "\n" if 0 < number <= len(source) else ""  # CPython 3.11 places carets by its end
    if frame.end_lineno != number:  # carets are for what stands on one line
        return traceback.FrameSummary(frame.filename, number, frame.name, lookup_line=False, line=line)
    return traceback.FrameSummary(
        frame.filename,
        number,
        frame.name,
        lookup_line=False,
        line=line,
        end_lineno=frame.end_lineno,
        colno=frame.colno,
        end_colno=frame.end_colno,
    )


def _own_message(error: BaseException) -> str:
    """An error's message, past what its class says of itself."""
    try:
        return BaseException.__str__(error)
    except Exception:  # from what it was raised with
        return ""
