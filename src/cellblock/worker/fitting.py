"""Keeps what the worker says within what the host reads; a message past that would be a breach, and end the session.

Texts have their limits before they come here. Those are the caller's, and may be larger than a message.
"""

from __future__ import annotations

from dataclasses import replace

from cellblock.wire.codec import MAX_HEAD_BYTES, encode_event, oversized
from cellblock.wire.frames import Frame
from cellblock.wire.messages import Display, Event, Failure, Finished
from cellblock.worker.interpreter import cut

_MAX_CHARS = 200_000
"""Of each text that is cut here; a character takes up to 12 bytes on its way."""


def fit(event: Event) -> Frame:
    """The frame of an event; where its head is more than the host reads, that of what is left when texts are cut."""
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
