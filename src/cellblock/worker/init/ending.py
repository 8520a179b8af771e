"""Ends processes of a session, as its init can: all of them, or those that a cell has started.

A signal to all reaches the session and nobody else: the caller is first in its pid namespace, or walled in with it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from collections.abc import Callable, Collection, Iterable

from cellblock.hosting.waiting import ready
from cellblock.worker import holdings

Processes = Callable[[], Iterable[int]]
"""Lists those of the session: by default all of this pid namespace but its first."""

_AFTER_THE_WORKER = 10
_GONE_SECONDS = 10.0
"""Seconds to wait for the end of killed processes: it counts as a process until then. On a machine that is busy the
kernel takes seconds to end some dozens."""
_SOON_SECONDS = 0.001
_SETTLING_SECONDS = 1.0
"""Most seconds for which those that are left may not be seen to stand still, as one that waits for a child of vfork."""
_AT_REST = (holdings.Stand.STILL, holdings.Stand.ENDING)


def end_all(frozen: frozenset[int] = frozenset(), spared: frozenset[int] = frozenset()) -> None:
    """Kill every other process of the namespace but those that are spared, and frozen copies, which are left stopped;
    and wait until they are gone.

    One call kills all: a fork under way fails on that signal. Where some are left, see `_end_each`.
    """
    left = frozen | spared
    if not left and not holdings.may_be_branched():
        _signal_all(signal.SIGKILL)
        _await(_ends(holdings.processes()), time.monotonic() + _GONE_SECONDS)
        return

    def doomed() -> list[int]:
        others = (process for process in holdings.processes() if process not in left)
        return [process for process in others if (life := holdings.life(process)) is not None and not life.ended]

    _end_each(doomed, left, frozen)


def hold_back(
    began: float, worker: int, spared: frozenset[int] = frozenset(), processes: Processes = holdings.processes
) -> None:
    """Let the worker have the processor before what it has started since `began`, so that it can be interrupted."""
    for process in _started_since(int(began * holdings.TICKS), worker, spared, processes):
        holdings.make_nicer(process, _AFTER_THE_WORKER)


def end_since(
    began: float, worker: int, spared: frozenset[int] = frozenset(), processes: Processes = holdings.processes
) -> int:
    """Kill what the worker has started since `began`, and all that came of it; how many processes that were.

    `began` is of the clock that goes on while the machine sleeps, in seconds; the kernel tells the age of a process in
    hundredths of a second, and one of the same hundredth counts as begun since. Processes from before live on, and so
    do their children.
    """
    if set(processes()) <= {worker, *spared}:
        return 0
    tick = int(began * holdings.TICKS)
    return _end_each(lambda: _started_since(tick, worker, spared, processes), [worker])


def end_beside(copy: int, began: float, spared: frozenset[int]) -> bool:
    """Kill what a frozen copy has made but a branch: the processes whose line leads to it, and orphans that have begun
    since then. True once none is left.
    """
    tick, deadline = int(began * holdings.TICKS), time.monotonic() + _SETTLING_SECONDS
    while time.monotonic() < deadline:
        lives = {one: life for one in holdings.processes() if (life := holdings.life(one)) is not None}

        def is_of_the_copy(process: int, lives: dict[int, holdings.Life] = lives) -> bool:
            while (parent := lives[process].parent) in lives and parent != copy:
                process = parent
            return parent == copy or lives[process].started >= tick

        living = (one for one, life in lives.items() if not life.ended and one not in spared and one != copy)
        if not (found := [one for one in living if is_of_the_copy(one)]):
            return True
        ends = _ends(found)
        send(found, signal.SIGKILL)
        _await(ends, deadline)
    return False


def _end_each(doomed: Callable[[], list[int]], left: Collection[int], frozen: frozenset[int] = frozenset()) -> int:
    """Kill those that are listed until none is; how many they were.

    All stand still meanwhile, and the frozen stay so, as do those of branches that stood still before. A fork that is
    under way as they are stopped succeeds all the same, and its child is seen after they were listed. And the kernel
    has a group of processes go on that is stopped and whose parents end. So all are stopped and listed again, until
    none is listed after all those that are left were seen to stand still.
    """
    frozen |= {process for process in _of_branches() if holdings.stand(process) is holdings.Stand.STILL}
    now, count = time.monotonic(), 0
    deadline, patience = now + _GONE_SECONDS, now + _SETTLING_SECONDS
    try:
        while now < deadline:
            _signal_all(signal.SIGSTOP)
            settled = all(holdings.stand(process) in _AT_REST for process in (*left, *_of_branches()))
            if found := doomed():
                count += len(found)
                ends = _ends(found)
                send(found, signal.SIGKILL)
                _await(ends, deadline)
            elif settled or now > patience:
                break
            else:
                time.sleep(_SOON_SECONDS)
            now = time.monotonic()
    finally:
        if frozen:
            send(holdings.everyone() - frozen, signal.SIGCONT)
        else:
            _signal_all(signal.SIGCONT)
    return count


def _of_branches() -> list[int]:
    if not holdings.may_be_branched():
        return []
    return [process for process in holdings.everyone() if holdings.nested(process)]


def _started_since(tick: int, worker: int, spared: frozenset[int], processes: Processes) -> list[int]:
    lives = {process: life for process in processes() if (life := holdings.life(process)) is not None}

    def is_of_the_cell(process: int) -> bool:
        while process != worker and process in lives:
            if lives[process].started < tick:
                return False
            process = lives[process].parent
        return True  # its line leads to the worker, or to init, which is given those whose parents have ended

    return [
        process
        for process, life in lives.items()
        if process != worker and process not in spared and not life.ended and is_of_the_cell(process)
    ]


def _ends(processes: Iterable[int]) -> list[int]:
    """Descriptors that tell of their ends; none where a kernel of another make has no such descriptors."""
    ends = []
    for process in processes:
        try:
            ends.append(os.pidfd_open(process))
        except ProcessLookupError:
            continue
        except OSError as error:
            if error.errno != errno.ENOSYS:
                raise
    return ends


def _await(ends: list[int], deadline: float) -> None:
    for end in ends:
        ready(end, seconds=deadline - time.monotonic())
        os.close(end)


def send(processes: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each process that is still there."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def _signal_all(number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, number)
