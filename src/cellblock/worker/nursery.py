"""Makes shells: empty sessions, each with namespaces, a root and a first process, ready to be moved into; and zygotes.

A small process without packages, so that forking it costs about a millisecond. It is the first process of
the family's pid namespace: when it exits, every session dies with it.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import traceback
from functools import partial

from cellblock.walls import Unavailable
from cellblock.worker import control, init
from cellblock.worker.children import Children
from cellblock.worker.confine import namespaces, root
from cellblock.worker.confine.syscalls import CLONE_NEWNS, unshare
from cellblock.worker.spares import Message, Spares

SESSION_UID = 1000
_SCRATCH_BYTES = 256 * 2**20
_SCRATCH_FILES = 4096


def serve(channel: socket.socket, *, late: tuple[str, ...], boot: str, idle_seconds: float) -> None:
    """Make what each message asks for, until the host is gone or no session has lived for so long. Never returns.

    `{"make": "shell"}` has the kind of session, and init's control channel; `{"make": "zygote"}` the zygote's;
    `{"make": "spares"}` the kind, how many, for how long, and perhaps a channel to say on that they are there.
    """
    children = Children(channel)
    spares = Spares(children, partial(_make_shell, late=late, children=children))
    children.hold(channel, spares)
    readable = select.poll()
    readable.register(channel, select.POLLIN)
    readable.register(spares, select.POLLIN)
    while True:
        pause = min(spares.work(), children.left(idle_seconds))
        ready = [descriptor for descriptor, _ in readable.poll(max(0.0, pause) * 1e3)]
        if not ready and children.left(idle_seconds) <= 0:
            os._exit(0)
        if spares.fileno() in ready:
            spares.take_in()
        if channel.fileno() in ready:
            message, descriptors = control.receive(channel)
            if message is None:
                os._exit(0)
            host = socket.socket(fileno=descriptors[0]) if descriptors else None
            _carry_out(message, host, children, spares, late, boot)


def _carry_out(
    message: Message,
    host: socket.socket | None,
    children: Children,
    spares: Spares,
    late: tuple[str, ...],
    boot: str,
) -> None:
    match message:
        case {"make": "spares", "kind": dict(kind), "count": int(count), "seconds": seconds}:
            spares.keep(kind, count=count, seconds=None if seconds is None else float(str(seconds)), waiting=host)
            return
    assert host is not None
    with host:
        try:
            match message:
                case {"make": "zygote"}:
                    ours, theirs = control.pair()
                    with theirs:
                        if children.fork() == 0:
                            _become_zygote(host, theirs, late, boot)
                    spares.use(ours)
                case {"make": "shell", "kind": dict(kind), "mounts": bool(mounts), "spare": bool(spare)}:
                    if not (spare and spares.hand_out(kind, host)) and children.fork() == 0:
                        _make_shell(kind, host, late=late, children=children, mounts=mounts)
        except OSError as error:  # no process can be had, or nothing else: the sessions that there are go on
            control.tell(
                host, {"failed": "start", "reason": str(error), "remedy": "see whether the machine is overloaded"}
            )


def _make_shell(
    kind: Message, host: socket.socket, *, late: tuple[str, ...], children: Children, mounts: bool = False
) -> None:
    """In a child: new namespaces, then their first process; this one is only the step between."""
    try:
        split = namespaces.split(inside=SESSION_UID)
        if isinstance(split, Unavailable):
            control.send(host, {"failed": split.mechanism, "reason": split.reason, "remedy": split.remedy})
            os._exit(1)
        first = os.fork()
        if first == 0:
            children.close()
            sizes = {name: int(str(kind[name])) for name in ("disk_bytes", "files", "memory_bytes")}
            init.run(host, **sizes, late=late, mounts=mounts)
        children.announce(first)
        os._exit(0)
    except BaseException as error:
        _fail(host, error)


def _become_zygote(host: socket.socket, nursery: socket.socket, late: tuple[str, ...], boot: str) -> None:
    """In a child: a root like a session's, then another program, so that each zygote has an address space of its own.

    What its environment's `.pth` files say is executed there.
    """
    try:
        # opened here: where the host masks its /proc, the root entered next has none
        own = os.open("/proc/self/ns/pid", os.O_RDONLY)
        tasks = os.open("/proc/self/task", os.O_RDONLY | os.O_DIRECTORY)
        unshare(CLONE_NEWNS)
        root.enter(disk_bytes=_SCRATCH_BYTES, files=_SCRATCH_FILES, late=late)
        passed = (host.fileno(), nursery.fileno(), own, tasks)
        for descriptor in passed:
            os.set_inheritable(descriptor, True)
        words = [sys.executable, "-s", "-P", boot, "zygote", *map(str, passed)]
        os.execv(sys.executable, words)  # noqa: S606 - that there is no shell is the point
    except BaseException as error:
        _fail(host, error)


def _fail(host: socket.socket, error: BaseException) -> None:
    reason = "".join(traceback.format_exception(error))
    control.tell(host, {"failed": "root", "reason": reason, "remedy": ""})
    os._exit(1)
