"""Cancel a call at each step that any task of its event loop takes, one after another."""

from __future__ import annotations

import asyncio
import contextlib
import types
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from typing import Any


class Steps:
    """Counts the steps of all tasks that the running loop makes from now on: an await that suspends ends a step."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[object] | None = None
        self._left = 0
        self._loop.set_task_factory(self._make)  # type: ignore[arg-type] # typeshed wants a protocol of its own

    async def each(self, call: Callable[[], Awaitable[object]]) -> AsyncIterator[int]:
        """Make a call again and again, cancelled after 0, 1, 2, … steps, until it ends before that. After each the
        number of steps is given. Past 24 the numbers grow by a quarter: a commit beside the call takes hundreds.
        """

        async def made() -> object:
            return await call()

        number, is_cut = 0, True
        while is_cut:
            self._left = number
            self._task = task = self._loop.create_task(made())
            with contextlib.suppress(asyncio.CancelledError):
                await task
            self._task, is_cut = None, self._left < 0
            yield number
            number += 1 if number < 24 else number // 4

    def _make(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        return asyncio.Task(self._counted(coroutine), loop=loop, **options)

    async def _counted(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return await self._stepwise(coroutine)

    @types.coroutine
    def _stepwise(self, coroutine: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        resume: Callable[[Any], Any] = coroutine.send
        value: Any = None
        while True:
            try:
                waited_for = resume(value)
            except StopIteration as end:
                return end.value
            self._note()
            try:
                resume, value = coroutine.send, (yield waited_for)
            except GeneratorExit:
                coroutine.close()
                raise
            except BaseException as error:  # the coroutine's to handle
                resume, value = coroutine.throw, error

    def _note(self) -> None:
        if self._task is not None:
            self._left -= 1
            if self._left == -1:
                self._loop.call_soon(self._task.cancel)
