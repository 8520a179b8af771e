"""The table's lines and the JSON document."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import assert_never

from bench.sampling import Excess, Figure, Goal, Ratio, Reported


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A measure that could not be taken here, and why."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Where and when the figures were taken. `load` is the minute's average before and after."""

    version: str
    python: str
    kernel: str
    cpus: int
    load: tuple[float, float]
    think_ms: float
    taken: str


Row = Figure | Skipped

_COLUMNS = "{:<13} {:<42} {:>9} {:>9} {:>9} {:>7} {:>7} {:>7} {:>9} {:>4}"


def head_line() -> str:
    """The table's first line. `noise` is the larger p95 / p50 of subject and reference."""
    return _COLUMNS.format("id", "what", "p50", "p95", "ref p50", "ratio", "paired", "noise", "goal", "met")


def line(row: Row) -> str:
    """One line of the table."""
    if isinstance(row, Skipped):
        return f"{row.id:<13} skipped: {row.reason}"
    return _COLUMNS.format(
        row.measure.id,
        row.measure.what,
        *(f"{value:.3f}" for value in (row.subject.p50, row.subject.p95, row.reference.p50)),
        *(f"{value:.2f}" for value in (row.ratio, row.paired, max(row.subject.noise, row.reference.noise))),
        _words(row.measure.goal),
        {True: "yes", False: "no", None: ""}[row.met],
    )


def as_json(context: Context, rows: Sequence[Row]) -> str:
    """Every figure with its context; times in milliseconds."""
    document = {
        "context": asdict(context),
        "figures": [_figure(row) for row in rows if isinstance(row, Figure)],
        "skipped": [asdict(row) for row in rows if isinstance(row, Skipped)],
    }
    return json.dumps(document, indent=1) + "\n"


def _figure(figure: Figure) -> dict[str, object]:
    return {
        "id": figure.measure.id,
        "what": figure.measure.what,
        "rounds": figure.rounds,
        **asdict(figure.subject),
        "reference": {"what": figure.measure.reference, **asdict(figure.reference)},
        "ratio": figure.ratio,
        "paired_ratio": figure.paired,
        "goal": _words(figure.measure.goal),
        "met": figure.met,
    }


def _words(goal: Goal) -> str:
    match goal:
        case Ratio(most):
            return f"<= {most:g}x"
        case Excess(most_ms):
            return f"+{most_ms:g} ms"
        case Reported():
            return ""
    assert_never(goal)
