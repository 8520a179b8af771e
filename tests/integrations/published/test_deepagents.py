"""deepagents' backend beyond its standard tests: limits, interrupts, refusals, and an agent with a scripted model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

pytest.importorskip("deepagents", exc_type=ImportError)

from deepagents import create_deep_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from cellblock import ExecutionLimits, Session
from cellblock.integrations.deepagents import CellblockSandbox

pytestmark = pytest.mark.integrations


@pytest.fixture
def backend() -> Iterator[CellblockSandbox]:
    with CellblockSandbox() as backend:
        yield backend


def test_statuses_are_those_of_a_shell(backend: CellblockSandbox) -> None:
    done = backend.execute("echo out; echo err >&2; exit 7")
    assert (done.output, done.exit_code, done.truncated) == ("out\nerr\n", 7, False)
    assert backend.execute("kill -9 $$").exit_code == 128 + 9
    assert backend.execute("true").exit_code == 0


def test_a_time_limit_of_the_call_ends_the_command_and_keeps_what_it_said(backend: CellblockSandbox) -> None:
    began = time.monotonic()
    done = backend.execute("echo begun; sleep 30", timeout=1)
    assert (done.output, done.exit_code) == ("begun\n\n[interrupted after 1 s]", 124)
    assert time.monotonic() - began < 15
    assert backend.execute("echo on").output == "on\n"


def test_a_limit_of_the_session_is_told() -> None:
    with CellblockSandbox(limits=ExecutionLimits(timeout_seconds=0.5)) as backend:
        done = backend.execute("sleep 30")
        assert done.exit_code == 124
        assert "the cell ran longer than 0.5 s" in done.output


def test_output_past_the_limit_is_told_as_cut() -> None:
    with CellblockSandbox(limits=ExecutionLimits(max_output_bytes=1000)) as backend:
        assert backend.execute("seq 10000").truncated is True
        assert backend.execute("seq 10").truncated is False
        assert backend.execute("echo '[... 5 bytes of output cut: the limit is 9 ...]'").truncated is False


@pytest.mark.asyncio
async def test_a_caller_who_is_cancelled_interrupts_the_command(backend: CellblockSandbox) -> None:
    running = asyncio.create_task(backend.aexecute("trap 'echo stopped > seen; exit' INT TERM; sleep 30"))
    await asyncio.sleep(1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    began = time.monotonic()
    assert (await backend.aexecute("echo on")).output == "on\n"
    assert time.monotonic() - began < 15


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/session/workspace/missing", "file_not_found"),
        ("/session/workspace/locked", "permission_denied"),
        ("/session/workspace/directory", "is_directory"),
        ("/etc/passwd", "invalid_path"),
        ("/workspace/../../etc/passwd", "invalid_path"),
        ("/workspace/link", "invalid_path"),
        ("relative", "invalid_path"),
    ],
)
def test_files_that_cannot_be_had_are_told_by_code(backend: CellblockSandbox, path: str, code: str) -> None:
    backend.execute("mkdir directory; echo x > locked; chmod 000 locked; ln -s /etc/passwd link")
    (response,) = backend.download_files([path])
    assert (response.content, response.error) == (None, code)


def test_an_agent_works_in_the_session_and_what_it_did_can_be_undone() -> None:
    def calls(name: str, **arguments: object) -> AIMessage:
        return AIMessage(content="", tool_calls=[{"name": name, "args": arguments, "id": name}])

    class Script(GenericFakeChatModel):
        def bind_tools(self, tools: object, **_: object) -> Script:
            return self

    script = [
        calls("write_file", file_path="/workspace/job.py", content="print(sum(range(10)))"),
        calls("execute", command="python3 job.py > out.txt; cat out.txt /etc/shadow"),
        AIMessage(content="done"),
    ]
    with Session() as session, CellblockSandbox(session) as backend:
        agent = create_deep_agent(model=Script(messages=iter(script)), backend=backend)
        told = [str(message.content) for message in agent.invoke({"messages": [("user", "go")]})["messages"]]
        assert any("45" in text and "/etc/shadow: No such file" in text for text in told), told
        assert session.files.list() == ["job.py", "out.txt"]
        session.undo()
        assert session.files.list() == ["job.py"]
