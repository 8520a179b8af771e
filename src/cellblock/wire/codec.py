"""Messages as frames and back: JSON heads, raw buffers.

Requests come from the host and are trusted by the worker. Events come from inside the wall and are hostile:
`decode_event` checks every field's type and size and raises `ProtocolError` for anything else.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import get_args

from cellblock.values import room
from cellblock.values.pieces import loads
from cellblock.wire.frames import MAX_BUFFERS, MAX_HEAD_BYTES, Buffer, Frame, ProtocolError
from cellblock.wire.messages import (
    Awake,
    Bind,
    Display,
    Event,
    Failure,
    Finished,
    Hello,
    Loading,
    Place,
    Request,
    Reserved,
    Restore,
    Supplied,
    ToolCalled,
    ToolReply,
    Wanted,
)

MAX_HEAD_ROOM = 64 * 2**20
"""Most memory of an event beside its buffers: as it comes, and as it is once it has been read."""

_REQUESTS: dict[str, type] = {one.__name__: one for one in get_args(Request)}
_EVENTS: dict[str, type] = {
    "hello": Hello,
    "awake": Awake,
    "display": Display,
    "tool": ToolCalled,
    "reserved": Reserved,
    "wanted": Wanted,
    "loading": Loading,
    "finished": Finished,
}
_MAY_LACK = {"beside", "left", "unsaved"}
"""Fields that are left out of most messages."""
_WITH_BUFFERS = {Bind, ToolReply, Restore, Supplied, Display, ToolCalled, Finished}
_TAGS = {cls: tag for tag, cls in (_REQUESTS | _EVENTS).items()}
# Held here so that a cell which rebinds json's names breaks nothing of the worker's.
as_json = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_loads = json.JSONDecoder().decode


def encode_request(request: Request, number: int) -> Frame:
    """The frame of a request under a number."""
    return _encode(request, {"is": _TAGS[type(request)], "number": number})


def encode_event(event: Event) -> Frame:
    """The frame of an event."""
    return _encode(event, {"is": _TAGS[type(event)]})


def _encode(message: Request | Event, head: dict[str, object]) -> Frame:
    cls = type(message)
    for name in cls.__slots__:
        if name not in ("buffers", "size"):
            value = getattr(message, name)
            if name in _MAY_LACK and not value:
                continue
            head[name] = _fields(value) if type(value) is Failure else value
    return Frame(as_json(head).encode(), getattr(message, "buffers", ()))


_MOST_STATUS = 255
_OF_FAILURE = ("type", "message", "traceback", "kind")
"""Fields that a worker sends of a failure: a hint is the host's to give."""


def _fields(failure: Failure) -> dict[str, object]:
    fields = {name: getattr(failure, name) for name in _OF_FAILURE}
    found = {"rule": failure.rule} if failure.rule else {} if failure.status is None else {"status": failure.status}
    return {**fields, **found, **({"is_wrecked": True} if failure.is_wrecked else {})}


def decode_request(frame: Frame) -> tuple[int, Request]:
    """A request from the host with its number. The host is trusted: only the shape is followed."""
    head = _loads(frame.head.decode())
    cls, number = _REQUESTS[head.pop("is")], head.pop("number")
    if cls in _WITH_BUFFERS:
        head["buffers"] = frame.buffers
    request: Request = cls(**head)
    return number, request


def oversized(head: bytes) -> bool:
    """True if an event's head is more than its reader takes."""
    return len(head) > MAX_HEAD_BYTES or not room.fits(head, MAX_HEAD_ROOM)


def from_json(text: bytes) -> object:
    """Value of the JSON text of an event, or ProtocolError. Bound its size first."""
    try:
        return loads(text)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"event is not JSON: {error}") from None


def decode_event(frame: Frame) -> Event:
    """Security border: an event from inside the wall, checked field by field."""
    if oversized(frame.head):
        raise ProtocolError("event head is too large")
    head = from_json(frame.head)
    if type(head) is not dict:
        raise ProtocolError("event head is not an object")
    tag = head.pop("is", None)
    cls = _EVENTS.get(tag) if type(tag) is str else None
    if cls is None:
        raise ProtocolError(f"unknown event {tag!r:.40}")
    checks = _CHECKS[cls]
    if not checks.keys() - _MAY_LACK <= head.keys() <= checks.keys():
        raise ProtocolError(f"event {tag!r} has the wrong fields")
    values = {name: check(head[name]) for name, check in checks.items() if name in head}
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


def _check_places(places: tuple[Place, ...], buffers: tuple[Buffer, ...]) -> None:
    """Each is of another buffer, and that is empty here."""
    named = [place[0] for place in places]
    if sorted(set(named)) != named or (named and named[-1] >= len(buffers)) or any(len(buffers[one]) for one in named):
        raise ProtocolError("places of no buffers")


_MAX_TEXT = 16 * 2**20
_MAX_NAME = 4096
_MAX_NAMES = 1_000_000


def _text(value: object) -> str:
    if type(value) is not str or len(value) > _MAX_TEXT:
        raise ProtocolError("expected text")
    return value


def _name(value: object) -> str:
    if type(value) is not str or len(value) > _MAX_NAME:
        raise ProtocolError("expected a name")
    return value


def count(value: object) -> int:
    """A whole number that fits 63 bits, or ProtocolError."""
    if type(value) is not int or not 0 <= value < 2**63:
        raise ProtocolError("expected a count")
    return value


def amount(value: object) -> float:
    """A number from 0 that is not out of all proportion, or ProtocolError."""
    if type(value) not in (int, float) or not 0 <= value < 1e15:  # type: ignore[operator]
        raise ProtocolError("expected an amount")
    return float(value)  # type: ignore[arg-type]


def _flag(value: object) -> bool:
    if type(value) is not bool:
        raise ProtocolError("expected a flag")
    return value


def listed(value: object, most: int = _MAX_NAMES, what: str = "a list") -> list[object]:
    """A list of no more than so many, or ProtocolError."""
    if type(value) is not list or len(value) > most:
        raise ProtocolError(f"expected {what}")
    return value


def names(value: object) -> tuple[str, ...]:
    """A list of names, or ProtocolError."""
    return tuple(map(_name, listed(value, what="a list of names")))


def named(value: object) -> dict[str, str]:
    """Names, each with that of a type, or ProtocolError."""
    if type(value) is not dict or len(value) > _MAX_NAMES:
        raise ProtocolError("expected names")
    return {_name(key): _name(item) for key, item in value.items()}


def _rows(value: object) -> tuple[tuple[str, ...], ...]:
    return tuple(map(names, listed(value, 64)))


def _mimes(value: object) -> tuple[str, ...]:
    return tuple(map(_name, listed(value, 64, "the names of buffers")))


def _bundle(value: object) -> dict[str, object]:
    if type(value) is not dict or len(value) > 64:
        raise ProtocolError("expected a MIME bundle")
    return {_name(mime): part for mime, part in value.items()}


def row(value: object, length: int, what: str = "a row") -> list[object]:
    """A list of just so many, or ProtocolError."""
    found = listed(value, length, what)
    if len(found) != length:
        raise ProtocolError(f"expected {what}")
    return found


def _places(value: object) -> tuple[Place, ...]:
    return tuple(map(_place, listed(value, MAX_BUFFERS)))


def _place(value: object) -> Place:
    number, address, length = map(count, row(value, 3))
    return number, address, length


def _failure(value: object) -> Failure | None:
    if value is None:
        return None
    if type(value) is not dict or value.keys() - {"rule", "status", "is_wrecked"} != set(_OF_FAILURE):
        raise ProtocolError("expected a failure")
    kind, rule = value["kind"], _name(value.get("rule", ""))
    if kind not in ("raised", "memory", "refused") or (kind == "refused") is not bool(rule):
        raise ProtocolError("expected a failure's kind")
    status = count(value["status"]) if "status" in value else None
    if status is not None and status > _MOST_STATUS:
        raise ProtocolError("expected an exit status")
    if value.get("is_wrecked", True) is not True:
        raise ProtocolError("expected that a failure is of a wrecked Python")
    return Failure(
        status=status,
        type=_name(value["type"]),
        message=_text(value["message"]),
        traceback=_text(value["traceback"]),
        kind=kind,
        rule=rule,
        hint=_instead(rule) if rule else "",
        is_wrecked="is_wrecked" in value,
    )


def _instead(rule: str) -> str:
    """Alternative that the guard's rule of this name suggests, in the host's own words."""
    from cellblock.guard.rules import BY_ID  # where a cell was refused, and nowhere else

    if rule not in BY_ID:
        raise ProtocolError("expected a rule of the guard's")
    return BY_ID[rule].instead


_CHECKS: dict[type, dict[str, Callable[[object], object]]] = {
    Hello: {"python": _name, "walls": _rows, "missing": _rows},
    Awake: {"lost": _rows, "left": _flag},
    Display: {"data": _bundle, "mimes": _mimes, "is_result": _flag, "mark": count},
    ToolCalled: {"call": count, "request": count, "name": _name, "mark": count, "beside": _places},
    Reserved: {"call": count, "places": _places},
    Wanted: {"call": count, "addresses": names, "beside": _places},
    Loading: {"group": _text},
    Finished: {
        "number": count,
        "failure": _failure,
        "duration_ms": amount,
        "cpu_ms": amount,
        "memory_peak": count,
        "gained": named,
        "dropped": names,
        "unsaved": named,
        "left": _flag,
        "beside": _places,
    },
}
