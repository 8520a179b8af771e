"""Host functions inside a session: stubs that look like the functions, and the calls that cross to the host.

A call is sent with a number and answered under it. Plain stubs wait for their answer; stubs of async functions
give the loop a future, so that many calls are under way at once. Threads may call too while a cell runs: one of them
reads, the others are told. Between cells nobody may: who read then would take the next request for an answer.
"""

from __future__ import annotations

import builtins
import inspect
import itertools
import select
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FunctionType
from typing import TYPE_CHECKING, Any

from cellblock.values import portable
from cellblock.wire.messages import Reserved, ToolCalled, ToolReply, ToolRoom
from cellblock.worker.beside import leave, places_of, reserve
from cellblock.worker.interpreter import ToolError
from cellblock.worker.interrupts import whole
from cellblock.worker.references import Shown

if TYPE_CHECKING:
    from asyncio import Future

    from cellblock.worker.channel import Channel

Spec = Mapping[str, Any]
"""A function as the host describes it: name, doc, whether it is async, its parameters and what it returns."""


Answer = ToolReply | ToolRoom
_LOOK_MS = 100
_MOST_UNANSWERED = 512
"""Calls that the host has not answered: it takes twice as many, those of threads included, for a broken protocol."""
ENDED = ToolReply(call=0, error=("RuntimeError", "the cell that called this has ended"))
"""The answer to a call that nobody waits for any more."""
_MOST_SAID = 500
"""Characters of an error about the arguments of a call."""
_BETWEEN = "functions of the host can be called while a cell runs, and none does"


class Tools:
    """The calls of one worker. `speak` sends an event whole; `place` marks where in the text it belongs.

    `beside`: large buffers of the arguments stay in memory, where the host reads them before it answers.
    """

    def __init__(
        self,
        channel: Channel,
        speak: Callable[[ToolCalled | Reserved], None],
        place: Callable[[], int],
        *,
        encode: Callable[[object], portable.Encoded],
        beside: bool,
    ) -> None:
        self._encode = encode
        self._beside = beside
        self._channel = channel
        self._speak = speak
        self._place = place
        self._numbers = itertools.count(1)
        self._request = 0
        """The request under way, to which calls belong; 0 between two."""
        self._told = threading.Condition()
        self._reading = False
        self._plain: dict[int, Answer | None] = {}
        self._futures: dict[int, Future[Any]] = {}
        self._unanswered: set[int] = set()
        self._queue: deque[Future[None]] = deque()
        """Calls of async functions that wait until fewer are unanswered."""

    def send_all(self) -> None:
        """The host cannot read this process's memory any more: large buffers are sent, too."""
        self._beside = False

    def stub(self, spec: Spec) -> Callable[..., object]:
        """A function that passes its calls on."""
        name = str(spec["name"])
        signature = _signature(spec)

        def plain(*args: object, **kwargs: object) -> object:
            return self._call(name, _bound(name, signature, args, kwargs))

        async def awaited(*args: object, **kwargs: object) -> object:
            return await self._call_async(name, _bound(name, signature, args, kwargs))

        function: Any = awaited if spec["is_async"] else plain
        function.__name__ = function.__qualname__ = name
        function.__module__ = "tools"
        function.__doc__ = spec["doc"]
        function.__signature__ = signature
        function.__annotations__ = {
            one.name: one.annotation for one in signature.parameters.values() if one.annotation is not one.empty
        }
        if signature.return_annotation is not signature.empty:
            function.__annotations__["return"] = signature.return_annotation
        return function  # type: ignore[no-any-return]

    def begin(self, request: int) -> None:
        """Allow calls, which belong to the request of this number until `forget`."""
        self._request = request

    def take(self, reply: Answer) -> None:
        """An answer has come. One that nobody waits for any more is dropped."""
        future = self._futures.pop(reply.call, None)
        if future is not None:
            _tell(future, reply)
        if isinstance(reply, ToolReply):
            self._unanswered.discard(reply.call)
            for _ in range(min(len(self._queue), _MOST_UNANSWERED - len(self._unanswered))):
                if not (turn := self._queue.popleft()).done():
                    _tell(turn, None)
        with self._told:
            if reply.call in self._plain:
                self._plain[reply.call] = reply
            self._told.notify_all()

    def forget(self) -> None:
        """The cell has ended, and with it every call it made. After this, no thread reads what is for others."""
        with self._told:
            self._request = 0
            self._plain.clear()
            self._futures.clear()
            self._unanswered.clear()
            self._queue.clear()
            self._told.notify_all()
            self._told.wait_for(lambda: not self._reading)

    def _begun(self, waiting: dict[int, Any], answer: Any) -> tuple[int, int]:
        """The number of a new call, under which `waiting` has its answer, and the request that it belongs to."""
        with self._told:
            if not self._request:
                raise RuntimeError(_BETWEEN)
            number = next(self._numbers)
            waiting[number] = answer
            return number, self._request

    def _send(
        self, number: int, request: int, name: str, bound: inspect.BoundArguments
    ) -> tuple[portable.Buffer, ...]:
        """Pass a call on; its buffers, which are to be kept until it is answered."""
        try:
            buffers = portable.pack(self._encode([list(bound.args), bound.kwargs]))
        except portable.NotPortable as error:
            raise TypeError(f"{name}(): an argument cannot be passed to the host: {error}") from None
        self._unanswered.add(number)
        sent, places = leave(buffers) if self._beside else (buffers, ())
        mark = self._place()
        self._speak(ToolCalled(call=number, request=request, name=name, mark=mark, buffers=sent, beside=places))
        return buffers

    def _call(self, name: str, bound: inspect.BoundArguments) -> object:
        number, request = self._begun(self._plain, None)
        try:
            kept = self._send(number, request, name, bound)
            reply = self._wait(number)
            reserved: tuple[memoryview, ...] | None = None
            if isinstance(reply, ToolRoom):
                self._plain[number] = None
                reserved = self._reserve(reply)
                reply = self._wait(number)
        finally:
            self._plain.pop(number, None)
        del kept
        return result(reply, reserved)

    def _wait(self, number: int) -> Answer:
        while (reply := self._plain.get(number, ENDED)) is None:
            self._read_or_wait(number)
        return reply

    def _reserve(self, room: ToolRoom) -> tuple[memoryview, ...]:
        """Memory for the large buffers of an answer; none where there is no more, which the host then says."""
        try:
            reserved = reserve(room.lengths)
        except (OSError, MemoryError):
            reserved = ()
        self._speak(Reserved(call=room.call, places=places_of(reserved)))
        return reserved

    def _read_or_wait(self, number: int) -> None:
        with self._told:
            if self._reading:
                self._told.wait_for(lambda: self._plain.get(number, ENDED) is not None or not self._reading)
                return
            self._reading = True
        try:
            wait = select.poll()
            wait.register(self._channel.connection, select.POLLIN)
            while number in self._plain:
                if wait.poll(_LOOK_MS):  # an interrupt may come here: nothing is half read
                    whole(self._read)
                    return
        finally:
            with self._told:
                self._reading = False
                self._told.notify_all()

    def _read_at_once(self) -> None:
        """From the event loop, which must not wait: a thread that reads tells the loop's futures, too."""
        with self._told:
            if self._reading:
                return
            self._reading = True
        try:
            if self._channel.pending:
                whole(self._read)
        finally:
            with self._told:
                self._reading = False
                self._told.notify_all()

    def _read(self) -> None:
        received = self._channel.receive()
        if received is None:
            raise SystemExit
        _, reply = received
        if isinstance(reply, ToolReply | ToolRoom):
            self.take(reply)

    async def _call_async(self, name: str, bound: inspect.BoundArguments) -> object:
        import asyncio

        loop = asyncio.get_running_loop()
        future: Future[Answer] = loop.create_future()
        number, request = self._begun(self._futures, future)
        try:
            loop.add_reader(self._channel.connection.fileno(), self._read_at_once)
            while len(self._unanswered) >= _MOST_UNANSWERED:
                turn: Future[None] = loop.create_future()
                self._queue.append(turn)
                await turn
            kept = self._send(number, request, name, bound)
            reply = await future
            reserved: tuple[memoryview, ...] | None = None
            if isinstance(reply, ToolRoom):
                self._futures[number] = future = loop.create_future()
                reserved = self._reserve(reply)
                reply = await future
            del kept
            return result(reply, reserved)
        finally:
            self._futures.pop(number, None)
            if not self._futures:
                loop.remove_reader(self._channel.connection.fileno())


def _tell(future: Future[Any], reply: Answer | None) -> None:
    """Set a reply; the loop is not woken where it has read the answer itself."""
    from asyncio import events

    def tell() -> None:
        if not future.done():
            future.set_result(reply)

    if events._get_running_loop() is future.get_loop():
        tell()
    else:
        future.get_loop().call_soon_threadsafe(tell)


def result(reply: Answer, reserved: tuple[memoryview, ...] | None = None) -> object:
    """Result of a call, or raise its error. `reserved` is memory for a result that was too large to come along."""
    assert isinstance(reply, ToolReply)
    if reply.error is not None:
        kind, message = reply.error
        raise _exception(kind, message) if reserved is None else MemoryError(message)
    stored = iter(reserved if reserved is not None and reply.is_stored else ())
    return portable.unpack(tuple(one if len(one) else next(stored) for one in reply.buffers))


def _exception(name: str, message: str) -> Exception:
    """Python's own exception of that name, one derived from it where that takes more than a message, or a new one."""
    known = getattr(builtins, name, None)
    kinds: list[type[Exception]] = [type(name, (ToolError,), {"__module__": "cellblock"})]
    if known is MemoryError:  # the host's: this session has met no limit
        kinds = [type(name, (known, ToolError), {"__module__": "builtins"})]
    elif isinstance(known, type) and issubclass(known, Exception):
        kinds = [known, type(name, (known,), _OF_A_MESSAGE), *kinds]
    for kind in kinds[:-1]:
        with suppress(TypeError):
            return kind(message)
    return kinds[-1](message)


_OF_A_MESSAGE = {
    "__module__": "builtins",
    # without globals of the runner's, for cells keep such errors
    "__init__": FunctionType((lambda self, _: None).__code__, {}),
    "__str__": FunctionType((lambda self: self.args[0]).__code__, {}),
}


def _bound(
    name: str, signature: inspect.Signature, args: tuple[object, ...], kwargs: dict[str, object]
) -> inspect.BoundArguments:
    """Arguments by the parameters they are for; TypeError, as of a function of that name."""
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as error:
        shown = [
            one if one.annotation is one.empty else one.replace(annotation=Shown(one.annotation))
            for one in signature.parameters.values()
        ]
        raise TypeError(f"{name}() {error}; it is {name}{inspect.Signature(shown)}"[:_MOST_SAID]) from None


def _signature(spec: Spec) -> inspect.Signature:
    parameters = [_parameter(*one) for one in spec["parameters"]]
    returns = spec["returns"]
    return inspect.Signature(parameters, return_annotation=inspect.Signature.empty if returns is None else returns)


def _parameter(name: str, kind: int, default: str | None, annotation: str | None) -> inspect.Parameter:
    return inspect.Parameter(
        name,
        list(inspect._ParameterKind)[kind],
        default=inspect.Parameter.empty if default is None else Shown(default),
        annotation=inspect.Parameter.empty if annotation is None else annotation,
    )
