"""F14, the part that every level has: parsing, compiling and executing a cell in the worker's interpreter."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from functools import partial

from bench.sampling import Measure, Plan, Reported, Samples, interleaved, timed

_TRIVIAL = "x = 1"
_SHOWN = "x + 1"
_AT_ONCE = 20
"""Runs in a sample: one alone takes as long as reading the clock varies."""


def _statement(plan: Plan) -> Samples:
    return _apart(plan, _TRIVIAL)


def _expression(plan: Plan) -> Samples:
    return _apart(plan, _SHOWN)


def _apart(plan: Plan, source: str) -> Samples:
    """Take the samples in a fork of this process: an interpreter makes itself the `__main__` of where it is."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            with open(writer, "wb") as file:
                pickle.dump(_in_process(plan.rounds, source), file)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with open(reader, "rb") as file:
        data = file.read()
    os.waitpid(pid, 0)
    samples: Samples = pickle.loads(data)
    return samples


def _in_process(rounds: int, source: str) -> Samples:
    from cellblock.worker.interpreter import Interpreter

    interpreter = Interpreter()
    namespace: dict[str, object] = {}
    interpreter.run(_TRIVIAL, "<cell 1>")
    exec(_TRIVIAL, namespace)
    mode = "eval" if source == _SHOWN else "exec"
    return interleaved(
        rounds,
        lambda: _often(partial(interpreter.run, source, "<cell 2>")),
        lambda: _often(lambda: eval(compile(source, "<cell>", mode, dont_inherit=True), namespace)),
        warm=20,
    )


def _often(function: Callable[[], object]) -> float:
    def some() -> None:
        for _ in range(_AT_ONCE):
            function()

    return timed(some) / _AT_ONCE


_PLAIN = "plain compile and exec"
MEASURES = (
    Measure(
        id="F14/run", what="parse, compile and run of `x = 1`, in process", reference=_PLAIN,
        goal=Reported(), rounds=200, take=_statement,
    ),
    Measure(
        id="F14/run-shown", what="the same of `x + 1`, for its value", reference="plain compile and eval",
        goal=Reported(), rounds=200, take=_expression,
    ),
)  # fmt: skip
