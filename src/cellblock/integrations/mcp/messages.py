"""Messages of clients, on every transport: valid text, with an id and a progress token that are short."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

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

_HALVES = (rb"\ud", rb"\uD")
_MOST_MENDED = 2**18
"""Bytes of a message: half a million halves of characters would take a tenth of a second."""
_MOST_ID = 200
"""Characters of an id or a progress token: answers and notifications repeat them."""
_NOTIFYING = ("notifications/", "$/")
"""Beginnings of names that notifications have, MCP's and those of other protocols of JSON-RPC."""
_FORM = f"is a whole number or a text, of at most {_MOST_ID} characters"


class NotTaken(Exception):
    """A message that is answered at once, by `answer`."""

    def __init__(self, code: int, said: str, number: object = None) -> None:
        super().__init__(said)
        known: Any = number if _is_short(number) else None
        self.answer = JSONRPCError(jsonrpc="2.0", id=known, error=ErrorData(code=code, message=said))


def read(data: bytes) -> tuple[bytes, JSONRPCMessage]:
    """A message, and its text without halves of characters. Raises `NotTaken`."""
    text = mended(data)
    try:
        told = from_json(text)
    except ValueError:
        raise NotTaken(PARSE_ERROR, "it cannot be read as JSON") from None
    try:
        message = jsonrpc_message_adapter.validate_python(told, by_name=False)
    except ValidationError:
        number = told.get("id") if isinstance(told, dict) else None
        raise NotTaken(INVALID_REQUEST, "it is not a JSON-RPC message", number) from None
    require_short(message, has_id="id" in told)
    return text, message


def require_short(message: JSONRPCMessage, *, has_id: bool = True) -> None:
    """Security border: `NotTaken` for a request whose id or progress token is too long, or of another type.

    The SDK takes a request with an id of another type for a notification, to which nothing is answered. Without
    `has_id` it is one; the SDK's own parser does not tell, and only names tell there.
    """
    if isinstance(message, JSONRPCNotification) and has_id and not message.method.startswith(_NOTIFYING):
        raise NotTaken(INVALID_REQUEST, f"the id of a request {_FORM}")
    if isinstance(message, JSONRPCRequest):
        if not _is_short(message.id):
            raise NotTaken(INVALID_REQUEST, f"the id of a request {_FORM}")
        meta = (message.params or {}).get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        if token is not None and not _is_short(token):
            raise NotTaken(INVALID_PARAMS, f"a progress token {_FORM}", message.id)


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


def _is_short(number: object) -> bool:
    if isinstance(number, str):
        return len(number) <= _MOST_ID
    return type(number) is int and abs(number) < 10**_MOST_ID
