"""W10: a cell against the checkpoints of the cells before it."""

from __future__ import annotations

from cellblock import Session
from cellblock_attacks.attack import Attack, Table, host_later
from cellblock_attacks.host import LIMITS, Host, outcome_of

_SUPERVISOR = "init answers signals, as the supervisor of the system call filter"
_SECCOMP = "seccomp"
_SET_BACK = {"state": [1], "lost": []}


def _against(name: str, wall: str, expect: object, cell: str, threat: str = "W10") -> Attack:
    """A cell that attacks the checkpoints of the three before it; then it and one of them are undone."""

    def host(host: Host) -> object:
        with Session(limits=LIMITS) as session:
            for number in range(3):
                session.run(f"state = [{number}]")
            answer = outcome_of(session, f"{host.prelude}\n{_NUMBERS}\n{cell}")
            session.undo(2)
            back = session.run("state")
            return {"answer": answer, "state": back.value, "lost": [one.name for one in back.lost]}

    return _host(name, wall, {"answer": expect, **_SET_BACK}, host, threat=threat)


_host = Table("checkpoints", "W10").host


@host_later
def _claims(host: Host, who: str) -> object:
    """A cell says on the end of its own checkpoint that a process of its is that; then its process ends."""
    with Session(limits=LIMITS) as session:
        session.run("state = [0]")
        session.run(f"{host.prelude}\n{_END}\n{who}\nstate = [1]")
        session.run("import os; os._exit(1)")
        after = session.run("state")
        session.undo()
        return {"after": after.value, "state": session.run("state").value, "left": session.run(_OTHERS).value}


_END = """
import os, socket, stat
end = None
for number in range(3, 64):
    if number != channel() and os.path.exists(f"/proc/self/fd/{number}") and stat.S_ISSOCK(os.fstat(number).st_mode):
        end = socket.socket(fileno=os.dup(number))
"""
CLAIM = "import time\nif os.fork() == 0:\n    end.send(b'ready')\n    time.sleep(1000)\ntime.sleep(0.2)"
_OTHERS = "import os\n[pid for pid in map(int, filter(str.isdigit, os.listdir('/proc'))) if pid != os.getpid()]"

_NUMBERS = """
import signal
others = [n for n in range(2, os.getpid() + 30) if n != os.getpid()]
"""
"""Every number that a process of the session may have, whether it can be seen or not."""

_POSERS = """
import ctypes, os, socket, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
def hold(megabytes):
    for _ in range(megabytes // 8):
        piece = ctypes.c_void_p(libc.mmap(None, ctypes.c_size_t(8 << 20), 3, 0x22, -1, 0))
        libc.memset(piece, 1, ctypes.c_size_t(8 << 20))
        libc.mprotect(piece, ctypes.c_size_t(8 << 20), 1)
def sockets():
    for number in range(3, 64):
        try:
            if os.readlink(f"/proc/self/fd/{number}").startswith("socket:"):
                yield number
        except OSError:
            pass
def pose(number):
    number = os.dup(number)  # a fork closes the runner's own
    pid = os.fork()
    if pid == 0:
        libc.prctl(4, 0, 0, 0, 0)
        try:
            socket.socket(fileno=number).send(b"ready")
        except OSError:
            pass
        time.sleep(1)
        hold(200)
        time.sleep(1000)
    return pid
posers = [pose(number) for number in list(sockets())]
"""
"""Children that say, on whatever leads out, that they are the copy; then they fill memory that no limit counts."""

_ENDS = """
ends, deadline = [], time.monotonic() + 6
for pid in posers:
    while not (end := os.waitpid(pid, os.WNOHANG))[0] and time.monotonic() < deadline:
        time.sleep(0.05)
    ends.append(end[1])
[len(ends) > 0, sorted(set(ends))]
"""


def _pose(host: Host) -> object:
    """A process that passes itself off as a checkpoint counts to no limit of the session's own."""
    with Session(limits=LIMITS) as session:
        session.run(_POSERS)
        return outcome_of(session, _ENDS)


ATTACKS: tuple[Attack, ...] = (
    _host("posed-as", "init ends a copy that runs while nobody speaks to it", [True, [9]], _pose, threat="W6"),
    _host(
        "claimed-by-the-worker",
        "the kernel stamps who says it, and the worker is no copy of itself; an older checkpoint takes its place",
        {"after": [0], "state": [0], "left": []},
        _claims("end.send(b'ready')"),
    ),
    _host(
        "claimed-by-a-child",
        "what two processes claim to be is neither; an older checkpoint takes its place",
        {"after": [0], "state": [0], "left": []},
        _claims(CLAIM),
    ),
    _against(
        "killed",
        _SUPERVISOR,
        ["EPERM", "ESRCH"],
        "sorted({attempt(os.kill, pid, number) for pid in others for number in (9, 15, 19, 6)})",
        "W2",
    ),
    _against(
        "killed-by-group",
        _SUPERVISOR,
        ["EPERM", "ESRCH"],
        "sorted({attempt(os.killpg, pid, 9) for pid in others})",
        "W2",
    ),
    _against(
        "killed-by-thread",
        _SUPERVISOR,
        ["EPERM", "ESRCH"],
        """
sorted({one for pid in others for one in (call("tkill", pid, 9), call("tgkill", pid, pid, 9),
    call("rt_sigqueueinfo", pid, 9, bytes(128)), call("rt_tgsigqueueinfo", pid, pid, 9, bytes(128)))})
""",
        "W2",
    ),
    _against(
        "killed-by-a-child",
        _SUPERVISOR,
        ["EPERM", "ESRCH"],
        """
import subprocess, sys
program = '''
import os
def attempt(pid):
    try:
        return os.kill(pid, 9)
    except OSError as error:
        return error.errno
print({attempt(int(pid)) for pid in %r if pid != os.getpid()})
''' % others
found = eval(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout)
sorted(errno.errorcode[one] for one in found)
""",
        "W2",
    ),
    _against(
        "killed-by-pidfd",
        _SECCOMP,
        ["ENOSYS", "ESRCH"],
        """
def send(pid, number):
    signal.pidfd_send_signal(os.pidfd_open(pid), number)
sorted({attempt(send, pid, number) for pid in others for number in (9, 19)})
""",
        "W2",
    ),
    _against(
        "killed-by-owner-of-a-pipe",
        _SECCOMP,
        ["EPERM"],
        """
import fcntl
found = set()
for pid in others:
    inlet, outlet = os.pipe()
    attempt(fcntl.fcntl, inlet, fcntl.F_SETOWN, pid)
    found |= {attempt(fcntl.fcntl, inlet, 10, number) for number in (9, 19)}
    attempt(fcntl.fcntl, inlet, 10, 40)
    attempt(fcntl.fcntl, inlet, fcntl.F_SETFL, os.O_ASYNC)
    os.write(outlet, b"x")
    os.close(inlet); os.close(outlet)
sorted(found)
""",
        "W2",
    ),
    _against(
        "traced-and-read",
        _SECCOMP,
        ["EPERM"],
        """
sorted({one for pid in others for one in (call("ptrace", 16, pid, 0, 0), call("ptrace", 0x4206, pid, 0, 0),
    call("process_vm_readv", pid, 0, 0, 0, 0, 0), call("process_vm_writev", pid, 0, 0, 0, 0, 0),
    call("kcmp", pid, os.getpid(), 0, 0, 0), call("sched_setscheduler", pid, 0, bytes(4)),
    call("sched_setattr", pid, bytes(56), 0), call("setpriority", 0, pid, 19), call("ioprio_set", 1, pid, 0),
    call("prlimit64", pid, 9, bytes(16), 0), call("move_pages", pid, 0, 0, 0, 0, 0))})
""",
        "W2",
    ),
    _against(
        "opened-in-proc",
        "a copy is not dumpable; Landlock lets nobody write to /proc",
        [],
        """
import fnmatch
opened = []
for pid in others:
    if not os.path.exists(f"/proc/{pid}"):
        continue
    for name in ("mem", "maps", "environ", "auxv", "syscall", "stack", "clear_refs", "oom_score_adj", "comm"):
        for mode in ("rb", "r+b"):
            try:
                with open(f"/proc/{pid}/{name}", mode) as file:
                    mode == "rb" and file.read(1)
                if (name, mode) not in (("oom_score_adj", "rb"), ("comm", "rb")):
                    opened.append((name, mode))
            except OSError:
                pass
    for name in ("root", "cwd", "exe", "ns/pid", "fd/0", "fd/1", "map_files"):
        if not isinstance(attempt(os.readlink, f"/proc/{pid}/{name}"), str) :
            opened.append(name)
sorted(set(opened))
""",
        "W5",
    ),
    _against(
        "moved-to-one-processor",
        _SUPERVISOR,
        ["EPERM", "ESRCH"],
        "sorted({attempt(os.sched_setaffinity, pid, {0}) for pid in others})",
        "W2",
    ),
    _against(
        "waited-for",
        "a copy is no child that a wait meets",
        ["ECHILD"],
        """
import signal
def reap(*args):
    try:
        return os.waitpid(*args)
    except ChildProcessError:
        return "ECHILD"
sorted({reap(-1, os.WNOHANG), reap(0, os.WNOHANG), *(reap(pid, os.WNOHANG) for pid in others)})
""",
        "W2",
    ),
)
