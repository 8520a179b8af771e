"""Makes shells: empty sessions, each with namespaces, a root and a first process, ready to be moved into; and zygotes.

A small process without packages, so that forking it costs about a millisecond. It is the first process of
the family's pid namespace: when it exits, every session dies with it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import traceback

from cellblock.walls import Unavailable
from cellblock.worker import control, init
from cellblock.worker.confine import namespaces, root
from cellblock.worker.confine.syscalls import CLONE_NEWNS, unshare

SESSION_UID = 1000
_SCRATCH_BYTES = 256 * 2**20
_SCRATCH_FILES = 4096


def serve(channel: socket.socket, *, late: tuple[str, ...], boot: str) -> None:
    """Make what each message asks for until the host is gone. Never returns.

    `{"make": "shell"}` carries the sizes of the session's files and its init's control channel,
    `{"make": "zygote"}` the zygote's. How adopted children end, the workers of a zygote that is gone, is told.
    """
    steps: set[int] = set()
    signal.signal(signal.SIGCHLD, lambda *_: _report_deaths(channel, steps))
    while True:
        message, descriptors = control.receive(channel)
        if message is None:
            os._exit(0)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        pid = os.fork()
        if pid == 0:
            channel.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            host = socket.socket(fileno=descriptors[0])
            if message["make"] == "zygote":
                _become_zygote(host, late, boot)
            _make_shell(message, host, late)
        steps.add(pid)
        for descriptor in descriptors:
            os.close(descriptor)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])


def _make_shell(message: dict[str, object], host: socket.socket, late: tuple[str, ...]) -> None:
    """In a child: new namespaces, then their first process; this one is only the step between."""
    try:
        split = namespaces.split(inside=SESSION_UID)
        if isinstance(split, Unavailable):
            control.send(host, {"failed": split.mechanism, "reason": split.reason, "remedy": split.remedy})
            os._exit(1)
        if os.fork() == 0:
            sizes = {name: int(str(message[name])) for name in ("disk_bytes", "files", "memory_bytes")}
            init.run(host, **sizes, late=late, mounts=bool(message["mounts"]))
        os._exit(0)
    except BaseException as error:
        _fail(host, error)


def _become_zygote(host: socket.socket, late: tuple[str, ...], boot: str) -> None:
    """In a child: a root like a session's, then another program, so that each zygote has an address space of its own.

    What its environment's `.pth` files say is executed there.
    """
    try:
        # opened here: where the host masks its /proc, the root entered next has none
        own = os.open("/proc/self/ns/pid", os.O_RDONLY)
        tasks = os.open("/proc/self/task", os.O_RDONLY | os.O_DIRECTORY)
        unshare(CLONE_NEWNS)
        root.enter(disk_bytes=_SCRATCH_BYTES, files=_SCRATCH_FILES, late=late)
        passed = (host.fileno(), own, tasks)
        for descriptor in passed:
            os.set_inheritable(descriptor, True)
        words = [sys.executable, "-s", "-P", boot, "zygote", *map(str, passed)]
        os.execv(sys.executable, words)  # noqa: S606 - that there is no shell is the point
    except BaseException as error:
        _fail(host, error)


def _fail(host: socket.socket, error: BaseException) -> None:
    reason = "".join(traceback.format_exception(error))
    control.send(host, {"failed": "root", "reason": reason, "remedy": ""})
    os._exit(1)


def _report_deaths(channel: socket.socket, steps: set[int]) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid in steps:
            steps.discard(pid)
            continue
        with contextlib.suppress(BlockingIOError, BrokenPipeError):  # the host need not listen
            control.send(channel, {"ended": pid, "status": status}, flags=socket.MSG_DONTWAIT)
