"""Linux system calls that the standard library does not wrap, as typed functions over ctypes.

Each function is one call. A failure raises `OSError` with the kernel's errno and a message that shows the
call and its arguments. Importing costs ctypes and nothing more, and works on any system; where the machine is
not a 64-bit Linux of a known kind every call raises `OSError(ENOSYS)`.
"""

import ctypes
import errno
import os
import struct
import sys
import time

from cellblock.hosting.machine import MACHINE
from cellblock.worker.confine.syscall_numbers import NUMBERS

AT_FDCWD = -100
AT_SYMLINK_NOFOLLOW = 0x100
AT_EACCESS = 0x200
AT_EMPTY_PATH = 0x1000
AT_RECURSIVE = 0x8000

CLONE_VM = 0x100
CLONE_CHILD_CLEARTID = 0x200000
CLONE_CHILD_SETTID = 0x1000000
WAIT_SILENT = -0x80000000  # __WCLONE
_SETTLING_SECONDS = 5.0
"""Seconds that a process waits for one that it has made to be out of its reach."""
CLONE_VFORK = 0x4000
CLONE_NEWNS = 0x20000
CLONE_NEWUTS = 0x4000000
CLONE_NEWIPC = 0x8000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000

MNT_DETACH = 0x2

MOUNT_ATTR_RDONLY = 0x1
MOUNT_ATTR_NOSUID = 0x2
MOUNT_ATTR_NODEV = 0x4
MOUNT_ATTR_IDMAP = 0x100000

_OPEN_TREE_CLONE = 0x1
_MOVE_MOUNT_F_EMPTY_PATH = 0x4

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_GET_DUMPABLE = 3
PR_SET_DUMPABLE = 4
PR_SET_NAME = 15
PR_CAPBSET_READ = 23
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
PR_GET_TID_ADDRESS = 40
PR_GET_NO_NEW_PRIVS = 39
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

RESOLVE_NO_XDEV = 0x1
RESOLVE_NO_MAGICLINKS = 0x2
RESOLVE_NO_SYMLINKS = 0x4
RESOLVE_BENEATH = 0x8

LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF = 0x1
LANDLOCK_RESTRICT_SELF_LOG_SUBDOMAINS_OFF = 0x4

_LANDLOCK_CREATE_RULESET_VERSION = 0x1
_LANDLOCK_RULE_PATH_BENEATH = 1
_LANDLOCK_RULE_NET_PORT = 2
_SECCOMP_SET_MODE_FILTER = 1
_SECCOMP_FILTER_FLAG_NEW_LISTENER = 0x8
_SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV = 0x20
_LINUX_CAPABILITY_VERSION_3 = 0x20080522
_CAPABILITY_BITS = 64
_SIGKILL, _SIGCHLD = 9, 17
_PROT_READ, _PROT_WRITE, _MAP_PRIVATE, _MAP_ANONYMOUS = 0x1, 0x2, 0x2, 0x20
_MREMAP_MAYMOVE, _MREMAP_FIXED = 0x1, 0x2
_BPF_INSTRUCTION_BYTES = 8
_STAT_BYTES = {"x86_64": 144, "aarch64": 128}
_STATX_BYTES = 256
_STATFS_BYTES = 120

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
_Argument = int | bytes | None

_numbers = NUMBERS.get(MACHINE, {})
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
if _libc is not None:
    _libc.syscall.restype = ctypes.c_long


def mount(
    source: Path | None,
    target: Path,
    fstype: str | None = None,
    flags: int = 0,
    data: str | None = None,
) -> None:
    """mount(2): attach a file system, or with `MS_BIND`, `MS_REMOUNT` or a propagation flag change one."""
    _call(
        "mount",
        None if source is None else os.fsencode(source),
        os.fsencode(target),
        None if fstype is None else os.fsencode(fstype),
        flags,
        None if data is None else os.fsencode(data),
    )


def umount(target: Path, flags: int = 0) -> None:
    """umount2(2)."""
    _call("umount2", os.fsencode(target), flags)


def pivot_root(new: Path, old: Path) -> None:
    """pivot_root(2). With `"."` for both, the old root lies on the new one and `umount(".")` detaches it."""
    _call("pivot_root", os.fsencode(new), os.fsencode(old))


def open_tree(directory: int) -> int:
    """open_tree(2), Linux 5.2: a descriptor of a copy, attached nowhere, of the mount tree that begins at `directory`.

    The mounts below it are copied too. Needs CAP_SYS_ADMIN over this process's mount namespace. The copy goes when
    the last descriptor of it does, unless it was moved somewhere.
    """
    return _call("open_tree", directory, b"", AT_EMPTY_PATH | AT_RECURSIVE | _OPEN_TREE_CLONE | os.O_CLOEXEC)


def move_mount(tree: int, target: Path) -> None:
    """move_mount(2), Linux 5.2: attach what `open_tree` gave at `target`."""
    _call("move_mount", tree, b"", AT_FDCWD, os.fsencode(target), _MOVE_MOUNT_F_EMPTY_PATH)


def mount_setattr(
    path: Path, attr_set: int, *, recursive: bool, directory: int = AT_FDCWD, propagation: int = 0, userns: int = 0
) -> None:
    """mount_setattr(2), Linux 5.12: set `MOUNT_ATTR_*` on the mount at `path` or on its whole tree.

    A `path` of "" is `directory` itself. `propagation` is an `MS_*` of mount(2), 0 to leave it; `userns` is the
    user namespace whose map `MOUNT_ATTR_IDMAP` takes.
    """
    attributes = struct.pack("=4Q", attr_set, 0, propagation, userns)
    flags = (AT_RECURSIVE if recursive else 0) | (0 if path else AT_EMPTY_PATH)
    _call("mount_setattr", directory, os.fsencode(path), flags, attributes, len(attributes))


def unshare(flags: int) -> None:
    """unshare(2). `CLONE_NEWPID` takes effect for the next child; `CLONE_NEWUSER` needs a single thread."""
    _call("unshare", flags)


def setns(fd: int, flags: int = 0) -> None:
    """setns(2): join the namespace of `fd`, or those of a pidfd that `flags` names."""
    _call("setns", fd, flags)


def openat2(dirfd: int, path: Path, flags: int, mode: int = 0, resolve: int = 0) -> int:
    """openat2(2), Linux 5.6: open with the walk bounded by `RESOLVE_*`.

    EXDEV and ELOOP are answers about the path. EAGAIN means that a rename raced with the walk.
    """
    how = struct.pack("=3Q", flags, mode, resolve)
    return _call("openat2", dirfd, os.fsencode(path), how, len(how))


def stat_of(descriptor: int) -> bytes:
    """newfstatat(2) of what a descriptor is open on, O_PATH or not: the kernel's own `struct stat`."""
    return _filled(_STAT_BYTES[MACHINE], "newfstatat", descriptor, b"", None, AT_EMPTY_PATH)


def statx_of(descriptor: int, flags: int, mask: int) -> bytes:
    """statx(2), likewise: a `struct statx`."""
    return _filled(_STATX_BYTES, "statx", descriptor, b"", flags | AT_EMPTY_PATH, mask, None)


def statfs_of(descriptor: int) -> bytes:
    """fstatfs(2): a `struct statfs`."""
    return _filled(_STATFS_BYTES, "fstatfs", descriptor, None)


def access_of(descriptor: int, mode: int) -> None:
    """faccessat2(2) of what a descriptor is open on, as the user that the thread acts as. Linux 5.8."""
    _call("faccessat2", descriptor, b"", mode, AT_EMPTY_PATH | AT_EACCESS)


def set_times_of(descriptor: int, times: bytes | None) -> None:
    """utimensat(2) of what a descriptor is open on; `times` are two `struct timespec`, None is now."""
    _call("utimensat", descriptor, b"", times, AT_EMPTY_PATH)


def setfsuid(uid: int) -> None:
    """setfsuid(2): whom this thread acts as on files. The call itself cannot tell that it failed."""
    _call("setfsuid", uid)


def setfsgid(gid: int) -> None:
    """setfsgid(2), likewise for the group."""
    _call("setfsgid", gid)


def map_anonymous(size: int) -> int:
    """mmap(2): the address of so many bytes of private memory, to be read and written."""
    return _call("mmap", 0, size, _PROT_READ | _PROT_WRITE, _MAP_PRIVATE | _MAP_ANONYMOUS, -1, 0)


def protect(address: int, size: int, protection: int) -> None:
    """mprotect(2)."""
    _call("mprotect", address, size, protection)


def remap(address: int, size: int, place: int) -> None:
    """mremap(2): move a mapping over whatever is at `place`."""
    _call("mremap", address, size, size, _MREMAP_MAYMOVE | _MREMAP_FIXED, place)


def write_from(descriptor: int, address: int, size: int) -> int:
    """write(2) from an address: how many bytes could be. What cannot be read there is EFAULT, and no signal."""
    return _call("write", descriptor, address, size)


def prctl(op: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0) -> int:
    """prctl(2). An argument that is a pointer is given as an address."""
    return _call("prctl", op, a, b, c, d)


def name_process(name: str) -> None:
    """Have this process listed under a name, of which 15 bytes count."""
    text = ctypes.create_string_buffer(name.encode())
    prctl(PR_SET_NAME, ctypes.addressof(text))


def clone_silently() -> int:
    """Fork without the C library's part of it, for a process of one thread; 0 in the child.

    The child's end raises no signal, and only a wait that asks for such children (`WAIT_SILENT`) tells of it. The child
    leads a session of processes of its own before this returns, in either process: no signal to a group reaches it, and
    nobody joins it. OSError where that does not come about, as when something has stopped it.
    """
    place = ctypes.c_void_p()
    prctl(PR_GET_TID_ADDRESS, ctypes.addressof(place))
    address = place.value or 0
    # the last two arguments stand the other way round on some machines; both are the place or nothing
    flags = CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID if address else 0
    child = _call("clone", flags, 0, 0, *((address, 0) if MACHINE == "x86_64" else (0, address)))
    if child == 0:
        os.setsid()
        return 0
    deadline = time.monotonic() + _SETTLING_SECONDS
    while os.getsid(child) != child:
        if time.monotonic() > deadline:
            os.kill(child, _SIGKILL)
            os.waitpid(child, WAIT_SILENT)
            raise OSError(errno.ETIMEDOUT, "a copy was not scheduled")
        os.sched_yield()
    return child


def succeed() -> None:
    """Go on as another process over this one's memory, an orphan that leads a session of its own: this process ends,
    and only it.

    The second process is made by clone(2) with CLONE_VM and CLONE_VFORK, so the first waits inside the kernel while
    the second uses its stack, and is killed there. For a process of one thread. Raises OSError where clone failed.
    """
    place = ctypes.c_void_p()
    prctl(PR_GET_TID_ADDRESS, ctypes.addressof(place))
    _call("set_tid_address", 0)  # else the kernel would clear the thread id, which the two share, when the first ends
    first = os.getpid()
    if _call("clone", CLONE_VM | CLONE_VFORK | _SIGCHLD, 0, 0, 0, 0) == 0:
        os.setsid()
        os.kill(first, _SIGKILL)
    if place.value:  # the C library keeps the id of each thread there
        _call("set_tid_address", place.value)
        ctypes.c_int.from_address(place.value).value = os.getpid()


def clear_capabilities() -> None:
    """Empty the effective, permitted and inheritable sets of this thread (capset).

    The ambient set empties with them: the kernel keeps it inside permitted and inheritable.
    """
    set_capabilities(effective=0, permitted=0)


def set_capabilities(*, effective: int, permitted: int) -> None:
    """capset(2): the capabilities of this thread, as bits. The inheritable set empties."""
    header = struct.pack("=Ii", _LINUX_CAPABILITY_VERSION_3, 0)
    low, high = 0xFFFFFFFF, 32
    words = [effective & low, permitted & low, 0, effective >> high, permitted >> high, 0]
    _call("capset", header, struct.pack("=6I", *words))


def drop_bounding_set() -> int:
    """Take every capability out of the bounding set and return how many were in it.

    Raises EPERM when one is in it and the thread lacks CAP_SETPCAP.
    """
    dropped = 0
    for capability in range(_CAPABILITY_BITS):
        try:
            held = prctl(PR_CAPBSET_READ, capability)
        except OSError as error:
            if error.errno == errno.EINVAL:  # past the last capability of this kernel
                break
            raise
        if held:
            prctl(PR_CAPBSET_DROP, capability)
            dropped += 1
    return dropped


def seccomp_install(program: bytes, *, listener: bool = False) -> int:
    """Put a BPF program in front of every system call of this thread and its descendants.

    Needs no_new_privs or CAP_SYS_ADMIN. Returns 0, or with `listener` the descriptor on which
    `SECCOMP_RET_USER_NOTIF` verdicts arrive; a process has at most one listener among its filters. From Linux 5.19 on
    a call that was taken off the listener is interrupted by nothing but its process's death.
    """
    if not program or len(program) % _BPF_INSTRUCTION_BYTES:
        raise ValueError(f"a BPF program is {_BPF_INSTRUCTION_BYTES}-byte instructions, not {len(program)} bytes")
    instructions = ctypes.create_string_buffer(program, len(program))
    count = len(program) // _BPF_INSTRUCTION_BYTES
    header = struct.pack("@HP", count, ctypes.addressof(instructions))  # native alignment: struct sock_fprog
    if not listener:
        return _call("seccomp", _SECCOMP_SET_MODE_FILTER, 0, header)
    try:
        flags = _SECCOMP_FILTER_FLAG_NEW_LISTENER | _SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
        return _call("seccomp", _SECCOMP_SET_MODE_FILTER, flags, header)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return _call("seccomp", _SECCOMP_SET_MODE_FILTER, _SECCOMP_FILTER_FLAG_NEW_LISTENER, header)


def landlock_abi() -> int:
    """The version of Landlock this kernel offers, 0 when it was not built or not switched on at boot."""
    try:
        return _call("landlock_create_ruleset", None, 0, _LANDLOCK_CREATE_RULESET_VERSION)
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EOPNOTSUPP):
            return 0
        raise


def landlock_create_ruleset(*, filesystem: int, network: int = 0, scopes: int = 0) -> int:
    """A descriptor of a rule set that handles, and so denies until a rule allows, the given access rights."""
    attributes = struct.pack("=3Q", filesystem, network, scopes)  # an older kernel wants its unknown tail to be zero
    return _call("landlock_create_ruleset", attributes, len(attributes), 0)


def landlock_add_path(ruleset: int, parent: int, access: int) -> None:
    """Allow `access` on the file, or beneath the directory, that the descriptor `parent` holds.

    Rights that make sense for directories only are EINVAL on a file.
    """
    _call("landlock_add_rule", ruleset, _LANDLOCK_RULE_PATH_BENEATH, struct.pack("=Qi", access, parent), 0)


def landlock_add_port(ruleset: int, port: int, access: int) -> None:
    """Allow `access` (bind, connect) on a TCP port. ABI 4."""
    _call("landlock_add_rule", ruleset, _LANDLOCK_RULE_NET_PORT, struct.pack("=QQ", access, port), 0)


def landlock_restrict_self(ruleset: int, flags: int = 0) -> None:
    """Enforce the rule set on this thread and its descendants.

    Needs no_new_privs or CAP_SYS_ADMIN. Flags are ABI 7.
    """
    _call("landlock_restrict_self", ruleset, flags)


def read_memory(pid: int, address: int, into: int, length: int) -> int:
    """Copy another process's memory to an address of this one's; how many bytes that were, which may be fewer.

    `OSError(EFAULT)` where the process has nothing at the address, `EPERM` where it may not be read. Copies as many
    as one call takes, without the interpreter's lock.
    """
    local, remote = struct.pack("QQ", into, length), struct.pack("QQ", address, length)
    return _call("process_vm_readv", pid, local, 1, remote, 1, 0)


def write_memory(pid: int, address: int, source: int, length: int) -> int:
    """Copy memory of this process's to an address of another's; as `read_memory`."""
    local, remote = struct.pack("QQ", source, length), struct.pack("QQ", address, length)
    return _call("process_vm_writev", pid, local, 1, remote, 1, 0)


def _call(name: str, *arguments: _Argument) -> int:
    """Make the call. Bytes are passed by address (and end in NUL), integers as 64-bit registers."""
    number = _numbers.get(name)
    if _libc is None or number is None:
        raise OSError(
            errno.ENOSYS,
            f"{os.strerror(errno.ENOSYS)}: {_shown(name, arguments)} on {MACHINE or sys.platform}",
        )
    registers = [
        ctypes.c_long(argument) if isinstance(argument, int) else ctypes.c_char_p(argument) for argument in arguments
    ]
    result: int = _libc.syscall(ctypes.c_long(number), *registers)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{os.strerror(code)}: {_shown(name, arguments)}")
    return result


def _filled(size: int, name: str, *arguments: _Argument) -> bytes:
    """Make a call that fills a buffer of `size`, which goes where `arguments` has None."""
    buffer = ctypes.create_string_buffer(size)
    place = arguments.index(None)
    _call(name, *arguments[:place], ctypes.addressof(buffer), *arguments[place + 1 :])
    return buffer.raw


def _shown(name: str, arguments: tuple[_Argument, ...]) -> str:
    texts = (
        f"<{len(argument)} bytes>" if isinstance(argument, bytes) and b"\0" in argument else repr(argument)
        for argument in arguments
    )
    return f"{name}({', '.join(texts)})"
