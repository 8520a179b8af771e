"""From whatever a caller names a model to what an agent can call."""

from __future__ import annotations

import sys
from inspect import isclass

from cellblock.errors import ModelError
from cellblock.models.called import CalledModel
from cellblock.models.protocol import Connected
from cellblock.models.retrying import OnRetry, Patience


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
