"""F9: a call of a tool from a cell, until its result is there.

The tool does nothing. What is measured is the way: the arguments and the result as portable values, both codecs, the
kernel's stamp on each packet, the host's wait and, for a plain function, a thread that calls it.
"""

from __future__ import annotations

import asyncio
from functools import partial

import cellblock
from bench.bare import BareWorker
from bench.sampling import Measure, Plan, Ratio, Samples, require

_AT_ONCE = 50
"""Calls in one cell: a round, which is as many samples."""

_CALLS = f"""
import time

def plain():
    for number in range({_AT_ONCE}):
        began = time.perf_counter()
        assert nothing(number) == number
        yield time.perf_counter() - began

async def awaited():
    for number in range({_AT_ONCE}):
        began = time.perf_counter()
        assert await nothing_async(number) == number
        yield time.perf_counter() - began
"""


def nothing(number: int) -> int:
    return number


async def nothing_async(number: int) -> int:
    return number


def _calls(source: str, plan: Plan) -> Samples:
    require("msgpack")
    with BareWorker() as bare, asyncio.Runner() as runner:
        session = runner.run(cellblock.AsyncSession(tools=[nothing, nothing_async]).open())
        try:
            assert runner.run(session.run(_CALLS)).ok
            ours: list[float] = []
            theirs: list[float] = []
            for number in range(plan.rounds + 1):
                seconds = runner.run(session.run(source)).value
                assert isinstance(seconds, list)
                reference = bare.calls(_AT_ONCE)
                if number:  # the first round warms both
                    ours += seconds
                    theirs += reference
            return Samples(subject=tuple(ours), reference=tuple(theirs))
        finally:
            runner.run(session.close())


MEASURES = (
    Measure(
        id="F9/async", what="a call of an async tool from a cell", reference="msgpack over a socketpair",
        goal=Ratio(1.5), rounds=20, take=partial(_calls, "[seconds async for seconds in awaited()]"),
    ),
    Measure(
        id="F9/plain", what="the same of a plain function, in a thread", reference="msgpack over a socketpair",
        goal=Ratio(1.5), rounds=20, take=partial(_calls, "list(plain())"),
    ),
)  # fmt: skip
