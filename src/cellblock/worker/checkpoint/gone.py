"""Losses of a checkpoint when it was woken, as rows of name, type, reason and remedy."""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cellblock.text import type_name
from cellblock.worker.checkpoint.databases import connect_again
from cellblock.worker.checkpoint.descriptors import is_dead
from cellblock.worker.checkpoint.owning import nameless
from cellblock.worker.checkpoint.twin import Woken
from cellblock.worker.confine import layout

Row = tuple[str, str, str, str]

_MAX_ROWS = 50

_CLOSED = "it cannot be open in two processes, and was closed"
_DATABASE = "its file was made anew while a transaction, a query or functions of its own kept it from being reopened"
_MAPPED = "memory cannot be shared with the session it was branched from: it is a copy"
_NAMELESS = "its file was removed or replaced: it may hold what was undone, and what is written there is in no file"
_THREAD = "a thread does not live on in a copy of its process"
_LOCK = "it is held, maybe by a thread that did not live on"
_PROCESS = "its process ended when the session was set back"


def losses(namespace: Mapping[str, object], woken: Woken, renewed: frozenset[str]) -> tuple[Row, ...]:
    """Names whose values are not what they were, then files, connections and threads that no such name holds.

    Threads that were `renewed` are not lost.
    """
    told: set[object] = set(renewed)
    rows: list[Row] = []
    kinds = [(kind, look, text) for kind, look, *text in _kinds()]
    for name, value in list(namespace.items()):
        for kind, look, (reason, remedy) in kinds:
            if issubclass(type(value), kind):
                if type(name) is str and (covered := _looked_at(look, value, woken)) is not None:
                    told.update(covered)
                    rows.append((name, type_name(value), reason, remedy))
                break
    rows += _files(woken)
    rows += _connections(woken, told)
    unable, whole = connect_again(woken.anew)  # after those: it may open files under numbers that were closed
    rows += _databases(namespace, unable)
    if woken.branch is not None:
        mapped, why = woken.branch.mapped, _MAPPED
    else:
        mapped, why = tuple(nameless(os.stat(layout.WORKSPACE).st_dev)), _NAMELESS
    rows += [(f"mapping of {path}", "mmap", why, "map it again") for path in mapped if path not in whole]
    rows += [(f"thread {name}", "Thread", _THREAD, "start it again") for name in woken.threads if name not in told]
    return tuple(rows[:_MAX_ROWS])


Look = Callable[[Any, Woken], Iterable[object] | None]
"""Look at what a value lost: the numbers of descriptors and names of threads that this covers, None where not."""


def _looked_at(look: Look, value: object, woken: Woken) -> list[object] | None:
    """Security border: a value of a class that the cells made may raise anything."""
    try:
        covered = look(value, woken)
        return None if covered is None else list(covered)
    except BaseException:
        return None


def _kinds() -> list[tuple[type, Look, str, str]]:
    """Types whose module was imported, as nothing can hold one otherwise; the first that fits is taken."""
    return [(kind, *rest) for (module, name), rest in _TYPES.items() if (kind := _find(module, name)) is not None]


def _find(module: str, name: str) -> type | None:
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) else None


def _descriptor(value: Any, woken: Woken) -> Iterable[object] | None:
    number = value.fileno()
    return [number] if number in _numbers(woken) else None


def _command(value: Any, woken: Woken) -> Iterable[object] | None:
    if value.returncode is not None:
        return None
    value.returncode = -signal.SIGKILL  # it is no child of this process, which could not learn it
    return [pipe.fileno() for pipe in (value.stdin, value.stdout, value.stderr) if pipe is not None]


def _process(value: Any, _woken: Woken) -> Iterable[object] | None:
    return [] if value._popen is not None and value._popen.returncode is None else None


def _thread(value: Any, woken: Woken) -> Iterable[object] | None:
    return [value.name] if value.name in woken.threads else None


def _threads(value: Any, woken: Woken) -> Iterable[object] | None:
    names = {thread.name for thread in value._threads}
    return names if not names.isdisjoint(woken.threads) else None


def _processes(value: Any, _woken: Woken) -> Iterable[object] | None:
    return [] if value._processes else None


def _lock(value: Any, woken: Woken) -> Iterable[object] | None:
    """Only a thread can hold what is held now, where there was one: this one would not ask for it again."""
    if not woken.threads:
        return None
    if value.acquire(False):
        value.release()
        return None
    return []


def _inner_lock(value: Any, woken: Woken) -> Iterable[object] | None:
    lock = getattr(value, "mutex", None) or getattr(value, "_lock", None) or value._cond._lock
    return _lock(lock, woken)


_TYPES: dict[tuple[str, str], tuple[Look, str, str]] = {
    ("socket", "socket"): (_descriptor, _CLOSED, "connect again"),
    ("io", "IOBase"): (_descriptor, _CLOSED, "open it again"),
    ("multiprocessing.connection", "_ConnectionBase"): (_descriptor, _CLOSED, "open it again"),
    ("subprocess", "Popen"): (_command, _PROCESS, "start it again"),
    ("multiprocessing.process", "BaseProcess"): (_process, _PROCESS, "start it again"),
    ("multiprocessing.pool", "Pool"): (_processes, "its workers ended when the session was set back", "make it again"),
    ("concurrent.futures.process", "ProcessPoolExecutor"): (
        _processes,
        "its workers ended when the session was set back",
        "make it again",
    ),
    ("concurrent.futures.thread", "ThreadPoolExecutor"): (_threads, _THREAD, "make it again"),
    ("threading", "Thread"): (_thread, _THREAD, "start it again"),
    ("_thread", "LockType"): (_lock, _LOCK, "make it again"),
    ("_thread", "RLock"): (_lock, _LOCK, "make it again"),
    ("threading", "Condition"): (_inner_lock, _LOCK, "make it again"),
    ("threading", "Event"): (_inner_lock, _LOCK, "make it again"),
    ("threading", "Semaphore"): (_inner_lock, _LOCK, "make it again"),
    ("queue", "Queue"): (_inner_lock, _LOCK, "make it again"),
}


def _databases(namespace: Mapping[str, object], unable: list[tuple[Any, str]]) -> list[Row]:
    """Connections that could not be connected again, each under its name or, where it has none, its file's."""
    names = {id(value): name for name, value in list(namespace.items()) if type(name) is str}
    return [
        (names.get(id(value), f"connection to {file}"), type_name(value), _DATABASE, "connect again")
        for value, file in unable
    ]


def _files(woken: Woken) -> list[Row]:
    rows = []
    for one in woken.gone:
        if one.kind in (stat.S_IFREG, stat.S_IFDIR) and one.path is not None:
            rows.append((f"file {one.path}", "file", "it could not be opened again", "open it again"))
        elif one.kind == stat.S_IFREG:
            rows.append((f"descriptor {one.number}", "file", "it has no name, and was changed since", "make it again"))
    return rows


def _connections(woken: Woken, told: set[object]) -> list[Row]:
    """Sockets, pipes and their like that something holds still, but no name that was told."""
    return [
        (f"descriptor {one.number}", one.what, _CLOSED, "open it again")
        for one in woken.gone
        if one.is_shared and one.number not in told and is_dead(one.number)
    ]


def _numbers(woken: Woken) -> set[int]:
    return {one.number for one in woken.gone if one.is_shared}
