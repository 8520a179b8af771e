"""Why a value cannot be saved, where it lies, and what to do about it."""

from __future__ import annotations

import types
from gc import get_referents
from itertools import pairwise
from typing import Any

from cellblock.worker.saving.facts import attributes_of, full_name, is_a, module_of, mro_of, own_attributes
from cellblock.worker.saving.walk import parts_of_class

_SEARCHED = 200_000
"""So many objects are looked at to find the way to what cannot be saved."""


UNLOADABLE = "register a codec for its type with cellblock.codec, and make it again"
"""The remedy for a value that was saved and cannot be loaded: made again alone it would be lost again."""


class Unsaved(Exception):
    """A value that cannot be saved: why, and what the cells can do about it."""

    def __init__(self, culprit: object, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.culprit, self.reason, self.remedy = culprit, reason, remedy


_OPEN_AGAIN = "reopen the file in the next cell"
_REMEDIES = {
    "_io.TextIOWrapper": ("an open file", _OPEN_AGAIN),
    "_io.BufferedReader": ("an open file", _OPEN_AGAIN),
    "_io.BufferedWriter": ("an open file", _OPEN_AGAIN),
    "_io.BufferedRandom": ("an open file", _OPEN_AGAIN),
    "_io.FileIO": ("an open file", _OPEN_AGAIN),
    "zipfile.ZipFile": ("an open archive", _OPEN_AGAIN),
    "tarfile.TarFile": ("an open archive", _OPEN_AGAIN),
    "tempfile._TemporaryFileWrapper": ("an open file", _OPEN_AGAIN),
    "mmap.mmap": ("a mapped file", "map the file again in the next cell"),
    "socket.socket": ("a connection", "connect again in the next cell"),
    "ssl.SSLSocket": ("a connection", "connect again in the next cell"),
    "sqlite3.Connection": ("an open database", "connect again in the next cell"),
    "sqlite3.Cursor": ("a cursor of a database", "run the query again in the next cell"),
    "builtins.generator": ("a generator in the middle of its work", "make it again, or keep list(...) of it"),
    "builtins.coroutine": ("a coroutine that was not awaited", "call the function again where it is awaited"),
    "builtins.async_generator": ("an asynchronous generator", "make it again in the next cell"),
    "builtins.frame": ("a frame of running code", "keep the values instead"),
    "builtins.traceback": ("a traceback", "keep traceback.format_exc() instead"),
    "threading.Thread": ("a thread", "start it again in the next cell"),
    "threading.Timer": ("a thread", "start it again in the next cell"),
    "threading._MainThread": ("a thread", "ask threading.main_thread() again"),
    "_thread.lock": ("a lock that is held", "release it before the cell ends"),
    "_thread.RLock": ("a lock that is held", "release it before the cell ends"),
    "subprocess.Popen": ("a process", "start it again in the next cell"),
    "multiprocessing.context.Process": ("a process", "start it again in the next cell"),
    "multiprocessing.connection._ConnectionBase": ("a connection", "make it again in the next cell"),
    "multiprocessing.process.BaseProcess": ("a process", "start it again in the next cell"),
    "multiprocessing.managers.BaseManager": ("a process", "start it again in the next cell"),
    "multiprocessing.pool.Pool": ("a pool of processes", "make it again in the next cell"),
    "concurrent.futures.thread.ThreadPoolExecutor": ("a pool of threads", "make it again in the next cell"),
    "concurrent.futures.process.ProcessPoolExecutor": ("a pool of processes", "make it again in the next cell"),
    "concurrent.futures._base.Future": ("a result that is awaited", "submit the work again"),
    "_asyncio.Task": ("a task of the event loop", "create it again in the next cell"),
    "_asyncio.Future": ("a result that is awaited", "create it again in the next cell"),
    "asyncio.unix_events._UnixSelectorEventLoop": ("an event loop", "ask asyncio.get_event_loop() again"),
    "weakref.finalize": ("a finalizer", "register it again in the next cell"),
    "_weakref.ReferenceType": ("a weak reference to what no name holds", "keep the object under a name"),
    "_contextvars.Token": ("a token of a context variable", "set the variable again"),
    "_contextvars.Context": ("a context", "copy the context again in the next cell"),
}
REFUSED = frozenset(
    name
    for name in _REMEDIES
    if name.split(".")[0] in ("threading", "subprocess", "multiprocessing", "concurrent", "asyncio", "weakref")
)
"""What would be saved as if it were data, and be dead afterwards. Subclasses too."""

AT_A_GLANCE = {
    bare: told
    for name, told in _REMEDIES.items()
    if (bare := name.rpartition(".")[2])
    in (
        "generator", "coroutine", "async_generator", "frame", "traceback", "socket", "Thread", "Popen",
        "ThreadPoolExecutor", "ProcessPoolExecutor", "_TemporaryFileWrapper",
    )
    or name.startswith("_io.")
}  # fmt: skip
"""By the bare names of types of which no value can be saved: what such a value is, and the remedy."""

_GENERAL = "make it again in the next cell, keep what it was made from, or register a codec for its type"


def kind_of(value: object) -> str:
    """The full name of a value's type, read past its metaclass."""
    return full_name(type(value))


def advice(value: object) -> tuple[str, str]:
    """What a value is that cannot be saved, and the remedy."""
    for kind in mro_of(type(value)):
        found = _REMEDIES.get(full_name(kind))
        if found is not None:
            return found
    return f"{kind_of(value)}, which has no way to be saved", _GENERAL


def path_to(culprit: object, value: object, name: str) -> str | None:
    """How an object is reached from a name's value: `x[3].lock`. None where that is not seen."""
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
        return parts_of_class(value) if module_of(value) == "__main__" else []
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
    return repr(key)[:60] if type(key) in (str, int, float, bytes) else f"<{kind_of(key)}>"
