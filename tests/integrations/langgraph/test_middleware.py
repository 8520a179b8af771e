"""LangChain's `create_agent` with the middleware: content, approval, checkpoints, sync and async."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from scripted_chat import call, runs, says, scripted, told

from cellblock.integrations.langgraph import SandboxMiddleware, Threads, describe_call

AT = {"configurable": {"thread_id": "t"}}
GO = {"messages": [("user", "go")]}


@pytest.fixture
def threads(url: str) -> Iterator[Threads]:
    threads = Threads(url)
    yield threads
    threads.close()


def test_an_agent_runs_what_its_messages_hold(threads: Threads) -> None:
    two = says(
        "```python\nprint(x)\n```\n```csv\na\n```",
        call("python_run_prepared", file_path="b.py", description=""),
        call("file_write", file_path="/data/a.csv", description=""),
    )
    script = scripted(
        runs("x = 1", "a.py"), two, runs("1 / 0"), says("", call("python_run_prepared", file_path="c.py"))
    )
    state = create_agent(script, middleware=[SandboxMiddleware(threads)]).invoke(GO, AT)
    first, second, third, fourth, fifth = told(state)
    assert (first, second, third) == ("Done. It printed nothing.", "1", "Wrote /data/a.csv: 1 bytes.")
    assert "ZeroDivisionError" in fourth
    assert fifth.startswith("Error: No content found in graph state. Write the content in your message")
    assert state["pending_content"] == {}
    assert state["created_files"] == ["a.py", "b.py", "/data/a.csv", "/tmp/a.py"]


@pytest.mark.sampled(0)
@pytest.mark.anyio
async def test_async_with_a_checkpointer(threads: Threads) -> None:
    agent = create_agent(
        scripted(runs("x = 1"), runs("print(x)")), middleware=[SandboxMiddleware(threads)], checkpointer=InMemorySaver()
    )
    seen: list[str] = []
    async for update in agent.astream(GO, AT, stream_mode="updates"):
        seen += update
    assert seen.count("tools") == 2
    assert told((await agent.aget_state(AT)).values) == ["Done. It printed nothing.", "1"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_who_approves_is_shown_the_code(threads: Threads, decision: str) -> None:
    approval = HumanInTheLoopMiddleware(
        interrupt_on={"python_run_prepared": {"allowed_decisions": ["approve", "reject"], "description": describe_call}}
    )
    agent = create_agent(
        scripted(runs("print('ran')")),
        middleware=[approval, SandboxMiddleware(threads)],
        checkpointer=InMemorySaver(),
    )
    (asked,) = agent.invoke(GO, AT)["__interrupt__"]
    shown = asked.value["action_requests"][0]["description"]
    assert shown == "python_run_prepared\nfile_path: /tmp/a.py\ndescription: it\nthe content: print('ran')"
    answer: dict[str, Any] = {"type": decision}
    state = agent.invoke(Command(resume={"decisions": [answer]}), AT)
    assert ("ran" in told(state)) == (decision == "approve")
    assert state["pending_content"] == {}
