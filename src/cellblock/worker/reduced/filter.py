"""The system call filter where there are no namespaces: the isolated one, and what those would have answered.

A socket would reach every service of the machine, so there is none; two ends of a pair stay, since nobody else has
them. What asks about a path, or changes what is known of a file, is asked of the keeper: Landlock does not cover it.
"""

from __future__ import annotations

import errno

from cellblock.hosting.machine import MACHINE
from cellblock.worker.confine import seccomp
from cellblock.worker.confine.bpf import AUDIT_ARCH, SUPERVISED, Clause, Match, Rule, assemble
from cellblock.worker.confine.syscall_numbers import NUMBERS
from cellblock.worker.reduced.metadata import CALLS

_O_PATH = 0o10000000
_SOCK_TYPE_MASK = 0xF
_STREAM, _SEQPACKET = 1, 5
_F_SETLEASE, _F_NOTIFY = 1024, 1026
_PR_SET_DUMPABLE = 4
_RLIMIT_FSIZE = 1

_REFUSED = {
    "what a socket is for; a datagram pair could name other peers": "connect bind listen accept accept4",
    "owners of files": "chown fchown lchown fchownat",
    "truncation by path, which Landlock does not cover before its ABI 3": "truncate",
}
_ABSENT = {
    "older names of what is asked of the keeper": "utime utimes futimesat",
}
_UNSUPPORTED = {
    "attributes of files, which Landlock does not cover": """setxattr lsetxattr fsetxattr setxattrat getxattr
        lgetxattr fgetxattr getxattrat listxattr llistxattr flistxattr listxattrat removexattr lremovexattr
        fremovexattr removexattrat""",
    "blocks without data: files grow as they are written, at a pace that can be watched": "fallocate",
}


def build(machine: str = MACHINE) -> bytes:
    """The filter as a BPF program; NotImplementedError on a machine without a number table."""
    if machine not in NUMBERS:
        raise NotImplementedError(f"no system call filter for {machine} [seccomp] (use x86_64 or aarch64)")
    numbers = NUMBERS[machine]
    by_number = {numbers[name]: answer for name, answer in policy().items() if name in numbers}
    return assemble(AUDIT_ARCH[machine], by_number)


def policy() -> dict[str, int | Rule]:
    """Every call that has an answer, by name."""
    answers = seccomp.policy(families=frozenset(), shared_memory=False)
    for names in _REFUSED.values():
        answers |= dict.fromkeys(names.split(), errno.EPERM)
    for names in _ABSENT.values():
        answers |= dict.fromkeys(names.split(), errno.ENOSYS)
    for names in _UNSUPPORTED.values():
        answers |= dict.fromkeys(names.split(), errno.EOPNOTSUPP)
    for name, clauses in _clauses().items():
        before = answers[name]
        answers[name] = (*(before if isinstance(before, tuple) else ()), *clauses)
    answers |= dict.fromkeys(CALLS, SUPERVISED)
    return answers


def _clauses() -> dict[str, Rule]:
    """Demands beside those of the isolated filter."""

    def no_bare_path(flags: int) -> Clause:  # a descriptor of a file that was never opened tells of it all the same
        return Clause((Match(flags, (0,), _O_PATH),))

    other_limit = Match(1, (_RLIMIT_FSIZE,), negated=True)
    return {
        "open": (no_bare_path(1),),
        "openat": (no_bare_path(2),),
        # A datagram end can send to any address, and the address is behind a pointer.
        "socketpair": (Clause((Match(1, (_STREAM, _SEQPACKET), _SOCK_TYPE_MASK),), errno.EPROTONOSUPPORT),),
        "sched_setaffinity": (Clause((Match(0, (0,)),)),),
        # A lease on a file holds up everybody who opens it.
        "fcntl": (Clause((Match(1, (_F_SETLEASE, _F_NOTIFY), negated=True),)),),
        # What hides its memory cannot be answered, nor its files counted.
        "prctl": (Clause((Match(0, (_PR_SET_DUMPABLE,), negated=True),)),),
        # The keeper stops writing with this limit when the session's files are too many.
        "setrlimit": (Clause((Match(0, (_RLIMIT_FSIZE,), negated=True),)),),
        "prlimit64": (Clause((other_limit, Match(2, (0,)))), Clause((other_limit, Match(2, (0,), upper=True)))),
    }
