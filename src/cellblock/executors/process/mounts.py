"""Directories and files of the host that a session may be given: names and sources, checked before it opens.

What is checked here is what walls cannot do. A socket or a pipe of the host answers through a read-only mount too,
so a source that holds one is refused, as are places where programs put them, and those of the kernel.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

from cellblock.errors import MountRefused
from cellblock.worker import control
from cellblock.worker.confine import layout

MAX_MOUNTS = control.MAX_DESCRIPTORS
SCANNED_ENTRIES = 10_000
"""Most entries of a source that are looked at for sockets and pipes, the ones nearest to its top first."""

_KERNEL = ("/proc", "/sys", "/dev")
_MEMORY = "/dev/shm/"
_SHARED = ("/run", "/tmp", "/var/tmp", "/dev/shm")
"""Directories in which any program puts sockets and temporary files. A directory in one of them may be mounted, they
may not."""

_INTERFACES = (
    *("autofs", "binder", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs"),
    *("efivarfs", "fusectl", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "selinuxfs", "smackfs"),
    *("sysfs", "tracefs"),
)
"""File systems whose files are the kernel's own, or do something on the host when they are read."""

_DATA_ALONE = "mount a directory that holds the data and nothing else"


@dataclass(frozen=True, slots=True)
class Mount:
    """A directory or file of the host that a session may be given, as `check` found it.

    `place` is where it appears inside. `path` is free of links; `device` and `inode` say what was found there.
    """

    name: str
    place: str
    path: str
    device: int
    inode: int
    is_directory: bool


def check(wanted: Sequence[tuple[str, str]]) -> tuple[Mount, ...]:
    """Security border: the mounts that are asked for as names and sources; `MountRefused` says what is wrong.

    Links in a source are followed here and never again.
    """
    if len(wanted) > MAX_MOUNTS:
        raise MountRefused(f"{len(wanted)} mounts are more than {MAX_MOUNTS}", hint="mount a directory that holds them")
    places = [(name, place_of(name)) for name, _ in wanted]
    for (name, place), (other, above) in permutations(places, 2):
        if place == above or place.startswith(above + "/"):
            raise MountRefused(f"mounts[{name!r}] clashes with mounts[{other!r}]", hint="give each a place of its own")
    return tuple(_source(name, place, source) for (name, place), (_, source) in zip(places, wanted, strict=True))


def place_of(name: str) -> str:
    """Absolute path inside of the mount of this name."""
    try:
        usable = name.isprintable() and len(os.fsencode(name)) <= 500
    except UnicodeError:
        usable = False
    relative = name.removeprefix("/workspace/") if name.startswith("/workspace/") else name
    relative = relative.removesuffix("/")
    parts = relative.removeprefix("/").split("/")
    if usable and not any(part in ("", ".", "..") or len(os.fsencode(part)) > 255 for part in parts):
        if not relative.startswith("/"):
            return f"{layout.WORKSPACE}/{relative}"
        if parts[0] == layout.DATA[1:]:
            return relative
    raise MountRefused(
        f"mounts[{name!r:.300}]: not a place for a mount",
        hint=f"use a name in the workspace, like 'data' or 'in/sales', or a path below {layout.DATA}",
    )


def _source(name: str, place: str, source: str) -> Mount:
    try:
        descriptor = os.open(source, os.O_PATH | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        hint = "give the path of a directory or a file"
        if "/~" in source:
            hint = "~ is not expanded here: os.path.expanduser does it"
        raise _refused(name, source, f"cannot be used: {reason}", hint) from None
    try:
        return _checked(name, place, source, descriptor)
    except OSError as error:
        raise _refused(name, source, f"cannot be used: {error.strerror}", "") from None
    finally:
        os.close(descriptor)


def _checked(name: str, place: str, source: str, descriptor: int) -> Mount:
    found = os.fstat(descriptor)
    path = os.readlink(f"/proc/self/fd/{descriptor}")
    kind = stat.S_IFMT(found.st_mode)
    if kind not in (stat.S_IFDIR, stat.S_IFREG):
        raise _refused(name, source, "is neither a directory nor a regular file", "mount what it stands for instead")
    _require_data(name, source, path)
    for system in _systems(path, descriptor):
        if system in _INTERFACES:
            raise _refused(name, source, f"holds a file system of the kernel's, {system}", _DATA_ALONE)
    if kind == stat.S_IFDIR:
        special = next(_special(path), None)
        if special is not None:
            what = f"holds a socket or a pipe, {special!r:.300}, through which cells could reach a program of the host"
            raise _refused(name, source, what, _DATA_ALONE)
    return Mount(name, place, path, found.st_dev, found.st_ino, kind == stat.S_IFDIR)


def _require_data(name: str, source: str, path: str) -> None:
    """Refuse what holds everything, or a home: it would undo the walls that it goes through."""
    if any(path == one or path.startswith(one + "/") for one in _KERNEL) and not f"{path}/".startswith(_MEMORY):
        raise _refused(name, source, "is the kernel's", _DATA_ALONE)
    for one in (*_SHARED, *_homes()):
        if one == path or one.startswith(path.rstrip("/") + "/"):
            raise _refused(name, source, f"holds everything in {one}", _DATA_ALONE)


def _homes() -> Iterator[str]:
    """Directories of homes, and the home of the user, by the environment and by the accounts' file."""
    yield "/home"
    yield os.path.realpath(os.environ.get("HOME") or "/home")
    with contextlib.suppress(KeyError):  # a user without an account, as in many containers
        yield os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)


def _special(path: str) -> Iterator[str]:
    """Sockets and pipes in a directory, those nearest to it first; what this user cannot list is passed over."""
    pending, left = deque([path]), SCANNED_ENTRIES
    while pending:
        try:
            entries = os.scandir(pending.popleft())
        except OSError:
            continue
        with entries:
            for entry in entries:
                if left == 0:
                    return
                left -= 1
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                elif not entry.is_file(follow_symlinks=False) and not entry.is_symlink():
                    mode = entry.stat(follow_symlinks=False).st_mode
                    if stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode):
                        yield entry.path


def _systems(path: str, descriptor: int) -> Iterator[str]:
    """The kinds of file system that `path` is on, and that are mounted below it."""
    with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as file:
        numbers = re.findall(r"^mnt_id:\s*(\d+)$", file.read(), re.M)
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            before, _, after = line.partition(" - ")
            number, _, _, _, point = before.split(" ")[:5]
            at = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), point)
            if number in numbers or at.startswith(path.rstrip("/") + "/"):
                yield after.split(" ", 1)[0]


def _refused(name: str, source: str, reason: str, hint: str) -> MountRefused:
    return MountRefused(f"mounts[{name!r}]: {source!r:.300} {reason}", hint=hint)
