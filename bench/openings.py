"""F4: what opening a session costs once its family stands: made for the call, or kept ready for it."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import count
from time import perf_counter

import cellblock
from bench.bare import BareImage
from bench.sampling import Measure, Plan, Ratio, Samples, interleaved, require, timed

PACKAGES = ("numpy", "pandas", "matplotlib.pyplot")
_numbers = count(1)


def _made(packages: tuple[str, ...], plan: Plan) -> Samples:
    """Sessions that differ in a limit, so that none like them was opened before and is kept ready."""
    _require(packages)
    with BareImage(packages) as image, asyncio.Runner() as runner:
        return interleaved(
            plan.rounds,
            lambda: runner.run(open_once(packages, _unlike())),
            lambda: timed(image.fork),
        )


def _kept(packages: tuple[str, ...], plan: Plan) -> Samples:
    """One session is kept ready, and is there again before anything else is measured."""
    _require(packages)
    with BareImage(packages) as image, asyncio.Runner() as runner:
        cellblock.keep_ready(1, preload=packages)

        def sample() -> float:
            seconds = runner.run(open_once(packages))
            cellblock.keep_ready(1, preload=packages)
            return seconds

        try:
            return interleaved(plan.rounds, sample, lambda: timed(image.fork))
        finally:
            cellblock.keep_ready(0, preload=packages)


async def open_once(packages: tuple[str, ...], limits: cellblock.ExecutionLimits | None = None) -> float:
    """The seconds of opening a session until it can take a cell; closing it is not counted."""
    session = cellblock.AsyncSession(preload=packages, limits=limits)
    began = perf_counter()
    await session.open()
    try:
        return perf_counter() - began
    finally:
        await session.close()


def _unlike() -> cellblock.ExecutionLimits:
    return cellblock.ExecutionLimits(max_files=40_000 + next(_numbers))


def _require(packages: tuple[str, ...]) -> None:
    require(*(name.partition(".")[0] for name in packages))


_FORK = "fork of the same image"
MEASURES = (
    Measure(
        id="F4/empty", what="open a session, nothing preloaded", reference=_FORK,
        goal=Ratio(3), rounds=40, take=partial(_made, ()),
    ),
    Measure(
        id="F4/preloaded", what="the same, numpy + pandas + matplotlib", reference=_FORK,
        goal=Ratio(3), rounds=40, take=partial(_made, PACKAGES),
    ),
    Measure(
        id="F4/ready", what="open a session that is kept ready", reference=_FORK,
        goal=Ratio(0.5), rounds=40, take=partial(_kept, ()),
    ),
    Measure(
        id="F4/ready-preloaded", what="the same, numpy + pandas + matplotlib", reference=_FORK,
        goal=Ratio(0.5), rounds=40, take=partial(_kept, PACKAGES),
    ),
)  # fmt: skip
