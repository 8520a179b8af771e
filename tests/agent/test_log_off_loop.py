"""The log of a run is made off the event loop, whatever its cells and its model give it to write down."""

from __future__ import annotations

import ast
import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from scripted_agents import agent_of, fenced

import cellblock
from cellblock import CodeAgent, ReactAgent, ScriptedModel
from cellblock.models import Reply, ToolRequest

AGENT = Path(cellblock.__file__).parent / "agent"

PAIRS = "{(n,) for n in range(400_000)}"
MANY = "list(range(3_000_000))"
CELLS = {
    "a set of tuples": PAIRS,
    "numbers": MANY,
    "an answer of escape sequences": "final_answer(['\\x1b' * 60_000_000])",
}


async def longest_wait(stop: asyncio.Event) -> float:
    """The longest time for which the event loop gave a task that sleeps for 2 ms no turn."""
    longest = 0.0
    while not stop.is_set():
        began = time.monotonic()
        await asyncio.sleep(0.002)
        longest = max(longest, time.monotonic() - began)
    return longest


@asynccontextmanager
async def going_on() -> AsyncIterator[None]:
    """Around work meanwhile which the event loop goes on, as an idle one of the same run does."""
    longest = []
    for work in (True, False):
        stop = asyncio.Event()
        waiting = asyncio.create_task(longest_wait(stop))
        if work:
            yield
        else:
            await asyncio.sleep(0.2)
        stop.set()
        longest.append(await waiting)
    assert longest[0] < 10 * max(0.06, longest[1])


@pytest.mark.sampled(0)
@pytest.mark.anyio
@pytest.mark.alone
@pytest.mark.threat("W11")
@pytest.mark.parametrize("name", CELLS)
async def test_event_loop_goes_on_whatever_a_cell_of_an_agent_gives(name: str) -> None:
    agent = agent_of(CELLS[name], "final_answer(1)")
    async with going_on():
        result = await agent.arun("task")
    assert all(step.ok for step in result.steps)


@pytest.mark.sampled(0)
@pytest.mark.anyio
@pytest.mark.alone
@pytest.mark.threat("W11")
async def test_event_loop_goes_on_whatever_a_model_says() -> None:
    agent = CodeAgent(ScriptedModel(["some words " * 700_000, fenced("final_answer(1)")]))
    async with going_on():
        result = await agent.arun("task")
    assert result.value == 1


@pytest.mark.anyio
@pytest.mark.alone
@pytest.mark.threat("W11")
async def test_event_loop_goes_on_whatever_a_tool_answers() -> None:
    pairs = {(number, str(number)) for number in range(400_000)}

    def many() -> object:
        """Many pairs."""
        return pairs

    pytest.importorskip("pydantic", reason="the extra agent makes schemas of tools")
    call = Reply(text="", requests=(ToolRequest("1", "many", {}, "{}"),))
    async with going_on():
        result = await ReactAgent(ScriptedModel([call, "done"]), tools=[many]).arun("task")
    assert result.value == "done"


# ------------------------------------------------------------------------------- the rule


def on_the_loop(source: ast.AST) -> Iterator[ast.AST]:
    """What async functions do themselves, without the functions in them."""
    for function in ast.walk(source):
        if isinstance(function, ast.AsyncFunctionDef):
            found: list[ast.AST] = [*function.body]
            while found:
                node = found.pop()
                yield node
                inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
                found += [one for one in ast.iter_child_nodes(node) if not isinstance(one, inner)]


def misuses(source: str) -> list[int]:
    """Lines that read or write on the event loop: `to_plain`, a cell's value, and an event written but by `add`."""
    tree, found = ast.parse(source), []
    for node in on_the_loop(tree):
        match node:
            case ast.Call(func=ast.Name(id="to_plain" | "value_of")):
                found.append(node.lineno)
            case ast.Attribute(value=ast.Name(id="cell") | ast.Attribute(attr="cell"), attr="value"):
                found.append(node.lineno)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name), attr="write")):
                found += [node.lineno] if name.endswith(("log", "events")) else []
    return sorted(found)


SOURCE = """\
async def f(log, cell, value):
    log.write("x")  # found
    self.setting.log.write("x")  # found
    to_plain(value)  # found
    value_of(cell)  # found
    step.cell.value, cell.value  # found
    await log.add("x", lambda: to_plain(cell.value))
    file.write("x"), cell.state.value
def g(cell):
    to_plain(cell.value)
    events.write("x")  # found
"""


def test_the_rule_can_fail() -> None:
    wanted = {number for number, row in enumerate(SOURCE.splitlines(), 1) if "# found" in row}
    assert set(misuses(SOURCE)) == wanted


def test_agents_log_off_the_event_loop_alone() -> None:
    found = {path.name: len(misuses(path.read_text())) for path in AGENT.glob("*.py")}
    # functions of the host that are no coroutines, which run in threads: a call of a tool, and a check of an answer
    assert {name: number for name, number in found.items() if number} == {"recording.py": 4}
