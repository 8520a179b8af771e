"""Samples of a subject and of its reference, taken in turns, and what they amount to.

Times on a shared machine drift by more than what is measured, so a figure is a ratio of two medians whose
samples lie side by side in time. Nothing is pinned to a processor and nothing is left out. A sample is a time in
seconds or, where a measure says so, memory in bytes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from statistics import median
from typing import assert_never

import anyio

Sampler = Callable[[], float]
"""Does the thing once and returns the seconds, or the bytes, it took."""


class Unavailable(Exception):
    """What a measure needs is not on this machine; the message names it."""


def require(*packages: str) -> None:
    """Raise `Unavailable` for the first of these that is not installed."""
    for name in packages:
        if find_spec(name) is None:
            raise Unavailable(f"{name} is not installed")


class Unit(Enum):
    """What a figure is told in, and how much of it one second or one byte is."""

    MS = "ms"
    MB = "MB"

    @property
    def scale(self) -> float:
        return 1e3 if self is Unit.MS else 1 / 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How often to sample, and the seconds of rest before each sample of a warm cell."""

    rounds: int
    think: float


@dataclass(frozen=True, slots=True)
class Ratio:
    """The subject's p50 is to be at most so many times the reference's."""

    most: float


@dataclass(frozen=True, slots=True)
class Excess:
    """The subject's p95 is to be at most so many milliseconds above the reference's p50."""

    most_ms: float


@dataclass(frozen=True, slots=True)
class Reported:
    """No goal is set."""


Goal = Ratio | Excess | Reported

_ENOUGH = 100
"""Samples that a p99 takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Seconds or bytes, in pairs: the n-th of one was taken right beside the n-th of the other."""

    subject: tuple[float, ...]
    reference: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Something to measure and what it is measured against. The id is `GROUP` or `GROUP/WHICH`.

    A measure with a `peer` is taken beside another program, and only when peers are asked for.
    """

    id: str
    what: str
    reference: str
    goal: Goal
    rounds: int
    take: Callable[[Plan], Samples]
    unit: Unit = Unit.MS
    peer: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Half of the samples were below `p50`, 95 of 100 below `p95`; from a hundred samples on, 99 below `p99`."""

    p50: float
    p95: float
    p99: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A measure taken. `ratio` is of the p50, `tail_ratio` of the p95, `paired` the median of the pairs' own."""

    measure: Measure
    rounds: int
    subject: Spread
    reference: Spread
    ratio: float
    tail_ratio: float
    paired: float
    met: bool | None


def interleaved(rounds: int, subject: Sampler, reference: Sampler, *, warm: int = 3) -> Samples:
    """Sample both in turns; who goes first changes each round. The `warm` first rounds do not count."""
    pairs = []
    for number in range(warm + rounds):
        if number % 2:
            second = reference()
            pairs.append((subject(), second))
        else:
            pairs.append((subject(), reference()))
    ours, theirs = zip(*pairs[warm:], strict=True)
    return Samples(subject=ours, reference=theirs)


def timed(function: Callable[[], object], think: float = 0.0) -> float:
    """Rest, then call; the seconds of the call."""
    time.sleep(think)
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


async def timed_await(function: Callable[[], Awaitable[object]], think: float = 0.0) -> float:
    """Rest on the event loop, as one that waits for a model does, then call; the seconds of the call."""
    await anyio.sleep(think)
    began = time.perf_counter()
    await function()
    return time.perf_counter() - began


def figure_of(measure: Measure, samples: Samples) -> Figure:
    """What the samples amount to."""
    scale = measure.unit.scale
    subject, reference = _spread(samples.subject, scale), _spread(samples.reference, scale)
    pairs = zip(samples.subject, samples.reference, strict=True)
    return Figure(
        measure=measure,
        rounds=len(samples.subject),
        subject=subject,
        reference=reference,
        ratio=subject.p50 / reference.p50,
        tail_ratio=subject.p95 / reference.p95,
        paired=median(ours / theirs for ours, theirs in pairs),
        met=_met(measure.goal, subject, reference),
    )


def _met(goal: Goal, subject: Spread, reference: Spread) -> bool | None:
    match goal:
        case Ratio(most):
            return subject.p50 <= most * reference.p50
        case Excess(most_ms):
            return subject.p95 <= reference.p50 + most_ms
        case Reported():
            return None
    assert_never(goal)


def _spread(samples: tuple[float, ...], scale: float) -> Spread:
    ordered = sorted(sample * scale for sample in samples)
    return Spread(
        p50=median(ordered), p95=_at(ordered, 0.95), p99=_at(ordered, 0.99) if len(ordered) >= _ENOUGH else None
    )


def _at(ordered: list[float], share: float) -> float:
    return ordered[math.ceil(share * len(ordered)) - 1]
