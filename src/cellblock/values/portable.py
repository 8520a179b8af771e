"""Portable values, which may cross from a worker to the host: `encode` inside the wall, `decode` on the host.

A value becomes a tree of what JSON holds plus a list of buffers. None, bool, 64-bit int, finite float, text
and list stand for themselves; everything else is an object with one member whose name is its tag:

    {"int": "0x1ff…"}  {"float": "7ff8000000000000"}  {"complex": [re, im]}  {"text": BLOB}  {"bytes": BLOB}
    {"bytearray": BLOB}  {"tuple": ITEMS}  {"set": ITEMS}  {"frozenset": ITEMS}  {"dict": [ITEMS, ITEMS]}
    {"ints": BLOB}  {"floats": BLOB}  {"range": [a, b, c]}  {"slice": [a, b, c]}
    {"date": [y, m, d]}  {"time": [h, m, s, us, fold, ZONE]}  {"datetime": [y, m, d, h, m, s, us, fold, ZONE]}
    {"timedelta": [d, s, us]}  {"timezone": [TIMEDELTA, name?]}  {"zone": key}
    {"decimal": text}  {"fraction": [n, d]}  {"uuid": hex}  {"path": [class, text]}
    {"enum": [type, name]}  {"record": [type, names, ITEMS]}  {"opaque": [type, repr, reason]}
    {"array": [dtype, shape, BLOB, by columns?]}  {"scalar": [dtype, BLOB]}  {"table": ITEMS}

BLOB is hexadecimal text below 1 KiB, else the number of a buffer. ITEMS is a list, or {"ints"} / {"floats"}:
128 or more numbers of one kind are 8 bytes each, which Python packs and unpacks without a loop.

No method of a value's own class ever runs: at `local` the encoder shares a process with the host (L9). What
derives from a built-in class goes as what it holds. `pack_or_opaque` alone shows what it stands for. The decoder takes
the bytes as hostile (W7): it builds from the table above or raises `MalformedValue`.

`pack` makes buffers alone: the tree as JSON text first, then the bytes that it names. The reader of a message passes
these on unread; they are taken apart when somebody asks for the value.
"""

from __future__ import annotations

import json

from cellblock.values import room
from cellblock.values.decode import decode
from cellblock.values.encode import encode
from cellblock.values.forms import (
    MAX_BYTES,
    MAX_DEPTH,
    Buffer,
    Encoded,
    EnumName,
    MalformedValue,
    NotPortable,
    Opaque,
    Record,
    opaque,
)
from cellblock.values.pieces import loads
from cellblock.values.room import MAX_ROOM

__all__ = [
    "Buffer",
    "encode",
    "decode",
    "opaque",
    "Encoded",
    "Opaque",
    "Record",
    "EnumName",
    "NotPortable",
    "MalformedValue",
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_ROOM",
    "pack",
    "pack_or_opaque",
    "unpack",
]

_dumps = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_STAND_INS = 100
"""Items of a value that may be `Opaque`: the class of each makes what it shows."""


def pack(encoded: Encoded) -> tuple[Buffer, ...]:
    """The buffers of a value; `NotPortable` if they would take more of the reader's memory than it has for them."""
    text = _dumps(encoded.tree).encode()
    if encoded.room > room.MAX_ROOM or not room.fits(text, room.MAX_ROOM):
        raise NotPortable(f"more than {room.MAX_ROOM >> 20} MB to whoever reads it")
    return (text, *encoded.buffers)


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
    return decode(tree, buffers[1:], empties=True)
