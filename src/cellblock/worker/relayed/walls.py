"""Walls that a worker in a container with a kernel of its own puts around itself, within that of the container.

Such a kernel may lack features of Linux: gVisor limits the size of the address space and not that of private memory,
and has no limit of priorities or pending signals that may be set. Features are tried first.
"""

from __future__ import annotations

import errno
import mmap
import resource

from cellblock.hosting.machine import MACHINE
from cellblock.walls import Applied, Unavailable
from cellblock.worker.confine import capabilities, rlimits, seccomp, syscalls
from cellblock.worker.confine.bpf import AUDIT_ARCH, Clause, Match, Rule, assemble
from cellblock.worker.confine.syscall_numbers import NUMBERS

_SIGNALS = "kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo"
_NOT_THE_RELAY = Clause((Match(0, (1,), negated=True),))
_FILE_SIZE = int(resource.RLIMIT_FSIZE)
_CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
_TRIED_BYTES = 64 * 2**20


def missing() -> list[str]:
    """Walls that the engine was asked for and that are not around this process."""
    found = []
    status = dict(line.split(":", 1) for line in _lines("/proc/self/status") if ":" in line)
    if any(int(status[name], 16) for name in _CAPABILITIES if name in status):
        found.append("dropping every capability")
    if syscalls.prctl(syscalls.PR_GET_NO_NEW_PRIVS) != 1:
        found.append("no-new-privileges")
    if any(line.partition(":")[0].strip() != "lo" for line in _lines("/proc/net/dev")[2:]):
        found.append("taking away the network")
    roots = [line.split()[3].split(",") for line in _lines("/proc/mounts") if line.split()[1] == "/"]
    if not roots or "ro" not in roots[-1]:
        found.append("a read-only root")
    return found


def _lines(path: str) -> list[str]:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()


def held_limit() -> int:
    """The limit of a process's memory that this kernel enforces: of private memory, or of its address space."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (rlimits.vm_data() + _TRIED_BYTES // 4, hard))
    try:
        mmap.mmap(-1, _TRIED_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError:
        return resource.RLIMIT_DATA
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
    return resource.RLIMIT_AS


def program() -> bytes:
    """The filter of `isolated` sessions; the relay gets no signals, and the limit that stops writing stays."""
    numbers, answers = NUMBERS[MACHINE], seccomp.policy(shared_memory=False)
    other = Match(1, (_FILE_SIZE,), negated=True)
    asks = (Clause((other, Match(2, (0,)))), Clause((other, Match(2, (0,), upper=True))))
    more: dict[str, Rule] = dict.fromkeys(_SIGNALS.split(), (_NOT_THE_RELAY,))
    more |= {"setrlimit": (Clause((Match(0, (_FILE_SIZE,), negated=True),)),), "prlimit64": asks}
    for name, clauses in more.items():
        before = answers.get(name, errno.ENOSYS)
        if isinstance(before, tuple):
            answers[name] = (*before, *clauses)
        elif before == 0:  # else it is refused already
            answers[name] = clauses
    return assemble(AUDIT_ARCH[MACHINE], {numbers[name]: answer for name, answer in answers.items() if name in numbers})


def confine(limits: dict[str, int], *, memory: int, program: bytes, alone: bool) -> list[Applied | Unavailable]:
    """Put the walls up, the system call filter last. `memory` is the limit that `held_limit` found.

    Not `alone`: this kernel is the host's, which counts the processes of all containers of an account together; then
    the container's own limit holds.
    """
    return [_limit(limits, memory, alone=alone), capabilities.apply(), seccomp.apply(program)]


def _limit(limits: dict[str, int], memory: int, *, alone: bool) -> Applied | Unavailable:
    held = rlimits.vm_data() if memory == resource.RLIMIT_DATA else rlimits.vm_data(b"VmSize:")
    most = held + limits["memory_bytes"]
    wanted = {
        "data" if memory == resource.RLIMIT_DATA else "address space": (
            memory,
            most,
            most + rlimits.DATA_HEADROOM_BYTES,
        ),
        "file size": (resource.RLIMIT_FSIZE, limits["file_bytes"], limits["file_bytes"]),
        "open files": (resource.RLIMIT_NOFILE, limits["open_files"], limits["open_files"]),
        "core": (resource.RLIMIT_CORE, rlimits.CORE_BYTES, rlimits.CORE_BYTES),
        "stack": (resource.RLIMIT_STACK, rlimits.STACK_BYTES, rlimits.STACK_CEILING_BYTES),
    }
    if alone:
        wanted["processes"] = (resource.RLIMIT_NPROC, limits["processes"], limits["processes"])
    try:
        shown = ", ".join(f"{name} {rlimits.lower(*limit)}" for name, limit in wanted.items())
    except (OSError, ValueError) as error:
        return Unavailable(
            mechanism=rlimits.MECHANISM, reason=str(error), remedy="use another runtime: runc, or a newer runsc"
        )
    return Applied(mechanism=rlimits.MECHANISM, detail=f"{shown} (includes a baseline of {held})")
