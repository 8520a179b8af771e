"""The tool calls of one cell: each is answered by a task of its own, so that many are under way at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from weakref import WeakMethod

import anyio

from cellblock.errors import SessionClosed
from cellblock.events import ToolCall
from cellblock.executors.protocol import Kernel
from cellblock.hosting.to_thread import off_loop
from cellblock.session.account import Account
from cellblock.session.background import Background
from cellblock.session.tools import Asked, Toolbox, ends_this_task, raised
from cellblock.values import room
from cellblock.values.forms import BESIDE_BYTES
from cellblock.wire.frames import ProtocolError
from cellblock.wire.messages import Place, Reserved, ToolCalled, ToolReply, ToolRoom

_MOST_FAILURES, _MOST_WORDS = 100, 200

Reply = Callable[[ToolReply | ToolRoom], Awaitable[None]]
Answer = Callable[[Asked], Awaitable[ToolReply]]
"""A function that answers a call: the function itself, or a log of what it gave before."""


class Calls:
    """Begins calls and ends them all; a function in a thread cannot be ended, and its answer is dropped."""

    def __init__(
        self,
        toolbox: Toolbox,
        kernel: Kernel,
        account: Account,
        overfull: Callable[[], None],
        answer: Answer | None = None,
    ) -> None:
        """`overfull` is a method, called when answers are more than the account has room for; whose it is has this."""
        self._toolbox = toolbox
        self._account, self._overfull = account, WeakMethod(overfull)
        self._answered = answer or toolbox.answer
        self._kernel = kernel
        self._asked: dict[int, tuple[anyio.Event, list[Place]]] = {}
        self._speaking = anyio.Lock(fast_acquire=True)
        self._tasks = Background()
        self.refused = False
        """True if no function begins any more: the cell has met its time limit, and may end in its grace."""
        self.failures: set[str] = set()
        """First words of errors that functions of the host have raised: their troubles are not the cell's."""

    async def fits(self, call: ToolCalled) -> bool:
        """True if there is room for a call's arguments, as they come and as they are once they have been read."""
        account = self._account
        size = sum(map(len, call.buffers)) + sum(length for _, _, length in call.beside)
        tree = bytes(call.buffers[0]) if call.buffers else b""
        if not account.has_room(size):
            return False
        if await off_loop(len(tree), room.fits, tree, account.limit - account.held - size):
            return True
        if not await off_loop(len(tree), room.fits, tree, room.MAX_ROOM):
            return True  # it is refused before it is read
        account.has_room(size + room.worst(tree))
        return await off_loop(len(tree), room.fits, tree, account.limit - account.held - size)

    async def begin(self, call: ToolCalled, reply: Reply) -> ToolCall:
        """Start to answer a call that fits; what the caller of the session is told of it."""
        try:
            asked = await off_loop(room.COST * sum(map(len, call.buffers)), self._toolbox.read, call, self._is_gone)
        except ValueError as error:
            self._tasks.start(
                self._quietly, self._say, reply, ToolReply(call=call.call, error=("ValueError", str(error)))
            )
            return ToolCall(id=call.call, name=call.name)
        self._tasks.start(self._quietly, self._answer, asked, reply)
        return ToolCall(id=call.call, name=call.name, args=asked.args, kwargs=asked.kwargs)

    def cancel(self) -> None:
        """The cell has ended: its calls are of no use any more, and those that have not begun never do."""
        self._toolbox.drop_waiting()
        self._tasks.cancel()

    def _is_gone(self) -> bool:
        return self.refused or self._kernel.gone

    async def _answer(self, asked: Asked, reply: Reply) -> None:
        share = self._account.share(asked.size)
        try:
            answer = await self._answered(asked)
            share.add(sum(map(len, answer.buffers)))
            if not self._account.has_room() and (overfull := self._overfull()) is not None:
                overfull()
            await self._give(answer, reply)
        except (Exception, asyncio.CancelledError) as error:  # the cell is not left waiting
            if ends_this_task(error):
                raise
            await self._give(raised(asked, error), reply)
        finally:
            share.close()

    async def _give(self, answer: ToolReply, reply: Reply) -> None:
        if answer.error is not None and len(self.failures) < _MOST_FAILURES:
            self.failures.add(answer.error[1][:_MOST_WORDS])
        if self._kernel.beside and any(len(one) >= BESIDE_BYTES for one in answer.buffers):
            answer = await self._stored(answer, reply)
        await self._say(reply, answer)

    async def _stored(self, answer: ToolReply, reply: Reply) -> ToolReply:
        """An answer with its large buffers in the worker's memory already."""
        large = [one for one in answer.buffers if len(one) >= BESIDE_BYTES]
        offered, places = self._asked[answer.call] = anyio.Event(), []
        try:
            await self._say(reply, ToolRoom(call=answer.call, lengths=tuple(map(len, large))))
            await offered.wait()
            await self._kernel.write(places, large)
        except OSError as error:
            return ToolReply(call=answer.call, error=("MemoryError", f"the result could not be stored: {error}"))
        finally:
            del self._asked[answer.call]
        small = tuple(b"" if len(one) >= BESIDE_BYTES else one for one in answer.buffers)
        return replace(answer, buffers=small, is_stored=True)

    def offer(self, memory: Reserved) -> None:
        """There is memory for an answer. An offer that nobody asked for is dropped."""
        if memory.call in self._asked:
            offered, places = self._asked[memory.call]
            places[:] = memory.places
            offered.set()

    async def _say(self, reply: Reply, answer: ToolReply | ToolRoom) -> None:
        async with self._speaking:  # an answer may take many packets
            await reply(answer)

    async def _quietly(self, function: Callable[..., Awaitable[None]], *args: object) -> None:
        with contextlib.suppress(ProtocolError, SessionClosed):  # the cell ended meanwhile
            await function(*args)
