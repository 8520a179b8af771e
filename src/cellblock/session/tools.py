"""Host functions that cells call by name: how they are described inside, and how a call of one is answered.

What comes from inside is decoded as portable values and never trusted further: a call names a tool and brings
arguments, and whatever the function makes of them is its own to check.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import math
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any
from weakref import WeakMethod

import anyio

from cellblock.callers import Caller, callers
from cellblock.hosting.to_thread import LARGE, off_loop
from cellblock.policy import FunctionGrant
from cellblock.session.account import Account, Share
from cellblock.session.arguments import identifier
from cellblock.session.threads import Threads
from cellblock.text import message_of, represent, type_name
from cellblock.tools.tool import about, listed
from cellblock.values import portable
from cellblock.values.forms import Buffer
from cellblock.values.room import held
from cellblock.wire.messages import ToolCalled, ToolReply

_MAX_DEFAULT = 200
_MAX_MESSAGE = 10_000

Tool = Callable[..., Any]
Mark = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Asked:
    """A call, with its arguments read.

    `size` is the bytes that the arguments hold, `digest` that of the arguments as they came. `gone` tells, in any
    thread, that the cell has ended or is to end.
    """

    call: int
    name: str
    args: tuple[object, ...]
    kwargs: dict[str, object]
    size: int
    digest: str
    gone: Callable[[], bool]


class Toolbox:
    """The host functions of one session, by name."""

    def __init__(self, tools: Iterable[Tool] = (), *, granted: Iterable[FunctionGrant] = ()) -> None:
        """`granted` are functions of a policy, under the names that it gives them."""
        self.account = Account()
        """Account of plain functions that go on although nobody waits for them any more."""
        self.private = ""
        """Why the session holds private data: functions that are declared outward are refused then. "" where not."""
        self._mark: WeakMethod[Mark] | None = None
        self.tools = listed(tools)
        """The functions that were given as tools."""
        self._tools: dict[str, Tool] = {}
        for tool in self.tools:
            self._add(tool.__name__, tool)
        for grant in granted:
            self._add(grant.name, grant.function)

    def _add(self, name: str, tool: Tool) -> None:
        unusable = "cannot be the name of a tool: cells could not call it"
        if (name := identifier(name, unusable)).startswith("__"):
            raise ValueError(f"{name!r} {unusable}")
        if name in self._tools:
            raise ValueError(f"two tools are called {name!r}")
        self._tools[name] = tool

    @property
    def reaches_outside(self) -> bool:
        """True if a private session is refused one of them."""
        return any(about(tool).outward for tool in self._tools.values())

    @property
    def mark(self) -> Mark | None:
        """Makes the session private, with the reason."""
        return None if self._mark is None else self._mark()

    def mark_by(self, mark: Mark) -> None:
        """Have a method of the session's mark it. It is not kept alive by this, which the session keeps alive."""
        self._mark = WeakMethod(mark)

    def offer_mark(self) -> None:
        """Let cells say themselves that what they hold is private, and say no more about it than that."""
        self._tools.setdefault(mark_private.__name__, mark_private)

    def __bool__(self) -> bool:
        return bool(self._tools)

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    @property
    def names(self) -> frozenset[str]:
        """The names by which cells can call functions of the host."""
        return frozenset(self._tools)

    def specs(self) -> tuple[dict[str, object], ...]:
        """Each function as the inside of a session is told of it."""
        return tuple(describe(name, tool) for name, tool in self._tools.items())

    def read(self, call: ToolCalled, gone: Callable[[], bool]) -> Asked:
        """Security border: a call and its arguments; ValueError where they are not what a call brings."""
        try:
            whole = portable.unpack(call.buffers)
        except portable.MalformedValue as error:
            raise ValueError(f"{call.name}(): malformed arguments: {error}") from None
        match whole:
            case [list(args), dict(kwargs)] if all(type(name) is str for name in kwargs):
                size = max(sum(map(len, call.buffers)), held(whole))
                return Asked(call.call, call.name, tuple(args), kwargs, size, _digest(call.buffers), gone)
        raise ValueError(f"{call.name}(): malformed arguments")

    async def answer(self, call: Asked) -> ToolReply:
        """Call the function, on this loop where it is async, else in a thread. Whatever it raises is the answer."""
        tool = self._tools.get(call.name)
        if tool is mark_private:
            tool = self.mark
        if tool is None:
            return _failed(call, "NameError", f"there is no tool {call.name!r}")
        said = about(tool)
        if said.outward and self.private:
            message = f"{call.name}() reaches outside, which a session that holds private data cannot"
            return _failed(call, "PermissionError", message)
        caller = Caller(self, f"{call.name}()")
        asked = callers.set((*callers.get(), caller))
        left = partial(self.account.share, call.size)
        try:
            if said.private and (mark := self.mark) is not None:
                await mark(f"{call.name}() was called")
            if inspect.iscoroutinefunction(tool):
                return await self._awaited(tool, call, left)
            return await self._threads.run(partial(_called, tool, call), left)  # type: ignore[no-any-return]
        except (Exception, asyncio.CancelledError) as error:  # cellblock's own, or of another who ended the wait
            if ends_this_task(error):
                raise
            return raised(call, error)
        finally:
            caller.ended = True
            callers.reset(asked)

    async def _awaited(self, tool: Tool, call: Asked, left: Callable[[], Share]) -> ToolReply:
        """The answer of an async function. What it raised is read in a thread: the error's own code takes its time."""
        try:
            return ToolReply(call=call.call, buffers=await _packed_off_loop(await _begin(tool, call)))
        except BaseException as error:
            if ends_this_task(error):
                raise
            read = partial(raised, call, error)
        return await self._threads.run(read, left)  # type: ignore[no-any-return]

    def drop_waiting(self) -> None:
        """No plain function begins any more that was called and has not."""
        self._threads.drop_waiting()

    @cached_property
    def _threads(self) -> Threads:
        """They end with this object."""
        return Threads("cellblock-tool")


def _begin(tool: Tool, call: Asked) -> Any:
    """Call a function, unless its cell has ended: nothing else calls one."""
    if call.gone():
        raise RuntimeError(f"{call.name}() was not called: its cell has ended or met its time limit")
    return tool(*call.args, **call.kwargs)


def _called(tool: Tool, call: Asked) -> ToolReply:
    """The answer of a plain function, made in its thread."""
    try:
        return ToolReply(call=call.call, buffers=_packed(_begin(tool, call)))
    except BaseException as error:  # such as argparse's SystemExit: it ends the call, and nothing of the host's
        return raised(call, error)


def raised(call: Asked, error: BaseException) -> ToolReply:
    """An error as the answer. It raises nothing, whatever the error's class does; on the loop for known ones alone."""
    kind, message = type_name(error).rpartition(".")[2], message_of(error, _MAX_MESSAGE)
    if type(error) is portable.NotPortable:
        return _failed(call, "TypeError", f"{call.name}() returned what cannot be passed into a session: {message}")
    if type(error) is RuntimeError and message == "coroutine raised StopIteration":
        return _failed(call, "RuntimeError", f"{call.name}() raised StopIteration")
    if issubclass(type(error), Exception):
        return _failed(call, kind, message)
    return _failed(call, "RuntimeError", f"{call.name}() raised {kind}: {message}".rstrip(": "))


def _packed(result: object, max_bytes: int = portable.MAX_BYTES) -> tuple[Buffer, ...]:
    return portable.pack(portable.encode(result, max_bytes=max_bytes))


async def _packed_off_loop(result: object) -> tuple[Buffer, ...]:
    """The buffers of a result whose size is not known: what is found to be large is begun again in a thread."""
    try:
        return _packed(result, LARGE)
    except portable.NotPortable:
        return await off_loop(LARGE, _packed, result)


def mark_private(reason: str) -> None:
    """From now on this session has no network, and cannot call what reaches outside. There is no way back."""


def asking() -> Toolbox | None:
    """The functions of the session, or of the agent, whose call of one of them is what runs."""
    owner = callers.get()[-1].owner if callers.get() else None
    return owner if isinstance(owner, Toolbox) else None


def describe(name: str, tool: Tool) -> dict[str, object]:
    """A function's signature and documentation as plain data."""
    try:
        signature = inspect.signature(tool)
    except (TypeError, ValueError):  # of a builtin that tells none
        signature = inspect.Signature(
            [
                inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
                inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
            ]
        )
    return {
        "name": name,
        "doc": inspect.getdoc(tool),
        "is_async": inspect.iscoroutinefunction(tool),
        "parameters": [_parameter(one) for one in signature.parameters.values()],
        "returns": _annotation(signature.return_annotation),
    }


def _parameter(parameter: inspect.Parameter) -> tuple[str, int, str | None, str | None]:
    default = None if parameter.default is parameter.empty else represent(parameter.default, max_chars=_MAX_DEFAULT)
    return parameter.name, int(parameter.kind), default, _annotation(parameter.annotation)


def _annotation(annotation: object) -> str | None:
    if annotation is inspect.Parameter.empty:
        return None
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def ends_this_task(error: BaseException) -> bool:
    """True if the task of a call is cancelled by its scope, or closed: not by the function, nor by anybody else."""
    try:
        is_cancelled = issubclass(type(error), anyio.get_cancelled_exc_class())
        return is_cancelled and anyio.current_effective_deadline() == -math.inf
    except RuntimeError:  # no loop runs here: the task is closed
        return not issubclass(type(error), KeyboardInterrupt | SystemExit)


def _digest(buffers: Iterable[Buffer]) -> str:
    found = hashlib.sha256()
    for one in buffers:
        found.update(len(one).to_bytes(8))
        found.update(one)
    return found.hexdigest()


def _failed(call: Asked, kind: str, message: str) -> ToolReply:
    return ToolReply(call=call.call, error=(kind, message[:_MAX_MESSAGE]))
