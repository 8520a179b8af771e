"""The exceptions that end a cell, which its code can neither catch nor outlive.

`Ending.raise_in` has one raised in the cell's thread. When it is made there it arms the thread: from then on every
Python function called in it raises it again, so that nothing of the cell's runs any more, whatever catches it: library
code, `__exit__` methods, callbacks, the event loop. Rewritten handlers and `finally` blocks of frames that are under
way pass it on. Code outside of the cell disarms the thread with `disarm`, first thing after the cell.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


class Stop(BaseException):
    """Ends a cell. `flag` holds something from when the cell is to end; it belongs to one world."""

    flag: list[object]
    reason: str

    def __init__(self, *_: object) -> None:
        super().__init__(self.reason)
        self.flag[:] = [True]
        sys.settrace(_raise_again(type(self)))


def _raise_again(kind: type[Stop]) -> Any:
    def trace(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and not _ours(frame):
            raise kind.__new__(kind)

    return trace


def _ours(frame: FrameType) -> bool:
    """Whether a frame is the runner's own: it has to be let go on."""
    return frame.f_globals.get("__name__", "").startswith("cellblock.executors") or frame.f_code is _INIT


_INIT = Stop.__init__.__code__
_raise_async = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_async.argtypes = (ctypes.c_ulong, ctypes.py_object)


def _nothing() -> None:
    return None


class Ending:
    """What a world's cells are ended with. `flag` is empty while they may go on."""

    def __init__(self) -> None:
        self.flag: list[object] = []
        self.thread = 0
        self._loops: list[AbstractEventLoop] = []
        self._kinds: dict[str, type[Stop]] = {}
        self.base: type[Stop] = type("Stop", (Stop,), {"flag": self.flag, "reason": ""})
        self.lock = threading.Lock()

    def kind(self, reason: str) -> type[Stop]:
        """The exception for a reason."""
        if reason not in self._kinds:
            self._kinds[reason] = type("Stop", (self.base,), {"reason": reason})
        return self._kinds[reason]

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
            self.thread = threading.get_ident()

    def raise_in(self, reason: str) -> bool:
        """Raise it in the thread of the cell, if one is running; as often as wanted."""
        with self.lock:
            if not self.thread:
                return False
            self.flag[:] = [True]
            _raise_async(self.thread, self.kind(reason))
            loops = list(self._loops)
        for loop in loops:
            with suppress(RuntimeError):  # closed meanwhile
                loop.call_soon_threadsafe(_nothing)
        return True

    def end(self) -> None:
        """The cell has ended: nothing is raised any more. What was raised and has not come yet is dropped."""
        with self.lock:
            thread, self.thread = self.thread, 0
            if thread:
                _raise_async(thread, ctypes.py_object())
            self.flag.clear()

    def escaping(self) -> type[BaseException]:
        """What handlers pass on in code that may be suspended: everything, where another thread ends it."""
        return BaseException if self.foreign() else self.base

    def foreign(self) -> bool:
        """Whether what may be suspended is being ended by a thread that is not running its cell, or by its end."""
        return bool(self.flag) or threading.get_ident() != self.thread

    def split(self, kind: object) -> object:
        """What an `except*` may name: not what would take the exceptions that end a cell."""
        kinds = kind if type(kind) is tuple else (kind,)
        if any(one in (BaseException, BaseExceptionGroup) for one in kinds if isinstance(one, type)):
            rest = tuple(one for one in kinds if one not in (BaseException, BaseExceptionGroup))
            return (*rest, Exception, KeyboardInterrupt, SystemExit, GeneratorExit)
        return kind
