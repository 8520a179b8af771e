"""A model whose answers are written down beforehand: for tests, demos and documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy

from cellblock.errors import ModelError
from cellblock.models.protocol import Message, OnText, Reply, ToolSchema, Unopened, give
from cellblock.text import half_made

Answer = str | Reply | BaseException | type[BaseException]
"""A text, a whole reply, or an exception that is raised."""


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
