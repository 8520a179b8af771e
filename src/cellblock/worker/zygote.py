"""The zygote: a process with the profile's packages imported, copied into a shell for each new session.

Single-threaded, holds nothing secret, and lives in a root like a session's, so that what the packages do
when they are imported reaches nothing of the host's.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import traceback
from collections.abc import Sequence
from importlib import import_module

from cellblock.worker import control, main
from cellblock.worker.confine import namespaces, root
from cellblock.worker.confine.syscalls import (
    CLONE_NEWNS,
    CLONE_NEWPID,
    PR_SET_DUMPABLE,
    PR_SET_PDEATHSIG,
    prctl,
    setns,
    unshare,
)

_SCRATCH_BYTES = 256 * 2**20


def serve(channel: socket.socket, *, preload: Sequence[str], late: tuple[str, ...]) -> None:
    """Preload, report, then attach workers until the host is gone. Never returns.

    An attach message carries the session's environment and limits and four descriptors: a pidfd of the
    shell's init, the worker's socket, and the pipes for its stdout and stderr.
    """
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # opened here: where the host masks its /proc, the root entered next has none
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    tasks = os.open("/proc/self/task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    unshare(CLONE_NEWNS)
    root.enter(disk_bytes=_SCRATCH_BYTES, files=4096, late=late)
    os.environ.update(main.ENVIRONMENT)
    for name in preload:
        try:
            import_module(name)
        except BaseException as error:
            reason = traceback.format_exception_only(error)[-1].strip()
            control.send(channel, {"failed": "preload", "module": name, "reason": reason})
            os._exit(1)
    main.prepare()
    gc.collect()
    gc.freeze()
    threads = len(os.listdir(tasks))
    os.close(tasks)
    if threads != 1:  # a fork copies one thread; locks that the others hold would stay held for ever
        reason = f"{threads - 1} thread(s) were started by importing"
        remedy = "leave out of preload= what starts them, and import it in the session"
        control.send(channel, {"failed": "preload", "module": ", ".join(preload), "reason": reason, "remedy": remedy})
        os._exit(1)
    control.send(channel, {"ready": True})
    signal.signal(signal.SIGCHLD, lambda *_: _report_deaths(channel))
    while True:
        message, descriptors = control.receive(channel)
        if message is None:
            os._exit(0)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        _attach(channel, message, descriptors, own)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])


_tokens: dict[int, object] = {}
"""Which session each child is the worker of."""


def _attach(channel: socket.socket, message: dict[str, object], descriptors: list[int], own: int) -> None:
    init, *kept = descriptors
    setns(init, CLONE_NEWPID)
    pid = os.fork()
    if pid == 0:
        try:
            channel.close()
            os.close(own)
            setns(init, namespaces.ROOM)
            os.close(init)
            prctl(PR_SET_DUMPABLE, 1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            main.run(message, *kept)
        except BaseException:
            traceback.print_exc()
            os._exit(70)
    setns(own, CLONE_NEWPID)
    _tokens[pid] = message["token"]
    for descriptor in descriptors:
        os.close(descriptor)


def _report_deaths(channel: socket.socket) -> None:
    """Tell the host how each worker ended: its wait status, under the session's token."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        # a host that reads none of these, or is gone, must not stop us
        notice = {"ended": _tokens.pop(pid, None), "status": status}
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            control.send(channel, notice, flags=socket.MSG_DONTWAIT)
