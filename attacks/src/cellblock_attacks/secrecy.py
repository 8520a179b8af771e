"""W5: secrets of the host and of a neighbour, wherever a process of the session could find them."""

from __future__ import annotations

from cellblock_attacks.attack import Attack, Holds, Table, subset_of
from cellblock_attacks.host import TRUST_LEVEL, Host

_EXEC = "the family is started by exec with an environment of its own"


_TABLE = Table("secrecy", "W5")
_cell, _host = _TABLE.cell, _TABLE.host


_SCAN = """
import re
pattern = re.compile(b"canary-" + b"[0-9a-f]{32}")
found, scanned = [], 0
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
    for line in maps.read().splitlines():
        span, mode = line.split()[:2]
        first, last = (int(edge, 16) for edge in span.split("-"))
        if not mode.startswith("r") or line.endswith(("[vvar]", "[vsyscall]", "[vvar_vclock]")):
            continue
        while first < last:
            try:
                memory.seek(first)
                piece = memory.read(min(1 << 20, last - first))
            except OSError:
                break
            if not piece:
                break
            scanned += len(piece)
            found += pattern.findall(piece)
            first += len(piece)
"""
"""Reads all of the worker's memory: what the zygote left there, what the collector freed, every library."""


def _is_found_when_it_is_there(host: Host) -> object:
    """The scan finds what is in memory: without this, finding nothing would prove nothing."""
    return host.cell("planted = 'canary-' + '0123456789abcdef' * 2\n" + _SCAN + "len(found) > 0")


_OF_THE_CONTAINER = '"HOME", "HOSTNAME", "PATH", "TERM", "container",' if TRUST_LEVEL == "sandboxed" else ""
"""Variables that engines set in a container."""

ATTACKS: tuple[Attack, ...] = (
    _cell(
        "environment",
        _EXEC,
        Holds(
            lambda names: (
                isinstance(names, list)
                and set(names)
                <= {
                    "HOME",
                    "LANG",
                    "LOGNAME",
                    "MPLBACKEND",
                    "MPLCONFIGDIR",
                    "PATH",
                    "PIP_NO_INDEX",
                    "PYTHONHASHSEED",
                    "PYTHONDONTWRITEBYTECODE",
                    "TMPDIR",
                    "USER",
                    "XDG_CACHE_HOME",
                    "MKL_NUM_THREADS",
                    "NUMEXPR_NUM_THREADS",
                    "OMP_NUM_THREADS",
                    "OPENBLAS_NUM_THREADS",
                    "ARROW_DEFAULT_MEMORY_POOL",
                    "JE_ARROW_MALLOC_CONF",
                }
            ),
            "the session's own variables alone",
        ),
        "sorted(os.environ)",
    ),
    _cell(
        "environment-at-exec",
        _EXEC,
        [],
        f"""
[word for word in read("/proc/self/environ").split("\\0") if word.split("=")[0] not in {{{_OF_THE_CONTAINER}
    "LANG", "MPLBACKEND", "MPLCONFIGDIR", "PYTHONHASHSEED", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS", "ARROW_DEFAULT_MEMORY_POOL", "JE_ARROW_MALLOC_CONF", "LD_LIBRARY_PATH", "TZ", ""}}]
""",
    ),
    _cell(
        "environment-of-others",
        "/proc hides who could not be traced, which Landlock decides",
        ["ENOENT"],
        """
sorted({attempt(read, f"/proc/{pid}/environ") for pid in range(1, 40) if pid != os.getpid()})
""",
    ),
    _cell(
        "environment-of-a-child",
        _EXEC,
        False,
        """
import subprocess
"ATTACKED_SECRET" in subprocess.run(["env"], capture_output=True, text=True).stdout
""",
    ),
    _cell(
        "command-lines",
        "the pid namespace",
        False,
        """
"canary-" in "".join(read(f"/proc/{pid}/cmdline") for pid in pids() if pid != 1)
""",
    ),
    _cell(
        "memory-of-the-worker",
        _EXEC,
        {"found": 0, "scanned": True},
        _SCAN
        + """
{"found": len(found), "scanned": scanned > 10 << 20}
""",
    ),
    _host("memory-scan-works", "none: this checks the scan", True, _is_found_when_it_is_there),
    _cell(
        "objects-of-the-collector",
        _EXEC,
        0,
        """
import gc
sum(1 for one in gc.get_objects() if type(one) is dict and "ATTACKED_SECRET" in one)
""",
    ),
    _cell(
        "files-of-a-neighbour",
        "the mount namespace",
        ["ENOENT"],
        """
sorted({attempt(read, path) for path in ("/tmp/secret", "/dev/shm/secret", "/workspace/secret",
    "/session/secret", "/var/tmp/secret")})
""",
    ),
    _cell("shared-memory-starts-empty", "the mount namespace", [], "os.listdir('/dev/shm')"),
    _cell(
        "core-dumps",
        "rlimits: core files of no size, and no crash handler of the host's",
        {"limit": [1, 1], "dumped": False, "left": []},
        """
import resource, signal
child = os.fork()
if child == 0:
    os.kill(os.getpid(), signal.SIGABRT)
status = os.waitpid(child, 0)[1]
{"limit": list(resource.getrlimit(resource.RLIMIT_CORE)), "dumped": os.WCOREDUMP(status),
 "left": [name for name in os.listdir(".") if name.startswith("core")]}
""",
    ),
    _cell(
        "raise-the-core-limit",
        "seccomp: it stays what it is",
        [1, 1],
        """
import resource
resource.setrlimit(resource.RLIMIT_CORE, (2, 2))
list(resource.getrlimit(resource.RLIMIT_CORE))
""",
    ),
    _cell(
        "lower-the-core-limit-to-start-the-crash-handler",
        "seccomp: it stays what it is",
        {"limits": [[1, 1], [1, 1], [1, 1]], "dumped": False},
        """
import resource, signal, struct
limits = []
for lower in (lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 1)),
              lambda: resource.prlimit(0, resource.RLIMIT_CORE, (0, 0)),
              lambda: call("setrlimit", resource.RLIMIT_CORE, struct.pack("QQ", 0, 0))):
    lower()
    limits.append(list(resource.getrlimit(resource.RLIMIT_CORE)))
child = os.fork()
if child == 0:
    os.kill(os.getpid(), signal.SIGABRT)
{"limits": limits, "dumped": os.WCOREDUMP(os.waitpid(child, 0)[1])}
""",
    ),
    _cell(
        "files-of-proc-about-the-host",
        "an empty file is mounted over each",
        [],
        """
[name for name in ("cmdline", "config.gz", "diskstats", "key-users", "keys", "modules", "partitions")
    if os.path.exists("/proc/" + name) and (read("/proc/" + name) or read("/proc/self/root/proc/" + name))]
""",
    ),
    _cell(
        "uncover-files-of-proc",
        "seccomp, and read-only mounts",
        subset_of("EPERM", "EROFS", "EACCES", "EBUSY", "EXDEV"),
        """
sorted({call("umount2", b"/proc/cmdline", 2), attempt(os.unlink, "/proc/cmdline"),
        attempt(os.rename, "/proc/cmdline", "moved"), attempt(open, "/proc/cmdline", "w"),
        attempt(os.link, "/proc/cmdline", "linked"), attempt(open, "/etc/empty", "w")})
""",
    ),
    _cell("host-name", "the uts namespace", "cellblock", "os.uname().nodename"),
    _cell(
        "kernel-log-and-symbols",
        "the kernel hides them from users without capabilities",
        True,
        """
lines = read("/proc/kallsyms").splitlines()[:100] if os.path.exists("/proc/kallsyms") else []
all(line.split()[0].strip("0") == "" for line in lines)
""",
    ),
    _cell("keyrings-of-the-host", "seccomp", "EPERM", "call('keyctl', 11, -3, 0, 0)"),
    _cell(
        "shared-memory-segments-of-the-host",
        "the ipc namespace",
        1,
        """
len(read("/proc/sysvipc/shm").splitlines())
""",
    ),
)
