"""The readers of the wire: packets, messages, packed ones, and who may say what when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from cellblock.wire import messages as m
from cellblock.wire.codec import decode_event, encode_event, pack_event, unpack_event
from cellblock.wire.connection import Connection
from cellblock.wire.frames import Assembler, Frame, ProtocolError, packets
from cellblock.wire.schema import State
from fuzzer import seeds
from fuzzer.cases import Case
from fuzzer.target import Target


def _read_frames(case: Case) -> list[Frame] | None:
    assembler, frames = Assembler(), []
    try:
        for packet in case:
            if (frame := assembler.feed(packet)) is not None:
                frames.append(frame)
    except ProtocolError:
        return None
    return frames


def _check_frames(case: Case, frames: list[Frame] | None) -> None:
    if frames is not None:
        again = [bytes(packet) for frame in frames for packet in packets(frame)]
        assert again == list(case[: len(again)]), "a frame that is written otherwise than it was read"


def _frames() -> Iterator[Case]:
    for event in seeds.EVENTS:
        yield tuple(map(bytes, packets(encode_event(event))))


def _read_event(case: Case) -> m.Event | None:
    try:
        return decode_event(Frame(case[0], case[1:])) if case else None
    except ProtocolError:
        return None


def _check_event(case: Case, event: m.Event | None) -> None:
    if event is None:
        return
    _check_types(event)
    again = decode_event(encode_event(event))
    assert again == event, "an event that reads otherwise when it is written again"
    packed = pack_event(event)
    assert packed is None or unpack_event(packed) == event, "an event that its packed form tells otherwise"


def _read_packed(case: Case) -> list[m.Event | None]:
    found: list[m.Event | None] = []
    for packet in case:
        try:
            found.append(unpack_event(packet))
        except ProtocolError:
            found.append(None)
    return found


def _check_packed(case: Case, found: list[m.Event | None]) -> None:
    for event in found:
        _check_event(case, event)


def _packed() -> Iterator[Case]:
    yield from (spoken for event in seeds.EVENTS if len(spoken := seeds.spoken(event)) == 1 and spoken[0][:1] == b"F")


def _check_types(message: object) -> None:
    """Each field holds what it declares."""
    hints = get_type_hints(type(message))
    for field in fields(message):  # type: ignore[arg-type]
        value = getattr(message, field.name)
        assert _is(value, hints[field.name]), f"{type(message).__name__}.{field.name} is {value!r:.100}"
        if isinstance(value, m.Failure):
            _check_types(value)


def _is(value: object, hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if hint is object:
        return True
    if origin is UnionType:
        return any(_is(value, one) for one in inner)
    if origin is tuple:
        return type(value) is tuple and all(_is(one, inner[0]) for one in value)
    if origin is not None:  # Mapping
        return type(value) is dict and all(_is(key, inner[0]) and _is(one, inner[1]) for key, one in value.items())
    return type(value) is hint


_REQUESTS: tuple[m.Request, ...] = (
    m.Run(source="1", filename="<cell 1>", max_text=100),
    m.Shell(command="true"),
    m.Bind(name="x", buffers=(b"pickle",)),
    m.Fetch(name="x"),
    m.Survey(max_names=10, max_preview=10),
    m.Clear(),
    m.ToolReply(call=1, error=("NameError", "no")),
)
_HEARD = {
    (State.OPENING, m.Hello): State.IDLE,
    (State.IDLE, m.Display): State.IDLE,
    (State.IDLE, m.ToolCalled): State.IDLE,
    (State.BUSY, m.Display): State.BUSY,
    (State.BUSY, m.ToolCalled): State.BUSY,
    (State.BUSY, m.Finished): State.IDLE,
    (State.IDLE, m.Reserved): State.IDLE,
    (State.BUSY, m.Reserved): State.BUSY,
}


@dataclass(frozen=True, slots=True)
class Heard:
    """A packet: the state before it, what it completed, the state after it, and how many requests there had been."""

    before: State
    event: m.Event | None
    after: State
    requests: int


def _converse(case: Case) -> list[Heard]:
    connection, heard, requests = Connection(), [], 0
    for step in case:
        before = connection.state
        try:
            if step[:1] == b"h":
                request = _REQUESTS[(step[1] if len(step) > 1 else 0) % len(_REQUESTS)]
                for packet in connection.send(request):
                    bytes(packet)
                requests += type(request) is not m.ToolReply
            elif step[:1] == b"w":
                event = connection.receive(step[1:])
                heard.append(Heard(before, event, connection.state, requests))
        except ProtocolError:
            if step[:1] == b"w":  # the end of a worker
                break
    return heard


def _check_conversation(case: Case, conversation: list[Heard]) -> None:
    for heard in conversation:
        event = heard.event
        if event is None:
            assert heard.after is heard.before, "a part of a message that changes the state"
            continue
        assert heard.after is _HEARD[heard.before, type(event)], f"{type(event).__name__} while {heard.before.value}"
        _check_types(event)
        if isinstance(event, m.Finished):
            assert event.number == heard.requests, "a reply to another request"


TARGETS = (
    Target("frames", _frames, _read_frames, _check_frames),
    Target("events", seeds.events, _read_event, _check_event),
    Target("packed", _packed, _read_packed, _check_packed),
    Target("conversations", seeds.conversations, _converse, _check_conversation),
)
