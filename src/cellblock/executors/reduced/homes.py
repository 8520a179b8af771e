"""Directories for the files of sessions without a file system of their own: a private directory for each, on the
host's disk.

A directory is locked as long as the host or its keeper lives. What is found unlocked was left behind when both were
killed, and is removed when the next family starts.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator

from cellblock.errors import IsolationUnavailable
from cellblock.hosting.unique import unique_word
from cellblock.worker.reduced import disk

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_HINT = "set TMPDIR to a directory that this user may write to, or remove what is in the way"


def base() -> str:
    """The directory that holds those of all sessions of this user; made where it is missing.

    `IsolationUnavailable` where somebody else's stands in its place.
    """
    user = os.getuid()
    path = os.path.join(os.path.realpath(tempfile.gettempdir()), f"cellblock-{user}")
    mode = 0o711 if user == 0 else 0o700  # as root the sessions have accounts of their own, and pass through it
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, mode)
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != user:
            raise PermissionError("it is not a directory of this user's")
        os.chmod(path, mode)
        if user == 0 and (shut := _shut_to_others(path)):
            raise PermissionError(f"the accounts that sessions run as cannot pass through {shut}")
    except OSError as error:
        raise IsolationUnavailable(f"files: {path} cannot be used: {error}", mechanism="files", hint=_HINT) from error
    return path


def _shut_to_others(path: str) -> str:
    """The first directory on the way to a path that only its owner may pass; "" where all may."""
    while path != "/":
        path = os.path.dirname(path)
        if not os.stat(path).st_mode & stat.S_IXOTH:
            return path
    return ""


def make(base: str, owner: int | None, *parts: str) -> tuple[str, int]:
    """A new directory with these in it, `owner`'s where one is named: its path, and a descriptor with its lock."""
    path = os.path.join(base, unique_word())
    with _alone(base):
        os.mkdir(path)
        os.chmod(path, 0o700)  # whatever the host's umask is
        lock = os.open(path, _DIRECTORY)
        fcntl.flock(lock, fcntl.LOCK_EX)
    for part in parts:
        os.mkdir(part, dir_fd=lock)
        os.chmod(part, 0o700, dir_fd=lock)
        if owner is not None:
            os.chown(part, owner, owner, dir_fd=lock)
    if owner is not None:
        os.chown(lock, owner, owner)
    return path, lock


def discard(path: str) -> None:
    """Remove a directory that nobody uses any more, if it is still there."""
    with contextlib.suppress(FileNotFoundError):
        descriptor = os.open(path, _DIRECTORY)
        try:
            disk.empty(descriptor)
            os.rmdir(path)
        finally:
            os.close(descriptor)


def remove_stale(base: str) -> None:
    """Remove the directories that nobody holds."""
    with _alone(base):
        for path in _unlocked(base):
            discard(path)


def _unlocked(base: str) -> Iterator[str]:
    for name in os.listdir(base):
        path = os.path.join(base, name)
        try:
            descriptor = os.open(path, _DIRECTORY)
        except OSError:  # not a directory, and so none of ours
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield path
        except BlockingIOError:
            continue
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _alone(base: str) -> Iterator[None]:
    """Between making a directory and locking it nobody may take it for one that was left behind."""
    descriptor = os.open(base, _DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
