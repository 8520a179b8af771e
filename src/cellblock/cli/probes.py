"""Attempts of `cellblock doctor` from inside a session, one or two a wall, each with the answers that prove the wall.

Each source is a cell whose last expression is the answer: the name of an errno, of an exception, or "got ..." with
what it got; of several attempts, a dict. It sees the names of the prelude, and `bait`: facts of the host (the path of
the canary, the name of a secret, the port of a listener, pid, namespaces, numbers of system calls) and limits
(processes, memory, disk).
"""

from __future__ import annotations

from dataclasses import dataclass

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
    return f"{sum(sets)} of the process, no_new_privs {libc.prctl(39, 0, 0, 0, 0)}"

def to_gain():
    return sum(libc.prctl(option, *arguments) == 1
        for number in range(41) for option, *arguments in ((23, number), (47, 1, number, 0, 0)))
"""


@dataclass(frozen=True, slots=True)
class Probe:
    """One attempt at one wall, and the answers that prove it.

    `needs_abi` is the first Landlock version whose wall refuses it; `needs_proc`: it cannot be tried without a /proc
    inside.
    """

    mechanism: str
    title: str
    source: str
    proofs: tuple[str, ...]
    needs_abi: int = 0
    needs_proc: bool = False

    def is_proved(self, answer: object) -> bool:
        """True if the answer proves the wall; of several answers in a dict, if each does."""
        answers = list(answer.values()) if isinstance(answer, dict) else [answer]
        return bool(answers) and all(one in self.proofs for one in answers)


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

_NAMESPACES = """
shared = [kind for kind, host in bait["namespaces"].items() if os.readlink(f"/proc/self/ns/{kind}") == host]
"got " + ", ".join(shared) if shared else f"none of {len(bait['namespaces'])} is shared"
"""

_FORKS = """
def fill():
    children, ended = [], "got all"
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
    return ended  # copies that are being made or are ending may leave room for more than the limit

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
    Probe("seccomp", "make calls that reach past it", _SYSCALLS, ("EPERM",)),
    Probe("rlimits", "take twice the memory limit",
          "attempt(lambda: len(bytearray(2 * bait['memory'])))", ("MemoryError",)),
    Probe("rlimits", "fork past the number of processes", _FORKS, ("EAGAIN",)),
)  # fmt: skip

PROBES = (
    Probe("namespaces", "share a namespace with the host", _NAMESPACES, ("none of 6 is shared",), needs_proc=True),
    Probe("namespaces", "connect to a listener on the host's 127.0.0.1",
          "attempt(lambda: socket.create_connection(('127.0.0.1', bait['port']), 5).getpeername())",
          ("ECONNREFUSED",)),
    Probe("root", "read a file of the host", _READ, ("ENOENT",)),
    Probe("root", "read a variable of the host's environment",
          "attempt(lambda: os.environ[bait['secret']])", ("KeyError",)),
    Probe("capabilities", "hold a capability, or gain one by executing a file",
          "f'{capabilities()}, {to_gain()} to gain'", ("0 of the process, no_new_privs 1, 0 to gain",)),
    Probe("landlock", "write to a file outside the session's own",
          "attempt(lambda: open('/etc/hostname', 'a'))", ("EACCES", "EROFS")),
    Probe("landlock", "signal the first process of the session",
          "attempt(os.kill, 1, 0)", ("EPERM",), needs_abi=6),
    *_BOTH,
    Probe("rlimits", "write more than the disk limit",
          "attempt(lambda: [open(f'fill{n}', 'wb').write(bytes(bait['disk'] // 2)) for n in range(4)])",
          ("ENOSPC", "EFBIG", "EDQUOT")),
    Probe("cgroup", "be counted in the host's control group", _GROUPS,
          tuple(f"counted in {number} of its own" for number in (1, 2, 3)), needs_proc=True),
)  # fmt: skip

REDUCED = (
    Probe("landlock", "read a file of the host", _READ, ("EACCES",)),
    Probe("metadata", "ask about a file of the host, and change it", _ABOUT, ("ENOENT",)),
    Probe("identity", "signal the program that opened the session",
          "attempt(os.kill, bait['pid'], 0)", ("EPERM",)),
    Probe("seccomp", "open a socket of any family", _SOCKETS, ("EAFNOSUPPORT",)),
    Probe("files", "write more than the disk limit in many files", _FILL, ("EFBIG",)),
    # without a root of its own, what could be gained from a file does not matter once no_new_privs is set
    Probe("capabilities", "hold a capability", "capabilities()", ("0 of the process, no_new_privs 1",)),
    *_BOTH,
)  # fmt: skip
"""Those of a session without namespaces."""
