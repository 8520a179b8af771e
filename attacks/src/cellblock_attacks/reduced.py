"""The attacks as they end where there are no namespaces (`walls="reduced"`), and those that matter only there.

What namespaces would not show is there and refused, so most attacks end in another errno than in `isolated`. Attacks
that go through `/proc` or a socket end where they would begin.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from cellblock import Session
from cellblock_attacks import host_files, processes, tables
from cellblock_attacks.attack import Attack, Holds, host_later, one_of, subset_of
from cellblock_attacks.host import LIMITS, Host, outcome_of, refusal_of

_REFUSALS = {"EACCES", "EAFNOSUPPORT", "ENOENT", "EPERM", "EPROTONOSUPPORT", "EROFS", "ESRCH", "EXDEV"}
_RAISED = (
    "raised: PermissionError: [Errno 1",
    "raised: FileNotFoundError: [Errno 2]",
    "raised: OSError: [Errno 97] Address family not supported",
)


def refused(answer: object) -> bool:
    """True if an answer says that a call was refused, whatever it was about."""
    if isinstance(answer, list):
        return bool(answer) and all(map(refused, answer))
    return isinstance(answer, str) and (answer in _REFUSALS or answer.startswith(_RAISED))


_DEATHS = (
    "",
    "-while-a-child-holds-the-socket",
    "-while-a-child-receives",
    "-while-a-child-sends",
    "-while-a-child-shuts-the-socket",
)
"""Of a process between two cells: there are no checkpoints."""

ANSWERS: dict[str, object] = {
    "host-files-unix-socket": "FileRefused: 'trap.socket' does not exist",  # none could be made
    "processes-memory-of-init": [],
    "files-change-the-standard-library": subset_of("EACCES", "EPERM", "EROFS"),
    "resources-mappings": one_of("curbed", "raised: BlockingIOError: [Errno 11] Resource temporarily unavailable"),
    "resources-fork-bomb": Holds(lambda answer: str(answer).startswith("['timeout: TimeoutError"), "an end in time"),
    **{f"protocol-dies-idle{how}": [2, "raised: NameError: name 'kept' is not defined", 2] for how in _DEATHS},
    "resources-full-disk": ["EFBIG", "EACCES", "EACCES", "None", None],  # what the host writes is not stopped
}
"""Other answers of attacks, by name."""

NOT_PROMISED = {
    "secrecy-host-name": "there is no uts namespace: the host's name is seen",
    "network-who-is-at-the-other-end": "there is no pid namespace: the host's process number is seen",
    "resources-socket-buffers": "what the kernel keeps for pairs of sockets is not counted",
    "resources-socket-buffers-of-the-worker": "what the kernel keeps for pairs of sockets is not counted",
    "resources-pipes-of-others": "the room that pipes of one user have is shared with the host where they are one user",
}
"""Attacks that reach what they are after, and why."""

_NEED_NAMESPACES = ("mounts-", "door-", "checkpoints-", "branches-")
_NEED_ANOTHER_PLACE = ("processes-daemon-", "resources-file-locks", "resources-open-files-of-proc")
"""They go through `/proc` or write to `/tmp` before they attack."""
_OWN_VERSION = {
    "host-files-directories-without-rights",
    "processes-host-is-killed",
    "resources-many-small-files",
    "network-inherited-descriptors",
}
_OF_THE_RUNNER = {"insides-each-module", "insides-each-builtin", "insides-each-module-of-the-runner"}
"""They try one thing after the other in the same runner, for seconds."""
_WIRE = ("protocol-garbage", "protocol-forged", "protocol-child", "protocol-credentials", "protocol-dies-idle")


_MEETS_A_GROUP = {"resources-memory-that-is-shared-when-it-is-counted"}
"""Attacks that a control group's bound may meet before the keeper looks, and the worker is killed for it."""


def _applies(attack: Attack) -> bool:
    if (
        attack.name in _MEETS_A_GROUP
        or attack.hole
        or attack.name in NOT_PROMISED
        or attack.name in _OWN_VERSION | _OF_THE_RUNNER
    ):
        return False
    if attack.name.startswith(_NEED_NAMESPACES + _NEED_ANOTHER_PLACE):
        return False
    return attack.threat != "W7" or attack.name.startswith(_WIRE)


SHARED = tuple(filter(_applies, tables.ATTACKS))


def _cell(threat: str, name: str, wall: str, expect: object, cell: str) -> Attack:
    return Attack(name=f"reduced-{name}", threat=threat, wall=wall, expect=expect, cell=cell)


def _host(threat: str, name: str, wall: str, expect: object, host: Callable[[Host], object]) -> Attack:
    return Attack(name=f"reduced-{name}", threat=threat, wall=wall, expect=expect, host=host)


_KEEPER = "the keeper answers, and only for what is in sight"
_SCOPE = "Landlock's signal scope, or an account of the session's own"
_SWEPT = "the keeper kills all it can signal, which is the session and nothing else"

_DAEMON = """
import os, subprocess, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        wait = "import signal; signal.sigwait({{signal.SIGUSR1}})"
        os.execv(sys.executable, [sys.executable, "-c", wait, {marker!r}])
    os._exit(0)
os.wait()
"""
"""A process in a session and a group of its own whose parent is gone."""


def _neighbours_files(host: Host) -> object:
    """A session's view of another's directory, of which it is told the path."""
    place = host.neighbour.run("__import__('os').getcwd()").value
    return host.cell(
        f"place = {place!r}\n"
        "sorted({attempt(read, place + '/secret'), attempt(os.stat, place + '/secret'), attempt(os.listdir, place), "
        "attempt(os.listdir, os.path.dirname(place)), attempt(os.listdir, os.path.dirname(os.path.dirname(place))), "
        "attempt(os.stat, place), attempt(os.rename, place, 'mine')})"
    )


def _races(host: Host) -> tuple[object, object]:
    """A thread changes the path under the call that asks about it: whose size came back?"""
    own, secret = "kept_file", str(host.facts["secret"])
    size = os.stat(secret).st_size
    answer = host.cell(f"""
import ctypes, threading
from cellblock.hosting.machine import MACHINE
from cellblock.worker.confine.syscall_numbers import NUMBERS
number = NUMBERS[MACHINE]["newfstatat"]
libc = ctypes.CDLL(None)
texts = [os.path.abspath({own!r}).encode(), {secret!r}.encode()]
path, answer = ctypes.create_string_buffer(4096), ctypes.create_string_buffer(256)
path.value = texts[0]
going = True
def flip():
    while going:
        for text in texts:
            ctypes.memmove(path, text + b"\\0", len(text) + 1)
thread = threading.Thread(target=flip)
thread.start()
seen = set()
for _ in range(3000):
    ctypes.memset(answer, 0, 256)
    if libc.syscall(number, -100, path, answer, 0) == 0:
        seen.add(int.from_bytes(answer.raw[48:56], "little"))
going = False
thread.join()
sorted(seen - {{4}}), {size} in seen
""")
    assert isinstance(answer, tuple), answer
    return answer


@host_later
def _ends_with(host: Host, end: Callable[[Session], object]) -> object:
    marker = f"reduced-daemon-{os.getpid()}-{end.__name__}"
    with Session(limits=replace(LIMITS, timeout_seconds=0.6, interrupt_grace_seconds=0.2)) as session:
        outcome_of(session, _DAEMON.format(marker=marker))
        found = _found(marker)
        with processes._watched(found) as numbers:
            end(session)
            return {"seen": len(found), "ended": processes._all_end(numbers)}


def _found(marker: str) -> list[int]:
    """Processes with a word in their arguments, once there is one."""
    deadline = time.monotonic() + 10
    while not (pids := processes._marked(marker)) and time.monotonic() < deadline:
        pass
    return pids


_VICTIM = """
import sys, threading
from cellblock_attacks.host import LIMITS, outcome_of
from cellblock_attacks.reduced import _DAEMON
from cellblock import Session
sessions = [Session(limits=LIMITS) for _ in range(2)]
for session in sessions:
    outcome_of(session, _DAEMON.format(marker=sys.argv[1]))
print(*(session.run("__import__('os').getcwd()").value for session in sessions), flush=True)
sessions[0].run("while True: pass")
"""


def _host_is_killed(host: Host) -> object:
    """SIGKILL for a host with two sessions, one in the middle of a cell: all ends, and the files are removed."""
    marker = f"reduced-daemon-of-killed-{os.getpid()}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", _VICTIM, marker], stdout=subprocess.PIPE, env=environment, cwd="/", text=True
    ) as victim:
        assert victim.stdout is not None
        places = [Path(place) for place in victim.stdout.readline().split()]
        while len(marked := processes._marked(marker)) < 3:
            pass
        below = processes._descendants(victim.pid)
        with processes._watched(sorted({*marked, *below} - {victim.pid})) as numbers:
            victim.send_signal(signal.SIGKILL)
            victim.wait()
            ended = processes._all_end(numbers)
    return {"daemons": len(marked) - 1, "ended": ended, "files": [str(place) for place in places if place.exists()]}


def _keeper_is_killed(host: Host) -> object:
    """SIGKILL for a keeper: what it kept ends too, and the session says that it is over."""
    marker = f"reduced-daemon-of-kept-{os.getpid()}"
    with Session(limits=LIMITS) as session:
        outcome_of(session, _DAEMON.format(marker=marker))
        found = _found(marker)
        worker = int(str(session.run("__import__('os').getpid()").value))
        keeper = int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1])
        with processes._watched([*found, worker]) as numbers:
            os.kill(keeper, signal.SIGKILL)
            ended = processes._all_end(numbers)
        return [ended, str(refusal_of(session.run, "1")).split(":")[0]]


def _bombs_with_forks(host: Host) -> object:
    """Every process forks for ever: how the cell ended, what of it is left, and whether there is room again."""
    with Session(limits=replace(LIMITS, timeout_seconds=0.6, interrupt_grace_seconds=0.2)) as session:
        worker = int(str(session.run("__import__('os').getpid()").value))
        keeper = int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1])
        first = outcome_of(session, "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass")
        left = [pid for pid in processes._descendants(keeper) if _lives(pid)]
        room = outcome_of(session, "import os\nlen([p for p in (os.fork() or os._exit(0) for _ in range(20))])")
        return [str(first).split(":")[0], len(left), room]  # the worker alone


def _lives(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def _signals_the_keeper(host: Host) -> object:
    return host.cell("""
import fcntl, signal
keeper = os.getppid()
pipe = os.pipe()
found = {attempt(fcntl.fcntl, pipe[0], 10, signal.SIGKILL)}
attempt(fcntl.fcntl, pipe[0], fcntl.F_SETOWN, keeper)
attempt(fcntl.fcntl, pipe[0], fcntl.F_SETFL, os.O_ASYNC)
os.write(pipe[1], b"x")
os.close(pipe[0]); os.close(pipe[1])
found |= {attempt(os.kill, keeper, number) for number in (0, 9, 15, 18, 19)}
found |= {attempt(signal.pidfd_send_signal, os.pidfd_open(keeper), 9)}
found |= {call("tgkill", keeper, keeper, 9), call("tkill", keeper, 9), call("ptrace", 16, keeper, 0, 0)}
sorted(found)
""")


def _fills_with_many_files(host: Host) -> object:
    """Many files, each small enough: how the cell ended, a byte more, and whether the session can be used on.

    How much was written before it was counted is up to the time that the keeper gets.
    """
    with Session(limits=replace(LIMITS, max_disk_mb=16, timeout_seconds=30)) as session:
        answer = outcome_of(
            session,
            host.prelude + "def fill():\n    for number in range(1000):\n"
            "        with open(str(number), 'wb', buffering=0) as file:\n"
            "            for _ in range(8): file.write(bytes(1 << 17))\n"
            "attempt(fill)",
        )
        more = outcome_of(session, host.prelude + "attempt(lambda: open('more', 'wb', buffering=0).write(b'x'))")
        outcome_of(session, host.prelude + "for name in os.listdir('.'): os.unlink(name)")
        freed = outcome_of(session, host.prelude + _WRITES_AGAIN)
        return [answer, more, freed]


_WRITES_AGAIN = """
import time
def write():
    with open("again", "wb") as file:
        file.write(b"x")
    return "written"
while (answer := attempt(write)) != "written": time.sleep(0.01)
answer
"""


@host_later
def _outgrows(host: Host, cell: str) -> object:
    """A session of its own that takes what is watched: how it ends, and its next cell."""
    with Session(limits=replace(LIMITS, max_files=500, max_disk_mb=16, timeout_seconds=30)) as session:
        return [str(refusal_of(lambda: outcome_of(session, host.prelude + cell))).split(" (")[0]]


_OWN_DESCRIPTORS = {"character": 1, "file": 1, "pipe": 4, "socket": 1}


def _descriptors(host: Host) -> object:
    """Open descriptors of a new session, by kind."""
    with Session(limits=LIMITS) as session:
        return outcome_of(
            session,
            """
import os, stat
kinds = {stat.S_IFSOCK: "socket", stat.S_IFIFO: "pipe", stat.S_IFCHR: "character", stat.S_IFREG: "file"}
found = {}
for number in range(512):
    try:
        kind = stat.S_IFMT(os.fstat(number).st_mode)
    except OSError:
        continue
    found[kinds.get(kind, oct(kind))] = found.get(kinds.get(kind, oct(kind)), 0) + 1
found
""",
        )


_REMOVED = """
held = []
def fill():
    for number in range(400):
        held.append(open("gone", "wb", buffering=0))
        os.unlink("gone")
        for _ in range(8): held[-1].write(bytes(1 << 17))
attempt(fill)
"""
_EMPTY = "import os\nfor number in range(10**7): os.close(os.open(str(number), os.O_CREAT))"
_NESTED = "import os\nwhile True:\n    os.mkdir('d'); os.chdir('d')"


_SWAPS = """
import threading, time
os.makedirs("shut/in", exist_ok=True)
end = time.monotonic() + 1.5
while time.monotonic() < end:
    os.chmod("shut", 0)
    os.rename("shut", "aside")
    os.symlink(facts["folder"], "shut")
    os.unlink("shut")
    os.rename("aside", "shut")
"""


def _swaps_while_counted(host: Host) -> object:
    """A directory without rights and a link to one of the host's take turns while the keeper counts."""
    before = (host.folder.stat().st_mode, host.folder.stat().st_ctime_ns)
    host.cell(_SWAPS)
    return (host.folder.stat().st_mode, host.folder.stat().st_ctime_ns) == before


def _leaves_a_deep_tree(host: Host) -> object:
    """Directories nested further than a path can be long are removed with the session, as are those without rights."""
    with Session(limits=LIMITS) as session:
        place = Path(str(session.run("__import__('os').getcwd()").value))
        session.run(
            "import os\nfor _ in range(100):\n    os.mkdir('d' * 200); os.chdir('d' * 200); open('f', 'w').close()"
        )
        session.run("os.mkdir('shut'); open('shut/f', 'w').close(); os.chmod('shut', 0)")
        assert place.exists()
    return place.parent.exists()


ATTACKS: tuple[Attack, ...] = (
    # --- W1 ---
    _cell(
        "W1",
        "metadata-of-the-host",
        _KEEPER,
        ["EINVAL", "ENOENT", "ENOTSUP"],
        """
secret = facts["secret"]
if not os.path.islink("way"): os.symlink(secret, "way")
found = set()
for path in (secret, "way", "/etc/shadow", "/proc/1", "/nowhere/at/all", os.path.dirname(secret)):
    found |= {attempt(os.stat, path), attempt(os.statvfs, path), attempt(os.utime, path), attempt(os.listxattr, path),
              attempt(os.chmod, path, 0o600), "ENOENT" if not os.access(path, os.F_OK) else "seen"}
    if path != "way": found |= {attempt(os.lstat, path), attempt(os.readlink, path)}
found |= {attempt(os.readlink, "kept_file")}
sorted(found, key=str)
""",
    ),
    _host("W1", "metadata-raced", "the path is copied once, and opened", [[], False], lambda host: list(_races(host))),
    _cell(
        "W1",
        "metadata-of-the-interpreter-changed",
        "the keeper changes the session's own files alone",
        ["EACCES", "EPERM", "EROFS", "ENOTSUP"],
        """
import sys
file = open(os.__file__)
found = [attempt(os.rename, os.__file__, os.__file__ + "x"), attempt(os.chown, file.fileno(), os.getuid(), os.getgid()),
         attempt(os.chmod, os.__file__, 0o777), attempt(os.setxattr, os.__file__, "user.x", b"y")]
more = {attempt(os.fchmod, file.fileno(), 0o777), attempt(os.utime, file.fileno(), (0, 0)),
        attempt(os.utime, os.__file__, (0, 0)), attempt(os.chmod, "/proc/self/fd/%d" % file.fileno(), 0o777)}
found if more <= {"EROFS", "ENOENT"} else sorted(map(str, more))
""",
    ),
    _cell(
        "W1",
        "descriptor-without-opening",
        "seccomp: no O_PATH",
        ["EPERM"],
        "sorted({attempt(os.open, path, os.O_PATH) for path in (facts['secret'], '/', '.', os.__file__)})",
    ),
    _cell(
        "W1",
        "working-directory-by-a-link",
        _KEEPER,
        ["ENOENT", "ENOENT", "EACCES"],
        """
if not os.path.islink("out"): os.symlink(facts["folder"], "out")
back = os.getcwd()
attempt(os.chdir, "out")
found = [attempt(os.getcwd), attempt(os.stat, "secret"), attempt(open, "secret")]
os.chdir(back)
found
""",
    ),
    _cell(
        "W1",
        "files-moved-in-and-out",
        "Landlock",
        subset_of("EACCES", "EXDEV", "EPERM"),
        """
sorted({attempt(os.link, facts["secret"], "linked"), attempt(os.rename, facts["secret"], "moved"),
        attempt(os.rename, "kept_file", facts["folder"] + "/planted"), attempt(os.link, "kept_file",
        facts["folder"] + "/planted"), attempt(os.symlink, "x", facts["folder"] + "/planted"),
        attempt(os.mkdir, facts["folder"] + "/planted"), attempt(os.truncate, facts["folder"] + "/victim", 0),
        attempt(os.unlink, facts["folder"] + "/victim"), attempt(open, facts["folder"] + "/victim", "a")})
""",
    ),
    _cell(
        "W1",
        "own-files-are-its-own",
        "none: what is the session's works",
        ["0o600", "0o755", 5.0, True, "moved", "b"],
        """
with open("a", "w") as file: file.write("b")
os.chmod("a", 0o600)
found = [oct(os.stat("a").st_mode & 0o777)]
os.fchmod(os.open("a", os.O_RDONLY), 0o755)
found.append(oct(os.stat("a").st_mode & 0o777))
os.utime("a", (5, 5))
found += [os.stat("a").st_mtime, os.access("a", os.W_OK)]
os.makedirs("deep/er", exist_ok=True)
os.rename("a", "deep/er/moved")
found += os.listdir("deep/er")
found.append(read("deep/er/moved"))
found
""",
    ),
    _host("W1", "neighbours-files", _KEEPER + "; Landlock", subset_of("EACCES", "ENOENT", "EXDEV"), _neighbours_files),
    _host(
        "W1",
        "directories-without-rights",
        "the keeper",
        [["FileRefused", "[]"], "kept", ["kept"]],
        host_files.takes_rights_from("os.getcwd(), os.environ['TMPDIR']"),
    ),
    # --- W2 ---
    _host("W2", "signals-to-the-keeper", _SCOPE, ["EPERM"], _signals_the_keeper),
    _cell(
        "W2",
        "signals-to-the-host",
        _SCOPE,
        ["EPERM"],
        """
import signal
pid = facts["pid"]
sorted({attempt(os.kill, pid, number) for number in (0, 9, 15, 18, 19)} | {call("tgkill", pid, pid, 9),
    attempt(signal.pidfd_send_signal, os.pidfd_open(pid), 9), attempt(os.kill, -1, 9), attempt(os.killpg, pid, 0)}
    - {"ESRCH"})
""",
    ),
    _cell(
        "W2",
        "limits-and-priority-of-the-host",
        "seccomp: of the caller alone",
        ["EPERM"],
        """
import resource
pid = facts["pid"]
sorted({attempt(resource.prlimit, pid, resource.RLIMIT_NOFILE, (1, 1)),
        attempt(os.setpriority, os.PRIO_PROCESS, pid, 19), attempt(os.sched_setaffinity, pid, {0}),
        attempt(os.sched_setscheduler, pid, os.SCHED_IDLE, os.sched_param(0)),
        call("ioprio_set", 1, pid, 0), call("sched_setattr", pid, bytes(56), 0), call("process_mrelease", 0, 0)})
""",
    ),
    _cell(
        "W2",
        "hidden-memory",
        "seccomp: what hides could not be answered or counted",
        ["EPERM"],
        "sorted({call('prctl', 4, 0, 0, 0, 0)})",
    ),
    *(
        _host(
            "W2",
            f"daemon-after-{end.__name__.strip('_').replace('_', '-')}",
            _SWEPT,
            {"seen": 1, "ended": True},
            _ends_with(end),
        )
        for end in (processes._close, processes._crash, processes._kill, processes._time_out)
    ),
    _host(
        "W2",
        "host-is-killed",
        "the keeper sees the end of its channel",
        {"daemons": 2, "ended": True, "files": []},
        _host_is_killed,
    ),
    _host(
        "W2", "keeper-is-killed", "the zygote adopts and ends what is left", [True, "SessionClosed"], _keeper_is_killed
    ),
    # --- W3 ---
    _cell(
        "W3",
        "datagrams-by-way-of-a-pair",
        "seccomp: pairs are streams or packets, and connect to nobody else",
        ["EPERM", "EPROTONOSUPPORT"],
        """
import socket
one, two = socket.socketpair()
packets, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
found = {attempt(socket.socketpair, socket.AF_UNIX, socket.SOCK_DGRAM)}
for end in (one, packets):
    for address in (facts["unix"], facts["abstract"]):
        found |= {attempt(end.connect, address), attempt(end.bind, address + "x"), attempt(end.listen)}
        for send in (lambda: end.sendto(b"x", address), lambda: end.sendmsg([b"x"], [], 0, address)):
            answer = attempt(send)
            found |= {answer} - {"EISCONN", "EOPNOTSUPP", 1}  # 1: the address was passed over, the other end has it
sorted(map(str, found))
""",
    ),
    _cell(
        "W3",
        "event-loops-and-pairs-work",
        "none: two ends of a pair reach each other",
        ["b'x'", 3],
        """
import asyncio, socket
one, two = socket.socketpair()
one.send(b"x")
async def main():
    process = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    return len((await process.communicate(b"abc"))[0])
[repr(two.recv(1)), await main()]
""",
    ),
    _host("W3", "inherited-descriptors", "the worker closes all but its own", _OWN_DESCRIPTORS, _descriptors),
    # --- W4 ---
    _cell(
        "W4",
        "capabilities",
        "empty sets, no_new_privs",
        [0, 1, 2, "EPERM"],
        """
libc = ctypes.CDLL(None, use_errno=True)
sets = (ctypes.c_uint32 * 6)()
libc.capget((ctypes.c_uint32 * 2)(0x20080522, 0), sets)
[sum(sets), libc.prctl(39, 0, 0, 0, 0), libc.prctl(21, 0, 0, 0, 0), attempt(os.setuid, 0)]
""",
    ),
    # --- W6 ---
    _host(
        "W6",
        "fork-bomb",
        "RLIMIT_NPROC; the keeper stops all and kills what the cell began",
        ["timeout", 1, 20],
        _bombs_with_forks,
    ),
    _host(
        "W6",
        "many-files",
        "the keeper counts, and stops writing",
        ["EFBIG", "EFBIG", "written"],
        _fills_with_many_files,
    ),
    _host("W6", "removed-files", "the keeper counts what is open", ["EFBIG"], _outgrows(_REMOVED)),
    _host(
        "W6",
        "empty-files",
        "the keeper counts, and ends it",
        [Holds(lambda answer: "ended" in str(answer), "an end")],
        _outgrows(_EMPTY),
    ),
    _host(
        "W6",
        "nested-directories",
        "the keeper ends what it cannot count",
        [Holds(lambda answer: "nested too deep" in str(answer), "an end")],
        _outgrows(_NESTED),
    ),
    _host("W6", "rights-taken-while-counted", "the keeper changes rights of what it holds", True, _swaps_while_counted),
    _host("W6", "deep-tree-left-behind", "what is deep is brought up before it is removed", False, _leaves_a_deep_tree),
    _cell(
        "W6",
        "own-stop-lifted",
        "seccomp: the size of files is the keeper's to limit",
        ["EPERM"],
        """
import resource
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
both = (resource.RLIMIT_FSIZE, (hard, hard))
def answer(act, *args):
    try: act(*args)
    except (OSError, ValueError) as error: return "EPERM" if "not" in str(error) else str(error)
    return "set"
sorted({answer(resource.setrlimit, *both), answer(resource.prlimit, 0, *both)})
""",
    ),
    _cell(
        "W6",
        "blocks-without-data",
        "seccomp",
        "ENOTSUP",
        "file = os.open('blocks', os.O_CREAT | os.O_WRONLY)\ncall('fallocate', file, 0, 0, 1 << 20)",
    ),
)
BY_NAME = {attack.name: attack for attack in (*SHARED, *ATTACKS)}
