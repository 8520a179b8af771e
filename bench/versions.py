"""F1, F11, F12, F18: what a session that lasts costs: a cell, its commit beside a large state, resuming, and history.

A commit is waited for with `flush`, which nobody has to do: the reply does not wait. The reference of F11 is pickling
the name that changed; of F12, unpickling all of it in a process that has NumPy, as the session has by `preload`.
"""

from __future__ import annotations

import asyncio
import pickle
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import cellblock
from bench.sampling import Measure, Plan, Ratio, Reported, Samples, interleaved, require, timed, timed_await

_LIMITS = cellblock.ExecutionLimits(max_memory_mb=4096, max_checkpoint_mb=4096, timeout_seconds=120, max_files=50_000)
_TRIVIAL = "x = 1"
_TWENTY = "import numpy as np\nfor n in range(20): globals()[f'a{n}'] = np.random.default_rng(n).random(5 * 2 ** 17)"
_STATE = "import numpy as np\nstate = np.random.default_rng(0).random({} * 2 ** 17)\nsmall = 0"


@contextmanager
def _store() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as directory:
        yield f"sqlite:///{directory}/cells.db"


class _Lasting:
    """One session, on an event loop of its own."""

    def __init__(
        self, runner: asyncio.Runner, url: str | None, name: str = "one", preload: tuple[str, ...] = ()
    ) -> None:
        self.runner = runner
        state = cellblock.Live() if url is None else cellblock.Versioned(url)
        name_or_none = None if url is None else name
        self.session = cellblock.AsyncSession(name_or_none, state=state, limits=_LIMITS, preload=preload)
        runner.run(self.session.open())

    def run(self, source: str) -> object:
        cell = self.runner.run(self.session.run(source))
        assert cell.ok, cell.text
        return cell.value

    def cell(self, source: str, think: float) -> float:
        return self.runner.run(timed_await(lambda: self.session.run(source), think))

    def flush(self) -> None:
        self.runner.run(self.session.flush())

    def close(self) -> None:
        self.runner.run(self.session.close())


def _beside_live(plan: Plan) -> Samples:
    """A warm cell of a session that lasts beside one of a session that does not."""
    with asyncio.Runner() as runner, _store() as url:
        lasting, live = _Lasting(runner, url), _Lasting(runner, None)
        try:
            return interleaved(
                plan.rounds, lambda: lasting.cell(_TRIVIAL, plan.think), lambda: live.cell(_TRIVIAL, plan.think)
            )
        finally:
            lasting.close()
            live.close()


def _committed(megabytes: int, changing: str, plan: Plan) -> Samples:
    """From the reply of a cell that changed something small until its commit is durable."""
    require("numpy")
    with asyncio.Runner() as runner, _store() as url:
        session, value = _Lasting(runner, url), [0]
        try:
            session.run(_STATE.format(megabytes))
            session.flush()

            def committed() -> float:
                session.cell(changing, plan.think)
                return timed(session.flush)

            return interleaved(plan.rounds, committed, lambda: timed(lambda: pickle.dumps(value)), warm=2)
        finally:
            session.close()


def _beside_little(megabytes: int, plan: Plan) -> Samples:
    """The same commit beside a large state, and beside a tenth of it."""
    require("numpy")
    with asyncio.Runner() as runner, _store() as url:
        large, little = _Lasting(runner, url, "large"), _Lasting(runner, url, "little")
        try:
            for session, size in ((large, megabytes), (little, megabytes // 10)):
                session.run(_STATE.format(size))
                session.flush()

            def committed(session: _Lasting) -> float:
                session.cell("small += 1", plan.think)
                return timed(session.flush)

            return interleaved(plan.rounds, lambda: committed(large), lambda: committed(little), warm=2)
        finally:
            large.close()
            little.close()


def _resumed(used: str, plan: Plan) -> Samples:
    """Open a stored session of 100 MB in 20 arrays, and use some; beside unpickling all 20."""
    require("numpy")
    import numpy as np

    arrays = {f"a{n}": np.random.default_rng(n).random(5 * 2**17) for n in range(20)}
    data = pickle.dumps(arrays, protocol=5)
    with asyncio.Runner() as runner, _store() as url:
        session = _Lasting(runner, url, preload=("numpy",))
        session.run(_TWENTY)
        session.close()

        def resumed() -> float:
            began = time.perf_counter()
            again = _Lasting(runner, url, preload=("numpy",))
            again.run(used)
            seconds = time.perf_counter() - began
            again.close()
            return seconds

        return interleaved(plan.rounds, resumed, lambda: timed(lambda: pickle.loads(data)), warm=1)


def _history(measured: str, plan: Plan) -> Samples:
    """Something of a session with a thousand commits, beside one with a hundred."""
    with asyncio.Runner() as runner, _store() as url:
        for name, count in (("long", 1000), ("short", 100)):
            session = _Lasting(runner, url, name)
            for number in range(count):
                session.run(f"x = {number}")
            session.close()

        def taken(name: str) -> float:
            began = time.perf_counter()
            session = _Lasting(runner, url, name)
            opened = time.perf_counter() - began
            try:
                if measured == "open":
                    return opened
                asked: Callable[[], object] = lambda: runner.run(  # noqa: E731
                    session.session.log(limit=20) if measured == "log" else session.session.diff("HEAD~1", "HEAD")
                )
                return timed(asked)
            finally:
                session.close()

        return interleaved(plan.rounds, lambda: taken("long"), lambda: taken("short"), warm=1)


MEASURES = (
    Measure(
        id="F11/reply", what="warm cell of a session that lasts", reference="of one that does not",
        goal=Ratio(1.5), rounds=40, take=_beside_live,
    ),
    Measure(
        id="F11/commit", what="durable commit of a small change, 1 GB beside it", reference="pickling what changed",
        goal=Reported(), rounds=10, take=partial(_committed, 1000, "small += 1"),
    ),
    Measure(
        id="F11/growth", what="durable commit of a small change, 1 GB beside it", reference="100 MB beside it",
        goal=Ratio(2), rounds=10, take=partial(_beside_little, 1000),
    ),
    Measure(
        id="F12/one", what="resume 100 MB in 20 names, use one", reference="unpickling all",
        goal=Ratio(1.2), rounds=10, take=partial(_resumed, "a3.sum()"),
    ),
    Measure(
        id="F12/all", what="resume 100 MB in 20 names, use all", reference="unpickling all",
        goal=Ratio(1.2), rounds=10, take=partial(_resumed, "sum(globals()[f'a{n}'].sum() for n in range(20))"),
    ),
    *(
        Measure(
            id=f"F18/{what}", what=f"{told} with 1,000 commits", reference="with 100",
            goal=Ratio(1.5), rounds=5, take=partial(_history, what),
        )
        for what, told in (("open", "opening a session"), ("log", "log of 20"), ("diff", "diff of one step"))
    ),
)  # fmt: skip
