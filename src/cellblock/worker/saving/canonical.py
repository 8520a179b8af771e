"""The same bytes for the same values: equal texts of a stream are one object, and sets have one order.

A load makes other texts the same than were before: it interns the names of attributes, and libraries bring their own.
The pickler knows texts by identity alone. Where it wrote equal ones twice, its stream is read through and rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cellblock.worker.saving.streams import LONG, Sink

Memo = Mapping[int, tuple[int, Any]]
"""The objects that a pickler wrote, by their ids: the place of each, and the object."""
_VALUE = 4096
"""Texts of fewer characters are values; longer ones are objects that names may share."""
_ATOMS = frozenset(map(id, (type(None), bool, int, float, str, bytes)))
_LARGE_SET = 10_000
_BULK = 1000
"""More equal texts than these are data, and no names; reading through them would take longer than pickling."""
_LEAST = 4
"""Shorter frames are left out, as the pickler does."""
_ONE_FRAME = 2**16
"""Streams of less than this have one frame for each pickle as they are, and others get it."""
_PROTO, _FRAME, _MEMOIZE, _TEXT, _GET, _LONG_GET = 0x80, 0x95, 0x94, 0x8C, 0x68, 0x6A
_PLAIN = re.compile(rb"(?s:[^\x80\x82-\x84\x8a-\x8e\x94-\x96BCGJKMXcghijpqrTU]++|K.|M..|J.{4}|G.{8})*+")
"""A run of opcodes of fixed length that have nothing to do with the memo."""
_COUNTED = {_TEXT: 1, 0x58: 4, 0x8D: 8, 0x43: 1, 0x42: 4, 0x8E: 8, 0x96: 8, 0x8A: 1, 0x8B: 4}
"""Opcodes that a count follows, and then so many bytes: the length of the count."""
_EXTENSIONS = {0x82: 2, 0x83: 3, 0x84: 5}
"""The lengths of opcodes of `copyreg.add_extension`."""
_SPECIAL = frozenset((_GET, _LONG_GET, _MEMOIZE, _FRAME, _PROTO, *_COUNTED, *_EXTENSIONS))


def unify(sink: Sink, pickler: Any, begin: int) -> list[int]:
    """Have the stream that a sink holds be as if equal texts had been one; new places in the memo, by the old ones.

    Empty where they are what they were. In the pickler's memo so many objects were to `begin` with. The stream's
    first line is no pickle. It stays as it is where the sink has put parts of it away, or a great many texts are equal.
    """
    if sink.taken is None:
        return []
    memo: Memo = pickler.memo.copy()
    found = [one for _, one in memo.values() if type(one) is str]
    repeated = len(found) - len(set(found))
    if repeated > _BULK or (repeated == 0 and sink.held < _ONE_FRAME):
        return []
    numbers, again = _numbers(memo) if repeated else ([], frozenset[int]())
    sink.replace(list(_rewritten(sink.taken, numbers, again, begin)))
    return numbers


def _numbers(memo: Memo) -> tuple[list[int], frozenset[int]]:
    """The new place for each old one, and the old places of texts that were there before."""
    texts = {place: one for place, one in memo.values() if type(one) is str and len(one) < _VALUE}
    first: dict[str, int] = {}
    numbers: list[int] = []
    again: list[int] = []
    following = 0
    for place in range(len(memo)):
        number = first.setdefault(texts[place], following) if place in texts else following
        if number == following:
            following += 1
        else:
            again.append(place)
        numbers.append(number)
    return numbers, frozenset(again)


def _rewritten(
    pieces: list[Any], numbers: list[int], again: frozenset[int], place: int
) -> Iterator[bytes | memoryview]:
    """A stream read through, from its first place in the memo on: what was there before is referred to."""
    long = iter([piece for piece in pieces if len(piece) >= LONG])
    data = b"".join(piece for piece in pieces if len(piece) < LONG)
    at = kept = text = data.index(b"\n") + 1
    yield data[:at]
    frame: list[bytes] = []
    plain, take = _PLAIN.match, frame.append
    end = len(data)
    while at < end:
        opcode = data[at]
        if opcode not in _SPECIAL:
            at = plain(data, at).end()  # type: ignore[union-attr]  # it matches nothing, too
        elif opcode in (_GET, _LONG_GET):
            start, at = at, at + (2 if opcode == _GET else 5)
            old = data[start + 1] if opcode == _GET else int.from_bytes(data[start + 1 : at], "little")
            if again and numbers[old] != old:
                take(data[kept:start])
                take(_get(numbers[old]))
                kept = at
        elif opcode == _MEMOIZE:
            if place in again:
                take(data[kept:text])
                take(_get(numbers[place]))
                kept = at + 1
            place += 1
            at += 1
        elif opcode == _TEXT:
            text = at
            at += 2 + data[at + 1]
        elif opcode in _COUNTED:
            start, text = at, at
            at += 1 + _COUNTED[opcode]
            count = int.from_bytes(data[start + 1 : at], "little")
            if count < LONG:
                at += count
            else:
                take(data[kept:start])
                yield from _framed(frame)
                yield data[start:at]
                yield next(long)
                kept = at
        elif opcode == _FRAME:
            take(data[kept:at])
            at = kept = at + 9
            if not again:
                at += int.from_bytes(data[at - 8 : at], "little")
        elif opcode == _PROTO:
            take(data[kept:at])
            yield from _framed(frame)
            yield data[at : at + 2]
            at = kept = at + 2
        else:
            at += _EXTENSIONS[opcode]
    take(data[kept:])
    yield from _framed(frame)


def _framed(frame: list[bytes]) -> Iterator[bytes]:
    """What a frame holds, which is empty then."""
    body = b"".join(frame)
    frame.clear()
    if len(body) >= _LEAST:
        yield b"\x95" + len(body).to_bytes(8, "little")
    for start in range(0, len(body), _ONE_FRAME):
        yield body[start : start + _ONE_FRAME]


def _get(place: int) -> bytes:
    return bytes((_GET, place)) if place < 256 else bytes((_LONG_GET,)) + place.to_bytes(4, "little")


def order(found: Iterable[set[Any]]) -> None:
    """Put the elements of these sets in anew, in an order of their own. Only in a process that saves and then ends.

    Sets of more than 10,000 elements, and those of others than texts, numbers and tuples of them, stay as they are.
    """
    for one in found:
        if 1 < len(one) <= _LARGE_SET and all(map(_is_plain, one)):
            elements = sorted(one, key=repr)
            one.clear()
            one.update(elements)


def _is_plain(value: Any) -> bool:
    return id(type(value)) in _ATOMS or (type(value) is tuple and all(map(_is_plain, value)))
