"""The system call filter: its number tables, its verdicts, and what runs under it."""

import ctypes
import errno
import itertools
import json
import os
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
from child import in_child

import cellblock
from cellblock.walls import Applied, Unavailable
from cellblock.worker.confine import listener as calls
from cellblock.worker.confine import seccomp, syscalls
from cellblock.worker.confine.listener import Call
from cellblock.worker.confine.syscall_numbers import NUMBERS

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
MACHINES = sorted(AUDIT_ARCH)
ALLOW, NOTIFY, ERRNO, KILL_PROCESS = 0x7FFF0000, 0x7FC00000, 0x00050000, 0x80000000
YOUNGER_THAN_THE_ORACLE = range(457, 471)

on_a_known_machine = pytest.mark.skipif(
    syscalls.MACHINE not in NUMBERS,
    reason="the filter is installed on 64-bit Linux on x86_64 and aarch64 only",
)


# --- the number tables against libseccomp -------------------------------------------------------------------


@pytest.fixture(scope="module")
def libseccomp() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        pytest.skip("libseccomp.so.2, the oracle for numbers, is not installed")
    library.seccomp_syscall_resolve_name_arch.argtypes = [ctypes.c_uint32, ctypes.c_char_p]
    library.seccomp_syscall_resolve_num_arch.argtypes = [ctypes.c_uint32, ctypes.c_int]
    library.seccomp_syscall_resolve_num_arch.restype = ctypes.c_char_p  # leaks a few KB of names, once
    return library


@pytest.mark.parametrize("machine", MACHINES)
def test_every_number_is_the_one_libseccomp_gives(libseccomp: ctypes.CDLL, machine: str) -> None:
    resolve = libseccomp.seccomp_syscall_resolve_name_arch
    wrong = {
        name: (number, expected)
        for name, number in NUMBERS[machine].items()
        if (expected := resolve(AUDIT_ARCH[machine], name.encode())) != number and number not in YOUNGER_THAN_THE_ORACLE
    }
    assert wrong == {}


@pytest.mark.parametrize("machine", MACHINES)
def test_every_call_libseccomp_knows_has_a_number(libseccomp: ctypes.CDLL, machine: str) -> None:
    names = (libseccomp.seccomp_syscall_resolve_num_arch(AUDIT_ARCH[machine], number) for number in range(1024))
    known = {name.decode() for name in names if name}
    assert len(known) > 300
    assert known - set(NUMBERS[machine]) == set()


@pytest.mark.parametrize("machine", MACHINES)
def test_no_number_has_two_names(machine: str) -> None:
    assert len(set(NUMBERS[machine].values())) == len(NUMBERS[machine])


# --- the tables of the policy -------------------------------------------------------------------------------


def named_in(table: object) -> list[str]:
    assert isinstance(table, dict)
    return [name for names in table.values() for name in names.split()]


def test_every_call_has_exactly_one_answer() -> None:
    plain = [*named_in(seccomp.ALLOWED), *named_in(seccomp.REFUSED), *named_in(seccomp.ABSENT)]
    ruled = set(seccomp.policy()) - set(plain)
    assert sorted([*plain, *ruled]) == sorted(set(NUMBERS["x86_64"]) | set(NUMBERS["aarch64"]))


MUST_BE_REFUSED = """ptrace process_vm_readv process_vm_writev pidfd_getfd process_madvise kcmp userfaultfd
    bpf perf_event_open add_key request_key keyctl mount umount2 open_tree move_mount fsopen fsconfig fsmount
    fspick mount_setattr statmount listmount setns unshare pivot_root chroot init_module finit_module
    delete_module create_module query_module kexec_load kexec_file_load clock_settime clock_adjtime
    settimeofday adjtimex swapon swapoff reboot name_to_handle_at open_by_handle_at fanotify_init
    fanotify_mark quotactl quotactl_fd acct syslog memfd_secret vmsplice shmget shmat shmctl shmdt semget
    semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink mq_timedsend mq_timedreceive
    mq_notify mq_getsetattr io_uring_setup io_uring_enter io_uring_register seccomp"""


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_that_reach_past_the_walls_answer_eperm(machine: str) -> None:
    filter_ = Filter(machine)
    names = [name for name in MUST_BE_REFUSED.split() if name in NUMBERS[machine]]
    assert {name: filter_(name) for name in names} == dict.fromkeys(names, errno.EPERM)


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_whose_arguments_cannot_be_read_answer_enosys(machine: str) -> None:
    filter_ = Filter(machine)
    assert (filter_("clone3"), filter_("openat2")) == (errno.ENOSYS, errno.ENOSYS)


@pytest.mark.parametrize("machine", MACHINES)
def test_rule_sets_of_landlock_cannot_be_made(machine: str) -> None:
    filter_ = Filter(machine)
    names = ("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self")
    assert {filter_(name) for name in names} == {errno.ENOSYS}


# --- the compiled program, run by an interpreter ------------------------------------------------------------


def interpret(program: bytes, number: int, arch: int, arguments: tuple[int, ...]) -> int:
    """What the kernel's classic BPF machine returns for one call, for the operations the filter uses."""
    padded = [argument & 0xFFFFFFFFFFFFFFFF for argument in (*arguments, *[0] * 6)][:6]
    seccomp_data = struct.pack("<IIQ6Q", number, arch, 0, *padded)
    instructions = list(struct.iter_unpack("=HBBI", program))
    accumulator, place = 0, 0
    while True:
        operation, if_true, if_false, operand = instructions[place]
        place += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", seccomp_data, operand)
            case 0x54:
                accumulator &= operand
            case 0x05:
                place += operand
            case 0x15:
                place += if_true if accumulator == operand else if_false
            case 0x35:
                place += if_true if accumulator >= operand else if_false
            case 0x06:
                return int(operand)
            case _:
                raise AssertionError(f"unknown operation {operation:#x}")


class Filter:
    """A filter built for a machine; calling it gives 0 for allowed, the errno, IGNORED or SUPERVISED."""

    def __init__(self, machine: str, **parameters: object) -> None:
        self.machine = machine
        self.program = seccomp.build(machine=machine, **parameters)  # type: ignore[arg-type]  # forwarded by name

    def __call__(self, name: str, *arguments: int) -> int:
        return self.by_number(NUMBERS[self.machine][name], *arguments)

    def by_number(self, number: int, *arguments: int) -> int:
        verdict = interpret(self.program, number, AUDIT_ARCH[self.machine], arguments)
        if verdict in (ALLOW, NOTIFY):
            return 0 if verdict == ALLOW else seccomp.SUPERVISED
        assert verdict & 0xFFFF0000 == ERRNO
        return verdict & 0xFFFF or seccomp.IGNORED


def expected(answer: int | seccomp.Rule, arguments: tuple[int, ...]) -> int:
    """What the policy says of a call, read from its tables without the compiler."""
    if isinstance(answer, int):
        return answer
    for clause in answer:
        held = []
        for match in clause.any_of:
            half = arguments[match.argument] >> (32 if match.upper else 0)
            held.append(((half & 0xFFFFFFFF & match.mask) in match.values) is not match.negated)
        if not any(held):
            return clause.otherwise
    return 0


def interesting(answer: int | seccomp.Rule) -> list[tuple[int, ...]]:
    """Argument tuples on both sides of every comparison a rule makes, and their combinations."""
    if isinstance(answer, int):
        return [(0,) * 6, (0xFFFFFFFFFFFFFFFF,) * 6]
    candidates: list[set[int]] = [{0, 0xFFFFFFFFFFFFFFFF} for _ in range(6)]
    for match in (match for clause in answer for match in clause.any_of):
        values = {value for v in match.values[:12] for value in (v, v + 1, v ^ match.mask, v | 1 << 40)}
        values |= {1 << bit for bit in range(32) if match.mask >> bit & 1} if match.mask != 0xFFFFFFFF else set()
        candidates[match.argument] |= {value << (32 if match.upper else 0) for value in values}
    used = {match.argument for clause in answer for match in clause.any_of}
    return list(itertools.product(*(sorted(c) if i in used else [0] for i, c in enumerate(candidates))))


POLICIES = [
    {},
    {"families": frozenset[int]()},
    {"families": frozenset({1}), "shared_memory": False},
    {"families": frozenset(range(1, 40))},
    {"supervised": True, "shared_memory": False},
]
POLICY_NAMES = ["default", "no-families", "unix-only", "many-families", "supervised"]


@pytest.mark.sampled(0)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("parameters", POLICIES, ids=POLICY_NAMES)
def test_program_answers_every_number_as_the_tables_do(machine: str, parameters: dict[str, object]) -> None:
    filter_ = Filter(machine, **parameters)
    answers = seccomp.policy(**parameters)  # type: ignore[arg-type]  # forwarded by name
    name_of = {number: name for name, number in NUMBERS[machine].items()}
    for number in range(1024):
        answer = answers.get(name_of.get(number, ""), errno.ENOSYS)
        for arguments in interesting(answer)[:4000]:
            assert filter_.by_number(number, *arguments) == expected(answer, arguments), (number, arguments)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("number", [0x3FFFFFFF, 0x40000000, 0x40000001, 0x40000000 + 59, 0x7FFFFFFF, 0xFFFFFFFF])
def test_x32_and_absurd_numbers_answer_enosys(machine: str, number: int) -> None:
    assert Filter(machine).by_number(number) == errno.ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_of_another_architecture_kill_the_process(machine: str) -> None:
    program = seccomp.build(machine=machine)
    for arch in (0x40000003, 0, *(a for m, a in AUDIT_ARCH.items() if m != machine)):
        assert {interpret(program, number, arch, ()) for number in range(500)} == {KILL_PROCESS}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("parameters", POLICIES, ids=POLICY_NAMES)
def test_program_fits_the_kernel(machine: str, parameters: dict[str, object]) -> None:
    assert len(Filter(machine, **parameters).program) // 8 < 4096


def test_same_policy_gives_the_same_bytes() -> None:
    assert seccomp.build(machine="x86_64") == seccomp.build(machine="x86_64")


def test_unknown_machine_is_refused_by_name() -> None:
    with pytest.raises(NotImplementedError) as refusal:
        seccomp.build(machine="riscv64")
    assert str(refusal.value) == "no system call filter for riscv64 [seccomp] (use x86_64 or aarch64)"


# --- single rules, written out once more by hand ------------------------------------------------------------

S, P, UNIX, INET, INET6, NETLINK, PACKET, ALG, VSOCK = seccomp.SUPERVISED, errno.EPERM, 1, 2, 10, 16, 17, 38, 40
NO_FAMILY, NO_PROTOCOL = errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT
STREAM, DGRAM, RAW, SEQPACKET, CLOEXEC = 1, 2, 3, 5, 0x80000

CASES: list[tuple[str, tuple[int, ...], int]] = [
    *[("clone", (1 << bit,), P) for bit in (17, 25, 26, 27, 28, 29, 30)],  # CLONE_NEWNS … CLONE_NEWNET
    ("clone", (0x3D0F00,), 0),  # pthread_create
    ("clone", (0x1200011,), 0),  # fork
    ("clone", (0x4111,), 0),  # vfork
    ("clone", (0x3D0B00,), P),  # a thread without CLONE_FILES
    ("close_range", (3, 100, 4), 0),  # CLOSE_RANGE_CLOEXEC
    ("close_range", (3, 100, 2), errno.EINVAL),  # CLOSE_RANGE_UNSHARE
    ("sendfile", (1, 3, 0, 4096), errno.EINVAL),
    ("splice", (1, 0, 3, 0, 4096, 0), errno.EINVAL),
    *[("fcntl", (3, 1031, size), 0) for size in (4096, 65535, 65536)],  # F_SETPIPE_SZ
    *[("fcntl", (3, 1031, size), P) for size in (65537, 131072, 1 << 20, 0x80000000)],
    *[("fcntl", (3, command, 1 << 20), errno.EINVAL) for command in (36, 37, 38)],  # F_OFD_GETLK, _SETLK, _SETLKW
    *[("fcntl", (3, command, 1 << 20), 0) for command in (0, 4, 6, 7, 1030, 1032)],
    *[("fcntl", (3, 10, number), P) for number in (9, 19, 1 << 32 | 9)],  # F_SETSIG
    *[("fcntl", (3, 10, number), 0) for number in (0, 10, 29, 64)],
    *[("fcntl", (3, 8, number), 0) for number in (9, 19)],  # F_SETOWN
    *[("setsockopt", (3, 1, option), seccomp.IGNORED) for option in (7, 8, 32, 33)],  # SO_SNDBUF, SO_RCVBUF
    ("setsockopt", (3, 1, 13), seccomp.IGNORED),  # SO_LINGER
    *[("setsockopt", (3, 1, option), P) for option in (26, 50, 51, 52)],  # SO_ATTACH_FILTER and its like
    *[("setsockopt", (3, 1, option), 0) for option in (2, 9, 15, 20, 27)],  # SO_REUSEADDR, SO_KEEPALIVE, timeouts
    *[("setsockopt", (3, 6, option), 0) for option in (1, 7, 8, 26)],  # of TCP
    ("setsockopt", (3, 41, 32), P),  # IPV6_FLOWLABEL_MGR
    ("setsockopt", (3, 41, 26), 0),  # IPV6_V6ONLY
    *[("socket", (family, DGRAM, 0), NO_FAMILY) for family in (NETLINK, PACKET, ALG, VSOCK, 0, 43, 0xFFFFFFFF)],
    *[("socket", (family, STREAM | CLOEXEC, 0), 0) for family in (UNIX, INET, INET6)],
    *[("socket", (family, RAW | CLOEXEC, 255), P) for family in (UNIX, INET, INET6)],
    ("socket", (INET, DGRAM, 17), 0),
    ("socket", (INET, DGRAM, 1), NO_PROTOCOL),  # ICMP
    ("socket", (INET, STREAM, 262), NO_PROTOCOL),  # MPTCP
    ("socket", (UNIX, SEQPACKET, 0), 0),
    ("socket", (1 << 32 | NETLINK, RAW, 0), NO_FAMILY),  # the kernel reads the low 32 bits
    ("socketpair", (UNIX, STREAM, 0), 0),
    ("socketpair", (INET, STREAM, 0), NO_FAMILY),
    ("sendto", (3, 0, 1, 0x20000000, 0, 16), errno.EOPNOTSUPP),  # MSG_FASTOPEN
    ("sendto", (3, 0, 1, 0x4000, 0, 0), 0),
    ("sendmsg", (3, 0, 0x20004000), errno.EOPNOTSUPP),
    ("sendmmsg", (3, 0, 1, 0x20000000), errno.EOPNOTSUPP),
    *[("ioctl", (0, request), P) for request in (0x5412, 0x541C, 0x5423, 1 << 32 | 0x5412)],
    *[("ioctl", (0, request), 0) for request in (0x5401, 0x5413, 0x541B, 0x5421)],
    *[("prctl", (option,), P) for option in (22, 35, 0x59616D61)],  # PR_SET_SECCOMP, PR_SET_MM, PR_SET_PTRACER
    *[("prctl", (option,), 0) for option in (1, 4, 15, 36, 38, 0x53564D41)],
    *[("prctl", (option,), errno.EINVAL) for option in (31, 32, 33, 59, 62, 67, 1000)],
    ("kill", (-1, 9), P),
    ("kill", (0xFFFFFFFF, 9), P),
    ("kill", (0, 15), 0),
    ("kill", (1234, 15), 0),
    ("kill", (-1234, 15), 0),
    *[("fcntl", (3, command), 0) for command in (0, 3, 4, 6, 1025, 1030, 1033)],
    *[("fcntl", (3, command), P) for command in (1024, 1040, 1026, 1 << 32 | 1024)],  # F_SETLEASE, F_SETDELEG, F_NOTIFY
    ("personality", (0xFFFFFFFF,), 0),
    ("personality", (0,), 0),
    ("personality", (0x0040000,), P),  # ADDR_NO_RANDOMIZE
    ("setpriority", (0, 0, 19), 0),
    ("setpriority", (0, 77, 19), P),
    ("setpriority", (2, 0, 19), P),  # PRIO_USER
    ("prlimit64", (0, 7, 0x7FFF00000000), 0),
    ("prlimit64", (77, 7, 0), 0),
    ("prlimit64", (0, 4, 0), 0),
    ("prlimit64", (0, 4, 0x7FFF00000000), seccomp.IGNORED),  # RLIMIT_CORE
    ("prlimit64", (0, 4, 0x1000), seccomp.IGNORED),
    ("setrlimit", (4, 0x1000), seccomp.IGNORED),
    ("setrlimit", (7, 0x1000), 0),
    ("sync", (), seccomp.IGNORED),
    ("syncfs", (3,), seccomp.IGNORED),
    ("fsync", (3,), 0),
    ("prlimit64", (77, 7, 0x7FFF00000000), P),
    ("prlimit64", (77, 7, 0x1000), P),
    ("fchmod", (3, 0o755), 0),
    ("fchmod", (3, 0o4755), P),
    ("fchmod", (3, 0o2755), P),
    ("fchmodat", (-100, 0, 0o4755), P),
    ("fchmodat2", (-100, 0, 0o6755), P),
    ("openat", (-100, 0, 0o101, 0o4755), P),
    ("openat", (-100, 0, 0o20200001, 0o2755), P),  # O_TMPFILE
    ("openat", (-100, 0, 0, 0o4755), 0),  # nothing is created
    ("openat", (-100, 0, 0o101, 0o1644), 0),
    ("mkdirat", (-100, 0, 0o2755), P),
    ("mkdirat", (-100, 0, 0o1777), 0),
    ("mknodat", (-100, 0, stat.S_IFIFO | 0o600), 0),
    ("mknodat", (-100, 0, stat.S_IFSOCK | 0o600), 0),
    ("mknodat", (-100, 0, stat.S_IFREG | 0o600), 0),
    ("mknodat", (-100, 0, 0o600), 0),
    ("mknodat", (-100, 0, stat.S_IFREG | 0o4755), P),
    ("mknodat", (-100, 0, stat.S_IFCHR | 0o600, 0x103), P),
    ("mknodat", (-100, 0, stat.S_IFBLK | 0o600), P),
    ("mmap", (0, 4096, 3, 0x22), 0),  # MAP_PRIVATE | MAP_ANONYMOUS
    ("mmap", (0, 4096, 3, 0x21), 0),  # MAP_SHARED | MAP_ANONYMOUS
    ("mmap", (0, 4096, 3, 0x122), P),  # MAP_GROWSDOWN
    ("memfd_create", (), 0),
]
OLD_CALLS: list[tuple[str, tuple[int, ...], int]] = [
    ("chmod", (0, 0o4755), P),
    ("open", (0, 0o101, 0o4755), P),
    ("open", (0, 0o101, 0o644), 0),
    ("creat", (0, 0o2755), P),
    ("mkdir", (0, 0o4755), P),
    ("mknod", (0, stat.S_IFCHR | 0o600), P),
    ("mknod", (0, stat.S_IFIFO | 0o600), 0),
]


@pytest.mark.parametrize("machine", MACHINES)
def test_arguments_decide(machine: str) -> None:
    filter_ = Filter(machine)
    cases = CASES + (OLD_CALLS if machine == "x86_64" else [])
    got = [(name, arguments, filter_(name, *arguments)) for name, arguments, _ in cases]
    assert got == cases


@pytest.mark.parametrize("machine", MACHINES)
def test_without_shared_memory_only_private_and_file_mappings_are_left(machine: str) -> None:
    filter_ = Filter(machine, shared_memory=False)
    flags = {"private": 0x22, "shared": 0x21, "shared, validated": 0x23, "file": 0x01, "stack": 0x20022}
    assert {name: filter_("mmap", 0, 4096, 3, flag) for name, flag in flags.items()} == {
        "private": 0,
        "shared": errno.EPERM,
        "shared, validated": errno.EPERM,
        "file": 0,
        "stack": 0,
    }
    assert filter_("memfd_create") == errno.EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_a_supervised_filter_asks_before_what_reaches_another_process(machine: str) -> None:
    plain, supervised = Filter(machine), Filter(machine, supervised=True)
    cases = {
        ("kill", (7, 9)): S,
        ("kill", (-7, 9)): S,
        ("kill", (0, 15)): S,
        ("kill", (7, 0)): 0,
        ("kill", (-1, 0)): P,
        ("kill", (-1, 9)): P,
        ("tkill", (7, 9)): S,
        ("tgkill", (7, 7, 9)): S,
        ("rt_sigqueueinfo", (7, 9, 0)): S,
        ("rt_tgsigqueueinfo", (7, 7, 9, 0)): S,
        ("sched_setaffinity", (7, 128, 0)): S,
        ("sched_setaffinity", (0, 128, 0)): 0,
        ("pidfd_send_signal", (3, 9, 0, 0)): errno.ENOSYS,
    }
    assert {case: supervised(case[0], *case[1]) for case in cases} == cases
    assert {plain(name, *arguments) for name, arguments in cases if arguments[0] != -1} == {0}


@pytest.mark.parametrize("machine", MACHINES)
def test_without_families_only_socketpair_is_left(machine: str) -> None:
    filter_ = Filter(machine, families=frozenset())
    assert [filter_("socket", family, STREAM, 0) for family in (UNIX, INET, INET6)] == [NO_FAMILY] * 3
    assert filter_("socketpair", UNIX, STREAM, 0) == 0


# --- installed ----------------------------------------------------------------------------------------------


def errno_of(call: Callable[..., object], *arguments: object) -> int:
    try:
        call(*arguments)
    except OSError as error:
        return error.errno or -1
    return 0


def raw(name: str, *arguments: int) -> int:
    """The errno of a call made without libc's own wrapper, 0 when it succeeds."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    number = NUMBERS[syscalls.MACHINE][name]
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(argument) for argument in arguments))
    return ctypes.get_errno() if result < 0 else 0


@on_a_known_machine
def test_apply_says_what_is_in_force(uid: int | None) -> None:
    program = seccomp.build()

    def action() -> object:
        wall = seccomp.apply(program)
        assert isinstance(wall, Applied)
        return [wall.mechanism, wall.detail, syscalls.prctl(syscalls.PR_GET_NO_NEW_PRIVS)]

    assert in_child(action, uid=uid) == ["seccomp", f"{len(program) // 8} instructions", 1]


@on_a_known_machine
def test_apply_reports_a_program_the_kernel_does_not_take() -> None:
    def action() -> object:
        wall = seccomp.apply(struct.pack("=HBBI", 0x15, 9, 9, 0))
        assert isinstance(wall, Unavailable)
        return [wall.mechanism, wall.reason.split(":")[0]]

    assert in_child(action) == ["seccomp", "[Errno 22] Invalid argument"]


@on_a_known_machine
def test_refused_calls_fail_with_eperm(uid: int | None) -> None:
    def action() -> object:
        seccomp.apply(seccomp.build())
        return {
            "unshare": errno_of(syscalls.unshare, syscalls.CLONE_NEWUSER),
            "setns": errno_of(syscalls.setns, 0),
            "mount": errno_of(syscalls.mount, "none", "/tmp", "tmpfs"),
            "umount": errno_of(syscalls.umount, "/proc"),
            "pivot_root": errno_of(syscalls.pivot_root, ".", "."),
            "open_tree": raw("open_tree", syscalls.AT_FDCWD, 0, 0),
            "chroot": errno_of(os.chroot, "/"),
            "ptrace": raw("ptrace", 0, 0, 0, 0),  # PTRACE_TRACEME
            "process_vm_readv": raw("process_vm_readv", os.getpid(), 0, 0, 0, 0, 0),
            "bpf": raw("bpf", 0, 0, 0),
            "keyctl": raw("keyctl", 0, -1, 0),
            "io_uring_setup": raw("io_uring_setup", 1, 0),
            "userfaultfd": raw("userfaultfd", 0),
            "shmget": raw("shmget", 0, 4096, 0o1600),
            "seccomp": errno_of(syscalls.seccomp_install, seccomp.build()),
            "clone": raw("clone", syscalls.CLONE_NEWUSER | 17, 0, 0, 0, 0),
            "kill": errno_of(os.kill, -1, 0),
            "raw socket": errno_of(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1),
        }

    answers = in_child(action, uid=uid)
    assert isinstance(answers, dict)
    assert answers == dict.fromkeys(answers, errno.EPERM)


@on_a_known_machine
def test_absent_and_unknown_calls_fail_with_enosys(uid: int | None) -> None:
    def action() -> object:
        seccomp.apply(seccomp.build())
        libc = ctypes.CDLL(None, use_errno=True)
        libc.syscall(ctypes.c_long(1000))
        unknown = ctypes.get_errno()
        return [raw("clone3", 0, 0), errno_of(syscalls.openat2, -100, "/", 0), unknown]

    assert in_child(action, uid=uid) == [errno.ENOSYS] * 3


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that every user may enter and write, which `tmp_path` is not."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        yield Path(directory)


@on_a_known_machine
def test_setuid_files_and_devices_are_not_made_but_fifos_are(open_directory: Path, uid: int | None) -> None:
    def action() -> object:
        os.chdir(open_directory)
        seccomp.apply(seccomp.build())
        Path("plain").touch()
        return {
            "chmod": errno_of(os.chmod, "plain", 0o4755),
            "open": errno_of(os.open, "created", os.O_CREAT | os.O_WRONLY, 0o4755),
            "mkdir": errno_of(os.mkdir, "directory", 0o2755),
            "device": errno_of(os.mknod, "device", stat.S_IFCHR | 0o600, os.makedev(1, 3)),
            "fifo": errno_of(os.mkfifo, "fifo"),
            "plain chmod": errno_of(os.chmod, "plain", 0o755),
        }

    assert in_child(action, uid=uid) == {
        "chmod": errno.EPERM,
        "open": errno.EPERM,
        "mkdir": errno.EPERM,
        "device": errno.EPERM,
        "fifo": 0,
        "plain chmod": 0,
    }
    assert sorted(entry.name for entry in open_directory.iterdir()) == ["fifo", "plain"]
    assert stat.S_IMODE((open_directory / "plain").stat().st_mode) == 0o755


@on_a_known_machine
def test_growing_mapping_cannot_dodge_the_data_limit() -> None:
    def action() -> object:
        seccomp.apply(seccomp.build())
        return raw("mmap", 0, 1 << 20, 3, 0x122, -1, 0)

    assert in_child(action) == errno.EPERM


@on_a_known_machine
def test_a_socket_keeps_its_buffers_and_takes_no_program() -> None:
    def action() -> object:
        one, other = socket.socketpair()
        before = [one.getsockopt(socket.SOL_SOCKET, option) for option in (socket.SO_SNDBUF, socket.SO_RCVBUF)]
        seccomp.apply(seccomp.build())
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            one.setsockopt(socket.SOL_SOCKET, option, 1 << 20)
        after = [one.getsockopt(socket.SOL_SOCKET, option) for option in (socket.SO_SNDBUF, socket.SO_RCVBUF)]
        accept_all = ctypes.create_string_buffer(struct.pack("=HBBI", 0x06, 0, 0, 0xFFFFFFFF))
        program = struct.pack("@HP", 1, ctypes.addressof(accept_all))
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return [before == after, errno_of(other.setsockopt, socket.SOL_SOCKET, 26, program)]

    assert in_child(action) == [True, errno.EPERM]


@on_a_known_machine
def test_what_copies_in_the_kernel_falls_back(tmp_path: Path) -> None:
    def action() -> object:
        os.chdir(tmp_path)
        Path("source").write_bytes(b"x" * 100_000)
        seccomp.apply(seccomp.build())
        shutil.copyfile("source", "copy")
        one, other = socket.socketpair()
        with open("source", "rb") as file:
            sent = one.sendfile(file, count=5000)
        return [Path("copy").stat().st_size, sent, len(other.recv(5000, socket.MSG_WAITALL))]

    assert in_child(action) == [100_000, 5000, 5000]


@on_a_known_machine
def test_a_child_cannot_shed_the_filter(uid: int | None) -> None:
    def action() -> object:
        seccomp.apply(seccomp.build())
        return in_child(lambda: errno_of(syscalls.unshare, syscalls.CLONE_NEWUSER))

    assert in_child(action, uid=uid) == errno.EPERM


# --- supervised ---------------------------------------------------------------------------------------------


def under_supervision(action: Callable[[], object], answer: Callable[[int, Call], None]) -> object:
    """What `action` returns in a child under a supervised filter, every call of whose is given to `answer`."""
    ours, theirs = socket.socketpair()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            wall = seccomp.apply(seccomp.build(supervised=True), theirs)
            outcome = action() if isinstance(wall, Applied) else repr(wall)
        except BaseException as error:
            outcome = repr(error)
        os.write(writing, json.dumps(outcome).encode())
        os._exit(0)
    os.close(writing)
    with ours, theirs, open(reading, "rb") as pipe:
        _, (listener,), _, _ = socket.recv_fds(ours, 64, 1)
        wait = select.poll()
        wait.register(listener, select.POLLIN)
        while wait.poll(10_000)[0][1] & select.POLLIN:
            call = calls.receive(listener)
            if call is not None:
                answer(listener, call)
        os.close(listener)
        told = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(told)


@on_a_known_machine
def test_a_supervised_call_is_carried_out_or_fails_as_it_is_told() -> None:
    seen = []

    def answer(listener: int, call: Call) -> None:
        seen.append((call.name, call.number(0), call.number(1)))
        if call.number(1) == signal.SIGUSR1:
            calls.allow(listener, call)
        else:
            calls.refuse(listener, call, errno.ESRCH)

    def action() -> object:
        os.setsid()
        got: list[int] = []
        signal.signal(signal.SIGUSR1, lambda number, frame: got.append(number))
        os.kill(0, signal.SIGUSR1)
        return [got == [signal.SIGUSR1], errno_of(os.kill, -os.getpid(), signal.SIGUSR2), os.getpid()]

    carried_out, error, pid = cast("list[int]", under_supervision(action, answer))
    assert (carried_out, error) == (True, errno.ESRCH)
    assert seen == [("kill", 0, signal.SIGUSR1), ("kill", -pid, signal.SIGUSR2)]


@on_a_known_machine
def test_a_supervised_call_fails_where_nobody_supervises() -> None:
    def action() -> object:
        ours, theirs = socket.socketpair()
        assert isinstance(seccomp.apply(seccomp.build(supervised=True), theirs), Applied)
        _, (listener,), _, _ = socket.recv_fds(ours, 64, 1)
        os.close(listener)
        return [errno_of(os.kill, os.getpid(), signal.SIGKILL), errno_of(os.sched_setaffinity, os.getpid(), {0})]

    assert in_child(action) == [errno.ENOSYS, errno.ENOSYS]


@on_a_known_machine
def test_a_second_supervised_filter_says_what_to_do() -> None:
    def action() -> object:
        _, theirs = socket.socketpair()
        program = seccomp.build(supervised=True)
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        allow_all = struct.pack("=HBBI", 0x06, 0, 0, ALLOW)
        syscalls.seccomp_install(allow_all, listener=True)
        wall = seccomp.apply(program, theirs)
        assert isinstance(wall, Unavailable)
        return [wall.reason.split(":")[0], wall.remedy]

    assert in_child(action) == [
        "[Errno 16] Device or resource busy",
        "an outer sandbox supervises system calls itself: run without it, or without checkpoints, with "
        "ExecutionLimits(max_checkpoints=0)",
    ]


# --- ordinary programs under the filter ---------------------------------------------------------------------

INSTALL = """
import sys
sys.path.insert(0, {package!r})
from cellblock.worker.confine import seccomp
from cellblock.walls import Applied
assert isinstance(seccomp.apply(seccomp.build()), Applied)
"""

ORDINARY = {
    "subprocess": """
        import subprocess
        assert subprocess.run(["/bin/sh", "-c", "echo a | cat"], capture_output=True).stdout == b"a\\n"
        assert subprocess.run([sys.executable, "-I", "-c", "print(1)"], capture_output=True).stdout == b"1\\n"
        assert subprocess.run("exit 3", shell=True, start_new_session=True).returncode == 3
    """,
    "threads": """
        import threading
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(len, ["ab"] * 100)) == 200
    """,
    "sqlite3": """
        import os, sqlite3, tempfile
        with tempfile.TemporaryDirectory() as directory:
            with sqlite3.connect(os.path.join(directory, "db")) as db:
                db.execute("pragma journal_mode=wal")
                db.execute("create table t (x)")
                db.executemany("insert into t values (?)", [(n,) for n in range(10)])
            assert db.execute("select sum(x) from t").fetchone() == (45,)
            db.close()
    """,
    "asyncio": """
        import asyncio, socket
        async def main():
            a, b = socket.socketpair()
            reader, _ = await asyncio.open_connection(sock=a)
            b.send(b"hello")
            assert await reader.readexactly(5) == b"hello"
            b.close()
            child = await asyncio.create_subprocess_exec("/bin/echo", "hi", stdout=asyncio.subprocess.PIPE)
            assert (await child.communicate())[0] == b"hi\\n"
            assert await asyncio.to_thread(sum, [1, 2]) == 3
            server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            assert await reader.read() == b""
            writer.close()
            server.close()
        asyncio.run(main())
    """,
    "files": """
        import fcntl, mmap, os, shutil, tempfile
        with tempfile.TemporaryDirectory() as directory:
            source = os.path.join(directory, "a")
            with open(source, "wb+") as file:
                file.write(bytes(8192))
                file.flush()
                fcntl.flock(file, fcntl.LOCK_EX)
                with mmap.mmap(file.fileno(), 0) as mapped:
                    mapped[0] = 7
            shutil.copytree(directory, directory + ".copy")
            os.rename(source, source + "b")
            os.symlink("ab", source)
            os.chmod(source + "b", 0o755)
            assert open(source, "rb").read(1) == bytes([7])
            shutil.rmtree(directory + ".copy")
    """,
    "signals and timers": """
        import os, signal, time
        got = []
        signal.signal(signal.SIGALRM, lambda number, frame: got.append(number))
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        signal.pause()
        os.kill(os.getpid(), signal.SIGALRM)
        descriptor = os.pidfd_open(os.getpid())
        signal.pidfd_send_signal(descriptor, signal.SIGALRM)
        assert got == [signal.SIGALRM] * 3, got
    """,
    "numpy": """
        import numpy
        assert float((numpy.ones((200, 200)) @ numpy.ones((200, 200))).sum()) == 8_000_000.0
    """,
}
MULTIPROCESSING = """
import multiprocessing
from multiprocessing import shared_memory
def square(x):
    return x * x
def fill(name):
    block = shared_memory.SharedMemory(name)
    block.buf[0] = 7
    block.close()
if __name__ == "__main__":
    {install}
    context = multiprocessing.get_context({method!r})
    with context.Pool(2) as pool:
        assert pool.map(square, range(5)) == [0, 1, 4, 9, 16]
    queue = context.Queue()
    process = context.Process(target=queue.put, args=("sent",))
    process.start()
    assert queue.get() == "sent"
    process.join()
    block = shared_memory.SharedMemory(create=True, size=4096)
    process = context.Process(target=fill, args=(block.name,))
    process.start()
    process.join()
    assert block.buf[0] == 7
    block.close()
    block.unlink()
    print("done")
"""


def run_program(source: str, directory: Path) -> tuple[str, str]:
    """Run a file with this Python and return what it printed and its errors."""
    script = directory / "program.py"
    script.write_text(source)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=directory, check=False)
    return done.stdout, done.stderr


def installing() -> str:
    assert cellblock.__file__ is not None
    return INSTALL.format(package=str(Path(cellblock.__file__).parents[1]))


@pytest.mark.sampled(3)
@on_a_known_machine
@pytest.mark.parametrize("what", ORDINARY)
def test_ordinary_programs_run_under_the_filter(what: str, tmp_path: Path) -> None:
    if what == "numpy":
        pytest.importorskip("numpy")
    lines = ORDINARY[what].strip("\n").rstrip().split("\n")
    body = "\n".join(line.removeprefix(" " * 8) for line in lines)
    assert run_program(f"{installing()}\n{body}\nprint('done')\n", tmp_path) == ("done\n", "")


@pytest.mark.sampled(1)
@on_a_known_machine
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_runs_under_the_filter(method: str, tmp_path: Path) -> None:
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("/dev/shm, where multiprocessing keeps its semaphores, is not writable")
    install = installing().strip().replace("\n", "\n    ")  # in the main process only: a filter takes no second one
    source = MULTIPROCESSING.format(install=install, method=method)
    assert run_program(source, tmp_path) == ("done\n", "")


@on_a_known_machine
def test_git_runs_under_the_filter(tmp_path: Path) -> None:
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed")
    commands = [
        [git, "init", "-q", "."],
        [git, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first"],
        [git, "log", "--format=%s"],
    ]
    source = f"{installing()}\nimport subprocess\nfor c in {commands!r}: subprocess.run(c, check=True)\n"
    assert run_program(source, tmp_path) == ("first\n", "")
