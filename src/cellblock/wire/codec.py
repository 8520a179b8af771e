"""Messages as packets and back, checked by the table of `schema`.

A message travels as a frame: a JSON head of its fields, and raw buffers. The two that every short cell needs have a
packed form as well, one packet of a few bytes, as after a pause a message costs by the code it passes through and that
of JSON and frames is a fifth of a short cell. Its first byte is "R" for a `Run` and "F" for a `Finished` without value
and failure; where names came or went they follow as JSON, `[gained, dropped, unsaved]`. Numbers are little-endian.
"""

from __future__ import annotations

import json
import struct

from cellblock.values import room
from cellblock.wire.frames import MAX_HEAD_BYTES, PACKET_BYTES, Buffer, Frame, ProtocolError
from cellblock.wire.lines import as_json, from_json
from cellblock.wire.messages import Display, Event, Failure, Finished, Place, Request, Run, ToolCalled
from cellblock.wire.schema import EVENTS, REQUESTS, amount, count, named, names, record, row

MAX_HEAD_ROOM = 64 * 2**20
"""Most memory of an event beside its buffers: as it comes, and as it is once it has been read."""

_RUN = struct.Struct("<cQII")
_FINISHED = struct.Struct("<cQddQ?")
_REQUESTS = {cls.__name__: cls for cls in REQUESTS}
_EVENTS = {rules.tag: (cls, rules) for cls, rules in EVENTS.items()}
_HEADS = {
    cls: tuple(name for name in cls.__slots__ if name not in ("buffers", "size"))  # type: ignore[attr-defined]
    for cls in (*REQUESTS, *EVENTS)
}
"""Fields of each message that stand in its head."""
_WITH_BUFFERS = {cls for cls in _HEADS if "buffers" in cls.__slots__}  # type: ignore[attr-defined]
_loads = json.JSONDecoder().decode  # held here, as `as_json` is


# ---------------------------------------------------------------------------------------- requests


def encode_request(request: Request, number: int) -> Frame:
    """The frame of a request under a number."""
    cls = type(request)
    head: dict[str, object] = {"is": cls.__name__, "number": number}
    for name in _HEADS[cls]:
        head[name] = getattr(request, name)
    return _frame(request, head)


def decode_request(frame: Frame) -> tuple[int, Request]:
    """A request from the host with its number. The host is trusted: only the shape is followed."""
    head = _loads(frame.head.decode())
    cls, number = _REQUESTS[head.pop("is")], head.pop("number")
    if cls in _WITH_BUFFERS:
        head["buffers"] = frame.buffers
    request: Request = cls(**head)
    return number, request


def pack_request(request: Request, number: int) -> bytes | None:
    """The packet of a request that has a packed form, else None."""
    if type(request) is not Run:
        return None
    filename, source = request.filename.encode(), request.source.encode("utf-8", "surrogatepass")
    if _RUN.size + len(filename) + len(source) > PACKET_BYTES:
        return None
    return _RUN.pack(b"R", number, request.max_text, len(filename)) + filename + source


def unpack_request(packet: bytes) -> tuple[int, Request] | None:
    """The request that a packet of the host holds, with its number; None where it is part of a frame."""
    if not packet.startswith(b"R"):
        return None
    _, number, max_text, length = _RUN.unpack_from(packet)
    source = _RUN.size + length
    return number, Run(
        source=packet[source:].decode("utf-8", "surrogatepass"),
        filename=packet[_RUN.size : source].decode(),
        max_text=max_text,
    )


# ------------------------------------------------------------------------------------------ events


def encode_event(event: Event) -> Frame:
    """The frame of an event."""
    rules = EVENTS[type(event)]
    head: dict[str, object] = {"is": rules.tag}
    for name in _HEADS[type(event)]:
        value = getattr(event, name)
        if value or name in rules.required:
            head[name] = _failure(value) if type(value) is Failure else value
    return _frame(event, head)


def decode_event(frame: Frame) -> Event:
    """Security border: an event from inside the wall, checked field by field."""
    if oversized(frame.head):
        raise ProtocolError("event head is too large")
    head = from_json(frame.head)
    if type(head) is not dict:
        raise ProtocolError("event head is not an object")
    tag = head.pop("is", None)
    if type(tag) is not str or tag not in _EVENTS:
        raise ProtocolError(f"unknown event {tag!r:.40}")
    cls, rules = _EVENTS[tag]
    values = record(head, rules.fields, rules.required, rules.otherwise)
    if cls in _WITH_BUFFERS:
        values["buffers"] = frame.buffers
    elif frame.buffers:
        raise ProtocolError(f"event {tag!r} carries no buffers")
    if cls is Display:
        values["size"] = room.held(values["data"]) + sum(map(len, frame.buffers))
    event: Event = cls(**values)
    if isinstance(event, Finished | ToolCalled) and event.beside:
        _check_places(event.beside, event.buffers)
    if type(event) is Display and len(event.mimes) != len(event.buffers):
        raise ProtocolError("a display names each of its buffers")
    return event


def pack_event(event: Event) -> bytes | None:
    """The packet of an event that has a packed form, else None."""
    if type(event) is not Finished or event.failure is not None or event.buffers:
        return None
    packet = _FINISHED.pack(b"F", event.number, event.duration_ms, event.cpu_ms, event.memory_peak, event.left)
    if event.gained or event.dropped:
        packet += as_json([event.gained, event.dropped, event.unsaved]).encode()
    return packet if len(packet) <= PACKET_BYTES else None


def unpack_event(packet: bytes) -> Event | None:
    """Security border: the event that a packet from inside the wall holds, None where it is part of a frame."""
    if not packet.startswith(b"F"):
        return None
    if not _FINISHED.size <= len(packet) <= PACKET_BYTES:
        raise ProtocolError("packed event of the wrong length")
    _, number, duration, cpu, peak, left = _FINISHED.unpack_from(packet)
    gained: dict[str, str] = {}
    dropped: tuple[str, ...] = ()
    unsaved: dict[str, str] = {}
    if len(packet) > _FINISHED.size:
        told = row(from_json(packet[_FINISHED.size :]), 3, "names that came and went")
        gained, dropped, unsaved = named(told[0]), names(told[1]), named(told[2])
    return Finished(
        number=count(number),
        failure=None,
        duration_ms=amount(duration),
        cpu_ms=amount(cpu),
        memory_peak=count(peak),
        gained=gained,
        dropped=dropped,
        unsaved=unsaved,
        left=left,
    )


def oversized(head: bytes) -> bool:
    """True if an event's head is more than its reader takes."""
    return len(head) > MAX_HEAD_BYTES or not room.fits(head, MAX_HEAD_ROOM)


def _frame(message: Request | Event, head: dict[str, object]) -> Frame:
    return Frame(as_json(head).encode(), getattr(message, "buffers", ()))


def _failure(failure: Failure) -> dict[str, object]:
    """A failure as a worker tells it: a hint is the host's to give."""
    fields = {name: getattr(failure, name) for name in ("type", "message", "traceback", "kind")}
    found = {"rule": failure.rule} if failure.rule else {} if failure.status is None else {"status": failure.status}
    return {**fields, **found, **({"is_wrecked": True} if failure.is_wrecked else {})}


def _check_places(places: tuple[Place, ...], buffers: tuple[Buffer, ...]) -> None:
    """Each is of another buffer, and that is empty here."""
    named = [place[0] for place in places]
    if sorted(set(named)) != named or (named and named[-1] >= len(buffers)) or any(len(buffers[one]) for one in named):
        raise ProtocolError("places of no buffers")
