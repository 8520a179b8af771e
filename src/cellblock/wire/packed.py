"""Packed messages: what every short cell needs, as one packet of a few bytes instead of a frame with a JSON head.

A packet whose first byte is one of these tags is a whole message: "R" a `Run`, "F" a `Finished` without value and
failure, "S" a `Settled` after which every name is as it was. Integers and doubles are little-endian. After a pause
a message costs by the code it passes through, and the code of JSON and frames is a fifth of a short cell.
"""

from __future__ import annotations

import struct

from cellblock.wire.codec import amount, count
from cellblock.wire.frames import PACKET_BYTES, ProtocolError
from cellblock.wire.messages import Event, Finished, Request, Run, Settled

_RUN = struct.Struct("<cII")
_FINISHED = struct.Struct("<cddQ")
_SETTLED = b"S"


def pack(message: Request | Event) -> bytes | None:
    """The packet of a message that has a packed form, else None."""
    match message:
        case Run():
            return _pack_run(message)
        case Finished(failure=None, buffers=()):
            return _FINISHED.pack(b"F", message.duration_ms, message.cpu_ms, message.memory_peak)
        case Settled() if not message.gained and not message.dropped:
            return _SETTLED
        case _:
            return None


def _pack_run(run: Run) -> bytes | None:
    filename, source = run.filename.encode(), run.source.encode("utf-8", "surrogatepass")
    if _RUN.size + len(filename) + len(source) > PACKET_BYTES:
        return None
    return _RUN.pack(b"R", run.max_text, len(filename)) + filename + source


def unpack_request(packet: bytes) -> Request | None:
    """The request that a packet of the host holds, None where it is part of a frame."""
    if not packet.startswith(b"R"):
        return None
    _, max_text, length = _RUN.unpack_from(packet)
    source = _RUN.size + length
    return Run(
        source=packet[source:].decode("utf-8", "surrogatepass"),
        filename=packet[_RUN.size : source].decode(),
        max_text=max_text,
    )


def unpack_event(packet: bytes) -> Event | None:
    """Security border: the event that a packet from inside the wall holds, None where it is part of a frame."""
    if packet == _SETTLED:
        return Settled()
    if not packet.startswith(b"F"):
        return None
    if len(packet) != _FINISHED.size:
        raise ProtocolError("packed event of the wrong length")
    _, duration, cpu, peak = _FINISHED.unpack(packet)
    return Finished(
        failure=None,
        duration_ms=amount(duration),
        cpu_ms=amount(cpu),
        memory_peak=count(peak),
    )
