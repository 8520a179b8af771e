"""Signals, which may break into the cell's code and nowhere else.

A signal comes at any moment, in the middle of a message to the host too. What its handler raises is the cell's own
while the cell's code runs; while a message is sent it waits for the message's end; between cells it is dropped. What
a cell's own handler raises waits for the end of whatever the runner does for the cell. The host's interrupt is also
raised after what drops exceptions, a finalizer or a hook of a fork, and after the import of a library: half of one
would stay in `sys.modules`, and a library in C is loaded once. A second interrupt does not wait for that.
"""

from __future__ import annotations

import _frozen_importlib
import _signal  # type: ignore[import-not-found]  # its Python module makes enum members, at many times the cost
import sys
from _signal import SIG_UNBLOCK, SIGINT, getsignal, pthread_sigmask
from _signal import signal as set_handler
from collections.abc import Callable
from sys import _getframe, settrace
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeVar

from cellblock.text import Interruption
from cellblock.worker.confine import layout

T = TypeVar("T")
_Handle = Callable[[int, FrameType | None], object]


class Interrupted(Interruption, KeyboardInterrupt):
    """The host's interrupt, told from a KeyboardInterrupt that code of the cell's raises by itself."""


Interrupted.__name__ = Interrupted.__qualname__ = "KeyboardInterrupt"
Interrupted.__module__ = "builtins"


def interruptible(function: Callable[..., T], *args: object) -> T:
    """Call what runs the cell's code."""
    return function(*args)


def whole(function: Callable[..., None], *args: object) -> None:
    """Call what must not be left half done: what a handler raises meanwhile is raised after it."""
    _unbroken(function, *args)
    raise_postponed()


def sheltered(function: Callable[..., T], *args: object) -> T:
    """Call what the runner does for a cell. `raise_postponed` follows: its code may pass over what handlers raise."""
    return function(*args)


def raise_postponed() -> None:
    """Raise what was put off."""
    if _state.postponed is not None:
        error, _state.postponed = _state.postponed, None
        _state.raised = error
        raise error


def was_postponed(error: BaseException) -> bool:
    """True if an error is what was put off and raised last: a handler's, and no fault of what it is raised in."""
    return _state.raised is error


def forget() -> None:
    """After the cell's code: what was put off is not the next one's."""
    _state.postponed = _state.raised = None
    if _state.due:
        _forget_due()


def was_interrupted() -> bool:
    """True if the host has interrupted the last cell; told once."""
    told, _state.interrupted = _state.interrupted, False
    return told


def _unbroken(function: Callable[..., None], *args: object) -> None:
    function(*args)


_INTERRUPTIBLE: CodeType = interruptible.__code__
_UNBROKEN: CodeType = _unbroken.__code__
_SHELTERED: CodeType = sheltered.__code__
_IMPORT: CodeType = _frozen_importlib._find_and_load.__code__  # type: ignore[attr-defined]
_LIBRARIES = (sys.prefix, sys.base_prefix)
_CELL = "<cell"
"""Prefix of the file names of cells."""


class _State:
    """Work that signals have left to be done."""

    __slots__ = ("due", "interrupted", "postponed", "raised")

    def __init__(self) -> None:
        self.postponed: BaseException | None = None
        self.raised: BaseException | None = None
        self.interrupted = False
        self.due: list[FrameType] = []
        """Frames at whose next line an interrupt is due."""


_state = _State()


def interrupt(_number: int, frame: FrameType | None) -> None:
    """The handler of SIGINT."""
    if _in_cell(frame):
        _state.interrupted = True
        importing = None if _state.due else _waiting_for_library(frame)
        if importing is None:
            raise Interrupted
        _interrupt_after(importing)
        importing.f_trace_opcodes = True  # its next step, as there may be no other line
        return
    _state.interrupted = _put_off(Interrupted(), frame) or _state.interrupted


def keep_interrupts() -> None:
    """Have an interrupt that the interpreter drops, as one in a finalizer or in a fork's hook, be raised after it."""
    tell = sys.unraisablehook

    def keep(unraisable: Any) -> None:
        if unraisable.exc_type is Interrupted:
            _interrupt_after(_getframe(1))
        else:
            tell(unraisable)

    sys.unraisablehook = keep


def _interrupt_after(frame: FrameType | None) -> None:
    """Raise an interrupt at the next line of this frame, or of one that called it. Takes the place of a debugger's."""
    while frame is not None and frame.f_code is not _INTERRUPTIBLE:
        frame.f_trace = _raise
        _state.due.append(frame)
        frame = frame.f_back
    settrace(lambda *_: None)  # has the lines of these frames looked at, and of no others


def _raise(*_: object) -> None:
    _forget_due()
    raise Interrupted


def _forget_due() -> None:
    settrace(None)
    while _state.due:
        frame = _state.due.pop()
        frame.f_trace, frame.f_trace_opcodes = None, False


def _in_cell(frame: FrameType | None) -> bool:
    """True if a frame is of the cell's code, and in no message."""
    while frame is not None and frame.f_code is not _UNBROKEN:
        if frame.f_code is _INTERRUPTIBLE:
            return True
        frame = frame.f_back
    return False


def _waiting_for_library(frame: FrameType | None) -> FrameType | None:
    """The frame for which a library is being imported; None where none is, and in a module of the session's own."""
    waiting: FrameType | None = None
    while frame is not None and frame.f_code is not _INTERRUPTIBLE:
        if frame.f_code is _IMPORT:
            waiting = frame.f_back
        elif _is_own(frame.f_code.co_filename):
            return waiting and frame
        frame = frame.f_back
    return waiting


def _is_own(file: str) -> bool:
    """True if code is the session's: of a cell, or of a module that is in no installation."""
    if file.startswith("/"):
        return not file.startswith(_LIBRARIES) and layout.PACKAGES not in file
    return file.startswith(_CELL)


def _put_off(error: BaseException, frame: FrameType | None) -> bool:
    """Until the end of the message that a cell is sending; False, and nobody is told, where it sends none."""
    while frame is not None:
        if frame.f_code is _INTERRUPTIBLE:
            _state.postponed = error
            return True
        frame = frame.f_back
    return False


class _Guarded:
    """A handler that a cell set."""

    __slots__ = ("handle",)

    def __init__(self, handle: _Handle) -> None:
        self.handle = handle

    def __call__(self, number: int, frame: FrameType | None) -> None:
        try:
            self.handle(number, frame)
        except BaseException as error:
            at = _place(frame)
            if at.is_within and at.is_sheltered:
                _state.postponed = error
            if at.is_within and at.is_own:  # a value's repr that does not end is ended too
                raise


class _Place(NamedTuple):
    """Position of a frame: if it is within a cell, within what the runner does for it, and of the cell's own code
    there."""

    is_within: bool
    is_sheltered: bool
    is_own: bool


def _place(frame: FrameType | None) -> _Place:
    own: bool | None = None
    shelter = False
    while frame is not None:
        code = frame.f_code
        if code is _INTERRUPTIBLE:
            return _Place(True, shelter, own is not False)
        if code is _UNBROKEN or code is _SHELTERED:
            shelter = True
            own = own or False
        elif own is None and code.co_filename.startswith(_CELL):
            own = True
        frame = frame.f_back
    return _Place(False, False, False)


def _set(number: int, handler: object, /) -> object:
    """Set what a signal does; for a function, within the bounds of this module."""
    guarded = _Guarded(handler) if callable(handler) and handler is not interrupt else handler
    return _unguarded(set_handler(number, guarded))


def _get(number: int, /) -> object:
    """Handler of a signal, as it was set."""
    return _unguarded(getsignal(number))


def _unguarded(handler: object) -> object:
    return handler.handle if type(handler) is _Guarded else handler


def guard_handlers() -> None:
    """From here on, what sets and gets handlers by way of Python's `signal` is ours."""
    _signal.signal, _signal.getsignal = _set, _get


def repair() -> None:
    """Between requests: the host can interrupt again, whatever the last cell did about it."""
    forget()
    if getsignal(SIGINT) is not interrupt:
        set_handler(SIGINT, interrupt)
    pthread_sigmask(SIG_UNBLOCK, (SIGINT,))
