"""Runs probes under the guard and under CPython, cell by cell in one namespace each, and tells what differs."""

# ruff: noqa: E501 - patterns

from __future__ import annotations

import contextlib
import io
import re
import signal
from collections.abc import Callable, Iterator
from typing import Any

from probes import PRELUDE, Prober

from cellblock.errors import SourceRejected
from cellblock.guard.world import World
from cellblock.policy import RARE, Policy

_SECONDS = 2
"""Of the processor, after which a probe is left out that CPython has not done with; the guard has ten times as long."""
_LATE = "late"
_REFUSED = "refused"
_REFUSALS = re.compile(r"SecurityError|that is granted \[import\]|\[size\]|doesn't apply to a '|type object 'range' has no")
"""What the documents say is refused, or is told by another error."""
_MASKED = (
    (re.compile(r" (?:at|@) 0x[0-9a-f]+"), ""),
    (
        re.compile(
            r"<(?:built-in |bound )?(?:function|method)[^<>]*(?:<[^<>]*>[^<>]*)*>|<(?:slot wrapper|method-wrapper)[^>]*>"
            r"|<[\w.]+ object(?: [^>]*)?>|\b(?:count|repeat)\([^)]*\)"
        ),
        "<object>",
    ),
    (re.compile(r"builtin_function_or_method|method_descriptor|wrapper_descriptor|method-wrapper|\bmethod\b"), "function"),
    (re.compile(r"'(?:\w+\.)+(\w+)'"), r"'\1'"),
    (re.compile(r"(?<=, not )(?:\w+\.)+(?=\w)"), ""),
    (re.compile(r"'(?:count|repeat|cycle|chain|zip_longest|generator)'"), "'iterator'"),
    (re.compile(r"\b\d{14,16}\b"), "<id>"),
)
"""What is no difference: addresses, and kinds of what the guard has in the place of functions and iterators."""
_OF_ARGUMENTS = re.compile(
    r"TypeError:? .*(?:takes |expected (?:at |\d)|missing |unexpected keyword|invalid keyword|multiple values"
    r"|positional-only|needs an argument|requires |doesn't apply to|must have at least|got \d|keyword argument)"
)
"""Errors about what a call was given, which are worded by what takes it."""


class _Late(BaseException):
    pass


def _late(*_: object) -> None:
    raise _Late


def differences(seed: int, count: int) -> Iterator[tuple[str, str, str]]:
    """Probes that do not do under the guard as under CPython: their sources, and what either shows."""
    plain, guarded = _plain(), _guarded()
    before = signal.signal(signal.SIGVTALRM, _late)
    try:
        for source in (PRELUDE, *Prober(seed).probes(count)):
            want, got = _timed(plain, source, _SECONDS), _timed(guarded, source, 10 * _SECONDS)
            if want != _LATE and not _alike(want, got) and got != _REFUSED and not _REFUSALS.search(got):
                yield source, want, got
    finally:
        signal.signal(signal.SIGVTALRM, before)


def _timed(run: Callable[[str], str], source: str, seconds: float) -> str:
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        return run(source)
    except _Late:
        return _LATE
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _plain() -> Callable[[str], str]:
    space: dict[str, Any] = {"__name__": "__main__"}

    def run(source: str) -> str:
        written = io.StringIO()
        with contextlib.redirect_stdout(written), contextlib.redirect_stderr(written):
            try:
                code = compile(source, "<cell 1>", "exec", dont_inherit=True)
            except SyntaxError as raised:
                error: BaseException | None = raised
            else:
                error = _evaluated([code], space)
        return _told(written.getvalue(), error)

    return run


def _guarded() -> Callable[[str], str]:
    written: list[str] = []
    world = World(Policy(also=RARE), write=lambda stream, text: written.append(text))

    def run(source: str) -> str:
        written.clear()
        try:
            program = world.check(source, "<cell 1>")
        except SourceRejected:
            return _REFUSED
        except SyntaxError as raised:
            return _told("", raised)
        world.ending.begin()
        try:
            error = _evaluated(world.run(program), world.globals)
        finally:
            world.ending.end()
        return _told("".join(written), error)

    return run


def _evaluated(codes: list[Any], space: dict[str, Any]) -> BaseException | None:
    try:
        for code in codes:
            eval(code, space)
    except _Late:
        raise
    except BaseException as error:
        return error
    return None


def _told(written: str, error: BaseException | None) -> str:
    """What was printed, and the error with its notes and the kinds of those behind it."""
    if error is not None:
        behind = [type(one).__name__ for one in (error.__context__, error.__cause__)]
        written += f"{type(error).__name__}: {_text(error)} {getattr(error, '__notes__', '')} {behind}"
    for pattern, by in _MASKED:
        written = pattern.sub(by, written)
    return written


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as failed:
        return f"no text: {type(failed).__name__}"


def _alike(want: str, got: str) -> bool:
    """True if two differ in how they word what is wrong with arguments, and in nothing else."""
    theirs, ours = want.split("\n"), got.split("\n")
    return len(ours) == len(theirs) and all(
        one == other or (_OF_ARGUMENTS.match(other) is not None and one.startswith("TypeError") and "<lo" not in one)
        for one, other in zip(ours, theirs, strict=True)
    )
