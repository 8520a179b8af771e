"""Plain HTTP through a door: one request and its answer, each written anew, and nothing after them."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from raw_server import RESETS, RawServer, raw_server

from cellblock.executors.door import door as doors
from cellblock.executors.door.door import Door
from cellblock.executors.door.message import Refused, Unchunked
from cellblock.network import Traffic, destinations

pytestmark = [pytest.mark.threat("W3"), pytest.mark.threat("W7"), pytest.mark.timeout(60)]

_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_TOLD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
MakeDoor = Callable[..., tuple[Door, int]]


@pytest.fixture
def make() -> Iterator[MakeDoor]:
    with contextlib.ExitStack() as stack:

        def made(*servers: RawServer, max_bytes: int = 2**30) -> tuple[Door, int]:
            listener = socket.create_server(("127.0.0.1", 0))
            port = listener.getsockname()[1]
            door = Door(listener, destinations([one.place for one in servers]), max_connections=4, max_bytes=max_bytes)
            stack.callback(door.close)
            return door, port

        yield made


def _ask(port: int, request: bytes, *, ends: bool = False) -> tuple[bytes, bool]:
    """All that the door says to a request, and whether it ended it properly."""
    with socket.create_connection(("127.0.0.1", port), 10) as client:
        client.sendall(request)
        if ends:
            client.shutdown(socket.SHUT_WR)
        return _rest(client)


def _rest(client: socket.socket) -> tuple[bytes, bool]:
    said = bytearray()
    try:
        while more := client.recv(65536):
            said += more
    except ConnectionResetError:
        return bytes(said), False
    return bytes(said), True


def _get(server: RawServer, path: str = "/", *, method: str = "GET", version: str = "1.1", rest: str = "\r\n") -> bytes:
    return f"{method} http://{server.place}{path} HTTP/{version}\r\n{rest}".encode()


def _came(server: RawServer, path: str = "/", *, method: str = "GET", headers: str = "", body: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: {server.place}\r\n{headers}Connection: close\r\n\r\n"
    return head.encode() + body


@pytest.mark.parametrize("stays", [False, True])
@pytest.mark.parametrize(
    "after", ["GET http://{other}/2 HTTP/1.1\r\n\r\n", "GET /2 HTTP/1.1\r\nHost: {other}\r\n\r\n", "\x00\xff" * 100_000]
)
@pytest.mark.parametrize("at_once", [True, False])
def test_bytes_after_a_request_reach_nobody(make: MakeDoor, stays: bool, after: str, at_once: bool) -> None:
    with raw_server(_OK, stays=stays) as server, raw_server(_OK) as other:
        door, port = make(server, other)
        more = after.format(other=other.place).encode("latin-1")
        with socket.create_connection(("127.0.0.1", port), 10) as client:
            client.sendall(_get(server) + (more if at_once else b""))
            said = client.recv(1)
            if not at_once:
                with contextlib.suppress(ConnectionError):
                    client.sendall(more)
            said += _rest(client)[0]
        assert said == _TOLD
        assert server.came == [_came(server)]
        assert other.came == []
        assert door.traffic == Traffic(connections=1, sent_bytes=len(_came(server)), received_bytes=len(_OK))


@pytest.mark.parametrize(
    ("rest", "headers", "body"),
    [
        ("Content-Length: 5\r\n\r\nhelloGET http://", "Content-Length: 5\r\n", b"hello"),
        ("content-length: \t005 \r\nX: y\r\n\r\nhello", "X: y\r\nContent-Length: 5\r\n", b"hello"),
        ("Content-Length: 0\r\n\r\nhello", "Content-Length: 0\r\n", b""),
        (
            'Transfer-Encoding: Chunked\r\nTrailer: a\r\n\r\n3\r\nhel\r\n00002 ;x="y"\r\nlo\r\n000\r\na: b\r\n\r\nGET',
            "Transfer-Encoding: chunked\r\n",
            b"5\r\nhello\r\n0\r\n\r\n",
        ),
        ("Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n5\r\nhello\r\n", "Transfer-Encoding: chunked\r\n", b"0\r\n\r\n"),
        (
            "Connection: X-Mine, TE\r\nX-Mine: 1\r\nTE: trailers\r\nX: y\r\nUpgrade: h2c\r\nHost: a\r\n\r\n",
            "X: y\r\n",
            b"",
        ),
        ("Connection: Content-Length\r\nContent-Length: 5\r\n\r\nhello", "Content-Length: 5\r\n", b"hello"),
        ("Keep-Alive: 1\r\nProxy-Connection: x\r\nProxy-Authorization: x\r\n\r\n", "", b""),
    ],
)
def test_a_request_is_written_anew_from_what_was_read(make: MakeDoor, rest: str, headers: str, body: bytes) -> None:
    with raw_server(_OK, waits_for=body or b"\r\n\r\n") as server:
        _, port = make(server)
        assert _ask(port, _get(server, "/a?b", method="POST", rest=rest)) == (_TOLD, True)
        assert server.came == [_came(server, "/a?b", method="POST", headers=headers, body=body)]


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ("Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "more than one header says where the body ends"),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "more than one header says where the body ends"),
        ("Transfer-Encoding: chunked\r\nTransfer-encoding: chunked\r\n\r\n0\r\n\r\n", "more than one header says where the body ends"),
        ("Content-Length: 5, 5\r\n\r\nhello", "a malformed Content-Length"),
        ("Content-Length: +5\r\n\r\nhello", "a malformed Content-Length"),
        ("Content-Length: 0x5\r\n\r\nhello", "a malformed Content-Length"),
        ("Content-Length: 1_0\r\n\r\nhello", "a malformed Content-Length"),
        ("Content-Length:\r\n\r\nhello", "a malformed Content-Length"),
        ("Content-Length: 9999999999999999999\r\n\r\nhello", "a malformed Content-Length"),
        ("Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "a Transfer-Encoding other than chunked"),
        ("Transfer-Encoding: identity\r\n\r\n", "a Transfer-Encoding other than chunked"),
        ("Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", "a Transfer-Encoding other than chunked"),
        ("Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n", "a malformed header"),
        ("Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", "a malformed header"),
        ("X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "a malformed header"),
        ("X: y\r\n Content-Length: 5\r\n\r\nhello", "a malformed header"),
        ("X: y\rContent-Length: 5\r\n\r\nhello", "a malformed header"),
    ],
)  # fmt: skip
def test_a_request_that_ends_in_two_places_is_refused(make: MakeDoor, rest: str, why: str) -> None:
    with raw_server(_OK) as server:
        door, port = make(server)
        said, _ = _ask(port, _get(server, method="POST", rest=rest))
        assert said.partition(b"\r\n")[0] == f"HTTP/1.1 400 {why}".encode()
        assert server.came == []
        assert door.traffic == Traffic(connections_refused=1)


@pytest.mark.parametrize(
    "body",
    [
        b"5\nhello\r\n0\r\n\r\n", b"5\r\nhello!\r\n0\r\n\r\n", b"5\r\nhello\n0\r\n\r\n", b"-5\r\nhello\r\n0\r\n\r\n", b"+5\r\nhello\r\n0\r\n\r\n",
        b"0x5\r\nhello\r\n0\r\n\r\n", b"5_\r\nhello\r\n0\r\n\r\n", b" 5\r\nhello\r\n0\r\n\r\n", b"\r\n5\r\nhello\r\n0\r\n\r\n",
        b"5;\x00\r\nhello\r\n0\r\n\r\n", b"5;a\nb\r\nhello\r\n0\r\n\r\n", b"0\r\nno header\r\n\r\n", b"0\r\n a: b\r\n\r\n", b"0\r\na: b\nc: d\r\n\r\n",
        b"1" * 400, b"5;" + b"a" * 400, b"0\r\n" + b"a: b\r\n" * 2000, b"f" * 16 + b"\r\n", b"hello",  b"\r\nx",
    ],
)  # fmt: skip
def test_a_malformed_chunk_ends_the_exchange(make: MakeDoor, body: bytes) -> None:
    with raw_server(_OK, waits_for=b"0\r\n\r\n") as server:
        _, port = make(server)
        said, _ = _ask(port, _get(server, method="POST", rest="Transfer-Encoding: chunked\r\n\r\n") + body + b"\r\n")
        assert said.startswith(
            (b"HTTP/1.1 400 a malformed chunk\r\n", b"HTTP/1.1 400 a malformed header\r\n", b"HTTP/1.1 400 trailers of")
        )
        assert not any(one.endswith(b"0\r\n\r\n") for one in server.came)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"),
        (
            b"HTTP/1.1 404 Not \xe4 Found\r\nKeep-Alive: timeout=5\r\nConnection: keep-alive, A\r\nA: b\r\nProxy-Connection: x\r\nB: c\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 404 Not \xe4 Found\r\nB: c\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        ),
        (
            b"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\nTrailer: a\r\n\r\n5;x\r\nhello\r\n01\r\n!\r\n0\r\na: b\r\n\r\nHTTP/1.1 200 OK\r\n",
            b"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n6\r\nhello!\r\n0\r\n\r\n",
        ),
        (
            b"HTTP/1.1 100 Continue\r\nConnection: x\r\n\r\nHTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: a\r\n\r\n" + _TOLD,
        ),
        (b"HTTP/1.1 204 None\r\nA: b\r\n\r\nhello", b"HTTP/1.1 204 None\r\nA: b\r\nConnection: close\r\n\r\n"),
        (b"HTTP/1.1 304 Same\r\nContent-Length: 9\r\n\r\n", b"HTTP/1.1 304 Same\r\nContent-Length: 9\r\nConnection: close\r\n\r\n"),
        (b"HTTP/1.0 304 Same\r\nTransfer-Encoding: chunked\r\n\r\n", b"HTTP/1.1 304 Same\r\nConnection: close\r\n\r\n"),
    ],
)  # fmt: skip
def test_an_answer_ends_where_its_head_says_whatever_the_server_does(
    make: MakeDoor, answer: bytes, told: bytes
) -> None:
    with raw_server(answer, stays=True) as server:
        _, port = make(server)
        assert _ask(port, _get(server)) == (told, True)
        assert server.came == [_came(server)]


def test_an_answer_without_a_length_ends_with_the_connection(make: MakeDoor) -> None:
    body = b"x" * 500_000
    with raw_server(b"HTTP/1.0 200 OK\r\n\r\n" + body) as server:
        _, port = make(server)
        assert _ask(port, _get(server)) == (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body, True)


def test_an_answer_to_head_has_no_body(make: MakeDoor) -> None:
    with raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n", stays=True) as server:
        _, port = make(server)
        told = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\nConnection: close\r\n\r\n"
        assert _ask(port, _get(server, method="HEAD")) == (told, True)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "it ends before"),
        (b"HTTP/1.1 200 OK\r\nA: b", "it ends before"),
        (b"SSH-2.0-x\r\n\r\n", "not HTTP"),
        (b"HTTP/2.0 200 OK\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 20 OK\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 \x1b[0m\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nA: b\n\r\n\r\n", "a malformed header"),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", "a malformed header"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", "more than one header says where the body ends"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "more than one header says where the body ends"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "a Transfer-Encoding other than chunked"),
        (b"HTTP/1.1 101 Go\r\nUpgrade: x\r\n\r\n", "it changes the protocol, which nobody asked for"),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 100_000 + b"\r\n", "its head has more than 32768 bytes"),
    ],
)  # fmt: skip
def test_an_answer_that_is_none_is_told(make: MakeDoor, answer: bytes, why: str) -> None:
    with raw_server(answer) as server:
        door, port = make(server)
        said, ended = _ask(port, _get(server))
        assert said.partition(b"\r\n")[0] == f"HTTP/1.1 502 the answer of {server.place}: {why}".encode()
        assert ended
        assert (door.traffic.connections, door.traffic.connections_refused) == (1, 0)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("answer", [RESETS, b"HTTP/1.1 200 OK\r\n"])
def test_a_server_that_breaks_off_or_is_silent_is_told(
    make: MakeDoor, answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doors, "IDLE_SECONDS", 0.5)
    with raw_server(answer, stays=True) as server:
        _, port = make(server)
        said, ended = _ask(port, _get(server))
        told = f"HTTP/1.1 502 {server.place} broke off, or was silent for 0 s"
        assert (said.partition(b"\r\n")[0], ended) == (told.encode(), True)


@pytest.mark.parametrize("version", ["1.1", "1.0"])
@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\nx\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nhel" + RESETS,
    ],
)
def test_an_answer_that_breaks_off_does_not_look_whole(make: MakeDoor, version: str, answer: bytes) -> None:
    with raw_server(answer) as server:
        _, port = make(server)
        said, ended = _ask(port, _get(server, version=version))
        assert b"\r\n0\r\n" not in said
        assert not ended


def test_a_client_of_http_1_0_gets_neither_chunks_nor_interim_answers(make: MakeDoor) -> None:
    answer = (
        b"HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"
    )
    with raw_server(answer, stays=True) as server:
        _, port = make(server)
        told = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello"
        assert _ask(port, _get(server, version="1.0")) == (told, True)
        said, _ = _ask(port, _get(server, version="1.0", rest="Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"))
        assert said.startswith(b"HTTP/1.1 400 HTTP/1.0 has no chunks\r\n")


def test_a_client_that_waits_to_be_told_to_continue_is_told(make: MakeDoor) -> None:
    with raw_server(b"HTTP/1.1 100 Continue\r\n\r\n", _OK) as server:
        _, port = make(server)
        with socket.create_connection(("127.0.0.1", port), 10) as client:
            client.sendall(_get(server, method="PUT", rest="Expect: 100-continue\r\nContent-Length: 5\r\n\r\n"))
            assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
            client.sendall(b"hello")
            assert _rest(client) == (_TOLD, True)
        headers = "Expect: 100-continue\r\nContent-Length: 5\r\n"
        assert server.came == [_came(server, method="PUT", headers=headers, body=b"hello")]


def test_an_answer_before_the_body_has_come_is_told(make: MakeDoor) -> None:
    with raw_server(b"HTTP/1.1 413 Too much\r\nContent-Length: 0\r\n\r\n", stays=True) as server:
        _, port = make(server)
        said, _ = _ask(port, _get(server, method="PUT", rest="Content-Length: 100\r\n\r\n"))
        assert said == b"HTTP/1.1 413 Too much\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def test_a_body_that_breaks_off_is_not_whole_for_the_server(make: MakeDoor) -> None:
    with raw_server(_OK, waits_for=b"hello") as server:
        _, port = make(server)
        for rest in ("Content-Length: 5\r\n\r\nhel", "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n"):
            said, _ = _ask(port, _get(server, method="PUT", rest=rest), ends=True)
            assert said.startswith(f"HTTP/1.1 502 the answer of {server.place}: it ends before\r\n".encode())
        assert [one.partition(b"\r\n\r\n")[2] for one in server.came] == [b"hel", b"3\r\nhel\r\n"]


def test_a_websocket_is_refused_with_the_way_that_it_can_go(make: MakeDoor) -> None:
    with raw_server(_OK) as server:
        _, port = make(server)
        said, _ = _ask(port, _get(server, rest="Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"))
        told = b"HTTP/1.1 501 a websocket is opened through a tunnel: the client has to CONNECT first\r\n"
        assert said.startswith(told)
        assert server.came == []


def test_bodies_of_any_size_pass_both_ways(make: MakeDoor) -> None:
    body = b"x" * 3_000_000
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n"
    with raw_server(answer + body, waits_for=b"end") as server:
        door, port = make(server)
        request = _get(server, method="PUT", rest="Content-Length: 3000003\r\n\r\n") + body + b"end"
        said, ended = _ask(port, request)
        assert ended
        assert said.partition(b"\r\n\r\n")[2] == body
        assert server.came[0].partition(b"\r\n\r\n")[2] == body + b"end"
        assert door.traffic.received_bytes == len(answer) + len(body)
        assert door.traffic.sent_bytes == len(server.came[0])


def test_bytes_past_the_limit_are_told_before_the_answer_and_break_it_off_within(make: MakeDoor) -> None:
    with raw_server(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1_000_000) as server:
        _, port = make(server, max_bytes=500_000)
        assert _ask(port, _get(server))[1] is False
        _, port = make(server, max_bytes=50)
        said, _ = _ask(port, _get(server))
        assert said.startswith(b"HTTP/1.1 403 the session has used up ExecutionLimits.max_network_mb\r\n")


@pytest.mark.sampled(0)
@pytest.mark.threat("W6")
def test_a_client_that_floods_small_chunks_leaves_the_others_their_turn(make: MakeDoor) -> None:
    with raw_server(_OK, waits_for=b"never") as sink, raw_server(_OK) as server:
        door, port = make(sink, server)
        over = threading.Event()

        def flood() -> None:
            with socket.create_connection(("127.0.0.1", port), 10) as client, contextlib.suppress(OSError):
                client.sendall(_get(sink, method="PUT", rest="Transfer-Encoding: chunked\r\n\r\n"))
                while not over.is_set():
                    client.sendall(b"1\r\nx\r\n" * 10_000)

        flooding = threading.Thread(target=flood)
        flooding.start()
        try:
            while door.traffic.sent_bytes < 100_000:
                assert flooding.is_alive()
            for _ in range(20):
                assert _ask(port, _get(server)) == (_TOLD, True)
            assert flooding.is_alive()
        finally:
            over.set()
            flooding.join()


_PARTS = st.sampled_from(
    [
        b"0\r\n",
        b"1\r\n",
        b"5;a=b\r\n",
        b"005 \r\n",
        b"a\r\n",
        b"x",
        b"hello",
        b"helloworld",
        b"\r\n",
        b"\r",
        b"\n",
        b"a: b\r\n",
        b" ",
        b"f" * 400,
    ]
)


@given(st.lists(_PARTS, max_size=12), st.lists(st.integers(0, 60), max_size=8))
@example([b"5;a=b\r\n", b"hello", b"\r\n", b"0\r\n", b"a: b\r\n", b"\r\n"], [1, 12, 14, 20])
def test_a_body_in_chunks_is_read_as_others_read_it_wherever_it_is_cut(parts: list[bytes], cuts: list[int]) -> None:
    data = b"".join(parts)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    whole, is_over = _unchunked([data])
    assert _unchunked([data[start:end] for start, end in pairwise(edges)]) == (whole, is_over)
    assert _unchunked([data[at : at + 1] for at in range(len(data))]) == (whole, is_over)
    h11 = pytest.importorskip("h11")
    if is_over:
        reference = h11.Connection(h11.CLIENT)
        reference.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
        reference.receive_data(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + data)
        assert isinstance(reference.next_event(), h11.Response)
        read = bytearray()
        while isinstance(event := reference.next_event(), h11.Data):
            read += event.data
        assert isinstance(event, h11.EndOfMessage)
        assert read == whole


def _unchunked(pieces: list[bytes]) -> tuple[bytes | None, bool]:
    """What a body has in it, and whether it has ended; None where it is malformed."""
    body, found = Unchunked(), b""
    try:
        for piece in pieces:
            if not body.is_over:
                found += body.passed(piece)
    except Refused:
        return None, False
    return found, body.is_over
