"""Lets go of the children of an interrupted cell that have ended: until then each counts as a process.

Who asks for how such a child ended is told: `subprocess` and `multiprocessing` keep it in objects of their own.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from typing import Any

from cellblock.worker import holdings


def reap(since: float) -> None:
    """Reap those that began since a time of CLOCK_BOOTTIME, in seconds."""
    codes, me = {}, os.getpid()
    for process in holdings.processes():
        life = holdings.life(process)
        if life is not None and life.parent == me and life.ended and life.started >= int(since * holdings.TICKS):
            with contextlib.suppress(ChildProcessError):
                pid, status = os.waitpid(process, os.WNOHANG)
                if pid:
                    codes[pid] = os.waitstatus_to_exitcode(status)
    if codes:
        with contextlib.suppress(MemoryError):
            _tell(codes)


def _tell(codes: dict[int, int]) -> None:
    """Give exit codes by pid to the objects that wait for them; these would take a child that is gone for one that
    ended well."""
    for waiting in (*_of("subprocess"), *_of("multiprocessing.popen_fork")):
        if waiting.pid in codes and waiting.returncode is None:
            waiting.returncode = codes[waiting.pid]


def _of(module: str) -> list[Any]:
    kind = getattr(sys.modules.get(module), "Popen", None)
    return [one for one in gc.get_objects() if issubclass(type(one), kind)] if isinstance(kind, type) else []
