"""An MCP server: sessions for every client that speaks the Model Context Protocol, on stdio and streamable HTTP.

The protocol is stateless: which session a call is for is an argument of the call, and a field of its result.
"""

from __future__ import annotations

from cellblock.errors import needing

with needing("mcp", "an MCP server needs the package mcp, 2.3 or newer"):
    import mcp.server.mcpserver  # noqa: F401 - the official SDK, from its version 2 on

from cellblock.integrations.mcp.http import TokenWall, listen, serve_http
from cellblock.integrations.mcp.messages import serve_stdio
from cellblock.integrations.mcp.server import SessionServer, open_server

__all__ = ["SessionServer", "open_server", "serve_stdio", "serve_http", "listen", "TokenWall"]
