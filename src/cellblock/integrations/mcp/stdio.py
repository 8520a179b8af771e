"""The one client at stdin and stdout: every line that it sends is answered."""

from __future__ import annotations

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST
from pydantic import ValidationError

from cellblock.integrations.mcp.messages import NotTaken, read, require_short
from cellblock.integrations.mcp.server import SessionServer

Received = SessionMessage | Exception


async def serve_stdio(server: SessionServer) -> None:
    """Serve the one client at stdin and stdout, until it leaves: it closes one of them."""
    serving = server._lowlevel_server
    sent, received = anyio.create_memory_object_stream[Received]()
    try:
        async with stdio_server() as (incoming, outgoing), anyio.create_task_group() as tasks:
            tasks.start_soon(_receive, incoming, sent, outgoing)
            await serving.run(received, outgoing, serving.create_initialization_options())
            tasks.cancel_scope.cancel()
    except* (BrokenPipeError, ConnectionResetError):  # it does not read any more
        pass


async def _receive(
    incoming: ReadStream[Received], sent: MemoryObjectSendStream[Received], outgoing: WriteStream[SessionMessage]
) -> None:
    """Pass messages on; the SDK drops a line that its parser refuses, for whose answer the client would wait."""
    async with sent:
        async for item in incoming:
            try:
                await sent.send(_taken(item))
            except NotTaken as refused:
                await outgoing.send(SessionMessage(refused.answer))


def _taken(item: Received) -> Received:
    """A message as it is, or that of a line which the SDK's parser refused, mended. Raises `NotTaken`."""
    if isinstance(item, SessionMessage):
        require_short(item.message)
    if not isinstance(item, ValidationError):
        return item
    first, *_ = wrong = item.errors(include_url=False)
    if first["type"] == "json_invalid":
        return SessionMessage(read(first["input"].encode())[1])
    told = next((one["input"] for one in wrong if isinstance(one["input"], dict)), {})
    raise NotTaken(INVALID_REQUEST, "it is not a JSON-RPC message", told.get("id"))
