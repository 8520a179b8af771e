"""What cells cost and may use: time, memory, and the moment in which an interrupt may land."""

from __future__ import annotations

import contextlib
import resource
import sys
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TypedDict, TypeVar

from cellblock.worker.peak import Peak

T = TypeVar("T")


class Cost(TypedDict):
    """Wall and CPU time in milliseconds, peak memory above the baseline in bytes."""

    duration_ms: float
    cpu_ms: float
    memory_peak: int


class Meter:
    """Measures requests and holds their memory limit.

    The limit is the soft one, and in force only while the cell's own code runs: what reports that it was met
    has the room up to the hard one.
    """

    def __init__(self) -> None:
        self._peak = Peak()
        self._baseline = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self._began = self._cpu = 0.0
        self._limits = self._room = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)

    def adopt_limits(self) -> None:
        """Take the memory limits that are in force as the cells' own, and step out of them."""
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        self._limits, self._room = (soft, hard), (hard, hard)
        resource.setrlimit(resource.RLIMIT_DATA, self._room)

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What it holds open."""
        return self._peak.descriptors

    def move(self) -> None:
        """This process is a copy of the one that was measured: its peak is init's to reset."""
        self._peak.close()

    def reset_peak(self) -> None:
        """Have the peak of memory start again from here."""
        self._peak.reset()

    def interrupted(self) -> float | None:
        """When the last request began, on CLOCK_BOOTTIME, if it was interrupted; told once."""
        global _interrupted
        if not _interrupted:
            return None
        _interrupted = False
        return time.clock_gettime(time.CLOCK_BOOTTIME) - (time.monotonic() - self._began)

    def start(self) -> None:
        """Begin to measure a request's time."""
        self._cpu = time.process_time()
        self._began = time.monotonic()

    def stop(self) -> Cost:
        """What the request cost."""
        duration = time.monotonic() - self._began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return {
            "duration_ms": duration * 1e3,
            "cpu_ms": (time.process_time() - self._cpu) * 1e3,
            "memory_peak": max(0, peak - self._baseline) * 1024,
        }

    def within_limits(self, function: Callable[..., T], *args: object) -> T:
        """Call what runs the cell's code: under the memory limit, and open to interrupts."""
        global _postponed
        _postponed = False
        if _due:
            _forget_due()
        set_limit, data, room = resource.setrlimit, resource.RLIMIT_DATA, self._room
        with contextlib.suppress(ValueError, OSError):  # the cell has lowered the hard limit: its own holds
            set_limit(data, self._limits)
        try:
            return _interruptible(function, *args)
        finally:
            # Spelled out: with memory at its limit there may be none left for the frame of a helper.
            try:  # noqa: SIM105
                set_limit(data, room)
            except (ValueError, OSError):
                pass


def _interruptible(function: Callable[..., T], *args: object) -> T:
    return function(*args)


def whole(function: Callable[..., None], *args: object) -> None:
    """Call what must not be left half done: an interrupt that comes meanwhile is raised after it."""
    global _postponed
    _unbroken(function, *args)
    if _postponed:
        _postponed = False
        raise KeyboardInterrupt


def _unbroken(function: Callable[..., None], *args: object) -> None:
    function(*args)


_INTERRUPTIBLE: CodeType = _interruptible.__code__
_UNBROKEN: CodeType = _unbroken.__code__
_interrupted = _postponed = False
_due: list[FrameType] = []
"""Frames at whose next line an interrupt is due."""


def keep_interrupts() -> None:
    """Have an interrupt that the interpreter drops, as one in a finalizer or in a fork's hook, be raised after it."""
    tell = sys.unraisablehook

    def keep(unraisable: Any) -> None:
        if unraisable.exc_type is KeyboardInterrupt:
            interrupt_after(sys._getframe(1))
        else:
            tell(unraisable)

    sys.unraisablehook = keep


def interrupt_after(frame: FrameType | None) -> None:
    """Raise an interrupt at the next line of this frame, or of one that called it. Takes the place of a debugger's."""
    while frame is not None and frame.f_code is not _INTERRUPTIBLE:
        frame.f_trace = _raise
        _due.append(frame)
        frame = frame.f_back
    sys.settrace(lambda *_: None)  # has the lines of these frames looked at, and of no others


def _raise(*_: object) -> None:
    _forget_due()
    raise KeyboardInterrupt


def _forget_due() -> None:
    sys.settrace(None)
    while _due:
        _due.pop().f_trace = None


def interrupt(_number: int, frame: FrameType | None) -> None:
    """The handler of SIGINT: raises in the cell's code and in nothing around it."""
    global _interrupted, _postponed
    unbroken = False
    while frame is not None:
        unbroken = unbroken or frame.f_code is _UNBROKEN
        if frame.f_code is _INTERRUPTIBLE:
            _interrupted = True
            if not unbroken:
                raise KeyboardInterrupt
            _postponed = True
            return
        frame = frame.f_back
