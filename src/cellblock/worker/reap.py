"""Lets go of the children of an interrupted cell once they have ended: until then each counts as a process.

Who asks for how such a child ended is told: `subprocess` and `multiprocessing` keep it in objects of their own.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import sys
from collections.abc import Iterable
from typing import Any

from cellblock.worker import holdings

Children = dict[int, int]
"""When each began, in ticks since the machine did, by pid."""

_ANY = -1


def begun(since: float) -> Children:
    """The children of this process that began since a time of CLOCK_BOOTTIME, in seconds.

    Where there is no /proc to tell it, all that have ended are reaped instead.
    """
    children: Children = {}
    listed = list(holdings.processes())
    for process in listed:
        life = holdings.life(process)
        if life is not None and life.parent == os.getpid() and life.started >= int(since * holdings.TICKS):
            children[process] = life.started
    if not listed:
        _collect(itertools.repeat(_ANY))
    return children


def reap(children: Children) -> Children:
    """Reap those that have ended; the rest, which were killed and are ending."""
    lives = {child: life for child in children if (life := holdings.life(child)) is not None}
    same = {child: life for child, life in lives.items() if life.started == children[child]}
    _collect(child for child, life in same.items() if life.ended)
    return {child: life.started for child, life in same.items() if not life.ended}


def _collect(children: Iterable[int]) -> None:
    codes: dict[int, int] = {}
    for child in children:
        try:
            pid, status = os.waitpid(child, os.WNOHANG)
        except ChildProcessError:  # somebody has waited for it
            pid = status = 0
        if pid:
            codes[pid] = os.waitstatus_to_exitcode(status)
        elif child == _ANY:
            break
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
