"""Room for one more session: descriptors are counted before it is opened, so that those which are open never lack any.

A session comes to hold more than it is opened with: a channel for each checkpoint, a few while it recovers, branches or
is saved. What all that are open may still come to hold stays free. What else runs out is told by its name.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cellblock.errors import CellblockError
from cellblock.hosting.forks import Lock, emptied
from cellblock.hosting.shortage import UNLIMITED, descriptors, limit, no_descriptors, short_of

if TYPE_CHECKING:
    from cellblock.executors.process.linked import LinkedKernel

BASE = 9
"""A session's own: the worker's socket, pipes, pidfd and epoll; init's channel and pidfd; its root; its group."""
OF_LINK = 5
_BESIDE_CHECKPOINTS = 3
"""The oldest state is one more than can be undone, and the next one has both ends of a channel."""
WHILE_RECOVERING = 4
_WHILE_SAVING = 10
_IN_CONTAINER = 10
_SHARED = 16
"""For what is no session's: a family that is started, files of a store, the program's own."""


_open: weakref.WeakSet[LinkedKernel] = weakref.WeakSet()
_opening: dict[object, int] = emptied({})
_counting = Lock()


def most(*, checkpoints: int, saved: bool, contained: bool) -> int:
    """Most descriptors that a session may come to hold."""
    states = checkpoints + _BESIDE_CHECKPOINTS if checkpoints else 0
    return BASE + states + WHILE_RECOVERING + _WHILE_SAVING * saved + _IN_CONTAINER * contained


def count(holder: LinkedKernel) -> None:
    """Count what a session holds, until it is closed."""
    with _counting:
        _open.add(holder)


@contextmanager
def opening(needed: int) -> Iterator[None]:
    """Around the opening of a session. CellblockError where there is no room for it, with the resource, its limit and
    what to do; what is open goes on."""
    with _counting:
        if needed and _free() < needed:
            raise no_descriptors()
        ticket = object()
        _opening[ticket] = needed
    try:
        yield
    except (OSError, RuntimeError, MemoryError, CellblockError) as error:
        if (short := short_of(error.__cause__ if isinstance(error.__cause__, RuntimeError) else error)) is None:
            raise  # the cause of an error of ours is that of a thread that was not started
        raise short from error
    finally:
        with _counting:
            _opening.pop(ticket, None)


def has_room(needed: int) -> bool:
    """True if so many descriptors can be taken without those that open sessions may need."""
    with _counting:
        return _free() >= needed


def _free() -> int:
    """Descriptors that no session may come to need."""
    soft, _ = limit("RLIMIT_NOFILE")
    if (used := descriptors()) is None:
        return UNLIMITED
    sessions = list(_open)
    promised = sum(_opening.values()) + sum(one.most_descriptors for one in sessions if one.descriptors)
    return soft - _SHARED - used - promised + sum(one.descriptors for one in sessions)
