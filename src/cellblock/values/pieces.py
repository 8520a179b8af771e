"""JSON from inside a wall, read a piece at a time: no call holds the interpreter for longer than a millisecond or two.

A parser in C keeps every other thread from running until it has read all of its text, a thread's own being no remedy.
So a text is cut after commas, each piece is parsed with the brackets that are open around it, and what comes of it is
put on to the containers that were left open.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

AT_ONCE = 4096
"""Items that one call goes through."""
_PIECE = 2**15
_DEEPEST = 500
_UNIT = re.compile(rb'[^",]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^",]*+)*+,', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_CLOSING = bytes.maketrans(b"[{", b"]}")
_KEY = rb'"\u0000 goes on"'
_loads = json.JSONDecoder().decode


def parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """The items, so many at a time."""
    return (items[at : at + AT_ONCE] for at in range(0, len(items), AT_ONCE))


def loads(text: bytes) -> Any:
    """Value of ASCII JSON; ValueError for what is none, or nested deeper than 500. Costs linear time."""
    if len(text) <= _PIECE:
        return _loads(text.decode("ascii"))
    root, spine, open_, at = None, list[Any](), b"", 0
    while at < len(text):
        end = _end_of_piece(text, at)
        piece = text[at:end] if end == len(text) else text[at : end - 1]
        bare = b"".join(_unescaped(piece).split(b'"')[::2]).translate(None, _NO_BRACKETS)
        before, open_ = open_, _reduced(open_ + bare)
        around = before.replace(b"{", b"{%b:" % _KEY).removesuffix(b"%b:" % _KEY)
        node = _loads((around + piece + open_.translate(_CLOSING)[::-1]).decode("ascii"))
        if at:
            _put_on(spine, node)
        else:
            root = node
        spine = _opened(root, len(open_))
        if end < len(text) and not (spine and spine[-1]):
            raise ValueError("a comma after nothing")
        at = end
    if open_:
        raise ValueError("it does not end")
    return root


def _end_of_piece(text: bytes, at: int) -> int:
    """The place after a comma that is in no string, or the text's end."""
    if len(text) - at <= _PIECE:
        return len(text)
    piece = _unescaped(text[at : at + _PIECE])
    comma = piece.rfind(b",")
    while piece.count(b'"', 0, comma + 1) % 2:  # it is in a string, which begins at the quote before
        comma = piece.rfind(b",", 0, piece.rfind(b'"', 0, comma))
    if comma >= 0:
        return at + comma + 1
    found = _UNIT.match(text, at)  # however long that is
    return len(text) if found is None else found.end()


def _unescaped(piece: bytes) -> bytes:
    """As many bytes, in which every quote begins or ends a string."""
    return piece.replace(b"\\\\", b"__").replace(b'\\"', b"__") if b"\\" in piece else piece


def _reduced(brackets: bytes) -> bytes:
    """Brackets without those that close one of them."""
    for _ in range(_DEEPEST):
        shorter = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if shorter == brackets:
            break
        brackets = shorter
    if len(brackets) > _DEEPEST:
        raise ValueError("nested too deeply")
    return brackets


def _put_on(spine: list[Any], node: Any) -> None:
    """Put what a piece says on to the containers that were open before it."""
    for depth, container in enumerate(spine, 1):
        if type(node) is not type(container) or not node:
            raise ValueError("a piece that does not go on with what was before it")
        goes_on = None
        if type(node) is list:
            goes_on = node[0]
            container += node if depth == len(spine) else node[1:]
        else:
            if depth < len(spine):
                goes_on = node.pop(next(iter(node)))
            container.update(node)
        node = goes_on


def _opened(root: Any, depth: int) -> list[Any]:
    """The containers within one another that end a text, down to a depth."""
    found, last = list[Any](), root
    for _ in range(depth):
        if type(last) not in (list, dict):
            raise ValueError("an object that names a part twice")
        found.append(last)
        last = (last[-1] if type(last) is list else next(reversed(last.values()))) if last else None
    return found


_READ_AT_ONCE = 2**14
"""Bytes that are read in one step, in which no other thread of the program goes on."""


def with_halves(data: bytes) -> str:
    """Text of UTF-8 in which halves of characters stand alone. Raises UnicodeDecodeError."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        pieces, start = list[str](), 0
        while start < len(data):
            end = min(start + _READ_AT_ONCE, len(data))
            while start < end < len(data) and data[end] & 0xC0 == 0x80:  # within a character
                end -= 1
            end = end if end > start else len(data)
            pieces.append(data[start:end].decode("utf-8", "surrogatepass"))
            start = end
        return "".join(pieces)
