"""The exceptions that end a cell, which its code can neither catch nor outlive.

`Ending.raise_in` has one raised in the cell's thread. When it is made there it has itself raised again, at the next
function that is called and the next step that can be interrupted, so that nothing of the cell's goes on, whatever
catches it: library code, `__exit__` methods, callbacks, the event loop. Rewritten handlers and `finally` blocks of
frames that are under way pass it on. Whoever takes it after the cell sets `over`, first of all.
"""

from __future__ import annotations

import _frozen_importlib
import ctypes
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import perf_counter
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from cellblock.text import Interruption

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


F = TypeVar("F", bound=Callable[..., Any])


class Stop(Interruption):
    """Ends a cell. It belongs to one world's `ending`."""

    ending: Ending
    reason: str

    def __init__(self, *_: object) -> None:
        super().__init__(self.reason)
        if not _MONITORING and not self.ending.over:
            sys.settrace(_tracing(type(self)))


_MONITORING = sys.version_info >= (3, 12)
_TOOL = 4
_NAME = "cellblock"


def _tracing(kind: type[Stop]) -> Any:
    """A trace function that has the exception raised at the next call.

    The interpreter takes a trace function away that raises. The exception itself puts it back: raised from outside of
    the code that runs, it is made where it is first caught.
    """
    ending = kind.ending

    def trace(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and not ending.over and frame.f_code is not _INIT and not ending.spares(frame):
            _raise_async(threading.get_ident(), kind)

    return trace


class _Monitor:
    """Raises at the next call, in the threads of cells that are being ended. Python 3.12 and later."""

    def __init__(self) -> None:
        self._kinds: dict[int, type[Stop]] = {}
        self._lock = threading.Lock()

    def arm(self, thread: int, kind: type[Stop]) -> None:
        with self._lock:
            monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
            if not self._kinds and monitoring.get_tool(_TOOL) is None:
                monitoring.use_tool_id(_TOOL, _NAME)
            if monitoring.get_tool(_TOOL) != _NAME:
                return  # somebody else's: what is raised again and again has to do
            self._kinds[thread] = kind
            events = monitoring.events
            for event in (events.PY_START, events.PY_RESUME, events.PY_THROW):
                monitoring.register_callback(_TOOL, event, self._call)
            monitoring.set_events(_TOOL, events.PY_START | events.PY_RESUME | events.PY_THROW)

    def disarm(self, thread: int) -> None:
        if thread not in self._kinds:
            return
        with self._lock:
            self._kinds.pop(thread, None)
            monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
            if not self._kinds and monitoring.get_tool(_TOOL) == _NAME:
                monitoring.set_events(_TOOL, 0)
                monitoring.free_tool_id(_TOOL)

    def _call(self, *_: object) -> None:
        kind = self._kinds.get(threading.get_ident())
        if kind is not None and not kind.ending.over and not kind.ending.spares(sys._getframe(1)):
            raise kind.__new__(kind)


def _of_collector(frame: FrameType | None) -> bool:
    """True if it is, or is called by, what the host has the garbage collector call in whatever thread it runs in.

    It is none of the cell's: raised there, the exception would break what the host counts, and be printed and lost.
    """
    callbacks = {
        getattr(callback, "__code__", getattr(type(callback).__call__, "__code__", _INIT)) for callback in gc.callbacks
    }
    while callbacks and frame is not None:
        if frame.f_code in callbacks:
            return True
        frame = frame.f_back
    return False


_IMPORTS = {_frozen_importlib._find_and_load.__code__}  # type: ignore[attr-defined]
"""Code that must not be left half done: what makes modules, and what makes a world's stand-ins of them."""


_EXCUSED = 0.3
"""Seconds at most by which a cell's limit is longer for what did not count to it."""


def whole(function: F) -> F:
    """A function that cells call, and that is not ended before it returns."""
    _IMPORTS.add(function.__code__)
    return function


_monitor = _Monitor()
_INIT = Stop.__init__.__code__
_raise_async = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_async.argtypes = (ctypes.c_ulong, ctypes.py_object)


def _nothing() -> None:
    return None


class Ending:
    """The signal that ends a world's cells. `flag` is empty while they may go on."""

    def __init__(self) -> None:
        self.flag: list[object] = []
        self.thread = 0
        self.cell = 0
        """Number of cells that have begun."""
        self.globals: dict[str, Any] | None = None
        """The globals of the frames of cells."""
        self._raised = False
        self._loops: list[AbstractEventLoop] = []
        self._kinds: dict[str, type[Stop]] = {}
        self.base: type[Stop] = type("Stop", (Stop,), {"ending": self, "reason": ""})
        self.caught: type[BaseException] | tuple[type[BaseException], ...] = self.base
        """Exceptions that rewritten handlers pass on."""
        self.excused = 0.0
        """Seconds of the cell in which source of the library was checked, once for the process: they do not count."""
        self._until = 0.0
        self.over = True
        """Set, first of all, by who takes the exception after the cell: it is not raised again."""
        self.lock = threading.Lock()

    def kind(self, reason: str) -> type[Stop]:
        """The exception for a reason."""
        if reason not in self._kinds:
            self._kinds[reason] = type("Stop", (self.base,), {"reason": reason})
        return self._kinds[reason]

    def spares(self, frame: FrameType | None) -> bool:
        """True if a frame is none of the cell's to end: the collector's, or in the import of a library.

        A library that is half imported is broken for the whole program.
        """
        return _of_collector(frame) or self._imports(frame)

    @property
    def importing(self) -> bool:
        """True if the cell waits for the import of a library, which is not ended."""
        return bool(self.thread) and self._imports(sys._current_frames().get(self.thread))

    def _imports(self, frame: FrameType | None) -> bool:
        while frame is not None and frame.f_globals is not self.globals:
            if frame.f_code in _IMPORTS:
                return True
            frame = frame.f_back
        return False

    @contextmanager
    def waking(self, loop: AbstractEventLoop) -> Iterator[None]:
        """While an event loop runs: it is woken when the cell is to end, as it may be waiting."""
        self._loops.append(loop)
        try:
            yield
        finally:
            self._loops.remove(loop)

    def begin(self) -> None:
        """A cell begins in this thread."""
        with self.lock:
            self.flag.clear()
            self.over = False
            self.excused = self._until = 0.0
            self.cell += 1
            self.thread = threading.get_ident()

    def raise_in(self, reason: str, cell: int | None = None) -> bool:
        """Raise it in the thread of the cell, if one is running, the one of this number; as often as wanted."""
        with self.lock:
            if not self.thread or cell not in (None, self.cell):
                return False
            if reason == "timeout" and self._waits():
                return True
            self.flag[:] = [True]
            self._raised = True
            if _MONITORING:
                _monitor.arm(self.thread, self.kind(reason))
            if not self.spares(sys._current_frames().get(self.thread)):  # else it is for the next time
                _raise_async(self.thread, self.kind(reason))
            loops = list(self._loops)
        for loop in loops:
            with suppress(RuntimeError):  # closed meanwhile
                loop.call_soon_threadsafe(_nothing)
        return True

    def _waits(self) -> bool:
        """True if the cell has time left beyond its limit, for what did not count to it."""
        now = perf_counter()
        self._until = self._until or now + min(self.excused, _EXCUSED)
        return now < self._until

    def end(self) -> None:
        """The cell has ended: nothing is raised any more. What was raised and has not come yet comes here.

        It is not taken back: CPython 3.11 would then look for it at every step, and under a trace function for ever.
        """
        self.over = True
        sys.settrace(None)
        with self.lock:
            raised, self._raised = self._raised, False
            if raised:
                _monitor.disarm(self.thread)
            self.thread = 0
        if raised:
            try:
                _raise_async(threading.get_ident(), self.base)
                for _ in range(1000):
                    pass
            except Stop:
                pass
        self.flag.clear()

    def escaping(self) -> type[BaseException] | tuple[type[BaseException], ...]:
        """Exceptions that handlers pass on in code that may be suspended: everything, where another thread ends it."""
        return BaseException if self.foreign() else self.caught

    def foreign(self) -> bool:
        """True if what may be suspended is being ended by a thread that is not running its cell, or by its end."""
        return bool(self.flag) or threading.get_ident() != self.thread

    def split(self, kind: object) -> object:
        """The classes that an `except*` may name: none that would take the exceptions that end a cell."""
        kinds = kind if type(kind) is tuple else (kind,)
        if any(one in (BaseException, BaseExceptionGroup) for one in kinds if isinstance(one, type)):
            rest = tuple(one for one in kinds if one not in (BaseException, BaseExceptionGroup))
            return (*rest, Exception, KeyboardInterrupt, SystemExit, GeneratorExit)
        return kind
