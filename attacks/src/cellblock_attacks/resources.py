"""W6: using up memory, processes, threads, descriptors, disk, time, output, or the host by way of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from cellblock import Session
from cellblock_attacks.attack import Attack, Holds, Table, beginning, host_later
from cellblock_attacks.host import LIMITS, Host, outcome_of, refusal_of

BRIEF = replace(LIMITS, timeout_seconds=0.6, interrupt_grace_seconds=0.2)
_DATA = "RLIMIT_DATA"
_TOO_MUCH = beginning("memory: MemoryError")
TIMEOUT = f"timeout: TimeoutError: the cell ran longer than {BRIEF.timeout_seconds:g} s"


_TABLE = Table("resources", "W6")
_cell, _host = _TABLE.cell, _TABLE.host


@host_later
def _brief(host: Host, *cells: str) -> object:
    """The cells' answers in a session of their own, whose time limit is short."""
    with Session(limits=BRIEF) as session:
        return [outcome_of(session, host.prelude + cell) for cell in cells]


def peak_growth(host: Host, act: Callable[[], object]) -> int:
    """Peak growth of the host's memory in MB while something was done."""
    Path("/proc/self/clear_refs").write_text("5")
    before = _field("VmRSS")
    act()
    return (_field("VmHWM") - before) >> 10


def _field(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def _grows_little(cell: str) -> Callable[[Host], object]:
    return lambda host: peak_growth(host, lambda: host.cell(cell))


_WATCH = "init watches what the session's processes hold together"
_HOLDING = """
import signal, time
{before}
children, curbed = [], False
for _ in range({count}):
    child = os.fork()
    if child == 0:
        try:
            {hold}
            while True: signal.pause()
        finally:
            os._exit(0)
    children.append(child)
end = time.monotonic() + 7
while not curbed and time.monotonic() < end:
    time.sleep(0.02)
    curbed = any(os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) for child in children)
for child in children:
    os.kill(child, signal.SIGKILL)
ends = {{os.waitpid(child, 0)[1] for child in children}}
"curbed" if curbed and ends == {{signal.SIGKILL}} else ("held" if not curbed else ends)
"""
"""Children that hold together more than the limit of 128 MB, each less; whether one of them is killed for it."""

_FULL_SOCKETS = """import socket
            ends = [end for _ in range(240) for end in socket.socketpair()]
            for one in ends:
                one.setblocking(False)
                try:
                    while True: one.send(bytes(65536))
                except BlockingIOError:
                    pass"""
"""About 80 MB in the kernel, held by one process."""

_WORKER_SOCKETS = """
import socket, time
large = bytearray(b"x") * (100 << 20)
ends = [end for _ in range(240) for end in socket.socketpair()]
for one in ends:
    one.setblocking(False)
    try:
        while True: one.send(bytes(65536))
    except BlockingIOError:
        pass
time.sleep(3)
"held"
"""

_READ_ONLY = """
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
for _ in range(32):
    piece = ctypes.c_void_p(libc.mmap(None, ctypes.c_size_t(32 << 20), 3, 0x22, -1, 0))
    libc.memset(piece, 1, ctypes.c_size_t(32 << 20))
    libc.mprotect(piece, ctypes.c_size_t(32 << 20), 1)
import time
time.sleep(3)
"held"
"""
"""A gigabyte that counts as private writable memory only while it is written."""

_PAGE_TABLES = """
import mmap, time
nothing = mmap.mmap(-1, 1 << 40, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, mmap.PROT_READ)
for place in range(0, 1 << 39, 2 << 20): nothing[place]
time.sleep(3)
"held"
"""
"""The zero page a quarter of a million times, each with a page of page tables: a gigabyte."""

_MAPPINGS = """libc = ctypes.CDLL(None)
            libc.mmap.restype = ctypes.c_void_p
            area = libc.mmap(None, ctypes.c_size_t(4096 * 20_000), 0, 0x22, -1, 0)
            for place in range(0, 20_000, 2): libc.mprotect(ctypes.c_void_p(area + place * 4096), 4096, 1)"""

_LOCKS = """files = [os.open(f"/tmp/lock{number}", os.O_CREAT | os.O_RDWR) for number in range(10)]
            for one in files:
                for place in range(200): fcntl.lockf(one, fcntl.LOCK_SH, 1, 2 * place)"""

_LOCKS_OF_ONE = """
import fcntl, time
for number in range(30):
    one = os.open(f"lock{number}", os.O_CREAT | os.O_RDWR)
    for place in range(200): fcntl.lockf(one, fcntl.LOCK_EX, 1, 2 * place)
time.sleep(3)
"held"
"""

_WATCHES = """watched = [os.eventfd(0) for _ in range(250)]
            watchers = [select.epoll() for _ in range(220)]
            for one in watchers:
                for number in watched: one.register(number, select.EPOLLIN)"""

_TABLES = """for _ in range(480): os.read(os.open("/proc/stat", os.O_RDONLY), 100)"""

_OVER = beginning("memory: MemoryError: the session's process was killed, as the session held ")

_LITTLE = Holds(lambda grown: isinstance(grown, int) and grown < 40, "less than 40 MB more on the host")


def _hoards_pipes(host: Host) -> object:
    """The size of a neighbour's new pipe, a while after a session has made as many pipes as large as it can."""
    hoard = """
import fcntl, signal
children = []
for _ in range(8):
    inlet, outlet = os.pipe()
    child = os.fork()
    if child == 0:
        pipes = [os.pipe() for _ in range(240)]
        for one, _ in pipes: attempt(fcntl.fcntl, one, fcntl.F_SETPIPE_SZ, 1 << 20)
        os.write(outlet, b"x")
        signal.pause()
    os.read(inlet, 1)
    children.append(child)
"""
    size = "import fcntl\nfcntl.fcntl(os.pipe()[0], fcntl.F_GETPIPE_SZ)"
    host.cell(hoard)
    try:
        end = time.monotonic() + 6
        while (found := outcome_of(host.neighbour, host.prelude + size)) != 65536 and time.monotonic() < end:
            time.sleep(0.1)
        return found
    finally:
        host.cell("for child in children:\n    os.kill(child, 9)\n    os.waitpid(child, 0)")


def _hoards_pipes_by_many(host: Host) -> object:
    """The size of a neighbour's new pipe beside three sessions that each hold as many as they may."""
    hoard = """
import os, signal
for _ in range(2):
    if os.fork() == 0:
        pipes = [os.pipe() for _ in range(210)]
        signal.pause()
"""
    with Session(limits=LIMITS) as first, Session(limits=LIMITS) as second, Session(limits=LIMITS) as third:
        for one in (first, second, third):
            outcome_of(one, hoard)
        size = "import fcntl\nfcntl.fcntl(os.pipe()[0], fcntl.F_GETPIPE_SZ)"
        time.sleep(0.5)
        return outcome_of(host.neighbour, host.prelude + size)


def _sends_descriptors_without_end(host: Host) -> object:
    """Tell if a neighbour can send a descriptor while a session has as many on their way as it can."""
    send = """
import array, socket
pairs = []
try:
    while len(pairs) < 20:
        pairs.append(socket.socketpair())
        socket.send_fds(pairs[-1][0], [b"x"], [0] * 253)
except OSError:
    pass
"""
    one = """
import socket
def send_one():
    for _ in range(3):
        ends = socket.socketpair()
        socket.send_fds(ends[0], [b"x"], [0])
    return "sent"
attempt(send_one)
"""
    host.cell(send)
    try:
        return outcome_of(host.neighbour, host.prelude + one)
    finally:
        host.cell("pairs.clear()")


def _fills_the_disk(host: Host) -> object:
    fill = """
def fill(path):
    with open(path, "wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 20))
attempt(fill, {path!r})
"""
    inside = [host.cell(fill.format(path=path)) for path in ("big", "/tmp/big", "/dev/shm/big")]
    outside = str(refusal_of(host.session.files.write, "more", b"x" * 100_000)).split(" (")[0]
    host.cell("for path in ('big', '/tmp/big', '/dev/shm/big', 'more'):\n    if os.path.exists(path): os.unlink(path)")
    return [*inside, outside, refusal_of(host.session.files.write, "more", b"x" * 100_000)]


def _bombs_with_forks(host: Host) -> object:
    """Every process forks for ever. The time limit ends the cell and what it started; what is left of that."""
    with Session(limits=BRIEF) as session:
        first = outcome_of(session, "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass")
        others = """
def others():
    return [pid for pid in pids() if pid != os.getpid() and not hides(pid)]
import time
end = time.monotonic() + 0.3
while others() and time.monotonic() < end: time.sleep(0.01)  # what is ending stands there until it has
others()
"""
        return [first, outcome_of(session, host.prelude + others)]


def _floods_displays(host: Host) -> object:
    cell = host.session.run("for _ in range(3000): display('x' * 1000)")
    return len(cell.outputs) <= 501 and len(cell.text.encode()) <= LIMITS.max_output_bytes + 100


def _others_are_served(host: Host) -> object:
    """While one session floods its output, the other's cells still run."""
    with Session(limits=BRIEF) as session:
        flood = threading.Thread(target=session.run, args=("import os\nos.system('yes & yes & yes & yes')",))
        flood.start()
        answers = [outcome_of(host.neighbour, "1+1") for _ in range(20)]
        during = flood.is_alive()
        flood.join()
    return {"answers": set(answers) == {2}, "during the flood": during}


ATTACKS: tuple[Attack, ...] = (
    _cell("one-large-object", _DATA, _TOO_MUCH, "bytearray(1 << 30)"),
    _cell(
        "many-small-objects",
        _DATA,
        _TOO_MUCH,
        "def grow():\n    all = []\n    while True: all.append(object())\ngrow()",
    ),
    _cell(
        "memory-that-a-name-holds",
        _DATA,
        _TOO_MUCH,
        "hoard = []\nwhile True: hoard.append(bytes(4000))",
        lasting=True,
    ),
    _cell("deep-recursion-of-data", _DATA, _TOO_MUCH, "x = []\nwhile True: x = [x, bytes(1000)]", lasting=True),
    _cell(
        "memory-error-that-the-cell-catches",
        _DATA,
        "caught",
        """
try:
    bytearray(1 << 30)
except MemoryError:
    answer = "caught"
answer
""",
    ),
    _cell(
        "shared-anonymous-memory",
        "seccomp, or a watch over the session's memory",
        Holds(lambda answer: answer != "held", "anything but the memory"),
        """
import mmap
held = mmap.mmap(-1, 300 << 20)
for place in range(0, 300 << 20, 4096): held[place] = 1
held.close()
"held"
""",
    ),
    _cell(
        "memory-files",
        "seccomp, or a watch over the session's memory",
        Holds(lambda answer: answer != "held", "anything but the memory"),
        """
files = [os.memfd_create(str(number)) for number in range(12)]
for one in files:
    for _ in range(25): os.write(one, bytes(1 << 20))
for one in files: os.close(one)
"held"
""",
    ),
    _cell(
        "socket-buffers",
        _WATCH,
        "curbed",
        _HOLDING.format(before="", count=4, hold=_FULL_SOCKETS),
    ),
    _cell("socket-buffers-of-the-worker", _WATCH, _OVER, _WORKER_SOCKETS, dies=True),
    _cell("memory-that-is-made-read-only", _WATCH, _OVER, _READ_ONLY, dies=True),
    _cell("page-tables", _WATCH, _OVER, _PAGE_TABLES, dies=True),
    _cell("mappings", _WATCH, "curbed", _HOLDING.format(before="", count=12, hold=_MAPPINGS)),
    _cell("file-locks", _WATCH, "curbed", _HOLDING.format(before="import fcntl", count=3, hold=_LOCKS)),
    _cell("file-locks-of-the-worker", _WATCH, _OVER, _LOCKS_OF_ONE, dies=True),
    *(
        _cell(name, _WATCH, "curbed", _HOLDING.format(before=before, count=count, hold=hold))
        for name, before, count, hold in (
            ("memory-of-many-processes", "", 3, "held = b'x' * (100 << 20)"),
            ("memory-of-undumpable-processes", "", 3, "call('prctl', 4, 0, 0, 0, 0); held = b'x' * (100 << 20)"),
            (
                "memory-of-processes-without-a-first-thread",
                "import threading",
                3,
                "held = b'x' * (100 << 20); threading.Thread(target=signal.pause).start(); call('exit', 0)",
            ),
            (
                "memory-that-is-shared-when-it-is-counted",
                "held = bytearray(b'x') * (60 << 20)",
                8,
                "time.sleep(0.5); held[::4096] = bytes(len(held[::4096]))",
            ),
        )
    ),
    _cell(
        "many-processes",
        "RLIMIT_NPROC",
        "EAGAIN",
        """
import signal
children, answer = [], "no limit"
while len(children) < 1000:
    try:
        child = os.fork()
    except BlockingIOError as error:
        answer = name_of(error)
        break
    if child == 0:
        signal.pause()
        os._exit(0)
    children.append(child)
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
answer
""",
    ),
    _host(
        "fork-bomb",
        "RLIMIT_NPROC; at the time limit init stops all processes and kills those of the cell",
        [TIMEOUT, []],
        _bombs_with_forks,
    ),
    _cell(
        "threads",
        "RLIMIT_NPROC, or the thread stacks that RLIMIT_DATA counts",
        True,
        """
import threading
import time
gate, threads, answer = threading.Event(), [], False
while len(threads) < 1000:
    one = threading.Thread(target=gate.wait)
    try:
        one.start()
    except (RuntimeError, MemoryError):
        answer = True
        break
    threads.append(one)
gate.set()
for one in threads: one.join()
answer
""",
    ),
    _cell(
        "descriptors",
        "RLIMIT_NOFILE",
        "EMFILE",
        """
hoard, answer = [], "no limit"
while len(hoard) < 5000:
    number = attempt(os.open, "/dev/null", os.O_RDONLY)
    if isinstance(number, str):
        answer = number
        break
    hoard.append(number)
answer
""",
        lasting=True,
    ),
    _cell(
        "raise-every-limit",
        "a hard limit only shrinks",
        [],
        """
import resource
raised = []
for name in ("RLIMIT_DATA", "RLIMIT_NPROC", "RLIMIT_NOFILE", "RLIMIT_FSIZE", "RLIMIT_CORE", "RLIMIT_MEMLOCK",
    "RLIMIT_STACK"):
    number = getattr(resource, name)
    soft, hard = resource.getrlimit(number)
    try:
        resource.setrlimit(number, (hard + 1, hard + 1))
    except ValueError:
        pass
    if resource.getrlimit(number)[1] != hard:
        raised.append(name)
raised
""",
    ),
    _host(
        "full-disk",
        "the size of the session's file system",
        [
            "ENOSPC",
            "ENOSPC",
            "ENOSPC",
            "FileRefused: 'more' does not fit: the session's files are at their limit",
            None,
        ],
        _fills_the_disk,
    ),
    _cell(
        "one-large-file",
        "RLIMIT_FSIZE",
        ["EFBIG"],
        """
file = os.open("sparse", os.O_CREAT | os.O_WRONLY)
found = sorted({attempt(os.ftruncate, file, 1 << 40), attempt(os.pwrite, file, b"x", 1 << 40),
    attempt(os.posix_fallocate, file, 0, 1 << 40)})
os.close(file)
os.unlink("sparse")
found
""",
    ),
    _cell(
        "many-small-files",
        "the number of files of the session's file system",
        "ENOSPC",
        """
import shutil
os.mkdir("many")
def fill():
    for number in range(100_000):
        open(f"many/{number}", "w").close()
answer = attempt(fill)
shutil.rmtree("many")
answer
""",
    ),
    _host(
        "output-of-a-gigabyte",
        "the text kept is bounded, the rest is dropped unread",
        _LITTLE,
        _grows_little("""
piece = "x" * (1 << 20)
for _ in range(1024): print(piece)
"""),
    ),
    _host(
        "output-past-the-streams",
        "the text kept is bounded, the rest is dropped unread",
        _LITTLE,
        _grows_little("""
for _ in range(3000):
    os.write(1, b"x" * 65536)
    os.write(2, b"y" * 65536)
"""),
    ),
    _host(
        "output-without-lines-in-turns",
        "pieces are joined or bounded",
        _LITTLE,
        _grows_little("""
import sys
for _ in range(30_000):
    print("o", end="")
    print("e", end="", file=sys.stderr)
"""),
    ),
    _host("displays", "a cell keeps 500 displays", True, _floods_displays),
    _host(
        "large-displays",
        "a cell keeps 64 MB of displays, and each is bounded inside",
        Holds(lambda grown: isinstance(grown, int) and grown < 200, "less than 200 MB more on the host"),
        _grows_little("""
class Large:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": "x", "application/json": ["y" * 100] * 100_000}
for _ in range(20): display(Large())
"""),
    ),
    _host(
        "floods-of-others",
        "the event loop serves sessions in turns",
        {"answers": True, "during the flood": True},
        _others_are_served,
    ),
    _host("endless-loop", "the time limit", [TIMEOUT, 2], _brief("while True: pass", "1+1")),
    _host("endless-loop-in-c", "the kill after the time limit", [TIMEOUT, 2], _brief("sum(range(10**12))", "1+1")),
    _host("large-power", "the kill after the time limit", [TIMEOUT, 2], _brief("len(str(7 ** (10 ** 8)))", "1+1")),
    _host(
        "endless-value",
        "the time limit",
        [TIMEOUT, 2],
        _brief(
            """
class Endless:
    def __repr__(self):
        while True: pass
Endless()
""",
            "1+1",
        ),
    ),
    _cell(
        "inotify",
        "seccomp: the kernel has 128 instances for all sessions of one host user",
        ["EPERM"],
        """
sorted({call("inotify_init"), call("inotify_init1", 0o2000000), call("inotify_add_watch", 0, b"/", 1),
    call("inotify_rm_watch", 0, 1)} - {"absent"})
""",
    ),
    _cell(
        "turn-to-be-killed",
        "Landlock: /proc is not writable, where a process could say that others be killed before it",
        ["EACCES", "500"],
        """
[attempt(os.open, "/proc/self/oom_score_adj", os.O_WRONLY), read("/proc/self/oom_score_adj").strip()]
""",
    ),
    _cell(
        "landlock-rules",
        "seccomp: no rule sets inside, whose rules no limit counts",
        "ENOSYS",
        "import struct\ncall('landlock_create_ruleset', struct.pack('QQQ', 1, 0, 0), 24, 0)",
    ),
    _cell(
        "programs-of-sockets",
        "seccomp: the machine has one bound for compiled programs, of all users",
        ["EPERM"],
        """
import socket, struct
accept_all = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0xFFFFFFFF))
program = struct.pack("@HP", 1, ctypes.addressof(accept_all))
with socket.socket() as one:
    answers = sorted({attempt(one.setsockopt, socket.SOL_SOCKET, option, program) for option in (26, 50, 51, 52)})
answers
""",
    ),
    _cell(
        "pages-kept-by-a-byte-of-each",
        "seccomp: a socket is charged for the bytes sent, and would keep the pages that they are in",
        ["EINVAL"],
        """
import socket
one, other = socket.socketpair()
inlet, outlet = os.pipe()
file = os.open("pages", os.O_CREAT | os.O_RDWR)
os.write(file, bytes(8192))
answers = sorted({attempt(os.sendfile, one.fileno(), file, 0, 1), attempt(os.splice, file, outlet, 1, offset_src=0)})
for number in (inlet, outlet, file): os.close(number)
os.unlink("pages")
answers
""",
    ),
    _cell(
        "descriptors-of-single-threads",
        "seccomp: the threads of a process share one table of descriptors",
        {"clone": "EPERM", "close_range": "EINVAL"},
        "{'clone': call('clone', 0x3D0B00, 0, 0, 0, 0), 'close_range': call('close_range', 900, 901, 2)}",
    ),
    _cell(
        "locks-without-an-owner",
        "seccomp: only locks that a process owns are taken, so that they can be counted",
        ["EINVAL"],
        """
import fcntl, struct
file = os.open("locked", os.O_CREAT | os.O_RDWR)
lock = struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 1, 0)
answers = sorted({attempt(fcntl.fcntl, file, command, lock) for command in (36, 37, 38)})
os.close(file)
os.unlink("locked")
answers
""",
    ),
    _cell(
        "queued-signals",
        "RLIMIT_SIGPENDING",
        ["EAGAIN", "EAGAIN"],
        """
import signal
libc = ctypes.CDLL(None, use_errno=True)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
for _ in range(2000):
    failed = libc.sigqueue(os.getpid(), signal.SIGRTMIN, None)
    if failed: break
answers = [errno.errorcode[ctypes.get_errno()] if failed else "queued"]
timer = ctypes.c_void_p()
answers.append("made" if libc.timer_create(1, None, ctypes.byref(timer)) == 0 else errno.errorcode[ctypes.get_errno()])
while signal.sigtimedwait([signal.SIGRTMIN], 0): pass
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGRTMIN])
answers
""",
    ),
    _cell("open-files-of-proc", _WATCH, "curbed", _HOLDING.format(before="", count=4, hold=_TABLES)),
    _cell("epoll-watches", _WATCH, "curbed", _HOLDING.format(before="import select", count=3, hold=_WATCHES)),
    _host(
        "pipes-of-others",
        _WATCH,
        65536,
        _hoards_pipes,
    ),
    _host(
        "pipes-of-others-by-many",
        "the kernel's count by host user",
        65536,
        _hoards_pipes_by_many,
        hole="the kernel gives the sessions of one host user 64 MB of pipes in all, and past it 8 KB for each",
    ),
    _host(
        "descriptors-on-their-way",
        "the kernel's count by host user",
        "sent",
        _sends_descriptors_without_end,
        hole="descriptors in messages that nobody has received are counted by host user, 512 for all its sessions",
    ),
)
