"""Room for one more session: descriptors are counted before it is opened, so that those which are open never lack any.

A session comes to hold more than it is opened with: a channel for each checkpoint, a few while it recovers, branches or
is saved. What all that are open may still come to hold stays free. What else runs out is told by its name.
"""

from __future__ import annotations

import errno
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from cellblock.errors import CellblockError
from cellblock.hosting.forks import Lock, emptied

BASE = 9
"""A session's own: the worker's socket, pipes, pidfd and epoll; init's channel and pidfd; its root; its group."""
OF_LINK = 5
_BESIDE_CHECKPOINTS = 3
"""The oldest state is one more than can be undone, and the next one has both ends of a channel."""
_WHILE_RECOVERING = 4
_WHILE_SAVING = 10
_IN_CONTAINER = 10
_SHARED = 16
"""For what is no session's: a family that is started, files of a store, the program's own."""

_UNLIMITED = 2**62
_CLOSE = "close sessions that are not used"


class Holder(Protocol):
    """An open session, as far as descriptors go."""

    most_descriptors: int

    @property
    def descriptors(self) -> int:
        """How many it holds for certain; 0 once it is closed."""
        ...


_open: weakref.WeakSet[Holder] = weakref.WeakSet()
_opening: dict[object, int] = emptied({})
_counting = Lock()


def most(*, checkpoints: int, saved: bool, contained: bool) -> int:
    """How many a session may come to hold."""
    states = checkpoints + _BESIDE_CHECKPOINTS if checkpoints else 0
    return BASE + states + _WHILE_RECOVERING + _WHILE_SAVING * saved + _IN_CONTAINER * contained


def count(holder: Holder) -> None:
    """Count what a session holds, until it is closed."""
    with _counting:
        _open.add(holder)


@contextmanager
def opening(needed: int) -> Iterator[None]:
    """Around the opening of a session. CellblockError where there is no room for it, with the resource, its limit and
    what to do; what is open goes on."""
    with _counting:
        if needed and _free() < needed:
            raise _no_descriptors()
        ticket = object()
        _opening[ticket] = needed
    try:
        yield
    except (OSError, RuntimeError) as error:
        if (short := short_of(error)) is None:
            raise
        raise short from error
    finally:
        with _counting:
            _opening.pop(ticket, None)


def has_room(needed: int) -> bool:
    """Whether so many descriptors can be taken without those that open sessions may need."""
    with _counting:
        return _free() >= needed


def _free() -> int:
    """Descriptors that no session may come to need."""
    soft, _ = _limit("RLIMIT_NOFILE")
    if (used := _used()) is None:
        return _UNLIMITED
    sessions = list(_open)
    promised = sum(_opening.values()) + sum(one.most_descriptors for one in sessions if one.descriptors)
    return soft - _SHARED - used - promised + sum(one.descriptors for one in sessions)


def _limit(name: str) -> tuple[int, int]:
    """A limit of this process, the soft and the hard one."""
    try:
        import resource
    except ModuleNotFoundError:  # on Windows
        return _UNLIMITED, _UNLIMITED
    soft, hard = (_UNLIMITED if one < 0 else one for one in resource.getrlimit(getattr(resource, name)))
    return soft, hard


def _shown(limit: int) -> str:
    return "unlimited" if limit == _UNLIMITED else str(limit)


def _used() -> int | None:
    """How many this process has open; None where nothing tells. Linux before 6.2 does not say so without a list."""
    try:
        return os.stat("/proc/self/fd").st_size or len(os.listdir("/proc/self/fd"))
    except OSError:
        return None


def _no_descriptors() -> CellblockError:
    soft, hard = _limit("RLIMIT_NOFILE")
    way = f"ulimit -n {_shown(hard)}" if hard > soft else "as root, ulimit -n, or LimitNOFILE= of its service"
    return CellblockError(
        f"no room for another session: this process has {_used()} descriptors open, and its sessions may come to need "
        f"more, of the {soft} that it is allowed (RLIMIT_NOFILE)",
        hint=f"{_CLOSE}, or raise the limit: {way}",
    )


def short_of(error: Exception) -> CellblockError | None:
    """What to raise for an error that is about a resource, which it names; None for any other error."""
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EMFILE:
        return _no_descriptors()
    if number == errno.ENFILE:
        what, hint = "open files of the whole machine (fs.file-max)", f"{_CLOSE}, or raise it: sysctl fs.file-max=…"
    elif number == errno.EAGAIN or "start new thread" in str(error):
        soft, _ = _limit("RLIMIT_NPROC")
        what = f"processes and threads (RLIMIT_NPROC is {_shown(soft)}; a control group's pids.max bounds them too)"
        hint = f"{_CLOSE}, or raise the limit: ulimit -u"
    elif number == errno.ENOMEM:
        what, hint = "memory of this machine, or of its control group", f"{_CLOSE}, or give the machine more"
    elif number == errno.EFBIG:
        soft, _ = _limit("RLIMIT_FSIZE")
        return CellblockError(
            f"this program may write no file of more than {_shown(soft)} bytes (RLIMIT_FSIZE)",
            hint="raise the limit: ulimit -f unlimited",
        )
    elif number in (errno.ENOSPC, errno.EDQUOT):
        place = getattr(error, "filename", None) or "the directory of TMPDIR"
        what, hint = f"space on the disk of {place}", "free some, or set TMPDIR to another directory"
    else:
        return None
    return CellblockError(f"no room for another session: no {what} is left", hint=hint)
