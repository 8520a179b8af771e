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
from typing import NoReturn

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
from cellblock.worker.forks import fork
from cellblock.worker.init import process as init

SESSION_UID = 1000
_SCRATCH_BYTES = 256 * 2**20
_SCRATCH_FILES = 4096
_SIZES = ("disk_bytes", "files", "memory_bytes", "checkpoint_bytes", "door")
"""Sizes of a kind of session that concern its init."""


class Nursery:
    """Makes a zygote for `first`, then what each message asks for. `boot` is the file that later zygotes start with.

    `{"make": "shell"}` has the kind of session, and init's control channel; `{"make": "zygote"}` the zygote's;
    `{"make": "spares"}` the kind, how many, and perhaps a channel to say on that they are there.
    """

    def __init__(self, channel: socket.socket, first: socket.socket, *, late: tuple[str, ...], boot: str) -> None:
        self._channel = channel
        self._late = late
        self._boot = boot
        self._children = Children(channel)
        self._spares = Spares(self._children, self._make_shell)
        self._children.hold(channel.close, self._spares.close)
        with first:
            self._start_zygote(first, "")

    def serve(self, idle_seconds: float) -> NoReturn:
        """Until the host is gone, or no session has lived for so long."""
        border = Border(partial(control.tell, self._channel))
        readable = select.poll()
        readable.register(self._channel, select.POLLIN)
        readable.register(self._spares, select.POLLIN)
        while True:
            pause = min(self._spares.work(), self._children.left(idle_seconds))
            ready = [descriptor for descriptor, _ in readable.poll(max(0.0, pause) * 1e3)]
            if not ready and self._children.left(idle_seconds) <= 0:
                os._exit(0)
            if self._spares.fileno() in ready:
                border.carry_out("take in", self._take_in)
            if self._channel.fileno() in ready:
                border.carry_out("receive", self._obey)

    def _take_in(self) -> None:
        for kind, waiting in self._spares.take_in():
            self._carry_out({"make": "shell", "kind": kind, "mounts": False, "spare": False}, waiting, [])

    def _obey(self) -> None:
        """Do what the next message asks for; who is to hear of it is told of a failure."""
        received, descriptors = control.receive(self._channel)
        if received is None:
            os._exit(0)
        host = sockets.adopted(descriptors[0]) if descriptors else None
        self._carry_out(received, host, descriptors[1:])
        control.close_all(descriptors[1:])

    def _carry_out(self, message: Message, host: socket.socket | None, more: list[int]) -> None:
        match message:
            case {"make": "spares", "kind": dict(kind), "count": int(count)}:
                self._spares.keep(kind, count, host)
                return
            case {"make": "spare", "kind": dict(kind), "seconds": float(seconds)}:
                self._spares.keep_one(kind, seconds)
                return
        assert host is not None

        def make() -> None:
            match message:
                case {"make": "zygote"}:
                    self._start_zygote(host, self._boot)
                case {"make": "shell", "kind": dict(kind), "mounts": bool(mounts), "spare": bool(spare)}:
                    if not (spare and self._spares.hand_out(kind, host)):
                        self._children.fork(partial(self._make_shell, kind, host, mounts=mounts))
                case {"make": "branch", "kind": dict(kind), "mounts": bool(mounts)}:
                    self._children.fork(partial(self._make_nested, kind, host, more, mounts=mounts))

        with host:
            Border(partial(control.tell, host)).carry_out("start", make)

    def _start_zygote(self, host: socket.socket, boot: str) -> None:
        ours, theirs = control.pair()

        def become() -> None:
            ours.close()
            self._children.close()
            self._become_zygote(host, theirs, boot)

        with theirs:
            self._children.fork(become)
        self._spares.use(ours)

    def _make_shell(self, kind: Message, host: socket.socket, *, mounts: bool = False) -> None:
        """In a child: new namespaces, then their first process; this one is only the step between."""
        with _told(host):
            namespaces.split(inside=SESSION_UID)
            self._children.announce(fork(partial(self._furnish, kind, host, mounts=mounts, nested=False)))

    def _make_nested(self, kind: Message, host: socket.socket, namespaces_of: list[int], *, mounts: bool) -> None:
        """In a child: as `_make_shell`, in namespaces nested in those of a session, by descriptors of two of its own.

        Its step between is of the session's pid namespace, and so adopted by its init.
        """

        def step() -> None:
            with _told(host):
                unshare(CLONE_NEWPID)
                fork(partial(self._furnish, kind, host, mounts=mounts, nested=True))

        with _told(host):
            user, processes = namespaces_of
            namespaces.nest(user, processes, inside=SESSION_UID)
            os.close(user)
            os.close(processes)
            fork(step)

    def _furnish(self, kind: Message, host: socket.socket, *, mounts: bool, nested: bool) -> None:
        """In the first process of new namespaces: become a session's init. Does not return."""
        with _told(host):
            self._children.close()
            sizes = {name: int(str(kind[name])) for name in _SIZES}
            init.run(host, **sizes, late=self._late, mounts=mounts, nested=nested)

    def _become_zygote(self, host: socket.socket, nursery: socket.socket, boot: str) -> None:
        """In a child: a root like a session's, then a zygote in it, as another program if that has a file to `boot`.

        The first zygote is this copy of us, which saves an interpreter's start and a third of the imports. A later one,
        in the place of one that ended, is executed, so that it has nothing of what we have met since.
        """
        with _told(host):
            # opened here: where the host masks its /proc, the root entered next has none
            own = os.open("/proc/self/ns/pid", os.O_RDONLY)
            tasks = os.open("/proc/self/task", os.O_RDONLY | os.O_DIRECTORY)
            unshare(CLONE_NEWNS)
            entered = root.enter(disk_bytes=_SCRATCH_BYTES, files=_SCRATCH_FILES, late=self._late)
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


@contextlib.contextmanager
def _told(host: socket.socket) -> Iterator[None]:
    """In a child: what it fails in is told, and ends it."""
    try:
        yield
    except WallRefused as refused:
        control.tell(host, refused.report)
        os._exit(1)
    except BaseException as error:
        control.tell(host, report("root", error))
        if not isinstance(error, OSError):
            traceback.print_exception(error)
        os._exit(1)
