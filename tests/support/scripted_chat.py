"""A chat model of LangChain's that answers by a script, and calls of tools for it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

_numbers = itertools.count(1)


class ScriptedChat(BaseChatModel):
    """Answers with the script's messages in order, or with what a function makes of the messages."""

    script: list[AIMessage] = Field(default_factory=list)
    answer: Callable[[list[BaseMessage]], AIMessage] | None = None
    at: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> ScriptedChat:  # type: ignore[override]
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        if self.answer is not None:
            message = self.answer(messages)
        else:
            message, self.at = self.script[self.at], self.at + 1
        return ChatResult(generations=[ChatGeneration(message=message)])


def scripted(*script: AIMessage) -> ScriptedChat:
    return ScriptedChat(script=[*script, AIMessage("done")])


def call(name: str, id: str = "", **arguments: object) -> dict[str, Any]:
    """A call of a tool, with an id of its own unless one is given."""
    return {"name": name, "args": arguments, "id": id or f"call-{next(_numbers)}"}


def says(text: object, *calls: dict[str, Any]) -> AIMessage:
    return AIMessage(content=text, tool_calls=list(calls))  # type: ignore[arg-type]


def runs(code: str, path: str = "/tmp/a.py", tag: str = "python") -> AIMessage:
    """A message whose block is run."""
    return says(f"So:\n```{tag}\n{code}\n```", call("python_run_prepared", file_path=path, description="it"))


def told(state: dict[str, Any] | Iterable[BaseMessage]) -> list[str]:
    """What the tools told, in order."""
    messages = state["messages"] if isinstance(state, dict) else state
    return [str(message.content) for message in messages if message.type == "tool"]
