"""What `cellblock doctor` tries from inside a session, one row an attempt, and what answer proves the wall.

Each source is a cell whose last expression says how the attempt ended: the name of an errno, of an exception,
or "got ..." with what it got. It sees `attempt` and `syscall` (below) and `bait`: what the host laid out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Bait = Mapping[str, object]
"""The names the sources use: canary, secret, port, abstract, hostname, pid, namespaces, numbers; and the limits
processes, memory, disk."""

Judge = Callable[[object, Bait], bool]
"""Whether an answer proves the wall."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
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


def answers(*allowed: str) -> Judge:
    return lambda answer, _bait: answer in allowed


def each(*allowed: str) -> Judge:
    return lambda answer, _bait: isinstance(answer, dict) and bool(answer) and set(answer.values()) <= set(allowed)


def _differs(key: str) -> Judge:
    return lambda answer, bait: isinstance(answer, str) and answer != bait[key]


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

FORKS = """
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

PROBES = (
    Probe(
        mechanism="namespaces",
        title="share a namespace with the host",
        source="{kind: os.readlink(f'/proc/self/ns/{kind}') for kind in bait['namespaces']}",
        judge=_no_namespace_shared,
        needs_proc=True,
    ),
    Probe(
        mechanism="namespaces",
        title="find the host's processes",
        source="""
def read(pid, name):
    with open(f"/proc/{pid}/{name}") as file:
        return file.read()
me = str(os.getpid())
def is_ours(pid):  # this process, or a checkpoint, which is a copy of it
    parent = read(pid, "stat").rpartition(")")[2].split()[1]
    return pid == me or (parent in ("1", me) and read(pid, "cmdline") == read(me, "cmdline"))
others = [read(pid, "cmdline") for pid in os.listdir("/proc") if pid.isdigit() and pid != "1" and not is_ours(pid)]
"got " + ", ".join(others) if others else "none in sight"
""",
        judge=answers("none in sight"),
        needs_proc=True,
    ),
    Probe(
        mechanism="namespaces",
        title="connect to a listener on the host's 127.0.0.1",
        source="attempt(lambda: socket.create_connection(('127.0.0.1', bait['port']), 5).getpeername())",
        judge=answers("ECONNREFUSED"),
    ),
    Probe(
        mechanism="namespaces",
        title="connect to an abstract unix socket of the host",
        source="attempt(lambda: socket.socket(socket.AF_UNIX).connect(chr(0) + bait['abstract']))",
        judge=answers("ECONNREFUSED", "EPERM"),
    ),
    Probe(
        mechanism="namespaces",
        title="send to an address outside",
        source="attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 53)))",
        judge=answers("ENETUNREACH"),
    ),
    Probe(
        mechanism="namespaces",
        title="learn the host's name",
        source="socket.gethostname()",
        judge=_differs("hostname"),
    ),
    Probe(
        mechanism="root",
        title="read a file of the host",
        source="attempt(lambda: open(bait['canary']).read())",
        judge=answers("ENOENT"),
    ),
    Probe(
        mechanism="root",
        title="read it through the root of the first process",
        source="attempt(lambda: open('/proc/1/root' + bait['canary']).read())",
        judge=answers("EACCES", "EPERM", "ENOENT"),
    ),
    Probe(
        mechanism="root",
        title="write to /usr",
        source="attempt(lambda: open('/usr/cellblock-probe', 'w'))",
        judge=answers("EROFS", "EACCES"),
    ),
    Probe(
        mechanism="root",
        title="read a variable of the host's environment",
        source="attempt(lambda: os.environ[bait['secret']])",
        judge=answers("KeyError"),
    ),
    Probe(
        mechanism="capabilities",
        title="hold a capability, or gain one by executing a file",
        source="capabilities()",
        judge=answers("0 of the process, 0 to gain, no_new_privs 1"),
    ),
    Probe(
        mechanism="capabilities",
        title="mount a file system",
        source="""
target = ctypes.c_char_p(b"/workspace")
"got through" if libc.mount(b"none", target, b"tmpfs", 0, None) == 0 else errno.errorcode[ctypes.get_errno()]
""",
        judge=answers("EPERM"),
    ),
    Probe(
        mechanism="capabilities",
        title="become root",
        source="attempt(os.setuid, 0)",
        judge=answers("EPERM", "EINVAL"),
    ),
    Probe(
        mechanism="landlock",
        title="write to a file outside the session's own",
        source="attempt(lambda: open('/etc/hostname', 'a'))",
        judge=answers("EACCES", "EROFS"),
    ),
    Probe(
        mechanism="landlock",
        title="send a device an ioctl",
        source="""
import fcntl
attempt(lambda: fcntl.ioctl(open("/dev/urandom", "rb"), 0x80045200, bytes(4)))
""",
        judge=answers("EACCES"),
        needs_abi=5,
    ),
    Probe(
        mechanism="landlock",
        title="signal the first process of the session",
        source="attempt(os.kill, 1, 0)",
        judge=answers("EPERM"),
        needs_abi=6,
    ),
    Probe(
        mechanism="seccomp",
        title="run without a filter",
        source="f'mode {libc.prctl(21, 0, 0, 0, 0)}'",
        judge=answers("mode 2"),
    ),
    Probe(mechanism="seccomp", title="make calls that reach past it", source=_SYSCALLS, judge=each("EPERM")),
    Probe(
        mechanism="seccomp",
        title="open netlink, packet and vsock sockets",
        source="{name: attempt(socket.socket, number, 3) for name, number in "
        "(('netlink', 16), ('packet', 17), ('vsock', 40))}",
        judge=each("EAFNOSUPPORT"),
    ),
    Probe(
        mechanism="rlimits",
        title="take twice the memory limit",
        source="attempt(lambda: len(bytearray(2 * bait['memory'])))",
        judge=answers("MemoryError"),
    ),
    Probe(
        mechanism="rlimits",
        title="fork past the number of processes",
        source=FORKS,
        judge=_stopped_at_limit,
    ),
    Probe(
        mechanism="rlimits",
        title="write more than the disk limit",
        source="attempt(lambda: [open(f'fill{n}', 'wb').write(bytes(bait['disk'] // 2)) for n in range(4)])",
        judge=answers("ENOSPC", "EFBIG", "EDQUOT"),
    ),
    Probe(
        mechanism="cgroup",
        title="be counted in the host's control group",
        source="""
groups = [line.rpartition("/cellblock-") for line in open("/proc/self/cgroup").read().splitlines()]
f"counted in {sum(bool(found) for _, found, _ in groups)} of its own"
""",
        judge=answers(*(f"counted in {number} of its own" for number in (1, 2, 3))),
        needs_proc=True,
    ),
)
