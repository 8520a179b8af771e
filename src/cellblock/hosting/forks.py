"""Forks of the program: no thread of it is in a copy, so a copy must miss nothing that one has in hand.

It finds the engine's locks free, its registers empty, and what was open closed: the other ends would wait, and they end
with the host. A fork waits while the engine imports, as the lock of a module would stay held in the copy for ever, and
for calls into libraries that do not outlive it.
"""

from __future__ import annotations

import os
import socket
import threading
import weakref
from collections.abc import Callable, Iterator, MutableMapping, MutableSet
from contextlib import contextmanager
from typing import Any, TypeVar

from cellblock.errors import CellblockError
from cellblock.hosting.conditions import require, shut

_IMPORTABLE = "use a Python with all of its standard library, and leave that to imports: sys.path, sys.modules"
_IMPORT_SECONDS = 10.0
"""A fork waits no longer: what is imported may itself wait for the thread that forks."""

Register = TypeVar("Register", bound="MutableMapping[Any, Any] | MutableSet[Any]")

_sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
_registers: list[Any] = []
_locks: list[Lock] = []
_all_calls: list[Calls] = []
_CALL_SECONDS = 10.0
"""A fork waits no longer for a call: the disk may be slow, or somebody else hold a file."""


class Lock:
    """A lock of a module, which the thread that has it may take again."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _locks.append(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def take(self, seconds: float) -> bool:
        """Take it within so long, for `__exit__`; whether it was."""
        return self._lock.acquire(timeout=seconds)

    def renew(self) -> None:
        """In a copy: it is free, unless the thread that forked has it."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


class Calls:
    """Calls into a library that a copy must not find half done. A fork waits for them, and the next ones for it.

    `leave` is called in a copy with whether none was under way.
    """

    def __init__(self, leave: Callable[[bool], object]) -> None:
        self._leave = leave
        self._changed = threading.Condition()
        self._count = 0
        self._own = threading.local()
        _all_calls.append(self)

    def __enter__(self) -> None:
        with self._changed:
            self._count += 1
            self._own.count = self._of_this_thread + 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._count -= 1
            self._own.count -= 1
            self._changed.notify_all()

    @property
    def _of_this_thread(self) -> int:
        return getattr(self._own, "count", 0)

    def hold(self) -> None:
        """Before a fork: wait for those of other threads. None begins from here on."""
        self._changed.acquire()
        self._changed.wait_for(lambda: self._count == self._of_this_thread, _CALL_SECONDS)

    def go_on(self) -> None:
        """After it, in the same thread."""
        self._changed.release()

    def leave(self) -> None:
        """After it, in the copy."""
        count, self._count = self._count, self._of_this_thread
        self._leave(not count)


def watch_forks(*sockets: socket.socket) -> None:
    """Have forked copies of this process close their copies of these."""
    _sockets.update(sockets)


def emptied(register: Register) -> Register:
    """A register of a module, empty in forked copies of this process."""
    _registers.append(register)
    return register


_importing = Lock()
_forking = threading.local()


@contextmanager
def importing() -> Iterator[None]:
    """Around imports that are made when a thread of the program may fork, or has become another user."""
    with _importing:
        try:
            yield
        except ImportError as error:
            require(shut)
            raise CellblockError(f"cellblock cannot import what it needs: {error}", hint=_IMPORTABLE) from error


def _before() -> None:
    _forking.waited = _importing.take(_IMPORT_SECONDS)
    for calls in _all_calls:
        calls.hold()


def _after_in_parent() -> None:
    for calls in _all_calls:
        calls.go_on()
    if _forking.waited:
        _importing.__exit__()


def _after_in_child() -> None:
    _after_in_parent()
    for lock in _locks:
        lock.renew()
    for one in list(_sockets):
        one.close()
    for calls in _all_calls:
        calls.leave()
    for register in _registers:
        register.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
