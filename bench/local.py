"""F13, F14 and the cost of sessions at the level `local`, where cells run in this process behind the guard."""

from __future__ import annotations

import ast
import gc
import math
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import cellblock
from bench.sampling import Measure, Plan, Ratio, Reported, Samples, Unit, interleaved, timed
from cellblock.guard.world import World

PROGRAMS = {path.stem: path for path in sorted((Path(__file__).parent / "ordinary").glob("*.py"))}
"""Ordinary programs, each of some 10 ms. What they come to they bind to `result`."""
_OF_A_SCRIPT = ("containers", "graphs", "methods", "patterns", "records", "strings", "tokenizer")
_TRIVIAL = "x = 1"
_SHOWN = "x + 1"
_AT_ONCE = 20
_SESSIONS = 100
_PAGE = 4096


def _program(name: str, plan: Plan) -> Samples:
    source = PROGRAMS[name].read_text()
    return interleaved(plan.rounds, partial(_guarded, source), partial(_plain, source), warm=1)


def _mean(plan: Plan) -> Samples:
    """Each sample runs every program, and is the geometric mean of their seconds."""
    sources = [path.read_text() for path in PROGRAMS.values()]
    return interleaved(
        plan.rounds,
        lambda: _geometric(map(_guarded, sources)),
        lambda: _geometric(map(_plain, sources)),
        warm=1,
    )


def _guarded(source: str) -> float:
    world = _world()
    codes = world.run(world.check(source, "<cell 1>"))
    return _processor_seconds(lambda: _run(codes, world.globals))


def _plain(source: str) -> float:
    code = compile(source, "<cell 1>", "exec", dont_inherit=True)
    return _processor_seconds(lambda: _run([code], {"__name__": "__main__"}))


def _run(codes: Iterable[object], namespace: dict[str, object]) -> None:
    for code in codes:
        eval(code, namespace)  # type: ignore[arg-type]


def _processor_seconds(function: Callable[[], object]) -> float:
    gc.collect()
    began = time.thread_time()
    function()
    return time.thread_time() - began


def _geometric(seconds: Iterable[float]) -> float:
    return math.exp(sum(logs := [math.log(one) for one in seconds]) / len(logs))


def _cell(source: str, plan: Plan) -> Samples:
    world, namespace, mode = _world(), {"x": 1}, "eval" if source == _SHOWN else "exec"
    world.globals["x"] = 1
    return interleaved(
        plan.rounds,
        lambda: _often(lambda: _run(world.run(world.check(source, "<cell 2>")), world.globals)),
        lambda: _often(lambda: eval(compile(source, "<cell>", mode, dont_inherit=True), namespace)),
        warm=20,
    )


def _script(plan: Plan) -> Samples:
    """Checking and compiling a script of some 400 lines, beside parsing it."""
    source, world = "\n".join(PROGRAMS[name].read_text() for name in _OF_A_SCRIPT), _world()
    return interleaved(
        plan.rounds,
        lambda: _processor_seconds(lambda: world.check(source, "<cell 1>")),
        lambda: _processor_seconds(lambda: ast.parse(source)),
    )


def _opening(plan: Plan) -> Samples:
    """The session is closed outside of the time."""

    def sample() -> float:
        began = time.perf_counter()
        session = cellblock.Session(trust_level="local")
        seconds = time.perf_counter() - began
        session.close()
        return seconds

    return interleaved(plan.rounds, sample, lambda: timed(_turn_of_a_thread))


def _turn_of_a_thread() -> None:
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()


def _memory(plan: Plan) -> Samples:
    """What one of a hundred adds to a Python that has had one, each sample in a Python of its own."""
    return interleaved(plan.rounds, lambda: _of_each(_OPEN), lambda: _of_each(_START), warm=0)


def _of_each(make: str) -> float:
    source = _GROWTH.replace("MAKE", make)
    return float(subprocess.run([sys.executable, "-c", source], stdout=subprocess.PIPE, check=True).stdout)


_OPEN = "session = cellblock.Session(trust_level='local'); session.run('x = 1'); held.append(session)"
_START = "thread = threading.Thread(target=go.wait); thread.start(); held.append(thread)"
_GROWTH = f"""
import os, threading, cellblock
held, go = [], threading.Event()
def resident(): return int(open("/proc/self/statm").read().split()[1]) * {_PAGE}
MAKE
before = resident()
for _ in range({_SESSIONS}):
    MAKE
print((resident() - before) / {_SESSIONS}, flush=True)
os._exit(0)
"""


def _often(function: Callable[[], object]) -> float:
    def some() -> None:
        for _ in range(_AT_ONCE):
            function()

    return timed(some) / _AT_ONCE


def _world() -> World:
    world = World(write=lambda stream, text: None)
    world.ending.begin()
    return world


_EXEC = "plain exec"
MEASURES = (
    Measure(
        id="F13/mean", what=f"geometric mean of the {len(PROGRAMS)} programs below", reference=_EXEC,
        goal=Ratio(1.5), rounds=10, take=_mean,
    ),
    *(
        Measure(
            id=f"F13/{name}", what=path.read_text().partition('"""')[2].partition("\n")[0].partition('"""')[0][:46],
            reference=_EXEC, goal=Ratio(2.5), rounds=15, take=partial(_program, name),
        )
        for name, path in PROGRAMS.items()
    ),
    Measure(
        id="F14/local", what="check, rewrite, compile and run `x = 1`", reference="plain compile and exec",
        goal=Ratio(10), rounds=200, take=partial(_cell, _TRIVIAL),
    ),
    Measure(
        id="F14/local-shown", what="the same of `x + 1`, for its value", reference="plain compile and eval",
        goal=Ratio(10), rounds=200, take=partial(_cell, _SHOWN),
    ),
    Measure(
        id="F14/script", what="check and compile 400 lines", reference="ast.parse",
        goal=Ratio(5), rounds=50, take=_script,
    ),
    Measure(
        id="F4/local", what="open a session at trust level local", reference="start a thread and join it",
        goal=Reported(), rounds=100, take=_opening,
    ),
    Measure(
        id="F7/local", what="memory of a session at trust level local", reference="a thread", unit=Unit.MB,
        goal=Reported(), rounds=10, take=_memory,
    ),
)  # fmt: skip
