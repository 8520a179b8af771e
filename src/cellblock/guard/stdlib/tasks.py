"""The audit of `asyncio`, which takes longer to import than all that most cells use."""

from __future__ import annotations

import asyncio
import inspect
import types
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cellblock.guard.anatomy import exact, name_of
from cellblock.guard.names import names
from cellblock.guard.tables import Method, ModuleAudit, TypeAudit, audit

if TYPE_CHECKING:
    from cellblock.guard.world import World


def _run(world: World) -> Callable[..., Any]:
    def run(main: Any, *, debug: bool | None = None) -> Any:
        with asyncio.Runner(debug=False) as runner:  # which would write to the program's log
            loop = runner.get_loop()
            loop.set_exception_handler(lambda *_: None)  # it shows what code made, in whatever thread lets go of it
            with world.ending.waking(loop):
                return runner.run(main)

    return run


_ASYNC = names(
    "sleep gather create_task wait wait_for shield as_completed timeout timeout_at current_task all_tasks "
    "Queue PriorityQueue LifoQueue QueueEmpty QueueFull Lock Event Condition Semaphore BoundedSemaphore Barrier "
    "TaskGroup TimeoutError CancelledError InvalidStateError iscoroutine iscoroutinefunction "
    "ALL_COMPLETED FIRST_COMPLETED FIRST_EXCEPTION"
)


def _of_this_loop(name: str) -> Callable[..., Any]:
    """`current_task` and `all_tasks`, which look for what they are given in the program's own tables."""
    function = getattr(asyncio, name)

    def told(loop: None = None) -> Any:
        if loop is not None:
            raise TypeError(f"{name}() tells of the loop that runs: None is the only argument here")
        return function()

    return told


class Condition(asyncio.Condition):
    """A condition with a lock of its own or of the library's: it asks that also while it is let go of."""

    def __init__(self, lock: asyncio.Lock | None = None) -> None:
        if lock is not None and type(lock) is not asyncio.Lock:
            raise TypeError("lock is to be an asyncio.Lock")
        super().__init__(lock)


Condition.__module__ = "asyncio.locks"


class Queue(asyncio.Queue[Any]):
    """A queue whose size is a number that compares as numbers do: it is asked also while a queue is let go of."""

    def __init__(self, maxsize: Any = 0) -> None:
        size = exact(maxsize)
        if type(size) not in (int, float, bool):
            raise TypeError(f"maxsize is to be a number, not {name_of(type(maxsize))}")
        super().__init__(size)


class PriorityQueue(Queue, asyncio.PriorityQueue[Any]):
    """The same, which gives the least first."""


class LifoQueue(Queue, asyncio.LifoQueue[Any]):
    """The same, which gives the newest first."""


_QUEUES = {kind.__name__: kind for kind in (Queue, PriorityQueue, LifoQueue)}
for _kind in _QUEUES.values():
    _kind.__module__ = "asyncio.queues"

_TASK = names("cancel cancelled done result exception remove_done_callback get_name set_name uncancel cancelling")


def _done(kind: Any) -> dict[str, Method]:
    """The caller of a function when a task or future is done, once it is known that code may call that."""

    def make(world: World) -> Callable[..., None]:
        return lambda self, fn, /, **named: kind.add_done_callback(self, world.calls.given(fn), **named)

    return {"add_done_callback": Method(f"{kind.__name__}.add_done_callback", make)}


def _waiting(name: str) -> Callable[[World], Callable[..., Any]]:
    """A function that waits for what it is given, or for each item of it."""
    function = getattr(asyncio, name)

    def make(world: World) -> Callable[..., Any]:
        awaited = world.delegating.awaited

        def waiting(*given: Any, **named: Any) -> Any:
            if name == "as_completed" and given:
                return function([awaited(one) for one in given[0]], *given[1:], **named)
            return function(*map(awaited, given), **named)

        return waiting

    return make


AUDITS = (
    ModuleAudit(
        name="asyncio",
        members=_ASYNC - names("gather wait_for shield as_completed current_task all_tasks Condition "
            "iscoroutine iscoroutinefunction")
        - _QUEUES.keys(),
        naming=names("wait"),
        instead={
            "Condition": Condition,
            **_QUEUES,
            **{name: _of_this_loop(name) for name in ("current_task", "all_tasks")},
            "iscoroutine": lambda obj: isinstance(obj, types.CoroutineType | Coroutine),  # asyncio's keeps the class
            "iscoroutinefunction": inspect.iscoroutinefunction,
        },
        replaced={"run": _run, **{name: _waiting(name) for name in ("gather", "wait_for", "shield", "as_completed")}},
        types=(
            TypeAudit(type=asyncio.Task, reads=_TASK, replaced=_done(asyncio.Task), constructable=False),
            TypeAudit(
                type=asyncio.Future,
                reads=_TASK | names("set_result set_exception"),
                replaced=_done(asyncio.Future),
                constructable=False,
            ),
            *(
                audit(kind, but=["mro"], subclassable=issubclass(kind, BaseException))
                for kind in (getattr(asyncio, name, None) for name in sorted(_ASYNC))
                if isinstance(kind, type)
            ),
            replace(audit(asyncio.Condition, also=names("acquire locked release")), type=Condition),
            *(replace(audit(getattr(asyncio, name)), type=kind) for name, kind in _QUEUES.items()),
        ),
        note="no loops, threads, processes or sockets; a class over a queue would run where that is let go of",
    ),
)
