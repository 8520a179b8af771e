"""Attempts of `cellblock doctor` from inside a session: one or two a wall, and the answer that proves it.

Each source is a cell whose last expression says how the attempt ended: the name of an errno, of an exception,
or "got ..." with what it got. It sees `attempt` and `syscall` (below) and `bait`: what the host laid out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Bait = Mapping[str, object]
"""The names the sources use: canary, secret, port, pid, namespaces, numbers; and the limits processes, memory, disk."""

Judge = Callable[[object, Bait], bool]
"""True for an answer that proves the wall."""

PRELUDE = """
import ctypes, errno, os, socket

libc = ctypes.CDLL(None, use_errno=True)

def attempt(act, *arguments):
    try:
        return "got " + repr(act(*arguments))[:60]
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
    except BaseException as error:
        return type(error).__name__

def syscall(name, *arguments):
    if libc.syscall(ctypes.c_long(bait["numbers"][name]), *map(ctypes.c_long, arguments)) >= 0:
        return "got through"
    return errno.errorcode[ctypes.get_errno()]

def capabilities():
    sets = (ctypes.c_uint32 * 6)()
    libc.capget((ctypes.c_uint32 * 2)(0x20080522, 0), sets)
    held = sum(libc.prctl(option, *arguments) == 1
        for number in range(41) for option, *arguments in ((23, number), (47, 1, number, 0, 0)))
    return f"{sum(sets)} of the process, {held} to gain, no_new_privs {libc.prctl(39, 0, 0, 0, 0)}"
"""


@dataclass(frozen=True, slots=True)
class Probe:
    """One attempt at one wall. `needs_abi` is the Landlock version before which the wall does not promise it.

    `needs_proc`: without a /proc inside it cannot be told.
    """

    mechanism: str
    title: str
    source: str
    judge: Judge
    needs_abi: int = 0
    needs_proc: bool = False


def _answers(*allowed: str) -> Judge:
    """Proved by one of these; of several attempts in a dict, by one of these for each."""

    def judge(answer: object, _bait: Bait) -> bool:
        given = list(answer.values()) if isinstance(answer, dict) else [answer]
        return bool(given) and all(one in allowed for one in given)

    return judge


def _no_namespace_shared(answer: object, bait: Bait) -> bool:
    host = bait["namespaces"]
    if not isinstance(answer, dict) or not isinstance(host, dict) or answer.keys() != host.keys():
        return False
    return all(answer[kind] != host[kind] for kind in host)


def _stopped_at_limit(answer: object, bait: Bait) -> bool:
    """Twice as many are tried. Frozen copies that are being made or are ending have room that a cell may find free."""
    limit = bait["processes"]
    if not isinstance(answer, str) or not isinstance(limit, int):
        return False
    ended, _, count = answer.partition(" after ")
    return ended == "EAGAIN" and count.split()[0].isdigit() and int(count.split()[0]) < 2 * limit


def _holds_none(answer: object, _bait: Bait) -> bool:
    """Without a root of its own: what could be gained from a file does not matter once no_new_privs is set."""
    return isinstance(answer, str) and answer.startswith("0 of the process") and answer.endswith("no_new_privs 1")


_SYSCALLS = """
{
    "ptrace": syscall("ptrace", 0, 0, 0, 0),
    "unshare": syscall("unshare", 0x10000000),
    "setns": syscall("setns", 0, 0),
    "keyctl": syscall("keyctl", 0, -3, 0),
    "bpf": syscall("bpf", 0, 0, 0),
    "perf_event_open": syscall("perf_event_open", 0, 0, -1, -1, 0),
    "io_uring_setup": syscall("io_uring_setup", 1, 0),
    "userfaultfd": syscall("userfaultfd", 1),
    "process_vm_readv": syscall("process_vm_readv", os.getpid(), 0, 0, 0, 0, 0),
}
"""

_FORKS = """
def fill():
    children, ended = [], "got"
    try:
        while len(children) < 2 * bait["processes"]:
            child = os.fork()
            if child == 0:
                os.close(hold[1])
                os.read(hold[0], 1)
                os._exit(0)
            children.append(child)
    except OSError as error:
        ended = errno.errorcode[error.errno]
    os.close(hold[1])
    for child in children:
        os.waitpid(child, 0)
    os.close(hold[0])
    return f"{ended} after {len(children)} forks"

hold = os.pipe()
fill()
"""

_ABOUT = """
{
    "stat": attempt(os.stat, bait["canary"]),
    "chmod": attempt(os.chmod, bait["canary"], 0o600),
    "utime": attempt(os.utime, bait["canary"]),
    "readlink": attempt(os.readlink, f"/proc/{bait['pid']}/cwd"),
    "statvfs": attempt(os.statvfs, bait["canary"]),
}
"""

_FILL = """
import itertools
def fill():
    for number in itertools.count():
        with open(f"fill{number}", "wb", buffering=0) as file:
            for _ in range(8): file.write(bytes(bait["disk"] // 64))
        if number > 400: return "everything"
attempt(fill)
"""

_GROUPS = """
groups = [line.rpartition("/cellblock-") for line in open("/proc/self/cgroup").read().splitlines()]
f"counted in {sum(bool(found) for _, found, _ in groups)} of its own"
"""

_SOCKETS = """
families = {"unix": 1, "inet": 2, "inet6": 10, "netlink": 16, "vsock": 40}
{name: attempt(socket.socket, number) for name, number in families.items()}
"""

_READ = "attempt(lambda: open(bait['canary']).read())"
_BOTH = (
    Probe("seccomp", "run without a filter", "f'mode {libc.prctl(21, 0, 0, 0, 0)}'", _answers("mode 2")),
    Probe("seccomp", "make calls that reach past it", _SYSCALLS, _answers("EPERM")),
    Probe("rlimits", "take twice the memory limit",
          "attempt(lambda: len(bytearray(2 * bait['memory'])))", _answers("MemoryError")),
    Probe("rlimits", "fork past the number of processes", _FORKS, _stopped_at_limit),
)  # fmt: skip

PROBES = (
    Probe("namespaces", "share a namespace with the host",
          "{kind: os.readlink(f'/proc/self/ns/{kind}') for kind in bait['namespaces']}",
          _no_namespace_shared, needs_proc=True),
    Probe("namespaces", "connect to a listener on the host's 127.0.0.1",
          "attempt(lambda: socket.create_connection(('127.0.0.1', bait['port']), 5).getpeername())",
          _answers("ECONNREFUSED")),
    Probe("root", "read a file of the host", _READ, _answers("ENOENT")),
    Probe("root", "read a variable of the host's environment",
          "attempt(lambda: os.environ[bait['secret']])", _answers("KeyError")),
    Probe("capabilities", "hold a capability, or gain one by executing a file",
          "capabilities()", _answers("0 of the process, 0 to gain, no_new_privs 1")),
    Probe("landlock", "write to a file outside the session's own",
          "attempt(lambda: open('/etc/hostname', 'a'))", _answers("EACCES", "EROFS")),
    Probe("landlock", "signal the first process of the session",
          "attempt(os.kill, 1, 0)", _answers("EPERM"), needs_abi=6),
    *_BOTH,
    Probe("rlimits", "write more than the disk limit",
          "attempt(lambda: [open(f'fill{n}', 'wb').write(bytes(bait['disk'] // 2)) for n in range(4)])",
          _answers("ENOSPC", "EFBIG", "EDQUOT")),
    Probe("cgroup", "be counted in the host's control group", _GROUPS,
          _answers(*(f"counted in {number} of its own" for number in (1, 2, 3))), needs_proc=True),
)  # fmt: skip

REDUCED = (
    Probe("landlock", "read a file of the host", _READ, _answers("EACCES")),
    Probe("metadata", "ask about a file of the host, and change it", _ABOUT, _answers("ENOENT")),
    Probe("identity", "signal the program that opened the session",
          "attempt(os.kill, bait['pid'], 0)", _answers("EPERM")),
    Probe("seccomp", "open a socket of any family", _SOCKETS, _answers("EAFNOSUPPORT")),
    Probe("files", "write more than the disk limit in many files", _FILL, _answers("EFBIG")),
    Probe("capabilities", "hold a capability", "capabilities()", _holds_none),
    *_BOTH,
)  # fmt: skip
"""Those of a session without namespaces."""
