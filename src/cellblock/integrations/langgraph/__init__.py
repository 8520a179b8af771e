"""Tools for LangGraph and LangChain that run a model's code in sessions, one for each thread of a graph.

A model writes code and files in fenced blocks of its messages; calls of tools carry names alone.
"""

from __future__ import annotations

from cellblock.errors import needing

with needing("langgraph", "LangGraph cannot be used"):
    import langgraph.prebuilt  # noqa: F401

from cellblock.integrations.langgraph.content import AgentState
from cellblock.integrations.langgraph.graph import SandboxToolNode, create_agent_graph
from cellblock.integrations.langgraph.threads import Threads
from cellblock.integrations.langgraph.tools import TOOL_NAMES, create_sandbox_tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellblock.integrations.langgraph.middleware import SandboxMiddleware, describe_call

__all__ = [
    "create_sandbox_tools",
    "SandboxToolNode",
    "AgentState",
    "create_agent_graph",
    "Threads",
    "TOOL_NAMES",
    "SandboxMiddleware",
    "describe_call",
]


def __getattr__(name: str) -> object:
    """The middleware needs more of LangChain, which takes long to import."""
    if name not in ("SandboxMiddleware", "describe_call"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cellblock.integrations.langgraph import middleware

    return getattr(middleware, name)
