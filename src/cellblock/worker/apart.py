"""Names looked at in copies of the worker: the code of a value may end or hold up the process that shows it."""

from __future__ import annotations

from contextlib import suppress
from math import ceil
from os import O_CLOEXEC, WNOHANG, _exit, close, fork, kill, pipe2, read, waitpid, write
from select import POLLIN, poll
from signal import SIG_DFL, SIGALRM, SIGKILL, alarm, signal
from typing import TYPE_CHECKING, Any

from cellblock.wire.lines import as_json, from_json
from cellblock.worker.survey import Row, row, type_name

if TYPE_CHECKING:
    from cellblock.worker.interpreter import Interpreter

_SHARES = 8
"""Of the time that copies may take, this part is how long one may say nothing."""
_MOST_FAILED = 4
_NOT_TRIED = "the code of too many other values did not end"


def names(interpreter: Interpreter, max_names: int, max_preview: int, seconds: float) -> list[Row]:
    """As `survey.names`, within about so many seconds.

    A name whose code ends or holds up its copy is told as such, and another copy goes on after it.
    """
    wanted = sorted(interpreter.names())[:max_names]
    rows: list[Row] = []
    failed = 0
    while len(rows) < len(wanted):
        left = wanted[len(rows) :]
        if failed == _MOST_FAILED:
            return rows + [_unshown(interpreter, name, _NOT_TRIED) for name in left]
        shown, why = _in_copy(interpreter, left, max_preview, seconds / _SHARES)
        rows += shown
        if len(shown) < len(left):
            failed += 1
            rows.append(_unshown(interpreter, left[len(shown)], why))
    return rows


def _in_copy(interpreter: Interpreter, left: list[str], max_preview: int, seconds: float) -> tuple[list[Row], str]:
    """The rows that a copy makes before it ends, or says nothing for so many seconds; and why there are no more."""
    readable, writable = pipe2(O_CLOEXEC)
    try:
        copy = fork()
    except OSError:
        close(readable)
        close(writable)
        return [], "no process could be made for it"
    if not copy:
        try:
            signal(SIGALRM, SIG_DFL)
            alarm(ceil(seconds * _SHARES))
            for name in left:
                write(writable, as_json(row(interpreter, name, max_preview)).encode() + b"\n")
        finally:
            _exit(0)
    close(writable)
    waiting = poll()
    waiting.register(readable, POLLIN)
    told, why, awaited = bytearray(), "its code ended the process", 0
    try:
        while True:
            if not waiting.poll(seconds * 1000):
                why, awaited = "its code did not come to an end", WNOHANG
                break
            if not (piece := read(readable, 2**16)):
                break
            told += piece
    finally:
        close(readable)
        with suppress(PermissionError):  # as in branches: the copy ends itself in time
            kill(copy, SIGKILL)
            awaited = 0
        with suppress(ChildProcessError):  # somebody else has collected it
            waitpid(copy, awaited)
    rows: list[Any] = [from_json(bytes(line)) for line in told.split(b"\n")[:-1]]
    return rows[: len(left)], why


def _unshown(interpreter: Interpreter, name: str, why: str) -> Row:
    return [name, type_name(type(interpreter.namespace.get(name))), 0, f"<not shown: {why}>"]
