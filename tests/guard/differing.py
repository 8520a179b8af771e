"""Runs probes under the guard and under CPython, cell by cell in one namespace each, and tells what differs."""

from __future__ import annotations

import contextlib
import io
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from probes import Prober

from cellblock.errors import SourceRejected
from cellblock.guard.world import World
from cellblock.policy import RARE, Policy

PROBES = 120
"""Probes of one program."""
_SECONDS = 2
_MASKED = (
    (re.compile(r" (?:at|@) 0x[0-9a-f]+"), ""),
    (re.compile(r"<(?:built-in |bound )?(?:function|method)[^>]*>+|<(?:slot wrapper|method-wrapper)[^>]*>|<itertools\.\w+ object>|<(?:generator|\w+) object [^>]*>+|count\([^)]*\)|repeat\([^)]*\)"), "<callable>"),
    (re.compile(r"(?:builtin_function_or_method|method_descriptor|wrapper_descriptor|method-wrapper|\bmethod\b|\bfunction\b)"), "function"),
    (re.compile(r"'(?:\w+\.)+(\w+)'"), r"'\1'"),
    (re.compile(r"'(?:count|repeat|cycle|chain|zip_longest|generator)'"), "'iterator'"),
    (re.compile(r"\b\d{14,16}\b"), "id"),
)
_ARGUMENTS = re.compile(
    r"TypeError:? .*(?:takes (?:no|exactly|at most|at least|from|\d+)|expected (?:at least |at most )?\d+ argument|expected (?:at least|at most)|missing |unexpected keyword|invalid keyword|multiple values|positional-only|needs an argument|requires |doesn't apply to|must have at least|got \d+|keyword argument).*"
)
"""Errors about what a call was given, which are worded by what takes it."""


def _told(written: str, error: BaseException | None) -> str:
    if error is not None:
        notes = getattr(error, "__notes__", "")
        try:
            message = str(error)
        except Exception as failed:
            message = f"str: {type(failed).__name__} {failed}"
        written += f"{type(error).__name__}: {message} {notes}"
        if type(error.__context__) is not type(None): written += f" [{type(error.__context__).__name__}]"
        if type(error.__cause__) is not type(None): written += f" [from {type(error.__cause__).__name__}]"
    for pattern, by in _MASKED:
        written = pattern.sub(by, written)
    return written


class _Plain:
    def __init__(self) -> None:
        self.globals: dict[str, Any] = {"__name__": "__main__"}

    def run(self, source: str) -> str:
        written = io.StringIO()
        error: BaseException | None = None
        with contextlib.redirect_stdout(written), contextlib.redirect_stderr(written):
            try:
                exec(compile(source, "<cell 1>", "exec", dont_inherit=True), self.globals)
            except BaseException as raised:
                error = raised
        if isinstance(error, _Late):
            return "timeout"
        return _told(written.getvalue(), error)


class _Guarded:
    def __init__(self) -> None:
        self.written: list[str] = []
        self.world = World(Policy(also=RARE), write=lambda stream, text: self.written.append(text))

    def run(self, source: str) -> str:
        self.written.clear()
        world, error = self.world, None
        try:
            program = world.check(source, "<cell 1>")
            world.ending.begin()
            for code in world.run(program):
                eval(code, world.globals)
        except SourceRejected as raised:
            return f"refused: {raised}"
        except BaseException as raised:
            error = raised
        finally:
            world.ending.end()
        return _told("".join(self.written), error)


def _alike(got: str, want: str) -> bool:
    """True if two differ in how they word what is wrong with arguments, and in nothing else."""
    ours, theirs = got.split("\n"), want.split("\n")
    return len(ours) == len(theirs) and all(
        one == other or (bool(_ARGUMENTS.match(other)) and one.startswith("TypeError") and "<l" not in one)
        for one, other in zip(ours, theirs)
    )


class _Late(BaseException):
    """A probe takes too long."""


def _late(*_: object) -> None:
    raise _Late


def differences(seed: int, count: int = PROBES, stats: Any = None) -> Iterator[dict[str, str]]:
    stats = Counter() if stats is None else stats
    plain, guarded = _Plain(), _Guarded()
    signal.signal(signal.SIGALRM, _late)
    for source in Prober(seed).program(count):
        stats["probes"] += 1
        sys.stderr.write("") 
        signal.setitimer(signal.ITIMER_REAL, _SECONDS)
        try:
            want = plain.run(source)
        except _Late:
            want = "timeout"
        signal.setitimer(signal.ITIMER_REAL, 10)
        try:
            got = guarded.run(source)
        except _Late:
            got = "timeout"
        signal.setitimer(signal.ITIMER_REAL, 0)
        if got == want or _alike(got, want):
            stats["same"] += 1
            stats["fine" if "Error" not in got.split("\n")[-1] else "failing"] += 1
            continue
        if want == "timeout":
            continue
        if got.startswith("refused:") or "SecurityError" in got or "that is granted" in got or "doesn't apply to a" in got or "type object 'range' has no" in got or re.search(r"\[\w+\]", got) and "[size]" in got:
            stats["refused"] += 1
            kind = "refused"
        else:
            kind = "differs"
            stats["differs"] += 1
        yield {"kind": kind, "seed": seed, "source": source, "want": want, "got": got}
