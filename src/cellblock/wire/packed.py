"""Packed messages: what every short cell needs, as one packet of a few bytes instead of a frame with a JSON head.

A packet whose first byte is one of these tags is a whole message: "R" a `Run`, "F" a `Finished` without value and
failure; where names came or went they follow as JSON, `[gained, dropped, unsaved]`. Integers and doubles are
little-endian. After a pause a message costs by the code it passes through, and the code of JSON and frames is a fifth
of a short cell.
"""

from __future__ import annotations

import struct

from cellblock.wire.codec import amount, as_json, count, from_json, named, names, row
from cellblock.wire.frames import PACKET_BYTES, ProtocolError
from cellblock.wire.messages import Event, Finished, Request, Run

_RUN = struct.Struct("<cQII")
_FINISHED = struct.Struct("<cQddQ?")


def pack_request(request: Request, number: int) -> bytes | None:
    """The packet of a request that has a packed form, else None."""
    if type(request) is not Run:
        return None
    filename, source = request.filename.encode(), request.source.encode("utf-8", "surrogatepass")
    if _RUN.size + len(filename) + len(source) > PACKET_BYTES:
        return None
    return _RUN.pack(b"R", number, request.max_text, len(filename)) + filename + source


def pack_event(event: Event) -> bytes | None:
    """The packet of an event that has a packed form, else None."""
    if type(event) is not Finished or event.failure is not None or event.buffers:
        return None
    packet = _FINISHED.pack(b"F", event.number, event.duration_ms, event.cpu_ms, event.memory_peak, event.left)
    if event.gained or event.dropped:
        packet += as_json([event.gained, event.dropped, event.unsaved]).encode()
    return packet if len(packet) <= PACKET_BYTES else None


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
