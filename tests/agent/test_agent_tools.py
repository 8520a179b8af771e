"""Functions of the host that an agent's code calls, and agents that are such functions."""

from __future__ import annotations

import os
import threading
import time

import anyio
import pytest
from scripted_agents import LEVELS, agent_of, decisions, fenced, shown

from cellblock import (
    CellblockError,
    CodeAgent,
    ExecutionLimits,
    Policy,
    ReactAgent,
    ScriptedModel,
    Session,
    Versioned,
    tool,
)
from cellblock.models import Reply, ToolRequest

at_every_level = pytest.mark.parametrize("level", LEVELS)


@at_every_level
def test_plain_and_async_tools(level: str) -> None:
    @tool
    def double(x: int) -> int:
        """Twice."""
        return 2 * x

    async def later(x: int) -> int:
        """The same."""
        await anyio.sleep(0.001)
        return x

    agent = agent_of("final_answer((double(2), await later(3)))", tools=[double, later], trust_level=level)
    assert agent.run("task").value == (4, 3)


class Unset:
    """A default, such as of settings that are not read yet, that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("settings are not configured")


UNSHOWN: dict[str, tuple[object, str]] = {
    "raises": (Unset(), "=<Unset repr failed: RuntimeError: settings are not configured>"),
    "too many digits": (2**20_000, "=0x1"),
    "too long": (list(range(100_000)), "=[0, 1, 2, 3"),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("which", UNSHOWN)
def test_a_default_that_cannot_be_shown_is_told_as_such(which: str) -> None:
    default, told = UNSHOWN[which]

    def same(x: object = default) -> bool:
        """True if it was given its default."""
        return x == default

    with Session(tools=[same]) as session:
        assert session.run("same()").value is True
        assert told in session.run("import inspect; str(inspect.signature(same))").value.replace(" = ", "=")
    agent = agent_of("final_answer(same())", tools=[same])
    assert agent.run("task").value is True
    (stub,) = [one for one in "".join(map(str, agent.model.asked[0])).split("\\n") if one.startswith("def same")]
    assert told in stub.replace(" = ", "=")
    request = ToolRequest(id="1", name="same", arguments={}, raw="{}")
    final = ToolRequest(id="2", name="final_answer", arguments={"value": 1}, raw="")
    reacting = ReactAgent(ScriptedModel([Reply(requests=(request,)), Reply(requests=(final,))]), tools=[same])
    assert reacting.run("task").value == 1
    assert reacting.model.asked[-1][-1]["content"] == "true"


def test_async_tools_run_at_once() -> None:
    met = anyio.Event()
    waiting = 0

    async def meet(x: int) -> int:
        """Waits for two others."""
        nonlocal waiting
        waiting += 1
        if waiting == 3:
            met.set()
        await met.wait()
        return x

    code = "import asyncio\nfinal_answer(await asyncio.gather(meet(1), meet(2), meet(3)))"
    assert agent_of(code, tools=[meet]).run("task").value == [1, 2, 3]


@at_every_level
def test_what_a_tool_raises_is_raised_in_the_cell(level: str) -> None:
    def broken(key: str) -> str:
        """Fails."""
        raise KeyError(key)

    agent = agent_of(
        "try:\n    broken('k')\nexcept KeyError as error:\n    x = error.args[0]", "broken('j')", "final_answer(x)",
        tools=[broken], trust_level=level,
    )  # fmt: skip
    result = agent.run("task")
    assert (result.value, decisions(result)) == ("k", ["ran", "failed", "answered"])
    assert "KeyError: 'j'" in shown(agent)


@at_every_level
def test_what_cannot_cross_is_an_error_in_the_cell(level: str) -> None:
    def give() -> object:
        """A lock."""
        return threading.Lock()

    def take(x: object) -> int:
        """Anything."""
        return 1

    agent = agent_of("give()", "take(n for n in 'ab')", "final_answer(1)", tools=[give, take], trust_level=level)
    result = agent.run("task")
    assert decisions(result) == ["failed", "failed", "answered"]
    assert "cannot be passed" in shown(agent)


def test_a_tool_that_takes_longer_than_the_cell_may_is_left() -> None:
    def slow() -> None:
        """Sleeps."""
        time.sleep(1)

    agent = agent_of("slow()", "final_answer(1)", tools=[slow], limits=ExecutionLimits(timeout_seconds=0.2))
    assert decisions(agent.run("task")) == ["failed", "answered"]


@at_every_level
def test_a_registered_function_is_called(level: str) -> None:
    agent = agent_of("final_answer(half(5))", trust_level=level)

    @agent.fn
    def half(x: float) -> float:
        """Half of it."""
        return x / 2

    assert agent.run("task").value == 2.5
    assert half(3) == 1.5


def test_at_local_a_registered_function_gets_the_cells_own_objects() -> None:
    seen: list[list[int]] = []
    agent = agent_of("rows = [1]\nkeep(rows)\nrows.append(2)\nfinal_answer(rows)", trust_level="local")
    agent.fn(lambda rows: seen.append(rows), name="keep")
    agent.run("task")
    assert seen == [[1, 2]]


def test_a_class_that_can_be_imported_is_bound_inside() -> None:
    from fractions import Fraction

    agent = agent_of("final_answer(str(Fraction(1, 3) + Fraction(1, 6)))")
    agent.cls(Fraction)
    assert agent.run("task").value == "1/2"


def test_parts_of_a_class_take_the_guard() -> None:
    from fractions import Fraction

    with pytest.raises(ValueError, match="parts of Fraction can be granted where the guard stands"):
        agent_of("1").cls(Fraction, include=["limit_denominator"])


@pytest.mark.sampled(0)
def test_a_policy_within_the_walls() -> None:
    def search(words: str) -> list[str]:
        """Search a corpus."""
        return [words.upper()]

    agent = agent_of("import os", "final_answer(search('a'))", policy=Policy().fn(search))
    result = agent.run("task")
    assert result.value == ["A"]
    assert decisions(result) == ["failed", "answered"]
    assert "def search(words: str) -> list[str]:" in agent.model.asked[0][0]["content"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "name", ["final_answer", "task_fail", "uncertain", "explore", "commit", "memory", "AgentMemory"]
)
@at_every_level
def test_a_name_of_the_agents_own_is_refused_however_it_is_registered(level: str, name: str) -> None:
    def function() -> None:
        """Nothing."""

    function.__name__ = name
    with pytest.raises(ValueError, match=f"'{name}' is a name of the agent's own"):
        agent_of("1", tools=[function], trust_level=level)
    with pytest.raises(ValueError, match=f"'{name}' is a name of the agent's own"):
        agent_of("1", trust_level=level).fn(function)
    with pytest.raises(ValueError, match=f"'{name}' is a name of the agent's own"):
        agent_of("1", trust_level="local").cls(int, name=name)
    with pytest.raises(ValueError, match=f"'{name}' is a name of the agent's own"):
        agent_of("1", trust_level="local").module(os, name=name)


@at_every_level
def test_a_name_is_registered_once(level: str) -> None:
    def one() -> None:
        """Nothing."""

    with pytest.raises(ValueError, match="'one' is registered twice"):
        agent_of("1", tools=[one, one], trust_level=level)


@pytest.mark.parametrize("wrong", [None, 5, "search", object()])
def test_what_is_no_function_is_no_tool(wrong: object) -> None:
    with pytest.raises(TypeError, match="a tool must be a function with a name"):
        agent_of("1", tools=[wrong])


# ---------------------------------------------------------------------------------- sub-agents


@at_every_level
def test_an_agent_asks_another_one(level: str) -> None:
    helper = agent_of("final_answer(6 * 7)", trust_level=level)
    agent = agent_of("final_answer(await ask('six by seven'))", tools=[helper.as_tool(name="ask")], trust_level=level)
    assert agent.run("task").value == 42
    assert helper.model.asked[0][1]["content"] == "six by seven"  # type: ignore[attr-defined]


@pytest.mark.sampled(0)
def test_an_agent_on_a_branch_sees_the_callers_names_and_keeps_what_it_changes_to_itself() -> None:
    helper = agent_of("rows.append(9)\nopen('b.txt', 'w').close()\nfinal_answer((sum(rows), open('a.txt').read()))")
    agent = agent_of(
        "rows = [1, 2]\nopen('a.txt', 'w').write('a')", "found = await ask('sum')",
        "import os\nfinal_answer((found, rows, os.listdir()))",
        tools=[helper.as_tool(name="ask", on_branch=True)],
    )  # fmt: skip
    assert agent.run("task").value == ((12, "a"), [1, 2], ["a.txt"])


@pytest.mark.sampled(0)
def test_several_agents_on_branches_at_once() -> None:
    helper = CodeAgent(
        ScriptedModel([lambda messages: fenced(f"final_answer((rows, {len(messages[1]['content'])}))")] * 3)
    )
    agent = agent_of(
        "rows = [1]", "import asyncio\nfinal_answer(await asyncio.gather(ask('a'), ask('bb'), ask('ccc')))",
        tools=[helper.as_tool(name="ask", on_branch=True)],
    )  # fmt: skip
    assert agent.run("task").value == [([1], 1), ([1], 2), ([1], 3)]


@pytest.mark.sampled(0)
def test_a_branch_of_a_stored_session_leaves_nothing_of_the_helpers_in_it(tmp_path: object) -> None:
    helper = agent_of("x = 2\nfinal_answer(x)")
    with agent_of(
        "x = 1", "final_answer((await ask('a'), x))", tools=[helper.as_tool(name="ask", on_branch=True)],
        state=Versioned(f"sqlite:///{tmp_path}/cells.db"),
    ) as agent:  # fmt: skip
        assert agent.run("task").value == (2, 1)


class Asking:
    """A model that asks another agent, whatever the task."""

    def complete(self, messages: object, tools: object) -> str:
        return "```python\nfinal_answer(await ask('again'))\n```"


@pytest.mark.sampled(0)
def test_agents_that_ask_one_another_end() -> None:
    agents: list[CodeAgent] = []

    async def ask(task: str) -> object:
        """Ask the same agent."""
        return await agents[0].as_tool()(task)

    agents.append(CodeAgent(Asking(), tools=[ask], limits=ExecutionLimits(max_steps=1)))
    result = agents[0].run("task")
    assert result.partial
    assert "StepLimitReached" in str(result.memory.failed_approaches)


@pytest.mark.sampled(0)
def test_agents_are_asked_through_three_others_and_no_more() -> None:
    asked: list[str] = []
    deepest: list[BaseException] = []
    agents: list[CodeAgent] = []

    async def ask(task: str) -> object:
        """Ask the same agent."""
        asked.append(task)
        try:
            return await agents[0].as_tool()(task)
        except RecursionError as error:
            deepest.append(error)
            raise

    agents.append(CodeAgent(Asking(), tools=[ask], limits=ExecutionLimits(max_steps=1)))
    agents[0].run("task")
    assert [str(error) for error in deepest] == ["agents already ask one another 3 levels deep"]
    assert len(asked) == 4, "three agents that were asked, and the question of the third"


def test_a_helper_that_fails_is_an_error_in_the_callers_cell() -> None:
    helper = agent_of("task_fail('no data')")
    agent = agent_of("await ask('a')", "final_answer(1)", tools=[helper.as_tool(name="ask")])
    agent.run("task")
    assert "no data" in shown(agent)


def test_a_helper_without_an_answer_is_an_error_in_the_callers_cell() -> None:
    helper = agent_of("1", limits=ExecutionLimits(max_steps=1))
    agent = agent_of("await ask('a')", "final_answer(1)", tools=[helper.as_tool(name="ask")])
    result = agent.run("task")
    assert decisions(result) == ["failed", "answered"]
    assert "no answer after 1 steps" in shown(agent)


def test_a_task_that_is_no_text_is_refused() -> None:
    with pytest.raises(TypeError, match="a task must be a str, not int"):
        agent_of("1").run(5)  # type: ignore[arg-type]
    with pytest.raises(CellblockError, match="is not a model"):
        CodeAgent(5)
