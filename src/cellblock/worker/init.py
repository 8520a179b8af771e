"""The first process of a session: holds its namespaces, and ends it.

When the host closes its end, for whatever reason, this process exits and the kernel kills the rest of the
session's pid namespace. Nothing the session runs can signal it: it is outside their Landlock domain, and
the kernel drops unhandled signals to the first process of a namespace.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
from typing import cast

from cellblock.worker import control, ending, sockets
from cellblock.worker.confine import capabilities, layout, namespaces, root
from cellblock.worker.confine.syscalls import PR_SET_DUMPABLE, prctl
from cellblock.worker.watch import IDLE_SECONDS, Watch


def run(
    channel: socket.socket, *, disk_bytes: int, files: int, memory_bytes: int, late: tuple[str, ...], mounts: bool
) -> None:
    """Furnish the session, report, then serve until the host is gone. Never returns.

    With `mounts` it waits for the host to send them on the channel. Stays attachable (dumpable) until told to seal:
    joining its namespaces needs that; nothing hostile runs before.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # orphans are reaped by the kernel
    os.setsid()
    try:
        name = namespaces.name_host("cellblock")
        namespaces.raise_loopback()
        entered = root.enter(disk_bytes=disk_bytes, files=files, late=late)
        sockets.bound()
    except OSError as error:
        remedy = namespaces.REMEDY if error.errno == errno.EPERM else ""
        control.send(channel, {"failed": "root", "reason": str(error), "remedy": remedy})
        os._exit(1)
    places = _place_mounts(channel) if mounts else []
    home = os.open(layout.HOME, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    self = os.pidfd_open(os.getpid())
    capabilities.apply()
    for path in places:
        _require_readable(channel, path)
    control.send(channel, {"ready": entered + name}, [self, home])
    os.close(self)
    os.close(home)
    watch = Watch(memory_bytes)
    readable = select.poll()
    readable.register(channel, select.POLLIN)
    pause = IDLE_SECONDS
    while True:
        if not readable.poll(pause * 1000):
            pause, excess = watch.look()
            if excess is not None:
                worker = excess.process == watch.worker
                control.tell(channel, {"curbed": excess.held, "worker": worker})  # before its death is seen
                _kill(excess.process)
            continue
        message, descriptors = control.receive(channel)
        for descriptor in descriptors:
            os.close(descriptor)
        if message is None:
            os._exit(0)
        if message["do"] == "seal":
            watch.begin()
            prctl(PR_SET_DUMPABLE, 0)
        elif message["do"] == "sweep":
            ending.end_all()
            root.repair_home()
            prctl(PR_SET_DUMPABLE, 1)
            control.send(channel, {"swept": True})
        elif message["do"] == "hold back":
            ending.hold_back(cast("float", message["since"]), watch.worker)
        elif message["do"] == "end":
            control.send(channel, {"ended": ending.end_since(cast("float", message["since"]), watch.worker)})


def _place_mounts(channel: socket.socket) -> list[str]:
    """Take the trees that the host sends in one message with their places, and mount them; the places."""
    message, descriptors = control.receive(channel)
    if message is None:
        os._exit(0)
    places = [str(place) for place in cast("list[object]", message["places"])]
    try:
        root.place(dict(zip(places, descriptors, strict=True)))
    except OSError as error:
        _refuse(channel, error.filename or "", error.strerror or str(error), readable=True)
    for tree in descriptors:
        os.close(tree)
    return places


def _require_readable(channel: socket.socket, path: str) -> None:
    """Without capabilities this process reads what the cells will read, and nothing else."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        _refuse(channel, path, error.strerror or str(error), readable=False)


def _refuse(channel: socket.socket, path: str, reason: str, *, readable: bool) -> None:
    control.send(channel, {"failed": "mounts", "place": path, "reason": reason, "readable": readable})
    os._exit(1)


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
