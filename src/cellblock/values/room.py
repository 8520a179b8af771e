"""The room that reading takes, estimated from bytes before anything is built of them.

JSON grows up to eightyfold when it is parsed and rebuilt, packed numbers sevenfold, text sixfold. The figures are
bounds, measured with CPython 3.11 on what is dearest of each kind; writer and reader hold the same ones, so that
what is sent is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from sys import getsizeof

from cellblock.values.forms import Record
from cellblock.values.pieces import parts

MAX_ROOM = 256 * 2**20
"""Bytes for the tree of a value, and as many for its buffers and the parts of its paths."""

COST = 16
"""Bytes of text that take as long to read as a byte of a value may: up to 1.5 µs."""

_ITEM, _TEXT, _LIST, _OBJECT = 56, 48, 176, 232
"""Bytes that an item, a text beside its characters, a list and an object take, parsed and as what is made of them."""

_DENSEST = 110
_PIECE = 2**16
"""Bytes of text that are gone through in one call, which lets no other thread run."""
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
"""Also one that does not end, so that no text of quotes and backslashes is gone through more than once."""
_WHOLE = re.compile(rb'(?:[^"]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.DOTALL)
_WITH_PARTS = (list, tuple, set, frozenset)
_COMPOSED = (*_WITH_PARTS, Mapping, Record)
_LEAVES = frozenset({str, bytes, int, float, bool, type(None)})
_CONTINUING = bytes(range(0x80, 0xC0))


def fits(text: bytes, most: int) -> bool:
    """True if reading ASCII JSON takes at most so many bytes. Costs linear time, and little room of its own."""
    if len(text) * _DENSEST <= most:
        return True
    left = most - _characters(text)
    if _parts(text, text.count(b'"')) <= left:  # as if what strings hold were parts as well
        return True
    at = 0
    while at < len(text) and left >= 0:
        end = _end_of_piece(text, at)
        bare, strings = _STRING.subn(b"", text[at:end])
        left -= _parts(bare, 2 * strings)
        at = end
    return left >= 0


def taken(line: bytes) -> int:
    """Bytes that reading a line of ASCII JSON takes, of a length that may be gone through at once."""
    bare, strings = _STRING.subn(b"", line)
    return _characters(line) + _parts(bare, 2 * strings)


def worst(text: bytes) -> int:
    """Most memory that reading ASCII JSON takes, whatever it says."""
    return min(len(text) * _DENSEST, MAX_ROOM)


def held(value: object) -> int:
    """Bytes that a value takes, what is in it included; small numbers and texts take ten times those they came in."""
    total, found = getsizeof(value), [value]
    while found:
        one = found.pop()
        if isinstance(one, Record):
            one = one.fields
        if isinstance(one, Mapping):
            inside: list[object] = [*one, *one.values()]
        else:
            inside = list(one) if isinstance(one, _WITH_PARTS) else []
        for some in parts(inside):
            total += sum(map(getsizeof, some))
            found += [part for part in some if type(part) not in _LEAVES and isinstance(part, _COMPOSED) and part]
    return total


def of_numbers(raw: bytes) -> int:
    """Of 8 bytes for each number: the copy, the array, and a list of objects of up to 32."""
    return 7 * len(raw)


def of_text(raw: bytes) -> int:
    """Of UTF-8: one character beyond Latin-1 makes all of a text up to four times as wide."""
    if raw.isascii():
        return 2 * len(raw)
    return 2 * len(raw) + 4 * len(raw.translate(None, _CONTINUING))


def of_bytes(raw: bytes) -> int:
    """Of bytes and of arrays: the copy, and what is made of it."""
    return 2 * len(raw)


def of_path(text: str, is_key: bool) -> int:
    """Of a path's parts, each a text of its own. Hashing one interns them, which CPython 3.12 does for ever."""
    parts = 1 + text.count("/") + text.count("\\")
    return (1024 if is_key else 160) * parts


def _characters(text: bytes) -> int:
    escapes = text.count(b"\\u")
    return 2 * len(text) + (8 * (len(text) - 5 * escapes) if escapes else 2 * len(text))


def _parts(text: bytes, quotes: int) -> int:
    items = text.count(b",") + text.count(b":") + 1
    return _ITEM * items + _TEXT * (quotes // 2) + _LIST * text.count(b"[") + _OBJECT * text.count(b"{")


def _end_of_piece(text: bytes, at: int) -> int:
    """End of about a megabyte that cuts no string in two."""
    whole = _WHOLE.match(text, at, at + _PIECE)
    if whole is not None and whole.end() > at:
        return whole.end()
    string = _STRING.match(text, at)
    return string.end() if string is not None else len(text)
