"""`cellblock mcp` as clients start it: on stdio and over HTTP, with the SDK's own clients; who is not answered."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

import anyio
import httpx2
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from cellblock import CellblockError
from cellblock.integrations.mcp import TokenWall, listen, open_server, serve_http
from cellblock.integrations.mcp.http import names_of

_ANA, _BOB = "a-token-of-ana-1234567890", "a-token-of-bob-1234567890"


# ------------------------------------------------------------------------------------------ stdio


@asynccontextmanager
async def _stdio(url: str, *words: str) -> Any:
    program = StdioServerParameters(
        command=sys.executable, args=["-m", "cellblock", "mcp", *words], env={**os.environ, "CELLBLOCK_STORE": url}
    )
    async with stdio_client(program) as (read, write), ClientSession(read, write) as client:
        await client.initialize()
        yield client


@pytest.mark.anyio
async def test_stdio_serves_the_client_that_started_it_whatever_cells_write(url: str) -> None:
    async with _stdio(url) as client:
        code = "import os\nos.write(1, b'{\"jsonrpc\": \"2.0\"}\\n')\nos.system('echo noise; echo noise >&2')\nx = 6\nx"
        result = await client.call_tool("run_python", {"code": code})
        assert result.structured_content["value"] == 6
        name = result.structured_content["session"]
        assert re.fullmatch("mcp-[0-9a-f]{8}", name)
        again = await client.call_tool("run_python", {"code": "x * 7"})
        assert (again.structured_content["session"], again.structured_content["value"]) == (name, 42)
    async with _stdio(url, "--session", name, "--tools", "run_python,undo") as client:  # another process goes on
        assert [tool.name for tool in (await client.list_tools()).tools] == ["run_python", "undo"]
        result = await client.call_tool("run_python", {"code": "x"})
        assert result.structured_content["value"] == 6


@pytest.mark.sampled(0)
@pytest.mark.anyio
async def test_a_session_that_another_program_has_open_is_refused_and_named(url: str) -> None:
    async with _stdio(url, "--session", "shared") as first, _stdio(url, "--session", "shared") as second:
        await first.call_tool("run_python", {"code": "1"})
        refused = await second.call_tool("run_python", {"code": "1"})
        assert refused.is_error
        assert "process " in refused.content[0].text
        other = await second.call_tool("run_python", {"code": "1", "session": "apart"})
        assert not other.is_error


# ------------------------------------------------------------------------------------------- HTTP


class Served:
    """A server over HTTP, in a process of its own."""

    def __init__(self, port: int, process: subprocess.Popen[str]) -> None:
        self.url = f"http://127.0.0.1:{port}/mcp"
        self.port = port
        self.process = process

    def post(self, **headers: str) -> tuple[int, str]:
        """Status and text of a request with these headers, and no others but what makes it a request."""
        given = {"Host": f"127.0.0.1:{self.port}"} | {key.replace("_", "-"): value for key, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        connection.putrequest("POST", "/mcp", skip_host=True, skip_accept_encoding=True)
        for key, value in {
            "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
            "Content-Length": str(len(body)), **given,
        }.items():  # fmt: skip
            connection.putheader(key, value)
        connection.endheaders(body.encode())
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    @asynccontextmanager
    async def client(self, token: str) -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http_client,
            Client(streamable_http_client(self.url, http_client=http_client)) as client,
        ):
            yield client


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp("served")
    tokens = directory / "tokens"
    tokens.touch(mode=0o600)
    tokens.write_text(f"# who may ask\nana {_ANA}\nbob {_BOB}\n")
    words = ["--http", "127.0.0.1:0", "--token-file", str(tokens), "--allow-host", "cells.example"]
    words += ["--allow-origin", "https://good.example", "--session", "main"]
    environment = {**os.environ, "CELLBLOCK_STORE": f"sqlite:///{directory}/cells.db"}
    process = subprocess.Popen(
        [sys.executable, "-m", "cellblock", "mcp", *words], stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.search(r"serving http://127\.0\.0\.1:(\d+)/mcp", line)
    assert found, line + process.stderr.read()
    yield Served(int(found[1]), process)
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    process.stderr.close()


@pytest.mark.sampled(0)
@pytest.mark.threat("D3")
def test_connections_that_show_no_token_take_nobodys_place(served: Served) -> None:
    with ExitStack() as stack:
        idle = []
        for number in range(300):
            idle.append(stack.enter_context(socket.create_connection(("127.0.0.1", served.port))))
            if number % 2:
                idle[-1].sendall(b"POST /mcp HTTP/1.1\r\nHost: a\r\n")
        for _ in range(5):
            assert served.post(Authorization=f"Bearer {_ANA}")[0] != 503
        for one in idle:
            one.setblocking(False)
        assert sum(_is_open(one) for one in idle) <= 64


def _is_open(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


@pytest.mark.sampled(0)
@pytest.mark.anyio
async def test_connection_is_closed_that_shows_no_token_in_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cellblock.integrations.mcp.http._STRANGER_SECONDS", 0.3)
    listener = listen("127.0.0.1:0")
    port = listener.getsockname()[1]
    request = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer %s\r\nContent-Length: 9\r\n\r\n"
    with listener:
        async with open_server(url) as server, anyio.create_task_group() as tasks:
            tasks.start_soon(serve_http, server, listener, {"ana": _ANA})
            known, wrong, silent = [await anyio.connect_tcp("127.0.0.1", port) for _ in range(3)]
            await known.send((request % _ANA).encode())
            await wrong.send((request % ("x" * 30)).encode())
            with anyio.fail_after(20):
                assert (await wrong.receive()).startswith(b"HTTP/1.1 401")
                for one in (wrong, silent):
                    with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                        await one.receive()
                await known.send(b'{"id": 1}')
                assert (await known.receive()).startswith(b"HTTP/1.1 ")
            for one in (known, wrong, silent):
                await one.aclose()
            tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_http_serves_whoever_has_a_token(served: Served) -> None:
    async with served.client(_ANA) as client:
        result = await client.call_tool("run_python", {"code": "secret = 6\nsecret * 7"})
        assert result.structured_content["value"] == 42
    async with served.client(_ANA) as client:  # another connection, the same session
        assert (await client.call_tool("run_python", {"code": "secret"})).structured_content["value"] == 6


@pytest.mark.sampled(0)
@pytest.mark.anyio
@pytest.mark.threat("D3")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_what_one_user_has_no_other_reaches(served: Served, mode: str) -> None:
    async with served.client(_ANA) as ana:
        await ana.call_tool("run_python", {"code": "secret = 6", "session": "hers"})
    headers = {"Authorization": f"Bearer {_BOB}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http_client,
        Client(streamable_http_client(served.url, http_client=http_client), mode=mode) as bob,
    ):
        read = await bob.call_tool("run_python", {"code": "secret", "session": "hers"})
        assert read.is_error
        assert "NameError" in read.content[0].text
        listed = await bob.call_tool("list_sessions", {})
        assert [one["session"] for one in listed.structured_content["sessions"]] == ["hers"]  # his own of that name
        assert [one.name for one in (await bob.list_resources()).resources] == ["hers"]
        (cell,) = (await bob.read_resource("notebook://hers/cell/0")).contents
        assert "secret = 6" not in cell.text
        assert (await bob.call_tool("export", {"session": "main"})).is_error


@pytest.mark.sampled(0)
@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_call_over_http_that_is_cancelled_interrupts_its_cell(served: Served, mode: str) -> None:
    headers = {"Authorization": f"Bearer {_ANA}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http_client,
        Client(streamable_http_client(served.url, http_client=http_client), mode=mode) as client,
    ):
        await client.call_tool("run_python", {"code": "import time", "session": mode})
        with anyio.move_on_after(1) as scope:
            await client.call_tool("run_python", {"code": "time.sleep(25); done = True", "session": mode})
        assert scope.cancelled_caught
        with anyio.fail_after(15):
            result = await client.call_tool("run_python", {"code": "'done' in globals()", "session": mode})
    assert result.structured_content["value"] is False


@pytest.mark.sampled(4)
@pytest.mark.threat("D3")
@pytest.mark.parametrize(
    ("headers", "status", "told"),
    [
        ({}, 401, "give the server's token"),
        ({"Authorization": f"Bearer {_ANA}x"}, 401, "give the server's token"),
        ({"Authorization": f"Basic {_ANA}"}, 401, "give the server's token"),
        ({"Authorization": _ANA}, 401, "give the server's token"),
        ({"Authorization": "Bearer "}, 401, "give the server's token"),
        ({"Authorization": f"Bearer {_ANA}", "Host": "evil.example"}, 421, "does not go by that name"),
        ({"Authorization": f"Bearer {_ANA}", "Host": "127.0.0.1:1"}, 421, "does not go by that name"),
        ({"Authorization": f"Bearer {_ANA}", "Origin": "https://evil.example"}, 403, "not answered"),
        ({"Authorization": f"Bearer {_ANA}", "Origin": "null"}, 403, "not answered"),
        ({"Authorization": f"Bearer {_ANA}", "Origin": "https://good.example.evil.example"}, 403, "not answered"),
    ],
)
def test_a_request_without_a_token_by_another_name_or_from_a_page_is_not_answered(
    served: Served, headers: dict[str, str], status: int, told: str
) -> None:
    assert served.post(**headers)[0] == status
    assert told in served.post(**headers)[1]


@pytest.mark.parametrize("headers", [{}, {"Host": "cells.example"}, {"Origin": "https://good.example"}])
def test_names_and_sites_that_were_allowed_are_answered(served: Served, headers: dict[str, str]) -> None:
    status, text = served.post(Authorization=f"bearer {_ANA}", **headers)
    assert status not in (401, 403, 421), text


@pytest.mark.threat("D4")
def test_a_body_that_is_too_large_is_refused(served: Served) -> None:
    status, _ = served.post(Authorization=f"Bearer {_ANA}", Content_Length=str(10**12))
    assert status == 413


# ----------------------------------------------------------------------------- tokens, addresses


def _mcp(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cellblock", "mcp", *words],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, env={**os.environ, **environment}, timeout=60,
    )  # fmt: skip


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("text", "mode", "told"),
    [
        (f"ana {_ANA}", 0o644, "can be read by others: chmod 600 it"),
        ("", 0o600, "holds no token"),
        (f"ana {_ANA}\nana {_BOB}", 0o600, "line 2"),
        (f"ana {_ANA}\nbob {_ANA}", 0o600, "line 2"),
        ("ana too short one", 0o600, "line 1"),
        ("ana short", 0o600, "16 or more"),
    ],
)
def test_a_token_file_that_is_not_as_it_should_be_serves_nobody(
    tmp_path: Path, text: str, mode: int, told: str
) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(text)
    tokens.chmod(mode)
    done = _mcp("--http", "127.0.0.1:0", "--token-file", str(tokens), CELLBLOCK_STORE=f"sqlite:///{tmp_path}/c.db")
    assert done.returncode != 0
    assert told in done.stderr
    assert _ANA not in done.stderr


def test_an_address_that_is_none_is_refused() -> None:
    for address in ("8000", "localhost:", ":80", "127.0.0.1:99999", "127.0.0.1:x"):
        with pytest.raises(CellblockError, match="is not HOST:PORT"):
            listen(address)
    with listen("127.0.0.1:0") as taken, pytest.raises(CellblockError, match="cannot listen at"):
        listen(f"127.0.0.1:{taken.getsockname()[1]}")


@pytest.mark.sampled(0)
def test_an_address_that_is_none_is_a_usage_error(tmp_path: Path) -> None:
    done = _mcp("--http", "8000", CELLBLOCK_STORE=f"sqlite:///{tmp_path}/c.db")
    assert (done.returncode, done.stderr) == (2, "cellblock: '8000' is not HOST:PORT (127.0.0.1:8000, [::1]:8000)\n")


def test_a_listener_goes_by_its_address_and_by_the_names_that_were_allowed_alone() -> None:
    with listen("127.0.0.1:0") as listener:
        port = listener.getsockname()[1]
        assert names_of(listener, ["a.example"]) == {
            f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", "a.example", f"a.example:{port}",
        }  # fmt: skip


@pytest.mark.parametrize("token", ["", "short", "with a space in the middle", "unsichtbäres-zeichen-darin"])
def test_a_token_that_is_easily_guessed_or_cannot_be_sent_is_refused(token: str) -> None:
    async def app(*_: object) -> None:
        raise AssertionError("never reached")

    with pytest.raises(CellblockError, match="16 or more visible ASCII"):
        TokenWall(app, {"ana": token}, hosts=["localhost"])
