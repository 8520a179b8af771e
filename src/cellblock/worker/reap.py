"""Lets go of the children of an interrupted cell that have ended: until then each counts as a process.

Who asks for how such a child ended is told: `subprocess` and `multiprocessing` keep it in objects of their own.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import sys
from typing import Any

from cellblock.worker import holdings


def reap(since: float) -> None:
    """Reap those that began since a time of CLOCK_BOOTTIME, in seconds; all, where there is no /proc to tell it."""
    codes: dict[int, int] = {}
    listed = list(holdings.processes())
    for process in filter(lambda process: _has_ended(process, since), listed) if listed else itertools.repeat(-1):
        try:
            pid, status = os.waitpid(process, os.WNOHANG)
        except ChildProcessError:
            pid = status = 0
        if pid:
            codes[pid] = os.waitstatus_to_exitcode(status)
        elif not listed:
            break
    if codes:
        with contextlib.suppress(MemoryError):
            _tell(codes)


def _has_ended(process: int, since: float) -> bool:
    life = holdings.life(process)
    if life is None or life.parent != os.getpid():
        return False
    return life.ended and life.started >= int(since * holdings.TICKS)


def _tell(codes: dict[int, int]) -> None:
    """Give exit codes by pid to the objects that wait for them; these would take a child that is gone for one that
    ended well."""
    for waiting in (*_of("subprocess"), *_of("multiprocessing.popen_fork")):
        if waiting.pid in codes and waiting.returncode is None:
            waiting.returncode = codes[waiting.pid]


def _of(module: str) -> list[Any]:
    kind = getattr(sys.modules.get(module), "Popen", None)
    return [one for one in gc.get_objects() if issubclass(type(one), kind)] if isinstance(kind, type) else []
