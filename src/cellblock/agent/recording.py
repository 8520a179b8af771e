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
from cellblock.agent.setting import present
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
_NO_SPANS = spans.Spans()
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
            with _recording(tool, args, kwargs) as outcome:
                outcome.answer = _given(tool, args, kwargs)
                if inspect.isawaitable(outcome.answer):
                    outcome.answer = await outcome.answer
            return outcome.answer

        return call_async

    @functools.wraps(tool)
    def call(*args: object, **kwargs: object) -> object:
        with _recording(tool, args, kwargs) as outcome:
            outcome.answer = _given(tool, args, kwargs)
        return outcome.answer

    return call


@dataclass(slots=True)
class _Outcome:
    """What a call came to."""

    answer: object = None


@contextmanager
def _recording(tool: Callable[..., Any], args: tuple[object, ...], kwargs: dict[str, object]) -> Iterator[_Outcome]:
    """Within a span: log the outcome that the body sets, or what it raises."""
    with _span(tool, args, kwargs) as span:
        outcome = _Outcome()
        try:
            yield outcome
        except Exception as error:
            _log(tool, args, kwargs, error=error)
            raise
        _log(tool, args, kwargs, answer=outcome.answer)
        span.tell("gen_ai.tool.call.result", to_plain(outcome.answer))


def accepting(accept: Callable[[object], object]) -> Callable[[object], object]:
    """A check of answers that logs what it was given, and what it made of it or raised."""

    def checked(value: object) -> object:
        setting, step = present.get(), said.get().step
        try:
            made = accept(value)
        except Exception as error:
            setting.held.add(held(setting.log.write("accept", step=step, given=to_plain(value), error=failure(error))))
            raise
        event = setting.log.write("accept", step=step, given=to_plain(value), answer=to_plain(made))
        setting.held.add(held(event))
        return made

    return checked


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


def _given(tool: Callable[..., Any], args: tuple[object, ...], kwargs: dict[str, object]) -> object:
    setting = present.get(None)
    if setting is None or setting.answers is None:
        return tool(*args, **kwargs)
    return setting.answers.call(said.get().step, tool.__name__, [to_plain(list(args)), to_plain(kwargs)])


@contextmanager
def _span(tool: Callable[..., Any], args: tuple[object, ...], kwargs: dict[str, object]) -> Iterator[spans.Span]:
    """A span around a call, where the cell of an agent makes it."""
    setting, name = present.get(None), tool.__name__
    made, step = (_NO_SPANS, 0) if setting is None else (setting.spans, said.get().step)
    with spans.of_step(
        made, "execute_tool", name, step=step, attempt=1 if setting is None else setting.attempt
    ) as span:
        span.tell("gen_ai.tool.call.arguments", [to_plain(list(args)), to_plain(kwargs)])
        yield span


def _log(
    tool: Callable[..., Any],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    *,
    answer: object = None,
    error: Exception | None = None,
) -> None:
    setting = present.get(None)
    if setting is None:  # called by somebody else than a cell of an agent
        return
    told: dict[str, Any] = {"answer": to_plain(answer)} if error is None else {"error": failure(error)}
    step = said.get().step
    given = [to_plain(list(args)), to_plain(kwargs)]
    setting.held.add(held(setting.log.write("tool", step=step, name=tool.__name__, arguments=given, **told)))
