"""F15: whole processes, from their start to their end."""

from __future__ import annotations

import subprocess
import sys
from compileall import compile_dir
from pathlib import Path

import cellblock
from bench.sampling import Measure, Plan, Ratio, Samples, interleaved, timed


def _importing(plan: Plan) -> Samples:
    return _against_pass(plan, ("-c", "import cellblock"), b"")


def _running(plan: Plan) -> Samples:
    """`python -m` and not the installed script, so that a checkout can be measured too."""
    return _against_pass(plan, ("-m", "cellblock", "run", "-"), b"1+1")


def _against_pass(plan: Plan, words: tuple[str, ...], stdin: bytes) -> Samples:
    compile_dir(str(Path(cellblock.__file__).parent), quiet=2)  # as installing does; a checkout may not be
    return interleaved(
        plan.rounds,
        lambda: timed(lambda: _whole(words, stdin)),
        lambda: timed(lambda: _whole(("-c", "pass"), b"")),
        warm=1,
    )


def _whole(words: tuple[str, ...], stdin: bytes) -> None:
    """Run a Python process to its end, away from the directory we stand in."""
    subprocess.run([sys.executable, *words], input=stdin, stdout=subprocess.DEVNULL, cwd="/", check=True)


MEASURES = (
    Measure(
        id="F15/import", what="python -c 'import cellblock'", reference="python -c pass",
        goal=Ratio(4), rounds=40, take=_importing,
    ),
    Measure(
        id="F15/run", what="echo 1+1 | cellblock run -", reference="python -c pass",
        goal=Ratio(8), rounds=40, take=_running,
    ),
)  # fmt: skip
