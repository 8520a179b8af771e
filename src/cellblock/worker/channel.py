"""The worker's end of the wire: blocking, one message at a time."""

from __future__ import annotations

import socket
import struct
from os import close
from socket import SO_RCVTIMEO, SOL_SOCKET

from cellblock.wire.codec import decode_request
from cellblock.wire.frames import PACKET_BYTES, Assembler, packets
from cellblock.wire.messages import Event, Request
from cellblock.wire.packed import pack_event, unpack_request
from cellblock.worker.fitting import fit

_TIMEVAL = struct.Struct("ll")
_QUIET_SECONDS, _NEVER = _TIMEVAL.pack(0, 500_000), _TIMEVAL.pack(0, 0)


class Quiet(Exception):
    """No request came for half a second."""


class Channel:
    """Receives requests and sends events over a socket that keeps packet borders."""

    __slots__ = ("_assembler", "_buffer", "_detach", "_hurried", "_receive_into", "_send", "_set", "_view")

    def __init__(self, connection: socket.socket) -> None:
        # bound here, whatever a cell does to their class
        self._receive_into, self._send = connection.recv_into, connection.send
        self._set, self._detach = connection.setsockopt, connection.detach
        self._hurried = False
        self._assembler = Assembler(max_bytes=2**40)  # the host bounds what it sends
        self._buffer = bytearray(PACKET_BYTES + 1)
        self._view = memoryview(self._buffer)

    def receive(self, *, hurried: bool = False) -> tuple[int, Request] | None:
        """The next request and its number, or None when the host is gone; `Quiet` if it is hurried and none comes."""
        if hurried is not self._hurried:
            self._set(SOL_SOCKET, SO_RCVTIMEO, _QUIET_SECONDS if hurried else _NEVER)
            self._hurried = hurried
        while True:
            try:
                size = self._receive_into(self._buffer)
            except ConnectionResetError:
                return None
            except BlockingIOError:
                raise Quiet from None
            if not size:
                return None
            packet = bytes(self._view[:size])
            request = unpack_request(packet)
            if request is not None:
                return request
            frame = self._assembler.feed(packet)
            if frame is not None:
                return decode_request(frame)

    def let_go(self) -> None:
        """In a child that a cell forked: neither take what is the worker's nor keep its socket open."""
        close(self._detach())

    def send(self, event: Event) -> None:
        """Send one event; raises OSError when the host is gone."""
        packed = pack_event(event)
        for packet in packets(fit(event)) if packed is None else (packed,):
            self._send(packet)
