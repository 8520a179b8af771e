"""The tools as a middleware for `create_agent` of LangChain."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware import AgentState as LangChainState
from langchain_core.messages import AIMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime

from cellblock.hosting.to_thread import LARGE, off_loop
from cellblock.integrations.langgraph.content import (
    PENDING,
    Pending,
    content_for,
    id_of,
    last_answer,
    merge_files,
    merge_pending,
    pending_update,
    stored,
)
from cellblock.integrations.langgraph.graph import with_content
from cellblock.integrations.langgraph.tools import create_sandbox_tools, threads_of
from cellblock.text import inert, line, represent, text_of

_MOST_SHOWN = 100_000
_MOST_NAME = 1_000
_CONTENT = "the content"


class SandboxState(LangChainState[Any]):
    """Fields of the tools in the state of an agent."""

    pending_content: NotRequired[Annotated[Pending, merge_pending]]
    created_files: NotRequired[Annotated[list[str], merge_files]]


class SandboxMiddleware(AgentMiddleware[SandboxState, Any, Any]):
    """Brings the tools of `create_sandbox_tools`, whose arguments it takes: `create_agent(model, middleware=[…])`.

    A middleware that asks people for approval goes before it in the list: `describe_call` shows them the code.
    """

    state_schema = SandboxState

    def __init__(
        self,
        store_or_url: object = None,
        thread_id: str | None = None,
        include_tools: Iterable[str] | None = None,
        *,
        images: bool = True,
    ) -> None:
        super().__init__()
        store_or_url = threads_of(store_or_url)  # no frame of an error holds the URL
        self.tools = create_sandbox_tools(store_or_url, thread_id, include_tools, images=images)

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
        return _stored(handler(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        return await off_loop(LARGE, _stored, await handler(request))

    def after_model(self, state: SandboxState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Make the content of the message pending, and remove that of calls that were not carried out."""
        return {PENDING: pending_update(state.get(PENDING), last_answer(state["messages"]))}

    async def aafter_model(self, state: SandboxState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        return await off_loop(LARGE, self.after_model, state, runtime)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        return handler(with_content(request))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        return await handler(await off_loop(LARGE, with_content, request))


def _stored(response: ModelResponse[Any]) -> ModelResponse[Any]:
    result = [stored(one) if isinstance(one, AIMessage) else one for one in response.result]
    return replace(response, result=result)


def describe_call(call: Any, state: Any, runtime: Any) -> str:
    """Description of a call for the person who is to approve it: its arguments, and the content that it takes.

    Text of several lines is set in under its name, so that none of them looks like a name.
    For `HumanInTheLoopMiddleware(interrupt_on={"python_run_prepared": {"description": describe_call, …}})`.
    """
    given: dict[object, object] = call["args"]
    parts = [(_named(text_of(key, max_chars=_MOST_NAME)), _whole(value)) for key, value in given.items()]
    content = content_for(state.get(PENDING), id_of(call))
    return "\n".join([line(call["name"]), *(_part(*one) for one in [*parts, (_CONTENT, content)] if one[1])])


def _named(key: str) -> str:
    """The name of an argument, in quotation marks where it is none that a tool has."""
    return key if key.isascii() and key.isidentifier() else represent(key, max_chars=_MOST_NAME)


def _whole(value: object) -> str:
    """A text as it is, as code in it runs whole; of anything else so much."""
    return value if isinstance(value, str) else text_of(value, max_chars=_MOST_SHOWN)


def _part(named: str, text: str) -> str:
    """A line, or lines that are set in."""
    text = inert(text)
    return f"{named}: {text}" if "\n" not in text else f"{named}:\n    " + text.replace("\n", "\n    ")
