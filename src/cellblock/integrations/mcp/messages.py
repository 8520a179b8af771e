"""Messages of clients, checked for every transport, and the transport of one client at stdin and stdout.

A message is valid text of a bounded size, with a short id and a short progress token.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import from_json

from cellblock.text import BadJson, read_json, write_json

if TYPE_CHECKING:
    from cellblock.integrations.mcp.server import SessionServer

_HALVES = (rb"\ud", rb"\uD")
_MOST_MENDED = 2**18
"""Bytes of a message that is mended: half a million halves of characters would take a tenth of a second."""
_MOST_ID = 200
"""Characters of an id or a progress token: answers and notifications repeat them."""
_NOTIFICATIONS = ("notifications/", "$/")
"""Prefixes of the methods of notifications, of MCP and of other protocols of JSON-RPC."""
_FORM = f"is a whole number or a text, of at most {_MOST_ID} characters"
_MOST_PARTS = 5_000
"""JSON values of a request. The SDK takes 2 microseconds of the loop for each."""
_MOST_DIGITS = 100_000
"""Digits of all numbers of a request: reading one of 4,000 digits takes 35 microseconds of the loop."""
_DIGITS = [b"%d" % digit for digit in range(10)]


class Refused(Exception):
    """A message that is refused with `answer`."""

    def __init__(self, code: int, said: str, number: object = None) -> None:
        super().__init__(said)
        known: Any = number if _is_short(number) else None
        self.answer = JSONRPCError(jsonrpc="2.0", id=known, error=ErrorData(code=code, message=said))


def read(data: bytes) -> tuple[bytes, JSONRPCMessage]:
    """Read a message: its text without halves of characters, and the message. Raises `Refused`."""
    text = mended(data)
    try:
        told = from_json(text)
    except ValueError:
        raise Refused(PARSE_ERROR, "it cannot be read as JSON") from None
    try:
        message = jsonrpc_message_adapter.validate_python(told, by_name=False)
    except ValidationError:
        number = told.get("id") if isinstance(told, dict) else None
        raise Refused(INVALID_REQUEST, "it is not a JSON-RPC message", number) from None
    require_short(message, has_id="id" in told)
    return text, message


def require_short(message: JSONRPCMessage, *, has_id: bool = True) -> None:
    """Security border: `Refused` for a request whose id or progress token is too long, or of another type.

    The SDK takes a request with an id of another type for a notification, which gets no answer. `has_id` is False where
    the message has no id; the SDK's own parser does not tell, so that the method's name decides there.
    """
    if isinstance(message, JSONRPCNotification) and has_id and not message.method.startswith(_NOTIFICATIONS):
        raise Refused(INVALID_REQUEST, f"the id of a request {_FORM}")
    if isinstance(message, JSONRPCRequest):
        if not _is_short(message.id):
            raise Refused(INVALID_REQUEST, f"the id of a request {_FORM}")
        meta = (message.params or {}).get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        if token is not None and not _is_short(token):
            raise Refused(INVALID_PARAMS, f"a progress token {_FORM}", message.id)


def mended(message: bytes) -> bytes:
    """Replace halves of characters, which models write and parsers refuse; another message stays as it is."""
    if len(message) > _MOST_MENDED or not any(half in message for half in _HALVES):
        return message
    try:
        from_json(message)
    except ValueError:
        with suppress(BadJson):
            return write_json(read_json(message)).encode()
    return message


def excess(body: bytes) -> str:
    """Count of JSON values or digits that a request's body exceeds; "" where it exceeds neither.

    All calls are of C and take linear time: a regular expression would hold every thread for a whole body.
    """
    plain = body.replace(rb"\\", b"").replace(rb"\"", b"")
    texts = plain.count(b'"') // 2
    if texts < _MOST_PARTS:
        rest = b"".join(plain.split(b'"')[::2])
        if sum(map(rest.count, _DIGITS)) >= _MOST_DIGITS:
            return f"{_MOST_DIGITS} digits"
        texts += rest.count(b"[") + rest.count(b"{") + rest.count(b",")
    return "" if texts < _MOST_PARTS else f"{_MOST_PARTS} parts"


def _is_short(number: object) -> bool:
    if isinstance(number, str):
        return len(number) <= _MOST_ID
    return type(number) is int and abs(number) < 10**_MOST_ID


# ------------------------------------------------------------------------------------------ stdio

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
    """Pass messages on, and answer lines that the SDK's parser refuses: it drops them, and the client would wait."""
    async with sent:
        async for item in incoming:
            try:
                await sent.send(_accepted(item))
            except Refused as refused:
                await outgoing.send(SessionMessage(refused.answer))


def _accepted(item: Received) -> Received:
    """A message as it is, or the mended one of a line that the SDK's parser refused. Raises `Refused`."""
    if isinstance(item, SessionMessage):
        require_short(item.message)
    if not isinstance(item, ValidationError):
        return item
    first, *_ = wrong = item.errors(include_url=False)
    if first["type"] == "json_invalid":
        return SessionMessage(read(first["input"].encode())[1])
    told = next((one["input"] for one in wrong if isinstance(one["input"], dict)), {})
    raise Refused(INVALID_REQUEST, "it is not a JSON-RPC message", told.get("id"))
