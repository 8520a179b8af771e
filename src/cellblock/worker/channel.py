"""The worker's end of the wire: blocking, one message at a time."""

from __future__ import annotations

import socket

from cellblock.wire.codec import decode_request
from cellblock.wire.frames import PACKET_BYTES, Assembler, packets
from cellblock.wire.messages import Event, Request
from cellblock.wire.packed import pack_event, unpack_request
from cellblock.worker.fitting import fit


class Channel:
    """Receives requests and sends events over a socket that keeps packet borders."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._assembler = Assembler(max_bytes=2**40)  # the host bounds what it sends
        self._buffer = bytearray(PACKET_BYTES + 1)
        self._view = memoryview(self._buffer)

    def receive(self) -> tuple[int, Request] | None:
        """The next request and its number, or None when the host is gone."""
        while True:
            try:
                size = self._socket.recv_into(self._buffer)
            except ConnectionResetError:
                return None
            if not size:
                return None
            packet = bytes(self._view[:size])
            request = unpack_request(packet)
            if request is not None:
                return request
            frame = self._assembler.feed(packet)
            if frame is not None:
                return decode_request(frame)

    def send(self, event: Event) -> None:
        """Send one event; raises OSError when the host is gone."""
        packed = pack_event(event)
        for packet in packets(fit(event)) if packed is None else (packed,):
            self._socket.send(packet)
