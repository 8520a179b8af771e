"""What `cellblock doctor` tries from inside a session without namespaces; see `probes` for the rows' form."""

from __future__ import annotations

from dataclasses import replace

from cellblock.cli.probes import FORKS, PROBES, Bait, Probe, answers, each

_SAME = (
    "write to /usr",
    "read a variable of the host's environment",
    "mount a file system",
    "become root",
    "send a device an ioctl",
    "run without a filter",
    "make calls that reach past it",
    "take twice the memory limit",
)

_ABOUT = """
{
    "stat": attempt(os.stat, bait["canary"]),
    "chmod": attempt(os.chmod, bait["canary"], 0o600),
    "utime": attempt(os.utime, bait["canary"]),
    "readlink": attempt(os.readlink, f"/proc/{bait['pid']}/cwd"),
    "statvfs": attempt(os.statvfs, bait["canary"]),
}
"""

_LIMITS = """
import resource
{
    "prlimit": attempt(resource.prlimit, bait["pid"], resource.RLIMIT_CORE, (0, 0)),
    "setpriority": attempt(os.setpriority, os.PRIO_PROCESS, bait["pid"], 19),
    "sched_setaffinity": attempt(os.sched_setaffinity, bait["pid"], {0}),
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


def _holds_none(answer: object, _bait: Bait) -> bool:
    """What could be gained from a file does not matter once no_new_privs is set."""
    return isinstance(answer, str) and answer.startswith("0 of the process") and answer.endswith("no_new_privs 1")


def _stopped(answer: object, bait: Bait) -> bool:
    """Where sessions have no account of their own, its other processes come and go within the same limit."""
    limit = bait["processes"]
    if not isinstance(answer, str) or not isinstance(limit, int):
        return False
    ended, _, count = answer.partition(" after ")
    return ended == "EAGAIN" and int(count.split()[0]) < 2 * limit


def _moved(probe: Probe) -> Probe:
    """A probe of a session's root as one of what stands in for that here."""
    mechanism = "landlock" if probe.mechanism == "root" else probe.mechanism
    return replace(probe, mechanism=mechanism)


REDUCED = (
    Probe(
        mechanism="landlock",
        title="read a file of the host",
        source="attempt(lambda: open(bait['canary']).read())",
        judge=answers("EACCES"),
    ),
    Probe(
        mechanism="landlock",
        title="list the directories of all sessions",
        source="attempt(os.listdir, os.path.dirname(os.path.dirname(os.getcwd())))",
        judge=answers("EACCES"),
    ),
    Probe(
        mechanism="metadata", title="ask about a file of the host, and change it", source=_ABOUT, judge=each("ENOENT")
    ),
    Probe(
        mechanism="metadata",
        title="change the rights of a file of the system",
        source="attempt(os.chmod, os.__file__, 0o777)",
        judge=answers("EROFS"),
    ),
    Probe(
        mechanism="identity",
        title="signal the program that opened the session",
        source="attempt(os.kill, bait['pid'], 0)",
        judge=answers("EPERM"),
    ),
    Probe(
        mechanism="identity",
        title="signal its keeper",
        source="attempt(os.kill, os.getppid(), 0)",
        judge=answers("EPERM"),
    ),
    Probe(mechanism="seccomp", title="change limits and priority of that program", source=_LIMITS, judge=each("EPERM")),
    Probe(
        mechanism="seccomp",
        title="open a socket of any family",
        source="{name: attempt(socket.socket, number) for name, number in "
        "(('unix', 1), ('inet', 2), ('inet6', 10), ('netlink', 16), ('vsock', 40))}",
        judge=each("EAFNOSUPPORT"),
    ),
    Probe(
        mechanism="seccomp",
        title="make a pair of datagram sockets, which can send to anybody",
        source="attempt(socket.socketpair, socket.AF_UNIX, socket.SOCK_DGRAM)",
        judge=answers("EPROTONOSUPPORT"),
    ),
    Probe(
        mechanism="files", title="write more than the disk limit in many files", source=_FILL, judge=answers("EFBIG")
    ),
    Probe(mechanism="capabilities", title="hold a capability", source="capabilities()", judge=_holds_none),
    Probe(mechanism="rlimits", title="fork past the number of processes", source=FORKS, judge=_stopped),
    *(_moved(probe) for probe in PROBES if probe.title in _SAME),
)
