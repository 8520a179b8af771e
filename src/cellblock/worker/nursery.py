"""Makes shells: empty sessions, each with namespaces, a root and a first process, ready to be moved into.

A small process without packages, so that forking it costs about a millisecond. It is the first process of
the family's pid namespace: when it exits, every session dies with it.
"""

from __future__ import annotations

import os
import socket
import traceback

from cellblock.walls import Unavailable
from cellblock.worker import control, init
from cellblock.worker.confine import namespaces

SESSION_UID = 1000


def serve(channel: socket.socket, *, late: tuple[str, ...]) -> None:
    """Make a shell for each message until the host is gone. Never returns.

    A message carries the sizes of the session's files and one descriptor: its init's control channel.
    """
    while True:
        message, descriptors = control.receive(channel)
        if message is None:
            os._exit(0)
        if os.fork() == 0:
            channel.close()
            _make(message, socket.socket(fileno=descriptors[0]), late)
        for descriptor in descriptors:
            os.close(descriptor)


def _make(message: dict[str, object], host: socket.socket, late: tuple[str, ...]) -> None:
    """In a child: new namespaces, then their first process; this one is only the step between."""
    try:
        split = namespaces.split(inside=SESSION_UID)
        if isinstance(split, Unavailable):
            control.send(host, {"failed": split.mechanism, "reason": split.reason, "remedy": split.remedy})
            os._exit(1)
        if os.fork() == 0:
            sizes = {name: int(str(message[name])) for name in ("disk_bytes", "files", "memory_bytes")}
            init.run(host, **sizes, late=late)
        os._exit(0)
    except BaseException as error:
        control.send(host, {"failed": "root", "reason": "".join(traceback.format_exception(error)), "remedy": ""})
        os._exit(1)
