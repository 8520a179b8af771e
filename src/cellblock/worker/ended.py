"""Processes that end their children: which have ended, and how a child leaves what its parent listens with behind."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator


def ended_children(look: Callable[[int], object] | None = None) -> Iterator[tuple[int, int]]:
    """Reap each child that has ended: its pid and wait status. Does not wait for the others.

    `look` is called with the pid of each before, while the kernel still tells of it.
    """
    which = -1
    while True:
        try:
            if look is not None:
                if (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is None:
                    return
                look(which := ended.si_pid)
            pid, status = os.waitpid(which, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, status


def watched() -> int:
    """A descriptor that can be read once a child has ended, for `heard`."""
    watch, inlet = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(inlet, warn_on_full_buffer=False)
    return watch


def heard(watch: int) -> None:
    """Have it be readable for the next child."""
    with contextlib.suppress(BlockingIOError):
        os.read(watch, 4096)


def settle(*kept: int) -> None:
    """In a child: listen for none of the parent's, and close all descriptors but the standard streams and these."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor not in {0, 1, 2, *kept}:
            with contextlib.suppress(OSError):  # the one of the listing
                os.close(descriptor)
