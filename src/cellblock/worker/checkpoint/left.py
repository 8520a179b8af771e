"""Cells' code that may go on after its cell has ended: in a thread, in a child, or at a timer's signal."""

from __future__ import annotations

import contextlib
import os
import signal
import threading

from cellblock.hosting.machine import MACHINE
from cellblock.worker.confine.syscall_numbers import NUMBERS

TIMERS = {
    signal.ITIMER_REAL: signal.SIGALRM,
    signal.ITIMER_VIRTUAL: signal.SIGVTALRM,
    signal.ITIMER_PROF: signal.SIGPROF,
}
_TASKS = "/proc/self/task"
_FUTEX = str(NUMBERS.get(MACHINE, {}).get("futex", -1)).encode()
_WAITS = (0, 9)  # FUTEX_WAIT, FUTEX_WAIT_BITSET
_COMMAND = 0x7F  # of their argument, without the flags


def are_left() -> bool:
    """True if something goes on. What waits, without a time limit, for this thread to wake it does not."""
    if any(signal.getitimer(timer)[0] for timer in TIMERS):
        return True
    if not is_alone() and ((waiting := _waiting()) is None or waiting != _waiting()):
        return True
    try:
        if not _has_ended(os.P_ALL, 0):
            return True
        children = [child for thread in os.listdir(_TASKS) for child in _read(f"{thread}/children").split()]
    except ChildProcessError:
        return False
    except OSError:  # no /proc on this host, or a kernel that does not list them
        return True
    for child in children:
        with contextlib.suppress(ChildProcessError):  # a copy, which no wait of a cell's meets
            if not _has_ended(os.P_PID, int(child)):
                return True
    return False


def is_alone() -> bool:
    """True if this process has one thread."""
    try:
        return len(os.listdir(_TASKS)) == 1
    except OSError:  # no /proc on this host
        return False


def _waiting() -> list[bytes] | None:
    """The call in which each other thread waits, and how long it ran before; None if one does not wait for others.

    Two that are alike show that none ran between: all of them waited at one time.
    """
    found, own = [], str(threading.get_native_id())
    try:
        for thread in os.listdir(_TASKS):
            if thread == own:
                continue
            call = _read(f"{thread}/syscall")
            number, _, command, _, timeout, *_ = [*call.split(), *[b""] * 5]
            if number != _FUTEX or int(command, 16) & _COMMAND not in _WAITS or timeout != b"0x0":
                return None
            found += [call, _read(f"{thread}/schedstat")]
    except OSError:  # it has ended, or the kernel does not tell
        return None
    return found


def _read(path: str) -> bytes:
    with open(f"{_TASKS}/{path}", "rb") as told:
        return told.read()


def _has_ended(kind: int, child: int) -> bool:
    """True if a child has ended, and holds nothing but its exit status. ChildProcessError where there is none."""
    return os.waitid(kind, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
