"""Landlock: which files this process may touch, which TCP ports it may use, and whom it may signal.

What no rule allows is denied. A kernel of ABI 1 (Linux 5.13) walls the files; every later ABI that the kernel
has adds the rights it knows, and `Applied.detail` names the ABI and what that ABI leaves open.

Two facts to build rules by. A rule on a directory that a mount now covers is not seen from inside that mount,
so a rule for a mounted workspace belongs on the directory above it. And TCP rules see neither MPTCP sockets
nor TCP Fast Open: the system call filter refuses both.
"""

import os
import stat
from collections.abc import Iterable, Sequence

from cellblock.walls import Applied, Unavailable
from cellblock.worker.confine import syscalls

MECHANISM = "landlock"

EXECUTE = 1 << 0
WRITE_FILE = 1 << 1
READ_FILE = 1 << 2
READ_DIR = 1 << 3
MAKE_CHAR = 1 << 6
MAKE_BLOCK = 1 << 11
REFER = 1 << 13
TRUNCATE = 1 << 14
IOCTL_DEV = 1 << 15
RESOLVE_UNIX = 1 << 16

BIND_TCP = 1 << 0
CONNECT_TCP = 1 << 1

SCOPE_ABSTRACT_UNIX_SOCKET = 1 << 0
SCOPE_SIGNAL = 1 << 1

_FILESYSTEM_BITS = {
    1: 13,
    2: 14,
    3: 15,
    4: 15,
    5: 16,
    6: 16,
    7: 16,
    8: 16,
}  # ABI 9 and later: 17. Bits are numbered in the order ABIs added them
_ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV  # the rights a rule on a plain file may carry

_READ_ONLY = EXECUTE | READ_FILE | READ_DIR
_READ_WRITE = ~(
    MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV | RESOLVE_UNIX
)  # without the last, sockets of this domain still work
_EXISTING = READ_FILE | WRITE_FILE | READ_DIR | TRUNCATE

_OPEN_BELOW = (
    (2, "renames and links across directories are all denied"),
    (3, "truncate is not restricted"),
    (4, "TCP is not restricted"),
    (5, "device ioctls are not restricted"),
    (6, "abstract unix sockets and signals are not scoped"),
    (9, "unix sockets that have a path are not restricted"),
)


def apply(
    *,
    read_only: Sequence[str],
    read_write: Sequence[str],
    files: Sequence[str] = (),
    connect_ports: Sequence[int] | None = (),
    scope: bool = True,
) -> Applied | Unavailable:
    """Restrict this thread and all it starts, for good.

    `read_only`: trees to read and execute. `read_write`: trees where everything goes but device nodes and
    device ioctls. `files`: files or directories whose existing content may be read and written, where nothing
    is created, removed or executed. `connect_ports`: the only TCP ports to connect to; binding one is denied
    throughout.

    A process may signal only those of its own domain: its descendants, not the init that stands outside. Without
    `scope` it may signal whom it could before.
    A path that does not exist raises `FileNotFoundError` and then nothing is in force. Sets no_new_privs.
    """
    try:
        abi = syscalls.landlock_abi()
    except OSError as error:
        return _unavailable(str(error))
    if abi == 0:
        return _unavailable("the kernel does not offer Landlock")
    filesystem = (1 << _FILESYSTEM_BITS.get(abi, 17)) - 1
    ruleset = syscalls.landlock_create_ruleset(
        filesystem=filesystem,
        network=BIND_TCP | CONNECT_TCP if abi >= 4 and connect_ports is not None else 0,
        scopes=SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL if abi >= 6 and scope else 0,
    )
    try:
        _allow_paths(ruleset, read_only, _READ_ONLY & filesystem)
        _allow_paths(ruleset, read_write, _READ_WRITE & filesystem)
        _allow_paths(ruleset, files, _EXISTING & filesystem)
        if abi >= 4 and connect_ports is not None:
            for port in connect_ports:
                syscalls.landlock_add_port(ruleset, port, CONNECT_TCP)
        try:
            syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
            syscalls.landlock_restrict_self(ruleset, _log_flags(abi))
        except OSError as error:  # E2BIG: a process takes at most 16 rule sets
            return _unavailable(str(error))
    finally:
        os.close(ruleset)
    left_open = (gap for needed, gap in _OPEN_BELOW if abi < needed)
    return Applied(mechanism=MECHANISM, detail="; ".join([f"ABI {abi}", *left_open]))


def _allow_paths(ruleset: int, paths: Iterable[str], access: int) -> None:
    for path in paths:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            is_directory = stat.S_ISDIR(os.fstat(parent).st_mode)
            syscalls.landlock_add_path(ruleset, parent, access if is_directory else access & _ON_FILES)
        finally:
            os.close(parent)


def _log_flags(abi: int) -> int:
    """No audit records of what this code, or a domain it makes, is denied: it could flood the host's log."""
    if abi < 7:
        return 0
    return syscalls.LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF | syscalls.LANDLOCK_RESTRICT_SELF_LOG_SUBDOMAINS_OFF


def _unavailable(reason: str) -> Unavailable:
    return Unavailable(
        mechanism=MECHANISM,
        reason=reason,
        remedy='use Linux >= 5.13 built with CONFIG_SECURITY_LANDLOCK and booted with "landlock" in lsm=',
    )
