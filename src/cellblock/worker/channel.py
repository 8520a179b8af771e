"""The worker's end of the wire: blocking, one message at a time."""

from __future__ import annotations

import socket
import struct
from os import _exit, close
from select import POLLIN, poll
from socket import CMSG_SPACE, MSG_CMSG_CLOEXEC, SO_RCVTIMEO, SOL_SOCKET

from cellblock.hosting import sockets
from cellblock.wire.codec import decode_request
from cellblock.wire.frames import PACKET_BYTES, Assembler, packets
from cellblock.wire.messages import Event, Request
from cellblock.wire.packed import pack_event, unpack_request
from cellblock.worker import exits
from cellblock.worker.fitting import fit

_INT = struct.Struct("i")
_ONE_DESCRIPTOR = CMSG_SPACE(_INT.size)
_CLOEXEC = int(MSG_CMSG_CLOEXEC)
_TIMEVAL = struct.Struct("ll")
_QUIET_SECONDS, _NEVER = _TIMEVAL.pack(0, 500_000), _TIMEVAL.pack(0, 0)


class Quiet(Exception):
    """No request came for half a second."""


class Channel:
    """Receives requests and sends events over a socket that keeps packet borders."""

    __slots__ = (
        "_assembler",
        "_buffer",
        "_checkpoint",
        "_detach",
        "_hurried",
        "_receive_into",
        "_send",
        "_set",
        "_socket",
        "_view",
    )

    def __init__(self, connection: socket.socket) -> None:
        self._bind(connection)
        self._assembler = Assembler(max_bytes=2**40)  # the host bounds what it sends
        self._buffer = bytearray(PACKET_BYTES + 1)
        self._view = memoryview(self._buffer)
        self._checkpoint = -1

    def _bind(self, connection: socket.socket) -> None:
        """Take what is called of a socket now, whatever a cell does to its class."""
        self._socket = connection
        self._receive_into, self._send = connection.recvmsg_into, connection.send
        self._set, self._detach = connection.setsockopt, connection.detach
        self._hurried = False

    @property
    def connection(self) -> socket.socket:
        """The socket itself."""
        return self._socket

    def succeed(self, connection: socket.socket, checkpoint: int) -> None:
        """Go on over another socket, that of the checkpoint this process was; `checkpoint` is the end for the next.

        Its old one was let go when it was forked.
        """
        self._bind(connection)
        self._checkpoint = checkpoint

    def wait_a_moment(self) -> None:
        """Leave the processors to who was just sent something: until the next request comes, or a millisecond."""
        self._wait(1)

    @property
    def pending(self) -> bool:
        """Whether the next request is there already."""
        return self._wait(0)

    def _wait(self, milliseconds: int) -> bool:
        wait = poll()
        wait.register(self._socket, POLLIN)
        return bool(wait.poll(milliseconds))

    def stage(self, packet: bytes) -> Channel:
        """A channel over a socket of its own, on which this packet has come in with an end for a checkpoint.

        For a rehearsal: what is sent there is read by nobody. OSError where there is no more room for descriptors.
        """
        ours, theirs = sockets.pair()
        try:
            theirs.sendmsg([packet], [(SOL_SOCKET, socket.SCM_RIGHTS, _INT.pack(theirs.fileno()))])
            staged = Channel.__new__(Channel)
            staged._assembler, staged._buffer, staged._view = self._assembler, self._buffer, self._view
            staged._checkpoint = -1
            staged._bind(ours)
            return staged
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()

    def take_checkpoint(self) -> socket.socket | None:
        """The end that the last request brought for a checkpoint to be taken after it, if it brought one."""
        end, self._checkpoint = self._checkpoint, -1
        return sockets.adopted(end) if end >= 0 else None

    def receive(self, *, hurried: bool = False) -> tuple[int, Request] | None:
        """The next request and its number, or None when the host is gone; `Quiet` if it is hurried and none comes."""
        if hurried is not self._hurried:
            self._set(SOL_SOCKET, SO_RCVTIMEO, _QUIET_SECONDS if hurried else _NEVER)
            self._hurried = hurried
        while True:
            try:
                size, ancillary, _, _ = self._receive_into([self._buffer], _ONE_DESCRIPTOR, _CLOEXEC)
            except ConnectionResetError:
                return None
            except BlockingIOError:
                raise Quiet from None
            for _, _, payload in ancillary:
                (self._checkpoint,) = _INT.unpack(payload)
            if not size:
                return None
            try:
                packet = bytes(self._view[:size])
                request = unpack_request(packet)
                if request is not None:
                    return request
                frame = self._assembler.feed(packet)
                if frame is not None:
                    return decode_request(frame)
            except MemoryError:  # the rest of the message is no message, to a cell that calls a tool neither
                _exit(exits.MEMORY)

    def let_go(self) -> None:
        """In a forked child, a frozen copy too: neither take what is the worker's nor keep its sockets open."""
        number = self._detach()
        if number >= 0:  # else a child of a child
            close(number)
        if self._checkpoint >= 0:
            close(self._checkpoint)
            self._checkpoint = -1

    def send(self, event: Event) -> None:
        """Send one event; raises OSError when the host is gone."""
        packed = pack_event(event)
        for packet in packets(fit(event)) if packed is None else (packed,):
            self._send(packet)
