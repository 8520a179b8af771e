"""F4: what opening a session costs once its family stands."""

from __future__ import annotations

import asyncio
from importlib import import_module
from time import perf_counter

import cellblock
from bench.bare import BareImage
from bench.sampling import Measure, Plan, Ratio, Samples, interleaved, timed

_PACKAGES = ("numpy", "pandas", "matplotlib.pyplot")


def _empty(plan: Plan) -> Samples:
    return _opening(plan, ())


def _preloaded(plan: Plan) -> Samples:
    for name in _PACKAGES:
        import_module(name.partition(".")[0])
    return _opening(plan, _PACKAGES)


def _opening(plan: Plan, packages: tuple[str, ...]) -> Samples:
    with BareImage(packages) as image, asyncio.Runner() as runner:
        return interleaved(plan.rounds, lambda: runner.run(_open(packages)), lambda: timed(image.fork))


async def _open(packages: tuple[str, ...]) -> float:
    """Open a session until it can take a cell; closing it is not counted."""
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
