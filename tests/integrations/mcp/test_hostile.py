"""The MCP server under a hostile model, cell, client or neighbour: it lives, answers, and serves the others."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import logging
import os
import re
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO

import pytest

pytest.importorskip("mcp")

import anyio
from anyio import to_thread
from anyio.abc import SocketStream
from mcp import Client, MCPError
from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, PROTOCOL_VERSION_META_KEY

from cellblock import ExecutionLimits
from cellblock.integrations.mcp import listen, open_server, serve_http

_CLIENT = {"name": "test", "version": "1"}
_OPENING = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": _CLIENT}
_MODERN = "2026-07-28"
_TOKENS = {user: f"a-token-of-{user}-1234567890" for user in ("ana", "bob")}
_HALF = "\ud83d"


class Stdio:
    """A server of one client, in a process of its own."""

    def __init__(self, url: str, log: BinaryIO | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cellblock", "mcp", "--session", "main", "--store", url],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
        )  # fmt: skip
        self._ready = selectors.DefaultSelector()
        self._ready.register(self._process.stdout, selectors.EVENT_READ)  # type: ignore[arg-type]
        self._read, self._sent = b"", 0
        self.ask("initialize", _OPENING)
        self.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode())

    def send(self, line: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """The next message."""
        assert self._process.stdout is not None
        while b"\n" not in self._read:
            assert self._ready.select(60), "no answer"
            part = os.read(self._process.stdout.fileno(), 2**20)
            assert part, f"the server ended: {self._process.wait()}"
            self._read += part
        line, _, self._read = self._read.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._sent += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self._sent, "method": method, "params": params}).encode())
        while (message := self.receive()).get("id") != self._sent:
            pass
        return message

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        assert self._process.wait(30) == 0
        self._process.stdout.close()


class Http:
    """A client of a server over HTTP."""

    def __init__(self, port: int, user: str = "ana") -> None:
        self._port, self._user = port, user
        self.number: str | None = None

    def post(self, body: bytes, **headers: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        given = {"Mcp-Session-Id": self.number} if self.number else {}
        given |= {
            "Authorization": f"Bearer {_TOKENS[self._user]}", "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream", **headers,
        }  # fmt: skip
        try:
            connection.request("POST", "/mcp", body, given)
            answer = connection.getresponse()
            return answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def open(self) -> Http:
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": _OPENING}
        self.number = self.post(json.dumps(message).encode())[1]["mcp-session-id"]
        self.post(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode())
        return self

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return _answer(*self.post(json.dumps(message).encode()))


class Modern(Http):
    """A client of the protocol without a handshake."""

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        meta = {
            PROTOCOL_VERSION_META_KEY: _MODERN, CLIENT_CAPABILITIES_META_KEY: {}, CLIENT_INFO_META_KEY: _CLIENT
        }  # fmt: skip
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        named = str(params.get("name", params.get("uri", ""))).encode("utf-8", "replace")[:4000]
        headers = {"MCP-Protocol-Version": _MODERN, "Mcp-Method": method}
        if named:
            headers["Mcp-Name"] = f"=?base64?{base64.b64encode(named).decode()}?="
        return _answer(*self.post(json.dumps(message).encode(), **headers))


def _answer(status: int, headers: dict[str, str], body: bytes) -> dict[str, Any]:
    """The message of a body: the only one, or the last event; a refusal as the error that it is."""
    events = re.findall(rb"^data: ?(\{.*)\r?$", body, re.MULTILINE)
    if status >= 400 and not headers.get("content-type", "").startswith("application/json"):
        return {"error": {"message": f"HTTP {status}: {body.decode()}"}}
    answer: dict[str, Any] = json.loads(events[-1] if events else body)
    return answer


Ask = Callable[[str, dict[str, Any]], dict[str, Any]]


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    directory = tmp_path_factory.mktemp("served")
    tokens = directory / "tokens"
    tokens.touch(mode=0o600)
    tokens.write_text("".join(f"{user} {token}\n" for user, token in _TOKENS.items()))
    words = ["--http", "127.0.0.1:0", "--token-file", str(tokens), "--session", "main", "--timeout", "30"]
    words += ["--store", f"sqlite:///{directory}/cells.db", "--most", "4"]
    process = subprocess.Popen([sys.executable, "-m", "cellblock", "mcp", *words], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    found = re.search(r"serving http://127\.0\.0\.1:(\d+)/mcp", process.stderr.readline())
    assert found
    yield int(found[1])
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)


@pytest.fixture(scope="module")
def stdio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stdio]:
    server = Stdio(f"sqlite:///{tmp_path_factory.mktemp('stdio')}/cells.db")
    yield server
    server.close()


@pytest.fixture(scope="module", params=["stdio", "http", "modern"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """A client of every transport, whose session "work" is under way."""
    if request.param == "stdio":
        client: Stdio | Http = request.getfixturevalue("stdio")
    else:
        client = (Modern if request.param == "modern" else Http)(request.getfixturevalue("port"))
        if request.param == "http":
            client.open()
    _call(client.ask, "run_python", code="import threading\nlock = threading.Lock()\nwork = 1", session="work")
    return client.ask


def _call(ask: Ask, tool: str, **arguments: Any) -> dict[str, Any]:
    """The result of a call, which is text that UTF-8 encodes."""
    answer = ask("tools/call", {"name": tool, "arguments": arguments})
    assert "result" in answer, answer
    json.dumps(answer, ensure_ascii=False).encode()
    result: dict[str, Any] = answer["result"]
    return result


def _text(result: dict[str, Any]) -> str:
    text: str = result["content"][0]["text"]
    return text


def _require_alive(ask: Ask) -> None:
    alive = _call(ask, "run_python", code="lock.locked(), work", session="work")
    assert alive["structuredContent"]["value"] == [False, 1]


# ---------------------------------------------------------------------------- every value, everywhere

_ARGUMENTS: dict[str, dict[str, Any]] = {
    "run_python": {"code": "1"},
    "run_file": {"path": "a.py"},
    "shell": {"command": "true"},
    "list_files": {},
    "read_file": {"path": "a.py", "offset": 0, "max_bytes": 10},
    "write_file": {"path": "a.txt", "content": "a"},
    "upload_file": {"path": "a.txt", "data": "YQ=="},
    "undo": {"steps": 1},
    "branch": {"name": "main"},
    "merge": {"other": "nowhere", "prefer": "ours"},
    "log": {"limit": 1, "revision": "HEAD"},
    "diff": {"before": "HEAD", "after": "HEAD"},
    "checkout": {"revision": "HEAD"},
    "reset": {"files": False},
    "export": {"format": "html"},
    "list_sessions": {"after": "a"},
}
_HOSTILE: dict[str, Any] = {
    "half a character": _HALF,
    "halves the wrong way round": "a\ude00\ud83d",
    "long": "x" * 10_000,
    "a NUL": "a\0b",
    "lines": "a\nb\r\nc\u2028d",
    "a terminal's": "\x1b]0;title\x07\x9b31m",
    "another direction": "a\u202eb",
    "a look-alike": "p\u0430ypal",
    "a way out": "../../../etc/passwd",
    "a URI": "notebook://main/cell/0?a=%00%ff#x",
    "SQL": "'; DROP TABLE sessions; --",
    "a format": "{0.__class__} %s %n",
    "nothing": "",
    "a space": " ",
    "null": None,
    "true": True,
    "a fraction": 1e308,
    "a large number": 10**400,
    "a negative one": -1,
    "a list": [[]],
    "an object": {"__class__": {"a": [1]}},
    "a deep list": json.loads("[" * 60 + "]" * 60),
    "a nest as text": "[" * 100_000,
}


_TELLING = ("half a character", "lines", "a large number", "a list", "a nest as text")


@pytest.mark.sampled(2)
@pytest.mark.threat("D2")
@pytest.mark.parametrize("tool", _ARGUMENTS)
def test_no_argument_of_a_tool_ends_the_server_or_goes_without_an_answer(ask: Ask, tool: str) -> None:
    known = {one["name"]: set(one["inputSchema"]["properties"]) for one in ask("tools/list", {})["result"]["tools"]}
    assert known.keys() == _ARGUMENTS.keys()
    assert known[tool] == {*_ARGUMENTS[tool], *({"session"} if tool != "list_sessions" else ())}
    whole = isinstance(getattr(ask, "__self__", None), Stdio)  # each of the other transports takes some of them
    for argument in (*known[tool], "unheard of"):
        for value in (_HOSTILE if whole else {name: _HOSTILE[name] for name in _TELLING}).values():
            told = json.dumps(_call(ask, tool, **{**_ARGUMENTS[tool], argument: value}))
            assert "pydantic" not in told
    for name, value in _HOSTILE.items():
        answer = ask("tools/call", {"name": tool, "arguments": {value: 1} if isinstance(value, str) else value})
        assert "result" in answer or "error" in answer, name
    _require_alive(ask)


@pytest.mark.sampled(2)
@pytest.mark.threat("D2")
@pytest.mark.parametrize("form", ["{}", "notebook://{}", "notebook://{}/page", "notebook://main/cell/{}",
                                  "notebook://{}/cell/0", "notebook://main/cell/0/image/{}"])  # fmt: skip
def test_no_resource_ends_the_server_or_goes_without_an_answer(ask: Ask, form: str) -> None:
    _call(ask, "run_python", code="1")
    for value in _HOSTILE.values():
        answer = ask("resources/read", {"uri": form.replace("{}", str(value)) if type(value) is str else value})
        assert "result" in answer or answer["error"]["message"]
        json.dumps(answer, ensure_ascii=False).encode()
    _require_alive(ask)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", ["tools/call", "resources/read", "resources/list", "tools/list", "no/such"])
def test_no_parameters_end_the_server_or_go_without_an_answer(ask: Ask, method: str) -> None:
    for value in _HOSTILE.values():
        answer = ask(method, {"name": value, "uri": value, "cursor": value, "arguments": value})
        assert "result" in answer or "error" in answer
    _require_alive(ask)


@pytest.mark.sampled(0)
@pytest.mark.threat("W8")
def test_half_a_character_from_a_cell_reaches_the_client_as_text(ask: Ask) -> None:
    half = "'\\ud800'"
    value = _call(ask, "run_python", code=f"x = {half}\nx", session="half")
    assert value["structuredContent"]["value"] == "\ufffd"
    named = f"class Odd:\n    __qualname__ = {half}\n    def __repr__(self): return {half}\n"
    for code in (
        f"print({half})", f"raise ValueError({half})", f"globals()['a' + {half}] = 1", f"{{{half}: [{half}]}}",
        named + "odd = Odd()\nodd", f"display({{'text/plain': {half}, 'text/html': {half}}}, raw=True)",
        f"gone = (one for one in {half})",
    ):  # fmt: skip
        _call(ask, "run_python", code=code, session="half")
    _call(ask, "shell", command="touch $(printf 'a\\377b')", session="half")
    for tool in ("list_files", "log", "export"):
        _call(ask, tool, session="half")
    _call(ask, "diff", session="half", before="HEAD~9")
    _require_alive(ask)


def test_half_a_character_in_a_call_is_mended_and_the_call_is_carried_out(ask: Ask) -> None:
    result = _call(ask, "run_python", code=f"x = 'cut {_HALF}'\nx", session="half")
    assert result["structuredContent"]["value"] == "cut \ufffd"
    whole = _call(ask, "run_python", code="'\U0001f600'", session="half")
    assert whole["structuredContent"]["value"] == "\U0001f600"


@pytest.mark.sampled(1)
@pytest.mark.threat("W8")
def test_no_name_of_a_file_forges_a_row_of_a_list(ask: Ask) -> None:
    rows = f"rows-{secrets.token_hex(4)}"
    code = (
        "import os\nfor name in os.listdir(): os.remove(name)\n"
        "for name in ('plain', 'b\\nplain', 'c\\x1b[2J', \"'d'\", 'e\\u202ef'): open(name, 'w').close()"
    )
    _call(ask, "run_python", code=code, session=rows)
    listed = _call(ask, "list_files", session=rows)
    assert sorted(_text(listed).split("\n")) == sorted(listed["structuredContent"]["files"])
    assert listed["structuredContent"]["files"] == [
        "\"'d'\"", "'b\\nplain'", "'c\\x1b[2J'", "'e\\u202ef'", "plain",
    ]  # fmt: skip
    told = _text(_call(ask, "diff", session=rows))
    assert "+ 'workspace/b\\nplain': 0 bytes" in told.split("\n")
    _call(ask, "run_python", code="x = 1  # \x1b[2J\u202e", session=rows)
    assert "x = 1  # [U+001B][2J[U+202E]\n" in _text(_call(ask, "log", session=rows))


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("run_python", {"source": "1"}, "run_python has no argument 'source': it takes code, session"),
        ("run_python", {}, "run_python got wrong arguments: code: field required"),
        ("run_python", {"code": 1}, "run_python got wrong arguments: code: input should be a valid string"),
        ("undo", {"steps": 0}, "undo got wrong arguments: steps: input should be greater than or equal to 1"),
    ],
)
def test_an_argument_that_a_tool_does_not_take_is_named(
    ask: Ask, tool: str, arguments: dict[str, Any], told: str
) -> None:
    result = _call(ask, tool, **arguments)
    assert (result["isError"], _text(result)) == (True, told)


# ------------------------------------------------------------------------------------- what is no message

_GARBAGE = [
    b"\xff\xfe\0", b"{", b"null", b"1", b'"text"', b'"\\ud800"', b"[]", b"[1, 2]", b"{}", b'{"jsonrpc": "2.0"}',
    b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}', b'{"jsonrpc": "2.0", "id": 1, "method": 5, "params": {}}',
    b"[" * 100_000, b'{"a":' * 50_000, b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": ' + b"[" * 1000,
    b"1" * 5_000, b'{"id": 1e999}', b"\\ud800",
]  # fmt: skip


def _sent(ask: Ask, message: bytes | dict[str, Any]) -> dict[str, Any]:
    """The answer to a message as it is, on the transport of a client."""
    client: Stdio | Http = ask.__self__  # type: ignore[attr-defined]
    raw = message if isinstance(message, bytes) else json.dumps(message).encode()
    if isinstance(client, Http):
        return _answer(*client.post(raw))
    client.send(raw)
    return client.receive()


@pytest.mark.threat("D4")
def test_whatever_is_no_message_is_answered(ask: Ask) -> None:
    said = {"it cannot be read as JSON", "it is not a JSON-RPC message", "HTTP 413: the request has 5000 parts or more"}
    told = {_sent(ask, one)["error"]["message"] for one in _GARBAGE}
    assert {"it cannot be read as JSON", "it is not a JSON-RPC message"} <= told <= said
    assert _sent(ask, b'{"jsonrpc": "2.0", "id": "mine", "method": 5}')["id"] == "mine"
    assert _sent(ask, {"jsonrpc": "2.0", "id": "a" * 201, "method": 5})["id"] is None
    assert "result" in ask("tools/list", {})


@pytest.mark.threat("D4")
@pytest.mark.parametrize("given", [None, True, False, 1.5, "a" * 201, 10**200, -(10**200), [1], {"a": 1}], ids=repr)
def test_a_request_whose_id_is_none_or_too_long_is_answered(ask: Ask, given: object) -> None:
    for method in ("ping", "tools/list"):
        answer = _sent(ask, {"jsonrpc": "2.0", "id": given, "method": method, "params": {}})
        said = "the id of a request is a whole number or a text, of at most 200 characters"
        if "JSON-RPC" in answer["error"]["message"]:  # the SDK's parser takes it for nothing
            said = "it is not a JSON-RPC message"
        assert (answer["id"], answer["error"]["message"]) == (None, said)
    assert "result" in ask("tools/list", {})


@pytest.mark.sampled(0)
def test_a_notification_of_another_protocol_is_not_answered(port: int, tmp_path: Path) -> None:
    told = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}}
    client = Http(port).open()
    for method in ("$/cancelRequest", "initialized"):
        assert client.post(json.dumps(told | {"method": method}).encode())[::2] == (202, b"")
    stdio = Stdio(f"sqlite:///{tmp_path}/cells.db")
    stdio.send(json.dumps(told).encode())
    stdio.send(json.dumps({"jsonrpc": "2.0", "id": "next", "method": "ping"}).encode())
    assert stdio.receive()["id"] == "next"
    stdio.close()


@pytest.mark.threat("D4")
@pytest.mark.parametrize("given", [True, 1.5, "a" * 201, 10**200, [1], {"a": 1}], ids=repr)
def test_a_progress_token_that_is_none_or_too_long_is_refused(ask: Ask, given: object) -> None:
    params = {"name": "log", "arguments": {}, "_meta": {"progressToken": given}}
    answer = _sent(ask, {"jsonrpc": "2.0", "id": "a" * 200, "method": "tools/call", "params": params})
    said = "a progress token is a whole number or a text, of at most 200 characters"
    assert (answer["id"], answer["error"]["message"]) == ("a" * 200, said)


@pytest.mark.sampled(0)
@pytest.mark.threat("D4")
def test_an_id_that_is_under_way_over_http_is_refused_and_then_free_again(port: int) -> None:
    client = Http(port).open()
    code = "import threading\nprint('begun')\nthreading.Event().wait()"
    params = {"name": "run_python", "arguments": {"code": code, "session": "twice"}, "_meta": {"progressToken": "p"}}
    first = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {
        "Authorization": f"Bearer {_TOKENS['ana']}", "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream", "Mcp-Session-Id": str(client.number),
    }  # fmt: skip
    connection.request("POST", "/mcp", json.dumps(first).encode(), headers)
    stream = connection.getresponse()
    while b"begun" not in stream.readline():
        pass
    for number in (7, "7"):
        status, _, body = client.post(json.dumps({"jsonrpc": "2.0", "id": number, "method": "ping"}).encode())
        error = json.loads(body)["error"]["message"]
        assert (status, error) == (400, f"a request with the id {number!r} is under way")
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    assert client.post(json.dumps(cancelled).encode())[0] == 202
    assert b'"id":7' in stream.read()
    connection.close()
    while (answer := _sent(client.ask, {"jsonrpc": "2.0", "id": 7, "method": "ping"})).get("result") != {}:
        assert "is under way" in answer["error"]["message"]  # until the server, too, has ended the first one's stream


@pytest.mark.sampled(0)
@pytest.mark.threat("D4")
def test_a_client_that_does_not_read_any_more_ends_the_server_quietly(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/cells.db"
    with open(tmp_path / "log", "wb") as log:
        left = Stdio(url, log)
        _call(left.ask, "run_python", code="kept = 1")
        assert left._process.stdout is not None
        assert left._process.stdin is not None
        left._process.stdout.close()
        left.send(b'{"jsonrpc": "2.0", "id": "unread", "method": "ping"}')
        left._process.stdin.close()
        assert left._process.wait(30) == 0
    assert (tmp_path / "log").read_text() == ""
    again = Stdio(url)
    assert _call(again.ask, "run_python", code="kept")["structuredContent"]["value"] == 1
    again.close()


def test_a_prompt_that_there_is_not_is_the_clients_mistake(ask: Ask) -> None:
    error = ask("prompts/get", {"name": "x"})["error"]
    assert (error["code"], error["message"]) == (-32602, "there is no prompt 'x': this server has none")


@pytest.mark.sampled(0)
@pytest.mark.threat("D4")
def test_a_notification_takes_no_call_and_writes_no_log(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        server = Stdio(f"sqlite:///{tmp_path}/cells.db", log)
    code = {"name": "run_python", "arguments": {"code": "import time; time.sleep(0.1)"}}
    for number in range(100, 133):
        server.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": code}).encode())
    refused = server.receive()
    assert (refused["id"], refused["error"]["message"].partition(" (")[0]) == (132, "32 of your calls are under way")
    told = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 100}}
    server.send(json.dumps(told).encode())
    while server.receive()["id"] != 131:
        pass
    server.close()
    assert (tmp_path / "log").read_bytes() == b""


@pytest.mark.threat("D4")
@pytest.mark.parametrize("headers", [{}, {"MCP-Protocol-Version": _MODERN}])
def test_every_body_that_is_no_message_is_refused_over_http(port: int, headers: dict[str, str]) -> None:
    client = Http(port).open()
    for body in _GARBAGE:
        status, _, told = client.post(body, **headers)
        assert 400 <= status < 500, (body[:40], status, told)
    assert "result" in client.ask("tools/list", {})


@pytest.mark.threat("D4")
def test_a_request_of_too_many_parts_is_refused(port: int) -> None:
    client = Http(port).open()
    for code in ([0] * 5_000, {str(number): 0 for number in range(5_000)}, [[]] * 1_000_000):
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "shell", "arguments": code}}
        assert client.post(json.dumps(message).encode())[::2] == (413, b"the request has 5000 parts or more")
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": [%s]}}' % b",".join([b"9" * 4000] * 950)
    assert client.post(body)[::2] == (413, b"the request has 100000 digits or more")
    long = _call(client.ask, "run_python", code=f"len({', [{' * 1000!r})", session="long")
    assert long["structuredContent"]["value"] == 4000


# ------------------------------------------------------------------------------------------ neighbours


@pytest.mark.threat("D3")
def test_what_the_server_keeps_for_one_users_client_no_other_user_reaches(port: int) -> None:
    ana, bob = Http(port).open(), Http(port, "bob")
    bob.number = ana.number
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    assert bob.post(ping)[0] == 404
    assert ana.post(ping)[0] == 200


@pytest.mark.threat("D4")
def test_bodies_that_do_not_come_to_their_end_are_nobody_elses_wait(port: int) -> None:
    bob = Http(port, "bob").open()
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "x": "y" * 4_000_000}).encode()
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {_TOKENS['ana']}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()
    halves = {socket.create_connection(("127.0.0.1", port)): head + body[:-1] for _ in range(40)}
    for _ in range(20):
        for one, left in halves.items():
            one.setblocking(False)
            with suppress(BlockingIOError):
                halves[one] = left[one.send(left) :] if left else left
        began = time.monotonic()
        assert _sent(bob.ask, {"jsonrpc": "2.0", "id": 1, "method": "ping"})["result"] == {}
        assert time.monotonic() - began < 5
    for one in halves:
        one.close()
    assert _call(Http(port).open().ask, "run_python", code="1")["structuredContent"]["value"] == 1


@pytest.mark.threat("D4")
def test_an_answer_that_nobody_reads_or_waits_for_is_nobody_elses_wait(port: int) -> None:
    ana, bob = Http(port).open(), Http(port, "bob").open()
    _call(ana.ask, "run_python", session="slow", code=_IMAGES + "display(Image(1_000_000))")
    call = {"name": "run_python", "arguments": {"session": "slow", "code": "Image(1_000_000)"}}
    body = json.dumps({"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": call}).encode()
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {_TOKENS['ana']}\r\n"
        f"Mcp-Session-Id: {ana.number}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "Accept: application/json, text/event-stream\r\n\r\n"
    ).encode()
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(6)]
    for one in slow:
        one.sendall(head + body)
    for one in slow[::2]:
        one.close()
    assert _call(bob.ask, "run_python", code="1")["structuredContent"]["value"] == 1
    after = _call(ana.ask, "run_python", code="2", session="slow")
    assert after["structuredContent"]["value"] == 2, after
    for one in slow:
        one.close()


@pytest.mark.anyio
@pytest.mark.threat("D4")
async def test_one_users_connections_leave_room_for_anothers(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cellblock.integrations.mcp.http.MOST_CONNECTIONS", 4)
    listener = listen("127.0.0.1:0")
    port = listener.getsockname()[1]
    with listener:
        async with open_server(url) as server, anyio.create_task_group() as tasks:
            tasks.start_soon(serve_http, server, listener, _TOKENS)
            async with AsyncExitStack() as opened:
                statuses = []
                for user in ("ana", "ana", "ana", "bob", "bob", "bob"):
                    connection = await opened.enter_async_context(await anyio.connect_tcp("127.0.0.1", port))
                    statuses.append(await _status(connection, port, user))
                assert statuses == [b"405", b"405", b"503", b"405", b"405", b"503"]
            tasks.cancel_scope.cancel()


async def _status(connection: SocketStream, port: int, user: str) -> bytes:
    """Of a request over a connection that stays open."""
    head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {_TOKENS[user]}\r\nContent-Type: application/json\r\n"
    await connection.send(f"PUT /mcp HTTP/1.1\r\n{head}MCP-Protocol-Version: {_MODERN}\r\n\r\n".encode())
    with anyio.fail_after(30):
        return (await connection.receive()).split()[1]


# ------------------------------------------------------------------------------------- the event loop

_IMAGES = """
class Image:
    def __init__(self, size): self.size = size
    def _repr_png_(self): return b'\\x89PNG\\r\\n\\x1a\\n' + bytes(self.size)
"""
_HELD = 0.2
"""Seconds: ten times what a turn of the loop may take."""
_LARGE: list[tuple[str, dict[str, Any]]] = [
    ("run_python", {"code": _IMAGES + "for _ in range(20): display(Image(2**23))"}),
    ("run_python", {"code": "for _ in range(20): display(Image(2**23))"}),
    ("export", {"format": "html"}),
    ("export", {"format": "ipynb"}),
    ("run_python", {"code": "for _ in range(5000): display(Image(1))"}),
    ("run_python", {"code": "Image(1_200_000)"}),
    ("run_python", {"code": "one = [0]\nfor _ in range(17): one = [one, one]\none"}),
    ("run_python", {"code": "row = [0] * 1500\n[row] * 1500"}),
    ("run_python", {"code": "list(range(1_000_000))"}),
    ("run_python", {"code": "for n in range(1500): globals()[f'g{n}'] = (one for one in [n])"}),
    ("run_python", {"code": "for n in range(1500): open(f'{n:0200}\\n', 'w').close()"}),
    ("list_files", {}),
    ("diff", {}),
    ("run_python", {"code": "_ = open('big', 'wb').write(b'\\x01' * 30_000_000)"}),
    ("read_file", {"path": "big", "max_bytes": 250_000}),
    ("run_file", {"path": "big"}),
    ("run_python", {"code": [[]] * 900_000}),
    ("run_python", {"code": "1", "session": {str(number): [] for number in range(200_000)}}),
    ("log", {"limit": 500}),
]
_FULL = 4 * 2**20
"""Bytes that a request may have."""


def _full(piece: str, field: str = '"tool": 1, "uri": "notebook://main", "arguments"', end: str = "") -> bytes:
    """A request that is as long as it may be, by a text of one piece again and again."""
    start = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"undo",{field}:{{"session":"'.encode()
    rest = end.encode() + b'"}}}'
    return start + piece.encode() * ((_FULL - len(start) - len(rest)) // len(piece.encode())) + rest


_BODIES: dict[str, bytes] = {
    **{piece: _full(piece) for piece in ("a", "\\n", '\\"', "\\\\", "\\u0041", "\\ud83d", "\\ude00", "\\ud83d\\ude00",
                                         "\\\\ud83d", "\u00e9", "\U0001f600", "[],", "[,{")},
    "one half at the end": _full("\\ud83d\\ude00", end="\\ud83d"),
    "halves that are mended": _full("a")[:60] + b'"params":"' + b"\\ud83d" * 40_000 + b'"}',
    "JSON in a text": _full("[],").replace(b'"session":"', b'"steps":"[').replace(b',"}}}', b']"}}}'),
    "a name": _full("a").replace(b'"name":"undo",', b"").replace(b'"session"', b'"name"'),
    "an unknown argument": _full("a").replace(b'"session":"a', b'"a').replace(b'"}}}', b'":1}}}'),
    "a unit": b"1" * _FULL,
    "marks": b"\\" * _FULL,
    "texts": b'"' * _FULL,
    "lists": b"[" * _FULL,
    "lists of nothing": b"[" + b"[]," * (_FULL // 3 - 3) + b"[]]",
}  # fmt: skip


@pytest.mark.sampled(0)
@pytest.mark.anyio
@pytest.mark.threat("D4")
async def test_no_call_holds_the_event_loop(url: str) -> None:
    limits = ExecutionLimits(timeout_seconds=60, max_memory_mb=1024)
    listener = listen("127.0.0.1:0")
    client = Http(listener.getsockname()[1])
    longest = [0.0]

    async def beat() -> None:
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.002)
            longest[0] = max(longest[0], time.monotonic() - began)

    async def asked(body: bytes) -> float:
        """How long the loop was held meanwhile, at most."""
        longest[0] = 0.0
        await to_thread.run_sync(client.post, body)
        await asyncio.sleep(0.05)
        return longest[0]

    async def held_by(body: bytes) -> float:
        """The least of three times: what a busy machine adds, it does not add each time."""
        found = _HELD
        for _ in range(3):
            idle = max([await asked(_body("ping", {})) for _ in range(2)])
            found = await asked(body) - idle
            if found < _HELD:
                break
        return found

    with listener:
        async with open_server(url, session="main", limits=limits) as server, anyio.create_task_group() as tasks:
            tasks.start_soon(serve_http, server, listener, {"ana": _TOKENS["ana"]})
            tasks.start_soon(beat)
            await to_thread.run_sync(client.open)
            await asked(_body("tools/call", {"name": "run_python", "arguments": {"code": "1"}}))  # opens the session
            calls = [("tools/call", {"name": tool, "arguments": arguments}) for tool, arguments in _LARGE]
            calls += [
                ("resources/read", {"uri": f"notebook://main{rest}"})
                for rest in ("", "/page", "/cell/1", "/cell/1/image/0", "/cell/4/image/0")
            ]
            held = {what: await held_by(body) for what, body in _BODIES.items()}
            for number, (method, params) in enumerate(calls):
                held[f"{number} {params!r:.60}"] = await held_by(_body(method, params))
            tasks.cancel_scope.cancel()
    assert {what: seconds for what, seconds in held.items() if seconds >= _HELD} == {}


@pytest.mark.sampled(0)
@pytest.mark.anyio
@pytest.mark.threat("D4")
async def test_an_unforeseen_error_is_one_line_of_the_log_and_holds_no_loop(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])  # as in a program that sets up no logging
    longest = [0.0]

    def fails(self: object = None, *_: object, **__: object) -> Any:
        return 1 / 0

    def broken() -> str:
        return str(fails())

    async def beat() -> None:
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.002)
            longest[0] = max(longest[0], time.monotonic() - began)

    async with open_server(url, session="main") as server, Client(server) as client, anyio.create_task_group() as tasks:
        server.add_tool(broken)
        server.resource("broken://it")(broken)
        monkeypatch.setattr(type(server.pool), "list", fails)

        async def call_tool() -> str:
            (part,) = (await client.call_tool("broken", {})).content
            return str(getattr(part, "text", part))

        async def told(ask: Callable[[], Awaitable[object]]) -> str:
            with pytest.raises(MCPError) as raised:
                await ask()
            return str(raised.value)

        asked: dict[str, Callable[[], Awaitable[str]]] = {
            "broken": call_tool,
            "resources/read": lambda: told(lambda: client.read_resource("broken://it")),
            "resources/list": lambda: told(client.list_resources),
        }
        tasks.start_soon(beat)
        for what, ask in asked.items():
            assert "failed for a reason of the server's own, ZeroDivisionError" in await ask(), what
            logged = capsys.readouterr().err
            line = rf"{what} failed: ZeroDivisionError\('division by zero'\) \(test_hostile.py:\d+\)\n"
            assert re.fullmatch(line, logged), logged
            turns = []
            for asking in (asyncio.sleep, ask) * 3:
                longest[0] = 0.0
                await (asking(0.1) if asking is asyncio.sleep else asking())  # type: ignore[operator]
                await asyncio.sleep(0.01)
                turns.append(longest[0])
            assert min(turns[1::2]) - min(turns[::2]) < _HELD, (what, turns)
            capsys.readouterr()
        tasks.cancel_scope.cancel()
    assert root.handlers == []


def _body(method: str, params: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


# ------------------------------------------------------------------------------------------- exports


@pytest.mark.sampled(0)
def test_a_notebook_too_large_for_an_answer_is_exported_without_its_oldest_outputs(ask: Ask, tmp_path: Path) -> None:
    for number in range(3):
        code = (_IMAGES if not number else "") + f"print('cell {number}')\nImage(600_000)"
        _call(ask, "run_python", code=code, session="large")
    (read,) = ask("resources/read", {"uri": "notebook://large"})["result"]["contents"]
    cells = [json.dumps(cell["outputs"]) for cell in json.loads(read["text"])["cells"]]
    assert [("image/png" in outputs, "one MCP answer" in outputs) for outputs in cells][-1] == (True, False)
    assert "outputs dropped" in cells[-3]
    assert "(one MCP answer)" in cells[-3]
    code = "#" + "\\" * (2**20 - 1)  # which JSON doubles, in the notebook and in the answer
    assert "result" in ask("tools/call", {"name": "run_python", "arguments": {"code": code, "session": "wide"}})
    told = _text(_call(ask, "export", session="wide"))
    assert told.endswith("(read its cells one by one: notebook://SESSION/cell/0)")
