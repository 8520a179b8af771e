"""What was learned: read and written by code, kept by the host, whatever becomes of the namespace."""

from typing import Any

import pytest
from scripted_agents import LEVELS, agent_of, shown

from cellblock import AgentMemory, ExecutionLimits, Live, Session
from cellblock.agent.result import Step

at_every_level = pytest.mark.parametrize("level", LEVELS)


@at_every_level
def test_code_writes_what_the_host_reads(level: str) -> None:
    agent = agent_of(
        "memory.observations.append('seen')\nmemory.variables['k'] = {'a': [1]}\nmemory.failed_approaches.append('no')",
        "final_answer(1)",
        trust_level=level,
    )
    memory = agent.run("task").memory
    assert memory == AgentMemory({"k": {"a": [1]}}, ["seen"], ["no"])


@at_every_level
def test_code_reads_what_the_host_has_noted(level: str) -> None:
    agent = agent_of("uncertain('a')", "1/0", "final_answer(repr(memory))", trust_level=level)
    value = agent.run("task").value
    assert "uncertain: a" in str(value)
    assert "1/0 -> ZeroDivisionError: division by zero" in str(value)


@at_every_level
@pytest.mark.parametrize(
    "rubbish",
    [
        "memory = None",
        "del memory",
        "memory.observations = 5",
        "memory.variables = []",
        "memory = 'x'",
        "del memory.observations",
    ],
)
def test_memory_that_was_replaced_by_rubbish_is_made_again(level: str, rubbish: str) -> None:
    agent = agent_of(
        "memory.observations.append('seen')", rubbish, "final_answer(memory.observations)", trust_level=level
    )
    result = agent.run("task")
    assert result.value == ["seen"]
    assert result.memory.observations == ["seen"]


@at_every_level
def test_texts_that_are_none_are_made_texts(level: str) -> None:
    agent = agent_of("memory.observations.append({'a': 1})", "final_answer(memory.observations)", trust_level=level)
    result = agent.run("task")
    assert result.memory.observations == ["{'a': 1}"]


def test_values_that_cannot_cross_stay_inside_and_cost_only_themselves() -> None:
    agent = agent_of(
        "memory.variables['f'] = lambda: 7\nmemory.variables['n'] = 1\nmemory.observations.append('seen')",
        "final_answer((memory.variables['f'](), memory.observations))",
    )
    result = agent.run("task")
    assert result.value == (7, ["seen"])
    assert result.memory.variables["n"] == 1
    assert type(result.memory.variables["f"]).__name__ == "Opaque"


@pytest.mark.threat("W11")
def test_values_are_taken_as_far_as_the_host_has_room_for_them() -> None:
    agent = agent_of(
        "one = b'x' * 2**22\nmemory.variables = {f'n{i}': one for i in range(10)}\nmemory.variables['f'] = lambda: 7",
        "final_answer(len(memory.variables))",
        limits=ExecutionLimits(max_host_mb=22),
    )
    result = agent.run("task")
    kinds = [type(value).__name__ for value in result.memory.variables.values()]
    assert (result.value, kinds) == (11, ["bytes"] * 5 + ["Opaque"] * 6)
    left: Any = result.memory.variables["n9"]
    assert left.reason == "too large for the host, with what was read before it"


@pytest.mark.sampled(0)
@pytest.mark.threat("W11")
def test_many_names_of_one_large_value_are_read_one_by_one_where_together_there_is_no_room() -> None:
    agent = agent_of(
        "one = [0.5] * 100_000\nmemory.variables = {f'n{i}': one for i in range(20)}",
        "final_answer(1)",
        limits=ExecutionLimits(max_host_mb=16),
    )
    kinds = {type(value).__name__ for value in agent.run("task").memory.variables.values()}
    assert kinds == {"list", "Opaque"}


@at_every_level
def test_values_that_code_takes_out_are_gone_from_the_hosts_memory(level: str) -> None:
    agent = agent_of("memory.variables['k'] = 1", "memory.variables.clear()", "final_answer(1)", trust_level=level)
    assert agent.run("task").memory.variables == {}


def test_observations_that_no_text_can_be_made_of_are_dropped_with_those_of_their_cell() -> None:
    agent = agent_of(
        "memory.observations.append('seen')\nmemory.variables['k'] = 1",
        "class Bad:\n    def __repr__(self): raise ValueError\nmemory.observations.append(Bad())",
        "final_answer((memory.observations, memory.variables))",
    )
    assert agent.run("task").value == (["seen"], {"k": 1})


def test_an_exploration_of_many_cells_that_speak_of_memory_is_rolled_back() -> None:
    cells = [f"memory.observations.append('{number}')\nx = {number}" for number in range(7)]
    agent = agent_of("x = 'before'", "explore('a')", *cells, "raise ValueError", "final_answer(x)",
                     limits=ExecutionLimits(max_steps=12))  # fmt: skip
    result = agent.run("task")
    assert result.value == "before"
    assert result.memory.observations[1:8] == [str(number) for number in range(7)]


def test_memory_is_bounded_whatever_code_puts_there() -> None:
    agent = agent_of("memory.observations += ['x' * 10_000] * 1_000", "final_answer(1)")
    observations = agent.run("task").memory.observations
    assert len(observations) <= 200
    assert max(map(len, observations)) <= 2_001


@pytest.mark.sampled(0)
@pytest.mark.threat("W11")
@pytest.mark.parametrize("name", ["observations", "failed_approaches"])
def test_memory_is_bounded_whatever_its_objects_say_of_themselves(name: str) -> None:
    false = (
        "class Texts:\n    def __getitem__(self, _): return ['first', *['y' * 3_000] * 5_000]\n"
        f"class Adds:\n    def __add__(self, _): return Texts()\nmemory.{name} = Adds()"
    )
    result = agent_of(false, "final_answer(1)").run("task")
    assert getattr(result.memory, name) == ["y" * 2_000 + "…"] * 200
    (noted,) = [event["memory"] for event in result.log if event.get("memory")]
    assert len(noted[name]) == 200


@pytest.mark.sampled(0)
@pytest.mark.threat("W11")
def test_all_that_an_agent_logs_counts_on_the_account_of_its_session() -> None:
    held: dict[str, int] = {}

    def look(event: object) -> None:
        if isinstance(event, Step):
            held[event.code] = session._session._account.held

    said = "for _ in range(100): uncertain('a' * 2_000)"
    with Session(tools=agent_of().tools) as session:
        agent_of("1", said, "2", "final_answer(1)").run("task", session=session, tell=look)
    assert held["2"] - held["1"] > 2 * 100 * 2_000  # the signals of the cell, and the notes that come of them


def test_after_a_rollback_values_are_the_older_ones_and_texts_stay() -> None:
    agent = agent_of(
        "memory.variables['k'] = 1",
        "explore('a')\nmemory.variables['k'] = 2\nmemory.observations.append('seen')",
        "raise ValueError('no')",
        "final_answer((memory.variables['k'], 'seen' in memory.observations))",
    )
    result = agent.run("task")
    assert result.value == (1, True)
    assert result.memory.variables == {"k": 1}


def test_after_a_crash_what_the_host_noted_is_there() -> None:
    agent = agent_of("uncertain('a')", "import os; os._exit(1)", "final_answer(memory.observations)")
    assert agent.run("task").value == ["uncertain: a"]


def test_memory_is_no_name_that_a_model_is_shown_as_changed() -> None:
    agent = agent_of("memory.observations.append('a')\nx = 1", "final_answer(1)")
    agent.run("task")
    assert "- x: int = 1" in shown(agent)
    assert "- memory" not in shown(agent)


def test_a_run_without_a_state_begins_with_an_empty_memory() -> None:
    agent = agent_of("uncertain('a')\nfinal_answer(1)", "final_answer(memory.observations)")
    agent.run("one")
    assert agent.run("two").value == []


@at_every_level
def test_with_a_live_state_memory_goes_on(level: str) -> None:
    with agent_of(
        "uncertain('a')\nfinal_answer(1)", "final_answer(memory.observations)", state=Live(), trust_level=level
    ) as agent:
        agent.run("one")
        assert agent.run("two").value == ["uncertain: a"]
        assert agent.memory.observations == ["uncertain: a"]
