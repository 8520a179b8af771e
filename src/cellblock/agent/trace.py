"""`verbose=True`: a run as a person reads it while it goes on."""

from __future__ import annotations

import sys
import textwrap
from typing import TextIO

from cellblock.agent.result import Step
from cellblock.agent.setting import Tell
from cellblock.events import Done, Event
from cellblock.outputs import Output
from cellblock.session.inert import inert

_MOST_LINES = 20


class Trace:
    """Prints steps to stderr: the model's words as they come, then how its code ended and what that showed."""

    def __init__(self, most_steps: int, then: Tell | None = None, *, stream: TextIO | None = None) -> None:
        """`then` is told the same."""
        self._most = most_steps
        self._then = then
        self._stream = stream or sys.stderr
        self._speaking = False
        self._number = 1

    def __call__(self, told: str | Event | Step) -> None:
        match told:
            case str():
                if not self._speaking:
                    self._print(f"── step {self._number} of {self._most} " + "─" * 40 + "\n")
                self._speaking = True
                self._print(inert(told))
            case Step():
                self._end(told)
            case Output() | Done():
                pass
        if self._then is not None:
            self._then(told)

    def _end(self, step: Step) -> None:
        self._print("\n" if self._speaking else "")
        how = f"[{step.decision}] " if step.decision else ""
        if step.cell is None:
            self._print(f"   {how}nothing was run\n")
        else:
            self._print(f"   {how}{'ran' if step.ok else 'failed'} in {step.duration_ms:.0f} ms\n")
            lines = inert(step.output).splitlines()
            shown = [
                *lines[:_MOST_LINES],
                *([f"… {len(lines) - _MOST_LINES} more lines"] if len(lines) > _MOST_LINES else []),
            ]
            self._print(textwrap.indent("\n".join(shown), "   │ ") + "\n" if shown else "")
        self._speaking, self._number = False, step.number + 1

    def _print(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
