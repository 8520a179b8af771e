"""Two logs of one run, the first and the one of its replay: what differs between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from cellblock.agent.past import Past, PastRun, PastStep
from cellblock.agent.recording import from_plain
from cellblock.text import represent, write_json
from cellblock.values.portable import MalformedValue

_COMPARED = ("state", "text", "error", "value", "signals", "answer", "lost", "rolled_back", "decision")
_REGULAR = ("answered", "steps used up", "failed")
_MOST = 2_000

_Row = tuple[str, str, str]
"""A difference: as it was logged and as it came out again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that came out otherwise. `step` is None for the run as a whole; `run` is the place of its log."""

    run: int
    attempt: int
    step: int | None
    what: str
    logged: str
    replayed: str


@dataclass(slots=True, kw_only=True)
class Replay:
    """Outcome of doing runs again. `notes` say what the logs did not hold, and what was not as it was then."""

    differences: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    cells: int = 0
    calls: int = 0

    @property
    def same(self) -> bool:
        """True if all came out as the logs say."""
        return not self.differences


def compare(run: int, past: PastRun, again: PastRun, done: Replay) -> None:
    """Add what differs between a logged run and the same one done again."""
    left = {"lost"} if past.run["state"] == "Versioned" else set()  # of what a store takes, a live session says nothing
    compared = [what for what in _COMPARED if what not in left]
    for number, attempt in sorted(past.attempts.items()):
        other = again.attempt(number)
        found = partial(Difference, run=run, attempt=number)
        left_out = attempt.interrupted()
        for step in attempt.ended_steps():
            if step.number in left_out:
                continue
            done.cells += step.cell is not None
            rows = _of_step(step, other.steps.get(step.number), compared)
            done.differences += [found(step=step.number, what=row[0], logged=row[1], replayed=row[2]) for row in rows]
        rows = _of_end(attempt, other)
        done.differences += [found(step=None, what=row[0], logged=row[1], replayed=row[2]) for row in rows]


def _of_step(step: PastStep, other: PastStep | None, compared: Iterable[str]) -> Iterator[_Row]:
    """Differences in a step."""
    if other is None or (step.cell is not None and other.cell is None):
        yield "cell", "ran", "was not run"
        return
    if step.cell is not None and other.cell is not None:
        for what in compared:
            if step.cell[what] != other.cell[what]:
                yield _told(what, step.cell[what], other.cell[what])
    for call in _beyond(other, step):
        yield "call", "", call
    for call in _beyond(step, other):
        yield "call", call, ""
    if [one["given"] for one in step.accepts] != [one["given"] for one in other.accepts]:
        yield _told("given", [one["given"] for one in step.accepts], [one["given"] for one in other.accepts])
    if step.memory is not None and other.memory is not None:
        for what in ("observations", "failed_approaches", "variables"):
            if step.memory[what] != other.memory[what]:
                yield _told(f"memory.{what}", step.memory[what], other.memory[what])


def _of_end(past: Past, other: Past) -> Iterator[_Row]:
    """Differences in how an attempt ended, where it did by itself."""
    if past.end is None or past.end["reason"] not in _REGULAR:
        return
    for what in ("reason", "value", "verified_by"):
        found = None if other.end is None else other.end[what]
        if past.end[what] != found:
            yield _told("ended" if what == "reason" else what, past.end[what], found)


def _told(what: str, logged: object, replayed: object) -> _Row:
    return what, _shown(logged), _shown(replayed)


def _shown(found: object) -> str:
    """A part of an event, for people."""
    if isinstance(found, str):
        return found[:_MOST]
    if isinstance(found, dict) and {"type", "message"} == set(found):
        return f"{found['type']}: {found['message']}"[:_MOST]
    return write_json(found, escaped=False)[:_MOST]


def _beyond(step: PastStep, other: PastStep) -> Iterator[str]:
    """The calls of tools that the other does not have as often."""
    for key, calls in step.calls.items():
        yield from (_call(one["name"], one["arguments"]) for one in calls[len(other.calls.get(key, ())) :])


def _call(name: str, arguments: Iterable[object]) -> str:
    args, kwargs = (_valued(one) for one in arguments)
    given = [represent(one, max_chars=_MOST) for one in (args if isinstance(args, list) else ())]
    named = kwargs.items() if isinstance(kwargs, dict) else ()
    given += [f"{key}={represent(value, max_chars=_MOST)}" for key, value in named]
    return f"{name}({', '.join(given)})"[:_MOST]


def _valued(tree: object) -> object:
    try:
        return from_plain(tree)
    except MalformedValue:
        return tree
