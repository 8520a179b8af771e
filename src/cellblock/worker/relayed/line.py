"""The line between a host and the relay in a container: frames over two streams of bytes, in both directions alike.

A frame is a head, of its kind (u8), the worker it belongs to (u32) and a length (u32), little-endian, and so many
bytes. Messages are of no worker. The other kinds are a worker's streams: packets, whole and in order, and text. Of each
stream no more is under way than there is `ROOM` for on the other side, which grants more as it has passed some on: so
one that nobody reads holds up no other, and what either side has to keep is bounded.

Security border: on the host every byte that is fed comes from inside. What no row allows is `Broken`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from cellblock.wire.frames import PACKET_BYTES
from cellblock.worker import control

MESSAGE, PACKET, STDOUT, STDERR, ROOM = range(5)

MOST_PACKET = PACKET_BYTES + 2
"""One byte more than the largest packet, so that the receiver refuses a larger one."""
MOST_TEXT = 64 * 1024

_MOST = {MESSAGE: control.MAX_MESSAGE, PACKET: MOST_PACKET, STDOUT: MOST_TEXT, STDERR: MOST_TEXT, ROOM: 5}
OF_EACH = 16
"""Room that a frame takes besides its bytes, so that empty packets are bounded as well."""
_ROOMS = {PACKET: 4 * (MOST_PACKET + OF_EACH), STDOUT: 2 * MOST_TEXT, STDERR: 2 * MOST_TEXT}
_HEAD = struct.Struct("<BII")
_GRANT = struct.Struct("<BI")


class Broken(Exception):
    """The other side sent a frame that is not allowed."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame that was received."""

    kind: int
    worker: int
    data: bytes


@dataclass(slots=True)
class _Flow:
    """Flow control of a stream, in bytes: what may be sent, what may still come, and what is to be granted anew."""

    room: int
    due: int
    passed: int = 0


class Exchange:
    """One side of the line, without I/O: frames to be sent gather in `out`."""

    def __init__(self) -> None:
        self.out = bytearray()
        self._fed = bytearray()
        self._latest = 0
        self._flows: dict[tuple[int, int], _Flow] = {}

    def open(self, worker: int) -> None:
        """Add a worker. Its number is higher than all before."""
        self._latest = worker
        for kind, room in _ROOMS.items():
            self._flows[kind, worker] = _Flow(room, room)

    def close(self, worker: int) -> None:
        """Remove a worker; frames that still come for it are dropped."""
        for kind in _ROOMS:
            self._flows.pop((kind, worker), None)

    def send(self, kind: int, worker: int, data: bytes) -> None:
        """Add a frame to `out`. There must be room for it."""
        flow = self._flows.get((kind, worker))
        if flow is not None:
            flow.room -= len(data) + OF_EACH
        self.out += _HEAD.pack(kind, worker, len(data)) + data

    def room(self, kind: int, worker: int) -> int:
        """Most bytes of a stream that may be sent in a frame; of packets, 0 where the largest does not fit."""
        flow = self._flows.get((kind, worker))
        room = 0 if flow is None else min(flow.room - OF_EACH, _MOST[kind])
        return 0 if kind == PACKET and room < MOST_PACKET else max(0, room)

    def passed_on(self, kind: int, worker: int, count: int) -> None:
        """Grant the room of bytes that were passed on, or of `OF_EACH` for a whole frame, once it is a quarter."""
        flow = self._flows.get((kind, worker))
        if flow is None:
            return
        flow.passed += count
        if flow.passed >= _ROOMS[kind] // 4:
            self.send(ROOM, worker, _GRANT.pack(kind, flow.passed))
            flow.due += flow.passed
            flow.passed = 0

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that are complete now; `Broken` for one that is not allowed."""
        self._fed += data
        while (frame := self._next()) is not None:
            if frame.kind == ROOM:
                self._grant(frame)
            elif frame.kind == MESSAGE or self._expected(frame):
                yield frame

    def _next(self) -> Frame | None:
        if len(self._fed) < _HEAD.size:
            return None
        kind, worker, length = _HEAD.unpack_from(self._fed)
        if length > _MOST.get(kind, -1):
            raise Broken(f"a frame of kind {kind} and {length} bytes")
        if (worker == 0) != (kind == MESSAGE) or worker > self._latest:
            raise Broken(f"a frame of kind {kind} for worker {worker}")
        end = _HEAD.size + length
        if len(self._fed) < end:
            return None
        data = bytes(self._fed[_HEAD.size : end])
        del self._fed[:end]
        return Frame(kind, worker, data)

    def _expected(self, frame: Frame) -> bool:
        """True if the worker of a frame is there; `Broken` where there was no room for it."""
        flow = self._flows.get((frame.kind, frame.worker))
        if flow is None:
            return False
        flow.due -= len(frame.data) + OF_EACH
        if flow.due < 0:
            raise Broken("more than there was room for")
        return True

    def _grant(self, frame: Frame) -> None:
        if len(frame.data) != _GRANT.size:
            raise Broken("a grant of no length that those have")
        kind, count = _GRANT.unpack(frame.data)
        flow = self._flows.get((kind, frame.worker))
        if flow is None and kind in _ROOMS:
            return
        if flow is None or flow.room + count > _ROOMS[kind]:
            raise Broken("a grant of more than was used")
        flow.room += count
