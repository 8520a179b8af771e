"""Runs a source under the guard, and under CPython, and tells what each showed."""

from __future__ import annotations

import contextlib
import io
import sys
import traceback
from dataclasses import dataclass
from typing import Any

from cellblock.errors import SourceRejected
from cellblock.guard.world import World
from cellblock.policy import RARE, Policy


@dataclass(frozen=True)
class Shown:
    """What was printed, and how it ended: the exception's type and the line it was raised on, both None without one."""

    text: str
    error: str | None = None
    line: int | None = None
    message: str = ""


def guarded(source: str, policy: Policy | None = None, host: dict[str, Any] | None = None) -> Shown:
    """A source under the guard."""
    written: list[str] = []
    world = World(policy or Policy(also=RARE), write=lambda stream, text: written.append(text))
    for name, value in (host or {}).items():
        world.globals[name] = value
    error: BaseException | None = None
    try:
        program = world.check(source, "<cell 1>")
        world.ending.begin()
        for code in world.run(program):
            eval(code, world.globals)
    except BaseException as raised:
        error = raised
    finally:
        world.ending.end()
    return _shown("".join(written), error)


def plain(source: str) -> Shown:
    """A source under CPython."""
    written = io.StringIO()
    error: BaseException | None = None
    with contextlib.redirect_stdout(written), contextlib.redirect_stderr(written):
        try:
            exec(compile(source, "<cell 1>", "exec", dont_inherit=True), {"__name__": "__main__"})
        except BaseException as raised:
            error = raised
    return _shown(written.getvalue(), error)


def _shown(text: str, error: BaseException | None) -> Shown:
    if error is None:
        return Shown(text)
    if isinstance(error, SourceRejected):
        return Shown(text, "refused", error.refusals[0].line, str(error))
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<cell 1>"]
    line = lines[-1] if lines else getattr(error, "lineno", None)
    return Shown(text, type(error).__name__, line, str(error))


if __name__ == "__main__":
    for path in sys.argv[1:]:
        with open(path) as file:
            found = file.read()
        print(path, guarded(found), plain(found), sep="\n  ")
