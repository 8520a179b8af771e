"""State that a program inherits from the one that executed it, made the same for every host.

A limit that the host cannot pass stays; priorities stay too, as they are the host's share of the machine.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal

_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_LIMITS = (
    resource.RLIMIT_AS,
    resource.RLIMIT_CPU,
    resource.RLIMIT_DATA,
    resource.RLIMIT_FSIZE,
    resource.RLIMIT_NOFILE,
    resource.RLIMIT_NPROC,
)
_TIMER_SLACK = b"50000"  # nanoseconds, as the kernel has them by default
_OF_REAL_TIME = (os.SCHED_FIFO, os.SCHED_RR)


def settle() -> None:
    """Set umask, signals, standard streams, soft limits, scheduling, timers and the score for the kernel's killer."""
    os.umask(0o022)
    _open_standard_streams()
    _reset_signals()
    for limit in _LIMITS:
        _, hard = resource.getrlimit(limit)
        # at the soft limit of time a signal tells which it was; at the hard one nothing does
        soft = max(hard - 1, 1) if limit == resource.RLIMIT_CPU and hard != resource.RLIM_INFINITY else hard
        resource.setrlimit(limit, (soft, hard))
    if os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK in _OF_REAL_TIME:  # else one cell could stop the machine
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with contextlib.suppress(OSError), open("/proc/self/timerslack_ns", "wb", buffering=0) as file:
        file.write(_TIMER_SLACK)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "r+b", buffering=0) as file:
        if int(file.read()) < 0:  # the host is exempt, and what it runs inside is not
            file.write(b"0")


def _open_standard_streams() -> None:
    """Open those that the host has closed: what is opened next would get their numbers, and what is printed."""
    null = os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    while null <= 2:
        os.set_inheritable(null, True)
        null = os.open(os.devnull, os.O_RDWR)
    os.close(null)


def _reset_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals():
        if signal.getsignal(number) is signal.SIG_IGN and number not in _IGNORED_BY_PYTHON:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
