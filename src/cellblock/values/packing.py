"""A portable value as buffers alone: its tree as JSON text first, then the bytes that the tree names.

The reader of a message passes these on unread; they are taken apart when somebody asks for the value.
"""

from __future__ import annotations

import json

from cellblock.values import room
from cellblock.values.decode import decode
from cellblock.values.encode import encode
from cellblock.values.forms import MAX_BYTES, Buffer, Encoded, MalformedValue, NotPortable, opaque
from cellblock.values.pieces import loads

_dumps = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def pack(encoded: Encoded) -> tuple[Buffer, ...]:
    """The buffers of a value; `NotPortable` if they would take more of the reader's memory than it has for them."""
    text = _dumps(encoded.tree).encode()
    if encoded.room > room.MAX_ROOM or not room.fits(text, room.MAX_ROOM):
        raise NotPortable(f"more than {room.MAX_ROOM >> 20} MB to whoever reads it")
    return (text, *encoded.buffers)


_STAND_INS = 100
"""Items of a value that may be `Opaque`: the class of each makes what it shows."""


def pack_or_opaque(value: object, max_bytes: int) -> tuple[Buffer, ...]:
    """The buffers of a value, with an `Opaque` in place of an item that is not portable, or else of the whole value.

    Runs the `__repr__` of what that stands for.
    """
    try:
        return pack(encode(value, max_bytes=max_bytes, max_opaque=_STAND_INS))
    except NotPortable as error:
        reason = error.reason
    except MemoryError:
        reason = "there was no memory for its portable form"
    return pack(encode(opaque(value, reason=reason)))


def unpack(buffers: tuple[Buffer, ...]) -> object:
    """Security border: the value in buffers from inside a wall; `MalformedValue` if `pack` did not make them."""
    if not buffers or len(buffers[0]) > MAX_BYTES:
        raise MalformedValue("no tree, or one that is too large")
    text = bytes(buffers[0])
    if not text.isascii():
        raise MalformedValue("the tree is not ASCII")
    if not room.fits(text, room.MAX_ROOM):
        raise MalformedValue(f"a tree of more than {room.MAX_ROOM >> 20} MB when it is read")
    try:
        tree = loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedValue(f"the tree is not JSON: {type(error).__name__}") from None
    del text
    return decode(tree, buffers[1:], spends=True)
