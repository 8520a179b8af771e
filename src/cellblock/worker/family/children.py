"""The children of a nursery: those it forked, and those that the kernel gave it when their parents ended.

The latter are the inits of sessions, which leave a step between as soon as they exist, and the workers of a zygote
that has ended.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import struct
import time
from collections.abc import Callable
from functools import partial

from cellblock.worker import control
from cellblock.worker.ended import ended_children
from cellblock.worker.forks import fork

_PID = struct.Struct("=i")


class Children:
    """Reaps them, and tells the host how those ended that it does not know: workers."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._forked: set[int] = set()
        self._inits: set[int] = set()
        self._births, self._announcing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._used = math.inf
        self._held: tuple[Callable[[], None], ...] = ()
        signal.signal(signal.SIGCHLD, lambda *_: self._reap())

    def hold(self, *closing: Callable[[], None]) -> None:
        """These close what is the nursery's own: children call them."""
        self._held = closing

    def fork(self, work: Callable[[], object]) -> None:
        """Have a child do this work, which ends with it."""
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        try:
            self._forked.add(fork(partial(self._begin, work)))
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])

    def _begin(self, work: Callable[[], object]) -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        for close in self._held:
            close()
        work()

    def announce(self, init: int) -> None:
        """In a step between, before it ends: the pid of the init that it leaves."""
        os.write(self._announcing, _PID.pack(init))

    def close(self) -> None:
        """In an init, which is to hold nothing of the nursery's."""
        os.close(self._births)
        os.close(self._announcing)

    def left(self, idle_seconds: float) -> float:
        """Seconds until no session has lived for `idle_seconds`; they begin when the last of them ends."""
        self._learn_inits()
        return idle_seconds - (0.0 if self._inits else max(0.0, time.monotonic() - self._used))

    def _learn_inits(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                for (pid,) in _PID.iter_unpack(os.read(self._births, 1024 * _PID.size)):
                    self._inits.add(pid)
                    self._used = time.monotonic()

    def _reap(self) -> None:
        self._learn_inits()  # each was announced before it was ours
        for pid, status in ended_children():
            self._note(pid, status)

    def _note(self, pid: int, status: int) -> None:
        if pid in self._inits:
            self._inits.discard(pid)
            self._used = time.monotonic()
        elif pid in self._forked:
            self._forked.discard(pid)
        else:
            control.tell(self._channel, {"ended": pid, "status": status})
