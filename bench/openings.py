"""F4: what opening a session costs once its family stands."""

from __future__ import annotations

import asyncio
from time import perf_counter

import cellblock
from bench.bare import BareImage
from bench.sampling import Measure, Plan, Ratio, Samples, interleaved, require, timed

PACKAGES = ("numpy", "pandas", "matplotlib.pyplot")


def _empty(plan: Plan) -> Samples:
    return _opening(plan, ())


def _preloaded(plan: Plan) -> Samples:
    require(*(name.partition(".")[0] for name in PACKAGES))
    return _opening(plan, PACKAGES)


def _opening(plan: Plan, packages: tuple[str, ...]) -> Samples:
    with BareImage(packages) as image, asyncio.Runner() as runner:
        return interleaved(plan.rounds, lambda: runner.run(open_once(packages)), lambda: timed(image.fork))


async def open_once(packages: tuple[str, ...]) -> float:
    """The seconds of opening a session until it can take a cell; closing it is not counted."""
    session = cellblock.AsyncSession(preload=packages)
    began = perf_counter()
    await session.open()
    try:
        return perf_counter() - began
    finally:
        await session.close()


MEASURES = (
    Measure(
        id="F4/empty", what="open a session, nothing preloaded", reference="fork of the same image",
        goal=Ratio(3), rounds=50, take=_empty,
    ),
    Measure(
        id="F4/preloaded", what="the same, numpy + pandas + matplotlib", reference="fork of the same image",
        goal=Ratio(3), rounds=50, take=_preloaded,
    ),
)  # fmt: skip
