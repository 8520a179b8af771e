"""The host's hold on the porter, the program that copies mounts for sessions; see `worker.porter`."""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import socket
from collections.abc import Mapping, Sequence

from cellblock.errors import IsolationUnavailable, MountRefused
from cellblock.executors.process.launching import await_end, start
from cellblock.executors.process.mounts import Mount
from cellblock.executors.process.stopped import go_on
from cellblock.hosting.account import SANDBOX_UID
from cellblock.hosting.forks import Lock, emptied, watch_forks
from cellblock.hosting.waiting import ready
from cellblock.walls import Applied
from cellblock.worker import control
from cellblock.worker.confine import namespaces

_SECONDS = 30
_READERS = f"cells read it as the account {SANDBOX_UID}, which owns nothing: let all users read it"


class Porter:
    """A running porter. All methods may be called from any thread."""

    def __init__(self, python: str) -> None:
        self._channel, end = control.pair()
        watch_forks(self._channel)
        with end:
            self._process = start(python, "porter", [end])

    @property
    def alive(self) -> bool:
        """True if it can be asked."""
        return self._process.poll() is None

    def fetch(self, mount: Mount) -> tuple[int, bool]:
        """A descriptor of the tree, to be moved into a session, and whether its files have no owner. Blocks.

        A tree that is not read-only all over is never given.
        """
        answer, end = control.pair()
        with answer:
            with end:
                request = {"path": mount.path, "device": mount.device, "inode": mount.inode}
                control.send(self._channel, request, [end.fileno()])
            for _ in range(_SECONDS):
                if ready(answer, seconds=1.0):
                    break
                go_on(self._process.pid, "the process that fetches mounts", generations=1)
            else:
                raise _refused(mount, f"no answer in {_SECONDS} s", "its file system may hang")
            reply, descriptors = control.receive(answer)
        if reply is None:
            raise _refused(mount, "the process that fetches it ended", "see what it said on stderr")
        if "failed" in reply:
            raise _failure(mount, int(str(reply["failed"])), str(reply["reason"]))
        (tree,) = descriptors
        shut = os.ST_RDONLY | os.ST_NOSUID | os.ST_NODEV
        if os.fstatvfs(tree).f_flag & shut != shut:
            os.close(tree)
            raise _refused(mount, "it would not be read-only", "report this, with the kernel's version")
        return tree, bool(reply["ownerless"])

    def close(self) -> None:
        """End it."""
        self._channel.close()
        await_end(self._process)


def _failure(mount: Mount, number: int, reason: str) -> Exception:
    if number == errno.EPERM:
        return IsolationUnavailable(
            f"mounts: the system does not let this user copy a mount: {reason}",
            mechanism="mounts",
            hint=namespaces.REMEDY,
        )
    return _refused(mount, reason, "")


def _refused(mount: Mount, reason: str, hint: str) -> MountRefused:
    return MountRefused(f"mounts[{mount.name!r}]: {mount.path!r} cannot be mounted: {reason}", hint=hint)


def send_trees(mounts: Sequence[Mount], python: str, init: socket.socket) -> tuple[Applied, ...]:
    """Have each mount fetched and give it to a session's first process, which waits for it. Blocks.

    What was applied is so once that process says that it is ready.
    """
    porter = porter_of(python)
    trees: list[int] = []
    owned = []
    try:
        for mount in mounts:
            tree, ownerless = porter.fetch(mount)
            trees.append(tree)
            if mount.is_directory and not ownerless:
                owned.append(mount.name)
        with contextlib.suppress(BrokenPipeError):  # it has ended, and has said why
            control.send(init, {"places": [mount.place for mount in mounts]}, trees)
    finally:
        for tree in trees:
            os.close(tree)
    detail = f"read-only, nosuid, nodev: {', '.join(mount.name for mount in mounts)}"
    if owned:
        detail += f"; not walled: sockets and pipes that appear in {', '.join(owned)} later"
    return (Applied(mechanism="mounts", detail=detail),)


def unplaced(mounts: Sequence[Mount], report: Mapping[str, object]) -> MountRefused:
    """Error for the mounts that a session's first process reports as failed."""
    path, reason = str(report["place"]), str(report["reason"])
    for mount in mounts:
        if mount.place == path:
            if report["readable"]:
                return _refused(mount, reason, "give it another name")
            return _refused(mount, reason, _READERS if os.getuid() == 0 else "cells read it as the user that you are")
    return MountRefused(f"mounts: {path!r}: {reason}", hint="give other names")


_porters: dict[str, Porter] = emptied({})
_starting = Lock()


def porter_of(python: str) -> Porter:
    """The porter that this interpreter runs, started if there is none that lives."""
    with _starting:
        porter = _porters.get(python)
        if porter is not None and not porter.alive:
            porter.close()
            porter = None
        if porter is None:
            porter = _porters[python] = Porter(python)
        return porter


@atexit.register
def _close_all() -> None:
    while _porters:
        with contextlib.suppress(OSError):
            _porters.popitem()[1].close()
