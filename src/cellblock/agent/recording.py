"""What a log keeps of values and of calls: portable forms of them, so that a run can be replayed.

A value's form is the tree of `cellblock.values.portable`; where it has buffers, `{"buffered": [tree, [base64, …]]}`.
"""

from __future__ import annotations

import base64
import builtins
import functools
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cellblock.agent import spans
from cellblock.agent.setting import Setting, present
from cellblock.agent.signals import said
from cellblock.observe.redaction import BYTES
from cellblock.text import message_of, type_name
from cellblock.values import portable
from cellblock.values.room import held

MOST_BYTES = 64 * 1024
"""What a log keeps of one value."""

_MOST_MESSAGE = 10_000
"""Characters of what a function has raised."""

TOO_LARGE = "too large for a log"
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def to_plain(value: object, *, most: int = MOST_BYTES) -> object:
    """A value as JSON data, in its portable form; what is too large, or has none, as an opaque one."""
    try:
        encoded = portable.encode(value, max_bytes=most * 3 // 4)
        if not encoded.buffers:
            return encoded.tree
        return {"buffered": [encoded.tree, [BYTES + base64.b64encode(one).decode() for one in encoded.buffers]]}
    except portable.NotPortable as error:
        reason = TOO_LARGE if error.reason.startswith("larger than") else error.reason
    shown = _ADDRESS.sub("", portable.opaque(value, max_repr=500).repr)
    return {"opaque": [type_name(value), shown, reason]}


def from_plain(tree: object) -> object:
    """The value again; `MalformedValue` where it is none that a log has."""
    buffers: list[bytearray] = []
    match tree:
        case {"buffered": [inner, list(texts)]}:
            try:
                buffers = [bytearray(base64.b64decode(one.removeprefix(BYTES), validate=True)) for one in texts]
            except (AttributeError, ValueError):
                raise portable.MalformedValue("a buffer that is not base64") from None
            tree = inner
    return portable.decode(tree, buffers)


def is_whole(tree: object) -> bool:
    """Whether a log has all of a value, and not a stand-in for it or for a part of it."""
    match tree:
        case {"opaque": _} | {"record": _} | {"enum": _}:
            return False
        case dict():
            return all(map(is_whole, tree.values()))
        case list():
            return all(map(is_whole, tree))
    return True


def recorded(tool: Callable[..., Any]) -> Callable[..., Any]:
    """A tool that logs its calls to the run whose cell makes them, with what it answers or raises.

    In a run that is replayed it is not called: the log that is replayed answers.
    """
    if inspect.iscoroutinefunction(tool):

        @functools.wraps(tool)
        async def call_async(*args: object, **kwargs: object) -> object:
            with _recording(tool, args, kwargs) as made:
                made.answer = made.call()
                if inspect.isawaitable(made.answer):
                    made.answer = await made.answer
            return made.answer

        return call_async

    @functools.wraps(tool)
    def call(*args: object, **kwargs: object) -> object:
        with _recording(tool, args, kwargs) as made:
            made.answer = made.call()
        return made.answer

    return call


@dataclass(slots=True)
class _Made:
    """A call: a way to make it, and its answer."""

    call: Callable[[], object]
    answer: object = None


@contextmanager
def _recording(tool: Callable[..., Any], args: tuple[object, ...], kwargs: dict[str, object]) -> Iterator[_Made]:
    """Within a span: log the answer that the body sets, or what it raises. Nothing outside of a cell of an agent."""
    setting, made, name = present.get(None), _Made(functools.partial(tool, *args, **kwargs)), tool.__name__
    if setting is None:
        yield made
        return
    step, given = said.get().step, [to_plain(list(args)), to_plain(kwargs)]
    if setting.answers is not None:
        made.call = functools.partial(setting.answers, step, name, given)
    with spans.of_step(setting.spans, "execute_tool", name, step=step, attempt=setting.attempt) as span:
        span.tell("gen_ai.tool.call.arguments", given)
        try:
            yield made
        except Exception as error:
            _log(setting, "tool", step=step, name=name, arguments=given, error=failure(error))
            raise
        answer = to_plain(made.answer)
        _log(setting, "tool", step=step, name=name, arguments=given, answer=answer)
        span.tell("gen_ai.tool.call.result", answer)


def accepting(accept: Callable[[object], object]) -> Callable[[object], object]:
    """A check of answers that logs what it was given, and what it made of it or raised."""

    def checked(value: object) -> object:
        setting, step = present.get(), said.get().step
        try:
            made = accept(value)
        except Exception as error:
            _log(setting, "accept", step=step, given=to_plain(value), error=failure(error))
            raise
        _log(setting, "accept", step=step, given=to_plain(value), answer=to_plain(made))
        return made

    return checked


def _log(setting: Setting, event: str, **told: Any) -> None:
    """Log an event, which counts to what the session has its host hold."""
    setting.held.add(held(setting.log.write(event, **told)))


def failure(error: Exception) -> list[str]:
    """An exception as a log keeps it: its class and what it says."""
    return [type_name(error), message_of(error, _MOST_MESSAGE)]


def raised(kind: str, message: str) -> Exception:
    """An exception of a log again; one that is not Python's own is another class of the same name."""
    known = getattr(builtins, kind, None)
    if isinstance(known, type) and issubclass(known, Exception):
        try:
            error: Exception = known(message)
            return error
        except TypeError:  # it takes more than a message
            pass
    other: type[Exception] = type(kind if kind.isidentifier() else "Error", (Exception,), {})
    return other(message)
