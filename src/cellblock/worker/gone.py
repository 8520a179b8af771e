"""What a checkpoint could not bring along when it was woken, as rows of name, type, reason and remedy."""

from __future__ import annotations

import signal
import stat
import sys
from collections.abc import Mapping
from typing import Any

from cellblock.values.represent import type_name
from cellblock.worker.twin import Woken

_MAX_ROWS = 50

_THREAD = ("a thread does not live on in a copy of its process", "start it again")
_REASONS = {
    ("socket", "socket"): ("its connection cannot be in two processes, and was closed", "connect again"),
    ("subprocess", "Popen"): ("its process ended when the session was set back", "start it again"),
    ("threading", "Thread"): _THREAD,
    ("multiprocessing.process", "BaseProcess"): ("its process ended when the session was set back", "start it again"),
}


def losses(namespace: Mapping[str, object], woken: Woken) -> tuple[tuple[str, ...], ...]:
    """Names whose values are not what they were, then threads and descriptors that no such name holds."""
    rows = []
    kinds = {kind: text for (module, name), text in _REASONS.items() if (kind := _find(module, name)) is not None}
    for name, value in list(namespace.items()):
        for kind, (reason, remedy) in kinds.items():
            if isinstance(value, kind) and _was_alive(value, woken):
                rows.append((name, type_name(type(value)), reason, remedy))
    for one in woken.gone:
        if one.kind == stat.S_IFREG:
            rows.append((f"file {one.path}", "file", "it could not be opened again", "open it again"))
    if not any(row[2:] == _THREAD for row in rows):
        rows += [(f"thread {thread}", "Thread", *_THREAD) for thread in woken.threads]
    return tuple(rows[:_MAX_ROWS])


def _find(module: str, name: str) -> Any:
    """A type, where its module was imported: nothing can hold one otherwise."""
    return getattr(sys.modules.get(module), name, None)


def _was_alive(value: Any, woken: Woken) -> bool:
    if hasattr(value, "returncode"):
        if value.returncode is not None:
            return False
        value.returncode = -signal.SIGKILL  # it is no child of this process, which could not learn it
        return True
    if hasattr(value, "fileno"):
        return bool(value.fileno() >= 0)
    return not hasattr(value, "ident") or value.name in woken.threads
