"""LangChain's chat models, by `langchain-core`: messages, tools, pieces and tokens in the words of this package."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from anyio import fail_after

from cellblock.errors import ModelError, needing
from cellblock.hosting.to_thread import LARGE, off_loop
from cellblock.masking import masked
from cellblock.models.assembling import Room, TooLong, arguments_of, parts_of
from cellblock.models.failures import LONGEST, MOST_READ, is_too_long
from cellblock.models.protocol import Message, OnText, Reply, Tokens, ToolRequest, ToolSchema, Unopened
from cellblock.models.streaming import Turn
from cellblock.text import bounded, half_made, line, message_of, text_of, valid, write_json

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
        came: list[BaseMessage] = []
        room, turn = Room(), Turn()
        try:
            with fail_after(self._timeout) as scope:
                while (piece := await self._next(pieces)) is not None:
                    came.append(piece)
                    text, thought = parts_of(piece.content)
                    room.take(text, thought, *(call["args"] or "" for call in getattr(piece, "tool_call_chunks", ())))
                    if text and on_text is not None:
                        on_text(valid(text))
                    await turn.end_if_long()
        except TooLong as error:
            raise ModelError(f"{self.name}: {error}", kind="malformed", hint="ask for less") from None
        except TimeoutError:
            if not scope.cancelled_caught:
                raise
            said = f"{self.name} did not answer within {self._timeout:g} s"
            raise ModelError(said, kind="timeout", hint="raise timeout_seconds") from None
        finally:
            await pieces.aclose()
        return await off_loop(LARGE, self._reply, came)

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
        found = (getattr(value, "get_secret_value", None) for value in getattr(self._model, "__dict__", {}).values())
        return [text_of(reveal(), max_chars=MOST_READ) for reveal in found if callable(reveal)]

    def _reply(self, came: list[BaseMessage]) -> Reply:
        chunks = [piece for piece in came if isinstance(piece, AIMessageChunk)]
        whole: Any = came[-1] if came else AIMessage("")
        if chunks:
            whole = chunks[0] + chunks[1:] if len(chunks) > 1 else chunks[0]
        text, reasoning = parts_of(whole.content)
        finish = _last(came, "finish_reason") or _last(came, "stop_reason") or "stop"
        return Reply(
            text=text,
            requests=tuple(_requests(whole)),
            tokens=_tokens(getattr(whole, "usage_metadata", None) or {}),
            model=_last(came, "model_name") or self.name,
            finish=_FINISHES.get(finish, finish),
            reasoning=reasoning,
        )

    @half_made
    def __repr__(self) -> str:
        return f"LangChainModel({self.name})"


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


def _requests(message: Any) -> list[ToolRequest]:
    """The calls a message asks for. Those of chunks are read anew: LangChain completes JSON that was cut."""
    found: list[ToolRequest] = []

    def add(call: Mapping[str, Any], arguments: dict[str, Any] | None, raw: str) -> None:
        found.append(ToolRequest(call.get("id") or "", call.get("name") or "", arguments, raw))

    for call in getattr(message, "tool_call_chunks", ()):
        raw = call.get("args") or ""
        add(call, arguments_of(raw), raw)
    if not found:
        for call in getattr(message, "tool_calls", ()):
            add(call, call["args"], write_json(call["args"]))
        for call in getattr(message, "invalid_tool_calls", ()):
            add(call, None, call.get("args") or "")
    return found


def _tokens(usage: Mapping[str, Any]) -> Tokens:
    return Tokens(
        input=usage.get("input_tokens") or 0,
        output=usage.get("output_tokens") or 0,
        cached=(usage.get("input_token_details") or {}).get("cache_read") or 0,
    )


def _last(came: list[BaseMessage], name: str) -> str:
    """The last text of that name in what the pieces tell about themselves: put together, equal ones would be joined."""
    told = [piece.response_metadata.get(name) for piece in came]
    return next((value for value in reversed(told) if isinstance(value, str) and value), "")
