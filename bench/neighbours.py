"""Beside: what the trivial cells of one session take while another session does its worst, and while it idles.

Both sessions are of one program and one event loop. The worst is begun anew for every few samples, in a session of
its own that is closed after them, so that samples beside it and beside an idle session lie next to each other.
"""

from __future__ import annotations

import asyncio
from functools import partial

import cellblock
from bench.sampling import Measure, Plan, Reported, Samples, timed_await

_SECONDS = 60.0
_AT_ONCE = 10
"""Samples beside one neighbour."""

_ACCLIMATISE = 0.3
"""Seconds from the neighbour's start to the first sample."""

_IDLE = "x = 1"
_WORST = {
    "memory": """
import os
while True:
    forked = [os.fork(), os.fork()]  # four processes in all
    held = []
    try:
        while True:
            held.append(b"x" * 2**22)
    except MemoryError:
        del held
    if 0 in forked:
        os._exit(0)
    os.wait()
    os.wait()
""",
    "forks": """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
""",
    "setsid": """
import os
while True:
    try:
        if os.fork() == 0:
            os.setsid()
    except OSError:
        pass
""",
    "flood": "while True: print('x' * 1000)",
    "disk": """
import os
while True:
    try:
        for number in range(10**6):
            with open(f"filler{number}", "wb") as file:
                file.write(bytes(2**20))
    except OSError:
        for name in os.listdir():
            os.unlink(name)
""",
    "spin": "while True: pass",
}


def _beside(worst: str, plan: Plan) -> Samples:
    with asyncio.Runner() as runner:
        return runner.run(_both(_WORST[worst], plan))


async def _both(worst: str, plan: Plan) -> Samples:
    found: tuple[list[float], list[float]] = [], []
    async with cellblock.AsyncSession() as session:
        await session.run(_IDLE)
        for _ in range(plan.rounds):
            for source, samples in zip((worst, _IDLE), found, strict=True):
                samples += await _next_to(session, source, plan.think / 5)
    return Samples(subject=tuple(found[0]), reference=tuple(found[1]))


async def _next_to(session: cellblock.AsyncSession, source: str, think: float) -> list[float]:
    """Some samples of the session while a neighbour that has just been opened runs source, or has run it.

    Whose worst is ended for what it holds does it again.
    """
    limits = cellblock.ExecutionLimits(timeout_seconds=_SECONDS)
    async with cellblock.AsyncSession(limits=limits) as neighbour:
        await neighbour.run(_IDLE)
        doing = asyncio.create_task(_again_and_again(neighbour, source)) if source is not _IDLE else None
        await asyncio.sleep(_ACCLIMATISE)
        samples = [await timed_await(partial(session.run, _IDLE), think) for _ in range(_AT_ONCE)]
        if doing is not None:
            assert not doing.done(), await doing
            doing.cancel()
            await asyncio.wait([doing])
    return samples


async def _again_and_again(session: cellblock.AsyncSession, source: str) -> None:
    while (cell := await session.run(source)).error is not None:
        continue
    raise AssertionError(f"it came to its end: {cell}")


_DOING = {
    "memory": "a cell, next to a memory bomb of four processes",
    "forks": "the same, next to a fork bomb",
    "setsid": "the same, each fork in a group of its own",
    "flood": "the same, next to endless printing",
    "disk": "the same, next to one that fills its files",
    "spin": "the same, next to an endless loop",
}
MEASURES = tuple(
    Measure(
        id=f"beside/{which}", what=what, reference="next to an idle session",
        goal=Reported(), rounds=5, take=partial(_beside, which),
    )
    for which, what in _DOING.items()
)  # fmt: skip
