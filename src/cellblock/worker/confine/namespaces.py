"""Namespaces: each session has its own user, mount, pid, network, ipc and uts namespace."""

from __future__ import annotations

import fcntl
import os
import socket
import struct

from cellblock.worker.confine.refusal import WallRefused
from cellblock.worker.confine.syscalls import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    unshare,
)

ALL = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS
ROOM = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS
"""What a process joins of an existing session; its pid namespace only takes children."""

_SIOCSIFFLAGS, _IFF_UP, _IFF_RUNNING = 0x8914, 0x1, 0x40
REMEDY = (
    '`cellblock doctor` prints what to do on this machine, and whether walls="reduced", which goes without, works: '
    "user namespaces must be allowed, by sysctl (user.max_user_namespaces, kernel.unprivileged_userns_clone), by "
    "AppArmor and, in a container, by its seccomp profile, with mounts in them"
)


def split(*, inside: int) -> None:
    """Put this process into new namespaces, its user mapped to `inside`; its next child is their first process."""
    uid, gid = os.getuid(), os.getgid()
    try:
        unshare(ALL)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{inside} {uid} 1")
        _write("/proc/self/gid_map", f"{inside} {gid} 1")
    except OSError as error:
        raise WallRefused("namespaces", str(error), REMEDY) from error


def name_host(name: str) -> str:
    """Give this process's uts namespace a host name; "", or why it keeps the one it was made with.

    Podman's own seccomp profile allows all that a session needs but this. The name is one of a container's then.
    """
    try:
        socket.sethostname(name)
    except PermissionError:
        return ", host name as outside (sethostname is refused)"
    return ""


def raise_loopback() -> None:
    """Bring `lo` up in this process's network namespace: a session may talk to itself and to nothing else."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("16sh14x", b"lo", _IFF_UP | _IFF_RUNNING)
        fcntl.ioctl(probe, _SIOCSIFFLAGS, request)


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
