"""Audits of small modules about structures: queues, graphs, references, arrays, secrets."""

from __future__ import annotations

import array
import ast
import contextvars
import queue
import reprlib
import secrets
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cellblock.guard.anatomy import exact
from cellblock.guard.bounded import FORMS
from cellblock.guard.names import names
from cellblock.guard.refusal import denied
from cellblock.guard.sizes import MAX_BITS, MAX_BYTES, counted
from cellblock.guard.tables import ModuleAudit, TypeAudit, audit, naming

if TYPE_CHECKING:
    from cellblock.guard.world import World

_LOOK_SECONDS = 0.02
_LONGEST_LITERAL = 10_000_000
_DEEPEST_LITERAL = 150
_LENGTHS = names(
    "maxlevel maxtuple maxlist maxarray maxdict maxset maxfrozenset maxdeque maxstring maxlong maxother"
)
_QUEUE = names("put get put_nowait get_nowait qsize empty full task_done join maxsize queue unfinished_tasks")


def _waiting(attempt: Callable[[], Any], end: type[Exception], timeout: float | None) -> Any:
    """Tries until it works, in steps between which a cell can be ended."""
    until = None if timeout is None else time.monotonic() + timeout
    while True:
        try:
            return attempt()
        except end:
            if until is not None and time.monotonic() >= until:
                raise
        time.sleep(_LOOK_SECONDS)


def _queue(name: str) -> Callable[[World], type]:
    base: Any = getattr(queue, name)

    def make(world: World) -> type:
        class Queue(base):  # type: ignore[misc]
            def get(self, block: bool = True, timeout: float | None = None) -> Any:
                if timeout is not None and timeout < 0:
                    raise ValueError("'timeout' must be a non-negative number")
                attempt = super().get
                return _waiting(lambda: attempt(False), queue.Empty, timeout) if block else attempt(False)

            def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
                attempt = super().put
                if name == "SimpleQueue" or not block:
                    attempt(item, False)
                    return
                _waiting(lambda: attempt(item, False), queue.Full, timeout)

            def join(self) -> None:
                while self.unfinished_tasks:
                    time.sleep(_LOOK_SECONDS)

        Queue.__name__ = Queue.__qualname__ = name
        Queue.__module__ = "queue"
        reads = _QUEUE if name != "SimpleQueue" else names("put get put_nowait get_nowait qsize empty")
        world.grant_types({Queue: TypeAudit(type=Queue, reads=reads)})
        return Queue

    return make


def _ref(value: Any, callback: None = None, /) -> Any:
    if callback is not None:
        raise denied("callbacks of weak references run wherever an object is dropped", "class")
    return weakref.ref(value)


def _weak(of: Any) -> Callable[[World], type]:
    """A dictionary that takes what may be read as one. Where a value is dropped, in whatever thread that is, it asks no
    key anything, but at its next use.
    """

    def make(world: World) -> type:
        class Weak(of):  # type: ignore[misc]
            def __init__(self, other: Any = (), /, **named: Any) -> None:
                super().__init__()
                if of is weakref.WeakValueDictionary:
                    gone = self._pending_removals
                    self._remove = lambda reference: gone.append(reference.key)
                self.update(other, **named)

            def update(self, other: Any = (), /, **named: Any) -> None:
                if type(other) is not dict and not issubclass(type(other), of):
                    other = FORMS[dict](other)  # which the language reads by other methods, in steps
                super().update(other, **named)

            def copy(self) -> Weak:
                return Weak(self)

            __copy__ = copy

        Weak.__module__, Weak.__name__, Weak.__qualname__ = "weakref", of.__name__, of.__name__
        world.grant_types({Weak: audit(Weak, but=_REFERENCES)})
        return Weak

    return make


_REFERENCES = names("data valuerefs keyrefs itervaluerefs")


def _drawn(name: str) -> Callable[..., Any]:
    function = getattr(secrets, name)

    def drawn(size: Any = None, /) -> Any:
        size = counted(size)
        if isinstance(size, int) and size > (MAX_BITS if name == "randbits" else MAX_BYTES // 8):
            raise OverflowError(f"{name}() of {size:,} [size]")
        return function(size)

    return drawn


def _literal_eval(node_or_string: str) -> Any:
    text = exact(node_or_string)
    if type(text) is not str:
        raise TypeError("literal_eval() takes a text here")
    depth = deepest = 0
    for one in text:
        depth += (one in "([{") - (one in ")]}")
        deepest = max(deepest, depth)
    signs = "----" in text.replace(" ", "").replace("+", "-")
    if len(text) > _LONGEST_LITERAL or deepest > _DEEPEST_LITERAL or signs:
        raise denied("a literal that is too long or too deeply nested", "size")
    return ast.literal_eval(text)


AUDITS = (
    ModuleAudit(
        name="queue",
        members=names("Empty Full"),
        replaced={name: _queue(name) for name in ("Queue", "LifoQueue", "PriorityQueue", "SimpleQueue")},
        types=(audit(queue.Empty, subclassable=True), audit(queue.Full, subclassable=True)),
        note="waiting is done in steps, between which a cell can be ended",
    ),
    ModuleAudit(
        name="contextvars",
        members=names("ContextVar"),
        types=(
            TypeAudit(type=contextvars.ContextVar, reads=names("name get set reset")),
            TypeAudit(type=contextvars.Token, reads=names("var old_value"), constructable=False),
        ),
        note="no contexts: walking one gives the host's variables and what they hold",
    ),
    ModuleAudit(
        name="weakref",
        members=names("WeakSet"),
        instead={"ref": _ref},
        replaced={one.__name__: _weak(one) for one in (weakref.WeakValueDictionary, weakref.WeakKeyDictionary)},
        types=(TypeAudit(type=weakref.ref, constructable=False), audit(weakref.WeakSet, but=_REFERENCES)),
        note="no callbacks, finalizers or proxies: they would run where nothing bounds them",
    ),
    ModuleAudit(
        name="array",
        members=names("array typecodes"),
        types=(audit(array.array, but=names("fromfile tofile buffer_info")),),
        note="no files, no addresses",
    ),
    ModuleAudit(
        name="secrets",
        note="SystemRandom draws without bounds",
        members=names("choice randbelow compare_digest"),
        instead={name: _drawn(name) for name in ("token_bytes", "token_hex", "token_urlsafe", "randbits")},
    ),
    ModuleAudit(name="keyword", members=names("kwlist softkwlist iskeyword issoftkeyword")),
    ModuleAudit(
        name="reprlib",
        members=names("repr recursive_repr Repr"),
        types=(audit(reprlib.Repr, but=["repr_array"], also=_LENGTHS, writes=_LENGTHS, replaced=naming("repr_array")),),
    ),
    ModuleAudit(
        name="ast", instead={"literal_eval": _literal_eval}, note="literals alone: trees are what compilers take"
    ),
)
