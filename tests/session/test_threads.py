"""The engine's threads, in which what may block is called for an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import anyio
import pytest
from family_tree import soon

from cellblock.hosting import threads, to_thread

_variable: ContextVar[int] = ContextVar("variable")


def _raising(error: BaseException) -> Callable[[], None]:
    def function() -> None:
        raise error

    return function


def _ours() -> int:
    return sum(thread.name == "cellblock work" for thread in threading.enumerate())


def test_function_has_the_caller_s_context_and_cannot_change_it() -> None:
    async def called() -> tuple[int, int]:
        _variable.set(1)
        return await to_thread.run_sync(lambda: (_variable.get(), _variable.set(2))[0]), _variable.get()

    assert asyncio.run(called()) == (1, 1)


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
def test_what_the_function_raises_is_raised(error: BaseException) -> None:
    async def raised() -> BaseException | None:
        try:
            await to_thread.run_sync(_raising(error))
        except BaseException as met:
            return met
        return None

    assert asyncio.run(raised()) is error


def test_stop_iteration_is_raised_as_the_cause_of_another() -> None:
    with pytest.raises(RuntimeError, match="StopIteration") as raised:
        asyncio.run(to_thread.run_sync(_raising(StopIteration(3))))
    assert raised.value.__cause__ is not None


def test_cancelled_caller_waits_unless_it_may_leave() -> None:
    async def ended(*, leaves: bool) -> list[str]:
        going_on, order = threading.Event(), list[str]()
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()

        def block() -> None:
            loop.call_soon_threadsafe(begun.set)
            going_on.wait(60)
            order.append("returned")

        async def call() -> None:
            try:
                await to_thread.run_sync(block, abandon_on_cancel=leaves)
            finally:
                order.append("left")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await begun.wait()
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.05)
                going_on.set()
        await asyncio.to_thread(soon, lambda: len(order), 2)
        return order

    assert asyncio.run(ended(leaves=True)) == ["left", "returned"]
    assert asyncio.run(ended(leaves=False)) == ["returned", "left"]


def test_task_that_is_cancelled_leaves_at_once() -> None:
    async def left() -> bool:
        going_on = threading.Event()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(to_thread.run_sync(going_on.wait, 60), 0.05)
        was_set, _ = going_on.is_set(), going_on.set()
        return was_set

    assert asyncio.run(left()) is False


def test_loop_that_is_closed_meanwhile_is_told_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    going_on, done = threading.Event(), threading.Event()

    def block() -> None:
        going_on.wait(60)
        done.set()

    async def leave() -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(to_thread.run_sync(block), 0.05)

    asyncio.run(leave())
    going_on.set()
    assert done.wait(60)
    assert asyncio.run(to_thread.run_sync(int)) == 0
    assert capfd.readouterr().err == ""


def test_thread_that_is_slow_to_go_on_holds_nothing_of_what_it_was_given_or_has_told() -> None:
    class Held:
        def fail(self) -> None:
            raise ValueError("failed")

    may_go_on, held = threading.Event(), Held()
    gone = weakref.ref(held)

    async def look() -> bool:
        loop = asyncio.get_running_loop()
        hand_in = loop.call_soon_threadsafe

        def slow(*call: Any) -> None:
            hand_in(*call)
            may_go_on.wait(60)

        loop.call_soon_threadsafe = slow  # type: ignore[method-assign, assignment]
        nonlocal held
        work = to_thread.run_sync(held.fail)
        del held
        with contextlib.suppress(ValueError):
            await work
        del work
        await asyncio.sleep(0)  # what woke the task has ended, too
        return gone() is None

    try:
        assert asyncio.run(look())
    finally:
        may_go_on.set()


@pytest.mark.sampled(0)
def test_thread_that_idles_is_used_again_and_ends_after_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_IDLE_SECONDS", 0.2)

    async def many() -> set[int]:
        return {await to_thread.run_sync(threading.get_ident) for _ in range(20)}

    assert soon(_ours, 0) == 0
    assert len(asyncio.run(many())) < 20
    assert soon(_ours, 0) == 0


def test_crowd_of_calls_has_no_more_threads_than_tasks_may_have_at_once_and_leaves_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "_IDLE_SECONDS", 0.2)
    counts: list[int] = []

    async def crowd() -> None:
        await asyncio.gather(*(to_thread.run_sync(lambda: counts.append(_ours())) for _ in range(300)))

    asyncio.run(crowd())
    assert max(counts) <= 41  # of which one may have ended its work and not yet be idle
    assert soon(_ours, 0) == 0
