"""Makes shells: empty sessions, each with namespaces, a root and a first process, ready to be moved into; and zygotes.

A small process without packages, so that forking it costs about a millisecond. It is the first process of
the family's pid namespace: when it exits, every session dies with it.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
import traceback
from collections.abc import Iterator
from functools import partial

from cellblock.hosting import sockets
from cellblock.hosting.account import READABLE, unreadable
from cellblock.worker import control
from cellblock.worker.border import Border, report
from cellblock.worker.confine import namespaces, root
from cellblock.worker.confine.refusal import WallRefused
from cellblock.worker.confine.syscalls import CLONE_NEWNS, CLONE_NEWPID, unshare
from cellblock.worker.environment import enter_packages
from cellblock.worker.family.children import Children
from cellblock.worker.family.spares import Message, Spares
from cellblock.worker.init import process as init

SESSION_UID = 1000
_SCRATCH_BYTES = 256 * 2**20
_SCRATCH_FILES = 4096
_SIZES = ("disk_bytes", "files", "memory_bytes", "checkpoint_bytes", "door")
"""What of a kind of session concerns its init."""


def serve(
    channel: socket.socket, first: socket.socket, *, late: tuple[str, ...], boot: str, idle_seconds: float
) -> None:
    """Make a zygote for `first`, and then what each message asks for. Never returns.

    Ends when the host is gone, or when no session has lived for so long.

    `{"make": "shell"}` has the kind of session, and init's control channel; `{"make": "zygote"}` the zygote's;
    `{"make": "spares"}` the kind, how many, and perhaps a channel to say on that they are there.
    """
    children = Children(channel)
    spares = Spares(children, partial(_make_shell, late=late, children=children))
    children.hold(channel.close, spares.close)
    border = Border(partial(control.tell, channel))
    obey = partial(_obey, channel, children=children, spares=spares, late=late, boot=boot)
    take_in = partial(_take_in, children=children, spares=spares, late=late, boot=boot)
    with first:
        _start_zygote(first, children, spares, late, "")
    readable = select.poll()
    readable.register(channel, select.POLLIN)
    readable.register(spares, select.POLLIN)
    while True:
        pause = min(spares.work(), children.left(idle_seconds))
        ready = [descriptor for descriptor, _ in readable.poll(max(0.0, pause) * 1e3)]
        if not ready and children.left(idle_seconds) <= 0:
            os._exit(0)
        if spares.fileno() in ready:
            border.carry_out("take in", take_in)
        if channel.fileno() in ready:
            border.carry_out("receive", obey)


def _take_in(*, children: Children, spares: Spares, late: tuple[str, ...], boot: str) -> None:
    for kind, waiting in spares.take_in():
        message: Message = {"make": "shell", "kind": kind, "mounts": False, "spare": False}
        _carry_out(message, waiting, children, spares, late, boot)


def _obey(channel: socket.socket, *, children: Children, spares: Spares, late: tuple[str, ...], boot: str) -> None:
    """Do what the next message asks for; who is to hear of it is told of a failure."""
    received, descriptors = control.receive(channel)
    if received is None:
        os._exit(0)
    host = sockets.adopted(descriptors[0]) if descriptors else None
    if received["make"] == "branch":
        _branch_off(received, host, descriptors[1:], late=late, children=children)
    else:
        _carry_out(received, host, children, spares, late, boot)


def _carry_out(
    message: Message,
    host: socket.socket | None,
    children: Children,
    spares: Spares,
    late: tuple[str, ...],
    boot: str,
) -> None:
    match message:
        case {"make": "spares", "kind": dict(kind), "count": int(count)}:
            spares.keep(kind, count, host)
            return
        case {"make": "spare", "kind": dict(kind), "seconds": float(seconds)}:
            spares.keep_one(kind, seconds)
            return
    assert host is not None

    def make() -> None:
        match message:
            case {"make": "zygote"}:
                _start_zygote(host, children, spares, late, boot)
            case {"make": "shell", "kind": dict(kind), "mounts": bool(mounts), "spare": bool(spare)}:
                if not (spare and spares.hand_out(kind, host)) and children.fork() == 0:
                    _make_shell(kind, host, late=late, children=children, mounts=mounts)

    with host:
        Border(partial(control.tell, host)).carry_out("start", make)


def _start_zygote(host: socket.socket, children: Children, spares: Spares, late: tuple[str, ...], boot: str) -> None:
    ours, theirs = control.pair()
    with theirs:
        if children.fork() == 0:
            ours.close()
            children.close()
            _become_zygote(host, theirs, late, boot)
    spares.use(ours)


def _make_shell(
    kind: Message, host: socket.socket, *, late: tuple[str, ...], children: Children, mounts: bool = False
) -> None:
    """In a child: new namespaces, then their first process; this one is only the step between."""
    with _told(host):
        namespaces.split(inside=SESSION_UID)
        first = os.fork()
        if first == 0:
            _furnish(kind, host, late, children, mounts=mounts, nested=False)
        children.announce(first)
        os._exit(0)


def _furnish(
    kind: Message, host: socket.socket, late: tuple[str, ...], children: Children, *, mounts: bool, nested: bool
) -> None:
    """In the first process of new namespaces: become a session's init. Does not return."""
    children.close()
    sizes = {name: int(str(kind[name])) for name in _SIZES}
    init.run(host, **sizes, late=late, mounts=mounts, nested=nested)


@contextlib.contextmanager
def _told(host: socket.socket) -> Iterator[None]:
    """In a child, around what does not return: what it fails in is told, and ends it."""
    try:
        yield
    except WallRefused as refused:
        control.tell(host, refused.report)
    except BaseException as error:
        control.tell(host, report("root", error))
        if not isinstance(error, OSError):
            traceback.print_exception(error)
    os._exit(1)


def _branch_off(
    message: Message, host: socket.socket | None, namespaces_of: list[int], *, late: tuple[str, ...], children: Children
) -> None:
    """A shell whose namespaces are nested in those of a session, by descriptors of its user and pid namespace."""
    assert host is not None
    kind, mounts = message["kind"], bool(message["mounts"])
    assert isinstance(kind, dict)

    def make() -> None:
        if children.fork() == 0:
            _make_nested(kind, host, namespaces_of, late=late, children=children, mounts=mounts)

    with host:
        Border(partial(control.tell, host)).carry_out("start", make)
    control.close_all(namespaces_of)


def _make_nested(
    kind: Message,
    host: socket.socket,
    namespaces_of: list[int],
    *,
    late: tuple[str, ...],
    children: Children,
    mounts: bool,
) -> None:
    """In a child: as `_make_shell`. Its step between is of the session's pid namespace, and so adopted by its init."""
    with _told(host):
        user, processes = namespaces_of
        namespaces.nest(user, processes, inside=SESSION_UID)
        os.close(user)
        os.close(processes)
        if os.fork() == 0:
            unshare(CLONE_NEWPID)
            if os.fork() == 0:
                _furnish(kind, host, late, children, mounts=mounts, nested=True)
        os._exit(0)


def _become_zygote(host: socket.socket, nursery: socket.socket, late: tuple[str, ...], boot: str) -> None:
    """In a child: a root like a session's, then a zygote in it, as another program if that has a file to `boot`.

    The first zygote is this copy of us, which saves an interpreter's start and a third of the imports. A later one,
    in the place of one that ended, is executed, so that it has nothing of what we have met since.
    """
    with _told(host):
        # opened here: where the host masks its /proc, the root entered next has none
        own = os.open("/proc/self/ns/pid", os.O_RDONLY)
        tasks = os.open("/proc/self/task", os.O_RDONLY | os.O_DIRECTORY)
        unshare(CLONE_NEWNS)
        entered = root.enter(disk_bytes=_SCRATCH_BYTES, files=_SCRATCH_FILES, late=late)
        if entered.processes >= 0:
            os.close(entered.processes)  # no worker is to inherit a way to see all processes
        if unread := unreadable():
            raise WallRefused("identity", f"{unread} cannot be read by the account that sessions run as", READABLE)
        if not boot:
            enter_packages()
            from cellblock.worker.family import zygote

            zygote.serve(host, nursery, own=own, tasks=tasks)
        passed = (host.fileno(), nursery.fileno(), own, tasks)
        for descriptor in passed:
            os.set_inheritable(descriptor, True)
        words = [sys.executable, "-s", "-P", "-S", boot, "zygote", *map(str, passed)]
        os.execv(sys.executable, words)  # noqa: S606 - that there is no shell is the point
