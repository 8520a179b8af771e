"""Other programs that run cells, where they are installed: taken only with `--peers`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import cellblock
from bench.openings import PACKAGES, open_once
from bench.sampling import Measure, Plan, Ratio, Reported, Samples, interleaved, require, timed, timed_await

_TRIVIAL = "x = 1"
_START_SECONDS = 60


def _opening_beside_ipykernel(plan: Plan) -> Samples:
    require("ipykernel", "jupyter_client", *(name.partition(".")[0] for name in PACKAGES))
    imports = "\n".join(f"import {name}" for name in PACKAGES)
    with asyncio.Runner() as runner:
        return interleaved(
            plan.rounds,
            lambda: runner.run(open_once(PACKAGES)),
            lambda: _start_of_ipykernel(imports),
            warm=1,
        )


def _start_of_ipykernel(imports: str) -> float:
    """Seconds from the start of a kernel until it has imported the packages."""
    began = perf_counter()
    with _ipykernel() as client:
        client.execute_interactive(imports, timeout=_START_SECONDS)
        return perf_counter() - began


def _cell_beside_ipykernel(plan: Plan) -> Samples:
    require("ipykernel", "jupyter_client")
    with _ipykernel() as client, cellblock.Session() as session:
        return interleaved(
            plan.rounds,
            lambda: timed(lambda: session.run(_TRIVIAL), plan.think),
            lambda: timed(lambda: client.execute_interactive(_TRIVIAL), plan.think),
        )


@contextmanager
def _ipykernel() -> Iterator[Any]:
    from jupyter_client.manager import KernelManager

    os.environ["JUPYTER_PLATFORM_DIRS"] = "1"  # or it warns
    manager = KernelManager()
    manager.kernel_spec.argv[0] = sys.executable
    manager.start_kernel(stderr=subprocess.DEVNULL)  # it warns of its own transport
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=_START_SECONDS)
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _cell_beside_monty(plan: Plan) -> Samples:
    require("pydantic_monty")
    from pydantic_monty import Monty

    with asyncio.Runner() as runner, Monty() as pool, pool.checkout() as monty:
        session = runner.run(cellblock.AsyncSession().open())
        try:
            return interleaved(
                plan.rounds,
                lambda: runner.run(timed_await(lambda: session.run(_TRIVIAL), plan.think)),
                lambda: timed(lambda: monty.feed_run(_TRIVIAL), plan.think),
            )
        finally:
            runner.run(session.close())


MEASURES = (
    Measure(
        id="F1/monty", what="warm cell `x = 1` after think time, async", reference="Monty's worker, blocking",
        goal=Ratio(1), rounds=50, take=_cell_beside_monty, peer=True,
    ),
    Measure(
        id="F1/ipykernel", what="the same, blocking", reference="ipykernel over jupyter_client",
        goal=Reported(), rounds=30, take=_cell_beside_ipykernel, peer=True,
    ),
    Measure(
        id="F4/ipykernel", what="open a session, numpy + pandas + matplotlib", reference="start ipykernel, import them",
        goal=Ratio(1 / 50), rounds=5, take=_opening_beside_ipykernel, peer=True,
    ),
)  # fmt: skip
