"""Host functions that a local session's cells call by name: calls go to the host's loop, and wait for its answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from cellblock.values import portable
from cellblock.wire.messages import Reserved, ToolCalled
from cellblock.worker.tools import ENDED, Answer, Tools, result

if TYPE_CHECKING:
    import inspect

    from cellblock.worker.channel import Channel

_LOOK_SECONDS = 0.05


class LocalTools(Tools):
    """As in a worker, but answers come from another thread instead of a channel."""

    def __init__(self, speak: Callable[[ToolCalled | Reserved], None], value_bytes: int) -> None:
        encode = partial(portable.encode, max_bytes=value_bytes)
        super().__init__(cast("Channel", None), speak, lambda: 0, encode=encode, beside=False)

    def _wait(self, number: int) -> Answer:
        while (reply := self._plain.get(number, ENDED)) is None:  # between two looks the cell can be ended
            with self._told:
                self._told.wait_for(lambda: self._plain.get(number, ENDED) is not None, _LOOK_SECONDS)
        return reply

    async def _call_async(self, name: str, bound: inspect.BoundArguments) -> object:
        import asyncio

        number = next(self._numbers)
        future: Any = asyncio.get_running_loop().create_future()
        self._futures[number] = future
        try:
            self._send(number, name, bound)
            while not future.done():
                await asyncio.wait([future], timeout=_LOOK_SECONDS)
            return result(future.result())
        finally:
            self._futures.pop(number, None)
