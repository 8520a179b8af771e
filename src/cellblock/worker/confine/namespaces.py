"""Namespaces: each session has its own user, mount, pid, network, ipc and uts namespace."""

from __future__ import annotations

import errno
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
    PR_SET_DUMPABLE,
    prctl,
    setns,
    unshare,
)

ALL = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS
ROOM = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS
"""Namespaces of an existing session that a process joins; its pid namespace only takes children."""
DOORS = (CLONE_NEWUSER, CLONE_NEWPID)
ROOMS = (CLONE_NEWNS, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS)
"""Of a branch: what the process that leads into it enters, and what the branch's own enters once it is there."""

_WAITING = 128
_SIOCSIFFLAGS, _IFF_UP, _IFF_RUNNING = 0x8914, 0x1, 0x40
REMEDY = (
    '`cellblock doctor` prints what to do on this machine, and whether walls="reduced", which goes without, works: '
    "user namespaces must be allowed, by sysctl (user.max_user_namespaces, kernel.unprivileged_userns_clone), by "
    "AppArmor and, in a container, by its seccomp profile, with mounts in them"
)


_FULL = (
    "`cellblock doctor` prints which: no limit of them may be 0, or reached: sysctl user.max_user_namespaces, "
    "user.max_mnt_namespaces, user.max_pid_namespaces, user.max_net_namespaces, "
    "user.max_ipc_namespaces, user.max_uts_namespaces"
)


def split(*, inside: int) -> None:
    """Put this process into new namespaces, its user mapped to `inside`; its next child is their first process."""
    uid, gid = os.getuid(), os.getgid()
    try:
        unshare(ALL)
        _map(inside, uid, gid)
    except OSError as error:
        raise _refused(error) from error


NAMES = ("user", "pid", "mnt", "net", "ipc", "uts")


def opened() -> list[int]:
    """Descriptors of this process's namespaces, as `NAMES` lists them."""
    return [os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in NAMES]


def nest(user: int, processes: int, *, inside: int) -> None:
    """Put this process into new namespaces within those of a session, but for the pid namespace, of which its next
    child is to make the new one: only within its own can a process make one.

    None of the session's processes can look into this one meanwhile, as it stays outside of their pid namespace; and
    not into what it forks, which is not dumpable.
    """
    try:
        setns(processes, CLONE_NEWPID)
        setns(user, CLONE_NEWUSER)
        uid, gid = os.getuid(), os.getgid()
        unshare(ALL & ~CLONE_NEWPID)
        prctl(PR_SET_DUMPABLE, 1)  # else its own map would not be its own to write
        _map(inside, uid, gid)
        prctl(PR_SET_DUMPABLE, 0)
    except OSError as error:
        raise _refused(error) from error


def _refused(error: OSError) -> WallRefused:
    if error.errno == errno.ENOSPC:  # the kernel's answer where there are as many as there may be
        return WallRefused("namespaces", "there may be no more namespaces of some kind", _FULL)
    return WallRefused("namespaces", str(error), REMEDY)


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


def listening(port: int) -> socket.socket:
    """A socket that listens on a port of this network namespace's loopback. Nothing else in it can take that port."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", port))
    listener.listen(_WAITING)
    return listener


def _map(inside: int, uid: int, gid: int) -> None:
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{inside} {uid} 1")
    _write("/proc/self/gid_map", f"{inside} {gid} 1")


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
