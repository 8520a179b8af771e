"""A whole agent: a model, the tools, and the edges between them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from cellblock.hosting.to_thread import LARGE, off_loop
from cellblock.integrations.langgraph.node import SandboxToolNode
from cellblock.integrations.langgraph.prepared import called, last_answer, refused, stored
from cellblock.integrations.langgraph.state import PENDING, AgentState, pending_update
from cellblock.integrations.langgraph.tools import create_sandbox_tools, threads_of


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
        return _said(state, asked.invoke(state.get("messages", []), config))

    async def aagent(state: AgentState, config: RunnableConfig) -> dict[str, object]:
        message = await asked.ainvoke(state.get("messages", []), config)
        return await off_loop(LARGE, _said, state, message)

    graph = StateGraph(AgentState)
    graph.add_node("agent", RunnableLambda(agent, aagent, name="agent"))
    graph.add_node("tools", SandboxToolNode(tools))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", _next, ["tools", "agent", END])
    graph.add_edge("tools", "agent")
    saver = InMemorySaver() if checkpointer is None else checkpointer
    return graph.compile(checkpointer=saver, interrupt_before=interrupt_before)


def _said(state: AgentState, message: AIMessage) -> dict[str, object]:
    """Update of the state by a message of the model: itself, content for its calls, answers to calls that are none."""
    message = stored(message)
    unreadable = [refused(call, _NOT_JSON.format(called(call))) for call in message.invalid_tool_calls]
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
