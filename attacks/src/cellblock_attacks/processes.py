"""W2: seeing, signalling and tracing processes outside of the session, and processes that outlive it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from cellblock import Session
from cellblock.hosting.waiting import ready
from cellblock_attacks.attack import Attack, Table
from cellblock_attacks.host import LIMITS, TRUST_LEVEL, Host, outcome_of

_SCOPE = "Landlock's signal scope: init is outside of the session's domain"
_NAMESPACE = "the pid namespace"
_SECCOMP = "seccomp"
_HIDDEN = "/proc hides who could not be traced, which Landlock decides"
_ENDED = "init ends with the host's end of its channel, and its namespace with it"


_TABLE = Table("processes", "W2")
_cell, _host = _TABLE.cell, _TABLE.host


_DAEMON = """
import os, subprocess, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", "import signal; signal.sigwait({{signal.SIGUSR1}})",
            {marker!r}])
    os._exit(0)
os.wait()
while not any({marker!r} in open(f"/proc/{{p}}/cmdline").read() for p in os.listdir("/proc")
    if p.isdigit() and p != str(os.getpid())):
    pass
"""
"""A process in a session of its own whose parent is gone; ends once it can be seen by its arguments."""


def _marked(marker: str) -> list[int]:
    """Pids, as the host sees them, of processes with a word in their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and marker.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


@contextlib.contextmanager
def _watched(pids: list[int]) -> Iterator[list[int]]:
    numbers = [os.pidfd_open(pid) for pid in pids]
    try:
        yield numbers
    finally:
        for number in numbers:
            os.close(number)


def _all_end(numbers: list[int]) -> bool:
    """True if every process ends; each pidfd becomes readable when its process does."""
    return all(ready(number, seconds=10.0) for number in numbers)


def _descendants(pid: int) -> list[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


def _leaves_a_daemon(host: Host, end: Callable[[Session], object]) -> object:
    marker = f"daemon-of-{os.getpid()}-{end.__name__}"
    with Session(limits=replace(LIMITS, timeout_seconds=0.6, interrupt_grace_seconds=0.2)) as session:
        outcome_of(session, _DAEMON.format(marker=marker))
        pids = _marked(marker)
        with _watched(pids) as numbers:
            end(session)
            return {"seen": len(pids), "ended": _all_end(numbers)}


def _close(session: Session) -> None:
    session.close()


def _crash(session: Session) -> None:
    session.run("import os; os._exit(1)")


def _time_out(session: Session) -> None:
    session.run("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)")


def _kill(session: Session) -> None:
    session.kill()
    session.run("pass")


_VICTIM = """
import sys
from cellblock_attacks.host import LIMITS, outcome_of
from cellblock_attacks.processes import _DAEMON
from cellblock import Session
sessions = [Session(limits=LIMITS) for _ in range(2)]
for session in sessions:
    outcome_of(session, _DAEMON.format(marker=sys.argv[1]))
print("ready", flush=True)
sessions[0].run("while True: pass")
"""


def _host_is_killed(host: Host) -> object:
    """SIGKILL for a host with two sessions, one in the middle of a cell; everything it started must end."""
    marker = f"daemon-of-killed-{os.getpid()}"
    environment = {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "HOME": os.path.expanduser("~"),
        "ATTACKED_TRUST_LEVEL": TRUST_LEVEL,
    }
    with subprocess.Popen(
        [sys.executable, "-c", _VICTIM, marker], stdout=subprocess.PIPE, env=environment, cwd="/"
    ) as victim:
        assert victim.stdout is not None
        victim.stdout.readline()
        marked, below = _marked(marker), _descendants(victim.pid)
        with _watched(sorted({*marked, *below} - {victim.pid})) as numbers:
            victim.send_signal(signal.SIGKILL)
            victim.wait()
            family = (
                len(below) >= 4 or TRUST_LEVEL == "sandboxed"
            )  # a container's processes are no children of its user
            return {"daemons": len(marked) - 1, "family": family, "ended": _all_end(numbers)}


def _host_pids(host: Host) -> object:
    """Signals to processes of the host, by the pids they have there."""
    mine = [os.getpid(), os.getppid(), *_descendants(os.getpid())]
    return host.cell(f"sorted({{attempt(os.kill, pid, 0) for pid in set({mine}) - set(pids())}})")


def _session_is_alone(host: Host) -> object:
    with Session(limits=LIMITS) as session:
        return outcome_of(session, "import os\n[int(p) for p in os.listdir('/proc') if p.isdigit()] == [os.getpid()]")


ATTACKS: tuple[Attack, ...] = (
    _host("listing", _NAMESPACE, True, _session_is_alone),
    _host("kill-by-host-pid", _NAMESPACE, ["ESRCH"], _host_pids),
    _cell(
        "arguments-of-others",
        _NAMESPACE,
        [],
        """
[pid for pid in pids() if pid != 1 and str(facts["pid"]) in read(f"/proc/{pid}/cmdline")]
""",
    ),
    _cell(
        "kill-init",
        _SCOPE,
        ["EPERM"],
        """
import signal
sorted({attempt(os.kill, 1, number) for number in signal.valid_signals()})
""",
    ),
    _cell(
        "kill-init-by-thread",
        _SCOPE,
        ["EPERM"],
        """
sorted({call("tgkill", 1, 1, 9), call("tkill", 1, 9), call("rt_sigqueueinfo", 1, 9, bytes(128)),
        call("rt_tgsigqueueinfo", 1, 1, 9, bytes(128))})
""",
    ),
    _cell(
        "kill-init-by-pidfd",
        _SECCOMP,
        ["ENOSYS"],
        """
import signal
number = os.pidfd_open(1)
sorted({attempt(signal.pidfd_send_signal, number, one) for one in (9, 15, 19)})
""",
    ),
    _cell(
        "kill-init-by-owner-of-a-pipe",
        _SCOPE,
        "init lives",
        """
import fcntl, signal
inlet, outlet = os.pipe()
attempt(fcntl.fcntl, inlet, fcntl.F_SETOWN, 1)
attempt(fcntl.fcntl, inlet, 10, signal.SIGKILL)
attempt(fcntl.fcntl, inlet, fcntl.F_SETFL, os.O_ASYNC)
os.write(outlet, b"x")
os.close(inlet); os.close(outlet)
"init lives" if attempt(os.kill, 1, 0) == "EPERM" else "init died"
""",
    ),
    _cell(
        "kill-everything",
        "seccomp: no process may kill(-1)",
        ["EPERM"],
        """
sorted({attempt(os.kill, -1, number) for number in (9, 15, 19)})
""",
    ),
    _cell(
        "trace",
        _SECCOMP,
        ["EPERM"],
        """
sorted({call("ptrace", request, 1, 0, 0) for request in (0, 16, 0x4206)})
""",
    ),
    _cell(
        "memory-of-init",
        _HIDDEN,
        ["ENOENT"],
        """
sorted({attempt(open, f"/proc/1/{name}", "rb") for name in ("mem", "environ", "maps", "auxv", "syscall", "stat")})
""",
    ),
    _cell(
        "memory-calls",
        _SECCOMP,
        ["EPERM"],
        """
sorted({call("process_vm_readv", 1, 0, 0, 0, 0, 0), call("process_vm_writev", 1, 0, 0, 0, 0, 0),
        call("process_madvise", 0, 0, 0, 0, 0), call("process_mrelease", 0, 0), call("kcmp", 1, os.getpid(), 0, 0, 0),
        call("pidfd_getfd", os.pidfd_open(1), 0, 0), call("move_pages", 1, 0, 0, 0, 0, 0),
            call("migrate_pages", 1, 0, 0, 0)})
""",
    ),
    _cell(
        "limits-and-priority-of-init",
        _SECCOMP,
        ["EPERM"],
        """
import resource
sorted({call("prlimit64", 1, resource.RLIMIT_NOFILE, bytes(16), 0), call("setpriority", 0, 1, 19),
    call("setpriority", 2, 0, 19),
        call("setpriority", 1, 0, 19), call("ioprio_set", 1, 1, 0), call("sched_setscheduler", 1, 0, bytes(4)),
            call("sched_setattr", 1, bytes(56), 0)})
""",
    ),
    _cell(
        "settings-of-init",
        _HIDDEN,
        ["ENOENT"],
        """
def write(name):
    with open("/proc/1/" + name, "w") as file:
        file.write("1")
    return "written " + name
sorted({attempt(write, name) for name in ("oom_score_adj", "comm", "clear_refs", "coredump_filter", "timerslack_ns")})
""",
    ),
    _cell(
        "namespaces-of-init",
        _HIDDEN,
        ["ENOENT"],
        """
sorted({attempt(os.readlink, "/proc/1/ns/" + name) for name in ("user", "mnt", "pid", "net")})
""",
    ),
    *(
        _host(
            f"daemon-after-{end.__name__.strip('_').replace('_', '-')}",
            wall,
            {"seen": 1, "ended": True},
            partial(_leaves_a_daemon, end=end),
        )
        for end, wall in (
            (_close, _ENDED),
            (_crash, "init sweeps its namespace"),
            (_kill, "init sweeps its namespace"),
            (_time_out, "init sweeps its namespace"),
        )
    ),
    _host("host-is-killed", _ENDED, {"daemons": 2, "family": True, "ended": True}, _host_is_killed),
)
