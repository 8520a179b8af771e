"""Requests and replies of models, and two protocols: one that users write, one that an agent calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

from anyio import fail_after

from cellblock.errors import ModelError
from cellblock.text import BadJson, bounded, valid

Message = dict[str, Any]
"""One message as chat-completions endpoints take it: `role` (system, user, assistant, tool), `content`, and where they
apply `tool_calls` and `tool_call_id`."""

ToolSchema = dict[str, Any]
"""One tool as those endpoints take it: `{"type": "function", "function": {"name": …, "parameters": …}}`."""

OnText = Callable[[str], None]
"""A function that is called with the pieces of an answer's text as they come."""

MOST_CALLS = 1_000
"""Tool calls of an answer."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A model's wish that a tool be called. `arguments` is None where `raw`, what it wrote, is no JSON object.

    Security border: texts are made valid, and arguments that no JSON holds, such as what is too deep, are none.
    """

    id: str
    name: str
    arguments: dict[str, Any] | None
    raw: str

    def __post_init__(self) -> None:
        _make_valid(self, "id", "name", "raw")
        try:
            object.__setattr__(self, "arguments", bounded(self.arguments))
        except BadJson:
            object.__setattr__(self, "arguments", None)


_MOST_TOKENS, _MOST_COST = 2**53, 1e300


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens that an answer took, as its endpoint tells them; `cached` are part of `input`.

    `cost` is in the endpoint's currency, US dollars as a rule, and None where it tells none.
    Security border: what is no count, or one that no answer takes, is 0, and what is no amount None.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float | None = None

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached"):
            count: object = getattr(self, name)
            known = isinstance(count, int) and not isinstance(count, bool) and 0 < count < _MOST_TOKENS
            object.__setattr__(self, name, count if known else 0)
        cost: object = self.cost
        known = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < _MOST_COST
        object.__setattr__(self, "cost", float(cost) if known else None)  # type: ignore[arg-type]

    def __add__(self, other: Tokens) -> Tokens:
        told = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Tokens(
            input=self.input + other.input,
            output=self.output + other.output,
            cached=self.cached + other.cached,
            cost=sum(told) if told else None,
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of a model.

    `finish` is why it ended: stop, length (the answer was cut), tool_calls, content_filter, or another word of the
    endpoint's. `tokens` are those of all `attempts`, as far as the endpoint told. `reasoning` is no part of `text`.
    Requests that have no id, or that of another, are given one: an answer to a request goes by it.
    Security border: texts are made valid.
    """

    text: str = ""
    requests: tuple[ToolRequest, ...] = ()
    tokens: Tokens = Tokens()
    model: str = ""
    finish: str = "stop"
    reasoning: str = ""
    attempts: int = 1

    def __post_init__(self) -> None:
        _make_valid(self, "text", "model", "finish", "reasoning")
        object.__setattr__(self, "requests", tuple(_told_apart(self.requests)))


def _told_apart(requests: Iterable[ToolRequest]) -> Iterator[ToolRequest]:
    known = {""}
    next_ = 0
    for number, one in enumerate(requests, 1):
        id_ = one.id
        if id_ in known:
            next_ = max(next_, number)  # the names from `number` up to `next_` are known
            while (id_ := f"call_{next_}") in known:
                next_ += 1
        known.add(id_)
        yield one if one.id == id_ else replace(one, id=id_)


def _make_valid(one: object, *names: str) -> None:
    for name in names:
        object.__setattr__(one, name, valid(getattr(one, name)))


class Model(Protocol):
    """The protocol for models that users write. An answer that is a `str` stands for `Reply(text=…)`; `complete` may
    be `async`."""

    def complete(self, messages: list[Message], tools: list[ToolSchema]) -> Reply | str: ...


@runtime_checkable
class Connected(Protocol):
    """The protocol that an agent calls. `connect` makes one of whatever a caller names a model.

    Within `async with` what it has open, connections to an endpoint, is kept from one reply to the next; without, each
    reply opens and closes its own. It may be entered several times over, and from several event loops.
    """

    name: str

    async def reply(self, messages: list[Message], tools: list[ToolSchema], on_text: OnText | None = None) -> Reply:
        """The answer to `messages`. Raises `ModelError`. `on_text` is given the text as it comes.

        Where an attempt broke off and another one followed, the pieces begin again: the `Reply` is what counts.
        """
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Unopened:
    """A model that has nothing open between replies: `async with` does nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None


def give(text: str, on_text: OnText | None) -> None:
    """Pass a text that is already there on, line by line."""
    if on_text is not None:
        for line in text.splitlines(keepends=True):
            on_text(line)


@contextmanager
def within(seconds: float, name: str) -> Iterator[None]:
    """Around waiting for the model `name`: `ModelError` after so many seconds."""
    try:
        with fail_after(seconds) as scope:
            yield
    except TimeoutError:
        if not scope.cancelled_caught:
            raise
        said = f"{name} did not answer within {seconds:g} s"
        raise ModelError(said, kind="timeout", hint="raise timeout_seconds") from None
