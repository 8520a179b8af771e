"""Starts a family: a nursery behind walls of its own, which makes the zygotes and the sessions of a profile.

Runs once, as the program the host executes. Started as root it gives root up before anything else runs: the
interpreter is told to leave out `site`, which would execute what its environment's `.pth` files say.
"""

from __future__ import annotations

import errno
import os
import signal
import socket

from cellblock.hosting.account import SANDBOX_UID, is_mapped
from cellblock.worker import control
from cellblock.worker.border import report
from cellblock.worker.confine import layout, namespaces, root
from cellblock.worker.confine.refusal import WallRefused
from cellblock.worker.confine.syscalls import CLONE_NEWNS, PR_SET_DUMPABLE, PR_SET_PDEATHSIG, prctl, unshare
from cellblock.worker.family.nursery import Nursery
from cellblock.worker.forks import fork

_OUTSIDE = "open sessions outside of it"


def launch(
    channel: socket.socket, zygote_channel: socket.socket, idle_seconds: float, expose: str, *, boot: str
) -> None:
    """Wall this process in, become a nursery's parent, and wait for its end. Never returns.

    `expose` is seen by sessions besides what the interpreter needs. The channel takes what failed; then it is the
    nursery's, which makes a zygote for the other one at once. `boot` is the file that later zygotes start with.
    """
    seen = layout.exposure([expose])
    try:
        _wall_in(seen)
    except WallRefused as refused:
        control.send(channel, refused.report)
        os._exit(1)

    def serve() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        Nursery(channel, zygote_channel, late=seen.late, boot=boot).serve(idle_seconds)

    try:
        first = fork(serve)
    except OSError as error:
        control.send(channel, report("start", error))
        os._exit(1)
    channel.close()
    zygote_channel.close()
    os._exit(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) & 0xFF)


def _wall_in(seen: layout.Exposure) -> None:
    """Give up root, enter namespaces of our own, and leave the host's file system behind.

    As root the tree is built first: root can reach an interpreter under a home that only root may enter,
    the account that sessions run as cannot. A root that may not mount (in a container, say) goes the way of an
    ordinary user.
    """
    built = False
    if os.getuid() == 0 and is_mapped(SANDBOX_UID):
        if _own_mounts():
            _build(seen)
            built = True
        os.setgroups([])
        os.setresgid(SANDBOX_UID, SANDBOX_UID, SANDBOX_UID)
        os.setresuid(SANDBOX_UID, SANDBOX_UID, SANDBOX_UID)
        prctl(PR_SET_DUMPABLE, 1)  # a change of user clears it, and /proc/self would belong to root
    namespaces.split(inside=0)
    if not built:
        _build(seen)


def _own_mounts() -> bool:
    """Enter a mount namespace of our own, if we may."""
    try:
        unshare(CLONE_NEWNS)
    except PermissionError:
        return False
    return True


def _build(seen: layout.Exposure) -> None:
    try:
        root.build(seen)
    except OSError as error:
        remedy = "use Linux 5.12 or newer" if error.errno in (errno.ENOSYS, errno.EINVAL) else ""
        if error.errno == errno.EPERM:
            remedy = f"{namespaces.REMEDY}; a Landlock domain around this program refuses mounts as well: {_OUTSIDE}"
        elif error.errno == errno.EACCES:
            remedy = f"use an interpreter that an ordinary user may read, or {namespaces.REMEDY}"
        raise WallRefused("root", str(error), remedy) from error
