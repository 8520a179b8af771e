"""W10: a session against its branches, and a branch against the session that it was branched from."""

from __future__ import annotations

import time
from typing import cast

from cellblock import CellblockError, Session
from cellblock_attacks.attack import Attack, Table, host_later, subset_of
from cellblock_attacks.checkpoints import _END, CLAIM
from cellblock_attacks.host import LIMITS, Host, outcome_of

_SUPERVISOR = "init answers signals, as the supervisor of the system call filter: none reaches a branch's processes"
_HIDDEN = "a branch's processes are not dumpable, and their memory is of a user namespace that no session has rights in"
_NEITHER = "what two processes claim to be is neither: there is no branch of it"
_FILTER = "the filter that a branch puts in front: it executes no programs and stays hidden"
_NUMBERS = "others = [pid for pid in range(2, os.getpid() + 60) if pid != os.getpid()]"
"""Every number that a process of the session or of its branches may have, whether it can be seen or not."""
_KEPT = "state = ['kept']\nwith open('kept', 'w') as file:\n    _ = file.write('kept')"
_WELL = {"state": ["kept"], "file": "kept"}


def _by_the_stem(name: str, wall: str, expect: object, cell: str, threat: str = "W10") -> Attack:
    """A cell of the session that was branched; the branch, with a child of its own, is as it was then."""

    def host(host: Host) -> object:
        with Session(limits=LIMITS) as session:
            session.run(_KEPT)
            with session.branch() as branch:
                branch.run("import os, time\nif not (child := os.fork()):\n    time.sleep(60)\n    os._exit(0)")
                answer = outcome_of(session, f"{host.prelude}\n{_NUMBERS}\n{cell}")
                left = branch.run("state, open('kept').read(), os.waitpid(child, os.WNOHANG)[0], os.listdir('.')")
                state, file, ended, files = cast("tuple[object, ...]", left.value)
                return {"answer": answer, "state": state, "file": file, "ended": ended, "files": files}

    expected = {"answer": expect, **_WELL, "ended": 0, "files": ["kept"]}
    return Attack(name=f"branches-{name}", threat=threat, wall=wall, expect=expected, host=host)


def _by_the_branch(
    name: str, wall: str, expect: object, cell: str, threat: str = "W10", before: str = "pass"
) -> Attack:
    """A cell of the branch, after one of the session; the session is as it was then."""

    def host(host: Host) -> object:
        with Session(limits=LIMITS) as session:
            session.run(f"{_KEPT}\n{host.prelude}\n{before}")
            with session.branch() as branch:
                answer = outcome_of(branch, f"{_NUMBERS}\n{cell}")
            left = session.run("state, open('kept').read(), os.listdir('.')")
            state, file, files = cast("tuple[object, ...]", left.value)
            return {"answer": answer, "state": state, "file": file, "files": files}

    expected = {"answer": expect, **_WELL, "files": ["kept"]}
    return Attack(name=f"branches-{name}", threat=threat, wall=wall, expect=expected, host=host)


_host = Table("branches", "W10").host


_SPY = """
import subprocess, threading, time
found, done = set(), []
def group(pid):
    try:
        return read(f"/proc/{pid}/status").split("Tgid:")[1].split()[0]
    except OSError:
        return ""
def watch():
    while not done:
        found.update(pid for pid in range(2, 200) if os.path.lexists(f"/proc/{pid}") and group(pid))
threading.Thread(target=watch, daemon=True).start()
child = subprocess.Popen(["sleep", "60"])
while str(child.pid) not in map(group, found):
    time.sleep(0.001)
"""


def _watched_while_it_is_made(host: Host) -> object:
    """A thread of the session looks for processes without a pause while branches are made, used and closed.

    It sees the session's own threads and a child of it.
    """
    with Session(limits=LIMITS) as session:
        session.run(f"{host.prelude}\n{_KEPT}")
        session.run(_SPY)
        for _ in range(5):
            with session.branch() as branch:
                branch.run("import os\nif not os.fork(): os._exit(0)")
        session.run("own = {child.pid, *map(int, os.listdir('/proc/self/task'))}")
        return session.run("done.append(1)\nchild.pid in found, sorted(found - own)").value


def _takes_all_processes(_host: Host) -> object:
    """A branch takes every process that it can have; the session, and another branch, have theirs, and checkpoints."""
    with Session(limits=LIMITS) as session:
        session.run(_KEPT)
        with session.branch() as bomb, session.branch() as other:
            bomb.run(
                "import os, time\ntry:\n    while True:\n        if not os.fork():\n            time.sleep(60)\n"
                "            os._exit(0)\nexcept BlockingIOError:\n    pass"
            )
            child = "import os\nif not (child := os.fork()):\n    os._exit(7)\nos.waitpid(child, 0)[1] >> 8"
            answers = [one.run(child).value for one in (session, other)]
            session.run("state = 0")
            session.undo()
            return [*answers, session.run("state").value]


_PEEK = """
import array, socket, time
if os.fork() == 0:
    os.setsid()
    ends = array.array("i")
    while not ends:
        try:
            _, ancillary, _, _ = end.recvmsg(65536, socket.CMSG_SPACE(128), socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except OSError:
            continue
        for _, kind, payload in ancillary:
            ends.frombytes(payload[: len(payload) // 4 * 4] if kind == socket.SCM_RIGHTS else b"")
    wire, found = socket.socket(fileno=ends[0]), [b""]
    attempt(os.write, ends[min(1, len(ends) - 1)], b"of another")
    while True:
        try:
            packet = wire.recv(65536, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except OSError:
            continue
        if packet not in found:
            found.append(packet)
            open("seen", "ab").write(packet)
end.close()
time.sleep(0.2)
"""


def _looks_into_the_channel(host: Host) -> object:
    """A child of the session has its checkpoint's end, and copies every descriptor that the host sends there."""
    cells = set()
    with Session(limits=LIMITS) as session:
        session.run(f"{host.prelude}\n{_END}\n{_PEEK}")
        for _ in range(10):  # the child has to be quicker than the copy
            with session.branch() as branch:
                branch["told"] = "a secret"
                cells.add(branch.run("import time\ntime.sleep(0.02)\nprint(told)").text)
        return [sorted(cells), session.run("os.path.exists('seen')").value]


_CROWD_OUT = """
import time
if os.fork() == 0:
    end.send(b'ready')
    while attempt(end.send, b'', 0x40) == 0: pass
    time.sleep(1000)
time.sleep(0.2)
"""
"""A child says that it is the checkpoint, and fills the channel with nothing, so that the checkpoint cannot."""


@host_later
def _claims(host: Host, how: str) -> object:
    """A child of the session says that it is the checkpoint, before the checkpoint does."""
    with Session(limits=LIMITS) as session:
        session.run(f"{host.prelude}\n{_END}\n{how}")
        time.sleep(0.1)
        try:
            session.branch().close()
        except CellblockError as error:
            return str(error)
    return "branched"


def _ends_over_and_over(_host: Host) -> object:
    """A session is ended to its last process, by time, with a branch there: the branch lives."""
    with Session(limits=LIMITS) as session:
        session.run(_KEPT)
        with session.branch() as branch:
            session.run("import os\nstate = 1; os._exit(1)")
            session.kill()
            return [session.run("state").value, branch.run("state, open('kept').read()").value]


ATTACKS: tuple[Attack, ...] = (
    _by_the_stem(
        "killed",
        _SUPERVISOR,
        subset_of("EPERM", "ESRCH"),
        "sorted({attempt(os.kill, pid, number) for pid in others for number in (9, 15, 19, 2)})",
    ),
    _by_the_stem(
        "killed-by-group-and-thread",
        _SUPERVISOR,
        subset_of("EPERM", "ESRCH"),
        """
sorted({attempt(os.killpg, pid, 9) for pid in others} | {one for pid in others for one in (
    call("tkill", pid, 9), call("tgkill", pid, pid, 9), call("rt_sigqueueinfo", pid, 9, bytes(128)))})
""",
    ),
    _by_the_stem(
        "killed-by-owner-of-a-pipe",
        _SUPERVISOR,
        subset_of("EPERM", "EINVAL", "ESRCH"),
        """
import fcntl
inlet, outlet = os.pipe()
sorted({attempt(fcntl.fcntl, inlet, fcntl.F_SETOWN, pid) for pid in others}
    | {attempt(fcntl.fcntl, inlet, 15, bytes([1, 0, 0, 0, pid, 0, 0, 0])) for pid in others}
    | {attempt(fcntl.ioctl, inlet, 0x8901, bytes([pid, 0, 0, 0])) for pid in others})
""",
    ),
    _by_the_stem("seen", _HIDDEN, [], "[pid for pid in others if os.path.lexists(f'/proc/{pid}') and pid in pids()]"),
    _by_the_stem(
        "entered-by-proc",
        _HIDDEN,
        [],
        """
sorted({name for pid in others for name in ("root", "cwd", "mem", "maps", "environ", "fd", "ns/user", "ns/mnt", "task")
    if attempt(os.stat, f"/proc/{pid}/{name}") not in ("ENOENT", "EACCES", "ESRCH")})
""",
        "W5",
    ),
    _by_the_stem(
        "traced-and-moved",
        "seccomp; init answers for the rest",
        subset_of("EPERM", "ESRCH"),
        """
sorted({one for pid in others for one in (call("ptrace", 16, pid, 0, 0), call("process_vm_readv", pid, 0, 0, 0, 0, 0),
    call("kcmp", pid, os.getpid(), 0, 0, 0), call("prlimit64", pid, 9, bytes(16), 0), call("pidfd_getfd", 0, 0, 0),
    attempt(os.sched_setaffinity, pid, {0}))})
""",
    ),
    _by_the_stem(
        "namespaces-and-filters",
        "init lets only what makes a branch enter namespaces and take a filter",
        ["EPERM"],
        """
user = os.open("/proc/self/ns/user", os.O_RDONLY)
sorted({call("setns", user, 0), call("seccomp", 1, 0, 0), call("unshare", 0x10000000)})
""",
        "W4",
    ),
    _host("watched-while-they-are-made", _HIDDEN, [True, []], _watched_while_it_is_made),
    _by_the_branch("sees-itself-alone", "a pid namespace and /proc of its own", True, "pids() == [os.getpid()]"),
    _by_the_branch(
        "signals",
        "a pid namespace of its own; init of the stem lets it signal neither the branch's init nor its frozen copies",
        subset_of("EPERM", "ESRCH"),
        """
sorted({attempt(os.kill, pid, 9) for pid in [1, -1, *others]} | {call("tkill", pid, 9) for pid in others}
    | {call("tgkill", pid, pid, 9) for pid in others} | {attempt(os.killpg, pid, 9) for pid in others})
""",
    ),
    _by_the_branch(
        "programs",
        _FILTER,
        ["EPERM", "EPERM", "EPERM"],
        """
import subprocess
[attempt(os.execv, "/bin/true", ["true"]), attempt(subprocess.run, ["true"]),
    call("prctl", 4, 1, 0, 0, 0)]
""",
        "W5",
    ),
    _by_the_branch(
        "rights",
        "no capabilities; setns and unshare are refused",
        ["0000000000000000", "EPERM"],
        """
user = os.open("/proc/self/ns/user", os.O_RDONLY)
answers = {call("setns", user, 0), call("unshare", 0x10000000), call("mount", 0, 0, 0, 0, 0), call("seccomp", 1, 0, 0)}
sets = {line.split()[1] for line in read("/proc/self/status").splitlines() if line.startswith("Cap")}
sorted(answers | sets)
""",
        "W4",
    ),
    _by_the_branch(
        "open-directory",
        "what was open is opened again, in the branch's own files",
        [["kept", "planted"], "mine", "EROFS"],
        """
file = os.open("planted", os.O_CREAT | os.O_WRONLY, dir_fd=here)
os.write(file, b"mine")
[sorted(os.listdir(os.open(".", os.O_RDONLY, dir_fd=above))), open("planted").read(), attempt(os.mkdir, "/session/own")]
""",
        before="here, above = os.open('.', os.O_RDONLY), os.open('.', os.O_PATH)",
    ),
    _by_the_branch(
        "nameless-file-and-pipe",
        "what has no path is closed",
        ["ESPIPE", "EPIPE"],
        "[attempt(os.pread, nameless, 4, 0), attempt(os.write, inlet, b'x')]",
        before="nameless = os.open('n', os.O_CREAT | os.O_RDWR)\nos.unlink('n')\noutlet, inlet = os.pipe()",
    ),
    _host(
        "takes-all-processes",
        "init has the limits in hand: what branches may have is added to the session's",
        [7, 7, ["kept"]],
        _takes_all_processes,
        threat="W6",
    ),
    _host(
        "told-over-the-checkpoints-end",
        "descriptors are sent over a socket that the copy has made, and the kernel stamps who gives it",
        [["a secret"], False],
        _looks_into_the_channel,
    ),
    _host(
        "claimed-by-a-child",
        _NEITHER,
        "the session's checkpoint does not answer (run a cell, then try again)",
        _claims(CLAIM),
    ),
    _host(
        "claimed-by-a-child-that-lets-nobody-else",
        _NEITHER,
        "the session's checkpoint does not answer (run a cell, then try again)",
        _claims(_CROWD_OUT),
    ),
    _host(
        "lives-through-the-stems-end", "a sweep spares branches", [["kept"], [["kept"], "kept"]], _ends_over_and_over
    ),
)
