"""Runs, values and calls as a log keeps them, so that a run can be replayed.

A value's form is the tree of `cellblock.values.portable`; where it has buffers, `{"buffered": [tree, [base64, …]]}`.
"""

from __future__ import annotations

import base64
import builtins
import functools
import hashlib
import inspect
import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from cellblock.agent.signals import Setting, Signals, current
from cellblock.cell import Cell
from cellblock.hosting.to_thread import LARGE, off_loop
from cellblock.observe.redaction import BYTES, MASK
from cellblock.observe.spans import Span
from cellblock.text import cut, message_of, text_of, type_name, write_json
from cellblock.values import portable

MOST_BYTES = 64 * 1024
"""Most bytes that a log keeps of one value."""
_MOST_GIVEN = 512 * 1024
"""Most bytes that a log keeps of all inputs of a run, and as much of its files."""
_MOST_MESSAGE, _SHOWN = 10_000, 500
"""Characters of what a function has raised, and of a value that is not kept."""
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
    shown = _ADDRESS.sub("", portable.opaque(value, max_repr=_SHOWN).repr)
    return {"opaque": [type_name(value), shown, reason]}


def value_of(cell: Cell) -> object:
    """A cell's value as `to_plain` gives it. One that comes in more bytes than a log keeps is not read for it."""
    if cell.result.has_been_read or cell.result.size <= MOST_BYTES:
        return to_plain(cell.value)
    shown = next((one.text for one in cell.outputs if one.is_result), "")
    return {"opaque": ["", _ADDRESS.sub("", cut(shown, _SHOWN)), TOO_LARGE]}


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
    """True if a log has all of a value, and not a stand-in for it or for a part of it."""
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
            if (step := current.get(None)) is None:
                return await tool(*args, **kwargs)
            with _call(step, tool) as made:
                await off_loop(LARGE, made.begin, args, kwargs)
                try:
                    answer = made.make(args, kwargs)
                    answer = await answer if inspect.isawaitable(answer) else answer
                except Exception as error:
                    await made.setting.log.add("tool", partial(made.failed, error))
                    raise
                await made.setting.log.add("tool", partial(made.answered, answer))
            return answer

        return call_async

    @functools.wraps(tool)
    def call(*args: object, **kwargs: object) -> object:
        if (step := current.get(None)) is None:
            return tool(*args, **kwargs)
        with _call(step, tool) as made:
            made.begin(args, kwargs)
            try:
                answer = made.make(args, kwargs)
            except Exception as error:
                made.setting.log.write("tool", **made.failed(error))
                raise
            made.setting.log.write("tool", **made.answered(answer))
        return answer

    return call


@dataclass(slots=True)
class _Call:
    """A call of a tool by a cell of an agent, within its span, and what a log keeps of it."""

    setting: Setting
    tool: Callable[..., Any]
    span: Span
    event: dict[str, Any]

    def begin(self, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        self.event["arguments"] = [to_plain(list(args)), to_plain(kwargs)]
        self.span.tell("gen_ai.tool.call.arguments", self.event["arguments"])

    def make(self, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        """The tool's answer, or the log's in its place."""
        if self.setting.answers is None:
            return self.tool(*args, **kwargs)
        return self.setting.answers(self.event["step"], self.event["name"], self.event["arguments"])

    def failed(self, error: Exception) -> dict[str, Any]:
        return {**self.event, "error": failure(error)}

    def answered(self, answer: object) -> dict[str, Any]:
        plain = to_plain(answer)
        self.span.tell("gen_ai.tool.call.result", plain)
        return {**self.event, "answer": plain}


@contextmanager
def _call(signals: Signals, tool: Callable[..., Any]) -> Iterator[_Call]:
    setting, step, name = signals.setting, signals.step, tool.__name__
    with setting.spans.step("execute_tool", name, step=step, attempt=setting.attempt) as span:
        yield _Call(setting, tool, span, {"step": step, "name": name})


def accepting(accept: Callable[[object], object]) -> Callable[[object], object]:
    """A check of answers that logs what it was given, and what it made of it or raised."""

    def checked(value: object) -> object:
        signals = current.get()
        log = signals.setting.log
        told: dict[str, Any] = {"step": signals.step, "given": to_plain(value)}
        try:
            made = accept(value)
        except Exception as error:
            log.write("accept", **told, error=failure(error))
            raise
        log.write("accept", **told, answer=to_plain(made))
        return made

    return checked


def failure(error: Exception) -> list[str]:
    """An exception as a log keeps it: its class and what it says."""
    return [type_name(error), message_of(error, _MOST_MESSAGE)]


def exception_of(kind: str, message: str) -> Exception:
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


def describe_inputs(inputs: Mapping[str, object]) -> dict[str, object]:
    """Inputs by name, in the forms that a log keeps of values."""
    left = _MOST_GIVEN
    told: dict[str, object] = {}
    for name, value in inputs.items():
        told[name] = to_plain(value, most=left)
        left = max(left - len(write_json(told[name])), 0)
    return told


def describe_files(files: Mapping[str, bytes]) -> dict[str, object]:
    """Files by path: size, digest, and what is in them where that is not too much."""
    left = _MOST_GIVEN
    told: dict[str, object] = {}
    for path, content in files.items():
        kept = len(content) <= left
        left -= len(content) if kept else 0
        told[path] = {"bytes": len(content), "sha256": digest(content), **(_content(content) if kept else {})}
    return told


def _content(content: bytes) -> dict[str, str]:
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": BYTES + base64.b64encode(content).decode()}


def content_of(told: Mapping[str, Any]) -> bytes | None:
    """The content of a file again; None where a log does not have it, or not as it was."""
    if "text" in told:
        return text_of(told["text"], max_chars=sys.maxsize).encode()
    if "base64" in told and told["base64"] != MASK:
        return base64.b64decode(told["base64"].removeprefix(BYTES))
    return None


def digest(content: bytes) -> str:
    """The digest that identifies the content of a file."""
    return hashlib.sha256(content).hexdigest()


def python_version() -> str:
    """The interpreter's version."""
    return f"{platform.python_implementation()} {platform.python_version()}"
