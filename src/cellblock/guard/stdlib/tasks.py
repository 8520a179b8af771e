"""The audit of `asyncio`, which takes longer to import than all that most cells use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cellblock.guard.names import names
from cellblock.guard.tables import Method, ModuleAudit, TypeAudit, audit

if TYPE_CHECKING:
    from cellblock.guard.world import World


def _run(world: World) -> Callable[..., Any]:
    def run(main: Any, *, debug: bool | None = None) -> Any:
        with asyncio.Runner(debug=debug) as runner:
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
        members=_ASYNC - names("gather wait_for shield as_completed"),
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
                audit(getattr(asyncio, name), but=["mro"], subclassable=True)
                for name in sorted(_ASYNC)
                if isinstance(getattr(asyncio, name, None), type)
            ),
        ),
        note="no loops, threads, processes or sockets",
    ),
)
