"""A session's files seen from the host, through a descriptor of its root that no session can move.

Every path is resolved by the kernel below that descriptor (`openat2` with RESOLVE_BENEATH): a symbolic link
inside may point anywhere, and still leads nowhere outside.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import ClassVar

from cellblock.errors import FileRefused, SessionClosed
from cellblock.executors.protocol import FileVersion
from cellblock.hosting.shortage import limit, short_of
from cellblock.worker.confine import layout
from cellblock.worker.confine.syscalls import (
    RESOLVE_BENEATH,
    RESOLVE_NO_MAGICLINKS,
    RESOLVE_NO_XDEV,
    openat2,
    setfsgid,
    setfsuid,
)

_INTO_MOUNTS = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS
_RESOLVE = _INTO_MOUNTS | RESOLVE_NO_XDEV
_SAFE = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_INSIDE = layout.HOME + "/"
_ANOTHERS = -1
"""The size in the version of a file that a cell wrote while the host did: no file is as large."""
_TRIES = 100
"""A walk through `..` is refused with EAGAIN when anything was mounted or renamed on this machine meanwhile."""
_MOST_LINKS = 40
_UNABLE = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT)
"""Answers of file systems, and of kernels, that have no files without a name."""
_PASSED_OVER = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV, errno.EACCES, errno.ENAMETOOLONG)
"""Answers for a directory that is removed, or replaced, while we look; and for one that a cell could not list."""
_DIRECTORY = _SAFE | os.O_RDONLY | os.O_DIRECTORY
_PLACE = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ROOTS = {
    layout.WORKSPACE: "workspace",
    "/workspace": "workspace",
    layout.TMP: "tmp",
    "/tmp": "tmp",
    layout.OWN_DATA: "data",
    layout.DATA: "data",
}


class ProcessFiles:
    """Reads and writes below a descriptor of the session's root, as `owner` where the host is root.

    Root itself does not exist in the session's user namespace and could create nothing there. What is `mounted`,
    given by its places inside, is the host's: it can be read, and is neither listed nor written.
    """

    def __init__(self, root: int, owner: int | None, mounted: Sequence[str] = (), *, apart: bool = False) -> None:
        """`apart`: the workspace and `/tmp` are mounts of their own."""
        self._root = root
        self._resolve = _INTO_MOUNTS if apart else _RESOLVE
        self._owner = owner
        self._mounted = [place.removeprefix(_INSIDE) for place in mounted if place.startswith(_INSIDE)]
        if any(f"{place}/".startswith(layout.DATA + "/") for place in mounted):
            self._mounted.append(_ROOTS[layout.DATA])  # with mounts in it, all of it is theirs
        self._host = os.getpid()
        self._lock = threading.Lock()  # a closed descriptor's number may soon be another session's root

    def write(self, path: str, data: bytes) -> FileVersion:
        """Create or replace a file; missing directories are made. Its version. A new file appears with all its bytes.

        A cell that writes later changes the time that is set here; one that wrote before left other bytes.
        One that is refused leaves everything as it was.
        """
        where = self._own(path)
        with self._guard(path), ExitStack() as undo:
            for _ in range(_MOST_LINKS):
                with contextlib.suppress(FileNotFoundError), _closed(self._open_existing(where)) as file:
                    self._require_regular(file, path)
                    return _filled(file, data)
                self._make_parents(where, path, undo)
                with self._parent(where) as (parent, name):
                    try:
                        left = self._made(where, parent, name, path, data, undo)
                    except FileExistsError:  # a link to what does not exist, or a file that a cell has just made
                        with contextlib.suppress(OSError):
                            where = f"{os.path.dirname(where)}/{os.readlink(name, dir_fd=parent)}"
                        continue
                undo.pop_all()
                return left
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def version(self, path: str) -> FileVersion | None:
        try:
            with self._guard(path):
                where = locate(path, roots=True)
                file = self._open(where, os.O_PATH, resolve=self._resolve_of(where))
                try:
                    return _version(os.fstat(file))
                finally:
                    os.close(file)
        except (FileRefused, SessionClosed):
            return None

    def read(self, path: str, *, max_bytes: int, offset: int | None = None) -> bytes:
        """See `Files`. The size is looked at before anything is read."""
        with self._guard(path):
            where = locate(path)
            file = self._open(where, os.O_RDONLY, resolve=self._resolve_of(where))
            try:
                self._require_regular(file, path)
                size = os.fstat(file).st_size
                if offset is not None:
                    return _part(file, min(offset, size), max_bytes)
                data = _part(file, 0, max_bytes + 1) if size <= max_bytes else b""
                if max(size, len(data)) > max_bytes:
                    reason = f"{path!r} is larger than {max_bytes} bytes"
                    raise FileRefused(reason, hint="ask for more with max_bytes=", errno=errno.EFBIG)
                return data
            finally:
                os.close(file)

    def delete(self, path: str) -> None:
        """Remove one file."""
        where = self._own(path)
        with self._guard(path), self._parent(where) as (parent, name):
            os.unlink(name, dir_fd=parent)

    def list(self, directory: str = "") -> list[str]:
        """Every file below a directory, sorted; links, special files and mounts are left out.

        Those of the workspace by their path there, others as `/tmp/x`. `FileRefused` for what is no directory.
        """
        with self._guard(directory or "workspace"):
            where = locate(directory or ".", roots=True)
            if self._is_mounted(where):
                raise FileRefused(f"{directory!r:.300} is mounted from the host, and not listed", hint="list it there")
            return sorted(_told(path) for path in self._walk(where, required=directory != ""))

    def _walk(self, where: str, *, required: bool) -> Iterator[str]:
        pending = [where]
        while pending:
            below = pending.pop()
            try:
                directory = self._open(below, _DIRECTORY | os.O_NOFOLLOW)
            except OSError as error:
                if error.errno not in _PASSED_OVER or (required and below == where):
                    raise
                continue
            try:
                with os.scandir(directory) as entries:
                    for entry in entries:
                        inside = os.path.join(below, entry.name)
                        if self._is_mounted(inside):
                            continue
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(inside)
                        elif entry.is_file(follow_symlinks=False):
                            yield inside
            finally:
                os.close(directory)

    def close(self) -> None:
        """Let go of the session's root."""
        with self._lock:
            os.close(self._root)
            self._root = -1

    def _own(self, path: str) -> str:
        """Place of a path that is not in a mount."""
        where = locate(path)
        if self._is_mounted(where):
            raise FileRefused(f"{path!r:.300} is mounted from the host, read-only", hint="change it there")
        return where

    def _resolve_of(self, where: str) -> int:
        return _INTO_MOUNTS if self._is_mounted(where) else self._resolve

    def _is_mounted(self, where: str) -> bool:
        return any(where == place or where.startswith(place + "/") for place in self._mounted)

    def _open(self, where: str, flags: int, mode: int = 0, resolve: int | None = None) -> int:
        with self._lock:
            if self._root < 0:
                raise SessionClosed("the session was closed", hint="open a new one")
            if os.getpid() != self._host:
                raise SessionClosed("the session belongs to another process", hint="open a new one in this fork of it")
            resolve = self._resolve if resolve is None else resolve
            flags |= os.O_CLOEXEC if flags & os.O_PATH else _SAFE
            for _ in range(_TRIES):
                with contextlib.suppress(BlockingIOError):
                    return openat2(self._root, where, flags, mode, resolve)
            return openat2(self._root, where, flags, mode, resolve)

    def _made(self, where: str, parent: int, name: str, path: str, data: bytes, undo: ExitStack) -> FileVersion:
        """Make a file that appears with all its bytes; FileExistsError where there is one. Its version.

        A file system that has no files without a name shows it while it is written; `undo` then removes it.
        """
        with _one_more(path):
            try:
                file, is_named = os.open(".", os.O_RDWR | os.O_TMPFILE | _SAFE, 0o600, dir_fd=parent), False
            except OSError as error:
                if error.errno not in _UNABLE:
                    raise
                file, is_named = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | _SAFE, 0o600, dir_fd=parent), True
        with _closed(file):
            if is_named:
                undo.callback(self._unmake, where, os.fstat(file))
            os.fchmod(file, 0o644)  # whatever the host's umask is
            left = _filled(file, data)
            if not is_named:
                os.link(f"/proc/self/fd/{file}", name, dst_dir_fd=parent)
        return left

    def _open_existing(self, where: str) -> int:
        try:
            return self._open(where, os.O_RDWR)
        except PermissionError:  # it may be written, and not read
            return self._open(where, os.O_WRONLY)

    def _make_parents(self, where: str, path: str, undo: ExitStack) -> None:
        parts = where.split("/")[:-1]
        for depth in range(1, len(parts)):
            directory = "/".join(parts[: depth + 1])
            with self._parent(directory) as (parent, name), contextlib.suppress(FileExistsError):
                with _one_more(path):
                    os.mkdir(name, dir_fd=parent)
                undo.callback(self._unmake, directory)
                made = os.open(name, _PLACE, dir_fd=parent)
                try:
                    os.chmod(f"/proc/self/fd/{made}", 0o755)  # noqa: S103 - as a cell makes one, whose umask is not the host's
                finally:
                    os.close(made)

    def _unmake(self, where: str, file: os.stat_result | None = None) -> None:
        """Remove a file that was made, if it is this one still; without one a directory, if it is empty."""
        with contextlib.suppress(OSError, SessionClosed), self._parent(where) as (parent, name):
            if file is None:
                os.rmdir(name, dir_fd=parent)
            elif os.path.samestat(file, os.stat(name, dir_fd=parent, follow_symlinks=False)):
                os.unlink(name, dir_fd=parent)

    @contextlib.contextmanager
    def _parent(self, where: str) -> Iterator[tuple[int, str]]:
        """A descriptor of the directory that holds a file, and the file's name there."""
        directory, name = os.path.split(where)
        parent = self._open(directory, _DIRECTORY)
        try:
            yield parent, name
        finally:
            os.close(parent)

    def _require_regular(self, file: int, path: str) -> None:
        mode = os.fstat(file).st_mode
        if not stat.S_ISREG(mode):
            number = errno.EISDIR if stat.S_ISDIR(mode) else errno.ENXIO
            raise FileRefused(f"{path!r} is not a regular file", errno=number)

    def _guard(self, path: str) -> _Guard:
        return _Guard(path, self._owner)


class _Guard:
    """Acts as the files' owner, and turns what the kernel refuses about a path into a `FileRefused`."""

    _REASONS: ClassVar = {
        errno.ENOENT: "does not exist",
        errno.EXDEV: "leads outside the session's files",
        errno.ELOOP: "is a link that leads nowhere or outside",
        errno.ENOSPC: "does not fit: the session's files are at their limit",
        errno.EDQUOT: "does not fit: the session's files are at their limit",
        errno.EFBIG: "is more than this program may write to a file (RLIMIT_FSIZE)",
        errno.EAGAIN: "was moved while it was opened",
        errno.ENXIO: "is not a regular file",
        errno.EISDIR: "is a directory",
        errno.ENOTDIR: "leads through something that is not a directory",
        errno.ENAMETOOLONG: "is too long a name",
    }
    _HINTS: ClassVar = {
        errno.EFBIG: "raise the limit: ulimit -f unlimited",
        errno.EAGAIN: "try again",
        **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "raise ExecutionLimits(max_disk_mb=…)"),
    }

    def __init__(self, path: str, owner: int | None) -> None:
        self._path = path
        self._owner = owner

    def __enter__(self) -> None:
        if self._owner is not None:  # of this thread alone
            setfsgid(self._owner)
            setfsuid(self._owner)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._owner is not None:
            setfsuid(os.geteuid())
            setfsgid(os.getegid())
        if isinstance(error, OSError):
            number, path = error.errno or 0, f"{self._path!r:.300}"
            if number not in self._REASONS and (short := short_of(error, f"{path} cannot be used")) is not None:
                raise FileRefused(short.args[0], hint=short.hint, errno=number) from None
            reason = self._REASONS.get(number, f"cannot be used: {os.strerror(number)}")
            raise FileRefused(f"{path} {reason}", hint=self._HINTS.get(number, ""), errno=number) from None


@contextlib.contextmanager
def _one_more(path: str) -> Iterator[None]:
    """Make a file or a directory: there is no room for one more where their number is at its limit."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        reason = f"{path!r:.300} is one too many: the number of the session's files is at its limit"
        raise FileRefused(reason, hint="raise ExecutionLimits(max_files=…)", errno=errno.ENOSPC) from None


@contextlib.contextmanager
def _closed(file: int) -> Iterator[int]:
    """Within, a descriptor, which is closed after it."""
    try:
        yield file
    finally:
        os.close(file)


def _filled(file: int, data: bytes) -> FileVersion:
    """The version of a file that was given these bytes: no other write leads to the same."""
    _fill(file, data)
    now = os.fstat(file)  # a clock tick takes milliseconds: another write within it has this time, too
    os.utime(file, ns=(now.st_atime_ns, now.st_mtime_ns - 1))
    left = *_version(os.fstat(file))[:3], len(data)
    return left if _holds(file, data) else (*left[:3], _ANOTHERS)


def _fill(file: int, data: bytes) -> None:
    """Have these bytes be all that a file holds; it keeps what it holds where there is no room for them."""
    before = os.fstat(file)
    most, _ = limit("RLIMIT_FSIZE")
    try:
        if len(data) > most:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        if data:
            os.posix_fallocate(file, 0, len(data))
    except OSError:
        os.ftruncate(file, before.st_size)  # some systems leave what they have reserved
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        raise
    write_all(file, data)
    os.ftruncate(file, len(data))


def write_all(file: int, data: bytes) -> None:
    """Write bytes, however few of them a call takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _holds(file: int, data: bytes) -> bool:
    """True if a file has these bytes; not if that cannot be seen."""
    try:
        return all(os.pread(file, 1 << 20, at) == data[at : at + (1 << 20)] for at in range(0, len(data), 1 << 20))
    except OSError:  # open to be written alone
        return False


def _part(file: int, start: int, size: int) -> bytes:
    chunks, end = [], start + size
    while start < end and (chunk := os.pread(file, min(end - start, 1 << 20), start)):
        chunks.append(chunk)
        start += len(chunk)
    return b"".join(chunks)


def _version(status: os.stat_result) -> FileVersion:
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _told(where: str) -> str:
    """A place below the session's root as callers name it."""
    return where.removeprefix("workspace/") if where.startswith("workspace/") else f"/{where}"


def locate(path: str, *, roots: bool = False) -> str:
    """Security border: where a caller's path lies below the session's root; `FileRefused` if it does not.

    Relative paths start in the workspace. What links do is the kernel's to check, when the path is opened.
    `roots`: the directories that hold all files may be named, too.
    """
    try:
        usable = 0 < len(os.fsencode(path)) <= 4096 and "\0" not in path
    except UnicodeError:
        usable = False
    if not usable:
        raise FileRefused(f"{path!r:.80} is not a usable path", hint="use a name in the workspace, like 'data/in.csv'")
    whole = os.path.normpath(path if path.startswith("/") else f"{layout.WORKSPACE}/{path}")
    for prefix, place in _ROOTS.items():
        if whole.startswith(prefix + "/") or (roots and whole == prefix):
            return place + whole[len(prefix) :]
    raise FileRefused(
        f"{path!r:.300} is not among the session's files",
        hint="use a path relative to the workspace, or one below /workspace, /tmp or /data",
    )
