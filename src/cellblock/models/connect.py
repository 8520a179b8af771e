"""From whatever a caller names a model to what an agent can call."""

from __future__ import annotations

from inspect import isclass

from cellblock.errors import ModelError
from cellblock.models.called import CalledModel
from cellblock.models.protocol import Connected


def connect(model: str | object, *, timeout_seconds: float = 600.0, retries: int = 5) -> Connected:
    """A model that can be called: of a name, an object with `complete`, a LangChain chat model, or what is one already.

    One request may take `timeout_seconds`, and is tried again up to `retries` times where that may help. Raises
    `ModelError` where it is nothing of these, and where an endpoint's key or package is missing.
    """
    if isinstance(model, str):
        raise ModelError("endpoints are not there yet", kind="setup")
    if not isclass(model):
        if isinstance(model, Connected):
            return model
        if callable(getattr(model, "complete", None)):
            return CalledModel(model, timeout_seconds=timeout_seconds)  # type: ignore[arg-type]  # as far as can be seen
    raise ModelError(
        f"{'the class ' + model.__name__ if isclass(model) else 'a ' + type(model).__name__} is no model",
        kind="setup",
        hint="give the name of an endpoint's model, an object with complete(messages, tools), a LangChain chat model "
        "or a ScriptedModel",
    )
