"""The file system a session sees: a read-only tree built once, and for each session a private entry to it.

`build` runs once, in a mount namespace of the nursery's own; afterwards the host's file system is out of
reach there too. `enter` runs in each session's first process. Layout of the nursery's root:

    /tree   the template: system, interpreter and packages, read-only
    /late   what belongs where a session has files of its own, mounted into each
    /proc   for the nursery
    /new    where a session assembles its root before it pivots into it
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

from cellblock.hosting.machine import DEVICES, is_device
from cellblock.worker.confine import layout
from cellblock.worker.confine.refusal import WallRefused
from cellblock.worker.confine.syscalls import (
    MNT_DETACH,
    MOUNT_ATTR_NODEV,
    MOUNT_ATTR_NOSUID,
    MOUNT_ATTR_RDONLY,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    mount,
    mount_setattr,
    move_mount,
    pivot_root,
    umount,
)

_ANCHORS = ("/sys", "/mnt", "/media", "/srv", "/opt")
"""Directories of which any does that nobody needs: in a private mount namespace one is hidden under the new root while
that is built. Where there is none of these, another will do."""
_NEEDED = ("/dev", "/proc")

_MASKED = ("cmdline", "config.gz", "diskstats", "key-users", "keys", "modules", "partitions")
"""Files of /proc that tell of the host, and that programs do without."""

_HIDDEN = "hidepid=2"
_ACCOUNTS = {
    "passwd": "user:x:1000:1000:user:/session/workspace:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
    "group": "user:x:1000:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost cellblock\n::1 localhost\n",
    "host.conf": "multi on\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    "resolv.conf": "",
    "empty": "",
    "hostname": "cellblock\n",
}
_OWN = {layout.WORKSPACE: 0o755, layout.TMP: 0o1777, layout.SHM: 0o1777, layout.OWN_DATA: 0o755}
_PLAIN = MS_NOSUID | MS_NODEV
_STORE_FILES = 1024
"""Chunks of large files: one each megabyte."""


def build(exposure: layout.Exposure) -> None:
    """Build the template and pivot into the nursery's root. Needs CAP_SYS_ADMIN over a private mount namespace."""
    mount("", "/", "", MS_PRIVATE | MS_REC, "")
    base = _anchor(exposure)
    mount("tmpfs", base, "tmpfs", _PLAIN, "mode=755,size=4m")
    for name in ("tree", "late", "proc", "new"):
        os.mkdir(f"{base}/{name}", 0o755)
    tree = f"{base}/tree"
    mount("tmpfs", tree, "tmpfs", _PLAIN, "mode=755,size=4m")
    for path in exposure.early:
        _bind(path, tree + path)
    for number, path in enumerate(exposure.late):
        _bind(path, f"{base}/late/{number}")
    for link, target in (*exposure.links, *layout.SHORTCUTS.items()):
        os.makedirs(os.path.dirname(tree + link), exist_ok=True)
        if not os.path.lexists(tree + link):
            os.symlink(target, tree + link)
    _furnish(tree)
    mount("", tree, "", MS_REMOUNT | MS_BIND | MS_RDONLY | _PLAIN, "")
    mount("/proc", f"{base}/proc", "", MS_BIND | MS_REC, "")
    _pivot(base)


def _anchor(exposure: layout.Exposure) -> str:
    sources = (*exposure.early, *exposure.late, *_NEEDED)
    for path in chain(_ANCHORS, (os.path.join("/", name) for name in sorted(os.listdir("/")))):
        is_needed = any(source == path or source.startswith(path + "/") for source in sources)
        if os.path.isdir(path) and not (is_needed or os.path.islink(path)):
            return path
    raise WallRefused("root", "no directory in / is free to build a root on", "make an empty one: mkdir /mnt")


def _bind(source: str, target: str) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    mount(source, target, "", MS_BIND | MS_REC, "")
    mount_setattr(target, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, recursive=True)


def _furnish(tree: str) -> None:
    stands = [f"{layout.STAND}/{os.path.basename(path)}" for path in _OWN]
    for path in ("/dev", "/etc", "/proc", layout.HOME, *stands):
        os.makedirs(tree + path, exist_ok=True)
    for name, text in _ACCOUNTS.items():
        with open(f"{tree}/etc/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    for path in DEVICES:
        os.close(os.open(tree + path, os.O_CREAT | os.O_WRONLY, 0o666))
        mount(path, tree + path, "", MS_BIND, "")
        if not is_device(tree + path, path):
            raise WallRefused("root", f"{path} is not the kernel's device", "have it there before sessions are opened")
    os.symlink("../session/shm", f"{tree}/dev/shm")
    os.symlink("/proc/self/fd", f"{tree}/dev/fd")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"{tree}/dev/{name}")


@dataclass(frozen=True, slots=True)
class Entered:
    """The root that was entered, and a directory in which all processes can be seen; -1 where the host masks `/proc`.
    """

    detail: str
    processes: int


def enter(*, disk_bytes: int, files: int, late: tuple[str, ...], nested: bool = False) -> Entered:
    """Assemble this session's root and pivot into it. Needs its own user, mount and pid namespace.

    The workspace, /tmp, /dev/shm and /data share one tmpfs, whose size and number of files bound them together. In its
    `/proc` a process sees those that it could trace: init and frozen copies of the worker it does not.

    A `nested` session's directories are four mounts of that tmpfs: Landlock rules that name them cannot be made any
    more, so that what they stand in must be named by those there are.
    """
    mount("/tree", "/new", "", MS_BIND | MS_REC, "")
    home = "/new" + layout.HOME
    size = f"mode=755,size={disk_bytes},nr_inodes={files}"
    if nested:
        _mount_apart(home, size)
    else:
        mount("tmpfs", home, "tmpfs", _PLAIN, size)
        repair_home("/new")
    for number, path in enumerate(late):
        source = f"/late/{number}"
        if os.path.isdir(source):
            os.makedirs("/new" + path, exist_ok=True)
        else:
            os.makedirs(os.path.dirname("/new" + path), exist_ok=True)
            os.close(os.open("/new" + path, os.O_CREAT | os.O_WRONLY, 0o644))
        mount(source, "/new" + path, "", MS_BIND | MS_REC, "")
    processes = _mount_proc("/new/proc", "/new/etc/empty")
    note = ", without /proc (masked on this host)" if processes < 0 else ""
    _pivot("/new")
    os.chdir(layout.WORKSPACE)
    return Entered(f"read-only tree, {disk_bytes >> 20} MB of files of its own{note}", processes)


def _mount_apart(home: str, size: str) -> None:
    """The session's own directories, each a mount of one tmpfs, in the template's directory that is there for it."""
    mount("/new" + layout.STAND, home, "", MS_BIND, "")
    last = "/new" + list(_OWN)[-1]
    mount("tmpfs", last, "tmpfs", _PLAIN, size)
    for path, mode in _OWN.items():
        place = f"{last}/{os.path.basename(path)}"
        os.mkdir(place)
        os.chmod(place, mode)
        mount(place, "/new" + path, "", MS_BIND, "")  # the last one over the root of the file system


def _mount_proc(place: str, empty: str) -> int:
    """Mount one that hides processes and tells little of the host, over one that does not; a directory of this one."""
    try:
        mount("proc", place, "proc", _PLAIN | MS_NOEXEC, "")
    except PermissionError:
        return -1
    processes = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    mount("proc", place, "proc", _PLAIN | MS_NOEXEC, _HIDDEN)
    for name in _MASKED:
        if os.path.exists(f"{place}/{name}"):
            mount(empty, f"{place}/{name}", "", MS_BIND, "")
    return processes


def place(trees: Mapping[str, int]) -> None:
    """Put mounts that were made elsewhere where they are to be seen, after `enter`: directories, or single files.

    Those below `layout.DATA` stand in a file system of their own, which is read-only as soon as it holds them: the
    session has no files there then.
    """
    inside = [path for path in trees if f"{path}/".startswith(layout.DATA + "/")]
    if inside and os.listdir(layout.DATA):
        raise FileExistsError(errno.EEXIST, "the interpreter lies there", inside[0])
    inside = [path for path in inside if path != layout.DATA]
    if inside:
        mount("tmpfs", layout.DATA, "tmpfs", _PLAIN, "mode=755,size=1m,nr_inodes=1k")
    for path, tree in trees.items():
        at = layout.OWN_DATA if path == layout.DATA else path  # what is mounted at a link is not seen through it
        if at == path:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if stat.S_ISDIR(os.fstat(tree).st_mode):
                os.mkdir(path)
            else:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o444))
        move_mount(tree, at)
    if inside:
        mount("", layout.DATA, "", MS_REMOUNT | MS_BIND | MS_RDONLY | _PLAIN, "")


def store(*, disk_bytes: int, files: int, nested: bool = False) -> int:
    """A descriptor of an empty directory that no path leads to, on a file system of its own and of the same size."""
    place = (layout.TMP if nested else layout.HOME) + "/store"
    os.mkdir(place)
    mount("tmpfs", place, "tmpfs", _PLAIN | MS_NOEXEC, f"mode=700,size={disk_bytes},nr_inodes={files + _STORE_FILES}")
    directory = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    umount(place, MNT_DETACH)
    os.rmdir(place)
    return directory


def repair_home(root: str = "", *, nested: bool = False) -> None:
    """Make the directories of the session's own files, or make them usable again after a cell did its worst."""
    if not nested:  # else it is the template's
        os.chmod(root + layout.HOME, 0o755)  # noqa: S103 - first: what is below is reached through it
    for path, mode in _OWN.items():
        with contextlib.suppress(FileExistsError):
            os.mkdir(root + path)
        if not os.statvfs(root + path).f_flag & os.ST_RDONLY:  # as it is with mounts in it
            os.chmod(root + path, mode)


def own() -> list[str]:
    """The session's own directories: all but one that was given away to mounts."""
    device = os.stat(layout.WORKSPACE).st_dev
    return [path for path in _OWN if os.stat(path).st_dev == device]


def _pivot(new: str) -> None:
    os.chdir(new)
    pivot_root(".", ".")
    umount(".", MNT_DETACH)
    os.chdir("/")
