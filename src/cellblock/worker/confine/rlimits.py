"""Resource limits of one process: private memory, processes, file size, descriptors, core dumps, locked
memory, stack, pending signals.

What they do not count: RLIMIT_DATA sees private writable memory of each process alone, so shared mappings,
memfds, tmpfs files, pages written through `/proc/self/mem`, and the sum over processes need other walls. A
thread's stack (8 MiB of address space) counts as private memory when it is mapped, touched or not.
"""

import resource

from cellblock.walls import Applied

MECHANISM = "rlimits"

DATA_HEADROOM_BYTES = 32 << 20
LOADING_TIMES = 2
"""A session that is loaded may take so many times its memory limit more: a text is there as it is, and as UTF-8."""
OOM_SCORE = 500  # as if half of all memory were its own
MEMLOCK_BYTES = 64 << 10
PENDING_SIGNALS = 1024  # a timer counts as one; the kernel counts them by the host's user as well, for all sessions
CORE_BYTES = 1  # 0 would still start the host's crash handler, where core_pattern names one; 1 does not
_RLIMIT_NICE = 13  # of Linux, on x86_64 and aarch64; the library has no name for it
STACK_BYTES = 8 << 20
STACK_CEILING_BYTES = 64 << 20  # growing stacks are outside RLIMIT_DATA, and an exec honours any soft limit below this


def apply(
    *,
    data_bytes: int,
    processes: int,
    file_bytes: int,
    open_files: int | None,
    processes_headroom: int = 0,
    data_headroom_bytes: int = DATA_HEADROOM_BYTES,
    baseline_bytes: int | None = None,
) -> Applied:
    """Set the limits of this process and, by inheritance, of each process it starts.

    `data_bytes` counts above `baseline_bytes`, by default what `vm_data` reads now. The hard limit lies
    `data_headroom_bytes` higher: a runtime that met the soft limit may raise it so far to report its
    MemoryError. `processes` counts every process and thread of the user id in its user namespace, and host
    root is exempt from it; the hard limit lies `processes_headroom` higher.

    A hard limit that already is lower stays, and caps the soft one. Without `open_files` that limit is still to come:
    see `limit_open_files`.
    """
    baseline = vm_data() if baseline_bytes is None else baseline_bytes
    data = baseline + data_bytes
    wanted = {
        "data": (resource.RLIMIT_DATA, data, data + data_headroom_bytes),
        "processes": (resource.RLIMIT_NPROC, processes, processes + processes_headroom),
        "file size": (resource.RLIMIT_FSIZE, file_bytes, file_bytes),
        **({} if open_files is None else {"open files": (resource.RLIMIT_NOFILE, open_files, open_files)}),
        "core": (resource.RLIMIT_CORE, CORE_BYTES, CORE_BYTES),
        "locked": (resource.RLIMIT_MEMLOCK, MEMLOCK_BYTES, MEMLOCK_BYTES),
        "stack": (resource.RLIMIT_STACK, STACK_BYTES, STACK_CEILING_BYTES),
        "pending signals": (resource.RLIMIT_SIGPENDING, PENDING_SIGNALS, PENDING_SIGNALS),
        "priority": (_RLIMIT_NICE, 0, 0),  # what was made nice stays so
    }
    score = _be_killed_first()
    in_force = {name: lower(*limit) for name, limit in wanted.items()} | {"out of memory": score}
    shown = ", ".join(f"{name} {value}" for name, value in in_force.items())
    return Applied(mechanism=MECHANISM, detail=f"{shown} (data includes a baseline of {baseline})")


def limit_open_files(count: int) -> int:
    """The limit of descriptors; the soft one now in force.

    The kernel lets a process send none while all of its user's that are under way are more than this limit, and
    sessions are of one user: what has to be sent is sent before.
    """
    return lower(resource.RLIMIT_NOFILE, count, count)


def _be_killed_first() -> int:
    """Have the kernel kill this process before its host and init where memory runs out.

    What it starts inherits that, and behind Landlock nothing can take it back. The score that is in force.
    """
    try:
        with open("/proc/self/oom_score_adj", "r+b", buffering=0) as file:
            score = max(int(file.read()), OOM_SCORE)
            file.write(b"%d" % score)
            return score
    except OSError:  # where the host masks /proc
        return 0


def vm_data(line: bytes = b"VmData:") -> int:
    """The private writable memory that RLIMIT_DATA counts here, or what another line of its status says, in bytes.

    0 where `/proc` is not readable.
    """
    try:
        with open("/proc/self/status", "rb") as status:
            for text in status:
                if text.startswith(line):
                    return int(text.split()[1]) * 1024
    except OSError:
        return 0
    return 0


def lower(limit: int, soft: int, hard: int) -> int:
    """Set a limit, never above the hard limit there was, and return the soft limit now in force."""
    _, hard_before = resource.getrlimit(limit)
    hard_after = hard if hard_before == resource.RLIM_INFINITY else min(hard, hard_before)
    soft_after = min(soft, hard_after)
    resource.setrlimit(limit, (soft_after, hard_after))
    return soft_after
