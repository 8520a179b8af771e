"""What a model is told, and how a user replaces it."""

from types import ModuleType

import pytest
from scripted_agents import LEVELS, agent_of, shown

from cellblock import CodeAgent, Policy, Prompts, tool


def told(agent: CodeAgent) -> str:
    """The system's text of an agent's first call."""
    agent.run("the task")
    return agent.model.asked[0][0]["content"]  # type: ignore[attr-defined,no-any-return]


def test_a_text_is_replaced_and_its_places_filled() -> None:
    prompts = Prompts(system="Only $steps cells.\n$capabilities", task="Do: $task", observation="$outcome|$left")
    agent = agent_of("1", "final_answer(1)", prompts=prompts, tools=[search])
    assert told(agent) == 'Only 10 cells.\ndef search(words: str) -> list[str]:\n    """Search a corpus."""'
    assert agent.model.asked[0][1]["content"] == "Do: the task"  # type: ignore[attr-defined]
    assert shown(agent) == "Cell 1 ran.|"


def search(words: str) -> list[str]:
    """Search a corpus."""
    return [words]


@pytest.mark.parametrize("name", ["system", "rules_isolated", "rules_local", "task", "observation", "verify"])
def test_a_place_that_there_is_not_is_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} has no place \$nothing; it has "):
        Prompts(**{name: "a $nothing"})


def test_a_dollar_that_is_no_place_stays() -> None:
    agent = agent_of("final_answer(1)", prompts=Prompts(task="It costs $$5: $task"))
    agent.run("buy")
    assert shown(agent) == "It costs $5: buy"


def test_what_a_user_or_a_cell_writes_is_never_read_as_a_place() -> None:
    agent = agent_of("print('$task $left')", "final_answer(1)")
    agent.run("pay $steps and $task")
    assert agent.model.asked[0][1]["content"] == "pay $steps and $task"  # type: ignore[attr-defined]
    assert "$task $left" in shown(agent)


@pytest.mark.parametrize("level", LEVELS)
def test_functions_are_told_by_their_visibility(level: str) -> None:
    @tool(visibility="signature")
    def brief(x: int) -> int:
        """Not told."""
        return x

    @tool(visibility="hidden")
    def secret(x: int) -> int:
        """Not told either."""
        return x

    agent = agent_of("final_answer((brief(1), secret(2)))", tools=[search, brief, secret], trust_level=level)

    @agent.fn
    def registered(x: int = 3) -> int:
        'Has """quotes""".'
        return x

    text = told(agent)
    assert 'def search(words: str) -> list[str]:\n    """Search a corpus."""' in text
    assert "def brief(x: int) -> int: ..." in text
    assert "Not told" not in text
    assert "secret" not in text
    assert "def registered(x: int = 3) -> int:\n    \"\"\"Has '''quotes'''.\"\"\"" in text


class Counter:
    """Counts."""

    limit = 3

    def __init__(self, start: int = 0) -> None:
        self.value = start

    def add(self, by: int) -> int:
        """Add to it."""
        self.value += by
        return self.value

    def drop(self) -> None:
        """Not granted."""


def test_a_class_is_told_by_what_is_granted_of_it() -> None:
    agent = agent_of("c = Counter(2)\nfinal_answer(c.add(3))", trust_level="local")
    agent.cls(Counter, include=["add"])
    text = told(agent)
    assert 'class Counter:\n    """Counts."""\n    def __init__(self, start: int = 0)' in text
    assert "def add(self, by: int) -> int: ..." in text
    assert "drop" not in text


def test_a_module_is_told_by_what_is_granted_of_it() -> None:
    module = ModuleType("prices")
    module.tea, module.secret = 3, 4  # type: ignore[attr-defined]
    agent = agent_of("import prices\nfinal_answer(prices.tea)", trust_level="local")
    agent.module(module, include=["tea"])
    text = told(agent)
    assert "import prices  # tea" in text
    assert "secret" not in text


@pytest.mark.parametrize("level", LEVELS)
def test_the_rules_are_those_of_the_level(level: str) -> None:
    text = told(agent_of("final_answer(1)", trust_level=level))
    assert ("The session is sealed" in text) is (level == "isolated")
    assert ("Only what is listed below" in text) is (level == "local")
    assert ("all is undone" in text) is (level == "isolated")


def test_behind_the_guard_of_a_sealed_session_the_stricter_rules_are_told() -> None:
    text = told(agent_of("final_answer(1)", policy=Policy()))
    assert "Only what is listed below" in text
    assert "all is undone" in text


def test_inputs_and_files_are_told_with_what_they_are() -> None:
    agent = agent_of("final_answer(len(rows) + len(open('a.txt').read()))")
    result = agent.run("count", inputs={"rows": [1, 2, 3]}, files={"a.txt": b"four"})
    assert result.value == 7
    text = shown(agent)
    assert "- rows: list = [1, 2, 3]" in text
    assert "- the file a.txt, 4 bytes" in text


def test_the_last_cells_are_counted_down() -> None:
    from cellblock import ExecutionLimits

    agent = agent_of("1", "2", "3", limits=ExecutionLimits(max_steps=3))
    agent.run("task")
    assert "2 cells are left." in shown(agent, 1)
    assert "This is the last cell" in shown(agent, 2)
