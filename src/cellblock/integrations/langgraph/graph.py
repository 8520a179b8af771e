"""A whole agent: a model, the tools, and a node that finds the content of their calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import anyio
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import patch_config
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest

from cellblock.hosting.to_thread import LARGE, off_loop
from cellblock.integrations.langgraph.content import (
    CONTENT_TOOLS,
    PENDING,
    AgentState,
    content_for,
    contents,
    field_of,
    id_of,
    last_answer,
    pending_update,
    refused,
    stored,
    tool_name,
)
from cellblock.integrations.langgraph.tools import create_sandbox_tools, threads_of

_in_order: ContextVar[anyio.Lock | None] = ContextVar("in_order", default=None)
"""Held by the one call of a message that is being carried out."""


def create_agent_graph(
    model: Any,
    *,
    store: object = None,
    thread_id: str | None = None,
    include_tools: Iterable[str] | None = None,
    images: bool = True,
    checkpointer: Any = None,
    interrupt_before: list[str] | None = None,
) -> CompiledStateGraph[Any]:
    """A compiled graph: the model answers, its calls are carried out, until it makes none.

    `model` is a chat model of LangChain's that takes tools. `store`, `thread_id`, `include_tools` and
    `images` are those of `create_sandbox_tools`. `checkpointer` is None for one in memory, False for none. With
    `interrupt_before=["tools"]` the graph waits before each step of tools: `pending_content` of its state is the code.
    """
    store = threads_of(store)  # no frame of an error holds its URL
    tools = create_sandbox_tools(store, thread_id, include_tools, images=images)
    asked: Runnable[Any, Any] = model.bind_tools(tools)

    def agent(state: AgentState, config: RunnableConfig) -> dict[str, object]:
        return _update(state, asked.invoke(state.get("messages", []), config))

    async def aagent(state: AgentState, config: RunnableConfig) -> dict[str, object]:
        message = await asked.ainvoke(state.get("messages", []), config)
        return await off_loop(LARGE, _update, state, message)

    graph = StateGraph(AgentState)
    graph.add_node("agent", RunnableLambda(agent, aagent, name="agent"))
    graph.add_node("tools", SandboxToolNode(tools))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", _next, ["tools", "agent", END])
    graph.add_edge("tools", "agent")
    saver = InMemorySaver() if checkpointer is None else checkpointer
    return graph.compile(checkpointer=saver, interrupt_before=interrupt_before)


def _update(state: AgentState, message: AIMessage) -> dict[str, object]:
    """Update of the state by a message of the model: itself, its content, and answers to calls that cannot be read."""
    message = stored(message)
    unreadable = [refused(call, _NOT_JSON.format(tool_name(call))) for call in message.invalid_tool_calls]
    return {"messages": [message, *unreadable], PENDING: pending_update(state.get(PENDING), message)}


_NOT_JSON = (
    "Error: the arguments of {} are not JSON, and nothing was done. Call it again; long content belongs into a fenced "
    "block of your message."
)


def _next(state: AgentState) -> str:
    messages = state.get("messages", [])
    message = last_answer(messages)
    if message is not None and message.tool_calls:
        return "tools"
    return "agent" if message is not None and message.invalid_tool_calls else END


class SandboxToolNode(ToolNode):
    """LangGraph's `ToolNode` for tools that take their content from a fenced block of the message.

    An error of a tool becomes a message, so that the model can go another way; so does a call of an unknown tool.
    """

    def __init__(
        self,
        tools: Sequence[BaseTool | Callable[..., Any]],
        *,
        name: str = "tools",
        handle_tool_errors: Any = True,
        messages_key: str = "messages",
    ) -> None:
        super().__init__(
            tools,
            name=name,
            handle_tool_errors=handle_tool_errors,
            messages_key=messages_key,
            wrap_tool_call=self._wrap,
            awrap_tool_call=self._awrap,
        )

    def invoke(self, input: Any, config: RunnableConfig | None = None, **given: Any) -> Any:
        """Carry out the calls of a message in their order: later ones may need what earlier ones made.

        Without an event loop LangGraph would begin each in a thread, in any order.
        """
        return super().invoke(input, patch_config(config, max_concurrency=1), **given)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **given: Any) -> Any:
        """The same on an event loop, where LangGraph begins all of them at once."""
        asked = _in_order.set(anyio.Lock())
        try:
            return await super().ainvoke(input, config, **given)
        finally:
            _in_order.reset(asked)

    def _wrap(self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Any]) -> Any:
        return self._unknown(request) or execute(with_content(request, self._messages_key))

    async def _awrap(self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[Any]]) -> Any:
        async with _in_order.get() or nullcontext():  # taken in the order in which the calls are begun
            found = await off_loop(LARGE, with_content, request, self._messages_key)
            return self._unknown(request) or await execute(found)

    def _unknown(self, request: ToolCallRequest) -> ToolMessage | None:
        call = request.tool_call
        if request.tool is not None:
            return None
        return refused(call, f"Unknown tool: {tool_name(call)}. There are: {', '.join(self.tools_by_name)}.")


def with_content(request: ToolCallRequest, messages_key: str = "messages") -> ToolCallRequest:
    """The request with the content of its message pending, unless some is already."""
    call = request.tool_call
    state: object = request.runtime.state
    if call["name"] not in CONTENT_TOOLS:
        return request
    if isinstance(state, list):
        pending, messages = None, state
    else:
        pending, messages = field_of(state, PENDING), field_of(state, messages_key)
    call_id = id_of(call)
    if content_for(pending, call_id):
        return request
    found = contents(last_answer(messages)).get(call_id)
    held = pending if isinstance(pending, dict) else {}
    known = {"messages": messages, PENDING: {**held, **({} if found is None else {call_id: found})}}
    return replace(request, runtime=replace(request.runtime, state=known))
