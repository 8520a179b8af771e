"""Warnings about the source of cells are for their author: while a local session is open the host hears none.

One filter, for files named as cells are, stands among the host's while there are such sessions.
"""

from __future__ import annotations

import warnings

from cellblock.hosting.forks import Lock

_MODULE = r"<cell"
_lock = Lock()
_open = 0


def begin() -> None:
    """A session opens."""
    global _open
    with _lock:
        _open += 1
        if _open == 1:
            for kind in (SyntaxWarning, DeprecationWarning):
                warnings.filterwarnings("ignore", category=kind, module=_MODULE)


def end() -> None:
    """A session has closed."""
    global _open
    with _lock:
        _open -= 1
        if not _open:
            ours = [one for one in warnings.filters if getattr(one[3], "pattern", None) == _MODULE]
            for one in ours:
                warnings.filters.remove(one)  # type: ignore[attr-defined]
            getattr(warnings, "_filters_mutated", _nothing)()  # what remembers the filters looks at them again


def _nothing() -> None:
    return None
