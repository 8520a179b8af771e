"""The host's side of the conversation with a worker, whose state decides which messages may come next."""

from __future__ import annotations

from collections.abc import Iterable

from cellblock.wire.codec import decode_event, encode_request, pack_request, unpack_event
from cellblock.wire.frames import Assembler, Frame, ProtocolError, packets
from cellblock.wire.messages import REPLIES, Event, Finished, Request, Reserved, ToolCalled, ToolRoom, Wanted
from cellblock.wire.schema import EVENTS, REQUESTS, State, States

MAX_PENDING_CALLS = 1024
LARGE = 2**16
"""Bytes of a head that is not read between two turns of an event loop."""


class Connection:
    """Turns requests into packets and packets into events; holds the state and nothing else. No I/O."""

    def __init__(self) -> None:
        self.state = State.OPENING
        self._assembler = Assembler()
        self._number = 0
        self._pending: set[int] = set()

    def send(self, request: Request) -> Iterable[bytes]:
        """The packets of a request that the state allows. One that cannot be encoded leaves everything as it was."""
        state, number = self._after(request, REQUESTS[type(request)]), self._number
        answered = None
        if isinstance(request, REPLIES):
            if request.call not in self._pending:
                raise ProtocolError(f"no call {request.call} waits for a reply")
            answered = None if type(request) is ToolRoom else request.call
        else:
            number += 1
        packed = pack_request(request, number)
        made = packets(encode_request(request, number)) if packed is None else (packed,)
        self.state, self._number = state, number
        if answered is not None:
            self._pending.discard(answered)
        return made

    def receive(self, packet: bytes) -> Event | None:
        """The event that a packet completes, or None; ProtocolError if the table does not allow it."""
        event = self.assemble(packet)
        return self.take(decode_event(event) if isinstance(event, Frame) else event)

    def assemble(self, packet: bytes) -> Event | Frame | None:
        """The event, not taken yet, that a packet completes; a frame where reading it takes its time."""
        event = unpack_event(packet)
        if event is None:
            frame = self._assembler.feed(packet)
            return frame if frame is None or len(frame.head) >= LARGE else decode_event(frame)
        if self._assembler.pending:
            raise ProtocolError("a message inside a frame")
        return event

    def take(self, event: Event | None) -> Event | None:
        """The event, if anything is to be done for it; ProtocolError if the table does not allow it."""
        if event is None:
            return None
        self.state = self._after(event, EVENTS[type(event)].states)
        if type(event) is ToolCalled and (self.state is not State.BUSY or event.request != self._number):
            return None  # of a cell that has ended: nobody waits for its answer
        if type(event) is ToolCalled or type(event) is Wanted:
            if event.call in self._pending or len(self._pending) >= MAX_PENDING_CALLS:
                raise ProtocolError("a call's number is in use, or too many calls wait")
            self._pending.add(event.call)
        elif type(event) is Reserved:
            return event if event.call in self._pending else None  # the cell has ended meanwhile
        elif type(event) is Finished:
            if event.number != self._number:
                raise ProtocolError("a reply to another request")
            self._pending.clear()
        return event

    def _after(self, message: Request | Event, states: States) -> State:
        """The state that follows a message; ProtocolError where the present one does not allow it."""
        following = states.get(self.state)
        if following is None:
            raise ProtocolError(f"{type(message).__name__} is not allowed while {self.state.value}")
        return following
