"""Parts of the process that trusted packages use, each cell's own while cells run: standard streams, pyplot's figures.

They are told apart by the thread. Between cells the process is as it was; while one runs, other threads see what they
always see.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from threading import get_ident
from typing import Any

from cellblock.hosting.forks import Lock, emptied
from cellblock.worker.import_hooks import forget_import, on_import
from cellblock.worker.show import figures
from cellblock.worker.show.mime import Bundle

_PYPLOT = "matplotlib.pyplot"


class Own:
    """One session's part: where it prints and shows, and which figures are open."""

    def __init__(self, *, write: Callable[[str, str], None], show: Callable[[Bundle], None]) -> None:
        self.write = write
        self.show = show
        self.figures: OrderedDict[int, Any] = OrderedDict()


_lock = Lock()
_running: dict[int, Own] = emptied({})
"""By thread, what cells use that are running."""
_changed: list[tuple[Any, str, Any, Any]] = []
"""All that was put into the process: where, under which name, what was there before, and what is there."""


def begin(own: Own) -> None:
    """A cell begins in this thread."""
    with _lock:
        _running[get_ident()] = own
        for name in ("stdout", "stderr"):
            if type(real := getattr(sys, name)) not in (_Stream, type(None)):
                _put(sys, name, _Stream(name, real))
        if len(_running) == 1:
            on_import(_PYPLOT, _divide)


def end() -> None:
    """It has ended. Figures that it left open are dropped."""
    with _lock:
        own = _running.pop(get_ident(), None)
        if own is not None:
            own.figures.clear()
        if not _running:
            forget_import(_PYPLOT)
            while _changed:
                holder, name, before, present = _changed.pop()
                if getattr(holder, name) is present:  # nobody has put something else there
                    setattr(holder, name, before)


def _put(holder: Any, name: str, value: object) -> None:
    _changed.append((holder, name, getattr(holder, name), value))
    setattr(holder, name, value)


class _Stream:
    """Standard output or error: what a thread that runs a cell writes is the cell's."""

    def __init__(self, name: str, real: Any) -> None:
        self._name = name
        self._real = real

    def write(self, text: str) -> int:
        own = _running.get(get_ident())
        if own is None:
            return int(self._real.write(text))
        own.write(self._name, str.__str__(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class _Figures:
    """pyplot's figures: those of the thread's cell, or the program's."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._held(), name)

    def _held(self) -> Any:
        own = _running.get(get_ident())
        return self._real if own is None else own.figures


def _delegated(name: str) -> Callable[..., Any]:
    return lambda self, *given: getattr(self._held(), name)(*given)


for _name in ("__contains__", "__delitem__", "__getitem__", "__iter__", "__len__", "__reversed__", "__setitem__"):
    setattr(_Figures, _name, _delegated(_name))


def _divide(pyplot: Any) -> None:
    """Have pyplot keep the figures of cells apart, draw them by Agg, and show them as outputs."""
    if not hasattr(pyplot, "show"):  # another thread is importing it
        return
    from matplotlib.backends import backend_agg

    with _lock:
        gcf = pyplot._pylab_helpers.Gcf
        _put(gcf, "figs", _Figures(gcf.figs))
        for holder, name, function in figures.shown_by(lambda bundle: _running[get_ident()].show(bundle), pyplot):
            _put(holder, name, _by_thread(function, getattr(holder, name)))
        _put(pyplot, "_get_backend_mod", _by_thread(lambda: backend_agg, pyplot._get_backend_mod))
        _put(pyplot, "switch_backend", _by_thread(lambda _: None, pyplot.switch_backend))


def _by_thread(ours: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    def called(*given: Any, **named: Any) -> Any:
        return (ours if get_ident() in _running else real)(*given, **named)

    for part in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(called, part, getattr(real, part))
    return called
