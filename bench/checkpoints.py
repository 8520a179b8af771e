"""F2, F3, F5, F6: what a frozen copy after each cell costs, going back to one, and a branch of it; F18: how a step's
cost grows.

The reference of F2, F5, F6 is a fork of an image as large, with its first word back. A cell of F2 follows the one
before at once, so that the copy is made on its way; what it is made of is the fork and the cell alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import cellblock
from bench.bare import BareImage, BareWorker
from bench.sampling import Measure, Plan, Ratio, Reported, Samples, interleaved, timed, timed_await

_TRIVIAL = "x = 1"
_LIMITS = cellblock.ExecutionLimits(max_memory_mb=2048, max_disk_mb=1024, max_files=50_000, timeout_seconds=120)
_MB = "import numpy as np\nstate = np.ones({} * 2 ** 17)"


@contextmanager
def _session(prepared: str = "pass") -> Iterator[Callable[[str], None]]:
    """What runs a cell of a session in which a first cell has run."""
    with asyncio.Runner() as runner:
        session = runner.run(cellblock.AsyncSession(limits=_LIMITS).open())

        def run(source: str) -> None:
            cell = runner.run(session.run(source) if source != "undo" else _undone(session))
            assert cell is None or cell.ok, cell

        try:
            run(prepared)
            run(_TRIVIAL)
            yield run
        finally:
            runner.run(session.close())


async def _undone(session: cellblock.AsyncSession) -> None:
    await session.undo()


def _back_to_back(plan: Plan) -> Samples:
    with BareWorker() as bare, BareImage(()) as image, _session() as run:
        bare.run(_TRIVIAL)

        def both() -> None:
            image.fork()
            bare.run(_TRIVIAL)

        return interleaved(plan.rounds, lambda: timed(lambda: run(_TRIVIAL)), lambda: timed(both), warm=20)


def _with_state(megabytes: int, plan: Plan) -> Samples:
    """The n-th cell with so much of live numpy state beside the n-th with none, after time to think."""
    with _session(_MB.format(megabytes)) as run, _session("import numpy as np") as empty:
        return interleaved(
            plan.rounds,
            lambda: timed(lambda: run(_TRIVIAL), plan.think),
            lambda: timed(lambda: empty(_TRIVIAL), plan.think),
        )


def _undo(changing: str, plan: Plan) -> Samples:
    with BareImage(()) as image, _session("open('kept', 'wb').write(bytes(2 ** 20)); None") as run:

        def undone() -> float:
            run(changing)
            time.sleep(plan.think)  # the copies of that cell are made
            return timed(lambda: run("undo"))

        return interleaved(plan.rounds, undone, lambda: timed(image.fork, plan.think), warm=1)


def _killed(plan: Plan) -> Samples:
    """A cell whose process is killed at once, until the reply: the state before it is there again."""
    with asyncio.Runner() as runner, BareImage(()) as image:
        session = runner.run(cellblock.AsyncSession(limits=_LIMITS).open())

        def killed() -> float:
            runner.run(session.run(_TRIVIAL))
            seconds = runner.run(timed_await(lambda: session.run("import os\nos._exit(1)"), plan.think))
            assert runner.run(session.run("x")).value == 1
            return seconds

        try:
            return interleaved(plan.rounds, killed, lambda: timed(image.fork, plan.think), warm=1)
        finally:
            runner.run(session.close())


def _branched(prepared: str, plan: Plan) -> Samples:
    """Until the branch is there, whose first cell then sees the state."""
    with asyncio.Runner() as runner, BareImage(()) as image:
        session = runner.run(cellblock.AsyncSession(limits=_LIMITS).open())

        def branched() -> float:
            branches: list[cellblock.AsyncSession] = []

            async def branch() -> None:
                branches.append(await session.branch())

            seconds = runner.run(timed_await(branch, plan.think))
            assert runner.run(branches[0].run("x")).value == 1
            runner.run(branches[0].close())
            return seconds

        try:
            assert runner.run(session.run(f"x = 1\n{prepared}")).ok
            return interleaved(plan.rounds, branched, lambda: timed(image.fork, plan.think), warm=1)
        finally:
            runner.run(session.close())


def _grown(larger: str, smaller: str, plan: Plan) -> Samples:
    """A trivial step in a session with ten times as much of something, beside one with a tenth."""
    with _session(larger) as run, _session(smaller) as reference:
        return interleaved(
            plan.rounds,
            lambda: timed(lambda: run(_TRIVIAL), plan.think),
            lambda: timed(lambda: reference(_TRIVIAL), plan.think),
        )


def _growing(source: str, count: int) -> Callable[[Plan], Samples]:
    return partial(_grown, source.format(count), source.format(count // 10))


def _after_cells(plan: Plan) -> Samples:
    """The cell after a thousand beside the cell after a hundred."""
    with _session() as run, _session() as reference:
        for number in range(1000):
            run(_TRIVIAL)
            if number < 100:
                reference(_TRIVIAL)
        return interleaved(
            plan.rounds,
            lambda: timed(lambda: run(_TRIVIAL), plan.think),
            lambda: timed(lambda: reference(_TRIVIAL), plan.think),
        )


_NAMES = "globals().update((f'n{{n}}', n) for n in range({}))"
_FILES = "for n in range({}): open(f'f{{n}}', 'w').close()"
_FORK = "a fork of the image"
MEASURES = (
    Measure(
        id="F2", what="cell back to back, its checkpoint on the way", reference=f"{_FORK} + the cell, bare",
        goal=Ratio(1.3), rounds=500, take=_back_to_back,
    ),
    *(
        Measure(
            id=f"F3/{size}mb", what=f"warm cell with {size} MB of numpy state", reference="the same with none",
            goal=Ratio(1.2), rounds=40, take=partial(_with_state, size),
        )
        for size in (1, 100, 1000)
    ),
    Measure(
        id="F5/undo", what="undo of a cell that changed names", reference=_FORK,
        goal=Ratio(1.5), rounds=20, take=partial(_undo, "y = 2"),
    ),
    Measure(
        id="F5/files", what="undo of a cell that changed ten files", reference=_FORK,
        goal=Ratio(4), rounds=20, take=partial(_undo, "for n in range(10): open(f'f{n}', 'w').write('x')"),
    ),
    Measure(
        id="F5/killed", what="cell that ends its process, until the reply", reference=_FORK,
        goal=Ratio(1.5), rounds=20, take=_killed,
    ),
    Measure(
        id="F6", what="branch of a live session", reference=_FORK,
        goal=Ratio(4), rounds=20, take=partial(_branched, "pass"),
    ),
    Measure(
        id="F6/files", what="branch of a live session with 1000 files", reference=_FORK,
        goal=Reported(), rounds=20, take=partial(_branched, "for n in range(1000): open(f'f{n}', 'w').write('x')"),
    ),
    Measure(
        id="F18/names", what="warm cell beside 10,000 names", reference="beside 1,000",
        goal=Ratio(10), rounds=40, take=_growing(_NAMES, 10_000),
    ),
    Measure(
        id="F18/files", what="warm cell beside 10,000 files", reference="beside 1,000",
        goal=Ratio(10), rounds=20, take=_growing(_FILES, 10_000),
    ),
    Measure(
        id="F18/state", what="warm cell beside 1,000 MB of state", reference="beside 100 MB",
        goal=Ratio(10), rounds=20, take=_growing(_MB, 1000),
    ),
    Measure(
        id="F18/cells", what="warm cell after 1,000 cells", reference="after 100",
        goal=Ratio(1.2), rounds=40, take=_after_cells,
    ),
)  # fmt: skip
