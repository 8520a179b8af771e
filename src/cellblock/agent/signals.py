"""Surroundings of a run, and the signals of its code: functions that stand in the namespace of every step.

Signals are functions of the host as any tool is. They find the step that they belong to in the context that the step's
cell was started in: attempts on branches share their tools, and do not hear one another.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from cellblock.agent.memory import AgentMemory
from cellblock.agent.prompts import Prompts
from cellblock.agent.result import Step
from cellblock.events import Event
from cellblock.limits import ExecutionLimits
from cellblock.models import Connected
from cellblock.observe.log import EventLog
from cellblock.observe.spans import Spans
from cellblock.session.session import AsyncSession
from cellblock.text import text_of

Tell = Callable[[str | Event | Step], None]
"""A function that is called with pieces of the model's text, events of cells, and steps, as they come."""

_NOTHING: Any = object()
_MOST = 2_000
"""Characters of a signal's text."""
_MOST_NOTES = 100
"""Most signals of one cell."""


@dataclass(slots=True, kw_only=True)
class Setting:
    """Surroundings of one run of the loop.

    `accept` checks an answer: it returns the answer, or raises what is wrong with it. `depth` counts the agents
    that asked for this one, one through another.
    """

    model: Connected
    session: AsyncSession
    log: EventLog
    memory: AgentMemory
    prompts: Prompts
    limits: ExecutionLimits
    verify: bool = False
    accept: Callable[[object], object] | None = None
    answers: Callable[[int, str, list[object]], object] | None = None
    """The log that answers calls of tools in their place, when it is replayed."""
    interrupted: frozenset[int] = frozenset()
    """Steps of a replayed log whose cells had not ended when their program did: they are not run."""
    tell: Tell | None = None
    spans: Spans = field(default_factory=Spans)
    attempt: int = 1
    depth: int = 0


@dataclass(slots=True)
class Signals:
    """Signals of one step's code. `notes` are uncertain, explore and commit, in their order, with their texts."""

    setting: Setting
    step: int
    answer: Any = _NOTHING
    verified_by: str | None = None
    failure: str | None = None
    notes: list[tuple[str, str]] = field(default_factory=list)

    @property
    def answered(self) -> bool:
        return self.answer is not _NOTHING


current: ContextVar[Signals] = ContextVar("current")
"""The step whose cell calls a function of the host."""


def final_answer(value: Any, verified_by: str | None = None) -> None:
    """Give the answer to the task. It counts when the cell that calls this ends without an error."""
    step = current.get()
    if step.setting.accept is not None:
        value = step.setting.accept(value)
    step.answer = value
    step.verified_by = None if verified_by is None else text_of(verified_by, max_chars=_MOST)


def task_fail(reason: str) -> None:
    """Say that the task cannot be done, and why."""
    current.get().failure = text_of(reason, max_chars=_MOST)


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
    notes = current.get().notes
    if len(notes) >= _MOST_NOTES:
        raise ValueError(f"this cell has said {_MOST_NOTES} things already: say what matters, in a text for all of it")
    notes.append((kind, text_of(text, max_chars=_MOST)))


SIGNALS = (final_answer, task_fail, uncertain, explore, commit)
NAMES = frozenset((*(one.__name__ for one in SIGNALS), "memory", "AgentMemory", "mark_private"))
"""The names that are the agent's own in the namespace of every step."""
