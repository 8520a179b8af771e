"""The one table of messages: who may send each, in which state of the conversation, and within what bounds.

Requests come from the host and are trusted by the worker. Events come from inside the wall and are hostile: every field
of one is checked for type and size. What no row allows is a breach of the protocol, `ProtocolError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from enum import Enum

from cellblock.wire import messages as m
from cellblock.wire.frames import MAX_BUFFERS, ProtocolError

Check = Callable[[object], object]
"""Takes a value as JSON gives it, and returns it as a message holds it; ProtocolError for any other."""

_MAX_TEXT = 16 * 2**20
_MAX_NAME = 4096
_MAX_NAMES = 1_000_000
_MAX_STATUS = 255


# ------------------------------------------------------------------------------------------ bounds


def record(value: object, checks: Mapping[str, Check], required: Set[str], otherwise: str) -> dict[str, object]:
    """The fields of an object, each checked: just those of `checks`, of which the `required` ones may not lack.

    `otherwise` is the error's message where it is none.
    """
    if type(value) is not dict or not required <= value.keys() <= checks.keys():
        raise ProtocolError(otherwise)
    return {name: checks[name](part) for name, part in value.items()}


def listed(value: object, most: int = _MAX_NAMES, what: str = "a list") -> list[object]:
    """A list of no more than so many."""
    if type(value) is not list or len(value) > most:
        raise ProtocolError(f"expected {what}")
    return value


def row(value: object, length: int, what: str = "a row") -> list[object]:
    """A list of just so many."""
    found = listed(value, length, what)
    if len(found) != length:
        raise ProtocolError(f"expected {what}")
    return found


def count(value: object) -> int:
    """A whole number that fits 63 bits."""
    if type(value) is not int or not 0 <= value < 2**63:
        raise ProtocolError("expected a count")
    return value


def amount(value: object) -> float:
    """A number from 0 that is not out of all proportion."""
    if type(value) not in (int, float) or not 0 <= value < 1e15:  # type: ignore[operator]
        raise ProtocolError("expected an amount")
    return float(value)  # type: ignore[arg-type]


def names(value: object) -> tuple[str, ...]:
    """A list of names."""
    return tuple(map(_name, listed(value, what="a list of names")))


def named(value: object) -> dict[str, str]:
    """Names, each with that of a type."""
    if type(value) is not dict or len(value) > _MAX_NAMES:
        raise ProtocolError("expected names")
    return {_name(key): _name(item) for key, item in value.items()}


def _text(value: object) -> str:
    if type(value) is not str or len(value) > _MAX_TEXT:
        raise ProtocolError("expected text")
    return value


def _name(value: object) -> str:
    if type(value) is not str or len(value) > _MAX_NAME:
        raise ProtocolError("expected a name")
    return value


def _flag(value: object) -> bool:
    if type(value) is not bool:
        raise ProtocolError("expected a flag")
    return value


def _true(value: object) -> bool:
    if value is not True:
        raise ProtocolError("expected a flag that is set")
    return True


def _rows(value: object) -> tuple[tuple[str, ...], ...]:
    return tuple(map(names, listed(value, 64)))


def _mimes(value: object) -> tuple[str, ...]:
    return tuple(map(_name, listed(value, 64, "the names of buffers")))


def _bundle(value: object) -> dict[str, object]:
    if type(value) is not dict or len(value) > 64:
        raise ProtocolError("expected a MIME bundle")
    return {_name(mime): part for mime, part in value.items()}


def _places(value: object) -> tuple[m.Place, ...]:
    return tuple(map(_place, listed(value, MAX_BUFFERS)))


def _place(value: object) -> m.Place:
    number, address, length = map(count, row(value, 3))
    return number, address, length


def _status(value: object) -> int:
    if (status := count(value)) > _MAX_STATUS:
        raise ProtocolError("expected an exit status")
    return status


def failure(value: object) -> m.Failure | None:
    """A failure, or None: the hint of the guard's rule is added in the host's own words."""
    if value is None:
        return None
    fields = record(value, _FAILURE, _REQUIRED_OF_FAILURE, "expected a failure")
    rule = fields.get("rule", "")
    if fields["kind"] not in ("raised", "memory", "refused") or (fields["kind"] == "refused") is not bool(rule):
        raise ProtocolError("expected a failure's kind")
    if rule:
        from cellblock.guard.rules import BY_ID  # where a cell was refused, and nowhere else

        if rule not in BY_ID:
            raise ProtocolError("expected a rule of the guard's")
        fields["hint"] = BY_ID[rule].instead
    return m.Failure(**fields)  # type: ignore[arg-type]


_FAILURE: dict[str, Check] = {
    "type": _name,
    "message": _text,
    "traceback": _text,
    "kind": _name,
    "rule": _name,
    "status": _status,
    "is_wrecked": _true,
}
_REQUIRED_OF_FAILURE = _FAILURE.keys() - {"rule", "status", "is_wrecked"}

# ------------------------------------------------------------------------------------------- table


class State(Enum):
    """State of the conversation."""

    __hash__ = object.__hash__  # Enum's own runs Python code at each look-up

    OPENING = "opening"
    IDLE = "idle"
    BUSY = "busy"
    RESTORING = "restoring"


States = Mapping[State, State]
"""States that allow a message, each with the one that follows."""

_STARTING = {State.IDLE: State.BUSY}
_RUNNING = {State.BUSY: State.BUSY}
_AT_ANY_TIME = {State.IDLE: State.IDLE, **_RUNNING}  # threads of the cells live on between them
_RESTORING = {State.RESTORING: State.RESTORING}

REQUESTS: dict[type, States] = {
    **dict.fromkeys(
        (m.Run, m.Shell, m.Bind, m.Reserve, m.Fetch, m.Survey, m.Clear, m.Sow, m.Equip, m.Restrict), _STARTING
    ),
    m.ToolReply: _RUNNING,
    m.ToolRoom: _RUNNING,
    m.Restore: {State.IDLE: State.RESTORING},
    m.Supplied: _RESTORING,
}
"""Messages of the host, which is trusted: of their fields only the shape is followed."""


class Row:
    """An event: its name on the wire, when it may come, and its fields; `optional` ones are left out where empty."""

    def __init__(self, tag: str, states: States, fields: Mapping[str, Check], optional: tuple[str, ...] = ()) -> None:
        self.tag = tag
        self.states = states
        self.fields = fields
        self.required = fields.keys() - optional
        self.otherwise = f"event {tag!r} has the wrong fields"


EVENTS: dict[type, Row] = {
    m.Hello: Row("hello", {State.OPENING: State.IDLE}, {"python": _name, "walls": _rows, "missing": _rows}),
    m.Awake: Row("awake", {State.OPENING: State.IDLE}, {"lost": _rows, "left": _flag}, optional=("left",)),
    m.Display: Row(
        "display",
        {**_AT_ANY_TIME, **_RESTORING},
        {"data": _bundle, "mimes": _mimes, "is_result": _flag, "mark": count},
    ),
    m.ToolCalled: Row(
        "tool",
        _AT_ANY_TIME,  # one that came late is told to nobody
        {"call": count, "request": count, "name": _name, "mark": count, "beside": _places},
        optional=("beside",),
    ),
    m.Reserved: Row("reserved", _AT_ANY_TIME, {"call": count, "places": _places}),
    m.Wanted: Row(
        "wanted", _RESTORING, {"call": count, "addresses": names, "beside": _places}, optional=("beside",)
    ),
    m.Loading: Row("loading", _RESTORING, {"group": _text}),
    m.Finished: Row(
        "finished",
        {State.BUSY: State.IDLE, State.RESTORING: State.IDLE},
        {
            "number": count,
            "failure": failure,
            "duration_ms": amount,
            "cpu_ms": amount,
            "memory_peak": count,
            "gained": named,
            "dropped": names,
            "unsaved": named,
            "left": _flag,
            "beside": _places,
        },
        optional=("unsaved", "left", "beside"),
    ),
}
"""Messages of the worker, which is hostile."""
