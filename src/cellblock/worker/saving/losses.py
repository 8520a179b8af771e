"""Why a value cannot be saved, where it lies, and what to do about it."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable
from gc import get_referents
from itertools import pairwise
from typing import Any

from cellblock.worker.references import is_runners
from cellblock.worker.saving.facts import attributes_of, full_name, is_a, module_of, mro_of, own_attributes
from cellblock.worker.saving.imported import is_own
from cellblock.worker.saving.walk import parts_of_class

PART = "part of "
"""Begins the type that is told of what is left out of a value that is saved."""
STREAMS = ("__stdin__", "__stdout__", "__stderr__")
_SEARCHED = 200_000
"""So many objects are looked at to find the way to what cannot be saved."""


def unloadable(reason: str) -> str:
    """The remedy for a value that was saved and cannot be loaded, for this reason: made again alone it would be lost
    again.
    """
    failed = _IMPORT_FAILED.search(reason)
    if failed is not None:
        return f"have import {failed[1] or failed[2]} succeed again, and make it again"
    return "register a codec for its type with cellblock.codec, and make it again"


_IMPORT_FAILED = re.compile(r"\bimport ([\w.]{1,200}) fails\b|\bNo module named '([\w.]{1,200})'")


class Unsaved(Exception):
    """A value that cannot be saved: why, and what the cells can do about it."""

    def __init__(self, culprit: object, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.culprit, self.reason, self.remedy = culprit, reason, remedy


_WITHIN = "open it in a with statement where it is used"
_CONNECT = "connect in a with statement where it is used"
_GIVES = "keep what it gives, and make it where it is used"
_AWAIT = "await it, and keep what it gives"
UNHELD = ("a weak reference to what no name holds", "keep the object itself under a name")
OF_RUNNER = ("a part of what runs the cells", "use it in the cell that needs it")
_DIGEST = ("a hash under way", "keep its digest()")
REMEDIES = {
    "_io.TextIOWrapper": ("an open file", _WITHIN),
    "_io.BufferedReader": ("an open file", _WITHIN),
    "_io.BufferedWriter": ("an open file", _WITHIN),
    "_io.BufferedRandom": ("an open file", _WITHIN),
    "_io.FileIO": ("an open file", _WITHIN),
    "zipfile.ZipFile": ("an open archive", _WITHIN),
    "tarfile.TarFile": ("an open archive", _WITHIN),
    "tempfile._TemporaryFileWrapper": ("an open file", _WITHIN),
    "tempfile.TemporaryDirectory": ("a directory that is removed with its name", "make it with tempfile.mkdtemp()"),
    "mmap.mmap": ("a mapped file", "keep bytes(...) of it, or map the file where it is used"),
    "socket.socket": ("a connection", _CONNECT),
    "ssl.SSLSocket": ("a connection", _CONNECT),
    "sqlite3.Connection": ("an open database", "keep its path, and connect where it is used"),
    "sqlite3.Cursor": ("a cursor of a database", "keep fetchall() of it"),
    "builtins.generator": ("a generator", "make it again, or keep list(...) of it"),
    "builtins.coroutine": ("a coroutine that was not awaited", _AWAIT),
    "builtins.async_generator": ("an asynchronous generator", "keep [item async for item in ...] of it"),
    "builtins.frame": ("a frame of running code", "keep the values of its f_locals instead"),
    "builtins.traceback": ("a traceback", "keep traceback.format_exc() instead"),
    "posix.ScandirIterator": ("a listing under way", "keep os.listdir(...) instead"),
    "threading.Thread": ("a thread", "keep what it computes, and start it where it is used"),
    "threading._MainThread": ("a thread", "ask threading.main_thread() where it is used"),
    "_thread.lock": ("a lock that is held", "release it before the cell ends"),
    "_thread.RLock": ("a lock that is held", "release it before the cell ends"),
    "subprocess.Popen": ("a process", _GIVES),
    "multiprocessing.connection._ConnectionBase": ("a connection", _GIVES),
    "multiprocessing.process.BaseProcess": ("a process", _GIVES),
    "multiprocessing.managers.BaseManager": ("a process", _GIVES),
    "multiprocessing.pool.Pool": ("a pool of processes", _GIVES),
    "concurrent.futures.thread.ThreadPoolExecutor": ("a pool of threads", _GIVES),
    "concurrent.futures.process.ProcessPoolExecutor": ("a pool of processes", _GIVES),
    "concurrent.futures._base.Future": ("a result that is awaited", "keep its result()"),
    "_asyncio.Task": ("a task of the event loop", _AWAIT),
    "_asyncio.Future": ("a result that is awaited", _AWAIT),
    "asyncio.events.AbstractEventLoop": ("an event loop", "ask asyncio.get_running_loop() where it is used"),
    "weakref.finalize": ("a finalizer", "keep what it is to call, and register it where the object is used"),
    "_weakref.ReferenceType": UNHELD,
    "_contextvars.Token": ("a token of a context variable", "keep the value of the variable, and set it again"),
    "_contextvars.Context": ("a context", "keep the values of its variables instead"),
    "_hashlib.HASH": _DIGEST,
    "_hashlib.HASHXOF": _DIGEST,
    "_hashlib.HMAC": _DIGEST,
    "hmac.HMAC": _DIGEST,
    "_blake2.blake2b": _DIGEST,
    "_blake2.blake2s": _DIGEST,
}
"""Descriptions of values by the full names of their types, and the remedies that keep a name bound to one."""
REFUSED = frozenset(
    name
    for name in REMEDIES
    if name.split(".")[0] in ("threading", "subprocess", "multiprocessing", "concurrent", "asyncio", "weakref")
    or name == "tempfile.TemporaryDirectory"
)
"""Types that would be saved as if they were data, and be dead afterwards. Subclasses too."""


def _has_file(connection: Any) -> bool:
    import sqlite3

    cursor = sqlite3.Cursor(connection)
    cursor.row_factory = None
    listed = cursor.execute("pragma database_list").fetchall()
    return any(name in ("main", b"main") and file[:1] in ("/", b"/") for _, name, file in listed)


def _is_free(lock: Any) -> bool:
    """True if nobody holds a lock, of either kind."""
    return repr(lock).startswith("<unlocked")


def _is_kept_file(file: Any) -> bool:
    return bool(file.closed) or any(file is getattr(sys, name, None) for name in STREAMS)


_KEPT_IF: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys((name for name in REMEDIES if name.startswith("_io.")), _is_kept_file),
    "zipfile.ZipFile": lambda one: one.fp is None,
    "tarfile.TarFile": lambda one: bool(one.closed),
    "tempfile._TemporaryFileWrapper": lambda one: bool(one.file.closed),
    "socket.socket": lambda one: one.fileno() < 0,
    "sqlite3.Connection": lambda one: not _has_file(one),
    "builtins.generator": lambda one: one.gi_frame is None,
    "builtins.coroutine": lambda one: one.cr_frame is None,
    "builtins.async_generator": lambda one: one.ag_frame is None,
    "_thread.lock": _is_free,
    "_thread.RLock": _is_free,
    "_weakref.ReferenceType": lambda _: True,
}
"""Of types some of whose values can be saved, whether one can."""


def at_once(value: object) -> str | None:
    """The type, one of those with a remedy, by which a value plainly cannot be saved; None where it may be."""
    exactly = full_name(type(value))
    for name in map(full_name, mro_of(type(value))):
        if name in REMEDIES and (name == exactly or name in REFUSED):
            try:
                return None if name in _KEPT_IF and _KEPT_IF[name](value) else name
            except Exception:  # it cannot be asked from here: whoever saves it tells
                return None
    return None


_GENERAL = "make it again in the next cell, keep what it was made from, or register a codec for its type"


def type_of(value: object) -> str:
    """The name of a value's type with its module, but for `builtins`."""
    return full_name(type(value)).removeprefix("builtins.")


def advice(value: object) -> tuple[str, str]:
    """Description of a value that cannot be saved, and the remedy."""
    for kind in mro_of(type(value)):
        found = REMEDIES.get(full_name(kind))
        if found is not None:
            return found
    if is_runners(type(value)):
        return OF_RUNNER
    return f"{full_name(type(value))}, which has no way to be saved", _GENERAL


def path_to(culprit: object, value: object, name: str) -> str | None:
    """Path to an object from a name's value: `x[3].lock`. None where that is not seen."""
    if culprit is value:
        return name
    seen: dict[int, tuple[int, Any]] = {id(value): (0, value)}
    level: list[Any] = [value]
    while level and len(seen) < _SEARCHED:
        following: list[Any] = []
        for one in level:
            for part in _referents(one):
                if id(part) in seen or is_a(part, str, int, float, types.ModuleType):
                    continue
                seen[id(part)] = (id(one), part)
                if part is culprit:
                    return _told(seen, id(value), part, name)
                following.append(part)
        level = following
    return None


def _referents(value: Any) -> list[Any]:
    if is_a(value, type):
        return parts_of_class(value) if module_of(value) == "__main__" or is_own(module_of(value)) else []
    if type(value) is types.FunctionType:
        return [value.__closure__, value.__defaults__, value.__kwdefaults__, value.__dict__]
    return get_referents(value)


def _told(seen: dict[int, tuple[int, Any]], root: int, part: Any, name: str) -> str:
    chain = [part]
    while id(chain[-1]) != root:
        chain.append(seen[seen[id(chain[-1])][0]][1])
    chain.reverse()
    path, of_attributes = name, False
    for holder, held in pairwise(chain):
        if type(holder) is dict and of_attributes:
            path += next((f".{key}" for key, one in holder.items() if one is held), "")
            of_attributes = False
            continue
        of_attributes = type(held) is dict and own_attributes(holder) is held
        path += "" if of_attributes else _step(holder, held)
        if len(path) > 200:
            return path[:200] + "…"
    return path


def _step(holder: Any, held: Any) -> str:
    if is_a(holder, list, tuple):
        items = list.__iter__(holder) if is_a(holder, list) else tuple.__iter__(holder)
        return next((f"[{place}]" for place, one in enumerate(items) if one is held), "")
    if type(holder) is dict:
        for key, one in dict.items(holder):
            if one is held:
                return f"[{_brief(key)}]"
    attributes = _attributes(holder)
    return next((f".{key}" for key, one in attributes.items() if one is held and type(key) is str), "")


def _attributes(holder: Any) -> dict[Any, Any]:
    attributes = dict(attributes_of(holder) if is_a(holder, type) else own_attributes(holder) or {})
    for kind in mro_of(type(holder)):
        for name, member in attributes_of(kind).items():
            if type(member) is types.MemberDescriptorType:
                try:
                    attributes.setdefault(name, member.__get__(holder))
                except AttributeError:
                    continue
    return attributes


def _brief(key: object) -> str:
    return repr(key)[:60] if type(key) in (str, int, float, bytes) else f"<{full_name(type(key))}>"
