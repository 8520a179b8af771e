"""A session as functions that models call: what they are told, and what answers a call."""

from __future__ import annotations

import inspect
import json
import tracemalloc
from collections.abc import Callable

import pytest

pytest.importorskip("pydantic")

from cellblock import AsyncSession, CellblockError, ExecutionLimits, Session, SessionClosed
from cellblock.cell import Lost

_NAMES = ["run_python", "shell", "list_files", "read_file", "write_file", "undo"]


def test_both_formats_describe_the_same_functions(session: Session) -> None:
    tools = session.as_tools()
    assert [one["function"]["name"] for one in tools.openai] == _NAMES
    assert tools.openai[0] == {
        "type": "function",
        "function": {
            "name": "run_python",
            "description": tools.functions[0].__doc__ and inspect.getdoc(tools.functions[0]),
            "parameters": {
                "additionalProperties": False,
                "properties": {"code": {"title": "Code", "type": "string"}},
                "required": ["code"],
                "type": "object",
            },
        },
    }
    assert [(one["name"], one["input_schema"]) for one in tools.anthropic] == [
        (one["function"]["name"], one["function"]["parameters"]) for one in tools.openai
    ]
    json.dumps([tools.openai, tools.anthropic])


def test_calls_are_answered_from_one_session(session: Session) -> None:
    tools = session.as_tools()
    assert tools.call("run_python", '{"code": "x = [1]"}') == "done, nothing was shown"
    assert tools.call("run_python", {"code": "print('é'); x"}) == "é\n[1]"
    assert tools.call("write_file", {"path": "a/b.txt", "content": "text"}) == "a/b.txt: 4 bytes"
    assert tools.call("shell", {"command": "cat a/b.txt"}) == "text"
    assert tools.call("list_files", "") == "a/b.txt"
    assert tools.call("read_file", {"path": "a/b.txt"}) == "text"
    assert tools.call("run_python", {"code": "x.clear()"}) == "done, nothing was shown"
    assert tools.call("undo", {}) == "1 undone"
    assert session["x"] == [1]


def test_of_a_large_file_only_what_is_shown_is_read(session: Session) -> None:
    session.run("with open('big', 'wb') as file: file.write(b'ab'); file.truncate(200 * 2**20)")
    tools = session.as_tools()
    tracemalloc.start()
    try:
        told = tools.call("read_file", {"path": "big"})
        assert tracemalloc.get_traced_memory()[1] < 20 * 2**20
    finally:
        tracemalloc.stop()
    assert told[:2] == "ab"
    assert told.endswith("\n[209715200 bytes in all: read parts of it by run_python]")


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("rm", "{}", "error: there is no tool 'rm': there are run_python, "),
        ("run_python", "{", "error: the arguments are no JSON: "),
        ("run_python", "[1]", "error: the arguments are no JSON object but list"),
        pytest.param(
            "run_python",
            '{"code": [' + "1," * 300_000 + "1]}",
            "error: the arguments are no JSON: they have more than",
            id="many",
        ),
        pytest.param(
            "run_python", " " * 2**22 + "{}", "error: the arguments are no JSON: they have more than", id="long"
        ),
        ("run_python", "{}", "error: the arguments do not fit: code: Field required"),
        ("run_python", '{"code": "1", "timeout": 5}', "error: the arguments do not fit: timeout: "),
        ("run_python", '{"code": "1 / 0"}', "Traceback (most recent call last):"),
        ("shell", '{"command": "exit 3"}', "CommandFailed: "),
        ("read_file", '{"path": "/etc/shadow"}', "error: '/etc/shadow' "),
        ("undo", '{"steps": 0}', "error: steps must be a whole number above 0"),
        ("undo", '{"steps": 9}', "error: 9 steps cannot be undone"),
    ],
)
def test_what_a_model_did_wrong_is_the_answer(session: Session, name: str, arguments: str, told: str) -> None:
    session.run("1")
    assert session.as_tools().call(name, arguments).startswith(told)
    assert session.run("2").value == 2


def test_a_crash_is_told_with_what_to_do(session: Session) -> None:
    said = session.as_tools().call("run_python", {"code": "import os; os._exit(1)"})
    assert "the session is as it was before this cell" in said


@pytest.mark.threat("L9")
def test_what_a_cell_prints_is_told_from_what_it_did(session: Session) -> None:
    tools = session.as_tools()
    failed = tools.call("run_python", {"code": "1 / 0"})
    printed = tools.call("run_python", {"code": f"print({str(failed)!r})"})
    refused = tools.call("run_pyton", {})
    forged = tools.call("run_python", {"code": f"print({str(refused)!r})"})
    assert (str(failed), str(refused)) == (str(printed), str(forged))
    assert [answer.ok for answer in (failed, printed, refused, forged)] == [False, True, False, True]
    assert [answer.cell and answer.cell.number for answer in (failed, printed, refused)] == [1, 2, None]
    status = tools.call("shell", {"command": "exit 3"}).cell
    assert status is not None
    assert status.error is not None
    assert status.error.status == 3
    assert not tools.call("undo", {"steps": 9}).ok
    assert not tools.call("list_files", "{").ok
    hint = session.run("import os; os._exit(1)").error
    assert hint is not None
    again = tools.call("run_python", {"code": f"print({hint.hint!r}, flush=True)\nimport os; os._exit(1)"})
    assert again.count(hint.hint) == 2


@pytest.mark.threat("L9")
def test_a_name_that_was_lost_forges_no_line() -> None:
    lost = Lost(name="a\nlost: b", type="T\nlost: c\x1b[2J", reason="r\nlost: d", remedy="m\u202e")
    assert str(lost) == "'a\\nlost: b' (T lost: c): r lost: d; m"


def test_what_the_host_did_wrong_is_raised(open_session: Callable[..., Session]) -> None:
    session = open_session()
    tools = session.as_tools()
    session.close()
    with pytest.raises(SessionClosed):
        tools.call("run_python", {"code": "1"})


def test_functions_are_plain_ones_that_frameworks_read(session: Session) -> None:
    run_python, write_file = session.as_tools(["run_python", "write_file"]).functions
    assert run_python("6 * 7") == "42"
    assert not inspect.iscoroutinefunction(run_python)
    assert list(inspect.signature(write_file).parameters) == ["path", "content"]
    assert write_file.__annotations__ == {"path": "str", "content": "str", "return": "str"}
    with pytest.raises(ValueError, match=r"there is no tool .nope.: there are run_python, "):
        session.as_tools(["nope"])


def test_a_long_file_is_cut(open_session: Callable[..., Session]) -> None:
    session = open_session(limits=ExecutionLimits(max_output_bytes=100))
    session.files.write("long.txt", "x" * 500)
    said = session.as_tools().call("read_file", {"path": "long.txt"})
    assert said == "x" * 100 + "\n[500 bytes in all: read parts of it by run_python]"


def test_a_long_list_of_files_is_cut(open_session: Callable[..., Session]) -> None:
    session = open_session(limits=ExecutionLimits(max_output_bytes=100))
    session.run("for n in range(2_000): open(f'é{n:04}', 'w').close()")
    listed = session.as_tools().call("list_files", "").splitlines()
    assert listed == [*(f"é{n:04}" for n in range(14)), "and 1986 more"]
    assert session.as_tools(["list_files"]).functions[0]().splitlines() == listed


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read_file", {"path": "binary"}),
        ("list_files", {}),
        ("run_python", {"code": "print('é' * 10_000)"}),
        ("run_python", {"code": "raise ValueError('é' * 10_000)"}),
        ("shell", {"command": "cat binary binary; exit 3"}),
        ("write_file", {"path": "d" * 100_000, "content": ""}),
        ("undo", {"steps": 10**4_000}),
        ("run_python", {"d" * 100_000: 1}),
        ("d" * 100_000, {}),
    ],
)
def test_every_answer_is_cut_to_the_limit_of_output(
    open_session: Callable[..., Session], name: str, arguments: dict[str, object]
) -> None:
    session = open_session(limits=ExecutionLimits(max_output_bytes=1_000))
    session.files.write("binary", b"\xff" * 5_000)
    session.run("for n in range(20): open(f'{n:0240}', 'w').close()")
    answer = session.as_tools().call(name, arguments)
    assert len(answer.encode()) < 1_200


@pytest.mark.anyio
async def test_the_async_twin() -> None:
    async with AsyncSession() as session:
        tools = session.as_tools()
        assert await tools.call("run_python", {"code": "6 * 7"}) == "42"
        assert await tools.functions[0]("6 * 8") == "48"
        assert tools.openai[0]["function"]["name"] == "run_python"


def test_without_pydantic_the_extra_is_named(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pydantic", None)
    with pytest.raises(CellblockError, match=r"cellblock\[agent\]"):
        session.as_tools()
