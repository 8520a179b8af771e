"""The system call filter: which kernel calls code inside the walls may make, and what the others answer.

The policy is data. Each call the kernel knows stands in one table: ALLOWED, REFUSED (EPERM: known, and not
for this code), ABSENT (ENOSYS: the caller falls back as on an older kernel) or a rule over its arguments. A
call that no table names answers ENOSYS. Another architecture's calls kill the process, and x32 calls answer
ENOSYS.

A classic BPF program sees registers, never memory: a call that hides its arguments behind a pointer (clone3,
openat2) cannot be judged and is ABSENT. The kernel reads `int` arguments from the low 32 bits, and so do the
tests here.
"""

import errno
import os
import socket
from collections.abc import Mapping

from cellblock.hosting.machine import MACHINE
from cellblock.walls import Applied, Unavailable
from cellblock.worker.confine import syscalls
from cellblock.worker.confine.bpf import AUDIT_ARCH, IGNORED, SUPERVISED, Clause, Match, Rule, assemble, length
from cellblock.worker.confine.syscall_numbers import NUMBERS

MECHANISM = "seccomp"

AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
DEFAULT_FAMILIES = frozenset({AF_UNIX, AF_INET, AF_INET6})

ALLOWED: Mapping[str, str] = {
    "reading and writing": """read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek
        copy_file_range readahead fadvise64""",
    "descriptors": """close dup dup2 dup3 flock pipe pipe2 eventfd eventfd2 signalfd
        signalfd4 timerfd_create timerfd_settime timerfd_gettime poll ppoll select pselect6 epoll_create
        epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2""",
    "files": """stat fstat lstat newfstatat statx statfs fstatfs access faccessat faccessat2 getdents
        getdents64 readlink readlinkat getcwd chdir fchdir rename renameat renameat2 rmdir link linkat unlink
        unlinkat symlink symlinkat truncate ftruncate fallocate fsync fdatasync sync_file_range
        umask chown fchown lchown fchownat utime utimes futimesat utimensat setxattr lsetxattr fsetxattr
        getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr
        setxattrat getxattrat listxattrat removexattrat""",
    "memory": """brk mprotect munmap mremap mincore msync mlock mlock2 munlock mlockall munlockall
        membarrier get_mempolicy pkey_alloc pkey_free pkey_mprotect map_shadow_stack mseal""",
    "processes and threads": """fork vfork execve execveat exit exit_group wait4 waitid gettid getpid getppid
        getpgid getpgrp setpgid getsid setsid set_tid_address set_robust_list get_robust_list rseq arch_prctl
        futex futex_waitv futex_wake futex_wait futex_requeue restart_syscall pidfd_open""",
    "signals": """rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigsuspend
        sigaltstack pause alarm""",
    "time": """nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time times getitimer
        setitimer timer_create timer_settime timer_gettime timer_getoverrun timer_delete""",
    "scheduling": """sched_yield sched_getaffinity sched_getparam sched_getscheduler
        sched_getattr sched_get_priority_max sched_get_priority_min sched_rr_get_interval getpriority
        ioprio_get getcpu""",
    "identity, which the kernel lets a process without capabilities only lower": """getuid geteuid getgid
        getegid getresuid getresgid getgroups setuid setgid setreuid setregid setresuid setresgid setgroups
        setfsuid setfsgid capget capset""",
    "the system and limits": "uname sysinfo getrandom getrusage getrlimit",
    "sockets": """connect accept accept4 bind listen shutdown getsockname getpeername getsockopt
        recvfrom recvmsg recvmmsg""",
}
"""Purpose to the names of the calls that are allowed with any arguments."""

REFUSED: Mapping[str, str] = {
    "watches, of which one user has 128 in all": "inotify_init inotify_init1 inotify_add_watch inotify_rm_watch",
    "other processes": """ptrace process_vm_readv process_vm_writev pidfd_getfd process_madvise
        process_mrelease kcmp sched_setscheduler sched_setparam sched_setattr ioprio_set""",
    "the pages of other processes and of nodes": """mbind set_mempolicy set_mempolicy_home_node migrate_pages
        move_pages""",
    "mounts and roots": """mount umount2 pivot_root chroot open_tree open_tree_attr move_mount mount_setattr
        fsopen fsconfig fsmount fspick statmount listmount""",
    "namespaces": "unshare setns listns sethostname setdomainname",
    "files by handle, and watching whole mounts": """name_to_handle_at open_by_handle_at fanotify_init
        fanotify_mark""",
    "kernel programs, tracing, keys": """bpf perf_event_open userfaultfd add_key request_key keyctl
        lsm_set_self_attr lsm_get_self_attr lsm_list_modules""",
    "a second filter, which could tell the runtime that a call it relies on succeeded": "seccomp",
    "queues that run calls this filter would not see": """io_uring_setup io_uring_enter io_uring_register
        io_setup io_destroy io_submit io_cancel io_getevents io_pgetevents""",
    "memory out of sight": "memfd_secret vmsplice tee remap_file_pages",
    "System V and POSIX queues, which outlive a process": """shmget shmat shmctl shmdt semget semop semctl
        semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify
        mq_getsetattr""",
    "the machine": """init_module finit_module delete_module create_module query_module get_kernel_syms
        kexec_load kexec_file_load reboot swapon swapoff syslog acct quotactl quotactl_fd vhangup iopl ioperm
        modify_ldt""",
    "the clock": "clock_settime clock_adjtime settimeofday adjtimex",
}
"""Reasons, with the names of the calls that answer EPERM."""

ABSENT: Mapping[str, str] = {
    "arguments behind a pointer": "clone3 openat2 file_setattr file_getattr",
    "the page cache, shared with other sessions": "cachestat",
    "rule sets, whose rules no limit counts": "landlock_create_ruleset landlock_add_rule landlock_restrict_self",
    "without a caller on these machines": """uselib ustat sysfs _sysctl nfsservctl lookup_dcookie getpmsg
        putpmsg afs_syscall tuxcall security vserver epoll_ctl_old epoll_wait_old set_thread_area
        get_thread_area""",
}
"""Why to the names of the calls that answer ENOSYS although the kernel may have them."""

_SETUID_AND_SETGID = 0o6000
_O_CREAT_OR_O_TMPFILE = 0o100 | 0o20000000  # without either, open ignores its mode argument
_S_IFMT = 0o170000
_ANY_BUT_DEVICES = (0, 0o100000, 0o010000, 0o140000)  # a regular file (both spellings), a fifo, a socket
_CLONE_NEW_ANY = 0x7E020000
_CLONE_PARENT = 0x8000  # would make the child one of a process outside the session
_CLONE_FILES, _CLONE_THREAD = 0x400, 0x10000
_CLOSE_RANGE_UNSHARE = 0x2
_TIOCSTI, _TIOCLINUX, _TIOCSETD = 0x5412, 0x541C, 0x5423
_MAP_SHARED, _MAP_PRIVATE, _MAP_TYPE, _MAP_ANONYMOUS, _MAP_GROWSDOWN = 0x01, 0x02, 0x0F, 0x20, 0x100
_SOCK_TYPE_MASK = 0xF
_STREAM_DGRAM_SEQPACKET = (1, 2, 5)
_DEFAULT_TCP_UDP = (0, 6, 17)  # not ICMP, and not MPTCP, whose connections Landlock's TCP rules do not see
_MSG_FASTOPEN = 0x20000000  # connects inside a send, past Landlock's connect rule
_MADV_MERGEABLE = 12
_PRIO_PROCESS = 0
_SOL_SOCKET, _SOL_IPV6 = 1, 41
_SIZES_OF_BUFFERS = (7, 8, 32, 33)  # SO_SNDBUF, SO_RCVBUF and their *FORCE
_SO_LINGER = 13
_PROGRAMS_OF_SOCKETS = (26, 50, 51, 52)  # SO_ATTACH_FILTER, _BPF, _REUSEPORT_CBPF, _REUSEPORT_EBPF
_IPV6_FLOWLABEL_MGR = 32
_F_SETPIPE_SZ, _USUAL_PIPE_BYTES = 1031, 65536
_LEASES = (1024, 1040)  # F_SETLEASE, F_SETDELEG: whoever opens the file next waits for the holder, up to 45 s
_F_NOTIFY = 1026  # a watch of a directory, as inotify has them, of the host's as well
_LOCKS_OF_OPEN_FILES = (36, 37, 38)  # F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW
_F_SETSIG, _SIGKILL_AND_SIGSTOP = 10, (9, 19)
_F_SETOWN, _F_SETOWN_EX, _FIOSETOWN, _SIOCSPGRP = 8, 15, 0x8901, 0x8902
_RLIMIT_CORE, _RLIMIT_NPROC = 4, 6
_PR_SET_DUMPABLE = 4
_EVERY_PROCESS = 0xFFFFFFFF  # kill's pid -1: the twins included
_PERSONALITY_QUERY = 0xFFFFFFFF

_REMEDY = "use Linux built with CONFIG_SECCOMP_FILTER, and an outer sandbox that allows seccomp"
_REMEDY_WHERE_BUSY = (
    "an outer sandbox supervises system calls itself: run without it, or without checkpoints, with "
    "ExecutionLimits(max_checkpoints=0)"
)

_PRCTL_REFUSED = {"PR_SET_SECCOMP": 22, "PR_SET_MM": 35, "PR_SET_PTRACER": 0x59616D61}
_PRCTL_ALLOWED = {
    "death signal, dumpable": (1, 2, 3, 4),
    "unaligned access, kept capabilities": (5, 6, 7, 8),
    "floating point, timing": (9, 10, 11, 12, 13, 14),
    "thread name": (15, 16),
    "seccomp mode (reading), capabilities and securebits (reading and giving up)": (21, 23, 24, 27, 28, 47),
    "time stamp counter, timer slack, machine check policy (reading)": (25, 26, 29, 30, 34),
    "subreaper, no_new_privs, tid address, transparent huge pages": (36, 37, 38, 39, 40, 41, 42),
    "vector length, speculation": (50, 51, 52, 53, 63, 64),
    "pointer authentication, tagged addresses": (54, 55, 56, 60, 61),
    "write xor execute, shadow stacks": (65, 66, 74, 75, 76),
    "names of mappings, auxiliary vector (reading)": (0x53564D41, 0x41555856),
}
"""An option that neither table names answers EINVAL, as on a kernel that does not have it."""


RULE_SETS = ("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self")
"""A supervised filter asks before them, too: a scribe puts one around itself."""


TARGETS: Mapping[str, int] = {
    "kill": 0,
    "tkill": 0,
    "tgkill": 1,
    "rt_sigqueueinfo": 0,
    "rt_tgsigqueueinfo": 1,
    "sched_setaffinity": 0,
    "fcntl": 2,
}
"""Calls that reach another process, to the argument that says which: a supervised filter asks before them."""


_SENDERS = tuple(name for name in TARGETS if name != "fcntl")


def policy(
    *, families: frozenset[int] = DEFAULT_FAMILIES, shared_memory: bool = True, supervised: bool = False
) -> dict[str, int | Rule]:
    """Every call that has an answer, by name: 0 for allowed, an errno, `IGNORED`, `SUPERVISED`, or the rule over it.

    `families` are those `socket` gives; `socketpair` gives AF_UNIX whatever they are, as its ends reach
    nothing else. Without `shared_memory`, anonymous shared mappings and memfds are refused; a shared mapping
    of `/dev/zero` is the same memory and looks like any file here. `supervised`: a call of `TARGETS`, or one that maps
    a file to be shared, is for the holder of the listener to answer; signals by pidfd, which stands for a process that
    no register names, are absent.
    """
    answers: dict[str, int | Rule] = {}
    for table, answer in ((ALLOWED, 0), (REFUSED, errno.EPERM), (ABSENT, errno.ENOSYS)):
        for names in table.values():
            answers.update(dict.fromkeys(names.split(), answer))
    answers.update(_rules(families, shared_memory))
    answers.update(_signals(supervised))
    if supervised:
        _supervise_owners_and_counts(answers)
        _supervise_mappings(answers)
    return answers


def build(
    *,
    families: frozenset[int] = DEFAULT_FAMILIES,
    shared_memory: bool = True,
    supervised: bool = False,
    machine: str = MACHINE,
) -> bytes:
    """The filter as a BPF program for `apply`.

    Raises `NotImplementedError` on a machine without a number table. Takes about half a millisecond.
    """
    if machine not in NUMBERS:
        raise NotImplementedError(f"no system call filter for {machine or os.name} [seccomp] (use x86_64 or aarch64)")
    numbers = NUMBERS[machine]
    answers = policy(families=families, shared_memory=shared_memory, supervised=supervised)
    by_number = {numbers[name]: answer for name, answer in answers.items() if name in numbers}
    return assemble(AUDIT_ARCH[machine], by_number)


def apply(program: bytes, supervisor: socket.socket | None = None) -> Applied | Unavailable:
    """Put the filter in front of every system call of this thread and of all it starts, for good.

    The listener of a supervised filter is sent to the other end of `supervisor`, and kept nowhere else.
    Sets no_new_privs, without which the kernel takes a filter from root only.
    """
    try:
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        listener = syscalls.seccomp_install(program, listener=supervisor is not None)
        if supervisor is not None:
            socket.send_fds(supervisor, [b"listener"], [listener])
            os.close(listener)
    except OSError as error:
        busy = error.errno == errno.EBUSY  # a process has one listener, and the outer sandbox's filter has it
        return Unavailable(mechanism=MECHANISM, reason=str(error), remedy=_REMEDY_WHERE_BUSY if busy else _REMEDY)
    detail = f"{length(program)} instructions"
    return Applied(mechanism=MECHANISM, detail=detail if supervisor is None else f"{detail}, signals by leave of init")


def _one_of(argument: int, *values: int, mask: int = 0xFFFFFFFF) -> Match:
    return Match(argument, values, mask)


def _none_of(argument: int, *values: int, mask: int = 0xFFFFFFFF) -> Match:
    return Match(argument, values, mask, negated=True)


def _without(argument: int, bits: int) -> Match:
    return Match(argument, (0,), bits)


def _rules(families: frozenset[int], shared_memory: bool) -> dict[str, int | Rule]:
    """The calls whose answer depends on their arguments, or on the parameters of the policy."""

    def plain_mode(argument: int) -> Clause:
        return Clause((_without(argument, _SETUID_AND_SETGID),))

    def plain_mode_if_created(flags: int, mode: int) -> Clause:
        return Clause((_without(flags, _O_CREAT_OR_O_TMPFILE), _without(mode, _SETUID_AND_SETGID)))

    def no_device(mode: int) -> Clause:
        return Clause((_one_of(mode, *_ANY_BUT_DEVICES, mask=_S_IFMT),))

    def no_fast_open(flags: int) -> Clause:
        return Clause((_without(flags, _MSG_FASTOPEN),), errno.EOPNOTSUPP)

    socket_type = Clause((_one_of(1, *_STREAM_DGRAM_SEQPACKET, mask=_SOCK_TYPE_MASK),))
    one_table_of_descriptors = Clause((_without(0, _CLONE_THREAD), _one_of(0, _CLONE_FILES, mask=_CLONE_FILES)))
    no_larger_pipe = Clause(
        (_none_of(1, _F_SETPIPE_SZ), _without(2, ~(_USUAL_PIPE_BYTES - 1) & 0xFFFFFFFF), _one_of(2, _USUAL_PIPE_BYTES))
    )
    # Growing stacks are not counted by RLIMIT_DATA.
    no_growing_stack = Clause((_without(3, _MAP_GROWSDOWN),))
    shared_and_anonymous = _MAP_SHARED | _MAP_ANONYMOUS
    no_shared_anonymous = Clause((_none_of(3, shared_and_anonymous, mask=shared_and_anonymous),))
    itself, low_half_null, high_half_null = _one_of(0, 0), _one_of(2, 0), Match(2, (0,), upper=True)
    prctl_listed = [option for options in _PRCTL_ALLOWED.values() for option in options]

    return {
        "open": (plain_mode_if_created(1, 2),),
        "openat": (plain_mode_if_created(2, 3),),
        "creat": (plain_mode(1),),
        "chmod": (plain_mode(1),),
        "fchmod": (plain_mode(1),),
        "fchmodat": (plain_mode(2),),
        "fchmodat2": (plain_mode(2),),
        "mkdir": (plain_mode(1),),
        "mkdirat": (plain_mode(2),),
        "mknod": (plain_mode(1), no_device(1)),
        "mknodat": (plain_mode(2), no_device(2)),
        "mmap": (no_growing_stack,) if shared_memory else (no_growing_stack, no_shared_anonymous),
        # Pages that the kernel has merged look as if nobody had written to them.
        "madvise": (Clause((_none_of(2, _MADV_MERGEABLE),), errno.EINVAL),),
        "memfd_create": 0 if shared_memory else errno.EPERM,
        # A thread with a table of its own would have its own count of descriptors.
        "clone": (Clause((_without(0, _CLONE_NEW_ANY | _CLONE_PARENT),)), one_table_of_descriptors),
        "close_range": (Clause((_without(2, _CLOSE_RANGE_UNSHARE),), errno.EINVAL),),
        # Of all pipes of one user of the host's the first 64 MB are free. Locks without an owner cannot be counted.
        "fcntl": (
            no_larger_pipe,
            Clause((_none_of(1, *_LEASES, _F_NOTIFY),)),
            Clause((_none_of(1, _F_SETSIG), _none_of(2, *_SIGKILL_AND_SIGSTOP))),  # the owner may be any process
            Clause((_none_of(1, *_LOCKS_OF_OPEN_FILES),), errno.EINVAL),
        ),
        # A byte of a page that is sent keeps all of the page, and the socket is charged for the byte. Callers copy.
        "sendfile": errno.EINVAL,
        "splice": errno.EINVAL,
        # Nothing of a session's needs it, and it has all that the host has not yet written go to its disks.
        **dict.fromkeys(("sync", "syncfs"), IGNORED),
        "prctl": (
            Clause((_none_of(0, *_PRCTL_REFUSED.values()),)),
            Clause((_one_of(0, *prctl_listed),), errno.EINVAL),
        ),
        "personality": (Clause((_one_of(0, 0, _PERSONALITY_QUERY),)),),
        # Set for the caller only: another process of the same user could be starved with these.
        "setpriority": (Clause((_one_of(0, _PRIO_PROCESS),)), Clause((_one_of(1, 0),))),
        # At 0, unlike at 1, the kernel starts the host's crash handler, as whoever that is.
        "setrlimit": (Clause((_none_of(0, _RLIMIT_CORE),), IGNORED),),
        "prlimit64": (
            Clause((itself, low_half_null)),
            Clause((itself, high_half_null)),
            Clause((_none_of(1, _RLIMIT_CORE), low_half_null), IGNORED),
            Clause((_none_of(1, _RLIMIT_CORE), high_half_null), IGNORED),
        ),
        "ioctl": (Clause((_none_of(1, _TIOCSTI, _TIOCLINUX, _TIOCSETD),)),),
        "socket": (
            Clause((_one_of(0, *sorted(families)),), errno.EAFNOSUPPORT),
            socket_type,
            Clause((_one_of(0, AF_UNIX), _one_of(2, *_DEFAULT_TCP_UDP)), errno.EPROTONOSUPPORT),
        ),
        "setsockopt": (
            # As the kernel does with a size past its own bound: the call succeeds, the buffer stays as it is.
            Clause((_none_of(1, _SOL_SOCKET), _none_of(2, *_SIZES_OF_BUFFERS)), IGNORED),
            # Whoever closes a lingering socket last waits: the host, where a message that nobody read carries it.
            Clause((_none_of(1, _SOL_SOCKET), _none_of(2, _SO_LINGER)), IGNORED),
            # The machine has one bound for compiled programs; past it, not even a system call filter is taken.
            Clause((_none_of(1, _SOL_SOCKET), _none_of(2, *_PROGRAMS_OF_SOCKETS))),
            Clause((_none_of(1, _SOL_IPV6), _none_of(2, _IPV6_FLOWLABEL_MGR))),  # 4096 on the machine
        ),
        "socketpair": (Clause((_one_of(0, AF_UNIX),), errno.EAFNOSUPPORT), socket_type),
        "sendto": (no_fast_open(3),),
        "sendmsg": (no_fast_open(2),),
        "sendmmsg": (no_fast_open(3),),
    }


def _signals(supervised: bool) -> dict[str, int | Rule]:
    """The calls of `TARGETS`. Whether a process exists, which signal 0 asks, is no secret; 0 stands for the caller."""
    not_to_all = Clause((_none_of(0, _EVERY_PROCESS),))
    if not supervised:
        return {**dict.fromkeys(_SENDERS, 0), "pidfd_send_signal": 0, "kill": (not_to_all,)}
    return {
        **dict.fromkeys(_SENDERS, SUPERVISED),
        "pidfd_send_signal": errno.ENOSYS,
        "kill": (not_to_all, Clause((_one_of(1, 0),), SUPERVISED)),
        **dict.fromkeys(("setns", "seccomp", *RULE_SETS), SUPERVISED),
        "sched_setaffinity": (Clause((_one_of(0, 0),), SUPERVISED),),
    }


def _supervise_owners_and_counts(answers: dict[str, int | Rule]) -> None:
    """Leave to init, where it supervises, who gets the signals of a descriptor and how many processes there may be."""
    fcntl, ioctl = answers["fcntl"], answers["ioctl"]
    prlimit, setrlimit = answers["prlimit64"], answers["setrlimit"]
    assert not isinstance(fcntl, int)
    assert not isinstance(ioctl, int)
    assert not isinstance(prlimit, int)
    assert not isinstance(setrlimit, int)
    owned = Clause((_none_of(1, _F_SETOWN), _one_of(2, 0)), SUPERVISED)
    answers["fcntl"] = (*fcntl, Clause((_none_of(1, _F_SETOWN_EX),), errno.EINVAL), owned)
    answers["ioctl"] = (*ioctl, Clause((_none_of(1, _FIOSETOWN, _SIOCSPGRP),)))
    of_others = _none_of(1, _RLIMIT_NPROC)
    halves = (_one_of(2, 0), Match(2, (0,), upper=True))
    answers["prlimit64"] = (*prlimit, *(Clause((of_others, half)) for half in halves))
    answers["setrlimit"] = (*setrlimit, Clause((_none_of(0, _RLIMIT_NPROC),)))


def _supervise_mappings(answers: dict[str, int | Rule]) -> None:
    """Tell init of each file that is mapped to be shared: what is written through memory may leave no time of change.
    """
    mmap = answers["mmap"]
    assert not isinstance(mmap, int)
    private, anonymous = _one_of(3, _MAP_PRIVATE, mask=_MAP_TYPE), _one_of(3, _MAP_ANONYMOUS, mask=_MAP_ANONYMOUS)
    answers["mmap"] = (*mmap, Clause((private, anonymous), SUPERVISED))


def build_for_branch(machine: str = MACHINE) -> bytes:
    """Program that a branch's process puts in front of the filter that it inherited.

    A program that is executed becomes a process that others may look into, and those of the session that was branched
    from are others: so none is executed, and the process stays one that hides itself.
    """
    numbers = NUMBERS[machine]
    answers: dict[str, int | Rule] = {**dict.fromkeys(numbers, 0), "execve": errno.EPERM, "execveat": errno.EPERM}
    answers["prctl"] = (Clause((_none_of(0, _PR_SET_DUMPABLE),)),)
    return assemble(AUDIT_ARCH[machine], {numbers[name]: answer for name, answer in answers.items()})


_OF_SCRIBES: Mapping[str, str] = {
    "its socket, and files that it may read": """read readv pread64 preadv preadv2 lseek readahead fadvise64 write
        writev close close_range dup dup2 dup3 pipe pipe2 poll ppoll select pselect6 epoll_create epoll_create1
        epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd eventfd2 stat fstat lstat newfstatat statx statfs fstatfs
        access
        faccessat faccessat2 getdents getdents64 readlink readlinkat getcwd chdir fchdir umask sendto sendmsg recvfrom
        recvmsg getsockname getpeername getsockopt shutdown""",
    "memory": "brk mmap mprotect munmap mremap madvise mincore membarrier get_mempolicy",
    "itself": """exit exit_group gettid getpid getppid getpgid getpgrp getsid set_tid_address set_robust_list
        get_robust_list rseq arch_prctl futex futex_waitv futex_wake futex_wait futex_requeue restart_syscall
        rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigsuspend sigaltstack pause""",
    "time, and what is the same for all": """nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time
        times sched_yield sched_getaffinity sched_getparam sched_getscheduler sched_getattr sched_get_priority_max
        sched_get_priority_min getpriority getcpu getuid geteuid getgid getegid getresuid getresgid getgroups uname
        sysinfo getrandom getrusage getrlimit""",
}
"""Why to the names of the calls that a scribe may make, of those that its worker may."""
_O_WRITES = 0o1 | 0o2 | 0o100 | 0o1000 | 0o20000000  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_TMPFILE's own bit
_FCNTL_OF_SCRIBES = (0, 1, 2, 3, 4, 1030)  # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC: no locks
_IOCTL_OF_SCRIBES = (0x5450, 0x5451)  # FIONCLEX, FIOCLEX
_PRCTL_OF_SCRIBES = (3, 15, 16, 0x53564D41)  # is it dumpable, a thread's name, names of mappings


def build_for_scribe(machine: str = MACHINE) -> bytes:
    """Program that a scribe puts in front of the filter that it inherited: it reads, computes, and answers on its
    socket."""
    numbers = NUMBERS[machine]
    answers: dict[str, int | Rule] = dict.fromkeys(numbers, errno.EPERM)
    for names in _OF_SCRIBES.values():
        answers.update(dict.fromkeys(names.split(), 0))
    answers["open"] = (Clause((_without(1, _O_WRITES),), errno.EROFS),)
    answers["openat"] = (Clause((_without(2, _O_WRITES),), errno.EROFS),)
    answers["fcntl"] = (Clause((_one_of(1, *_FCNTL_OF_SCRIBES),)),)
    answers["ioctl"] = (Clause((_one_of(1, *_IOCTL_OF_SCRIBES),), errno.ENOTTY),)
    answers["prctl"] = (Clause((_one_of(0, *_PRCTL_OF_SCRIBES),)),)
    answers["prlimit64"] = (Clause((_one_of(0, 0),)),)
    answers["clone3"] = errno.ENOSYS
    return assemble(AUDIT_ARCH[machine], {numbers[name]: answer for name, answer in answers.items() if name in numbers})
