"""Costs and limits of cells: time, memory, and the interpreter's own settings."""

from __future__ import annotations

from collections.abc import Callable
from resource import RLIM_INFINITY, RLIMIT_DATA, RUSAGE_SELF, getrlimit, getrusage, setrlimit
from sys import (
    getprofile,
    getrecursionlimit,
    getswitchinterval,
    gettrace,
    setprofile,
    setrecursionlimit,
    setswitchinterval,
    settrace,
)
from time import CLOCK_BOOTTIME, clock_gettime, monotonic, process_time
from typing import Any, TypedDict, TypeVar

from cellblock.worker.confine.rlimits import DATA_HEADROOM_BYTES, vm_data
from cellblock.worker.interrupts import forget, interruptible
from cellblock.worker.peak import Peak

T = TypeVar("T")

_RECURSION = 1000
_LEAST_RECURSION = 100
"""Less than this does not outlive the cell: nothing could be compiled."""
_MAX_SWITCH_SECONDS = 0.05


class Cost(TypedDict):
    """Wall and CPU time in milliseconds, peak memory above the baseline in bytes."""

    duration_ms: float
    cpu_ms: float
    memory_peak: int


class Meter:
    """Measures requests and holds their memory limit.

    The limit is the soft one, and in force only while the cell's own code runs: what reports that it was met
    has the room up to the hard one. Before the first cell, while a state is loaded, a higher hard one holds alone.
    """

    __slots__ = ("_aside", "_baseline", "_began", "_cpu", "_limit", "_limits", "_of_cells", "_peak", "_room")

    def __init__(self, limit: int = RLIMIT_DATA) -> None:
        """`limit` is the one of memory that this kernel holds."""
        self._limit = limit
        self._peak = Peak()
        self._baseline = getrusage(RUSAGE_SELF).ru_maxrss
        self._began = self._cpu = 0.0
        self._limits = self._room = self._of_cells = (RLIM_INFINITY, RLIM_INFINITY)
        self._aside: tuple[Any, Any, int] | None = None

    def adopt_limits(self) -> None:
        """Take the memory limits that are in force as the cells' own, and step out of them."""
        soft, hard = getrlimit(self._limit)
        self._of_cells = soft, (hard if hard == RLIM_INFINITY else min(hard, soft + DATA_HEADROOM_BYTES))
        self._limits = self._room = (hard, hard)
        setrlimit(self._limit, (self._of_cells[1], hard))

    def hold(self) -> None:
        """Have the limits of cells hold from the next request on, for good."""
        self._limits, self._room = self._of_cells, (self._of_cells[1],) * 2

    def require_room(self) -> None:
        """MemoryError where this process holds more than cells may. For after a state was loaded."""
        if self._limit == RLIMIT_DATA and RLIM_INFINITY != self._of_cells[1] < vm_data():
            raise MemoryError

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Descriptors that it holds open."""
        return self._peak.descriptors

    def move(self) -> None:
        """This process is a copy of the one that was measured: its peak is init's to reset."""
        self._peak.close()

    def reset_peak(self) -> None:
        """Have the peak of memory start again from here."""
        self._peak.reset()

    def began(self) -> float:
        """When the last request began, on CLOCK_BOOTTIME."""
        return clock_gettime(CLOCK_BOOTTIME) - (monotonic() - self._began)

    def start(self) -> None:
        """Begin to measure a request's time."""
        self._cpu = process_time()
        self._began = monotonic()

    def stop(self) -> Cost:
        """Cost of the request."""
        duration = monotonic() - self._began
        peak = getrusage(RUSAGE_SELF).ru_maxrss
        return {
            "duration_ms": duration * 1e3,
            "cpu_ms": (process_time() - self._cpu) * 1e3,
            "memory_peak": max(0, peak - self._baseline) * 1024,
        }

    def within_limits(self, function: Callable[..., T], *args: object) -> T:
        """Call what runs the cell's code: under the memory limit, open to interrupts, and with its own settings."""
        limit, room = self._limit, self._room
        try:
            setrlimit(limit, self._limits)
        except (ValueError, OSError):  # the cell has lowered the hard limit: its own holds
            pass
        if self._aside is not None:
            self._take_up()
        try:
            return interruptible(function, *args)
        finally:
            # Spelled out: with memory at its limit there may be none left for the frame of a helper.
            try:
                setrlimit(limit, room)
            except (ValueError, OSError):
                pass
            if (
                gettrace() is not None
                or getprofile() is not None
                or getrecursionlimit() < _RECURSION
                or getswitchinterval() > _MAX_SWITCH_SECONDS
            ):
                self._lay_aside()

    def _lay_aside(self) -> None:
        """The runner goes on without what cells do to the interpreter: tracers, little depth, a greedy thread."""
        forget()
        self._aside = gettrace(), getprofile(), getrecursionlimit()
        settrace(None)
        setprofile(None)
        setrecursionlimit(max(getrecursionlimit(), _RECURSION))
        setswitchinterval(min(getswitchinterval(), _MAX_SWITCH_SECONDS))

    def _take_up(self) -> None:
        """Give the cell back what was laid aside."""
        if self._aside is not None:
            trace, profile, depth = self._aside
            self._aside = None
            setrecursionlimit(depth if depth >= _LEAST_RECURSION else _RECURSION)
            setprofile(profile)
            settrace(trace)
