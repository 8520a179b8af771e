"""The worker's end of the wire: blocking, one message at a time."""

from __future__ import annotations

import select
import socket
import struct

from cellblock.wire.codec import decode_request
from cellblock.wire.frames import PACKET_BYTES, Assembler, packets
from cellblock.wire.messages import Event, Request
from cellblock.wire.packed import pack_event, unpack_request
from cellblock.worker.fitting import fit

_INT = struct.Struct("i")
_ONE_DESCRIPTOR = socket.CMSG_SPACE(_INT.size)
_CLOEXEC = int(socket.MSG_CMSG_CLOEXEC)


class Channel:
    """Receives requests and sends events over a socket that keeps packet borders."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._assembler = Assembler(max_bytes=2**40)  # the host bounds what it sends
        self._buffer = bytearray(PACKET_BYTES + 1)
        self._view = memoryview(self._buffer)
        self._checkpoint = -1

    @property
    def connection(self) -> socket.socket:
        """The socket itself."""
        return self._socket

    def succeed(self, connection: socket.socket, checkpoint: int) -> None:
        """Go on over another socket, that of the checkpoint this process was; `checkpoint` is the end for the next."""
        self._socket.close()
        self._socket = connection
        self._checkpoint = checkpoint

    @property
    def pending(self) -> bool:
        """Whether the next request is there already."""
        wait = select.poll()
        wait.register(self._socket, select.POLLIN)
        return bool(wait.poll(0))

    def take_checkpoint(self) -> socket.socket | None:
        """The end that the last request brought for a checkpoint to be taken after it, if it brought one."""
        end, self._checkpoint = self._checkpoint, -1
        return socket.socket(fileno=end) if end >= 0 else None

    def receive(self) -> tuple[int, Request] | None:
        """The next request and its number, or None when the host is gone."""
        while True:
            try:
                size, ancillary, _, _ = self._socket.recvmsg_into([self._buffer], _ONE_DESCRIPTOR, _CLOEXEC)
            except ConnectionResetError:
                return None
            for _, _, payload in ancillary:
                (self._checkpoint,) = _INT.unpack(payload)
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
