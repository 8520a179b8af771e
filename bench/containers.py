"""F1 to F10 at the level `sandboxed`: beside a bare Python in a container over `podman exec`, and beside `isolated`.

Those over a relay, which containers of gVisor's need (`runsc`), are taken in them and in such of `runc`.

Taken when named: `python bench --peers --only container`. The image is $CELLBLOCK_IMAGE, or the one with the data stack
that `cellblock image build --data` makes.
"""

from __future__ import annotations

import asyncio
import base64
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import cellblock
from bench.memory import below, held_by
from bench.sampling import (
    Excess,
    Measure,
    Plan,
    Ratio,
    Reported,
    Samples,
    Unavailable,
    Unit,
    interleaved,
    timed,
    timed_await,
)
from cellblock.container import IMAGE_VARIABLE, Container
from cellblock.executors.container.engine import Engine, ask, engine_of
from cellblock.executors.container.launcher import ContainerFamily
from cellblock.executors.container.relayed.kernel import RelayedLauncher

_IMAGE = os.environ.get(IMAGE_VARIABLE) or "localhost/cellblock-data"
_TRIVIAL = "x = 1"
_SECONDS, _GRACE = 0.2, 0.1
_BYTES = 100 * 2**20
_LIMITS = cellblock.ExecutionLimits(max_memory_mb=1024, max_value_mb=128, timeout_seconds=60)
_LOOP = """
import base64, sys
names = {}
for line in sys.stdin:
    if line.startswith("call"):
        for _ in range(int(line.split()[1])):
            print("?", flush=True)
            sys.stdin.readline()
    else:
        exec(compile(base64.b64decode(line), "<cell>", "exec"), names)
    print("ok", flush=True)
"""


class _Bare:
    """A container of the same image, and in it a Python that executes what `podman exec` brings it, line by line."""

    def __init__(self, runtime: str = "") -> None:
        self._engine, self.runtime = (engine_of(), runtime) if runtime else _engine()
        self._name = f"cellblock-bench-{secrets.token_hex(4)}"
        line = ["run", "--detach", "--rm", "--pull", "never", "--network", "none", "--name", self._name]
        words = [*line, *self._engine.limits(), "--entrypoint", "sleep", _IMAGE, "100000"]
        done = ask(self._engine.words(*words, runtime=self.runtime))
        if done.returncode:
            raise Unavailable(done.stderr.strip())
        self._worker = subprocess.Popen(
            self._engine.words("exec", "--interactive", self._name, "python3", "-c", _LOOP, runtime=self.runtime),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        self.run("pass")

    def run(self, source: str) -> None:
        self._say(base64.b64encode(source.encode()).decode())
        self._hear("ok")

    def calls(self, count: int) -> None:
        """So many round trips of a word."""
        self._say(f"call {count}")
        for _ in range(count):
            self._hear("?")
            self._say("!")
        self._hear("ok")

    def program(self) -> None:
        """Another Python in the same container, to its end."""
        ask(self._engine.words("exec", self._name, "python3", "-c", "pass", runtime=self.runtime))

    def started(self) -> None:
        """Another container, for a Python that does nothing, to its end."""
        line = [
            "run",
            "--rm",
            "--pull",
            "never",
            "--network",
            "none",
            *self._engine.limits(),
            "--entrypoint",
            "python3",
        ]
        ask(self._engine.words(*line, _IMAGE, "-c", "pass", runtime=self.runtime))

    def held(self) -> float:
        """The bytes of everything in it."""
        done = ask(self._engine.words("inspect", "--format", "{{.State.Pid}}", self._name))
        return _in_container(int(done.stdout))

    def _say(self, line: str) -> None:
        assert self._worker.stdin is not None
        self._worker.stdin.write(line + "\n")

    def _hear(self, word: str) -> None:
        assert self._worker.stdout is not None
        heard = self._worker.stdout.readline().strip()
        assert heard == word, heard

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._worker.kill()
        self._worker.communicate()
        ask(self._engine.words("rm", "--force", self._name))


def _engine() -> tuple[Engine, str]:
    """The engine, and the runtime of it that sessions get here."""
    with _opened() as (session, _):
        family = session._kernel._family  # type: ignore[union-attr]
        assert isinstance(family, ContainerFamily)
        return family.running.engine, family.running.runtime


@contextmanager
def _opened(level: str = "sandboxed", **options: Any) -> Iterator[tuple[cellblock.AsyncSession, asyncio.Runner]]:
    """An open session and what runs its calls, after a first cell."""
    container = _IMAGE if level == "sandboxed" else None
    with asyncio.Runner() as runner:
        session = runner.run(cellblock.AsyncSession(trust_level=level, container=container, **options).open())  # type: ignore[arg-type]
        try:
            runner.run(session.run(_TRIVIAL))
            yield session, runner
        finally:
            runner.run(session.close())


def _cell(think: bool, plan: Plan) -> Samples:
    seconds = plan.think if think else 0.0
    with _Bare() as bare, _opened() as (session, runner):
        return interleaved(
            plan.rounds,
            lambda: runner.run(timed_await(lambda: session.run(_TRIVIAL), seconds)),
            lambda: timed(lambda: bare.run(_TRIVIAL), seconds),
        )


def _beside_isolated(
    act: Callable[[cellblock.AsyncSession, asyncio.Runner, Plan], float], prepared: str, plan: Plan
) -> Samples:
    """The same at both levels; `prepared` is a cell that each runs first."""
    with _opened(limits=_LIMITS) as (ours, runner), _opened("isolated", limits=_LIMITS) as (theirs, others):
        runner.run(ours.run(prepared))
        others.run(theirs.run(prepared))
        return interleaved(plan.rounds, lambda: act(ours, runner, plan), lambda: act(theirs, others, plan), warm=2)


def _ran(session: cellblock.AsyncSession, runner: asyncio.Runner, plan: Plan) -> float:
    return runner.run(timed_await(lambda: session.run(_TRIVIAL), plan.think))


def _undone(session: cellblock.AsyncSession, runner: asyncio.Runner, plan: Plan) -> float:
    runner.run(session.run("y = 1\nopen('kept', 'w').write('y')"))
    time.sleep(plan.think)
    return runner.run(timed_await(lambda: session.undo()))


def _killed(session: cellblock.AsyncSession, runner: asyncio.Runner, plan: Plan) -> float:
    time.sleep(plan.think)
    return runner.run(timed_await(lambda: session.run("import os\nos.kill(os.getpid(), 9)")))


def _branched(session: cellblock.AsyncSession, runner: asyncio.Runner, plan: Plan) -> float:
    time.sleep(plan.think)
    began = time.perf_counter()
    branch = runner.run(session.branch())
    seconds = time.perf_counter() - began
    runner.run(branch.close())
    return seconds


def _with_state(plan: Plan) -> Samples:
    with _opened(limits=_LIMITS) as (full, runner), _opened(limits=_LIMITS) as (empty, others):
        runner.run(full.run(f"import numpy\nstate = numpy.ones({_BYTES // 8})"))
        others.run(empty.run("import numpy"))
        return interleaved(plan.rounds, lambda: _ran(full, runner, plan), lambda: _ran(empty, others, plan))


def _started(plan: Plan) -> Samples:
    with _Bare() as bare:
        return interleaved(plan.rounds, partial(timed, _open_unlike), partial(timed, bare.started), warm=1)


_opening = iter(range(40_000, 50_000))


def _open_unlike() -> None:
    """One session that none is kept for; its end is in it, which is short."""
    limits = cellblock.ExecutionLimits(max_files=next(_opening))
    with cellblock.Session(trust_level="sandboxed", container=_IMAGE, limits=limits):
        pass


def _ready(plan: Plan) -> Samples:
    container = cellblock.Container(image=_IMAGE)
    keep = partial(cellblock.keep_ready, trust_level="sandboxed", container=container)

    def opened() -> float:
        keep(1)
        began = time.perf_counter()
        with cellblock.Session(trust_level="sandboxed", container=container):
            return time.perf_counter() - began

    try:
        with _Bare() as bare:
            return interleaved(plan.rounds, opened, partial(timed, bare.program), warm=1)
    finally:
        keep(0)


def _relayed(runtime: str, think: bool, plan: Plan) -> Samples:
    """Cells over a relay, whichever kernel the container has."""
    seconds = plan.think if think else 0.0
    with _Bare(_found(runtime)) as bare, _over_a_relay(_found(runtime)) as (session, runner):
        return interleaved(
            plan.rounds,
            lambda: runner.run(timed_await(lambda: session.run(_TRIVIAL), seconds)),
            lambda: timed(lambda: bare.run(_TRIVIAL), seconds),
        )


def _relayed_started(runtime: str, plan: Plan) -> Samples:
    def opened() -> None:
        with _over_a_relay(_found(runtime)):
            pass

    with _Bare(_found(runtime)) as bare:
        return interleaved(plan.rounds, partial(timed, opened), partial(timed, bare.started), warm=1)


@contextmanager
def _over_a_relay(runtime: str) -> Iterator[tuple[cellblock.AsyncSession, asyncio.Runner]]:
    container = Container(image=_IMAGE, runtime=runtime)
    with asyncio.Runner() as runner:
        session = cellblock.AsyncSession(trust_level="sandboxed", container=container)
        session._launcher = RelayedLauncher()
        runner.run(session.open())
        try:
            runner.run(session.run(_TRIVIAL))
            yield session, runner
        finally:
            runner.run(session.close())


def _found(runtime: str) -> str:
    found = os.environ.get(f"CELLBLOCK_TEST_{runtime.upper()}") or shutil.which(runtime)
    if not found:
        raise Unavailable(f"{runtime} is not installed")
    return found


def _held(plan: Plan) -> Samples:
    with _Bare() as bare, _opened(preload=("pandas",)) as (session, runner):
        runner.run(session.run("import pandas\nframe = pandas.DataFrame({'a': range(3000)})"))
        bare.run("import pandas\nframe = pandas.DataFrame({'a': range(3000)})")
        family = session._kernel._family  # type: ignore[union-attr]
        assert isinstance(family, ContainerFamily)
        pairs = [(_in_container(family.running.pid), bare.held()) for _ in range(plan.rounds)]
        ours, theirs = zip(*pairs, strict=True)
        return Samples(subject=ours, reference=theirs)


def _in_container(first: int) -> float:
    """The bytes of a container's processes: what descends from its first one, and what shares its pid namespace."""
    own = os.readlink(f"/proc/{first}/ns/pid")
    pids = {first, *below(first)}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.readlink(entry / "ns" / "pid") == own:
                pids.add(int(entry.name))
    return sum(map(held_by, pids))


def _soft(plan: Plan) -> Samples:
    return _timed_out("while True: pass", _SECONDS, "x", plan)


def _hard(plan: Plan) -> Samples:
    return _timed_out("max(iter(int, 1))", _SECONDS + _GRACE, "1", plan)


def _timed_out(source: str, limit: float, after: str, plan: Plan) -> Samples:
    limits = cellblock.ExecutionLimits(timeout_seconds=_SECONDS, interrupt_grace_seconds=_GRACE)
    with _opened(limits=limits) as (session, runner):

        def sample() -> float:
            runner.run(session.run(_TRIVIAL))
            seconds = runner.run(timed_await(lambda: session.run(source)))
            assert runner.run(session.run(after)).value == 1
            return seconds

        return interleaved(plan.rounds, sample, lambda: timed(lambda: time.sleep(limit)), warm=1)


_CALLS = 50


def _called(plan: Plan) -> Samples:
    def echo(word: str) -> str:
        return word

    with _Bare() as bare, _opened(tools=[echo]) as (session, runner):
        source = f"for _ in range({_CALLS}): echo('?')"
        return interleaved(
            plan.rounds,
            lambda: runner.run(timed_await(lambda: session.run(source))) / _CALLS,
            lambda: timed(lambda: bare.calls(_CALLS)) / _CALLS,
        )


def _across(way: str, plan: Plan) -> Samples:
    try:
        import numpy
    except ImportError:
        raise Unavailable("numpy is not installed") from None
    array = numpy.arange(_BYTES // 8, dtype=float)
    limits = cellblock.ExecutionLimits(max_memory_mb=1024, max_value_mb=128, max_checkpoints=0)
    with cellblock.Session(trust_level="sandboxed", container=_IMAGE, limits=limits) as session:
        session.run("import numpy")
        session["x"] = array

        def put() -> None:
            session["x"] = array

        return interleaved(
            plan.rounds, partial(timed, put if way == "in" else lambda: session["x"]), partial(timed, array.copy)
        )


_BARE = "a bare Python in a container, over podman exec"
_RUN = "podman run, a bare Python"
_SAME = "the same at `isolated`"
_WITH_FILES = "open('kept', 'w').write('')"


def _measure(id: str, what: str, reference: str, take: Callable[[Plan], Samples], **more: Any) -> Measure:
    given = {"goal": Reported(), "rounds": 20} | more
    return Measure(id=f"container/{id}", what=what, reference=reference, take=take, peer=True, **given)


MEASURES = (
    _measure("F1", "warm cell after think time, async", _BARE, partial(_cell, True), goal=Ratio(2), rounds=60),
    _measure("F1-isolated", "the same", _SAME, partial(_beside_isolated, _ran, "pass"), rounds=60),
    _measure("F1-relayed", "warm cell over a relay, runc", _BARE, partial(_relayed, "runc", True), rounds=60),
    _measure("F1-gvisor", "warm cell over a relay, gVisor", _BARE, partial(_relayed, "runsc", True), rounds=60),
    _measure("F2-gvisor", "the same back to back", _BARE, partial(_relayed, "runsc", False), rounds=200),
    _measure("F4-gvisor", "open and close, in gVisor", _RUN, partial(_relayed_started, "runsc"), rounds=8),
    _measure("F2", "cell back to back", _BARE, partial(_cell, False), rounds=300),
    _measure("F3", "warm cell beside 100 MB of state", "the same with none", _with_state, goal=Ratio(1.2), rounds=40),
    _measure("F4-started", "open and close, in a new container", _RUN, _started, rounds=10),
    _measure("F4-ready", "open a session that is kept ready", "podman exec, a bare Python", _ready, rounds=10),
    _measure("F5-undo", "undo, with a file", _SAME, partial(_beside_isolated, _undone, _WITH_FILES)),
    _measure("F5-killed", "cell that is killed, until the reply", _SAME, partial(_beside_isolated, _killed, "pass")),
    _measure("F6", "branch", _SAME, partial(_beside_isolated, _branched, "pass")),
    _measure("F7", "memory of a session with pandas", _BARE, _held, unit=Unit.MB, rounds=3),
    _measure("F8-soft", "timeout of a Python loop", "asleep for the limit", _soft, goal=Excess(50), rounds=10),
    _measure("F8-hard", "timeout of a loop in C", "asleep for limit + grace", _hard, goal=Excess(50), rounds=10),
    _measure("F9", "tool call round trip", "a line each way over podman exec", _called),
    _measure("F10-in", "100 MB of an array in", "one copy into fresh memory", partial(_across, "in"), rounds=10),
    _measure("F10-out", "100 MB of an array out", "one copy into fresh memory", partial(_across, "out"), rounds=10),
)
