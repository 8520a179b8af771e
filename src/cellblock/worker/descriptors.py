"""A process's open descriptors across a freeze: what a frozen copy lets go of, and what it opens again.

A copy shares every open file with the process it was copied from. Held in the copy, a pipe would never end, a
connection never close, and a position move with the other's reads. So a copy puts something dead in the place of
each, under the same number, and opens regular files again by their paths when it is woken.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import socket
import stat
from collections.abc import Iterable
from dataclasses import dataclass

_TABLE = "/proc/self/fd"
_UNDONE = os.O_CREAT | os.O_EXCL | os.O_TRUNC
_HIGHEST = 65_536


@dataclass(frozen=True, slots=True)
class Held:
    """An open descriptor. `path` is a regular file's that can be opened again; `offset` its position."""

    number: int
    kind: int
    flags: int
    inheritable: bool
    path: str | None = None
    offset: int = 0
    label: str = ""


def held(ours: Iterable[int]) -> list[Held]:
    """Every descriptor but those that are, or are copies of, `ours`."""
    identities = {_identity(number) for number in ours}
    found = []
    for number in _numbers():
        with contextlib.suppress(OSError):  # the listing's own
            what = os.fstat(number)
            if (what.st_dev, what.st_ino) not in identities:
                found.append(_describe(number, what))
    return found


def let_go(found: Iterable[Held]) -> None:
    """In a frozen copy: put something dead in the place of each."""
    gone, other = socket.socketpair()
    other.close()
    with gone:
        for one in found:
            if one.number == gone.fileno():  # what runs after a fork has closed it
                continue
            if one.kind == stat.S_IFREG and one.path is None:  # has no name any more: only this keeps it
                continue
            if one.kind in (stat.S_IFCHR, stat.S_IFDIR):
                continue
            if one.label == "[eventpoll]":
                with select.epoll() as empty:
                    os.dup2(empty.fileno(), one.number, one.inheritable)
            else:
                os.dup2(gone.fileno(), one.number, one.inheritable)


def out_of_the_way(descriptor: int, found: Iterable[Held]) -> int:
    """The same descriptor under a number that none of them had."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, max((one.number for one in found), default=0) + 1)
    os.close(descriptor)
    return moved


def take_up(found: Iterable[Held]) -> list[Held]:
    """In a copy that was woken: open regular files again where they were. Those that could not be, and what is gone."""
    lost = []
    for one in found:
        if one.kind == stat.S_IFREG:
            try:
                _reopen(one)
            except OSError:
                lost.append(one)
        elif one.kind in (stat.S_IFSOCK, stat.S_IFIFO):
            lost.append(one)
    return lost


def _reopen(one: Held) -> None:
    if one.path is None:
        os.lseek(one.number, one.offset, os.SEEK_SET)
        return
    file = os.open(one.path, one.flags & ~_UNDONE)
    try:
        os.lseek(file, one.offset, os.SEEK_SET)
        os.dup2(file, one.number, one.inheritable)
    finally:
        os.close(file)


def _describe(number: int, what: os.stat_result) -> Held:
    kind = stat.S_IFMT(what.st_mode)
    flags = fcntl.fcntl(number, fcntl.F_GETFL)
    inheritable = os.get_inheritable(number)
    if kind == stat.S_IFREG:
        path = _path(number) if what.st_nlink else None
        offset = 0 if flags & os.O_PATH else os.lseek(number, 0, os.SEEK_CUR)
        return Held(number, kind, flags, inheritable, path, offset)
    label = "" if kind else (_path(number) or "").removeprefix("anon_inode:")
    return Held(number, kind, flags, inheritable, label=label)


def _path(number: int) -> str | None:
    try:
        return os.readlink(f"{_TABLE}/{number}")
    except OSError:  # no /proc on this host
        return None


def _numbers() -> list[int]:
    try:
        return [int(name) for name in os.listdir(_TABLE)]
    except OSError:
        import resource

        return list(range(min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], _HIGHEST)))


def _identity(number: int) -> tuple[int, int]:
    what = os.fstat(number)
    return what.st_dev, what.st_ino
