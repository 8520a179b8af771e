"""Models whose answers are written down: scripts for tests, demos and documents; recordings of a real model.

A recording is JSON lines: a header, then one line for each reply, with digests of the messages and tools that it
answers. What was asked is not in it; what was answered is.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Self

from cellblock.documents import fits, reading
from cellblock.errors import ModelError
from cellblock.models.connect import connect
from cellblock.models.protocol import Connected, Message, OnText, Reply, Tokens, ToolRequest, ToolSchema, Unopened, give
from cellblock.private import open_private
from cellblock.text import dumps, half_made, line, read_json, write_json

Answer = str | Reply | BaseException | type[BaseException]
"""A text, a whole reply, or an exception that is raised."""

_FORMAT = "cellblock replies 1"


class ScriptedModel(Unopened):
    """Answers with `replies`, one after the other, whatever it is asked; a callable is given the messages first.

    `asked` holds the messages of every call, as they were then. Past the last reply it raises `ModelError`.
    """

    name = "scripted"

    def __init__(self, replies: Iterable[Answer | Callable[[list[Message]], Answer]]) -> None:
        if isinstance(replies, str):
            raise TypeError("ScriptedModel takes a list of replies, not one str")
        self._replies = list(replies)
        for number, reply in enumerate(self._replies, 1):
            if not (_is_answer(reply) or callable(reply)):
                raise TypeError(f"reply {number} of the script is a {type(reply).__name__}, not {_ACCEPTED}")
        self.asked: list[list[Message]] = []

    def complete(self, messages: list[Message], tools: list[ToolSchema]) -> Reply:
        """The next reply of the script. Raises what the script says is raised."""
        number = len(self.asked)
        self.asked.append(deepcopy(messages))
        if number >= (many := len(self._replies)):
            raise ModelError(
                f"the script has ended after {many} {'reply' if many == 1 else 'replies'}",
                kind="script",
                hint="give ScriptedModel more replies, or ask less often",
            )
        answer = self._replies[number]
        if not _is_answer(answer):
            answer = answer(deepcopy(messages))  # type: ignore[operator]  # a class of exceptions is callable too
        match answer:
            case str():
                return Reply(text=answer, model=self.name)
            case Reply():
                return answer
            case BaseException():
                raise answer
            case type() if issubclass(answer, BaseException):
                raise answer
        raise TypeError(f"reply {number + 1} of the script returned a {type(answer).__name__}, not {_ACCEPTED}")

    async def reply(self, messages: list[Message], tools: list[ToolSchema], on_text: OnText | None = None) -> Reply:
        answer = self.complete(messages, tools)
        give(answer.text, on_text)
        return answer

    @half_made
    def __repr__(self) -> str:
        return f"ScriptedModel({len(self.asked)} of {len(self._replies)} replies given)"


_ACCEPTED = "a str, a Reply, an exception or a callable that returns one of these"


def _is_answer(value: object) -> bool:
    return isinstance(value, str | Reply | BaseException) or (
        isinstance(value, type) and issubclass(value, BaseException)
    )


# ------------------------------------------------------------------------------- recordings


def record(model: str | object, path: str | Path) -> Connected:
    """`model`, with each of its replies added to a new file at `path`. Raises `ModelError` where there is one."""
    connected = connect(model)
    try:
        _write(open_private(path, "x"), {"format": _FORMAT, "model": connected.name})
    except FileExistsError:
        raise ModelError(f"{path} is there already", kind="setup", hint="delete it to record it again") from None
    return RecordedModel(connected, Path(path))


def replayed(path: str | Path) -> Connected:
    """A model that answers from a recording. Asked anything else it raises `ModelError`, and says what differs.

    A recording that is damaged is a `ModelError` as well, which names its line.
    """
    name, entries = "", []
    for number, content in enumerate(Path(path).read_bytes().rstrip(b"\n").split(b"\n"), 1):
        what = f"{line(os.fspath(path))} is not a recording of replies: line {number} is"
        with reading(what, partial(ModelError, kind="setup"), hint="record it again"):
            if number == 1:
                name = _read(content, _HEADER)["model"]
            else:
                entries.append(_Entry(_read(content, _REPLIED, _FAILED)))
    return ReplayedModel(name, entries)


class RecordedModel:
    """Passes everything on to `model`, and adds its replies and its `ModelError`s to the file at `path`."""

    def __init__(self, model: Connected, path: Path) -> None:
        self.name = model.name
        self._model = model
        self._path = path

    async def reply(self, messages: list[Message], tools: list[ToolSchema], on_text: OnText | None = None) -> Reply:
        asked = {"messages": [_digest(message) for message in messages], "tools": _digest(tools)}
        try:
            reply = await self._model.reply(messages, tools, on_text)
        except ModelError as error:
            failed = {name: getattr(error, name) for name in _ERROR if name != "message"}
            _write(open_private(self._path, "a"), asked | {"error": {"message": error.args[0], **failed}})
            raise
        _write(open_private(self._path, "a"), asked | {"reply": asdict(reply)})
        return reply

    async def __aenter__(self) -> Self:
        await self._model.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> None:
        await self._model.__aexit__(*raised)


class ReplayedModel(Unopened):
    """Gives each recorded reply once, to the messages that it was given to; equal ones in their order."""

    def __init__(self, name: str, entries: list[_Entry]) -> None:
        self.name = name
        self._left = entries
        self._given = 0

    async def reply(self, messages: list[Message], tools: list[ToolSchema], on_text: OnText | None = None) -> Reply:
        digests, offered = [_digest(message) for message in messages], _digest(tools)
        entry = next((one for one in self._left if (one.messages, one.tools) == (digests, offered)), None)
        if entry is None:
            raise self._differs(messages, digests)
        self._left.remove(entry)
        self._given += 1
        reply = entry.reply()
        give(reply.text, on_text)
        return reply

    def _differs(self, messages: list[Message], digests: list[str]) -> ModelError:
        if self._left:
            said = f"call {self._given + 1}: {_parting(messages, digests, self._left[0].messages)}"
        else:
            said = f"the recording has ended after {self._given} replies"
        return ModelError(said, kind="script", hint="record it again if what is asked was meant to change")


def _parting(messages: list[Message], digests: list[str], recorded: list[str]) -> str:
    """Description of where messages part from those of a recorded call."""
    for number, (here, there) in enumerate(zip(digests, recorded, strict=False), 1):
        if here != there:
            return f"message {number} ({messages[number - 1].get('role')}) is not the one that was recorded"
    if len(digests) != len(recorded):
        return f"{len(digests)} messages, and {len(recorded)} were recorded"
    return "the tools are not those that were recorded"


class _Entry:
    """One line of a recording, which has its shape. Raises TypeError where a part has more than that."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.messages: list[str] = told["messages"]
        self.tools: str = told["tools"]
        failed = told.get("error")
        self._outcome = _reply_of(told["reply"]) if failed is None else ModelError(failed.pop("message"), **failed)

    def reply(self) -> Reply:
        if isinstance(self._outcome, ModelError):
            raise self._outcome
        return self._outcome


def _reply_of(told: dict[str, Any]) -> Reply:
    requests = tuple(ToolRequest(**request) for request in told["requests"])
    return Reply(**{**told, "requests": requests, "tokens": Tokens(**told["tokens"])})


_TOKENS: dict[str, object] = {"input": int, "output": int, "cached": int, "cost": (float, int, None)}
_REQUEST: dict[str, object] = {"id": str, "name": str, "arguments": (dict, None), "raw": str}
_HEADER = {"format": _FORMAT, "model": str}
_REPLIED = {
    "messages": [str], "tools": str,
    "reply": {"text": str, "requests": [_REQUEST], "tokens": _TOKENS, "model": str, "finish": str, "reasoning": str,
              "attempts": int},
}  # fmt: skip
_ERROR = {"message": str, "hint": str, "kind": str, "status": int, "attempts": int}
_FAILED = {"messages": [str], "tools": str, "error": _ERROR}


def _read(content: bytes, *shapes: object) -> dict[str, Any]:
    """A line that has one of these shapes. ValueError for another."""
    told = read_json(content)
    if not isinstance(told, dict) or not fits(told, shapes):
        raise ValueError("it does not hold what it should")
    return told


def _digest(value: object) -> str:
    canonical = dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return "sha256-" + hashlib.sha256(canonical.encode()).hexdigest()


def _write(descriptor: int, entry: Mapping[str, object]) -> None:
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(write_json(entry, escaped=False) + "\n")
