"""W4: capabilities, setuid files, namespaces, keys, kernel programs, clocks, and the machine itself."""

from __future__ import annotations

from cellblock_attacks.attack import Attack, Table, one_of
from cellblock_attacks.host import TRUST_LEVEL

_SECCOMP = "seccomp"
_ENDED_BY_THE_CONTAINER = (
    ("crashed: ProcessDied: the session's process was killed by SIGSYS",) if TRUST_LEVEL == "sandboxed" else ()
)
"""The filter of the container, which stands before ours, ends what calls by other numbers."""


_cell = Table("privileges", "W4").cell


# Arguments are such that the kernel would refuse the call as well, were the filter not there.
_REFUSED = {
    "keys": ['"add_key", b"user", b"k", b"v", 1, -2', '"keyctl", 0, -3, 1', '"request_key", b"user", b"k", 0, 0'],
    "kernel-programs": ['"bpf", 0, bytes(64), 64', '"bpf", 5, bytes(128), 128', '"userfaultfd", 0'],
    "performance-events": ['"perf_event_open", bytes(112), 0, -1, -1, 0'],
    "call-queues": [
        '"io_uring_setup", 1, bytes(120)',
        '"io_uring_enter", -1, 0, 0, 0, 0, 0',
        '"io_uring_register", -1, 0, 0, 0',
        '"io_setup", 1, bytes(8)',
    ],
    "modules": ['"init_module", 0, 0, b""', '"finit_module", -1, b"", 0', '"delete_module", b"absent", 0'],
    "clocks": ['"clock_settime", 0, 0', '"settimeofday", 0, 0', '"adjtimex", 0', '"clock_adjtime", 0, 0'],
    "host-name": ['"sethostname", b"x", 1', '"setdomainname", b"x", 1'],
    "namespaces": [
        '"unshare", 0x10000000',
        '"unshare", 0x20000',
        '"unshare", 0x40000000',
        '"unshare", 0',
        '"setns", -1, 0',
        '"clone", 0x10000000 | 17, 0, 0, 0, 0',
        '"clone", 0x20000 | 17, 0, 0, 0, 0',
    ],
    "kernels": ['"kexec_load", 0, 0, 0, 0', '"kexec_file_load", -1, -1, 0, 0, 0', '"reboot", 0, 0, 0, 0'],
    "swap-and-accounting": [
        '"swapon", b"/absent", 0',
        '"swapoff", b"/absent"',
        '"acct", b"/absent"',
        '"quotactl", 0, 0, 0, 0',
    ],
    "log": ['"syslog", 3, bytes(10), 10', '"syslog", 10, 0, 0', '"vhangup"'],
    "shared-queues": [
        '"shmget", 0, 4096, 0o1666',
        '"semget", 0, 1, 0o1666',
        '"msgget", 0, 0o1666',
        '"mq_open", b"q", 0o102, 0o666, 0',
    ],
    "a-second-filter": ['"seccomp", 1, 0, bytes(16)', '"prctl", 22, 2, 0', '"prctl", 35, 1, 0, 0, 0'],
    "address-space-layout": ['"personality", 0x0040000', '"personality", 0x0400000', '"personality", 0x0004000'],
    "being-traced": ['"ptrace", 0, 0, 0, 0'],
    "watching-mounts": ['"fanotify_init", 0, 0', '"fanotify_mark", -1, 0, 0, 0, 0'],
}

_X86_ONLY = ['"modify_ldt", 0, 0, 0', '"iopl", 3', '"ioperm", 0, 1, 1']


def _table(name: str, calls: list[str], answers: object) -> Attack:
    return _cell(name, _SECCOMP, answers, "sorted({" + ", ".join(f"call({one})" for one in calls) + "})")


ATTACKS: tuple[Attack, ...] = (
    *(_table(name, calls, ["EPERM"]) for name, calls in _REFUSED.items()),
    _table("segments-and-ports", _X86_ONLY, one_of(["EPERM"], ["absent"])),
    _cell("clone3", "seccomp: arguments behind a pointer", "ENOSYS", "call('clone3', bytes(88), 88)"),
    _cell(
        "capability-sets",
        "empty capability sets, no_new_privs, one seccomp filter",
        {
            "CapInh": 0,
            "CapPrm": 0,
            "CapEff": 0,
            "CapBnd": 0,
            "CapAmb": 0,
            "NoNewPrivs": 1,
            "Seccomp": 2,
        },
        """
lines = dict(line.split(":", 1) for line in read("/proc/self/status").splitlines())
{name: int(lines[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")}
""",
    ),
    _cell(
        "every-thread-is-confined",
        "walls before the first thread",
        [["0", "1", "2"]],
        """
import threading
gate = threading.Event()
threads = [threading.Thread(target=gate.wait) for _ in range(3)]
for one in threads: one.start()
found = set()
for task in os.listdir("/proc/self/task"):
    lines = dict(line.split(":\\t", 1) for line in read(f"/proc/self/task/{task}/status").splitlines())
    found.add((lines["CapEff"].lstrip("0") or "0", lines["NoNewPrivs"], lines["Seccomp"]))
gate.set()
for one in threads: one.join()
sorted(map(list, found))
""",
    ),
    _cell(
        "get-a-capability-back",
        "a set only shrinks",
        one_of(["EPERM"], ["EINVAL", "EPERM"]),
        """
import struct
header, every = struct.pack("=Ii", 0x20080522, 0), struct.pack("=6I", 1, 1, 1, 0, 0, 0)
sorted({call("capset", header, every), call("prctl", 47, 2, 21, 0, 0)})
""",
    ),
    _cell(
        "become-root",
        "the user namespace maps one user",
        ["EINVAL"],
        """
sorted({attempt(os.setuid, 0), attempt(os.setgid, 0), attempt(os.setresuid, 0, 0, 0), attempt(os.setreuid, 0, 0)})
""",
    ),
    _cell("join-groups", "empty capability sets", "EPERM", "attempt(os.setgroups, [0])"),
    _cell(
        "make-a-setuid-file",
        "seccomp: modes",
        ["EPERM"],
        """
open("plain", "w").close()
sorted({attempt(os.chmod, "plain", mode) for mode in (0o4755, 0o2755, 0o6755)} | {attempt(os.open, "made",
    os.O_CREAT | os.O_WRONLY, 0o4755)}
       | {attempt(os.mkdir, "made", 0o2777), attempt(os.mknod, "made", 0o104755)})
""",
    ),
    _cell(
        "setuid-files-of-the-system",
        "no_new_privs, and mounts without setuid",
        [[1000, 1000]],
        """
import subprocess, stat
found = {(1000, 1000)}
for name in ("su", "mount", "passwd", "ping", "chsh", "newgrp", "gpasswd", "sudo", "pkexec", "fusermount3"):
    path = "/usr/bin/" + name
    if os.path.exists(path) and os.stat(path).st_mode & stat.S_ISUID:
        process = subprocess.Popen([path, "--help"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        try:
            words = read(f"/proc/{process.pid}/status").split("Uid:")[1].split()
            found.add((int(words[0]), int(words[1])))
        except FileNotFoundError:
            pass
        process.stdin.close()
        process.kill()
        process.wait()
sorted(map(list, found))
""",
    ),
    _cell(
        "every-mount-is-nosuid-and-nodev",
        "the template's mounts",
        [],
        """
[line.split()[4] for line in read("/proc/self/mountinfo").splitlines()
 if not {"nosuid", "nodev"} <= set(line.split()[5].split(",")) and not line.split()[4].startswith("/dev/")]
""",
    ),
    _cell(
        "every-mount-of-the-system-is-read-only",
        "the template's mounts",
        ["/proc", "/proc", "/session"],
        """
sorted(line.split()[4] for line in read("/proc/self/mountinfo").splitlines()
       if "ro" not in line.split()[5].split(",") and not line.split()[4].startswith("/dev/"))
""",
    ),
    _cell(
        "other-architectures-calls",
        "seccomp kills a process that uses another architecture's numbers",
        one_of(-31, "not x86_64"),
        """
import mmap
def try_int80():
    code = mmap.mmap(-1, 4096, prot=7, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    code.write(bytes.fromhex("b814000000" "cd80" "c3"))  # mov eax, 20 (getpid of i386); int 0x80; ret
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    ctypes.CFUNCTYPE(ctypes.c_int)(address)()
from cellblock.hosting.machine import MACHINE
if MACHINE != "x86_64":
    answer = "not x86_64"
else:
    child = os.fork()
    if child == 0:
        try_int80()
        os._exit(0)
    answer = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
answer
""",
    ),
    _cell(
        "x32-calls",
        "seccomp: x32 numbers are unknown",
        one_of("ENOSYS", "not x86_64", *_ENDED_BY_THE_CONTAINER),
        """
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
from cellblock.hosting.machine import MACHINE
answer = "not x86_64"
if MACHINE == "x86_64":
    answer = errno.errorcode[ctypes.get_errno()] if libc.syscall(ctypes.c_long(0x40000000 + 39)) < 0 else "returned"
answer
""",
    ),
    _cell(
        "terminal-injection",
        "seccomp: terminal ioctls",
        ["EPERM"],
        """
import fcntl
sorted({attempt(fcntl.ioctl, 0, number, b"x" * 8) for number in (0x5412, 0x541C, 0x5423)})
""",
    ),
    _cell(
        "call-numbers-that-nobody-knows",
        "seccomp: what no table names",
        ["ENOSYS"],
        """
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def raw(number):
    return errno.errorcode[ctypes.get_errno()] if libc.syscall(ctypes.c_long(number), 0, 0, 0, 0, 0,
        0) < 0 else "returned"
sorted({raw(number) for number in (600, 700, 1000, 4095, 10**6)})
""",
    ),
)
