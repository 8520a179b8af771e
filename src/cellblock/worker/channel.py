"""The worker's end of the wire: blocking, one message at a time."""

from __future__ import annotations

import socket

from cellblock.wire.frames import PACKET_BYTES, Assembler, packets
from cellblock.wire.messages import Event, Request, decode_request, encode


class Channel:
    """Receives requests and sends events over a socket that keeps packet borders."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._assembler = Assembler(max_bytes=2**40)  # the host bounds what it sends
        self._buffer = bytearray(PACKET_BYTES + 1)
        self._view = memoryview(self._buffer)

    def receive(self) -> Request | None:
        """The next request, or None when the host is gone."""
        while True:
            try:
                size = self._socket.recv_into(self._buffer)
            except ConnectionResetError:
                return None
            if not size:
                return None
            frame = self._assembler.feed(bytes(self._view[:size]))
            if frame is not None:
                return decode_request(frame)

    def send(self, event: Event) -> None:
        """Send one event; raises OSError when the host is gone."""
        for packet in packets(encode(event)):
            self._socket.send(packet)
