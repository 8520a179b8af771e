"""What the tools of the MCP server do, seen by the SDK's own client within one process."""

from __future__ import annotations

import base64
import json
import sqlite3
import struct
import threading
import zlib
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any

import anyio
import pytest

pytest.importorskip("mcp")

from mcp import Client, MCPError
from mcp_types import CallToolResult

from cellblock import ExecutionLimits
from cellblock.integrations.mcp import open_server
from cellblock.session.session import AsyncSession
from cellblock.session.shown import mime_type
from cellblock.store import Commit
from cellblock.values import portable

pytestmark = pytest.mark.anyio

_TOOLS = {
    "run_python", "run_file", "shell", "list_files", "read_file", "write_file", "upload_file", "undo", "branch",
    "merge", "log", "diff", "checkout", "reset", "export", "list_sessions",
}  # fmt: skip


def _png(width: int = 3) -> bytes:
    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress(b"".join(b"\0" + b"\xff\0\0" * width for _ in range(width)))
    header = struct.pack(">IIBBBBB", width, width, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", rows) + part(b"IEND", b"")


_SHOWS = f"""
class Picture:
    def _repr_png_(self):
        return {_png()!r}
Picture()
"""


@pytest.fixture
async def client(url: str) -> AsyncIterator[Client]:
    limits = ExecutionLimits(timeout_seconds=20)
    async with open_server(url, session="main", limits=limits) as server, Client(server) as client:
        yield client


async def _call(client: Client, tool: str, **arguments: object) -> CallToolResult:
    return await client.call_tool(tool, arguments)


async def _done(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    result = await _call(client, tool, **arguments)
    assert not result.is_error, result
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def _text(result: CallToolResult) -> str:
    (text,) = [part.text for part in result.content if part.type == "text"]
    return text


async def test_every_tool_has_an_answer_with_a_schema_and_says_what_it_may_change(client: Client) -> None:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == _TOOLS
    for tool in tools.values():
        assert tool.description
        assert tool.output_schema
        assert tool.annotations
        assert tool.annotations.open_world_hint is False
    reading = {name for name, tool in tools.items() if tool.annotations.read_only_hint}
    assert reading == {"list_files", "read_file", "log", "diff", "export", "list_sessions"}
    assert {name for name, tool in tools.items() if tool.annotations.destructive_hint is False} == {"branch"}


async def test_names_live_on_in_the_session_that_is_named_and_not_in_another(client: Client) -> None:
    first = await _done(client, "run_python", code="x = [1]\nprint('hé')\nx")
    assert (first["session"], first["number"], first["text"], first["value"]) == ("main", 1, "hé\n[1]", [1])
    assert (await _done(client, "run_python", code="x"))["value"] == [1]
    other = await _call(client, "run_python", code="x", session="other")
    assert other.is_error
    assert "NameError: name 'x' is not defined" in _text(other)
    assert [one["session"] for one in (await _done(client, "list_sessions"))["sessions"]] == ["main", "other"]


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    ("code", "value"),
    [("(1, 'a', None)", [1, "a", None]), ("{'a': [True]}", {"a": [True]}), ("float('nan')", None), ("object()", None)],
)
async def test_a_value_is_told_where_it_is_json(client: Client, code: str, value: object) -> None:
    assert (await _done(client, "run_python", code=code))["value"] == value


@pytest.mark.sampled(0)
async def test_a_value_is_read_beside_the_event_loop_and_a_large_one_not_at_all(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpack, threads = portable.unpack, list[int]()

    def noted(buffers: tuple[portable.Buffer, ...]) -> object:
        threads.append(threading.get_ident())
        return unpack(buffers)

    monkeypatch.setattr(portable, "unpack", noted)
    for code, value in (("[[[]]] * 26_000", None), ("[{}] * 3_000", None), ("[{}] * 2_400", [{}] * 2_400)):
        assert (await _done(client, "run_python", code=code))["value"] == value
    assert len(threads) == 1
    assert threading.get_ident() not in threads


@pytest.mark.sampled(0)
async def test_what_a_result_lacks_and_a_commands_status_are_fields(client: Client) -> None:
    long = await _done(client, "run_python", code="print('x' * 3_000_000)")
    assert long["cut"] > 0
    marked = await _done(client, "run_python", code=f"print({long['text'][-60:]!r} + '\\n[... 9 bytes cut ...]')")
    assert (marked["cut"], marked["status"]) == (0, None)
    failed = await _call(client, "shell", command="echo 0; exit 3")
    assert failed.structured_content is not None
    assert failed.structured_content["status"] == 3


async def test_what_a_cell_did_wrong_is_an_error_with_its_reason_and_the_session_goes_on(client: Client) -> None:
    await _done(client, "run_python", code="x = 1")
    raised = await _call(client, "run_python", code="x = 2\n1 / 0")
    assert raised.is_error
    assert "ZeroDivisionError: division by zero" in _text(raised)
    crashed = await _call(client, "run_python", code="x = 3\nimport os; os._exit(1)")
    assert crashed.structured_content is not None
    assert crashed.structured_content["error"]["kind"] == "crashed"
    assert crashed.structured_content["rolled_back"] is True
    assert "the session is as it was before this cell" in _text(crashed)
    assert (await _done(client, "run_python", code="x"))["value"] == 2


@pytest.mark.sampled(0)
async def test_images_are_content_and_resources(client: Client) -> None:
    result = await _call(client, "run_python", code=_SHOWS)
    (image,) = [part for part in result.content if part.type == "image"]
    assert (image.mime_type, base64.b64decode(image.data)) == ("image/png", _png())
    assert result.structured_content is not None
    (uri,) = result.structured_content["images"]
    assert uri == f"notebook://main/cell/{result.structured_content['cell']}/image/0"
    assert uri in _text(result)
    (read,) = (await client.read_resource(uri)).contents
    assert (read.mime_type, base64.b64decode(read.blob)) == ("image/png", _png())  # type: ignore[union-attr]


@pytest.mark.sampled(0)
async def test_bytes_that_are_no_image_are_not_called_one(client: Client) -> None:
    lying = "class Lie:\n    def _repr_png_(self): return b'<svg onload=alert(1)>'\nLie()"
    result = await _call(client, "run_python", code=lying)
    assert [part.type for part in result.content] == ["text"]
    assert mime_type(b"<svg onload=alert(1)>") == mime_type(b"RIFF0000WAVE") == "application/octet-stream"
    assert [mime_type(data) for data in (_png(), b"\xff\xd8\xff\xe0", b"GIF89a", b"RIFF0000WEBP")] == [
        "image/png", "image/jpeg", "image/gif", "image/webp",
    ]  # fmt: skip


@pytest.mark.sampled(0)
async def test_notebooks_are_resources(client: Client) -> None:
    await _done(client, "run_python", code="6 * 7", session="a/b c")
    (listed,) = (await client.list_resources()).resources
    assert (listed.name, listed.uri) == ("a/b c", "notebook://a%2Fb%20c")
    (read,) = (await client.read_resource(listed.uri)).contents
    assert json.loads(read.text)["cells"][0]["source"] in ("6 * 7", ["6 * 7"])  # type: ignore[union-attr]
    (page,) = (await client.read_resource(f"{listed.uri}/page")).contents
    assert page.mime_type == "text/html"
    assert "6 * 7" in page.text.replace("&nbsp;", " ") or "42" in page.text  # type: ignore[union-attr]
    (cell,) = (await client.read_resource(f"{listed.uri}/cell/0")).contents
    assert json.loads(cell.text)["value"] is None or json.loads(cell.text)["text"] == "42"  # type: ignore[union-attr]
    templates = {one.uri_template for one in (await client.list_resource_templates()).resource_templates}
    assert templates == {
        "notebook://{session}",
        "notebook://{session}/page",
        "notebook://{session}/cell/{cell}",
        "notebook://{session}/cell/{cell}/image/{number}",
    }


@pytest.mark.sampled(1)
@pytest.mark.parametrize("rest", ["nobody", "main/cell/9", "main/cell/0/image/0", "main/cell/..%2F..%2Fetc"])
async def test_what_is_not_there_cannot_be_read(client: Client, rest: str) -> None:
    await _done(client, "run_python", code="1")
    with pytest.raises(MCPError):
        await client.read_resource(f"notebook://{rest}")


async def test_files_are_written_listed_read_and_run(client: Client) -> None:
    await _done(client, "write_file", path="lib/job.py", content="made = 'é' * 3\nprint(made)")
    await _done(client, "upload_file", path="raw.bin", data=base64.b64encode(b"\xff\0\x01").decode())
    assert (await _done(client, "list_files"))["files"] == ["lib/job.py", "raw.bin"]
    assert (await _done(client, "run_file", path="lib/job.py"))["text"] == "ééé"
    assert (await _done(client, "run_python", code="made"))["value"] == "ééé"
    raw = await _done(client, "read_file", path="raw.bin")
    assert (raw["encoding"], raw["data"], raw["size"]) == ("base64", "/wAB", 3)
    assert "3 lib/job.py" not in (await _done(client, "shell", command="wc -c < raw.bin"))["text"]


async def test_a_file_is_read_in_parts_that_cut_no_character(client: Client) -> None:
    await _done(client, "write_file", path="t.txt", content="aé" * 3)
    parts, offset = [], 0
    while True:
        part = await _done(client, "read_file", path="t.txt", offset=offset, max_bytes=5)
        assert part["encoding"] == "text"
        parts.append(part["data"])
        offset += len(part["data"].encode())
        if not part["truncated"]:
            break
    assert parts == ["aéa", "éaé"]


async def test_the_smallest_part_of_a_file_holds_a_character(client: Client) -> None:
    text = "日\U0001f40da"
    await _done(client, "write_file", path="t.txt", content=text)
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    least = tools["read_file"].input_schema["properties"]["max_bytes"]["minimum"]
    data, offset, truncated = "", 0, True
    while truncated:
        part = await _done(client, "read_file", path="t.txt", offset=offset, max_bytes=least)
        assert (part["encoding"], part["data"] != "") == ("text", True)
        data, truncated = data + part["data"], part["truncated"]
        offset += len(part["data"].encode())
    assert data == text


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("read_file", {"path": "../../etc/passwd"}, "is not among the session's files"),
        ("read_file", {"path": "missing"}, "missing"),
        ("upload_file", {"path": "x", "data": "!!"}, "write_file takes text as it is"),
        ("undo", {"steps": 0}, "greater than or equal to 1"),
        ("undo", {"steps": 50}, "goes past the first commit"),
        ("checkout", {"revision": "nowhere"}, "nowhere"),
        ("log", {"session": "typo"}, "has no session 'typo'"),
        ("run_python", {"code": "1", "session": "a\u202eb"}, "cannot be seen"),
        ("run_file", {"path": "missing.py"}, "missing.py"),
    ],
)
async def test_what_cannot_be_done_is_a_tools_error_that_says_why(
    client: Client, tool: str, arguments: dict[str, object], told: str
) -> None:
    await _done(client, "run_python", code="1")
    result = await _call(client, tool, **arguments)
    assert result.is_error
    assert told in _text(result)
    assert (await _done(client, "run_python", code="2"))["value"] == 2


async def test_history(client: Client) -> None:
    await _done(client, "run_python", code="x = 1")
    await _done(client, "run_python", code="x = 2; open('out.txt', 'w').write('two')")
    log = (await _done(client, "log"))["commits"]
    assert [(one["kind"], one["number"], one["message"]) for one in log] == [
        ("python", 2, "x = 2; open('out.txt', 'w').write('two')"),
        ("python", 1, "x = 1"),
        ("open", 0, ""),
    ]
    diff = await _done(client, "diff")
    assert diff["names"] == [
        {
            "name": "x",
            "before": {"type": "int", "size": 28, "preview": "1"},
            "after": {"type": "int", "size": 28, "preview": "2"},
        }
    ]
    assert diff["files"] == [{"path": "workspace/out.txt", "before": None, "after": 3}]
    assert (await _done(client, "undo"))["at"]["message"] == "x = 1"
    assert (await _done(client, "run_python", code="import os\nx, os.listdir()"))["value"] == [1, []]
    assert (await _done(client, "checkout", revision=log[0]["commit"]))["at"]["number"] == 2
    assert (await _done(client, "run_python", code="x"))["value"] == 2


async def test_a_branch_goes_on_apart_with_objects_that_no_file_holds_and_is_merged(client: Client) -> None:
    await _done(client, "run_python", code="numbers = (n for n in range(9)); next(numbers)")
    assert (await _done(client, "branch", name="idea"))["session"] == "idea"
    assert (await _done(client, "run_python", code="found = next(numbers)\nfound", session="idea"))["value"] == 1
    assert (await _done(client, "run_python", code="next(numbers)"))["value"] == 1
    again = await _call(client, "branch", name="idea")
    assert again.is_error
    await _done(client, "merge", other="idea")
    assert (await _done(client, "run_python", code="found"))["value"] == 1


@pytest.mark.sampled(0)
async def test_reset_of_files_is_one_step(client: Client) -> None:
    await _done(client, "run_python", code="x = 1\nfor n in range(5): open(f'{n}.txt', 'w').close()")
    await _done(client, "reset", files=True)
    assert (await _done(client, "list_files"))["files"] == []
    assert (await _done(client, "log", limit=1))["commits"][0]["message"] == "clear files"
    await _done(client, "undo")
    assert (await _done(client, "run_python", code="x"))["value"] == 1
    assert (await _done(client, "list_files"))["files"] == [f"{n}.txt" for n in range(5)]


@pytest.mark.sampled(0)
async def test_reset_forgets_names_and_keeps_the_history(client: Client) -> None:
    await _done(client, "run_python", code="x = 1; open('a.txt', 'w').close()")
    await _done(client, "reset")
    assert (await _call(client, "run_python", code="x")).is_error
    assert (await _done(client, "list_files"))["files"] == ["a.txt"]
    await _done(client, "reset", files=True)
    assert (await _done(client, "list_files"))["files"] == []
    log = (await _done(client, "log"))["commits"]
    await _done(client, "checkout", revision=next(one["commit"] for one in log if one["message"].startswith("x = 1")))
    assert (await _done(client, "run_python", code="x"))["value"] == 1


@pytest.mark.sampled(0)
async def test_the_notebook_is_exported_a_large_one_as_a_link(client: Client) -> None:
    await _done(client, "run_python", code="1 + 1")
    result = await _call(client, "export")
    (embedded,) = [part for part in result.content if part.type == "resource"]
    assert json.loads(embedded.resource.text)["nbformat"] == 4  # type: ignore[union-attr]
    await _done(client, "run_python", code="# " + "x" * 300_000)
    result = await _call(client, "export", format="html")
    (link,) = [part for part in result.content if part.type == "resource_link"]
    assert (link.uri, link.mime_type) == ("notebook://main/page", "text/html")
    assert (result.structured_content or {})["cells"] == 2


@pytest.mark.sampled(0)
async def test_progress_is_told_while_a_cell_runs(client: Client) -> None:
    told: list[tuple[float, str | None]] = []

    async def progress(done: float, _total: float | None, message: str | None) -> None:
        told.append((done, message))

    code = "import time\nprint('begun', flush=True)\ntime.sleep(1.5)"
    await client.call_tool("run_python", {"code": code}, progress_callback=progress)
    assert [message for _, message in told] == ["begun\n"]
    assert told[0][0] > 0


@pytest.mark.sampled(0)
async def test_a_call_that_is_cancelled_interrupts_its_cell_and_the_session_goes_on(client: Client) -> None:
    await _done(client, "run_python", code="import time")
    code = "try:\n    time.sleep(15)\nexcept KeyboardInterrupt:\n    seen = True\n    raise"
    with anyio.move_on_after(1) as scope:
        await client.call_tool("run_python", {"code": code})
    assert scope.cancelled_caught
    with anyio.fail_after(10):
        assert (await _done(client, "run_python", code="seen"))["value"] is True


@pytest.mark.sampled(0)
async def test_a_branch_whose_call_is_cancelled_is_there_for_the_next_call(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, scope = AsyncSession.log, anyio.CancelScope()

    async def branch_is_looked_at(self: AsyncSession, *args: Any, **options: Any) -> list[Commit]:
        if self.name == "idea":
            scope.cancel()
        return await log(self, *args, **options)

    async with open_server(url, session="main") as server, Client(server) as client:
        await _done(client, "run_python", code="x = 1")
        with monkeypatch.context() as patch, scope:
            patch.setattr(AsyncSession, "log", branch_is_looked_at)
            await client.call_tool("branch", {"name": "idea"})
        assert scope.cancelled_caught
        with anyio.fail_after(20):
            while not server.pool.found("idea"):
                await anyio.sleep(0.01)
        assert (await _done(client, "run_python", code="x", session="idea"))["value"] == 1


@pytest.mark.threat("L9")
async def test_a_stored_name_forges_no_row(client: Client, url: str) -> None:
    await _done(client, "run_python", code="1", session="a")
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database, database:
        database.execute("UPDATE sessions SET name = ?", ("a\nforged (9 commits)\x1b[2J",))
    (row,) = _text(await _call(client, "list_sessions")).splitlines()
    assert row.startswith(r"'a\nforged (9 commits)\x1b[2J' (")


@pytest.mark.sampled(0)
async def test_long_lists_are_cut_and_say_so(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    await _done(client, "run_python", code="1", session="other")
    await _done(client, "run_python", code="globals().update({f'n{i:03}': i for i in range(300)})")
    diff = await _done(client, "diff")
    assert (len(diff["names"]), diff["more"]) == (200, 100)
    assert diff["text"].endswith("\nand 100 more")
    monkeypatch.setattr("cellblock.integrations.mcp.tools._MOST_SESSIONS", 1)
    first = await _done(client, "list_sessions")
    assert ([one["session"] for one in first["sessions"]], first["more"]) == (["main"], True)
    rest = await _done(client, "list_sessions", after="main")
    assert ([one["session"] for one in rest["sessions"]], rest["more"]) == (["other"], False)


async def test_only_the_tools_that_were_chosen_are_offered(url: str) -> None:
    async with open_server(url, tools=["run_python"]) as server, Client(server) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["run_python"]
        result = await _call(client, "run_python", code="1")
        assert result.is_error
        assert "give session=" in _text(result)
    with pytest.raises(ValueError, match="there is no tool rm: there are run_python, "):
        async with open_server(url, tools=["rm"]):
            pass


async def test_text_that_is_not_base64_is_told_as_such(client: Client) -> None:
    for data in ("é", "\ud83d", "*", "a"):
        told = _text(await _call(client, "upload_file", path="u", data=data))
        assert told.startswith("data is not base64: "), told
        assert told.endswith(" (write_file takes text as it is)"), told
