"""The walls that a worker without namespaces puts around itself."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket

from cellblock.hosting.machine import DEVICES
from cellblock.hosting.waiting import ready
from cellblock.walls import Applied, Unavailable
from cellblock.worker import control
from cellblock.worker.confine import capabilities, landlock, rlimits, seccomp, syscalls
from cellblock.worker.confine.bpf import length
from cellblock.worker.forks import fork
from cellblock.worker.reduced import accounts
from cellblock.worker.reduced.accounts import Account
from cellblock.worker.reduced.sight import WRITABLE_DEVICES, Sight

SCOPED_ABI = 6
"""The Landlock ABI from which on signals stay in a domain."""

_LIMITING_SECONDS = 0.5


def outer() -> None:
    """Around the keeper and all it starts: signals go no further than this domain."""
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    ruleset = syscalls.landlock_create_ruleset(filesystem=landlock.REFER, scopes=landlock.SCOPE_SIGNAL)
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        syscalls.landlock_add_path(ruleset, root, landlock.REFER)  # moving files, which any domain denies otherwise
        syscalls.landlock_restrict_self(ruleset)
    finally:
        os.close(root)
        os.close(ruleset)


def settle(account: Account | None) -> None:
    """In a worker's process, before anything else: take its account, be readable to the keeper, and end with it."""
    if account is not None:
        accounts.become(account)
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)  # also cleared by a change of user
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)


def confine(
    limits: dict[str, int], *, sight: Sight, account: Account | None, program: bytes, keeper: socket.socket
) -> list[Applied | Unavailable]:
    """Put the walls up, the system call filter last, and hand its listener to the keeper."""
    whom = "the host's own user" if account is None else f"user {account.session}, of this session alone"
    walls: list[Applied | Unavailable] = [Applied(mechanism="identity", detail=whom)]
    walls += [
        rlimits.apply(
            data_bytes=limits["memory_bytes"],
            processes=limits["processes"] + (0 if account else threads_of(os.getuid())),
            file_bytes=limits["file_bytes"],
            open_files=limits["open_files"],
        ),
        capabilities.apply(),
        landlock.apply(
            read_only=[*sight.trees, *DEVICES], read_write=sight.own, files=WRITABLE_DEVICES, connect_ports=()
        ),
    ]
    try:
        listener = syscalls.seccomp_install(program, listener=True)
    except OSError as error:
        remedy = "use Linux 5.5 or newer, and an outer sandbox that has no seccomp listener of its own"
        return [*walls, Unavailable(mechanism=seccomp.MECHANISM, reason=str(error), remedy=remedy)]
    control.send(keeper, {"listener": True}, [listener])
    os.close(listener)
    keeper.close()
    return [
        *walls,
        Applied(mechanism=seccomp.MECHANISM, detail=f"{length(program)} instructions; no sockets"),
        _attended(sight),
    ]


def _attended(sight: Sight) -> Applied | Unavailable:
    """Check that the keeper answers: it sees what is ours, and not what is not."""
    try:
        os.stat(sight.own[0])
    except OSError as error:
        return Unavailable(
            mechanism="metadata",
            reason=f"the keeper cannot answer for a worker: {error.strerror}",
            remedy="allow a process to read the memory of its children: kernel.yama.ptrace_scope below 2, "
            "and in a container a seccomp and an AppArmor profile that allow openat2 and /proc/PID/mem",
        )
    try:
        os.stat(f"/proc/{os.getpid()}")
    except FileNotFoundError:
        return Applied(mechanism="metadata", detail="questions about paths are answered by the keeper")
    return Unavailable(mechanism="metadata", reason="the keeper is not asked", remedy="report this")


def threads_of(user: int) -> int:
    """Number of processes and threads of a user: a limit on their number counts all of them."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/status", "rb") as file:
                fields = dict(line.split(b":", 1) for line in file.read().splitlines())
                if int(fields[b"Uid"].split()[0]) == user:
                    count += int(fields[b"Threads"])
    return count


def stop_writing(processes: list[int], most: int | None, *, account: Account | None) -> None:
    """Set the size that files may get for processes of the session, `most` None for what their hard limit says.

    With an account of its own, only a process of that account may: a child does, which is not waited for longer than
    it needs, as without a scope the session may stop it.
    """
    if account is None:
        _limit_files(processes, most)
        return

    def limit() -> None:
        accounts.become(account)
        _limit_files(processes, most)

    child = fork(limit)
    end = os.pidfd_open(child)
    ready(end, seconds=_LIMITING_SECONDS)
    os.close(end)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _limit_files(processes: list[int], most: int | None) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            _, hard = resource.prlimit(process, resource.RLIMIT_FSIZE)
            soft = hard if most is None else most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.prlimit(process, resource.RLIMIT_FSIZE, (soft, hard))
