"""Fetches directories of the host for sessions: takes a path, gives a copy of its mount, attached nowhere, read-only.

A program of its own, which the host starts with the first session that has mounts. It stands outside of every
session and serves the host alone. It forks for each request; where its user may not copy mounts, the copy does so in
a user and mount namespace of its own, which is gone with it: nothing of the host stays mounted but what was asked for.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Mapping
from functools import partial

from cellblock.hosting import sockets
from cellblock.worker import control
from cellblock.worker.confine.syscalls import (
    AT_FDCWD,
    CLONE_NEWNS,
    CLONE_NEWUSER,
    MOUNT_ATTR_IDMAP,
    MOUNT_ATTR_NODEV,
    MOUNT_ATTR_NOSUID,
    MOUNT_ATTR_RDONLY,
    MS_PRIVATE,
    RESOLVE_NO_MAGICLINKS,
    RESOLVE_NO_SYMLINKS,
    mount_setattr,
    open_tree,
    openat2,
    unshare,
)
from cellblock.worker.forks import fork

_SHUT = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV
_NOBODY = 2**32 - 2
"""An id that no file has. A map of nothing else leaves every file of a mount without an owner."""


def serve(channel: socket.socket) -> None:
    """Answer each message until the host is gone. Never returns.

    A message carries `path`, free of links, the `device` and `inode` found there, and one descriptor: the channel
    for its answer, which is a tree, or why there is none.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    owners = _no_owners() if os.getuid() == 0 else None
    while True:
        request, descriptors = control.receive(channel)
        if request is None:
            os._exit(0)
        fork(partial(_answer, channel, descriptors[0], request, owners))
        for descriptor in descriptors:
            os.close(descriptor)


def _answer(channel: socket.socket, answers: int, request: Mapping[str, object], owners: int | None) -> None:
    """In a child."""
    channel.close()
    host = sockets.adopted(answers)
    try:
        tree, ownerless = _fetch(request, owners)
    except OSError as error:
        control.tell(host, {"failed": error.errno, "reason": error.strerror or str(error)})
    else:
        control.tell(host, {"ownerless": ownerless}, [tree])


def _fetch(request: Mapping[str, object], owners: int | None) -> tuple[int, bool]:
    """The tree, and whether its files have no owner: then nobody but root may write to a socket or pipe in it.

    Private, so that what the host mounts or unmounts there later does not reach it.
    """
    try:
        tree = _copy(request)
    except PermissionError:
        unshare(CLONE_NEWUSER | CLONE_NEWNS)
        tree = _copy(request)
    if owners is not None:
        with contextlib.suppress(OSError):  # a file system that cannot, or a root without the right: said in the answer
            mount_setattr(
                "", _SHUT | MOUNT_ATTR_IDMAP, recursive=True, directory=tree, propagation=MS_PRIVATE, userns=owners
            )
            return tree, True
    mount_setattr("", _SHUT, recursive=True, directory=tree, propagation=MS_PRIVATE)
    return tree, False


def _copy(request: Mapping[str, object]) -> int:
    path = str(request["path"])
    place = openat2(AT_FDCWD, path, os.O_PATH | os.O_CLOEXEC, resolve=RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
    found = os.fstat(place)
    if (found.st_dev, found.st_ino) != (request["device"], request["inode"]):
        raise FileNotFoundError(2, "it was replaced meanwhile")
    return open_tree(place)


def _no_owners() -> int | None:
    """A user namespace for mounts whose files are to have no owner; None where root may not make one."""
    ready, told = os.pipe()
    held, holds = os.pipe()

    def hold() -> None:
        os.close(holds)
        with contextlib.suppress(OSError):
            unshare(CLONE_NEWUSER)
            os.write(told, b"1")
            os.read(held, 1)  # its end: nobody has to be allowed to end this process

    holder = fork(hold)
    os.close(told)
    os.close(held)
    try:
        if not os.read(ready, 1):
            return None
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/{holder}/{name}", "w", encoding="ascii") as table:
                table.write(f"{_NOBODY} {_NOBODY} 1")
        return os.open(f"/proc/{holder}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    finally:
        os.close(ready)
        os.close(holds)
