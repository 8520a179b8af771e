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
"""

from __future__ import annotations

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
from cellblock.values.packing import pack, pack_or_opaque, unpack
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
