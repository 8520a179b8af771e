"""The table's lines and the JSON document."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import assert_never

from bench.sampling import Excess, Figure, Goal, Ratio, Reported, Unit


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

_COLUMNS = "{:<19} {:<46} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7} {:>7} {:>8} {:>4}"


def head_line() -> str:
    """The table's first line. `at p95` is the ratio of the two p95; a p99 takes a hundred samples."""
    return _COLUMNS.format(
        "id", "what", "p50", "p95", "p99", "ref p50", "ref p95", "ratio", "at p95", "paired", "goal", "met"
    )


def line(row: Row) -> str:
    """One line of the table."""
    if isinstance(row, Skipped):
        return f"{row.id:<19} skipped: {row.reason}"
    ours, theirs = row.subject, row.reference
    return _COLUMNS.format(
        row.measure.id,
        row.measure.what,
        *(_amount(value, row.measure.unit) for value in (ours.p50, ours.p95, ours.p99, theirs.p50, theirs.p95)),
        *(f"{value:.2f}" if value >= 0.1 else f"{value:.4f}" for value in (row.ratio, row.tail_ratio, row.paired)),
        _words(row.measure.goal),
        {True: "yes", False: "no", None: ""}[row.met],
    )


def _amount(value: float | None, unit: Unit) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if unit is Unit.MS else f"{value:.1f} MB"


def as_json(context: Context, rows: Sequence[Row]) -> str:
    """Every figure with its context, in its `unit`: "ms", or "MB" of 2**20 bytes."""
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
        "unit": figure.measure.unit.value,
        "rounds": figure.rounds,
        **asdict(figure.subject),
        "reference": {"what": figure.measure.reference, **asdict(figure.reference)},
        "ratio": figure.ratio,
        "ratio_p95": figure.tail_ratio,
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
