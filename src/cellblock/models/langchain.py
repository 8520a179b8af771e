"""LangChain's chat models, by `langchain-core`: messages, tools, pieces and tokens in the words of this package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

from cellblock.errors import ModelError, needing
from cellblock.hosting.to_thread import LARGE, off_loop
from cellblock.masking import is_secret, masked
from cellblock.models.assembling import Assembly, TooLong, arguments_of
from cellblock.models.failures import LONGEST, MOST_READ, is_too_long
from cellblock.models.protocol import Message, OnText, Reply, Tokens, ToolSchema, Unopened, within
from cellblock.models.streaming import Turn, give
from cellblock.text import bounded, half_made, line, message_of, text_of

with needing("langchain", "LangChain's models cannot be used", partial(ModelError, kind="setup")):
    from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
    from langchain_core.runnables import Runnable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellblock.errors import ModelFailure

_KINDS: dict[str, ModelFailure] = {
    "ContextOverflowError": "context",
    "ModelAuthenticationError": "key",
    "ModelPermissionDeniedError": "key",
    "ModelNotFoundError": "unknown",
    "ModelRateLimitError": "rate",
    "ModelConnectionError": "connection",
    "ModelTimeoutError": "timeout",
    "ModelAPIError": "server",
    "ModelInvalidRequestError": "refused",
}
"""LangChain's exceptions, by name: older releases lack them."""
_MOST_SAID = 10_000
_MOST_LOOKS = 3_000_000
"""Comparisons of parts with one another, about 0.1 µs each."""
_MOST_PARTS = 10_000
_PART = 16
"""Bytes for which a part of a message counts, or a character."""
_FINISHES = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls"}


def is_langchain(model: object) -> bool:
    """True if it is something of LangChain's that can be asked."""
    return isinstance(model, Runnable)


class LangChainModel(Unopened):
    """Asks a chat model of LangChain; a `Connected`.

    Asking again is left to it (`max_retries=` of most). Past `timeout_seconds` it is no longer waited for. What it
    raises becomes a `ModelError`, which has it as its cause.
    """

    def __init__(self, model: Any, *, timeout_seconds: float) -> None:
        names = (getattr(model, name, None) for name in ("model_name", "model"))
        self.name = next((name for name in names if isinstance(name, str) and name), type(model).__name__)
        self._model = model
        self._timeout = timeout_seconds

    async def reply(self, messages: list[Message], tools: list[ToolSchema], on_text: OnText | None = None) -> Reply:
        asked = [_message(message) for message in bounded(messages)]
        pieces = aiter(self._with(tools).astream(asked))
        answer, turn = _Answer(), Turn()
        try:
            with within(self._timeout, self.name):
                while (piece := await self._next(pieces)) is not None:
                    text = await off_loop(_size(piece), answer.add, piece)
                    await give(text, on_text, turn)
                    await turn.end_if_long()
                reply = await off_loop(LARGE, answer.reply)
        except TooLong as error:
            raise ModelError(f"{self.name}: {error}", kind="malformed", hint=error.hint) from None
        finally:
            await pieces.aclose()
        return replace(reply, model=reply.model or self.name, finish=_FINISHES.get(reply.finish, reply.finish))

    def _with(self, tools: list[ToolSchema]) -> Any:
        try:
            return self._model.bind_tools(tools) if tools else self._model
        except (AttributeError, NotImplementedError):
            raise ModelError(
                f"{self.name} takes no tools",
                kind="refused",
                hint="use a model that does, or an agent that writes code",
            ) from None

    async def _next(self, pieces: Any) -> BaseMessage | None:
        try:
            piece = await anext(pieces)
        except StopAsyncIteration:
            return None
        except Exception as error:  # the model's own code: anything
            said = line(masked(f"{type(error).__name__}: {message_of(error, MOST_READ)}", self._secrets()), LONGEST)
            raise ModelError(f"{self.name} raised {said}", kind=_kind(error)) from error
        if not isinstance(piece, BaseMessage):
            raise ModelError(
                f"{self.name} answered with a {type(piece).__name__}", kind="malformed", hint="a chat model is needed"
            )
        return piece

    def _secrets(self) -> list[str]:
        """What the model, those that it stands before, and what they are bound to hold as secrets."""
        found, seen, waiting = list[str](), set[int](), [self._model]
        while waiting and len(seen) < _MOST_PARTS:
            part = waiting.pop()
            if id(part) in seen:
                continue
            seen.add(id(part))
            if callable(reveal := getattr(part, "get_secret_value", None)):
                found.append(text_of(reveal(), max_chars=MOST_READ))
            elif isinstance(part, Mapping):
                found += [one for name, one in part.items() if isinstance(one, str) and is_secret(name)]
                waiting += [one for one in part.values() if not isinstance(one, str)]
            elif isinstance(part, list | tuple):
                waiting += part
            elif hasattr(part, "__dict__") and not isinstance(part, type | ModuleType | FunctionType):
                private = (getattr(part, name, None) for name in ("__pydantic_private__", "__pydantic_extra__"))
                waiting += [vars(part), *private]
        return found

    @half_made
    def __repr__(self) -> str:
        return f"LangChainModel({self.name})"


def _size(piece: BaseMessage) -> int:
    """How much there is of a piece."""
    if not isinstance(piece, AIMessageChunk):
        return LARGE
    calls = piece.tool_call_chunks
    return _PART * (len(piece.content) + len(calls) + sum(len(call["args"] or "") for call in calls))


def _message(told: Message) -> BaseMessage:
    """A message in LangChain's form. Raises ModelError for a role that it does not know."""
    content = told.get("content") or ""
    match told.get("role"):
        case "system":
            return SystemMessage(content)
        case "user":
            return HumanMessage(content)
        case "tool":
            return ToolMessage(content, tool_call_id=told.get("tool_call_id", ""))
        case "assistant":
            valid, invalid = [], []
            for call in told.get("tool_calls") or []:
                name, raw = call["function"]["name"], call["function"]["arguments"]
                arguments = arguments_of(raw)
                if arguments is None:
                    invalid.append(
                        {"type": "invalid_tool_call", "name": name, "args": raw, "id": call["id"], "error": None}
                    )
                else:
                    valid.append({"type": "tool_call", "name": name, "args": arguments, "id": call["id"]})
            return AIMessage(content, tool_calls=valid, invalid_tool_calls=invalid)
    raise ModelError(f"no message can have the role {told.get('role')!r}", kind="setup")


def _kind(error: Exception) -> ModelFailure:
    if is_too_long(message_of(error, _MOST_SAID)):
        return "context"
    return next((_KINDS[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in _KINDS), "raised")


class _Answer:
    """An answer of LangChain's messages, as far as it came. Raises `TooLong`."""

    def __init__(self) -> None:
        self._assembly, self._tokens = Assembly(), Tokens()
        self._indexed: set[tuple[object, object]] = set()
        self._others = self._looks = 0

    def add(self, piece: BaseMessage) -> str:
        """Take a message, or a piece of one; the text that it adds. LangChain completes JSON that was cut: calls are
        read anew.
        """
        calls: list[Any] = list(getattr(piece, "tool_call_chunks", ())) or [
            *getattr(piece, "tool_calls", ()),
            *getattr(piece, "invalid_tool_calls", ()),
        ]
        told, usage = piece.response_metadata, getattr(piece, "usage_metadata", None)
        message = {"content": piece.content, "tool_calls": list(map(_call, calls))}
        finish = told.get("finish_reason") or told.get("stop_reason")
        choice = {"message": message, "delta": message, "finish_reason": finish}
        take = self._assembly.add if isinstance(piece, AIMessageChunk) else self._assembly.add_whole
        text = take({"model": told.get("model_name"), "choices": [choice]})
        self._tokens += _tokens(usage or {})
        for part in (*calls, *(piece.content if isinstance(piece.content, list) else ())):
            self._look(part)
        return text

    def reply(self) -> Reply:
        return replace(self._assembly.reply(), tokens=self._tokens)

    def _look(self, part: object) -> None:
        """Count what LangChain looks at when it puts parts together, on the event loop: for one that has an index, all
        that it holds by then.
        """
        told = part if isinstance(part, Mapping) else {}
        index, id_ = told.get("index"), told.get("id")
        if isinstance(index, int | str):
            self._indexed.add((index, id_ if isinstance(id_, str) else None))
            self._looks += len(self._indexed) + self._others
        else:
            self._others += 1
        if self._looks > _MOST_LOOKS:
            raise TooLong("the answer has too many parts")


def _call(told: Mapping[str, Any]) -> dict[str, object]:
    """A tool call, or a piece of one, in the form of chat completions."""
    function = {"name": told.get("name"), "arguments": told.get("args")}
    return {"index": told.get("index"), "id": told.get("id"), "function": function}


def _tokens(usage: Mapping[str, Any]) -> Tokens:
    return Tokens(
        input=usage.get("input_tokens", 0),
        output=usage.get("output_tokens", 0),
        cached=(usage.get("input_token_details") or {}).get("cache_read", 0),
    )
