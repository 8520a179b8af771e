"""Whole graphs with a model that follows a script: what the tools do, what the state holds, and what fails."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
import textwrap
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.types import Command
from postgres_server import server, why_none
from scripted_chat import ScriptedChat, call, runs, says, scripted, told
from typing_extensions import TypedDict

from cellblock import AsyncSession, ExecutionLimits, Versioned
from cellblock.errors import UnknownSession
from cellblock.integrations.langgraph import (
    TOOL_NAMES,
    AgentState,
    SandboxMiddleware,
    SandboxToolNode,
    Threads,
    create_agent_graph,
    create_sandbox_tools,
    operations,
)
from cellblock.integrations.langgraph.searching import search
from cellblock.integrations.langgraph.tools import threads_of
from cellblock.store import Store, open_store

Make = Callable[..., Threads]


@pytest.fixture
def make(url: str) -> Iterator[Make]:
    """Makes the sessions of threads, in the test's own store, and closes them."""
    made: list[Threads] = []

    def one(**options: Any) -> Threads:
        made.append(Threads(options.pop("store", url), **options))
        return made[-1]

    yield one
    for threads in made:
        threads.close()


@pytest.fixture
def threads(make: Make) -> Threads:
    return make()


def at(thread: str = "t", **more: object) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread, **more}}


GO = {"messages": [("user", "go")], "pending_content": ""}


@pytest.mark.sampled(0)
def test_code_and_files_are_taken_from_messages(threads: Threads) -> None:
    graph = create_agent_graph(
        scripted(
            runs("def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nprint(fib(10))", "/tmp/fib.py"),
            says(
                "The data:\n```csv\nname,age\nAlice,32\n```",
                call("file_write", file_path="/data/people.csv", description="people"),
            ),
            runs("text = open('/data/people.csv').read()\nopen('out.txt', 'w').write('x')\nfib(5), text, "
                 "open('/tmp/fib.py').read()[:3]", "b.py", tag=""),
        ),
        store=threads,
    )  # fmt: skip
    state = graph.invoke(GO, at())
    assert told(state) == [
        "55",
        "Wrote /data/people.csv: 17 bytes.",
        "(5, 'name,age\\nAlice,32', 'def')\nNew files: out.txt",
    ]
    assert state["pending_content"] == {}
    assert state["created_files"] == ["/tmp/fib.py", "/data/people.csv", "b.py", "out.txt"]
    assert state["messages"][-1].content == "done"


@pytest.mark.sampled(0)
def test_calls_of_one_message_each_have_their_block(threads: Threads) -> None:
    message = says(
        "```python\nx = 1\n```\nand\n```csv\na,b\n```\nthen\n```python\nprint(x, open('a.csv').read())\n```",
        call("python_run_prepared", file_path="x.py", description=""),
        call("file_write", file_path="a.csv", description=""),
        call("python_run_prepared", file_path="y.py", description=""),
    )
    state = create_agent_graph(scripted(message), store=threads).invoke(GO, at())
    assert told(state) == ["Done. It printed nothing.", "Wrote a.csv: 3 bytes.", "1 a,b"]
    assert state["pending_content"] == {}


@pytest.mark.sampled(0)
@pytest.mark.anyio
async def test_calls_of_one_message_are_carried_out_in_their_order_on_an_event_loop(threads: Threads) -> None:
    steps = [call("python_run", code=f"order = [*globals().get('order', ()), {number}]") for number in range(6)]
    message = says("", *steps, call("python_run", code="print(order)"))
    for thread in "abc":
        state = await create_agent_graph(scripted(message), store=threads).ainvoke(GO, at(thread))
        assert told(state)[-1] == "[0, 1, 2, 3, 4, 5]"


def shows(*sizes: int, form: str = "png", magic: bytes = b"\x89PNG\r\n\x1a\n") -> str:
    """Code that shows images of so many bytes."""
    return (
        "class Figure:\n"
        "    def __init__(self, size, magic):\n        self.data = magic + bytes(size - len(magic))\n"
        f"    def _repr_{form}_(self):\n        return self.data\n"
        f"for size in {sizes}:\n    display(Figure(size, {magic!r}))"
    )


def images_of(message: ToolMessage) -> list[int]:
    """The sizes of a message's images; its text comes first."""
    assert isinstance(message.content, list)
    text, *images = message.content
    assert isinstance(text, dict)
    assert text["type"] == "text"
    assert [{**image, "base64": ""} for image in images] == [  # type: ignore[dict-item]
        {"type": "image", "base64": "", "mime_type": "image/png"}
    ] * len(images)
    return [len(base64.b64decode(image["base64"])) for image in images]  # type: ignore[index]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("by_call", [True, False])
def test_figures_reach_the_model_as_images(threads: Threads, tmp_path: Path, by_call: bool) -> None:
    code = shows(100, 200_000, 200_001, 101, 102, 103)
    message = says("", call("python_run", code=code)) if by_call else runs(code)
    with SqliteSaver.from_conn_string(str(tmp_path / "checkpoints.db")) as saver:
        graph = create_agent_graph(scripted(message), store=threads, checkpointer=saver)
        graph.invoke(GO, at())
        answer = graph.get_state(at()).values["messages"][-2]
    assert images_of(answer) == [100, 200_000, 101, 102]
    assert answer.content[0]["text"].count("[image notebook://") == 6
    assert json.loads(json.dumps(answer.content)) == answer.content
    assert [block["type"] for block in answer.content_blocks] == ["text", *["image"] * 4]


def test_images_of_another_format_are_named(threads: Threads) -> None:
    message = says("", call("python_run", code=shows(100, form="jpeg", magic=b"\xff\xd8\xff")))
    (told_,) = told(create_agent_graph(scripted(message), store=threads).invoke(GO, at()))
    assert told_.startswith("[image notebook://")


@pytest.mark.sampled(0)
def test_images_can_be_left_out(threads: Threads) -> None:
    code = shows(100)
    graph = create_agent_graph(scripted(says("", call("python_run", code=code))), store=threads, images=False)
    (told_,) = told(graph.invoke(GO, at()))
    assert told_.startswith("[image notebook://")
    agent = create_agent(scripted(runs(code)), middleware=[SandboxMiddleware(threads, "t", images=False)])
    (told_,) = told(agent.invoke({"messages": [("user", "go")]}))
    assert told_.startswith("[image notebook://")


def test_a_failing_cell_keeps_its_figures(threads: Threads) -> None:
    message = says("", call("python_run", code=shows(100) + "\n1 / 0"))
    answer = create_agent_graph(scripted(message), store=threads).invoke(GO, at())["messages"][-2]
    assert (answer.status, images_of(answer)) == ("error", [100])
    assert "ZeroDivisionError" in answer.content[0]["text"]


@pytest.mark.sampled(0)
def test_searches_leave_caches_out_unless_they_are_named(threads: Threads) -> None:
    calls = [
        call("python_run", code="import pathlib\n"
             "for one in ('/tmp/.cache/font/f', '.cache/g/f', 'a/__pycache__/f', 'a/.cache/f'):\n"
             "    pathlib.Path(one).parent.mkdir(parents=True)\n    pathlib.Path(one).write_text('x')\n1"),
        call("file_grep", pattern="x"),
        call("file_list"),
        call("file_glob", pattern="f"),
        call("file_glob", pattern="f", directory="/tmp/.cache"),
    ]  # fmt: skip
    state = create_agent_graph(scripted(*[says("", one) for one in calls]), store=threads).invoke(GO, at())
    assert told(state)[1:] == ["a/.cache/f:1: x", "a/.cache/f (1 bytes)", "a/.cache/f", "/tmp/.cache/font/f"]


def test_all_the_other_tools(threads: Threads) -> None:
    calls = [
        call("python_run", code="import pathlib\npathlib.Path('src').mkdir()\npathlib.Path('src/m.py').write_text("
             "'a = 1\\nb = 2\\nprint(a + b)\\n')\npathlib.Path('/tmp/n.txt').write_text('b = 3')\n1 + 1"),
        call("python_run_file", file_path="src/m.py"),
        call("file_read", file_path="src/m.py", offset=1, limit=1),
        call("file_edit", file_path="src/m.py", old_string="b = 2", new_string="b = 5"),
        call("python_run_file", file_path="/workspace/src/m.py"),
        call("file_list"),
        call("file_list", directory="/tmp"),
        call("file_glob", pattern="*.py"),
        call("file_glob", pattern="src/**/*.py"),
        call("file_glob", pattern="/tmp/*"),
        call("file_grep", pattern=r"^b = \d"),
        call("file_grep", pattern="b", glob="*.txt"),
        call("file_delete", file_path="src/m.py"),
        call("file_list", directory="src"),
        call("file_glob", pattern="*.py"),
    ]  # fmt: skip
    state = create_agent_graph(scripted(*[says("", one) for one in calls]), store=threads).invoke(GO, at())
    assert told(state) == [
        "2\nNew files: src/m.py",
        "3",
        "b = 2\n\n[lines 1 to 1 of 3; go on with offset=2]",
        "Edited src/m.py.",
        "6",
        "src/m.py (25 bytes)\n/tmp/n.txt (5 bytes)",
        "/tmp/n.txt (5 bytes)",
        "src/m.py",
        "src/m.py",
        "/tmp/n.txt",
        "src/m.py:2: b = 5\n/tmp/n.txt:1: b = 3",
        "/tmp/n.txt:1: b = 3",
        "Deleted src/m.py.",
        "There are no files.",
        "No file matches '*.py'.",
    ]


WRITE = {"file_path": "a.txt", "description": ""}
FAILURES = {
    "no content": (says("Now.", call("python_run_prepared", **WRITE)),
                   "Error: No content found in graph state. Write the content in your message, between a line "),
    "cut off": (says("```python\nx =", call("python_run_prepared", **WRITE)),
                "Error: No content found in graph state. The block in your message is cut off. Write it again"),
    "unknown tool": (says("", call("file_rename", a=1)), "Unknown tool: file_rename. There are: python_run_prepared, "),
    "no path": (says("```\nx\n```", call("file_write", description="")),
                "Error: the arguments are wrong: file_path: Field required. Call the tool again"),
    "outside": (says("```\nx\n```", call("file_write", file_path="../../etc/passwd", description="")),
                "Error: '../../etc/passwd' is not among the session's files (use a path relative to the workspace, or"),
    "of the host": (says("```\nx\n```", call("file_write", file_path="/etc/cron.d/x", description="")),
                    "Error: '/etc/cron.d/x' is not among the session's files (use a path relative"),
    "NUL": (says("```\nx\n```", call("file_write", file_path="a\0b", description="")), "Error: 'a\\x00b' is not"),
    "a directory": (says("```\nx\n```", call("file_write", file_path="/tmp", description="")), "Error: '/tmp' is not"),
    "not there": (says("", call("file_read", file_path="none.txt")), "Error: 'none.txt' does not exist"),
    "not there to run": (says("", call("python_run_file", file_path="none.py")), "Error: 'none.py' does not exist"),
    "not there to delete": (says("", call("file_delete", file_path="none")), "Error: 'none' does not exist"),
    "an edit of nothing": (says("", call("file_edit", file_path="kept.txt", old_string="q", new_string="")),
                           "Error: old_string is not in kept.txt (it must be there to the letter"),
    "an edit of several": (says("", call("file_edit", file_path="kept.txt", old_string="e", new_string="")),
                           "Error: old_string is in kept.txt 2 times (give more of what is around it"),
    "a pattern that is none": (says("", call("file_grep", pattern="(")), "Error: the pattern is not a regular"),
    "listing the host": (says("", call("file_list", directory="/etc")), "Error: '/etc' is not among the session's"),
    "an exception": (runs("1 / 0"), "Traceback (most recent call last):\n  File \"<cell 2>\", line 1, in <module>"),
    "a syntax error": (runs("x ="), "  File \"<cell 2>\", line 1\n"),
    "out of time": (runs("while True: pass"), "the cell ran longer than 1 s"),
    "out of memory": (runs("b'x' * 10**9"), "MemoryError"),
    "a process that dies": (runs("import os; os._exit(3)"), "the session's process left with status 3"),
}  # fmt: skip


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Threads]:
    """Sessions of a second for each cell, for the tests of failures together."""
    limits = ExecutionLimits(timeout_seconds=1)
    threads = Threads(f"sqlite:///{tmp_path_factory.mktemp('failing')}/cells.db", limits=limits)
    yield threads
    threads.close()


@pytest.mark.sampled(0)
@pytest.mark.parametrize(("message", "said"), FAILURES.values(), ids=FAILURES)
def test_what_fails_is_told_and_the_graph_goes_on(
    failing: Threads, message: AIMessage, said: str, request: pytest.FixtureRequest
) -> None:
    script = scripted(runs("name = 'kept'\nopen('kept.txt', 'w').write('here')", "k.py"), message,
                      runs("print(name, open('kept.txt').read())", "l.py"))  # fmt: skip
    state = create_agent_graph(script, store=failing).invoke(GO, at(request.node.name))
    first, second, third = told(state)
    assert first == "4\nNew files: kept.txt"
    assert said in second
    assert third == "kept here"
    assert [one.status for one in state["messages"] if one.type == "tool"] == ["success", "error", "success"]
    assert state["pending_content"] == {}


@pytest.mark.sampled(0)
def test_content_that_is_too_large_is_refused(threads: Threads) -> None:
    message = says(f"```\n{'x' * (20 * 2**20 + 1)}\n```", call("file_write", **WRITE))
    state = create_agent_graph(scripted(message), store=threads).invoke(GO, at())
    assert told(state) == [
        "Error: the content has 20971521 bytes, and a file may have 20971520 (write it in parts, or have code make it)"
    ]


OUTSIDE = ("link", "out/passwd", "/workspace/link", "/TMP/x", "/Data/x", "/data/../etc/x",
           "//etc/x", "~/../../x", "/proc/self/environ", "/session/../etc/x", "/tmp")  # fmt: skip


@pytest.mark.sampled(0)
def test_no_path_leads_out_of_the_thread_s_files(threads: Threads) -> None:
    """Links that a cell laid out, other spellings, and names of the host's files."""
    lay = runs("import os\nos.symlink('/etc/passwd', 'link')\nos.symlink('/etc', 'out')\nos.listdir('/etc').count('x')")
    script = [says("```\nx\n```", call("file_write", file_path=path, description="")) for path in OUTSIDE]
    script += [says("", call(name, file_path="link")) for name in ("file_read", "python_run_file")]
    state = create_agent_graph(scripted(lay, *script), store=threads).invoke(GO, {**at(), "recursion_limit": 100})
    for path, said in zip((*OUTSIDE, "link", "link"), told(state)[1:], strict=True):
        assert said.startswith("Error: "), (path, said)
    assert not os.path.exists("/etc/x")


@pytest.mark.sampled(0)
@pytest.mark.anyio
async def test_writers_at_the_same_time_lose_nothing(threads: Threads) -> None:
    names = [f"f{number}.txt" for number in range(10)]
    message = says(
        "\n".join(f"```\n{name}\n```" for name in names),
        *(call("file_write", file_path=name, description="") for name in names),
        call("python_run", code="open('made.txt', 'w').write('made')"),
    )
    graphs = [create_agent_graph(scripted(message), store=threads, thread_id="t", checkpointer=False) for _ in range(3)]
    states = await asyncio.gather(*(graph.ainvoke(GO) for graph in graphs))
    assert all(told(state)[:-1] == [f"Wrote {name}: 6 bytes." for name in names] for state in states)
    look = runs("import glob\nprint([(name, open(name).read()) for name in sorted(glob.glob('*.txt'))])")
    (said,) = told(create_agent_graph(scripted(look), store=threads).invoke(GO, at()))
    assert said == str([*((name, name) for name in names), ("made.txt", "made")])


def test_calls_whose_arguments_are_no_json_are_answered(threads: Threads) -> None:
    broken = AIMessage(
        "", invalid_tool_calls=[{"name": "python_run", "args": '{"code": "', "id": "1", "error": None, "type":
                                 "invalid_tool_call"}]
    )  # fmt: skip
    state = create_agent_graph(scripted(broken), store=threads).invoke(GO, at())
    assert told(state)[0].startswith("Error: the arguments of python_run are not JSON, and nothing was done.")
    assert state["messages"][-1].content == "done"


def test_a_store_out_of_reach_is_told(tmp_path: Path) -> None:
    graph = create_agent_graph(scripted(runs("1")), store=f"sqlite:///{tmp_path}/none/at/all.db")
    (said,) = told(graph.invoke(GO, at()))
    assert said.startswith("Error: ")


def test_a_call_without_a_thread_is_told(threads: Threads) -> None:
    graph = create_agent_graph(scripted(runs("1")), store=threads, checkpointer=False)
    (said,) = told(graph.invoke(GO))
    assert said == 'Error: no thread is known (run the graph with config={"configurable": {"thread_id": …}})'


def test_a_plain_tool_node_without_the_field_says_what_is_missing(threads: Threads) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode(create_sandbox_tools(threads, "t")))
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    (said,) = told(graph.compile().invoke({"messages": [runs("1")]}))
    assert said.startswith("Error: No content found in graph state. The graph's state has no pending_content: give it")


def test_our_node_needs_no_field(threads: Threads) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("tools", SandboxToolNode(create_sandbox_tools(threads, "t")))
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    assert told(graph.compile().invoke({"messages": [runs("1 + 1")]})) == ["2"]


@pytest.mark.sampled(0)
def test_a_thread_goes_on_in_another_graph_and_others_see_nothing_of_it(url: str, make: Make) -> None:
    first = make()
    create_agent_graph(scripted(runs("x = 41\nopen('/data/a', 'w').write('kept')")), store=first).invoke(GO, at("one"))
    first.close()
    look = "print(globals().get('x'), __import__('os').path.exists('/data/a'))"
    second = make()
    for thread, said in (("one", "41 True"), ("two", "None False"), ("one\n", "None False"), ("ONE", "None False")):
        graph = create_agent_graph(scripted(runs(look)), store=second)
        assert told(graph.invoke(GO, at(thread))) == [said]


def test_the_names_of_tools_choose(threads: Threads) -> None:
    assert [tool.name for tool in create_sandbox_tools(threads)] == list(TOOL_NAMES)
    assert [tool.name for tool in create_sandbox_tools(threads, "t", ["file_read"])] == ["file_read"]
    with pytest.raises(ValueError, match="no tool 'nothing': there are python_run_prepared, file_write"):
        create_sandbox_tools(threads, include_tools=["nothing"])
    pool = SimpleNamespace(conninfo="postgres://me@/db")  # what psycopg's pools have of it
    assert threads_of(pool).url == "postgresql://me@/db"
    with pytest.raises(TypeError, match="a store is a URL"):
        create_sandbox_tools(object())


def test_the_model_is_told_of_names_alone(threads: Threads) -> None:
    for tool in create_sandbox_tools(threads, "t", ["python_run_prepared", "file_write"]):
        schema = tool.tool_call_schema.model_json_schema()  # type: ignore[union-attr]
        assert list(schema["properties"]) == ["file_path", "description"]
        assert "fenced block" in tool.description


# ---------------------------------------------------------------------------------------- checkpoints


def _savers(tmp_path: Path) -> Iterator[object]:
    yield InMemorySaver()
    with SqliteSaver.from_conn_string(f"{tmp_path}/checkpoints.db") as saver:
        yield saver


@pytest.mark.sampled(0)
def test_a_graph_goes_on_from_its_checkpoint_and_its_state_is_json(threads: Threads, tmp_path: Path) -> None:
    for number, saver in enumerate(_savers(tmp_path)):
        create_agent_graph(scripted(runs("x = 7")), store=threads, checkpointer=saver).invoke(GO, at(f"t{number}"))
        graph = create_agent_graph(scripted(runs("print(x)")), store=threads, checkpointer=saver)
        state = graph.invoke({"messages": [("user", "more")]}, at(f"t{number}"))
        assert told(state) == ["Done. It printed nothing.", "7"]
        plain = {name: value for name, value in state.items() if name != "messages"}
        assert json.loads(json.dumps(plain)) == plain
        assert all(json.dumps(message.model_dump()) for message in state["messages"])


@pytest.mark.sampled(0)
@pytest.mark.anyio
async def test_async_with_a_checkpointer_and_streams(threads: Threads, tmp_path: Path) -> None:
    async with AsyncSqliteSaver.from_conn_string(f"{tmp_path}/checkpoints.db") as saver:
        graph = create_agent_graph(scripted(runs("x = 7"), runs("print(x)")), store=threads, checkpointer=saver)
        updates = [update async for update in graph.astream(GO, at(), stream_mode="updates")]
        assert [next(iter(update)) for update in updates] == ["agent", "tools", "agent", "tools", "agent"]
        assert told((await graph.aget_state(at())).values) == ["Done. It printed nothing.", "7"]


@pytest.mark.sampled(0)
@pytest.mark.skipif(bool(why_none()), reason=why_none())
def test_checkpoints_and_sessions_in_postgresql(make: Make) -> None:
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    with server() as running:
        threads = make(store=running.url)
        with PostgresSaver.from_conn_string(running.url) as saver:
            saver.setup()
            create_agent_graph(scripted(runs("x = 7")), store=threads, checkpointer=saver).invoke(GO, at())
            threads.close()
            graph = create_agent_graph(scripted(runs("print(x)")), store=threads, checkpointer=saver)
            assert told(graph.invoke({"messages": [("user", "more")]}, at()))[1] == "7"

        async def on() -> list[str]:
            async with AsyncPostgresSaver.from_conn_string(running.url) as saver:
                graph = create_agent_graph(scripted(runs("print(x + 1)")), store=threads, checkpointer=saver)
                return told(await graph.ainvoke({"messages": [("user", "more")]}, at()))

        assert asyncio.run(on())[2] == "8"
        threads.close()


def test_who_approves_sees_the_code(threads: Threads) -> None:
    graph = create_agent_graph(scripted(runs("print('ran')")), store=threads, interrupt_before=["tools"])
    waiting = graph.invoke(GO, at())
    assert list(waiting["pending_content"].values()) == ["print('ran')"]
    assert told(waiting) == []
    assert told(graph.invoke(None, at())) == ["ran"]
    assert graph.get_state(at()).values["pending_content"] == {}


@pytest.mark.sampled(0)
def test_an_edit_that_would_be_too_large_is_refused_before_it_is_made(threads: Threads) -> None:
    write = call("python_run", code="_ = open('big.txt', 'w').write('x' * 6_000_000)")
    change = call("file_edit", file_path="big.txt", old_string="x", new_string="é" * 75, replace_all=True)
    tracemalloc.start()
    try:
        state = create_agent_graph(scripted(says("", write), says("", change)), store=threads).invoke(GO, at())
        assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
    finally:
        tracemalloc.stop()
    assert "the content has 900000000 bytes, and a file may have 20971520" in told(state)[1]


AGAIN = {
    "code": (runs("n = globals().get('n', 0) + 1\nn"), "1"),
    "write": (
        says("```\none\n```", call("file_write", file_path="new.txt", description="")),
        "Wrote new.txt: 3 bytes.",
    ),
    "edit": (says("", call("file_edit", file_path="log.txt", old_string="0", new_string="00")), "Edited log.txt."),
    "delete": (says("", call("file_delete", file_path="log.txt")), "Deleted log.txt."),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("message", "said"), AGAIN.values(), ids=AGAIN)
def test_a_call_that_is_made_again_is_not_carried_out_again(
    make: Make, tmp_path: Path, message: AIMessage, said: str
) -> None:
    """As when a program ends between the call and the checkpoint of its step."""
    saved, before = f"{tmp_path}/checkpoints.db", f"{tmp_path}/before.db"
    threads = make()
    with SqliteSaver.from_conn_string(saved) as saver:
        script = scripted(runs("open('log.txt', 'w').write('0')"), message)
        graph = create_agent_graph(script, store=threads, checkpointer=saver, interrupt_before=["tools"])
        graph.invoke(GO, at())
        graph.invoke(None, at())
        saver.conn.execute("VACUUM INTO ?", (before,))
        assert told(graph.invoke(None, at()))[1:] == [said]
    threads.close()
    there = "[open(name).read() for name in ('log.txt', 'new.txt') if __import__('os').path.exists(name)]"
    look = scripted(runs(f"print(globals().get('n'), {there})"))
    with SqliteSaver.from_conn_string(before) as saver:
        again = create_agent_graph(look, store=make(), checkpointer=saver)
        state = told(again.invoke(None, at()))
    wanted = {"1": "1 ['0']", "Wrote new.txt: 3 bytes.": "None ['0', 'one']", "Edited log.txt.": "None ['00']"}
    assert state[1:] == [said, wanted.get(said, "None []")]


@pytest.mark.anyio
@pytest.mark.parametrize("back", ["undo", "checkout"])
async def test_a_change_of_a_file_that_was_undone_is_made_again_by_the_same_call(url: str, back: str) -> None:
    async with AsyncSession("t", state=Versioned(url)) as session:
        await session.run("0")
        call = operations.Call(content="hello", key="abcdef")
        for _ in range(2):
            await operations.write(session, call, file_path="a.txt", description="")
        assert len(await session.log()) == 3  # once
        await (session.undo() if back == "undo" else session.checkout("HEAD~1"))
        assert await session.files.list() == []
        await operations.write(session, call, file_path="a.txt", description="")
        assert await session.files.read("a.txt") == b"hello"


@pytest.mark.sampled(0)
def test_a_call_that_the_end_of_a_program_cut_off_is_carried_out_when_it_is_made_again(make: Make, url: str) -> None:
    given = {
        "file_path": "a.py",
        "_state": {"pending_content": "open('log', 'a').write('begun ')\nwhile True: pass"},
        "tool_call_id": "1",
    }
    program = f"""
        from cellblock.integrations.langgraph import create_sandbox_tools
        (tool,) = create_sandbox_tools({url!r}, include_tools=["python_run_prepared"])
        tool.invoke({given!r}, {at(checkpoint_ns="step")!r})
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)]) as other:
        with open_store(url) as store:
            while not _has_begun(store):
                time.sleep(0.05)
        other.kill()
    threads = make(limits=ExecutionLimits(timeout_seconds=1))
    tools = {one.name: one for one in create_sandbox_tools(threads)}
    assert "the cell ran longer than 1 s" in tools["python_run_prepared"].invoke(given, at(checkpoint_ns="step")).resume
    assert tools["file_read"].invoke({"file_path": "log"}, at()) == "begun "


def _has_begun(store: Store) -> bool:
    """True if the journal of the thread has the cell that does not end."""
    try:
        entries = store.read("langgraph", "t").journal()
    except UnknownSession:
        return False
    return any("while True" in str(entry.value.get("source")) for entry in entries)


@pytest.mark.sampled(0)
def test_the_same_call_at_another_step_is_carried_out(threads: Threads) -> None:
    calls = [says("", call("python_run", id="same", code="n = globals().get('n', 0) + 1\nn")) for _ in range(3)]
    state = create_agent_graph(scripted(*calls), store=threads).invoke(GO, at())
    assert told(state) == ["1", "2", "3"]


def carried_out(threads: Threads, message: AIMessage, node: type[ToolNode] = SandboxToolNode) -> list[str]:
    """What the tools of a graph of one's own tell, whose model's message goes to them as it is."""
    graph = StateGraph(AgentState)
    graph.add_node("ask", lambda state: {"messages": [message]})
    graph.add_node("tools", node(create_sandbox_tools(threads)))
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "tools")
    graph.add_edge("tools", END)
    return told(graph.compile(checkpointer=InMemorySaver()).invoke({"messages": [("user", "go")]}, at()))


_TWO = "```txt\nONE\n```\n```txt\nTWO\n```"
_SHARED = "Error: 2 calls of the message have the id {!r} (none of them was carried out: make one call in a message)"
_LOOK = says("", call("python_run", code="import os; sorted(os.listdir()), globals().get('n')"))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("node", [SandboxToolNode, ToolNode])
@pytest.mark.parametrize("code", ["n = globals().get('n', 0) + 1", "n = 2"], ids=["twins", "others"])
def test_calls_that_share_an_id_are_refused(threads: Threads, code: str, node: type[ToolNode]) -> None:
    calls = [call("python_run", id="call_0", code=one) for one in ("n = globals().get('n', 0) + 1", code)]
    assert carried_out(threads, says("", *calls), node) == [_SHARED.format("call_0")] * 2
    assert carried_out(threads, _LOOK) == ["([], None)"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("id_", ["call_0", "\ud800", None])
def test_content_of_calls_that_share_an_id_is_nobodys(threads: Threads, id_: str | None) -> None:
    calls = [call("file_write", id="x", file_path=path, description="") for path in ("one.txt", "two.txt")]
    message = says(_TWO, *calls)
    for one in message.tool_calls:
        one["id"] = id_ or ""
    assert carried_out(threads, message) == [_SHARED.format("\ufffd" if id_ == "\ud800" else id_ or "")] * 2
    assert carried_out(threads, _LOOK) == ["([], None)"]


@pytest.mark.sampled(0)
@pytest.mark.parametrize("id_", ["\ud800", "x" * 2_000])
def test_any_id_tells_a_call_apart(threads: Threads, id_: str) -> None:
    calls = [call("file_write", id=id_, file_path="one.txt", description=""), call("python_run", id="b", code="1")]
    assert carried_out(threads, says("```txt\nONE\n```", *calls)) == ["Wrote one.txt: 3 bytes.", "1"]
    assert carried_out(threads, says("", call("python_run", id=id_, code="2"))) == ["2"]


def test_done_before_is_believed_of_the_same_arguments_alone(threads: Threads) -> None:
    tools = {one.name: one for one in create_sandbox_tools(threads)}
    said = []
    for path, code in [("a.py", "n = globals().get('n', 0) + 1\nn")] * 2 + [("b.py", "n + 10")]:
        given = {"file_path": path, "_state": {"pending_content": code}, "tool_call_id": "1"}
        said.append(tools["python_run_prepared"].invoke(given, at(checkpoint_ns="step")).resume)
    assert said == ["1", "1", "11"]


@pytest.mark.anyio
@pytest.mark.threat("W11")
async def test_rows_of_a_search_are_bounded_whatever_a_cell_makes_of_the_program() -> None:
    async with AsyncSession() as session:
        await session.run("def exec(_, space): space['told'] = ['found', ['x' * 20_000] * 3_000, False]")
        found = await search(session, most=50)
    assert (len(found.rows), {len(row) for row in found.rows}, found.more) == (50, {10_000}, True)


# ---------------------------------------------------------------------------------------- somebody's own


class OneContent(TypedDict):
    """A state with room for one content."""

    messages: Annotated[list[Any], add_messages]
    pending_content: str


def test_a_node_of_one_s_own_hands_content_over(threads: Threads) -> None:
    """The recipe by hand: a state with room for one content, which the node takes from the message."""
    tools = {
        tool.name: tool for tool in create_sandbox_tools(threads, include_tools=["python_run_prepared", "file_read"])
    }
    script = scripted(
        runs("print('by hand')", "h.py"),
        says("", call("file_read", file_path="h.py")),
        says("", call("python_run_prepared", file_path="i.py", description="")),
    )

    async def ask(state: OneContent) -> dict[str, Any]:
        return {"messages": [await script.ainvoke(state["messages"])]}

    async def carry_out(state: OneContent) -> dict[str, Any]:
        message, pending, answers = state["messages"][-1], state["pending_content"], []
        for one in message.tool_calls:
            arguments = dict(one["args"])
            if one["name"] == "python_run_prepared":
                pending = pending or message.content.partition("```python\n")[2].partition("\n```")[0]
                arguments |= {"_state": {"pending_content": pending}, "tool_call_id": one["id"]}
            result = await tools[one["name"]].ainvoke(arguments)
            if isinstance(result, Command):
                pending = result.update["pending_content"]
                assert result.update["messages"][0].tool_call_id == one["id"]
                result = result.resume
            answers.append(ToolMessage(result, tool_call_id=one["id"]))
        return {"messages": answers, "pending_content": pending}

    graph = StateGraph(OneContent)
    graph.add_node("ask", ask)
    graph.add_node("tools", carry_out)
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    graph.add_edge("tools", "ask")

    state = asyncio.run(graph.compile(checkpointer=InMemorySaver()).ainvoke(GO, at()))
    assert told(state)[:2] == ["by hand", "print('by hand')"]
    assert told(state)[2].startswith("Error: No content found in graph state.")
    assert state["pending_content"] == ""


def test_what_a_tool_of_one_s_own_raises_is_told(threads: Threads) -> None:
    def fails(x: int) -> str:
        """Fails."""
        raise ValueError(f"no {x}")

    graph = StateGraph(AgentState)
    graph.add_node("tools", SandboxToolNode([fails, *create_sandbox_tools(threads, "t")]))
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    (said,) = told(graph.compile().invoke({"messages": [says("", call("fails", x=3))]}))
    assert "no 3" in said


@pytest.mark.slow
@pytest.mark.anyio
async def test_fifty_threads_at_once(make: Make) -> None:
    """No thread sees another's names or files, and no more sessions are open than may be."""
    threads = make(most_open=8)

    def answer(messages: list[Any]) -> AIMessage:
        mine, step = messages[0].content, sum(message.type == "ai" for message in messages)
        if step == 3:
            return AIMessage("done")
        code = (f"name = {mine!r}\nopen('/data/f', 'x').write(name)", "print(name)", "print(open('/data/f').read())")[
            step
        ]
        return runs(code)

    graph = create_agent_graph(ScriptedChat(answer=answer), store=threads)
    most = 0

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, len(_workers()))
            await asyncio.sleep(0.05)

    watching = asyncio.create_task(watch())
    before = len(_workers())
    states = await asyncio.gather(
        *(graph.ainvoke({"messages": [("user", f"thread {n}")]}, at(f"t{n}")) for n in range(50))
    )
    watching.cancel()
    for number, state in enumerate(states):
        assert told(state)[1:] == [f"thread {number}", f"thread {number}"]
    assert threads.open <= 8
    assert most - before < 8 * 12 + 20  # a session's init, worker and checkpoints


def _workers() -> list[str]:
    """The processes of this program, and theirs."""
    found, pending = [], [str(os.getpid())]
    while pending:
        one = pending.pop()
        found.append(one)
        try:
            for task in os.listdir(f"/proc/{one}/task"):
                pending += Path(f"/proc/{one}/task/{task}/children").read_text().split()
        except OSError:
            continue
    return found
