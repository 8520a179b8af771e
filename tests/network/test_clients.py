"""Ordinary HTTP clients in a session with a door: what they ask for comes to the server that they name, each time."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator

import pytest
from page_server import page_server
from raw_server import raw_server

from cellblock import ExecutionLimits, Session

pytestmark = [pytest.mark.threat("W3"), pytest.mark.timeout(120)]

SERVERS = {
    "stays": ("", True),  # whatever it is asked
    "closes": ("Connection: close\r\n", False),
    "closes without a word": ("", False),
    "promises to stay and closes": ("Connection: keep-alive\r\nKeep-Alive: timeout=60\r\n", False),
}
"""What a server says of its connection, and whether it stays."""

_LIBRARY = """
def get(url, **headers):
    answer = client.get(url, headers=headers)
    return answer.text if answer.status_code == 200 else f"{answer.status_code} {answer.reason%s}"
"""
CLIENTS = {
    "requests": "import requests\nclient = requests.Session()" + _LIBRARY % "",
    "httpx": "import httpx\nclient = httpx.Client()" + _LIBRARY % "_phrase",
    "urllib": """
import urllib.error, urllib.request
def get(url, **headers):
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers=headers)).read().decode()
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.reason}"
""",
    "http.client": """
import http.client, os
client = http.client.HTTPConnection(os.environ["http_proxy"].removeprefix("http://").rstrip("/"))
def get(url, **headers):
    client.request("GET", url, headers=headers)
    answer = client.getresponse()
    body = answer.read()
    return body.decode() if answer.status == 200 else f"{answer.status} {answer.reason}"
""",
    "curl": r"""
import subprocess
def get(url, **headers):
    options = [word for name, value in headers.items() for word in ("-H", f"{name}: {value}")]
    answer = subprocess.run(["curl", "-sSi", *options, url], capture_output=True, text=True, check=True).stdout
    head, _, body = answer.replace("\r", "").partition("\n\n")
    return body if " 200 " in head else head.partition("\n")[0].partition(" ")[2]
""",
}


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    """Code that defines `get`, which keeps its connections where it can."""
    name = str(request.param)
    if name in ("requests", "httpx"):
        pytest.importorskip(name)
    if name == "curl" and shutil.which("curl") is None:
        pytest.skip("there is no curl on this machine")
    return CLIENTS[name]


def _answer(of: str, says: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\n{says}Content-Length: {len(of)}\r\n\r\n{of}".encode()


@contextlib.contextmanager
def _opened(*places: str) -> Iterator[Session]:
    with Session(network=places, limits=ExecutionLimits(timeout_seconds=60)) as session:
        yield session


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("says", "stays"), SERVERS.values(), ids=SERVERS)
def test_each_request_of_a_client_comes_to_the_server_that_it_names(client: str, says: str, stays: bool) -> None:
    with raw_server(_answer("A", says), stays=stays) as one, raw_server(_answer("B", says), stays=stays) as other:
        with _opened(one.place, other.place) as session:
            assert session.run(client).error is None
            cell = session.run(
                f"[get('http://{one.place}/1'), get('http://{other.place}/2', Authorization='Bearer for-B'),"
                f" get('http://example.com/not-listed'), get('http://{one.place}/3')]"
            )
        assert cell.error is None, cell.error
        assert cell.value == ["A", "B", "403 example.com:80 is not in the network= list of this session", "A"]
        assert (cell.usage.connections, cell.usage.connections_refused) == (3, 1)
        assert [came.partition(b" HTTP/1.1\r\n")[0] for came in one.came] == [b"GET /1", b"GET /3"]
        assert [came.partition(b" HTTP/1.1\r\n")[0] for came in other.came] == [b"GET /2"]
        assert b"for-B" in other.came[0]
        assert b"for-B" not in b"".join(one.came)


@pytest.mark.sampled(0)
@pytest.mark.parametrize(("says", "stays"), SERVERS.values(), ids=SERVERS)
def test_no_request_of_a_client_that_keeps_connections_fails(client: str, says: str, stays: bool) -> None:
    with raw_server(_answer("A", says), stays=stays) as server, _opened(server.place) as session:
        assert session.run(client).error is None
        cell = session.run(f"{{get('http://{server.place}/') for _ in range(40)}}")
        assert (cell.value, cell.error, cell.usage.connections) == ({"A"}, None, 40)


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")
def test_a_client_of_http_1_0_gets_no_chunks() -> None:
    chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    with raw_server(chunks, stays=True) as server, _opened(server.place) as session:
        assert session.shell(f"curl -sS --http1.0 --raw http://{server.place}/").text.strip() == "hello"
        assert session.shell(f"curl -sS --http1.1 --raw http://{server.place}/").text.split() == ["5", "hello", "0"]


@pytest.mark.sampled(0)
@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")
def test_curl_sends_bodies_of_any_size_by_length_and_in_chunks() -> None:
    body = b"x" * 3_000_000 + b"0\r\n\r\n"
    with raw_server(_answer("A", ""), stays=True, waits_for=b"0\r\n\r\n") as server, _opened(server.place) as session:
        session.files.write("body", body)
        for sent in ("--data-binary @body", "-H Expect:100-continue -T - < body"):
            assert session.shell(f"curl -sS http://{server.place}/ {sent}").text.strip() == "A"
        by_length, chunked = (came.partition(b"\r\n\r\n")[2] for came in server.came)
        assert by_length == body
        assert chunked.count(b"x") == 3_000_000


def test_pages_of_a_server_come_one_after_the_other_over_one_client() -> None:
    pytest.importorskip("requests")
    pages = {f"/{number}": str(number).encode() * number * 1000 for number in range(20)}
    with page_server(pages) as server, _opened(server.place) as session:
        session.run("import requests\nclient = requests.Session()")
        cell = session.run(f"[len(client.get(f'http://{server.place}/{{n}}').content) for n in range(20)]")
        assert cell.value == [len(pages[f"/{number}"]) for number in range(20)]
