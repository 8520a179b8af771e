"""The one client at stdin and stdout: every line that it sends is answered."""

from __future__ import annotations

from contextlib import suppress

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import from_json

from cellblock.integrations.mcp.server import SessionServer
from cellblock.text import BadJson, read_json, write_json

Received = SessionMessage | Exception
_HALVES = (rb"\ud", rb"\uD")
_MOST_MENDED = 2**18
"""Bytes of a message: half a million halves of characters would take a tenth of a second."""


async def serve_stdio(server: SessionServer) -> None:
    """Serve the one client at stdin and stdout, until it leaves."""
    serving = server._lowlevel_server
    sent, received = anyio.create_memory_object_stream[Received]()
    async with stdio_server() as (read, write), anyio.create_task_group() as tasks:
        tasks.start_soon(_receive, read, sent, write)
        await serving.run(received, write, serving.create_initialization_options())
        tasks.cancel_scope.cancel()


def mended(message: bytes) -> bytes:
    """A message without halves of characters, which parsers refuse and models write; another message as it is."""
    if len(message) > _MOST_MENDED or not any(half in message for half in _HALVES):
        return message
    try:
        from_json(message)
    except ValueError:
        with suppress(BadJson):
            return write_json(read_json(message)).encode()
    return message


async def _receive(
    read: ReadStream[Received], sent: MemoryObjectSendStream[Received], write: WriteStream[SessionMessage]
) -> None:
    """Pass messages on; the SDK drops a line that its parser refuses, for whose answer the client would wait."""
    async with sent:
        async for item in read:
            found = _parsed(item) if isinstance(item, ValidationError) else _without_id(item)
            if found is not None and isinstance(found.message, JSONRPCError):
                await write.send(found)
            else:
                await sent.send(found or item)


def _without_id(item: Received) -> SessionMessage | None:
    """The answer to a request whose id is null or true: the SDK takes it for a notification."""
    match item:
        case SessionMessage(message=JSONRPCNotification(method=method)) if not method.startswith("notifications/"):
            told = ErrorData(code=INVALID_REQUEST, message="the id of a request is a number or a text")
            return SessionMessage(JSONRPCError(jsonrpc="2.0", id=None, error=told))
    return None


def _parsed(error: ValidationError) -> SessionMessage:
    """The message of a line that the parser refused, mended, or the answer to a line that is no message."""
    (first, *_), code = (wrong := error.errors(include_url=False)), INVALID_REQUEST
    if first["type"] == "json_invalid":
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(mended(first["input"].encode()), by_name=False))
        except ValidationError:
            code = PARSE_ERROR
    data = next((one["input"] for one in wrong if isinstance(one["input"], dict)), {})
    number = data.get("id")
    told = ErrorData(code=code, message="the line is not a JSON-RPC message")
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number if type(number) in (int, str) else None, error=told))
