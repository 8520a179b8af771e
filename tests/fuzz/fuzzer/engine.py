"""Runs changed cases through a target, and keeps those that reach what no case before them did."""

from __future__ import annotations

import time
import traceback
import tracemalloc
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field

from fuzzer.border import Endless, crossed
from fuzzer.cases import Case, size
from fuzzer.coverage import Step, followed
from fuzzer.mutation import Mutator
from fuzzer.target import Target

_MEASURE_EVERY = 25
_MOST_SMALLER = 2000
_SPARE_SECONDS, _SECONDS_A_BYTE = 0.25, 1e-4


@dataclass(frozen=True, slots=True)
class Break:
    """How a case breaks the invariant; `kind` is the same for those that do it at the same place."""

    kind: str
    how: str


@dataclass(frozen=True, slots=True)
class Find:
    """A case that breaks the invariant, as small as it was made, and how."""

    target: str
    case: Case
    how: str


@dataclass(slots=True)
class Report:
    """What a run did."""

    executions: int = 0
    corpus: int = 0
    steps: int = 0
    finds: list[Find] = field(default_factory=list)


class Engine:
    """One target, its corpus and what is covered of the readers. Follows lines only where it is `led` by them."""

    def __init__(self, target: Target, seed: int, *, led: bool = True) -> None:
        self._target = target
        self._mutator = Mutator(seed)
        self._led = led
        self._steps: set[Step] = set()
        self._known: set[str] = set()
        self._corpus: list[Case] = []
        self.report = Report()

    def begin(self) -> None:
        """Take the seeds in."""
        for case in self._target.seeds():
            self._try(case, keep=True)

    def run(self, *, rounds: int | None = None, seconds: float | None = None) -> None:
        """Change cases and try them, so often or so long."""
        end = None if seconds is None else time.monotonic() + seconds
        done = 0
        while (rounds is None or done < rounds) and (end is None or time.monotonic() < end):
            done += 1
            near = self._mutator.random.random() < 0.5  # the newest lead on
            case = self._mutator.random.choice(self._corpus[-20:] if near else self._corpus)
            self._try(self._mutator.mutate(case, self._corpus))

    def _try(self, case: Case, *, keep: bool = False) -> None:
        """Read one case; keep it if it reaches something, note it if it breaks the invariant."""
        self.report.executions += 1
        before = len(self._steps)
        with followed(self._steps) if self._led else nullcontext():
            found = broken(self._target, case)
        if keep or len(self._steps) > before:
            self._corpus.append(case)
            found = found or measured(self._target, case)
        elif self.report.executions % _MEASURE_EVERY == 0:
            found = found or measured(self._target, case)
        if found is not None and found.kind not in self._known:
            self._known.add(found.kind)
            self.report.finds.append(Find(self._target.name, self._smaller(case, found.kind), found.how))
        self.report.corpus, self.report.steps = len(self._corpus), len(self._steps)

    def _smaller(self, case: Case, kind: str) -> Case:
        """The case without what it does not need to break the invariant in this way."""
        tries = 0
        changed = True
        while changed:
            changed = False
            for smaller in _parts_of(case):
                tries += 1
                if tries > _MOST_SMALLER:
                    return case
                found = judged(self._target, smaller)
                if found is not None and found.kind == kind:
                    case, changed = smaller, True
                    break
        return case


def judged(target: Target, case: Case) -> Break | None:
    """How a case breaks the invariant; None where it holds."""
    return broken(target, case) or measured(target, case)


def broken(target: Target, case: Case) -> Break | None:
    """How a case breaks the invariant, but for what it takes."""
    try:
        with crossed(target.also):
            read = target.read(case)
        target.check(case, read)
    except (Exception, Endless) as error:
        *_, last = traceback.extract_tb(error.__traceback__)
        place = f"{last.filename}:{last.lineno}"
        return Break(f"{type(error).__name__} at {place}", traceback.format_exc().rstrip())
    return None


def measured(target: Target, case: Case) -> Break | None:
    """What reading a case takes, where that is too much."""
    began = time.thread_time()
    _quietly(target, case)
    seconds = time.thread_time() - began
    if seconds > _SPARE_SECONDS + _SECONDS_A_BYTE * size(case):
        return Break("time", f"{target.name}: {seconds:.2f} s for {size(case)} bytes")
    tracemalloc.start()
    try:
        _quietly(target, case)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    if peak > target.spare + target.each * size(case):
        return Break("memory", f"{target.name}: {peak:,} bytes of memory for {size(case)}")
    return None


def _quietly(target: Target, case: Case) -> None:
    with suppress(Exception):  # told by `broken`
        target.read(case)


def _parts_of(case: Case) -> Iterable[Case]:
    for at in range(len(case)):
        yield case[:at] + case[at + 1 :]
    for at, part in enumerate(case):
        length = len(part) // 2
        while length:
            for start in range(0, len(part), length):
                yield (*case[:at], part[:start] + part[start + length :], *case[at + 1 :])
            length //= 2
