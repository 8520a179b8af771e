"""JSON that crosses the wall; and descriptions that grow with a session, as lines of it.

On each line is a field's name, and its value or one item of it. Neither side holds all of it at once: long lists of an
item go on on lines of their own, so that no line grows with the session, and the reader takes room for each line before
it parses it, until its item has been made use of.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

from cellblock.values import room
from cellblock.values.pieces import loads
from cellblock.wire.frames import ProtocolError

MAX_BYTES = 2 * 2**20
"""Of a line."""
_ITEMS_A_LINE = 100
_CONTINUED = "+"
"""Begins the name of a list of the item before, of which a line holds more."""
# Held here so that a cell which rebinds json's names breaks nothing of the worker's.
as_json = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def from_json(text: bytes, what: str = "event") -> object:
    """Value of JSON text from inside the wall, or ProtocolError. Bound its size first."""
    try:
        return loads(text)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"{what} is not JSON: {error}") from None


def packed(items: Iterable[tuple[str, object]]) -> Iterator[bytes]:
    """The lines of fields and their items."""
    for line in _cut(items):
        yield as_json(line).encode() + b"\n"


def _cut(items: Iterable[tuple[str, object]]) -> Iterator[tuple[str, object]]:
    for field, item in items:
        if not isinstance(item, dict):
            yield field, item
            continue
        long = {key: one for key, one in item.items() if type(one) is list and len(one) > _ITEMS_A_LINE}
        yield field, {**item, **{key: one[:_ITEMS_A_LINE] for key, one in long.items()}}
        for key, one in long.items():
            for first in range(_ITEMS_A_LINE, len(one), _ITEMS_A_LINE):
                yield _CONTINUED + key, one[first : first + _ITEMS_A_LINE]


def read(file: BinaryIO, take: Callable[[int], object] = int) -> Iterator[tuple[str, Any]]:
    """Security border: the fields and items of lines.

    `take` gets how many bytes of memory a line takes, before it is parsed, and may raise. It gets as many less than
    none once the item was made use of: what is kept of that is the caller's to count.
    """
    last, taken = list[tuple[str, Any]](), 0
    while line := file.readline(MAX_BYTES + 1):
        if len(line) > MAX_BYTES:
            raise ProtocolError(f"a line of more than {MAX_BYTES:,} bytes")
        take(size := room.taken(line))
        parsed = from_json(line, "a line")
        if type(parsed) is not list or len(parsed) != 2 or type(parsed[0]) is not str:
            raise ProtocolError("expected a field")
        field, item = parsed
        if field.startswith(_CONTINUED):
            before = last[0][1] if last else None
            begun = before.get(field.removeprefix(_CONTINUED)) if type(before) is dict else None
            if type(begun) is not list or type(item) is not list:
                raise ProtocolError("a line that goes on with no list")
            begun += item
            taken += size
            continue
        yield from last
        take(-taken)
        last, taken = [(field, item)], size
    yield from last
    take(-taken)
