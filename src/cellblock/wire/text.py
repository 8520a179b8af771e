"""Text on its way up: one pipe carries what a cell writes, with marks in it that keep the order.

A mark is `PREFIX`, the session's nonce, one letter and a number. "E" and "O" switch between stderr and
stdout text; "M" with a number is a place that an event points at. Code in a cell can forge marks; all it
gains is to mislabel its own text.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

PREFIX = b"\x00\x1bcb"
NONCE_BYTES = 8
_TAIL = struct.Struct("<cQ")
MARK_BYTES = len(PREFIX) + NONCE_BYTES + _TAIL.size


@dataclass(frozen=True, slots=True)
class Text:
    """Bytes that a cell wrote to `stream`: "stdout" or "stderr"."""

    stream: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the text that an event's `mark` names."""

    number: int


def mark(nonce: bytes, letter: bytes, number: int = 0) -> bytes:
    """The bytes of a mark."""
    return PREFIX + nonce + _TAIL.pack(letter, number)


class Demultiplexer:
    """Splits the pipe's bytes into text and places. Holds back at most one incomplete mark."""

    def __init__(self, nonce: bytes) -> None:
        self._start = PREFIX + nonce
        self._held = b""
        self._stream = "stdout"

    def feed(self, data: bytes) -> Iterator[Text | Place]:
        """Text and marks in the next bytes of the pipe."""
        if self._held:
            data = self._held + data
            self._held = b""
        begin = 0
        while begin < len(data):
            at = data.find(self._start, begin)
            if at < 0:
                end = len(data) - _overlap(data[begin:], self._start)
                self._held = data[end:]
                if begin < end:
                    yield Text(self._stream, data[begin:end])
                return
            if at > begin:
                yield Text(self._stream, data[begin:at])
            if len(data) - at < MARK_BYTES:
                self._held = data[at:]
                return
            letter, number = _TAIL.unpack_from(data, at + len(self._start))
            begin = at + MARK_BYTES
            if letter == b"E":
                self._stream = "stderr"
            elif letter == b"O":
                self._stream = "stdout"
            elif letter == b"M":
                yield Place(number)

    def rest(self) -> Iterator[Text]:
        """Text that was held back, once nothing more will come."""
        if self._held:
            yield Text(self._stream, self._held)
            self._held = b""


def _overlap(data: bytes, start: bytes) -> int:
    """Number of the last bytes that could be the beginning of a mark."""
    tail = data[-(len(start) - 1) :]
    at = tail.find(start[:1])
    while at >= 0:
        if start.startswith(tail[at:]):
            return len(tail) - at
        at = tail.find(start[:1], at + 1)
    return 0
