"""A portable value as buffers alone: its tree as JSON text first, then the bytes that the tree names.

The reader of a message passes these on unread; they are taken apart when somebody asks for the value.
"""

from __future__ import annotations

import json

from cellblock.values.containers import more_than
from cellblock.values.decode import decode
from cellblock.values.forms import MAX_BYTES, Buffer, Encoded, MalformedValue

MAX_CONTAINERS = 1_000_000
"""Lists and objects in a tree: each costs its reader about a hundred bytes and its writer two."""

_dumps = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_loads = json.JSONDecoder().decode


def pack(encoded: Encoded) -> tuple[Buffer, ...]:
    """The buffers of a value."""
    return (_dumps(encoded.tree).encode(), *encoded.buffers)


def is_too_nested(text: bytes) -> bool:
    """Whether a tree holds more lists and objects than its reader takes."""
    return more_than(MAX_CONTAINERS, text)


def unpack(buffers: tuple[Buffer, ...]) -> object:
    """Security border: the value in buffers from inside a wall; `MalformedValue` if `pack` did not make them."""
    if not buffers or len(buffers[0]) > MAX_BYTES:
        raise MalformedValue("no tree, or one that is too large")
    text = bytes(buffers[0])
    if is_too_nested(text):
        raise MalformedValue(f"more than {MAX_CONTAINERS} lists and objects")
    try:
        tree = _loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise MalformedValue(f"the tree is not JSON: {type(error).__name__}") from None
    return decode(tree, buffers[1:])
