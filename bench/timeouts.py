"""F8: how long after its limit a cell that does not end is answered, and the session can go on."""

from __future__ import annotations

import asyncio
import time

import cellblock
from bench.sampling import Excess, Measure, Plan, Samples, interleaved, timed, timed_await

_SECONDS, _GRACE = 0.2, 0.1
_LIMITS = cellblock.ExecutionLimits(timeout_seconds=_SECONDS, interrupt_grace_seconds=_GRACE)


def _soft(plan: Plan) -> Samples:
    return _against_sleep(plan, "while True: pass", _SECONDS, "x")


def _hard(plan: Plan) -> Samples:
    return _against_sleep(plan, "max(iter(int, 1))", _SECONDS + _GRACE, "1")


def _against_sleep(plan: Plan, source: str, limit: float, after: str) -> Samples:
    """Run source into its limit; `after` is a cell that must work when the answer is there."""
    with asyncio.Runner() as runner:
        session = runner.run(cellblock.AsyncSession(limits=_LIMITS).open())

        def sample() -> float:
            runner.run(session.run("x = 1"))
            seconds = runner.run(timed_await(lambda: session.run(source)))
            assert runner.run(session.run(after)).value == 1
            return seconds

        try:
            return interleaved(plan.rounds, sample, lambda: timed(lambda: time.sleep(limit)), warm=1)
        finally:
            runner.run(session.close())


MEASURES = (
    Measure(
        id="F8/soft", what="timeout of a Python loop, until the reply", reference="asleep for the limit",
        goal=Excess(50), rounds=20, take=_soft,
    ),
    Measure(
        id="F8/hard", what="timeout of a loop in C: killed, restarted", reference="asleep for limit + grace",
        goal=Excess(50), rounds=20, take=_hard,
    ),
)  # fmt: skip
