"""Frames: a JSON head and raw buffers, cut into packets that each fit one datagram.

A packet is one byte (0: more follows, 1: last of its frame, others: see `packed`) and `PACKET_BYTES` of payload, the
last one of a frame up to as many. A frame's bytes are a count of buffers (u32), the head's length (u32), each
buffer's length (u64), the head, the buffers; integers are little-endian. The transport keeps packet borders
(SOCK_SEQPACKET), so a writer that dies leaves whole packets only.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

PACKET_BYTES = 64 * 1024
MAX_FRAME_BYTES = 96 * 2**20
MAX_BUFFERS = 65_536
MAX_HEAD_BYTES = 8 * 2**20

_COUNTS = struct.Struct("<II")
_MORE, _LAST = b"\0", b"\1"

Buffer = bytes | bytearray | memoryview


class ProtocolError(Exception):
    """The other side broke the protocol; nothing more of it is to be believed."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message as it travels."""

    head: bytes
    buffers: tuple[Buffer, ...] = ()


def packets(frame: Frame) -> Iterable[bytes]:
    """The packets of a frame, in order."""
    lengths = [len(memoryview(buffer).cast("B")) if len(buffer) else 0 for buffer in frame.buffers]
    prefix = _COUNTS.pack(len(lengths), len(frame.head)) + struct.pack(f"<{len(lengths)}Q", *lengths)
    if len(prefix) + len(frame.head) + sum(lengths) < PACKET_BYTES:
        return (b"".join((_LAST, prefix, frame.head, *frame.buffers)),)
    return _cut((prefix, frame.head, *frame.buffers))


def _cut(parts: Sequence[Buffer]) -> Iterable[bytes]:
    pending: list[memoryview] = []
    size = 0
    for part in parts:
        view = memoryview(part).cast("B") if len(part) else memoryview(b"")
        while len(view):
            piece = view[: PACKET_BYTES - size]
            view = view[len(piece) :]
            if size == PACKET_BYTES:
                yield b"".join((_MORE, *pending))
                pending, size = [], 0
                continue
            pending.append(piece)
            size += len(piece)
    yield b"".join((_LAST, *pending))


class Assembler:
    """Puts packets together again; refuses a frame that is malformed or larger than `max_bytes`, of which the head may
    have `max_head`.
    """

    def __init__(self, max_bytes: int = MAX_FRAME_BYTES, max_head: int = MAX_HEAD_BYTES) -> None:
        self._max_bytes, self._max_head = max_bytes, max_head
        self._whole = bytearray()

    @property
    def pending(self) -> bool:
        """True if a frame has begun and not ended."""
        return bool(self._whole)

    def feed(self, packet: bytes) -> Frame | None:
        """Take one packet; the frame it completes, or None when more must come."""
        flag, payload = packet[:1], packet[1:]
        size = len(payload)
        # all packets but a frame's last are full, so that many small ones cost no more than their bytes
        if flag not in (_MORE, _LAST) or size > PACKET_BYTES or (flag == _MORE and size < PACKET_BYTES):
            raise ProtocolError("malformed packet")
        if len(self._whole) + size > self._max_bytes:
            raise ProtocolError(f"frame larger than {self._max_bytes} bytes")
        if flag == _LAST and not self._whole:
            return _parse(payload, self._max_head)
        self._whole += payload  # where it stands, as a rule: to join the parts of 96 MB would take 100 ms at once
        if flag == _MORE:
            return None
        whole, self._whole = self._whole, bytearray()
        return _parse(whole, self._max_head)


def _parse(whole: bytes | bytearray, max_head: int = MAX_HEAD_BYTES) -> Frame:
    if len(whole) < _COUNTS.size:
        raise ProtocolError("frame shorter than its prefix")
    count, head_length = _COUNTS.unpack_from(whole)
    if count > MAX_BUFFERS or len(whole) < _COUNTS.size + 8 * count:
        raise ProtocolError("frame shorter than its prefix says")
    lengths = struct.unpack_from(f"<{count}Q", whole, _COUNTS.size)
    at = _COUNTS.size + 8 * count
    if at + head_length + sum(lengths) != len(whole):
        raise ProtocolError("frame length does not match its prefix")
    if head_length > max_head:
        raise ProtocolError(f"frame whose head is larger than {max_head} bytes")
    view, buffers = memoryview(whole).toreadonly(), []
    head = bytes(view[at : at + head_length])
    at += head_length
    for length in lengths:
        buffers.append(view[at : at + length])
        at += length
    return Frame(head, tuple(buffers))
