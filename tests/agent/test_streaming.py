"""A run as it goes on: what is told, who leaves early, who is cancelled, and that nothing is left behind."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from family_tree import below, inits_of
from scripted_agents import LEVELS, agent_of

from cellblock import CodeAgent, Done, ExecutionLimits, Live, ModelError, Output, RunResult, ScriptedModel, TaskFailed
from cellblock.observe.log import read_log

at_every_level = pytest.mark.parametrize("level", LEVELS)


def kinds(told: list[Any]) -> list[str]:
    """Of what was told the kinds, each once where it comes several times over."""
    found = [type(one).__name__ for one in told]
    return [kind for kind, before in zip(found, ["", *found], strict=False) if kind != before]


@at_every_level
def test_text_output_steps_and_last_the_result(level: str) -> None:
    agent = agent_of("print('seen')", "final_answer(1)", trust_level=level)
    told = list(agent.stream("task"))
    assert kinds(told) == ["str", "Output", "Done", "Step", "str", "ToolCall", "Done", "Step", "RunResult"]
    assert "".join(one for one in told if isinstance(one, str)).startswith("I try this.\n```python\nprint('seen')")
    assert [one.text for one in told if isinstance(one, Output)] == ["seen\n"]
    assert told[-1].value == 1


@at_every_level
def test_the_same_from_async_code(level: str) -> None:
    async def main() -> list[Any]:
        agent = agent_of("print('seen')", "final_answer(1)", trust_level=level)
        return [one async for one in agent.astream("task")]

    told = anyio.run(main)
    assert kinds(told)[-3:] == ["Done", "Step", "RunResult"]


@pytest.mark.parametrize("error", [TaskFailed, ModelError])
def test_what_a_run_raises_its_stream_raises(error: type[Exception]) -> None:
    cells = ["1", "task_fail('no')"] if error is TaskFailed else ["1"]
    with pytest.raises(error):
        list(agent_of(*cells).stream("task"))

    async def main() -> None:
        async for _ in agent_of(*cells).astream("task"):
            pass

    with pytest.raises(error):
        anyio.run(main)


def test_run_that_is_cancelled_from_within_is_no_stream_that_has_ended() -> None:
    async def main() -> str:
        stream = CodeAgent(ScriptedModel([asyncio.CancelledError])).astream("task")
        try:
            async for _ in stream:
                pass
        except asyncio.CancelledError:
            return "cancelled"
        return "ended"

    assert anyio.run(main) == "cancelled"


@at_every_level
def test_a_stream_that_is_left_ends_its_run(level: str, tmp_path: Path) -> None:
    agent = agent_of("print('seen')", "import time\ntime.sleep(30)", trust_level=level)
    began = time.monotonic()
    for one in agent.stream("task", log=tmp_path / "run.log"):
        if isinstance(one, Done):
            break
    assert time.monotonic() - began < 20
    assert read_log(tmp_path / "run.log")[-1]["event"] == "end"
    assert len(agent.model.asked) <= 2  # type: ignore[attr-defined]


def test_an_async_stream_that_is_left_ends_its_run(tmp_path: Path) -> None:
    async def main() -> None:
        agent = agent_of("print('seen')", "import time\ntime.sleep(30)")
        stream = agent.astream("task", log=tmp_path / "run.log")
        async for one in stream:
            if isinstance(one, Done):
                break
        await stream.aclose()

    began = time.monotonic()
    anyio.run(main)
    assert time.monotonic() - began < 20
    assert read_log(tmp_path / "run.log")[-1]["reason"] == "interrupted"


def test_an_async_stream_that_is_left_without_closing_it_disturbs_nobody(tmp_path: Path) -> None:
    async def main() -> object:
        async for one in agent_of("print('seen')", "import time\ntime.sleep(30)").astream("task"):
            if isinstance(one, Done):
                break
        return (await agent_of("final_answer(1)").arun("task")).value

    assert anyio.run(main) == 1


@pytest.mark.sampled(0)
@at_every_level
def test_a_run_that_is_cancelled_ends_its_cell_and_its_log(level: str, tmp_path: Path) -> None:
    async def main() -> float:
        code, limits = "print('begun')\nimport time\ntime.sleep(30)", ExecutionLimits(timeout_seconds=60)
        agent = agent_of(code, trust_level=level, limits=limits)
        began = time.monotonic()
        with anyio.CancelScope() as scope:

            def cancel(told: object) -> None:
                if isinstance(told, Output):
                    scope.cancel()

            await agent.arun("task", log=tmp_path / "run.log", tell=cancel)
        return time.monotonic() - began

    assert anyio.run(main) < 10
    assert [event["event"] for event in read_log(tmp_path / "run.log")] == ["run", "begin", "reply", "end"]
    assert read_log(tmp_path / "run.log")[-1]["reason"] == "interrupted"


@pytest.mark.sampled(0)
def test_an_agent_with_a_state_works_on_after_a_run_was_cancelled() -> None:
    async def main() -> object:
        async with agent_of(
            "x = 1\nfinal_answer(x)", "import time\ntime.sleep(30)", "final_answer(x)", state=Live()
        ) as agent:
            await agent.arun("one")
            with anyio.move_on_after(0.5):
                await agent.arun("two")
            return (await agent.arun("three")).value

    assert anyio.run(main) == 1


@pytest.mark.sampled(0)
def test_attempts_that_are_cancelled_leave_no_process(tmp_path: Path) -> None:
    async def main() -> None:
        agent = agent_of(*["import time\ntime.sleep(30)"] * 3, limits=ExecutionLimits(timeout_seconds=60))
        with anyio.move_on_after(1):
            await agent.arun("task", attempts=3, log=tmp_path / "run.log")

    began = time.monotonic()
    anyio.run(main)
    assert time.monotonic() - began < 20
    assert read_log(tmp_path / "run.log")[-1]["event"] == "end"


PROGRAM = """
import sys, time
from cellblock import CodeAgent, ExecutionLimits, ScriptedModel
def began(told):
    if type(told).__name__ == "Output":
        print("began", flush=True)
cell = "print('now', flush=True)\\nimport time\\ntime.sleep(60)"
agent = CodeAgent(ScriptedModel(["```python\\n" + cell + "\\n```"]), trust_level=sys.argv[2],
                  limits=ExecutionLimits(timeout_seconds=90))
try:
    agent.run("task", log=sys.argv[1], tell=began)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.sampled(1)
@at_every_level
def test_ctrl_c_ends_a_blocking_run_its_cell_and_its_log(level: str, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(log), level], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:  # fmt: skip
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stdout.readline() == "began\n"
        program.send_signal(signal.SIGINT)
        assert program.stdout.readline() == "interrupted\n"
        assert [event["event"] for event in read_log(log)] == ["run", "begin", "reply", "end"]
        assert read_log(log)[-1]["reason"] == "interrupted"
        launched = [one for one in below(program.pid) if one.parent == program.pid]
        assert len(launched) == (level == "isolated")
        until = time.monotonic() + 10  # the kernel takes its time to end a session's processes
        while any(map(inits_of, launched)) and time.monotonic() < until:
            time.sleep(0.01)
        assert [inits_of(one) for one in launched] == [[]] * len(launched)
        program.stdin.close()
        assert program.wait(timeout=30) == 0


def test_a_verbose_run_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    def look(name: str) -> int:
        """Look."""
        return 1

    agent = agent_of(
        "print('\\x1b[31mred', end='')\nlook('a\\nb')",
        "print('\\n'.join('x' * 500 for _ in range(25)))",
        "explore('try')\n1/0",
        "import os\nos._exit(1)",
        "final_answer(1)",
        verbose=True,
        tools=[look],
    )
    assert isinstance(agent.run("task"), RunResult)
    text = capsys.readouterr().err
    assert "\x1b" not in text
    steps = [step.splitlines() for step in text.split("── step ")[1:]]
    assert [step[0].split("─")[0] for step in steps] == [f"{number} of 10 " for number in range(1, 6)]
    code_end = steps[0].index("```")
    assert steps[0][code_end + 1 :][:3] == ["  │ red", "  │ → look('a\\nb')", "  │ 1"]
    assert steps[1].count("  │ " + "x" * 400 + "…") == 20
    assert steps[1][-3:-1] == ["  │ … 5 more lines", steps[1][-2]]
    assert [step[-2].split(",")[0] for step in steps] == [
        "  ✓ ran", "  ✓ ran", "  ✗ failed; rolled back", "  ✗ its process ended; rolled back", "  ✓ answered",
    ]  # fmt: skip
    assert "  │ ZeroDivisionError: division by zero" in steps[2]


@at_every_level
def test_what_is_told_may_raise_which_ends_the_run_and_its_cell(level: str, tmp_path: Path) -> None:
    def broken(told: object) -> None:
        if isinstance(told, Output):
            raise ZeroDivisionError("of whoever is told")

    agent = agent_of("print('seen', flush=True)\nimport time\ntime.sleep(30)", "final_answer(1)", trust_level=level)
    began = time.monotonic()
    with pytest.raises(ZeroDivisionError, match="of whoever is told"):
        agent.run("task", tell=broken, log=tmp_path / "run.log")
    assert time.monotonic() - began < 20
    assert read_log(tmp_path / "run.log")[-1]["reason"] == "ZeroDivisionError"
