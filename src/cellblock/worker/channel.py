"""The worker's end of the wire: blocking, one message at a time."""

from __future__ import annotations

import socket
import struct
from dataclasses import replace
from os import _exit, close, getpid
from select import POLLIN, poll
from socket import CMSG_SPACE, MSG_CMSG_CLOEXEC, SO_RCVTIMEO, SOL_SOCKET
from threading import RLock

from cellblock.hosting import sockets
from cellblock.wire.codec import decode_request, encode_event, oversized, pack_event, unpack_request
from cellblock.wire.frames import MAX_HEAD_BYTES, PACKET_BYTES, Assembler, Frame, packets
from cellblock.wire.messages import Display, Event, Failure, Finished, Request
from cellblock.worker import exits
from cellblock.worker.interpreter import cut
from cellblock.worker.interrupts import whole
from cellblock.worker.show.mime import Bundle
from cellblock.worker.streams import Streams

_INT = struct.Struct("i")
_ONE_DESCRIPTOR = CMSG_SPACE(_INT.size)
_CLOEXEC = int(MSG_CMSG_CLOEXEC)
_TIMEVAL = struct.Struct("ll")
_QUIET_SECONDS, _NEVER = _TIMEVAL.pack(0, 500_000), _TIMEVAL.pack(0, 0)
_MAX_CHARS = 200_000
"""Of each text that is cut here; a character takes up to 12 bytes on its way."""


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
        self._assembler = Assembler(max_bytes=2**40, max_head=2**40)  # the host bounds what it sends
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
        """True if the next request is there already."""
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
        for packet in packets(_fit(event)) if packed is None else (packed,):
            self._send(packet)


class Voice:
    """Speaks on a channel. Threads of the cells show things too, and live on between requests."""

    __slots__ = ("_channel", "_lock", "_pid", "_speaking", "_streams")

    def __init__(self, channel: Channel, streams: Streams) -> None:
        self._channel = channel
        self._streams = streams
        self.move()

    def move(self) -> None:
        """This process is the one that speaks: a new one, or one that was a copy, where no other thread goes on."""
        self._pid = getpid()
        self._lock = RLock()
        self._speaking = False

    def show(self, shown: Bundle, is_result: bool = False) -> None:
        """Show a bundle at this place of the text. A forked child shows nothing: the host takes nothing of it."""
        if getpid() != self._pid:
            return
        whole(self.speak, shown.display(is_result=is_result, mark=self._streams.place()))

    def speak(self, event: Event) -> None:
        """Send one event: not between another thread's packets, and not left half said."""
        with self._lock:
            if self._speaking:  # a finalizer that shows something ran in the middle of a message
                return
            self._speaking = True
            try:
                self._channel.send(event)
            finally:
                self._speaking = False


def _fit(event: Event) -> Frame:
    """The frame of an event. Where its head is more than the host reads, which would be a breach and end the session,
    that of what is left when texts are cut: theirs are the caller's limits, and may be larger than a message.
    """
    frame = encode_event(event)
    if not oversized(frame.head):
        return frame
    match event:
        case Display():
            return encode_event(replace(event, data={"text/plain": _plain(event)}))
        case Finished(failure=Failure() as failure):
            message, traceback = cut(failure.message, _MAX_CHARS), cut(failure.traceback, _MAX_CHARS)
            return encode_event(replace(event, failure=replace(failure, message=message, traceback=traceback)))
        case _:
            return frame


def _plain(display: Display) -> str:
    plain = display.data.get("text/plain")
    shown = cut(plain, _MAX_CHARS) if isinstance(plain, str) else ""
    return f"{shown}\n[more left out: text and JSON of one display may be {MAX_HEAD_BYTES >> 20} MB]"
