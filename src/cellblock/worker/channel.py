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

    def receive(self) -> Request | None:
        """The next request, or None when the host is gone."""
        while True:
            try:
                packet = self._socket.recv(PACKET_BYTES + 1)
            except ConnectionResetError:
                return None
            if not packet:
                return None
            frame = self._assembler.feed(packet)
            if frame is not None:
                return decode_request(frame)

    def send(self, event: Event) -> None:
        """Send one event; raises OSError when the host is gone."""
        for packet in packets(encode(event)):
            self._socket.send(packet)
