"""An answer put together from what an endpoint sends: the pieces of a stream, or one object.

Endpoints differ in what they leave out, repeat or put elsewhere. What is not of the type it should be counts as absent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cellblock.models.protocol import MOST_CALLS, Reply, Tokens, ToolRequest
from cellblock.text import BadJson, read_json, too_much, write_json

_Object = Mapping[str, Any]
_MOST_CHARS = 4 * 2**20
"""Characters of an answer: several times what any model writes."""
_LONGEST_WORD = 1_000
"""Characters of a name, an id, or a reason to finish."""
_PIECE = 16
"""Room that a piece takes beside its characters, and each part of it but the first, in characters."""
_MARKS = re.compile(r'\\.?|["{}\[\]]', re.DOTALL)


class Unreadable(ValueError):
    """An answer is not taken, and would be the same another time; `hint` says what to do."""

    hint = ""


class TooLong(Unreadable):
    """An answer has more than is taken."""

    hint = "ask for less, such as by max_tokens"


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
        self._newest: dict[object, _Call] = {}
        """The call that each index and each id was told of last, by these and by both."""
        self._room = _MOST_CHARS
        """Characters that the answer may still have."""
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
        self._model = _word(told.get("model")) or self._model
        if usage := _mapping(told.get("usage")):
            self.tokens = _tokens(usage)
            self.is_whole = self.is_whole or not (_list(told.get("choices")) or self._finish == "error")
        added = ""
        for choice in map(_mapping, self._parts(told.get("choices"))):
            if choice.get("index") in (0, None):  # nobody asks for more than one
                added += self._take_message(_mapping(choice.get(part)), whole=part == "message")
                if finish := _word(choice.get("finish_reason")):
                    self._finish, self.is_whole = finish, finish != "error"
        return added

    def _take_message(self, message: _Object, *, whole: bool) -> str:
        text, thought = self._parts_of(message.get("content"))
        text += _text(message.get("refusal"))
        thought += _text(message.get("reasoning_content")) or _text(message.get("reasoning"))
        self._make_room(text, thought)
        self._text.append(text)
        self._reasoning.append(thought)
        for call in map(_mapping, self._parts(message.get("tool_calls"))):
            begun = None if whole else self._begun(call)
            if begun is None:
                begun = _Call(call.get("index"))
                self._calls.append(begun)
                if len(self._calls) > MOST_CALLS:
                    raise TooLong(f"the answer has more than {MOST_CALLS:,} tool calls")
            self._make_room(begun.add(call))
            for key in (begun.index, begun.id, (begun.index, begun.id)):
                self._newest[key] = begun
        return text

    def _parts_of(self, content: object) -> tuple[str, str]:
        """Text and thoughts of a message's content, which is a text or a list of parts."""
        text: list[str] = []
        thoughts: list[str] = []
        for part in (content,) if isinstance(content, str) else self._parts(content):
            told = _mapping(part)
            if told.get("type") in ("thinking", "reasoning"):
                thinking = told.get("thinking", told.get("reasoning"))
                parts = (thinking,) if isinstance(thinking, str) else self._parts(thinking)
                thoughts += map(_text_of, parts)
            else:
                text.append(_text_of(part))
        return "".join(text), "".join(thoughts)

    def _make_room(self, *texts: str) -> None:
        """Make room for a piece with these texts. Raises `TooLong`."""
        self._take_room(_PIECE + sum(map(len, texts)))

    def _parts(self, value: object) -> list[object]:
        """The parts of a list, for which room is made before they are walked; of no list none. Raises `TooLong`."""
        found = _list(value)
        self._take_room(_PIECE * max(len(found) - 1, 0))
        return found

    def _take_room(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            raise TooLong(f"the answer has more than {_MOST_CHARS:,} characters")

    def _begun(self, told: _Object) -> _Call | None:
        """The call that a piece of a stream goes on with: of the same index or id. None where it begins another.

        Some endpoints number every call 0 and tell them apart by id; some give neither, and mean the last one; some
        give all the same id, or send each at once.
        """
        index, id_ = told.get("index"), _word(told.get("id"))
        begins = bool(_function(told).get("name"))
        if isinstance(index, int):
            call = self._newest.get(index)
            if id_ and call is not None and call.id not in ("", id_):
                call = self._newest.get((index, id_))
        elif id_:
            call = self._newest.get(id_)
        else:
            call = None if begins or not self._calls else self._calls[-1]
        return None if call is None or (begins and call.is_before(told)) else call


class _Call:
    """A tool call as far as it came."""

    def __init__(self, index: object) -> None:
        self.index = index if isinstance(index, int) else None
        self.id = ""
        self._name = ""
        self._arguments: list[str] = []
        self._open = 0
        """Brackets of the arguments that are not closed yet."""
        self._in_text = False
        self._cut = ""

    def add(self, told: _Object) -> str:
        """Take a piece; what it adds to the arguments."""
        function = _function(told)
        self.id = self.id or _word(told.get("id"))
        self._name = self._name or _word(function.get("name"))
        arguments = function.get("arguments")
        added = write_json(arguments) if isinstance(arguments, dict) else _text(arguments)
        if added:
            self._arguments.append(added)
            self._follow(added)
        return added

    def is_before(self, told: _Object) -> bool:
        """True if the call is complete, and a piece with a name is of the next one."""
        function = _function(told)
        another = self._name != _word(function.get("name")) or bool(self._arguments and function.get("arguments"))
        return bool(self._name) and another and not (self._open or self._in_text)

    def _follow(self, added: str) -> None:
        """Keep count of what is open in the arguments: they are read when all have come, and not with each piece."""
        text, self._cut = self._cut + added, ""
        for mark in map(re.Match.group, _MARKS.finditer(text)):
            if mark == "\\":
                self._cut = mark
            elif mark == '"':
                self._in_text = not self._in_text
            elif not self._in_text:
                self._open += (mark in "{[") - (mark in "}]")

    def request(self) -> ToolRequest:
        raw = "".join(self._arguments)
        return ToolRequest(self.id, self._name, arguments_of(raw), raw)


def read_piece(text: str | bytes) -> object:
    """Value of a piece's JSON text. Raises `BadJson`, and before anything is read `TooLong` where it has too much."""
    if much := too_much(text):
        raise TooLong(f"a piece of the answer has more than {much}")
    return read_json(text)


def arguments_of(raw: str) -> dict[str, Any] | None:
    """The arguments that a model wrote; None where they are no JSON object. Nothing written is no arguments."""
    try:
        parsed = read_piece(raw or "{}")
    except (BadJson, TooLong):
        return None
    return parsed if isinstance(parsed, dict) else None


def _text_of(part: object) -> str:
    return part if isinstance(part, str) else _text(_mapping(part).get("text"))


def _tokens(usage: _Object) -> Tokens:
    return Tokens(
        input=usage.get("prompt_tokens", 0),
        output=usage.get("completion_tokens", 0),
        cached=_mapping(usage.get("prompt_tokens_details")).get("cached_tokens")
        or usage.get("prompt_cache_hit_tokens", 0),
        cost=usage.get("cost"),
    )


def _function(call: _Object) -> _Object:
    return _mapping(call.get("function"))


def _mapping(value: object) -> _Object:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _word(value: object) -> str:
    """A text that is short. Raises `TooLong`."""
    text = _text(value)
    if len(text) > _LONGEST_WORD:
        raise TooLong(f"the answer has a name of more than {_LONGEST_WORD:,} characters")
    return text
