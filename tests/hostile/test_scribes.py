"""Saving runs code of the session's, in a scribe: what such code does there meets its wall, and changes nothing."""

from __future__ import annotations

import os
import re
import stat
import struct
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from cellblock.errors import CaptureFailed
from cellblock.executors.process.kernel import ProcessKernel
from cellblock.executors.process.launcher import ProcessLauncher
from cellblock.executors.protocol import Curbed, KernelSpec
from cellblock.limits import ExecutionLimits
from cellblock.snapshots import Snapshot
from cellblock.testing.executors import finished, told, value

pytestmark = [pytest.mark.anyio, pytest.mark.hostile, pytest.mark.timeout(120)]

_LIMITS = ExecutionLimits(max_memory_mb=128, max_disk_mb=64)
_BEFORE = """
import os, socket, mmap, threading, _thread, ctypes, array, gc, sys, struct, signal, resource, fcntl, time
kept = ['kept']
open('kept', 'w').write('kept')
os.mkfifo('pipe')
shared = mmap.mmap(os.open('shared', os.O_RDWR | os.O_CREAT), 0) if os.path.getsize('shared') else None
"""
_BEFORE = _BEFORE.replace("shared = mmap", "open('shared', 'wb').write(b's' * 4096)\nshared = mmap")
_SLY = """
class Sly:
    def __reduce__(self):
        if os.getpid() == here: return str, ('not saved',)
        try:
            answer = self.attack()
        except BaseException as error:
            answer = f'{type(error).__name__}: {error}'
        return str, (two * '<' + str(answer) + two * '>',)
    def attack(self):
        %s
here, two = os.getpid(), 2
sly = Sly()
"""
_IS_OPEN = "import os\ndef _is_open(one):\n    try: os.fstat(one)\n    except OSError: return False\n    return True\n"
_AFTER = """(kept, sorted(os.listdir()), open('kept').read(), open('shared').read(4), bytes(shared[:4]),
    os.stat('kept').st_mode & 0o777, os.getpid() == here, os.getcwd(), sorted(os.listdir('/tmp')) == before_tmp,
    os.listdir('/dev/shm'))"""
_UNCHANGED = (
    ["kept"],
    ["kept", "pipe", "shared"],
    "kept",
    "ssss",
    b"ssss",
    0o644,
    True,
    "/session/workspace",
    True,
    [],
)


@pytest.fixture
async def kernel(anyio_backend: str) -> AsyncIterator[ProcessKernel]:
    kernel = await ProcessLauncher().open(KernelSpec(seed=1, limits=_LIMITS))
    yield kernel
    await kernel.close()


async def save(kernel: ProcessKernel, *, seconds: float = 20.0) -> tuple[bytes, Snapshot]:
    """All bytes that were sent, one after the other, and the snapshot."""
    capture = await kernel.capture(seconds=seconds)
    try:
        await capture.begin(None)
        sent: list[bytes] = []
        snapshot = await capture.read(sent.append)
        return b"".join(sent), snapshot
    finally:
        capture.close()


async def prepare(kernel: ProcessKernel, attack: str) -> None:
    last = await finished(kernel, _BEFORE + "before_tmp = sorted(os.listdir('/tmp'))\n" + _SLY % attack)
    assert last.failure is None, last.failure


def scribes(kernel: ProcessKernel) -> list[int]:
    """Processes that run, with a filter more than the worker has, below a frozen copy of it or the session's init."""
    filters = int(status(kernel._link.pid)["Seccomp_filters"])
    init = Path(f"/proc/self/fdinfo/{kernel._shell.init}").read_text()
    parents = {line.split()[1] for line in init.splitlines() if line.startswith("Pid:")}
    parents |= {str(memory._copy) for memory in kernel._checkpoints._memories()}
    found = []
    for name in os.listdir("/proc"):
        one = status(int(name)) if name.isdigit() else {}
        more = one.get("Seccomp_filters") == str(filters + 1)
        if more and one["PPid"] in parents and one["State"][0] not in "ZX":
            found.append(int(name))
    return found


def status(process: int) -> dict[str, str]:
    try:
        text = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}


async def require_unchanged(kernel: ProcessKernel) -> None:
    """The session's names, files and processes are as they were, and it can be saved once its code lets it."""
    events = await told(kernel, _AFTER)
    assert not [event for event in events if isinstance(event, Curbed)]  # what a scribe was ended for is no cell's
    assert await value(kernel, _AFTER) == _UNCHANGED
    await finished(kernel, "del sly")
    _, snapshot = await save(kernel)
    assert "kept" in {one.name for one in snapshot.names}
    with anyio.fail_after(10):
        while scribes(kernel):
            await anyio.sleep(0.01)


_EPERM = "PermissionError: [Errno 1] Operation not permitted"
_READ_ONLY = "OSError: [Errno 30] Read-only file system"
_DENIED = "PermissionError: [Errno 13] Permission denied"

_NONE = "FileNotFoundError: [Errno 2] No such file or directory: "

ANSWERED = {
    # what it tries: the code, the wall, the answer
    "writes a file": ("open('new', 'w')", "filter", f"{_READ_ONLY}: 'new'"),
    "changes a file": ("open('kept', 'r+')", "filter", f"{_READ_ONLY}: 'kept'"),
    "cuts a file": ("os.truncate('kept', 0)", "filter", f"{_EPERM}: 'kept'"),
    "reads a file of the session": ("return open('kept').read()", "Landlock", f"{_DENIED}: 'kept'"),
    "lists the session's files": ("return os.listdir('/session')", "Landlock", f"{_DENIED}: '/session'"),
    "takes from a pipe": ("os.open('pipe', os.O_RDONLY | os.O_NONBLOCK)", "Landlock", f"{_DENIED}: 'pipe'"),
    "writes to shared memory": ("open('/dev/shm/new', 'w')", "filter", f"{_READ_ONLY}: '/dev/shm/new'"),
    "a file without a name": (
        "os.open('/tmp', os.O_TMPFILE | os.O_RDWR)",
        "filter",
        f"{_READ_ONLY}: '/tmp'",
    ),
    "makes a directory": ("os.mkdir('new')", "filter", f"{_EPERM}: 'new'"),
    "removes a file": ("os.unlink('kept')", "filter", f"{_EPERM}: 'kept'"),
    "renames a file": ("os.rename('kept', 'new')", "filter", f"{_EPERM}: 'kept' -> 'new'"),
    "links a file": ("os.link('kept', 'new')", "filter", f"{_EPERM}: 'kept' -> 'new'"),
    "makes a link": ("os.symlink('kept', 'new')", "filter", f"{_EPERM}: 'kept' -> 'new'"),
    "changes a mode": ("os.chmod('kept', 0)", "filter", f"{_EPERM}: 'kept'"),
    "changes times": ("os.utime('kept', (1, 1))", "filter", _EPERM),
    "sets an attribute": ("os.setxattr('kept', 'user.x', b'1')", "filter", f"{_EPERM}: 'kept'"),
    "locks a file": ("fcntl.flock(os.open('/usr', os.O_RDONLY), fcntl.LOCK_EX)", "filter", _EPERM),
    "locks a part of a file": (
        "fcntl.lockf(os.open('/etc/passwd', os.O_RDONLY), fcntl.LOCK_SH)",
        "filter",
        _EPERM,
    ),
    "writes to its memory's file": ("open('/proc/self/mem', 'r+b')", "filter", f"{_READ_ONLY}: '/proc/self/mem'"),
    "reads another's memory": ("open('/proc/2/mem', 'rb')", "/proc", _NONE + "'/proc/2/mem'"),
    "reads its own": ("open('/proc/self/mem', 'rb')", "Landlock", f"{_DENIED}: '/proc/self/mem'"),
    "forks": ("os.fork()", "filter", _EPERM),
    "forks past the C library": (
        "ctypes.set_errno(0); return ctypes.CDLL(None, use_errno=True).syscall(56, 17, 0, 0, 0, 0), ctypes.get_errno()",
        "filter",
        "(-1, 1)",
    ),
    "starts a thread": ("_thread.start_new_thread(print, ())", "filter", "RuntimeError: can't start new thread"),
    "runs a program": ("os.execv('/bin/true', ['true'])", "filter", _EPERM),
    "kills the worker": ("os.kill(here, 9)", "filter", _EPERM),
    "kills init": ("os.kill(1, 9)", "filter", _EPERM),
    "kills all": ("os.kill(-1, 9)", "filter", _EPERM),
    "kills its copy": ("os.kill(os.getppid(), 9)", "filter", _EPERM),
    "signals a thread": (
        "ctypes.CDLL(None).tgkill(here, here, 9) and 1/0",
        "filter",
        "ZeroDivisionError: division by zero",
    ),
    "opens a socket": ("socket.socket()", "filter", _EPERM),
    "a pair of sockets": ("socket.socketpair()", "filter", _EPERM),
    "lets others look into it": (
        "libc = ctypes.CDLL(None, use_errno=True); return libc.prctl(4, 1, 0, 0, 0), ctypes.get_errno()",
        "filter",
        "(-1, 1)",
    ),
    "raises its limits": (
        "resource.setrlimit(resource.RLIMIT_CPU, (10**6, 10**6))",
        "rlimits",
        "ValueError: not allowed to raise maximum limit",
    ),
    "another's limits": ("resource.prlimit(here, resource.RLIMIT_NOFILE, (1, 1))", "filter", _EPERM),
    "is first again": ("os.nice(-20)", "filter", _EPERM),
    "another filter": (
        "libc = ctypes.CDLL(None, use_errno=True); return libc.syscall(317, 1, 0, 0), ctypes.get_errno()",
        "filter",
        "(-1, 1)",
    ),
    "looks at another process": (
        "libc = ctypes.CDLL(None, use_errno=True); return libc.ptrace(16, here, 0, 0), ctypes.get_errno()",
        "filter",
        "(-1, 1)",
    ),
    "uses memory": ("b'x' * 10**9", "rlimits", "MemoryError: "),
    "uses memory beyond any one object": (
        "held = []\n        while True: held.append(bytearray(2**20))",
        "rlimits",
        "MemoryError: ",
    ),
    "writes to what was shared": ("shared[:4] = b'evil'; shared.flush", "memory of its own", "None"),
    "has descriptors": (
        "return len([one for one in range(3, 256) if _is_open(one)])",
        "none is left to it but its socket",
        "1",
    ),
}
_SYSCALL_NUMBERS_OF = "x86_64"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("what", ANSWERED)
@pytest.mark.threat("W2")
@pytest.mark.threat("W1")
async def test_what_code_tries_while_it_is_saved_meets_its_wall(kernel: ProcessKernel, what: str) -> None:
    attack, wall, answer = ANSWERED[what]
    if "syscall(" in attack and os.uname().machine != _SYSCALL_NUMBERS_OF:
        pytest.skip("numbers of calls are another machine's")
    await finished(kernel, _IS_OPEN)
    await prepare(kernel, attack)
    sent, _ = await save(kernel)
    (said,) = set(re.findall(rb"<<(.*?)>>", sent, re.DOTALL))
    assert said.decode() in (answer, f"{answer}: 'kept'"), wall  # Python 3.13 tells more paths
    await require_unchanged(kernel)


FAILED = {
    # the code; what the host says
    "loops": ("while True: pass", "saving took longer than it may"),
    "sleeps": ("time.sleep(1000)", "saving took longer than it may"),
    "loops in C": ("sum(iter(int, 1))", "saving took longer than it may"),
    "leaves": ("os._exit(0)", "the process that saves has ended"),
    "falls": ("ctypes.string_at(0)", "the process that saves has ended"),
    "kills itself": ("os.abort()", "the process that saves has ended"),
    "closes its socket": ("os.close(ours())", "the process that saves has ended"),
    "exits": ("raise SystemExit(0)", None),
    "page tables": (
        "far = mmap.mmap(-1, 500 << 30, flags=mmap.MAP_PRIVATE | 0x4000, prot=mmap.PROT_READ)\n"
        "        for place in range(0, 500 << 30, 1 << 21): far[place]\n"
        "        time.sleep(1000)",
        "the process that saves has ended",
    ),
    "garbage": (
        "os.write(ours(), b'garbage of no frame' * 1000)",
        "the process that saves broke the protocol: b'g' is not allowed while saving",
    ),
    "a frame of 4 GB": (
        "os.write(ours(), struct.pack('<cI', b'C', 2**32 - 1))",
        "the process that saves broke the protocol: a frame of 4,294,967,295 bytes, where 1,048,576 are allowed",
    ),
    "an empty chunk": (
        "os.write(ours(), struct.pack('<cI', b'C', 0))",
        "the process that saves broke the protocol: an empty chunk",
    ),
    "half a frame": (
        "os.write(ours(), struct.pack('<cI', b'C', 1000) + b'half'); time.sleep(1000)",
        "saving took longer than it may",
    ),
    "10 GB": (
        "data = struct.pack('<cI', b'C', 2**20) + bytes(2**20)\n        for _ in range(10_000): whole(data)",
        "the process that saves broke the protocol: more than 805,306,368 bytes in all",
    ),
    "another hello": (
        "os.write(ours(), struct.pack('<cI', b'H', 2) + b'{}')",
        "the process that saves broke the protocol: b'H' is not allowed while saving",
    ),
    "a record before its index": (
        "os.write(ours(), struct.pack('<cI', b'R', 2) + b'{}')",
        "the process that saves broke the protocol: b'R' is not allowed while saving",
    ),
    "an address of nothing": (
        "tell(dict(format=1, python='', groups=[dict(key='k', stream=['sha256-' + '0' * 64], buffers=[], needs=[])],"
        " names=[], lost=[], ambient=[]))",
        "the process that saves broke the protocol: an address of nothing that came: 'sha256-" + "0" * 64 + "'",
    ),
    "JSON without an end": (
        "whole(struct.pack('<cI', b'I', 0)); whole(struct.pack('<cI', b'R', 2**20) + b'[' * 2**20)",
        "the process that saves broke the protocol: a line that is not JSON: nested too deeply",
    ),
}
_SPEECH = """
def ours():
    return [one for one in range(3, 256) if _is_open(one)][0]
def whole(data):
    view = memoryview(data)
    while view: view = view[os.write(ours(), view):]
def tell(record):
    import json
    items = [(field, one) for field, value in record.items() for one in (value if type(value) is list else [value])]
    data = b''.join(json.dumps(item).encode() + b'\\n' for item in items)
    whole(struct.pack('<cI', b'I', 0) + struct.pack('<cI', b'R', len(data)) + data)
    time.sleep(1000)
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("what", FAILED)
@pytest.mark.threat("W7")
@pytest.mark.threat("W6")
async def test_code_that_keeps_its_state_from_being_saved_costs_that_state_alone(
    kernel: ProcessKernel, what: str
) -> None:
    attack, reason = FAILED[what]
    await finished(kernel, _IS_OPEN + _SPEECH)
    await prepare(kernel, attack)
    with anyio.fail_after(10):
        while not kernel._checkpoints.expects:  # two ends for the next step's copy, made ready after the cell
            await anyio.sleep(0.01)
    before = len(os.listdir("/proc/self/fd"))
    began = time.monotonic()
    if reason is None:
        await save(kernel, seconds=2)
    else:
        with pytest.raises(CaptureFailed) as failed:
            await save(kernel, seconds=2 if "longer" in reason else 60)
        assert failed.value.args[0].startswith(reason)
        assert failed.value.hint
    assert time.monotonic() - began < 30
    assert len(os.listdir("/proc/self/fd")) == before
    await require_unchanged(kernel)


@pytest.mark.threat("W7")
async def test_descriptor_that_a_scribe_sends_is_closed(kernel: ProcessKernel) -> None:
    await finished(kernel, _IS_OPEN + _SPEECH)
    await prepare(
        kernel,
        "self.end = socket.socket(fileno=ours()); ends = os.pipe(); "
        "self.end.sendmsg([struct.pack('<cI', b'C', 8)], [(1, 1, array.array('i', [*ends, 0, 1, 2]))]); "
        "self.end.send(struct.pack('<Q', os.fstat(ends[0]).st_ino)); self.end.detach()",
    )
    sent, _ = await save(kernel)
    assert b"<<None>>" in sent  # all of it was sent
    assert [one for one in inodes() if struct.pack("<Q", one) in sent] == []
    await require_unchanged(kernel)


def inodes() -> Iterator[int]:
    """Of this process's pipes."""
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # closed meanwhile
            if stat.S_ISFIFO((found := os.stat(f"/proc/self/fd/{number}")).st_mode):
                yield found.st_ino


@pytest.mark.threat("W7")
async def test_only_addresses_of_the_snapshot_before_are_taken_as_known(kernel: ProcessKernel) -> None:
    """A hash that somebody knows brings no bytes that were not this session's."""
    await prepare(kernel, "pass")
    await finished(kernel, "old = ['old']")
    _, before = await save(kernel)
    (group,) = [one.group for one in before.names if one.name == "old"]
    (known,) = next(one.stream for one in before.groups if one.key == group)
    await finished(kernel, "del old\n" + _IS_OPEN + _SPEECH)
    group = f"dict(key='k', stream=[{known!r}], buffers=[], needs=[])"
    forged = f"tell(dict(format=1, python='', groups=[{group}], names=[], lost=[], ambient=[]))"
    last = await finished(kernel, _SLY % forged)
    assert last.failure is None
    with pytest.raises(CaptureFailed, match="an address of nothing that came"):
        await save(kernel)
    capture = await kernel.capture()
    await capture.begin(before)
    snapshot = await capture.read(len)
    capture.close()
    assert [group.stream for group in snapshot.groups] == [(known,)]


@pytest.mark.sampled(0)
@pytest.mark.threat("W2")
async def test_scribe_outlives_a_signal_to_the_group_of_a_copy_that_is_gone(anyio_backend: str) -> None:
    """The number of a copy that was let go is nobody's that the session's first process could still know."""
    kernel = await ProcessLauncher().open(KernelSpec(seed=1, limits=replace(_LIMITS, max_checkpoints=1)))
    try:
        await prepare(kernel, "time.sleep(2)")
        capture = await kernel.capture()
        try:
            await capture.begin(None)
            for _ in range(4):
                await finished(kernel, "time.sleep(0.1)")
            await finished(
                kernel,
                "for group in range(2, 500):\n"
                "    if group != os.getpgid(0):\n"
                "        try: os.killpg(group, 9)\n"
                "        except OSError: pass",
            )
            snapshot = await capture.read(len)
        finally:
            capture.close()
        assert "kept" in {one.name for one in snapshot.names}
        await require_unchanged(kernel)
    finally:
        await kernel.close()
