"""F16, the library's half: many sessions of one program, most of them idle, some of them busy all the time."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from time import perf_counter

import cellblock
from bench.bare import BareWorker
from bench.memory import below, held_by
from bench.sampling import Measure, Plan, Ratio, Reported, Samples, Unavailable, Unit, interleaved

_OPEN, _BUSY = 200, 20
_DESCRIPTORS = 15
"""Of this process for each session, at most, and some for all else."""

_TRIVIAL = "x = 1"
_CELLS_AN_HOUR = 7200
"""Of twenty sessions that run a cell every ten seconds."""

Client = Callable[[str], Awaitable[object]]
"""Runs a cell to its end."""


def _rate(plan: Plan) -> Samples:
    """Seconds of the clock for each cell, all clients running theirs back to back."""
    with _bare_crowd() as workers, _crowd() as (runner, sessions):
        return interleaved(
            plan.rounds,
            lambda: _mean(runner, [session.run for session in sessions[:_BUSY]]),
            lambda: _mean(runner, [worker.run_async for worker in workers]),
            warm=2,
        )


def _latency(plan: Plan) -> Samples:
    """Seconds that a client waits for its cell, each resting between two."""
    with _bare_crowd() as workers, _crowd() as (runner, sessions):
        ours = [session.run for session in sessions[:_BUSY]]
        theirs = [worker.run_async for worker in workers]
        found: tuple[list[float], list[float]] = [], []
        for number in range(1 + plan.rounds):
            for clients, samples in zip((ours, theirs), found, strict=True):
                seconds = runner.run(_drive(clients, 10, plan.think))
                samples += seconds if number else []  # the first round warms both
        return Samples(subject=tuple(found[0]), reference=tuple(found[1]))


def _memory(plan: Plan) -> Samples:
    """Bytes of this process and all below it after an hour's traffic, and after the first tenth of it."""
    tenth = _CELLS_AN_HOUR // _BUSY // 10
    with _crowd() as (runner, sessions):
        clients = [session.run for session in sessions[:_BUSY]]
        runner.run(_drive(clients, tenth, 0.0))
        before = _everything()
        runner.run(_drive(clients, 9 * tenth, 0.0))
        return Samples(subject=(_everything(),), reference=(before,))


def _everything() -> float:
    return float(sum(map(held_by, (os.getpid(), *below(os.getpid())))))


def _mean(runner: asyncio.Runner, clients: Sequence[Client]) -> float:
    each = 10
    began = perf_counter()
    runner.run(_drive(clients, each, 0.0))
    return (perf_counter() - began) / (each * len(clients))


async def _drive(clients: Sequence[Client], each: int, think: float) -> list[float]:
    """Have every client run so many cells, all at once; the seconds each cell took."""
    seconds: list[float] = []

    async def work(number: int, client: Client) -> None:
        await asyncio.sleep(think * number / len(clients))  # or all would ask in the same moment
        for _ in range(each):
            await asyncio.sleep(think)
            began = perf_counter()
            await client(_TRIVIAL)
            seconds.append(perf_counter() - began)

    async with asyncio.TaskGroup() as tasks:
        for number, client in enumerate(clients):
            tasks.create_task(work(number, client))
    return seconds


@contextmanager
def _crowd() -> Iterator[tuple[asyncio.Runner, list[cellblock.AsyncSession]]]:
    """So many sessions, each with a cell run in it."""
    with _descriptors(_OPEN * _DESCRIPTORS), asyncio.Runner() as runner:
        sessions = [cellblock.AsyncSession() for _ in range(_OPEN)]
        try:
            for session in sessions:
                runner.run(session.open())
                runner.run(session.run(_TRIVIAL))
            yield runner, sessions
        finally:
            for session in sessions:
                runner.run(session.close())


@contextmanager
def _bare_crowd() -> Iterator[list[BareWorker]]:
    with ExitStack() as stack:
        yield [stack.enter_context(BareWorker()) for _ in range(_BUSY)]


@contextmanager
def _descriptors(count: int) -> Iterator[None]:
    """Let this process have so many open files, if it does not yet and may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    infinite = resource.RLIM_INFINITY
    if hard != infinite and hard < count:
        raise Unavailable(f"{_OPEN} sessions take {count} open files, and the limit is {hard} (ulimit -Hn)")
    if soft != infinite and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


_WHERE = f"{_BUSY} of {_OPEN} sessions busy"
MEASURES = (
    Measure(
        id="F16/rate", what=f"the clock's time a cell, {_WHERE}", reference=f"{_BUSY} bare forks on the same loop",
        goal=Reported(), rounds=20, take=_rate,
    ),
    Measure(
        id="F16/latency", what=f"a cell after think time, {_WHERE}", reference=f"{_BUSY} bare forks on the same loop",
        goal=Reported(), rounds=10, take=_latency,
    ),
    Measure(
        id="F16/memory", what=f"memory in all after {_CELLS_AN_HOUR} cells in {_BUSY} of {_OPEN}",
        reference="after a tenth of them", goal=Ratio(1.1), rounds=1, take=_memory, unit=Unit.MB,
    ),
)  # fmt: skip
