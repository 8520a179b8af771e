"""Forks of the program: no thread of it is in a copy, so a copy must miss nothing that one has in hand.

It finds the engine's locks free, its registers empty, and what was open closed: the other ends would wait, and they end
with the host. A fork waits while the engine imports, as the lock of a module would stay held in the copy for ever.
"""

from __future__ import annotations

import os
import socket
import threading
import weakref
from collections.abc import Iterator, MutableMapping, MutableSet
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


def _after_in_parent() -> None:
    if _forking.waited:
        _importing.__exit__()


def _after_in_child() -> None:
    _after_in_parent()
    for lock in _locks:
        lock.renew()
    for one in list(_sockets):
        one.close()
    for register in _registers:
        register.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
