"""Who may say what when: every pair of the table and every pair outside it; and what any bytes can do."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cellblock.wire import messages as m
from cellblock.wire.codec import decode_event, decode_request, encode_event, encode_request
from cellblock.wire.connection import MAX_PENDING_CALLS, Connection
from cellblock.wire.frames import PACKET_BYTES, Frame, ProtocolError, packets
from cellblock.wire.schema import State

REQUESTS = (
    m.Run(source="1", filename="<cell 1>", max_text=100),
    m.Shell(command="true"),
    m.Bind(name="x", buffers=(b"pickle",)),
    m.Fetch(name="x"),
    m.Survey(max_names=10, max_preview=10),
    m.Clear(),
    m.Restore(buffers=(b"{}",)),
)
REPLY = m.ToolReply(call=1, buffers=(b"[1]", b"b"))
HELLO = m.Hello(python="3.11", walls=(("root", "read-only"),), missing=(("landlock", "old", "newer"),))
DISPLAY = m.Display(data={"text/plain": "1"}, mimes=("image/png",), is_result=True, mark=1, buffers=(b"png",))
CALLED = m.ToolCalled(call=1, request=1, name="search", mark=2, buffers=(b"[[],{}]",))
FINISHED = m.Finished(
    number=1,
    failure=m.Failure(type="E", message="m", traceback="t", kind="raised"),
    duration_ms=1.5,
    cpu_ms=0.5,
    memory_peak=3,
    gained={"x": "int"},
    dropped=("y",),
    buffers=(b"v",),
)
WANTED = m.Wanted(call=1, addresses=("sha256-0",))
EVENTS = (HELLO, DISPLAY, CALLED, WANTED, m.Loading(group="x"), FINISHED)

WAYS: dict[State, tuple[object, ...]] = {
    State.OPENING: (),
    State.IDLE: (HELLO,),
    State.BUSY: (HELLO, m.Clear()),
    State.RESTORING: (HELLO, m.Restore(buffers=(b"{}",))),
}
"""A conversation that leads to each state."""

SENT = {(State.IDLE, type(request)): State.BUSY for request in REQUESTS}
SENT[State.IDLE, m.Restore] = State.RESTORING
HEARD = {
    (State.OPENING, m.Hello): State.IDLE,
    (State.IDLE, m.Display): State.IDLE,
    (State.IDLE, m.ToolCalled): State.IDLE,
    (State.BUSY, m.Display): State.BUSY,
    (State.BUSY, m.ToolCalled): State.BUSY,
    (State.BUSY, m.Finished): State.IDLE,
    (State.RESTORING, m.Display): State.RESTORING,
    (State.RESTORING, m.Wanted): State.RESTORING,
    (State.RESTORING, m.Loading): State.RESTORING,
    (State.RESTORING, m.Finished): State.IDLE,
}


def hear(connection: Connection, event: object) -> object:
    got = [connection.receive(packet) for packet in packets(encode_event(event))]  # type: ignore[arg-type]
    assert got[:-1] == [None] * (len(got) - 1)
    return got[-1]


def connected(state: State) -> Connection:
    connection = Connection()
    for message in WAYS[state]:
        if isinstance(message, EVENT_TYPES):
            hear(connection, message)
        else:
            connection.send(message)  # type: ignore[arg-type]
    assert connection.state is state
    return connection


EVENT_TYPES = tuple(map(type, EVENTS))


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("state", State)
def test_request_is_sent_where_the_table_allows_it_and_nowhere_else(state: State, request_: m.Request) -> None:
    connection = connected(state)
    after = SENT.get((state, type(request_)))
    if after is None:
        with pytest.raises(ProtocolError) as caught:
            connection.send(request_)
        assert str(caught.value) == f"{type(request_).__name__} is not allowed while {state.value}"
    else:
        connection.send(request_)
    assert connection.state is (after or state)


@pytest.mark.parametrize("event", EVENTS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("state", State)
def test_event_is_taken_where_the_table_allows_it_and_nowhere_else(state: State, event: m.Event) -> None:
    connection = connected(state)
    after = HEARD.get((state, type(event)))
    if after is None:
        with pytest.raises(ProtocolError) as caught:
            hear(connection, event)
        assert str(caught.value) == f"{type(event).__name__} is not allowed while {state.value}"
    else:
        is_late = state is State.IDLE and isinstance(event, m.ToolCalled)  # its cell has ended: nobody is told
        assert hear(connection, event) == (None if is_late else event)
    assert connection.state is (after or state)


@pytest.mark.parametrize("state", [state for state in State if state is not State.BUSY])
def test_reply_is_refused_outside_a_request(state: State) -> None:
    with pytest.raises(ProtocolError, match=f"ToolReply is not allowed while {state.value}"):
        connected(state).send(REPLY)


@pytest.mark.parametrize(
    ("state", "request_", "cause"),
    [
        *((State.IDLE, request, None) for request in REQUESTS),
        (State.BUSY, REPLY, CALLED),
        (State.BUSY, m.ToolRoom(call=1, lengths=(1,)), CALLED),
        (State.RESTORING, m.Supplied(call=1, buffers=(b"1",)), WANTED),
    ],
    ids=lambda one: type(one).__name__,
)
def test_request_that_cannot_be_encoded_leaves_everything_as_it_was(
    state: State, request_: m.Request, cause: m.Event | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lack(*_: object) -> None:
        raise MemoryError

    untried, connection = connected(state), connected(state)
    for one in (untried, connection):
        if cause is not None:
            hear(one, cause)
    for step in ("pack_request", "encode_request", "packets"):
        with monkeypatch.context() as patched:
            patched.setattr(f"cellblock.wire.connection.{step}", lack)
            if step == "pack_request" or type(request_) is not m.Run:
                with pytest.raises(MemoryError):
                    connection.send(request_)
        assert connection.state is state
    assert list(connection.send(request_)) == list(untried.send(request_))
    assert connection.state is untried.state


def test_each_call_is_answered_once() -> None:
    connection = connected(State.BUSY)
    with pytest.raises(ProtocolError, match="no call 1 waits for a reply"):
        connection.send(REPLY)
    hear(connection, CALLED)
    assert connection.send(REPLY)
    with pytest.raises(ProtocolError, match="no call 1 waits for a reply"):
        connection.send(REPLY)


def test_calls_end_with_their_request() -> None:
    connection = connected(State.BUSY)
    hear(connection, CALLED)
    hear(connection, FINISHED)
    connection.send(m.Clear())
    with pytest.raises(ProtocolError, match="no call 1 waits for a reply"):
        connection.send(REPLY)


def test_number_of_a_waiting_call_is_not_used_again() -> None:
    connection = connected(State.BUSY)
    hear(connection, CALLED)
    with pytest.raises(ProtocolError, match="a call's number is in use, or too many calls wait"):
        hear(connection, CALLED)


def test_a_call_of_another_request_is_told_to_nobody() -> None:
    connection = connected(State.BUSY)
    assert hear(connection, replace(CALLED, request=2)) is None
    with pytest.raises(ProtocolError, match="no call 1 waits for a reply"):
        connection.send(REPLY)
    assert hear(connection, CALLED) == CALLED


def test_waiting_calls_are_bounded() -> None:
    connection = connected(State.BUSY)
    for call in range(MAX_PENDING_CALLS):
        hear(connection, m.ToolCalled(call=call, request=1, name="f", mark=0))
    with pytest.raises(ProtocolError, match="a call's number is in use, or too many calls wait"):
        hear(connection, m.ToolCalled(call=MAX_PENDING_CALLS, request=1, name="f", mark=0))


@pytest.mark.parametrize(
    "message", [*REQUESTS, REPLY, m.ToolReply(call=2, error=("ValueError", "no"))], ids=lambda one: type(one).__name__
)
def test_requests_round_trip(message: m.Request) -> None:
    number, got = decode_request(encode_request(message, 7))
    assert number == 7
    if isinstance(got, m.ToolReply) and got.error is not None:
        got = m.ToolReply(call=got.call, error=tuple(got.error))  # type: ignore[arg-type]
    assert got == message


# --- fields that are not what they should be -------------------------------------------------------------------


def event(tag: str, **fields: object) -> bytes:
    return json.dumps({"is": tag, **fields}).encode()


def fields_of(good: m.Event) -> dict[str, object]:
    return json.loads(encode_event(good).head)


WRONG: dict[str, tuple[object, ...]] = {
    "number": (None, True, -1, 1.0, 2**63, "1"),
    "python": (None, 1, "x" * 4097, ["3"]),
    "walls": (None, {}, [["x"]] * 65, ["x"], [[1]], [["x" * 4097]]),
    "missing": ("x", [[None]]),
    "data": (None, [], {"x" * 4097: 1}, {str(n): n for n in range(65)}),
    "mimes": (None, "image/png", [1], [], ["a", "b"]),
    "is_result": (None, 0, 1, "true"),
    "mark": (None, True, -1, 1.0, 2**63, "1"),
    "call": (None, False, -1, 1.5, 2**64),
    "name": (None, 7, "x" * 4097),
    "failure": (
        0,
        "x",
        {},
        {"type": "E", "message": "m", "traceback": "t"},
        {"type": "E", "message": "m", "traceback": "t", "kind": "timeout"},
        {"type": "E", "message": "m", "traceback": "t", "kind": ["raised"]},
        {"type": 1, "message": "m", "traceback": "t", "kind": "raised"},
        {"type": "E", "message": None, "traceback": "t", "kind": "raised"},
        {"type": "E", "message": "m", "traceback": "t", "kind": "raised", "more": 1},
        {"type": "E", "message": "m", "traceback": "t", "kind": "refused"},
        {"type": "E", "message": "m", "traceback": "t", "kind": "raised", "rule": "import"},
        {"type": "E", "message": "m", "traceback": "t", "kind": "refused", "rule": "no rule of the guard's"},
        {"type": "E", "message": "m", "traceback": "t", "kind": "raised", "status": 256},
    ),
    "duration_ms": (None, True, -1, "1", float("nan"), float("inf"), 1e16, 10**400),
    "cpu_ms": ([], -0.5),
    "memory_peak": (1.5, -1, 2**63),
    "gained": (None, [], {"x": 1}, {"x" * 4097: "int"}, {"x": "y" * 4097}),
    "dropped": (None, "x", [1], ["x" * 4097]),
}
CASES = [(good, name, wrong) for good in EVENTS for name in fields_of(good) for wrong in WRONG.get(name, ())]


@pytest.mark.parametrize(
    ("good", "name", "wrong"),
    CASES,
    ids=[f"{type(good).__name__}.{name}-{n}" for n, (good, name, _) in enumerate(CASES)],
)
def test_field_of_the_wrong_type_or_size_is_refused(good: m.Event, name: str, wrong: object) -> None:
    head = json.dumps({**fields_of(good), name: wrong}).encode()
    with pytest.raises(ProtocolError):
        decode_event(Frame(head, getattr(good, "buffers", ())))


@pytest.mark.parametrize("good", EVENTS, ids=lambda one: type(one).__name__)
def test_missing_and_additional_fields_are_refused(good: m.Event) -> None:
    fields, buffers = fields_of(good), getattr(good, "buffers", ())
    for name in fields:
        with pytest.raises(ProtocolError):
            decode_event(Frame(json.dumps({key: fields[key] for key in fields if key != name}).encode(), buffers))
    with pytest.raises(ProtocolError):
        decode_event(Frame(json.dumps({**fields, "more": 1}).encode(), buffers))


def test_buffers_are_refused_where_an_event_has_none() -> None:
    with pytest.raises(ProtocolError, match="carries no buffers"):
        decode_event(Frame(encode_event(HELLO).head, (b"",)))


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"{",
        b"nul",
        b"\xff\xfe",
        b"[]",
        b"1",
        b"null",
        b'"run"',
        b"{}",
        b'{"is": null}',
        b'{"is": []}',
        b'{"is": "run"}',
        b'{"is": "hello"}',
        b"[" * 200_000,
        b'{"is": ' + b"[" * 900 + b"]" * 900 + b"}",
        b"9" * 10_000,
        b'{"is": "\\ud800"}',
        '{"is": "héllo"}'.encode("latin-1"),
    ],
)
def test_head_that_is_no_event_is_refused(head: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_event(Frame(head))


# --- any bytes at all ------------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
mutated_heads = (
    st.sampled_from(EVENTS)
    .map(fields_of)
    .flatmap(
        lambda fields: st.fixed_dictionaries(
            {name: st.just(value) if name == "is" else st.just(value) | json_values for name, value in fields.items()}
        )
    )
    .map(lambda head: json.dumps(head).encode())
)
heads = st.binary(max_size=60) | json_values.map(lambda value: json.dumps(value).encode()) | mutated_heads
frames = st.builds(
    lambda head, buffers: list(packets(Frame(head, tuple(buffers)))),
    heads,
    st.lists(st.binary(max_size=40) | st.just(bytes(PACKET_BYTES)), max_size=3),
)
good = st.sampled_from(EVENTS).map(lambda one: list(packets(encode_event(one))))
raw = st.binary(max_size=80).map(lambda data: [data])
sent = st.sampled_from(REQUESTS)


@settings(max_examples=400, deadline=None)
@given(st.lists(good | frames | raw | sent, max_size=12))
def test_any_bytes_yield_allowed_events_or_a_protocol_error(steps: list[object]) -> None:
    """The invariant: `receive` gives None, or an event that the table allows in the state before it and that has the
    types it declares, or raises ProtocolError. Nothing else is raised, and the state is always the table's."""
    connection = Connection()
    for step in steps:
        if not isinstance(step, list):
            try:
                connection.send(step)  # type: ignore[arg-type]
            except ProtocolError:
                continue
            continue
        for packet in step:
            before = connection.state
            try:
                got = connection.receive(packet)
            except ProtocolError:
                return
            if got is None:
                assert connection.state is before
            else:
                assert connection.state is HEARD[before, type(got)]
                json.dumps(fields_of(got))
