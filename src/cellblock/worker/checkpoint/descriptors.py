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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from cellblock.hosting import sockets

_TABLE = "/proc/self/fd"
_UNDONE = os.O_CREAT | os.O_EXCL | os.O_TRUNC
_HIGHEST = 65_536
_EPOLL = "[eventpoll]"
"""Its registrations need no word of their own: each is of a descriptor that is told itself."""
_dead: set[tuple[int, int]] = set()
"""Replacements of descriptors that were let go, by device and inode: their loss was told."""


@dataclass(frozen=True, slots=True)
class Held:
    """An open descriptor.

    `identity` is its device and inode, `path` that of a directory. Of a regular file: `path` if it can be opened again,
    else `stamp`, by which a change of its contents shows; its position, and the locks on it, as type (of fcntl's),
    whether they are the process's, start and length.
    """

    number: int
    kind: int
    flags: int
    inheritable: bool
    path: str | None = None
    offset: int = 0
    label: str = ""
    identity: tuple[int, int] = (0, 0)
    stamp: tuple[int, int] = (0, 0)
    locks: tuple[tuple[int, bool, int, int], ...] = ()

    @property
    def is_shared(self) -> bool:
        """True if two processes cannot each have one of their own: a socket, a pipe, an eventfd, a timerfd, a pidfd."""
        return self.kind in (stat.S_IFSOCK, stat.S_IFIFO) or (self.kind == 0 and self.label != _EPOLL)

    @property
    def what(self) -> str:
        """A word for the kind of it."""
        return {stat.S_IFSOCK: "socket", stat.S_IFIFO: "pipe"}.get(self.kind) or self.label.strip("[]") or "descriptor"


def held(ours: Iterable[int]) -> list[Held]:
    """Every descriptor but those that are, or are copies of, `ours`, and those that are dead."""
    identities = {_identity(number) for number in ours}
    found = []
    dead = set()
    for number in _numbers():
        with contextlib.suppress(OSError):  # the listing's own
            what = os.fstat(number)
            if (identity := (what.st_dev, what.st_ino)) in _dead:
                dead.add(identity)
            elif identity not in identities:
                found.append(_describe(number, what))
    _dead.intersection_update(dead)
    return found


@dataclass(frozen=True, slots=True)
class TakenUp:
    """Descriptors of a copy that was woken: the `lost` ones, and those of files that were made `anew` meanwhile."""

    lost: list[Held] = field(default_factory=list)
    anew: list[Held] = field(default_factory=list)

    def reopen(self, one: Held) -> None:
        """Open a regular file again where it was."""
        try:
            _reopen(one)
            if _identity(one.number) != one.identity:
                self.anew.append(one)
        except OSError:
            self.lost.append(one)


def let_go(found: Iterable[Held]) -> None:
    """In a frozen copy: put something dead in the place of each."""
    with _gone() as gone:
        for one in found:
            if one.number == gone.fileno():  # what runs after a fork has closed it
                continue
            if one.kind == stat.S_IFREG and one.path is None:  # has no name any more: only this keeps it
                continue
            if one.kind in (stat.S_IFCHR, stat.S_IFDIR):
                continue
            if one.label == _EPOLL:
                with select.epoll() as empty:
                    os.dup2(empty.fileno(), one.number, one.inheritable)
            else:
                os.dup2(gone.fileno(), one.number, one.inheritable)


def out_of_the_way(descriptor: int, found: Iterable[Held]) -> int:
    """The same descriptor under a number that none of them had."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, max((one.number for one in found), default=0) + 1)
    os.close(descriptor)
    return moved


def take_up(found: Iterable[Held]) -> TakenUp:
    """In a copy that was woken: open regular files again where they were."""
    taken = TakenUp()
    for one in found:
        if one.kind == stat.S_IFREG or (one.kind == stat.S_IFDIR and not _is_there(one)):
            taken.reopen(one)
        elif one.is_shared:
            taken.lost.append(one)
    return taken


def places(found: Iterable[Held], kept: Iterable[int], pipes: Mapping[int, int]) -> list[tuple[Held, int]]:
    """In a copy that becomes a branch: every descriptor but those `kept`, with that which is to take its place, or -1.

    Copies of the keys of `pipes` get their values.
    """
    were = {one.number: one for one in found if one.kind == stat.S_IFREG and one.path is not None}
    instead = {_identity(old): new for old, new in pipes.items()}
    all_of_them = []
    for number in set(_numbers()) - set(kept):
        with contextlib.suppress(OSError):  # the listing's own
            what = os.fstat(number)
            one = were.get(number) or _describe(number, what)
            if one.kind in (stat.S_IFDIR, stat.S_IFCHR):
                one = replace(one, path=_path(number))
            all_of_them.append((one, instead.get((what.st_dev, what.st_ino), -1)))
    dead = [one for one in found if one.is_shared and one.number not in set(kept)]
    return all_of_them + [(one, -1) for one in dead]


def move(these: Iterable[tuple[Held, int]]) -> TakenUp:
    """In a branch: leave none of these open on what they were. Opens again by its path what has one."""
    taken = TakenUp()
    with _gone() as gone:
        for one, pipe in these:
            if pipe >= 0:
                os.dup2(pipe, one.number, one.inheritable)
                continue
            os.dup2(gone.fileno(), one.number, one.inheritable)
            if one.label == _EPOLL:
                with select.epoll() as empty:
                    os.dup2(empty.fileno(), one.number, one.inheritable)
            elif one.identity in _dead:
                continue
            elif one.is_shared or (one.kind == stat.S_IFREG and one.path is None):
                taken.lost.append(one)
            elif one.path is not None:
                taken.reopen(one)
    return TakenUp(list({one.number: one for one in taken.lost}.values()), taken.anew)


def is_dead(number: int) -> bool:
    """True if a descriptor was let go and is held still: its number may be another's since."""
    try:
        return _identity(number) in _dead
    except OSError:
        return False


def _is_there(one: Held) -> bool:
    """True if a directory has no path, or is where it was."""
    try:
        what = os.stat(one.path, follow_symlinks=False) if one.path is not None else None
    except OSError:
        return False
    return what is None or (what.st_dev, what.st_ino) == one.identity


def _gone() -> socket.socket:
    """A socket that nobody has the other end of."""
    gone, other = sockets.pair(sockets.STREAM)
    other.close()
    _dead.add(_identity(gone.fileno()))
    return gone


def _reopen(one: Held) -> None:
    if one.path is None:
        os.lseek(one.number, one.offset, os.SEEK_SET)
        if _stamp(os.fstat(one.number)) != one.stamp:
            raise OSError("it has no name, and has changed since")
        return
    file = os.open(one.path, one.flags & ~_UNDONE)
    try:
        if not one.flags & os.O_PATH:
            os.lseek(file, one.offset, os.SEEK_SET)
        if file == one.number:  # which was free
            os.set_inheritable(file, one.inheritable)
        else:
            os.dup2(file, one.number, one.inheritable)
    finally:
        if file != one.number:
            os.close(file)
    for kind, of_process, start, length in one.locks:  # closing a descriptor ends the process's locks: so after it
        if of_process:
            fcntl.lockf(one.number, kind | fcntl.LOCK_NB, length, start)
        else:
            fcntl.flock(one.number, kind | fcntl.LOCK_NB)


def _stamp(what: os.stat_result) -> tuple[int, int]:
    return what.st_ctime_ns, what.st_size


def _locks(number: int) -> tuple[tuple[int, bool, int, int], ...]:
    """Those that the kernel tells of a descriptor: "lock: 1: POSIX ADVISORY WRITE 2 00:1f:7 0 EOF"."""
    try:
        with open(f"{_TABLE}info/{number}", "rb") as told:
            lines = [line.split() for line in told if line.startswith(b"lock:")]
    except OSError:  # no /proc on this host
        return ()
    return tuple(
        (
            fcntl.LOCK_EX if words[4] == b"WRITE" else fcntl.LOCK_SH,
            words[2] == b"POSIX",
            int(words[-2]),
            0 if words[-1] == b"EOF" else int(words[-1]) + 1 - int(words[-2]),
        )
        for words in lines
        if words[2] in (b"POSIX", b"FLOCK")
    )


def _describe(number: int, what: os.stat_result) -> Held:
    kind = stat.S_IFMT(what.st_mode)
    flags = fcntl.fcntl(number, fcntl.F_GETFL)
    inheritable = os.get_inheritable(number)
    identity = what.st_dev, what.st_ino
    if kind == stat.S_IFREG:
        path = _path(number) if what.st_nlink else None
        offset = 0 if flags & os.O_PATH else os.lseek(number, 0, os.SEEK_CUR)
        return Held(number, kind, flags, inheritable, path, offset, "", identity, _stamp(what), _locks(number))
    label = "" if kind else (_path(number) or "").removeprefix("anon_inode:")
    path = _path(number) if kind == stat.S_IFDIR and what.st_nlink else None
    return Held(number, kind, flags, inheritable, path, label=label, identity=identity)


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
