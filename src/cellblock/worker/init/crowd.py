"""Bound on the processes of a session that run at once, so that others are answered beside it.

The kernel shares processors among processes, or among process sessions (autogroup): a crowd of either takes nearly all,
and whoever wakes up beside it waits for dozens of milliseconds; with a control group around it, for some. So beside the
worker two processes for each processor run as they like. More are made nice. From four on they take turns: as many as
may run as they like do, and the others are stopped until the next look. Niceness alone does not help against a crowd,
and counts for nothing among process sessions. Threads cannot be stopped one by one: those of a process that has too
many run when nothing else wants to.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from cellblock.worker import holdings
from cellblock.worker.init.ending import send
from cellblock.worker.init.pace import Pace

_FEW, _MANY = 2, 4
"""For each processor, and as if there were two at least: the parts of a pipeline wait for each other."""
_NICE = 5  # a third of the weight
_SLACK_NS = 200_000
"""Most nanoseconds that a process which stands still may be counted to have run."""
_PATIENCE = 3
"""Looks that find too many running out of turn."""
_FORGIVEN = 20
"""Looks in a row that find none of it: whoever has others continue may wait for a processor itself."""


class Crowd:
    """Who of a session's processes runs. The worker always does."""

    def __init__(self, processes: Callable[[], Iterable[int]], processors: int | None = None) -> None:
        self._processes = processes
        processors = max(2, processors or len(os.sched_getaffinity(0)))
        self._few, self._many = _FEW * processors, _MANY * processors
        self._pace = Pace(30)
        self._queue: list[int] = []
        self._stopped: set[int] = set()
        self._still: dict[int, int] = {}
        """Nanoseconds that those which were seen to obey had run by then."""
        self._known: set[int] = set()
        """Those that were seen at the last look since all were stopped: empty where no crowd is."""
        self._defied = self._obeyed = 0
        self.grows = False
        """True if a crowd that was new has just been stopped: there may be more of it by now."""

    @property
    def waiting(self) -> bool:
        """True if a process waits for its turn."""
        return bool(self._stopped)

    def thin(self, used: Mapping[int, int], worker: int, frozen: frozenset[int]) -> int:
        """Let the next ones run and stop the rest, given the nanoseconds that each process ran since the last look.

        Frozen copies of the worker are none of them. How many processes run out of turn, if that goes on: somebody has
        them continue. Else 0.
        """
        self._idle_threads(used, worker)
        self._continue_late(used)
        busy = {process for process, ran in used.items() if ran and process != worker}
        self.grows = False
        if not self._stopped and len(busy) <= self._few:
            self._known.clear()
            return 0
        defiant = self._defiant(used)
        new = set(islice(filter(_is_ready, busy.difference(self._queue)), self._many + 1))
        self.grows = len(new) > self._many or (self._defied > 0 and not self._obeyed)
        if self.grows:
            self._stop_all(used, worker, frozen)
            return defiant
        waited = [p for p in self._queue if p in used and (p in self._stopped or _is_ready(p))]
        if self._stopped or len(waited) + len(new) > self._many:
            self._take_turns([*waited, *new])
            return 0
        self._queue = [*waited, *new]
        if len(waited) > self._few:  # not by what lives for a moment, as a copy that is about to freeze
            for process in waited:
                holdings.make_nicer(process, _NICE)
        return 0

    def continued(self) -> None:
        """All processes were continued, by us: nobody waits any more."""
        self._stopped.clear()
        self._still.clear()
        self._known.clear()

    def _take_turns(self, queue: list[int]) -> None:
        turn, rest = queue[: self._few], queue[self._few :]
        self._queue = rest + turn
        for process in turn:
            holdings.make_nicer(process, _NICE)
        send(rest, signal.SIGSTOP)
        send(self._stopped.difference(rest), signal.SIGCONT)
        self._stopped = set(rest)
        self._still = {process: ran for process, ran in self._still.items() if process in self._stopped}

    def _stop_all(self, used: Mapping[int, int], worker: int, frozen: frozenset[int]) -> None:
        """As `_take_turns`, of a crowd that is new: all stand still at once, while it is listed. The frozen stay so."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGSTOP)
        alive = set(self._processes()) - frozen
        asleep = {process for process in alive if not used.get(process, 1) and process not in self._stopped}
        self._known |= alive
        self._stopped = alive
        self._take_turns([*(alive - asleep - {worker})])

    def _continue_late(self, used: Mapping[int, int]) -> None:
        """Let those go on that came to be after all were listed, and stopped: a fork that was under way succeeds, and
        the stop reaches its child."""
        if self._known:
            late, self._known = used.keys() - self._known, set(used)
            send([p for p in late if holdings.stand(p) is not holdings.Stand.RUNNING], signal.SIGCONT)

    def _defiant(self, used: Mapping[int, int]) -> int:
        running = sum(used.get(process, 0) > _SLACK_NS and self._runs_on(process) for process in self._stopped)
        if running > self._few:
            self._defied, self._obeyed = self._defied + 1, 0
            return running if self._defied >= _PATIENCE else 0
        self._obeyed += 1
        if self._obeyed >= _FORGIVEN:
            self._defied = 0
        return 0

    def _runs_on(self, process: int) -> bool:
        """True if a process that was stopped and has run since was continued.

        What it ran may be from before the stop reached it: for one that waits for a processor, or is in the middle of a
        fork, that takes as long as the machine is busy.
        """
        stand = holdings.stand(process)
        ran = holdings.processor_time(process)
        before = self._still.get(process, ran)
        if stand is holdings.Stand.STILL:
            self._still[process] = ran
        else:  # what it runs until it obeys again is counted now, if at all
            self._still.pop(process, None)
        if stand is holdings.Stand.ENDING:
            return False
        return stand is holdings.Stand.RUNNING or ran - before > _SLACK_NS

    def _idle_threads(self, used: Mapping[int, int], worker: int) -> None:
        crowded = [process for process, ran in used.items() if ran and holdings.threads(process) > self._few]
        if not crowded or not self._pace.due():
            return
        with self._pace.timed():
            for process in crowded:
                ready = [thread for thread in holdings.ready(process) if thread != worker]
                if len(ready) > self._few:
                    _idle(ready)


def _is_ready(process: int) -> bool:
    return any(holdings.ready(process))


def _idle(threads: Iterable[int]) -> None:
    """Have them run when nothing else wants to. Nobody without privileges can take that back."""
    for thread in threads:
        with contextlib.suppress(ProcessLookupError):
            if os.sched_getscheduler(thread) != os.SCHED_IDLE:
                os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))
