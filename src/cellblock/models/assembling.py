"""An answer put together from what an endpoint sends: the pieces of a stream, or one object.

Endpoints differ in what they leave out, repeat or put elsewhere. What is not of the type it should be counts as absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cellblock.models.protocol import Reply, Tokens, ToolRequest
from cellblock.text import BadJson, read_json, write_json

_Object = Mapping[str, Any]
_MOST_CHARS = 4 * 2**20
"""Characters of an answer: several times what any model writes."""
_PIECE = 16
"""Room that a piece takes beside its characters, in characters."""
_MOST_CALLS = 1_000


class Unreadable(ValueError):
    """An answer is not taken, and would be the same another time; `hint` says what to do."""

    hint = ""


class TooLong(Unreadable):
    """An answer has more than is taken."""

    hint = "ask for less, such as by max_tokens"


class Room:
    """The rest of the characters that an answer may have."""

    def __init__(self) -> None:
        self._left = _MOST_CHARS

    def take(self, *texts: str) -> None:
        """Make room for a piece with these texts. Raises `TooLong`."""
        self._left -= _PIECE + sum(map(len, texts))
        if self._left < 0:
            raise TooLong(f"the answer has more than {_MOST_CHARS:,} characters")


class Assembly:
    """One answer as far as it came. `tokens` are those that the endpoint told of last, which are of the whole answer.

    `is_whole` is whether its end was seen: a reason to finish that is no error, or the account that comes after it.
    """

    def __init__(self) -> None:
        self.tokens = Tokens()
        self.is_whole = False
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[_Call] = []
        self._room = Room()
        self._finish = ""
        self._model = ""

    def add(self, chunk: object) -> str:
        """Take a piece of a stream; the text that it adds."""
        return self._take(_mapping(chunk), "delta")

    def add_whole(self, completion: object) -> str:
        """Take an answer that came at once; its text. Raises ValueError where it is none."""
        text = self._take(_mapping(completion), "message")
        if not _list(_mapping(completion).get("choices")):
            raise ValueError("the answer holds no choices")
        self.is_whole = True
        return text

    def reply(self) -> Reply:
        return Reply(
            text="".join(self._text),
            requests=tuple(call.request() for call in self._calls),
            tokens=self.tokens,
            model=self._model,
            finish=self._finish or "stop",
            reasoning="".join(self._reasoning),
        )

    def _take(self, told: _Object, part: str) -> str:
        self._model = _text(told.get("model")) or self._model
        if usage := _mapping(told.get("usage")):
            self.tokens = _tokens(usage)
            self.is_whole = self.is_whole or not (_list(told.get("choices")) or self._finish == "error")
        added = ""
        for choice in map(_mapping, _list(told.get("choices"))):
            if choice.get("index") in (0, None):  # nobody asks for more than one
                added += self._take_message(_mapping(choice.get(part)), whole=part == "message")
                if finish := _text(choice.get("finish_reason")):
                    self._finish, self.is_whole = finish, finish != "error"
        return added

    def _take_message(self, message: _Object, *, whole: bool) -> str:
        text, thought = parts_of(message.get("content"))
        text += _text(message.get("refusal"))
        thought += _text(message.get("reasoning_content")) or _text(message.get("reasoning"))
        self._room.take(text, thought)
        self._text.append(text)
        self._reasoning.append(thought)
        for call in map(_mapping, _list(message.get("tool_calls"))):
            begun = None if whole else self._begun(call)
            self._room.take((begun or self._new_call(call)).add(call))
        return text

    def _begun(self, told: _Object) -> _Call | None:
        """The call that a piece of a stream goes on with: of the same index or id. None where it begins another.

        Some endpoints number every call 0 and tell them apart by id; some give neither, and mean the last one; some
        give all the same id, or send each at once.
        """
        index, id_ = told.get("index"), _text(told.get("id"))
        begins = bool(_function(told).get("name"))
        for call in reversed(self._calls):
            if isinstance(index, int):
                same = call.index == index and (not id_ or call.id in ("", id_))
            else:
                same = call.id == id_ if id_ else not begins
            if same:
                return None if begins and call.is_before(told) else call
        return None

    def _new_call(self, told: _Object) -> _Call:
        index = told.get("index")
        if len(self._calls) == _MOST_CALLS:
            raise TooLong(f"the answer has more than {_MOST_CALLS:,} tool calls")
        self._calls.append(_Call(index if isinstance(index, int) else None))
        return self._calls[-1]


class _Call:
    """A tool call as far as it came."""

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id = ""
        self._name = ""
        self._arguments: list[str] = []

    def add(self, told: _Object) -> str:
        """Take a piece; what it adds to the arguments."""
        function = _function(told)
        self.id = self.id or _text(told.get("id"))
        self._name = self._name or _text(function.get("name"))
        arguments = function.get("arguments")
        self._arguments.append(write_json(arguments) if isinstance(arguments, dict) else _text(arguments))
        return self._arguments[-1]

    def is_before(self, told: _Object) -> bool:
        """True if the call is complete, and a piece with a name is of the next one."""
        function, raw = _function(told), "".join(self._arguments)
        another = self._name != _text(function.get("name")) or bool(raw and function.get("arguments"))
        return bool(self._name) and another and arguments_of(raw) is not None

    def request(self) -> ToolRequest:
        raw = "".join(self._arguments)
        return ToolRequest(self.id, self._name, arguments_of(raw), raw)


def arguments_of(raw: str) -> dict[str, Any] | None:
    """The arguments that a model wrote; None where they are no JSON object. Nothing written is no arguments."""
    try:
        parsed = read_json(raw or "{}")
    except BadJson:
        return None
    return parsed if isinstance(parsed, dict) else None


def parts_of(content: object) -> tuple[str, str]:
    """Text and thoughts of a message's content, which is a text or a list of parts."""
    if isinstance(content, str):
        return content, ""
    text = thought = ""
    for part in _list(content):
        if isinstance(part, str):
            text += part
            continue
        told = _mapping(part)
        if told.get("type") in ("thinking", "reasoning"):
            thinking = told.get("thinking", told.get("reasoning"))
            thought += parts_of(thinking)[0]
        else:
            text += _text(told.get("text"))
    return text, thought


def _tokens(usage: _Object) -> Tokens:
    return Tokens(
        input=_count(usage.get("prompt_tokens")),
        output=_count(usage.get("completion_tokens")),
        cached=_count(_mapping(usage.get("prompt_tokens_details")).get("cached_tokens"))
        or _count(usage.get("prompt_cache_hit_tokens")),
        cost=_amount(usage.get("cost")),
    )


def _function(call: _Object) -> _Object:
    return _mapping(call.get("function"))


def _mapping(value: object) -> _Object:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


_MOST_TOKENS = 2**53


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MOST_TOKENS else 0


def _amount(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if 0 <= value < 1e300 else None
