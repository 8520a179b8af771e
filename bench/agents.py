"""F17: what a step of an agent costs beyond its cell, the model left out."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Literal

import anyio

import cellblock
from bench.sampling import Excess, Measure, Plan, Samples

_STEPS = 10
_CELL = "```python\nx = 1\n```"
_LAST = "```python\nfinal_answer(x)\n```"


class _Beside:
    """A model that answers at once, and before each answer runs the same cell in a session of its own.

    A step is what lies between its answer and the next question.
    """

    def __init__(self, session: cellblock.AsyncSession, think: float) -> None:
        self._session = session
        self._think = think
        self._answered = 0.0
        self.steps: list[float] = []
        self.cells: list[float] = []

    async def complete(self, messages: list[dict[str, Any]], tools: object) -> str:
        if len(messages) > 2:  # the first question of a run follows no step
            self.steps.append(time.perf_counter() - self._answered)
            await anyio.sleep(self._think)
            began = time.perf_counter()
            await self._session.run("x = 1")
            self.cells.append(time.perf_counter() - began)
        await anyio.sleep(self._think)
        last = len(messages) == 2 + 2 * (_STEPS - 1)
        self._answered = time.perf_counter()
        return _LAST if last else _CELL


def _taken(level: Literal["local", "isolated"], plan: Plan) -> Samples:
    return asyncio.run(_of_runs(level, plan))


async def _of_runs(level: Literal["local", "isolated"], plan: Plan) -> Samples:
    limits = cellblock.ExecutionLimits(max_steps=_STEPS)
    async with cellblock.AsyncSession(trust_level=level) as session:
        model = _Beside(session, plan.think)
        async with cellblock.CodeAgent(model, trust_level=level, limits=limits, state=cellblock.Live()) as agent:
            await agent.arun("warm up")
            model.steps.clear()
            model.cells.clear()
            while len(model.steps) < plan.rounds:
                await agent.arun("go on")
    return Samples(subject=tuple(model.steps[: plan.rounds]), reference=tuple(model.cells[: plan.rounds]))


def _isolated(plan: Plan) -> Samples:
    return _taken("isolated", plan)


def _local(plan: Plan) -> Samples:
    return _taken("local", plan)


MEASURES = (
    Measure(
        id="F17/isolated", what="a step of an agent after think time", reference="session.run of its cell",
        goal=Excess(1), rounds=60, take=_isolated,
    ),
    Measure(
        id="F17/local", what="the same at local", reference="session.run of its cell",
        goal=Excess(1), rounds=60, take=_local,
    ),
)  # fmt: skip
