"""An MCP server: sessions for every client that speaks the Model Context Protocol, on stdio and streamable HTTP.

The protocol is stateless: which session a call is for is an argument of the call, and a field of its result.
"""

from __future__ import annotations

from cellblock.errors import CellblockError

try:
    import mcp.server.mcpserver  # noqa: F401 - the official SDK, from its version 2 on
except ModuleNotFoundError as error:
    raise CellblockError(
        f"an MCP server needs the package mcp, 2.3 or newer: {error}", hint='pip install "cellblock[mcp]"'
    ) from None

from cellblock.integrations.mcp.http import TokenWall, listen, serve_http
from cellblock.integrations.mcp.server import SessionServer, open_server
from cellblock.integrations.mcp.stdio import serve_stdio

__all__ = ["SessionServer", "open_server", "serve_stdio", "serve_http", "listen", "TokenWall"]
