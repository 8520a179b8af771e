"""The zygote: a process with the profile's packages imported, copied into a shell for each new session.

Single-threaded, holds nothing secret, and lives in a root like a session's, so that what the packages do
when they are imported reaches nothing of the host's.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import traceback
from collections.abc import Sequence
from importlib import import_module

from cellblock.hosting.waiting import ready
from cellblock.worker import control, main
from cellblock.worker.confine import namespaces
from cellblock.worker.confine.syscalls import CLONE_NEWPID, PR_SET_DUMPABLE, name_process, prctl, setns
from cellblock.worker.ended import ended_children
from cellblock.worker.environment import ENVIRONMENT
from cellblock.worker.forks import fork
from cellblock.worker.integrity import take_out


def serve(channel: socket.socket, nursery: socket.socket, *, own: int, tasks: int) -> None:
    """Preload, report, then attach workers until the host wants no more. Never returns.

    The host's first message names what to preload, and whether sessions are to be saved, which a later one may tell,
    too. A message that asks for a worker comes from the host or the nursery; it has the limits and descriptors: a
    pidfd of the shell's init, the worker's socket, the pipes for its stdout and stderr and, with checkpoints, a socket
    that leads to init. `own` is this process's pid namespace, `tasks` the directory of its threads.
    """
    profile, _ = control.receive(channel)
    if profile is None:
        os._exit(0)
    name_process("zygote")
    modules = take_out()
    os.environ.update(ENVIRONMENT)
    names = profile["preload"]
    assert isinstance(names, list)
    preload(channel, names, tasks)
    main.prepare(modules, guarded=bool(profile.get("guard")), saved=bool(profile.get("saved")))
    control.send(channel, {"ready": True})
    signal.signal(signal.SIGCHLD, lambda *_: _report_deaths(channel))
    asking = select.poll()
    channels = {one.fileno(): one for one in (channel, nursery)}
    for descriptor in channels:
        asking.register(descriptor, select.POLLIN)
    while True:
        for descriptor, _ in asking.poll():
            message, descriptors = control.receive(channels[descriptor])
            if message is None:
                os._exit(0)
            if "saved" in message:
                main.settle(saved=True)
                continue
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
            _attach(channel, nursery, message, descriptors, own)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])


def preload(channel: socket.socket, names: Sequence[str], tasks: int) -> None:
    """Import packages; one that cannot be, or that starts threads, is reported and ends this process."""
    for name in names:
        control.send(channel, {"importing": name})
        try:
            import_module(name)
        except BaseException as error:
            reason = traceback.format_exception_only(error)[-1].strip()
            control.send(channel, {"failed": "preload", "module": name, "reason": reason})
            os._exit(1)
    threads = len(os.listdir(tasks))
    os.close(tasks)
    if threads != 1:  # a fork copies one thread; locks that the others hold would stay held for ever
        reason = f"{threads - 1} thread(s) were started by importing"
        remedy = "leave out of preload= what starts them, and import it in the session"
        control.send(channel, {"failed": "preload", "module": ", ".join(names), "reason": reason, "remedy": remedy})
        os._exit(1)


def _attach(
    channel: socket.socket, nursery: socket.socket, message: dict[str, object], descriptors: list[int], own: int
) -> None:
    """Put a copy of this process into a shell. Where the shell is gone, the worker's end of its socket just closes."""
    init, *kept = descriptors
    with contextlib.suppress(ProcessLookupError):
        setns(init, CLONE_NEWPID)
        pid = _fork((channel, nursery), message, init, kept, own)
        setns(own, CLONE_NEWPID)
        if pid:
            control.tell(channel, {"attached": message["token"], "pid": pid})
    control.close_all(descriptors)


def _fork(channels: tuple[socket.socket, ...], message: dict[str, object], init: int, kept: list[int], own: int) -> int:
    """The worker's pid; 0 where there is none: the host learns that as its socket closes."""

    def work() -> None:
        for channel in channels:
            channel.close()
        os.close(own)
        try:
            setns(init, namespaces.ROOM)
        except ProcessLookupError:  # the sandbox has ended, which its host learns as the socket closes
            os._exit(70)
        os.close(init)
        prctl(PR_SET_DUMPABLE, 1)
        name_process("python")
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        main.run(message, *kept)

    try:
        return fork(work)
    except OSError as error:
        if not ready(init):  # a pid namespace whose first process has ended takes no other
            control.tell(channels[0], {"unmade": message["token"], "errno": error.errno})
        return 0


def _report_deaths(channel: socket.socket) -> None:
    """Tell the host how each worker ended: its wait status."""
    for pid, status in ended_children():
        control.tell(channel, {"ended": pid, "status": status})
