"""F1 and what lies beside it: what running a cell in a session that stands costs."""

from __future__ import annotations

import asyncio

import cellblock
from bench.bare import BareWorker
from bench.sampling import Measure, Plan, Ratio, Reported, Samples, interleaved, timed, timed_await

_TRIVIAL = "x = 1"
_ORDINARY = """\
def area(r):
    import math
    return math.pi * r ** 2
total = 0
for r in range(10):
    a = area(r)
    if a > 3:
        total += a
words = "some words of a text".split()
[word.upper() for word in words]
"""
_PRINTING = "for i in range(100): print('line', i)"
_MEGABYTE = "v = bytes(range(256)) * 4096"


def _rested(plan: Plan) -> Samples:
    return _against_bare(plan.rounds, _TRIVIAL, plan.think)


def _back_to_back(plan: Plan) -> Samples:
    return _against_bare(plan.rounds, _TRIVIAL, 0.0, warm=20)


def _shown(plan: Plan) -> Samples:
    return _against_bare(plan.rounds, "x + 1", plan.think)


def _against_bare(rounds: int, source: str, think: float, warm: int = 3) -> Samples:
    with BareWorker() as bare, asyncio.Runner() as runner:
        bare.run(_TRIVIAL)
        session = runner.run(cellblock.AsyncSession().open())
        try:
            runner.run(session.run(_TRIVIAL))
            return interleaved(
                rounds,
                lambda: runner.run(timed_await(lambda: session.run(source), think)),
                lambda: timed(lambda: bare.run(source), think),
                warm=warm,
            )
        finally:
            runner.run(session.close())


def _laid(plan: Plan) -> Samples:
    with asyncio.Runner() as runner:
        laid = runner.run(cellblock.AsyncSession(policy=cellblock.Policy()).open())
        plain = runner.run(cellblock.AsyncSession().open())
        try:
            return interleaved(
                plan.rounds,
                lambda: runner.run(timed_await(lambda: laid.run(_ORDINARY), plan.think)),
                lambda: runner.run(timed_await(lambda: plain.run(_ORDINARY), plan.think)),
            )
        finally:
            runner.run(laid.close())
            runner.run(plain.close())


def _blocking(plan: Plan) -> Samples:
    with asyncio.Runner() as runner, cellblock.Session() as blocking:
        session = runner.run(cellblock.AsyncSession().open())
        try:
            return interleaved(
                plan.rounds,
                lambda: timed(lambda: blocking.run(_TRIVIAL), plan.think),
                lambda: runner.run(timed_await(lambda: session.run(_TRIVIAL), plan.think)),
            )
        finally:
            runner.run(session.close())


def _printing(plan: Plan) -> Samples:
    with BareWorker() as bare, cellblock.Session() as session:
        assert session.run(_PRINTING).text == bare.run_printing(_PRINTING).rstrip("\n")
        return interleaved(
            plan.rounds,
            lambda: timed(lambda: session.run(_PRINTING)),
            lambda: timed(lambda: bare.run_printing(_PRINTING)),
        )


def _value(plan: Plan) -> Samples:
    with BareWorker() as bare, cellblock.Session() as session:
        session.run(_MEGABYTE)
        bare.run(_MEGABYTE)
        assert session["v"] == bare.value("v")
        return interleaved(
            plan.rounds,
            lambda: timed(lambda: session["v"]),
            lambda: timed(lambda: bare.value("v")),
        )


_BARE = "a bare fork that compiles and executes the same source"
MEASURES = (
    Measure(
        id="F1/async", what="warm cell `x = 1` after think time, async", reference=_BARE,
        goal=Ratio(2), rounds=100, take=_rested,
    ),
    Measure(
        id="F1/sync", what="the same through the blocking Session", reference="the same through AsyncSession",
        goal=Ratio(1.5), rounds=60, take=_blocking,
    ),
    Measure(
        id="F1/shown", what="warm cell `x + 1`, whose value is shown", reference=_BARE,
        goal=Reported(), rounds=40, take=_shown,
    ),
    Measure(
        id="F1/policy", what="warm cell of ten lines under a policy", reference="the same without a policy",
        goal=Reported(), rounds=40, take=_laid,
    ),
    Measure(
        id="back-to-back", what="cell `x = 1` without think time, async", reference=_BARE,
        goal=Reported(), rounds=1000, take=_back_to_back,
    ),
    Measure(
        id="print", what="cell that prints 100 lines, blocking", reference="the same in a bare fork, over a pipe",
        goal=Reported(), rounds=200, take=_printing,
    ),
    Measure(
        id="value", what="a value of 1 MB out, blocking", reference="pickled by a bare fork, over a socket",
        goal=Reported(), rounds=200, take=_value,
    ),
)  # fmt: skip
