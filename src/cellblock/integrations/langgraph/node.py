"""A tool node that finds the content of its calls: in the state, or in the message that makes them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import patch_config
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest

from cellblock.hosting.to_thread import LARGE, off_loop
from cellblock.integrations.langgraph.prepared import CONTENT_TOOLS, called, contents, id_of, last_answer, refused
from cellblock.integrations.langgraph.state import PENDING, content_for, field_of


class SandboxToolNode(ToolNode):
    """LangGraph's `ToolNode`, with which content goes past the arguments of calls: from a fenced block of the message.

    Whatever a tool raises becomes a message, so that the model can go another way; so does a tool that there is not.
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
        """Carry the calls of a message out one after another: the later ones may need what the earlier ones made.

        Without an event loop LangGraph begins each in a thread, in any order.
        """
        return super().invoke(input, patch_config(config, max_concurrency=1), **given)

    def _wrap(self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Any]) -> Any:
        return self._unknown(request) or execute(with_content(request, self._messages_key))

    async def _awrap(self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[Any]]) -> Any:
        found = await off_loop(LARGE, with_content, request, self._messages_key)
        return self._unknown(request) or await execute(found)

    def _unknown(self, request: ToolCallRequest) -> ToolMessage | None:
        call = request.tool_call
        if request.tool is not None:
            return None
        return refused(call, f"Unknown tool: {called(call)}. There are: {', '.join(self.tools_by_name)}.")


def with_content(request: ToolCallRequest, messages_key: str = "messages") -> ToolCallRequest:
    """The request, with what the message has for its call among what is pending, unless something is already."""
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
