"""Signals from the model's code to the loop: functions that stand in the namespace of every step.

They are functions of the host as any tool is. Which step is spoken of, they find in the context that the step's cell
was started in, so that attempts on branches, which share their tools, do not hear one another.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from cellblock.text import text_of

_NOTHING: Any = object()


@dataclass(slots=True)
class Said:
    """Signals of one step's code. `accept` checks an answer, raises what is wrong with it, and gives it back."""

    step: int
    accept: Callable[[object], object] | None = None
    answer: Any = _NOTHING
    verified_by: str | None = None
    failure: str | None = None
    notes: list[tuple[str, str]] = field(default_factory=list)
    """uncertain, explore and commit, in their order, with their texts."""

    @property
    def answered(self) -> bool:
        return self.answer is not _NOTHING


said: ContextVar[Said] = ContextVar("said")

_MOST = 2_000
_MOST_NOTES = 100
"""Of one cell."""


def final_answer(value: Any, verified_by: str | None = None) -> None:
    """Give the answer to the task. It counts when the cell that calls this ends without an error."""
    step = said.get()
    if step.accept is not None:
        value = step.accept(value)
    step.answer = value
    step.verified_by = None if verified_by is None else text_of(verified_by, max_chars=_MOST)


def task_fail(reason: str) -> None:
    """Say that the task cannot be done, and why."""
    said.get().failure = text_of(reason, max_chars=_MOST)


def uncertain(text: str) -> None:
    """Say what is not known for sure. It becomes an observation."""
    _note("uncertain", text)


def explore(text: str) -> None:
    """Say what is tried out from here on. If it fails before commit(), names and files go back to before this cell."""
    _note("explore", text)


def commit(text: str) -> None:
    """Say what was decided: what was done since explore() is kept."""
    _note("commit", text)


def _note(kind: str, text: object) -> None:
    notes = said.get().notes
    if len(notes) >= _MOST_NOTES:
        raise ValueError(f"this cell has said {_MOST_NOTES} things already: say what matters, in a text for all of it")
    notes.append((kind, text_of(text, max_chars=_MOST)))


SIGNALS = (final_answer, task_fail, uncertain, explore, commit)
NAMES = frozenset((*(one.__name__ for one in SIGNALS), "memory", "AgentMemory", "mark_private"))
"""The names that are the agent's own in the namespace of every step."""
