"""`python bench` or `python -m bench`: takes the measures, prints a table, writes JSON."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import cellblock
from bench import (
    agents,
    calls,
    cells,
    checkpoints,
    containers,
    crowd,
    local,
    memory,
    neighbours,
    openings,
    peers,
    programs,
    starts,
    stores,
    timeouts,
    values,
    versions,
)
from bench.report import Context, Row, Skipped, as_json, head_line, line
from bench.sampling import Measure, Plan, Unavailable, figure_of

_GROUPS = (
    cells,
    checkpoints,
    containers,
    openings,
    memory,
    timeouts,
    calls,
    values,
    versions,
    programs,
    local,
    starts,
    stores,
    crowd,
    neighbours,
    peers,
    agents,
)
MEASURES = tuple(measure for group in _GROUPS for measure in group.MEASURES)
_THINK, _QUICK_THINK = 0.1, 0.02


def main() -> int:
    """Take what was asked for; rows appear as they are taken. The status never depends on a figure."""
    arguments = _parse()
    think = _QUICK_THINK if arguments.quick else _THINK
    print(f"think time {think * 1e3:g} ms; times in ms; paired: median of the rounds' own ratios")
    print(head_line(), flush=True)
    load, rows = os.getloadavg(), []
    for measure in _chosen(arguments.only, peers=arguments.peers):
        rounds = arguments.rounds or (
            min(measure.rounds, max(5, measure.rounds // 5)) if arguments.quick else measure.rounds
        )
        row = _take(measure, Plan(rounds=rounds, think=think))
        rows.append(row)
        print(line(row), flush=True)
    context = Context(
        version=cellblock.__version__,
        python=platform.python_version(),
        kernel=platform.release(),
        cpus=os.cpu_count() or 0,
        load=(load[0], os.getloadavg()[0]),
        think_ms=think * 1e3,
        taken=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    )
    print(f"load {context.load[0]:.2f} before, {context.load[1]:.2f} after, on {context.cpus} processors")
    if arguments.json:
        Path(arguments.json).write_text(as_json(context, rows), encoding="utf-8")
    return 0


def _take(measure: Measure, plan: Plan) -> Row:
    """Take one measure; what this machine cannot do is a row that says so."""
    try:
        return figure_of(measure, measure.take(plan))
    except (cellblock.CellblockError, Unavailable) as error:
        return Skipped(id=measure.id, reason=str(error))


def _chosen(only: list[str], *, peers: bool) -> Iterator[Measure]:
    for measure in MEASURES:
        if measure.peer and not peers and measure.id not in only:
            continue
        if not only or measure.id in only or measure.id.partition("/")[0] in only:
            yield measure


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    names = ", ".join(measure.id for measure in MEASURES)
    parser.add_argument("--only", type=_names, default=[], metavar="F1,F8", help=f"these, or their groups: {names}")
    parser.add_argument("--quick", action="store_true", help="a fifth of the rounds, and 20 ms to think")
    parser.add_argument("--rounds", type=int, metavar="N", help="so many rounds of every measure")
    parser.add_argument("--peers", action="store_true", help="beside other programs too, where they are installed")
    parser.add_argument("--json", metavar="FILE", help="write every figure there as well")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    known = {measure.id for measure in MEASURES} | {measure.id.partition("/")[0] for measure in MEASURES}
    for name in (names := text.split(",")):
        if name not in known:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(sorted(known))}")
    return names


if __name__ == "__main__":
    sys.exit(main())
