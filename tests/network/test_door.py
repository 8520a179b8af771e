"""A door by itself, on the host's loopback: what it makes of clients and servers that are slow, many, or gone."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from cellblock.executors.door import door as doors
from cellblock.executors.door.door import Door
from cellblock.network import Traffic, destinations

pytestmark = [pytest.mark.threat("W6"), pytest.mark.threat("W3")]

MakeDoor = Callable[..., tuple[Door, int]]


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(10)
        yield listening


@pytest.fixture
def make(server: socket.socket) -> Iterator[MakeDoor]:
    with contextlib.ExitStack() as stack:

        def made(*names: str, **options: object) -> tuple[Door, int]:
            listener = socket.create_server(("127.0.0.1", 0))
            port = listener.getsockname()[1]
            if (send_buffer := options.pop("send_buffer", None)) is not None:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)  # type: ignore[arg-type]
            options = {"max_connections": 4, "max_bytes": 2**20, **options}
            door = Door(listener, destinations([f"127.0.0.1:{_port(server)}", *names]), **options)  # type: ignore[arg-type]
            stack.callback(door.close)
            return door, port

        yield made


def _port(of: socket.socket) -> int:
    port = of.getsockname()[1]
    assert isinstance(port, int)
    return port


def _said(client: socket.socket) -> bytes:
    """Until the door ends."""
    parts = []
    with contextlib.suppress(ConnectionError):
        while part := client.recv(65536):
            parts.append(part)
    return b"".join(parts)


def _client(port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), 10)
    client.settimeout(10)
    return client


def _tunnel(port: int, server: socket.socket) -> tuple[socket.socket, socket.socket]:
    client = _client(port)
    client.sendall(f"CONNECT 127.0.0.1:{_port(server)} HTTP/1.1\r\n\r\n".encode())
    assert client.recv(100) == b"HTTP/1.1 200 connected\r\n\r\n"
    far, _ = server.accept()
    far.settimeout(10)
    return client, far


def test_a_tunnel_passes_bytes_both_ways_and_each_end_s_end(make: MakeDoor, server: socket.socket) -> None:
    door, port = make()
    client, far = _tunnel(port, server)
    with client, far:
        client.sendall(b"there")
        assert far.recv(10) == b"there"
        client.shutdown(socket.SHUT_WR)
        assert far.recv(10) == b""
        far.sendall(b"and back")
        far.close()
        assert _said(client) == b"and back"
    assert door.traffic == Traffic(connections=1, sent_bytes=5, received_bytes=8)


def test_a_client_that_does_not_ask_is_sent_away(
    make: MakeDoor, server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doors, "HEAD_SECONDS", 0.2)
    door, port = make(max_connections=1)
    with _client(port) as slow:
        slow.sendall(b"GET http")
        assert _said(slow).startswith(b"HTTP/1.1 408 no request within 0 s\r\n")
    client, far = _tunnel(port, server)
    client.close()
    far.close()
    assert door.traffic.connections_refused == 1


def test_a_connection_on_which_nothing_passes_is_cut(
    make: MakeDoor, server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doors, "IDLE_SECONDS", 0.3)
    _, port = make()
    client, far = _tunnel(port, server)
    with client, far:
        assert _said(client) == b""
        assert _said(far) == b""


def test_a_client_that_does_not_read_holds_nothing_but_its_place(
    make: MakeDoor, server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doors, "IDLE_SECONDS", 0.5)
    door, port = make(max_bytes=2**40)
    client, far = _tunnel(port, server)
    with client, far, contextlib.suppress(OSError):
        while True:
            far.sendall(b"x" * 65536)
    assert door.traffic.received_bytes < 64 * 2**20


def test_bytes_past_the_limit_end_every_connection_that_passes_more(make: MakeDoor, server: socket.socket) -> None:
    door, port = make(max_bytes=100_000)
    client, far = _tunnel(port, server)
    with client, far:
        far.sendall(b"x" * 99_000)
        came = 0
        while came < 99_000:
            came += len(client.recv(99_000))
        client.sendall(b"x" * 2_000)
        assert _said(client) == b""
    with _client(port) as late:
        late.sendall(f"CONNECT 127.0.0.1:{_port(server)} HTTP/1.1\r\n\r\n".encode())
        assert _said(late).startswith(b"HTTP/1.1 403 the session has used up ExecutionLimits.max_network_mb\r\n")
    assert door.traffic.sent_bytes + door.traffic.received_bytes == 101_000


def test_shutting_cuts_what_is_open_before_it_returns(make: MakeDoor, server: socket.socket) -> None:
    door, port = make()
    client, far = _tunnel(port, server)
    with client, far, _client(port) as half:
        half.sendall(b"CONNECT ")
        door.shut()
        with contextlib.suppress(ConnectionError):
            client.sendall(b"secret")
        assert _said(far) == b""
        with contextlib.suppress(ConnectionError):
            half.sendall(f"127.0.0.1:{_port(server)} HTTP/1.1\r\n\r\n".encode())
        assert b" 200 " not in _said(half)
    with _client(port) as late:
        late.sendall(f"CONNECT 127.0.0.1:{_port(server)} HTTP/1.1\r\n\r\n".encode())
        assert _said(late).startswith(b"HTTP/1.1 403 the session holds private data: its network is closed for good")
    server.settimeout(0.1)
    with pytest.raises(TimeoutError):
        server.accept()


def test_shutting_while_a_name_is_resolved_connects_to_nothing(make: MakeDoor, server: socket.socket) -> None:
    asked, go = threading.Event(), threading.Event()

    def resolve(host: str, port: int) -> list[str]:
        asked.set()
        go.wait(10)
        return ["8.8.8.8"]

    door, port = make("slow.test:1", resolve=resolve)
    with _client(port) as client:
        client.sendall(b"CONNECT slow.test:1 HTTP/1.1\r\n\r\n")
        assert asked.wait(10)
        door.shut()
        go.set()
        assert _said(client) == b""
    assert door.traffic.connections == 0


def test_a_name_is_looked_up_each_time_and_only_what_was_looked_at_is_dialled(
    make: MakeDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [["8.8.8.8"], ["8.8.8.8", "10.0.0.1"], ["127.0.0.1"], []]
    dialled: list[str] = []

    async def dial(address: str, port: int) -> socket.socket:
        dialled.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(doors, "_dialled", dial)
    _, port = make("name.test:1", resolve=lambda host, port: answers.pop(0))
    said = []
    for _ in range(4):
        with _client(port) as client:
            client.sendall(b"CONNECT name.test:1 HTTP/1.1\r\n\r\n")
            said.append(_said(client).partition(b"\r\n")[0].decode().partition(" ")[2])
    assert dialled == ["8.8.8.8"]
    assert said == [
        "502 name.test:1 does not answer",
        "403 name.test leads to a private or special address, and only a public one is connected to",
        "403 name.test leads to a loopback address, and only a public one is connected to",
        "502 name.test cannot be resolved on the host",
    ]


def test_a_resolver_that_does_not_answer_is_not_waited_for(make: MakeDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "RESOLVE_SECONDS", 0.2)
    go = threading.Event()

    def resolve(host: str, port: int) -> list[str]:
        go.wait(10)
        return []

    _, port = make("name.test:1", resolve=resolve)
    with _client(port) as client:
        client.sendall(b"CONNECT name.test:1 HTTP/1.1\r\n\r\n")
        assert _said(client).startswith(b"HTTP/1.1 502 name.test cannot be resolved on the host\r\n")
    go.set()


@pytest.mark.sampled(0)
def test_connections_are_taken_at_a_pace(make: MakeDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "_MOST_A_SECOND", 5)
    _, port = make()
    began = time.monotonic()
    for _ in range(11):
        with _client(port) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert _said(client).startswith(b"HTTP/1.1 400 ")
    assert time.monotonic() - began > 1.5  # the pace is what is tried: two whole seconds, less what they began with


def test_clients_that_go_away_at_any_time_leave_nothing_behind(make: MakeDoor, server: socket.socket) -> None:
    door, port = make(max_connections=2)
    head = f"CONNECT 127.0.0.1:{_port(server)} HTTP/1.1\r\n\r\n".encode()
    for length in (0, 1, 10, len(head) - 1, len(head)):
        with _client(port) as client:
            client.sendall(head[:length])
    client, far = _tunnel_past_others(port, server)
    client.close()
    far.close()
    assert door.traffic.connections_refused == 0


def _tunnel_past_others(port: int, server: socket.socket) -> tuple[socket.socket, socket.socket]:
    client, far = _tunnel(port, server)
    client.sendall(b"mine")
    while far.recv(10) != b"mine":
        far.close()
        far, _ = server.accept()
        far.settimeout(10)
    return client, far


def test_a_closed_door_lets_go_of_its_port(make: MakeDoor) -> None:
    door, port = make()
    door.close()
    door.close()
    with pytest.raises(ConnectionRefusedError):
        _client(port)


def test_a_resolver_that_hangs_has_two_threads_of_a_session_and_no_more(
    make: MakeDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doors, "RESOLVE_SECONDS", 0.1)
    go, asked = threading.Event(), []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        go.wait(10)
        return []

    _, port = make("hung.test:1", resolve=resolve)
    _, other = make("name.test:1", resolve=lambda host, port: ["127.0.0.1"])
    for _ in range(4):
        with _client(port) as client:
            client.sendall(b"CONNECT hung.test:1 HTTP/1.1\r\n\r\n")
            assert _said(client).startswith(b"HTTP/1.1 502 ")
    assert len(asked) == 2
    with _client(other) as client:  # nor is anybody else's waited for
        client.sendall(b"CONNECT name.test:1 HTTP/1.1\r\n\r\n")
        assert _said(client).startswith(b"HTTP/1.1 403 name.test leads to a loopback address")
    go.set()


def test_what_is_left_of_an_answer_waits_for_a_client_that_takes_its_time(
    make: MakeDoor, server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doors, "_LINGER_SECONDS", 0.1)
    head, body = b"HTTP/1.1 200 OK\r\n", b"\r\n" + b"x" * 60_000
    door, port = make(send_buffer=4096)
    with socket.socket() as client:
        client.settimeout(10)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # what it does not read stays with the door
        client.connect(("127.0.0.1", port))
        client.sendall(f"GET http://127.0.0.1:{_port(server)}/ HTTP/1.1\r\n\r\n".encode())
        far, _ = server.accept()
        with far:
            far.recv(1000)
            far.sendall(head + body)
        while door.traffic.received_bytes < len(head + body):
            time.sleep(0.01)
        time.sleep(0.3)  # longer than a client that is refused may take
        assert _said(client) == head + b"Connection: close\r\n" + body


def test_a_client_that_is_refused_while_it_sends_is_told_why(make: MakeDoor) -> None:
    _, port = make()
    with _client(port) as client:
        client.sendall(b"POST http://other.test/ HTTP/1.1\r\nContent-Length: 8000000\r\n\r\n" + b"x" * 8_000_000)
        assert _said(client).startswith(b"HTTP/1.1 403 other.test:80 is not in the network= list of this session\r\n")
