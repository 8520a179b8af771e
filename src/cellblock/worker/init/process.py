"""The first process of a session: holds its namespaces, and ends it.

When the host closes its end, for whatever reason, this process exits and the kernel kills the rest of the
session's pid namespace. Nothing the session runs can signal it: it is outside their Landlock domain,
the kernel drops unhandled signals to the first process of a namespace, and signals are sent by its leave.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
from typing import NoReturn, cast

from cellblock.worker import control, procfs
from cellblock.worker.confine import capabilities, layout, namespaces, root
from cellblock.worker.init import sockets
from cellblock.worker.init.service import Service

_MORE_FILES = "raise ExecutionLimits(max_files=…)"


def run(
    channel: socket.socket,
    *,
    disk_bytes: int,
    files: int,
    memory_bytes: int,
    checkpoint_bytes: int,
    door: int,
    late: tuple[str, ...],
    mounts: bool,
    nested: bool = False,
) -> NoReturn:
    """Furnish the session, report, then serve until the host is gone. Never returns.

    A `door` is the port on the loopback on which something is to listen; the host gets it, and nothing here keeps it.

    With `mounts` it waits for the host to send them on the channel. Stays attachable (dumpable) until told to seal:
    joining its namespaces needs that; nothing hostile runs before. One that is `nested` in another session is never
    attachable: it is entered by descriptors of its namespaces, which it gives to the host.
    """
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    os.setsid()
    try:
        name = namespaces.name_host("cellblock")
        namespaces.raise_loopback()
        doors = [namespaces.listening(door)] if door else []
        entered = root.enter(disk_bytes=disk_bytes, files=files, late=late, nested=nested)
        sockets.bound()
        if entered.processes >= 0:
            procfs.use(entered.processes)
    except OSError as error:
        remedy = {errno.EPERM: namespaces.REMEDY, errno.ENOSPC: _MORE_FILES}.get(error.errno or 0, "")
        control.send(channel, {"failed": "root", "reason": str(error), "remedy": remedy})
        os._exit(1)
    places = _place_mounts(channel) if mounts else []
    home = os.open(layout.HOME, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    store = root.store(disk_bytes=disk_bytes, files=files, nested=nested)
    itself = os.pidfd_open(os.getpid())
    capabilities.apply()
    for path in places:
        _require_readable(channel, path)
    spaces = namespaces.opened() if nested else []
    control.send(channel, {"ready": entered.detail + name}, [itself, home, *(one.fileno() for one in doors), *spaces])
    for descriptor in (itself, home, *spaces):
        os.close(descriptor)
    for listener in doors:
        listener.close()
    Service(channel, store, memory_bytes=memory_bytes, checkpoint_bytes=checkpoint_bytes, nested=nested).serve()


def _place_mounts(channel: socket.socket) -> list[str]:
    """Take the trees that the host sends in one message with their places, and mount them; the places."""
    message, descriptors = control.receive(channel)
    if message is None:
        os._exit(0)
    places = [str(place) for place in cast("list[object]", message["places"])]
    try:
        root.place(dict(zip(places, descriptors, strict=True)))
    except OSError as error:
        more = f", {_MORE_FILES}" if error.errno == errno.ENOSPC else ""
        _refuse(channel, error.filename or "", f"{error.strerror or error}{more}", readable=True)
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
