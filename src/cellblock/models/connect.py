"""`connect`: an object that an agent can call, made of anything that a caller names a model."""

from __future__ import annotations

import sys
from inspect import isawaitable, isclass, iscoroutinefunction

from anyio import CapacityLimiter

from cellblock.errors import ModelError
from cellblock.hosting import to_thread
from cellblock.models.protocol import (
    MOST_CALLS,
    Connected,
    Message,
    Model,
    OnText,
    Reply,
    ToolSchema,
    Unopened,
    give,
    within,
)
from cellblock.models.retrying import OnRetry, Patience
from cellblock.text import half_made, line, message_of, type_name


def connect(
    model: str | object, *, timeout_seconds: float = 600.0, retries: int = 5, on_retry: OnRetry | None = None
) -> Connected:
    """A model that can be called: of a name, an object with `complete`, a LangChain chat model, or what is one already.

    One request may take `timeout_seconds`, all of one reply twice that. Requests to an endpoint are made again up to
    `retries` times where that may help; `on_retry` is told before each wait. Raises `ModelError` where the model is
    nothing of these, and where an endpoint's key or package is missing.
    """
    if isinstance(model, str):
        from cellblock.models.openai import EndpointModel

        patience = Patience(timeout_seconds=timeout_seconds, retries=retries, total_seconds=2 * timeout_seconds)
        return EndpointModel(model, patience=patience, on_retry=on_retry)
    if not isclass(model):
        if isinstance(model, Connected):
            return model
        if "langchain_core" in sys.modules:
            from cellblock.models.langchain import LangChainModel, is_langchain

            if is_langchain(model):
                return LangChainModel(model, timeout_seconds=timeout_seconds)
        if callable(getattr(model, "complete", None)):
            return CalledModel(model, timeout_seconds=timeout_seconds)  # type: ignore[arg-type]  # as far as can be seen
    what = f"the class {model.__name__}" if isclass(model) else f"an object of type {type(model).__name__}"
    raise ModelError(
        f"{what} is not a model",
        kind="setup",
        hint="give the name of an endpoint's model, an object with complete(messages, tools), a LangChain chat model "
        "or a ScriptedModel",
    )


class CalledModel(Unopened):
    """Calls `model.complete`: on the event loop where it is async, else in a thread, so that it blocks nobody.

    Past `timeout_seconds` the answer is no longer waited for. A thread cannot be ended: it runs on, at most until the
    program leaves, and its answer is dropped. What `complete` raises becomes a `ModelError`, which has it as its cause;
    nothing is tried again.
    """

    def __init__(self, model: Model, *, timeout_seconds: float) -> None:
        self.name = line(getattr(model, "name", type(model).__name__))
        self._model = model
        self._timeout = timeout_seconds

    async def reply(self, messages: list[Message], tools: list[ToolSchema], on_text: OnText | None = None) -> Reply:
        with within(self._timeout, self.name):
            try:
                answer = await self._ask(messages, tools)
            except ModelError:
                raise
            except Exception as error:  # the user's own code: anything
                said = f"{self.name}.complete raised {type_name(error)}: {message_of(error, 10_000)}"
                raise ModelError(said, kind="raised", hint="mend the model") from error
        if isinstance(answer, str):
            answer = Reply(text=answer, model=self.name)
        if not isinstance(answer, Reply):
            raise ModelError(
                f"{self.name}.complete returned a {type(answer).__name__}",
                kind="malformed",
                hint="return a str or a cellblock.models.Reply",
            )
        if len(answer.requests) > MOST_CALLS:
            raise ModelError(
                f"{self.name}.complete returned more than {MOST_CALLS:,} tool calls",
                kind="malformed",
                hint="ask for less, such as by max_tokens",
            )
        give(answer.text, on_text)
        return answer

    async def _ask(self, messages: list[Message], tools: list[ToolSchema]) -> object:
        complete = self._model.complete
        answer: object
        if iscoroutinefunction(complete):
            answer = complete(messages, tools)
        else:
            alone = CapacityLimiter(1)
            answer = await to_thread.run_sync(complete, messages, tools, abandon_on_cancel=True, limiter=alone)
        return await answer if isawaitable(answer) else answer

    @half_made
    def __repr__(self) -> str:
        return f"CalledModel({self.name})"
