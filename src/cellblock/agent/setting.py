"""Surroundings of one run: its model, its session, and where what happens is told."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field

from cellblock.agent.memory import AgentMemory
from cellblock.agent.prompts import Prompts
from cellblock.agent.result import Step
from cellblock.events import Event
from cellblock.limits import ExecutionLimits
from cellblock.models import Connected
from cellblock.observe.log import EventLog
from cellblock.observe.spans import Spans
from cellblock.session.session import AsyncSession

Tell = Callable[[str | Event | Step], None]
"""Is told of pieces of the model's text, of what cells show, and of steps, as they come."""


@dataclass(slots=True, kw_only=True)
class Setting:
    """Surroundings of one run of the loop. `depth`: the number of agents that asked for this one, one through another.
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
    tell: Tell | None = None
    spans: Spans = field(default_factory=Spans)
    attempt: int = 1
    depth: int = 0


present: ContextVar[Setting] = ContextVar("present")
"""The run whose cell calls a function of the host."""
