"""A frozen copy of this process: forked aside, it waits until it is woken as the process's successor, or let go.

No code that waits for its children meets the copy. A process of one thread makes it as a child whose end raises no
signal, which only a wait for such children tells of. Where there are more threads the C library has to fork; the copy
is succeeded by a second process over the same memory, which the namespace's first process adopts. Either way the page
tables are copied once.
"""

from __future__ import annotations

import _imp
import _thread
import contextlib
import ctypes
import errno
import gc
import os
import random
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from cellblock.hosting import sockets
from cellblock.worker import control
from cellblock.worker.checkpoint import descriptors, openmp
from cellblock.worker.checkpoint.branching import Branch, part
from cellblock.worker.checkpoint.left import TIMERS, is_alone
from cellblock.worker.checkpoint.written import Written
from cellblock.worker.confine.syscalls import (
    PR_GET_DUMPABLE,
    PR_SET_DUMPABLE,
    WAIT_SILENT,
    clone_silently,
    prctl,
    succeed,
)

_EVERY_SIGNAL = frozenset(signal.valid_signals())
"""Blocked before a copy is made, and in it until it is woken: init knows copies and scribes by that."""
_OF_THREADS = ("ignore", None, DeprecationWarning, None, 0)
"""Of warnings that there are threads: they stay where they are."""
_IMPORT_SECONDS = 0.1
Write = Callable[[int, Mapping[str, object]], object]
"""Becomes a scribe, given its socket and its limits. Does not return."""
_AT_ONCE = 1e-6
"""The shortest time of a timer."""


@dataclass(frozen=True, slots=True)
class Woken:
    """Finds of a woken copy: the end for the next checkpoint (-1 for none), what it could not bring along, the
    descriptors of files that were made anew, and if timers go on, some of which may have run out by now.
    """

    next: int
    gone: tuple[descriptors.Held, ...]
    anew: tuple[descriptors.Held, ...]
    threads: tuple[str, ...]
    timed: bool
    branch: Branch | None = None


def freeze(
    channel: socket.socket, ours: tuple[int, ...], text: tuple[int, int], write: Write, written: Written
) -> Woken | None:
    """Leave a frozen copy behind, which waits on `channel`. None here; in the copy, once woken, what it found.

    `ours` are descriptors that the copy goes on to use as they are, `text` those of them that a branch gets others
    for, `write` is what a scribe does, `written` is told of each copy. Raises OSError where no copy can be made.
    """
    found = descriptors.held((channel.fileno(), *ours))
    threads = tuple(one.name for one in threading.enumerate() if one is not threading.current_thread())
    place = _working_directory()
    state = random.getstate()  # a forked copy seeds it anew
    hidden = not prctl(PR_GET_DUMPABLE)  # as a process of a branch is for good
    _await_imports()
    written.prepare()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _EVERY_SIGNAL)
    hook, sys.unraisablehook = sys.unraisablehook, _hush  # of the hooks that cells set around forks
    collects = gc.isenabled()
    gc.disable()  # finalizers are the cells' code: none runs while memory is looked at, in a copy, or in a scribe
    try:
        timers = _timers()
        if not hidden:
            prctl(PR_SET_DUMPABLE, 0)  # from its first moment on, nothing can open the copy's memory
        copy = False
        try:
            copy = _fork_aside(written)
        finally:
            if not (hidden or copy):
                prctl(PR_SET_DUMPABLE, 1)
        if not copy:
            return None
        woken = _wait(channel, found, ours, text, partial(_write_down, write, state))
        if not (hidden or isinstance(woken, Branch)):
            prctl(PR_SET_DUMPABLE, 1)
        _consume_signals()
        random.setstate(state)
        _renumber()
        if threads:
            _give_back_stacks()
        for timer, (left, interval) in timers.items():
            if left:  # else it stands, as in every copy, and a filter around the program may refuse the call
                signal.setitimer(timer, left, interval)
        if place is not None:  # it may have been removed and made again meanwhile
            with contextlib.suppress(OSError):
                os.chdir(place)
        timed = any(left for left, _ in timers.values())
        if isinstance(woken, Branch):
            return Woken(woken.next, woken.gone, woken.anew, threads, timed, woken)
        taken = descriptors.take_up(found)
        return Woken(woken, tuple(taken.lost), tuple(taken.anew), threads, timed)
    finally:
        if collects:
            gc.enable()
        sys.unraisablehook = hook
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _timers() -> dict[int, tuple[float, float]]:
    """The timers of a process that blocks all signals: a forked copy has none. One that ran out does so at once."""
    while True:
        due = signal.sigpending()
        timers = {timer: signal.getitimer(timer) for timer in TIMERS}
        if due == signal.sigpending():
            break
    return {timer: (_AT_ONCE if TIMERS[timer] in due else left, again) for timer, (left, again) in timers.items()}


def _hush(_unraisable: object) -> None:
    """Ignore failures at a fork that no cell asked for."""


def _await_imports() -> None:
    """A fork waits for the import lock for as long as another thread holds it; this does for a moment only."""
    deadline = time.monotonic() + _IMPORT_SECONDS
    while _imp.lock_held():
        if time.monotonic() > deadline:
            raise OSError(errno.EBUSY, "another thread holds the import lock")
        time.sleep(0.001)


def _wait(
    channel: socket.socket, found: list[descriptors.Held], ours: tuple[int, ...], text: tuple[int, int], write: Write
) -> int | Branch:
    """In the copy: be frozen until the host says to wake. Ends here when the host lets go. Returns in branches, too."""
    try:
        descriptors.let_go(found)
        channel.send(control.READY)
        message, ends = control.receive(channel)
        while message is not None and "wake" not in message:
            if message == control.SHOW:
                _show(ends)
            elif message == control.APART:
                with _meet(ends) as apart:
                    message, ends = control.receive(apart)
                    if message is None:
                        pass
                    elif "save" in message:
                        _make_scribe(message, ends, write)
                    elif (branch := part(message, ends, found, ours, text)) is not None:
                        return branch
            message, ends = control.receive(channel)
    except BaseException:
        os._exit(1)
    if message is None:
        os._exit(0)
    return descriptors.out_of_the_way(ends[0], found) if ends else -1


def _meet(ends: list[int]) -> socket.socket:
    """In the copy: give the host a socket for one order that brings descriptors along.

    Cells had the channel's end, and whoever has a copy of it can read all that the host sends there.
    """
    ours, theirs = control.pair()
    with theirs:
        for end in ends:
            with contextlib.suppress(OSError), sockets.adopted(end) as asked:
                socket.send_fds(asked, [b"-"], [theirs.fileno()])
    return ours


def _make_scribe(message: Mapping[str, object], ends: list[int], write: Write) -> None:
    """In the copy: fork a scribe. Where that cannot be done its socket just closes."""
    reap()  # those that have ended
    with contextlib.suppress(OSError):
        if not clone_silently():
            write(ends[0], message)
    for end in ends:
        os.close(end)


def _write_down(write: Write, state: tuple[object, ...], end: int, message: Mapping[str, object]) -> None:
    """In a scribe."""
    try:
        random.setstate(state)
        write(end, message)
    finally:
        os._exit(1)


def _show(ends: list[int]) -> None:
    """In the copy: let init see what it holds. Where that fails, all of it counts."""
    for end in ends:
        with contextlib.suppress(OSError), sockets.adopted(end) as asked:
            window = os.open("/proc/self/smaps_rollup", os.O_RDONLY | os.O_CLOEXEC)
            try:
                socket.send_fds(asked, [b"-"], [window])
            finally:
                os.close(window)


def _renumber() -> None:
    """Have Python's main thread know the number that the kernel gave it; os.fork does not tell it either."""
    main = threading.main_thread()
    if hasattr(main, "_set_native_id"):
        main._set_native_id()


def _give_back_stacks() -> None:
    """Have the C library give back most of the stacks of threads that are no more, which it does as a thread ends."""
    ended = _thread.allocate_lock()
    ended.acquire()
    with contextlib.suppress(RuntimeError):  # no memory for a thread, or no process
        _thread.start_new_thread(ended.release, ())
        ended.acquire()


def _consume_signals() -> None:
    """Take what was sent to the copy while it was frozen, when all signals were blocked: none of it was for it."""
    while signal.sigtimedwait(_EVERY_SIGNAL, 0) is not None:
        continue


def _working_directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None


def _fork_aside(written: Written) -> bool:
    """Fork a copy that no wait for children meets. True in the copy. Raises OSError where there can be none.

    A process of one thread, as nearly all are, can do without what the C library does for the others.
    """
    if is_alone():
        return _fork_alone(written)
    written.look(alone=False)
    return _fork_among_threads()


def _fork_alone(written: Written) -> bool:
    python = ctypes.pythonapi
    python.PyOS_BeforeFork()
    try:
        written.look(alone=True)
        child = clone_silently()
    except OSError:
        python.PyOS_AfterFork_Parent()
        raise
    if child:
        written.mark()
        python.PyOS_AfterFork_Parent()
        return False
    try:
        python.PyOS_AfterFork_Child()
    except BaseException:
        os._exit(1)
    return True


def _fork_among_threads() -> bool:
    """By the interpreter's own call. Another thread may be waiting for the interpreter's lock, and the copy's has to be
    made anew before it runs any bytecode: it would hand that lock to a thread that it does not have.
    """
    openmp.end_pools()
    warnings.filters.insert(0, _OF_THREADS)  # type: ignore[attr-defined]
    try:
        child = os.fork()
    except Exception as error:  # a hook of the cell's on what the interpreter does, say
        raise OSError(errno.EAGAIN, "no copy of the process can be made") from error
    finally:
        with contextlib.suppress(ValueError):
            warnings.filters.remove(_OF_THREADS)  # type: ignore[attr-defined]
    if child:
        os.waitpid(child, 0)
        return False
    try:
        succeed()
    except BaseException:
        os._exit(1)
    return True


def reap() -> None:
    """Collect the copies that were let go."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG | WAIT_SILENT)[0]:
            continue
