"""Arguments of agents that nothing takes: told at the constructor, or at the call, by their names."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from cellblock import CodeAgent, ReactAgent, ScriptedModel, Session
from cellblock.agent.code import RunOptions

ANSWER = "```python\nfinal_answer(1)\n```"


def agent(**options: Any) -> CodeAgent:
    return CodeAgent(ScriptedModel([ANSWER, ANSWER]), **options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"limits": {}}, "limits must be ExecutionLimits, not dict"),
        ({"limits": 3}, "limits must be ExecutionLimits, not int"),
        ({"policy": []}, "policy must be a Policy, not list"),
        ({"trust_level": "docker"}, "trust_level must be 'local', 'isolated' or 'sandboxed', not 'docker'"),
        ({"walls": "none"}, "walls must be 'full' or 'reduced', not 'none'"),
        ({"network": True}, 'network is a list of "host:port", not True'),
        ({"private": 3}, "private must be True or a list of patterns of paths, not 3"),
        ({"mounts": ["a"]}, "mounts must map names to paths, not be a list"),
        ({"python": "nosuch"}, "python='nosuch' is no program on PATH: give the interpreter's path"),
        ({"seed": "a"}, "seed must be a whole number, not str"),
        ({"container": "image"}, 'container= is for trust_level="sandboxed"'),
        ({"name": "a"}, "only a session that lasts has a name: leave out the name, or state="),
    ],
)
def test_constructor_refuses_what_no_session_takes(options: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        agent(**options)
    assert str(caught.value) == said


UNCALLABLE = "'<lambda>' cannot be the name of a tool: cells could not call it; define the tool by def"


@pytest.mark.parametrize(
    "given",
    [
        lambda tool: agent(tools=[tool]),
        lambda tool: agent().fn(tool),
        lambda tool: ReactAgent(ScriptedModel([]), tools=[tool]),
        lambda tool: Session(tools=[tool]),
    ],
    ids=["CodeAgent", "fn", "ReactAgent", "Session"],
)
def test_a_function_without_a_name_of_its_own_is_no_tool(given: Callable[[object], object]) -> None:
    with pytest.raises(ValueError, match="cannot be the name") as caught:
        given(lambda: 1)
    assert str(caught.value) == UNCALLABLE


def test_limits_of_a_react_agent_are_limits() -> None:
    with pytest.raises(TypeError, match=r"^limits must be ExecutionLimits, not dict$"):
        ReactAgent(ScriptedModel([]), limits={})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"files": "text"}, "files must map names to bytes or paths, not be a str"),
        ({"files": {"a.csv": 3}}, "files['a.csv'] must be bytes, or the path of a file, not 3"),
        ({"inputs": [1]}, "inputs must map names to values, not be a list"),
        ({"accept": 3}, "accept must be a function, not 3"),
        ({"verifier": 3}, "verifier must be a function, not 3"),
        ({"attempts": 2, "verifier": lambda result: "good"}, "verifier must return a number, not 'good'"),
    ],
)
def test_run_refuses_what_it_cannot_use(options: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError) as caught:
        agent().run("task", **options)
    assert str(caught.value) == said


def test_run_and_stream_name_the_options_of_arun() -> None:
    named = {
        name: str(one.annotation)
        for name, one in inspect.signature(CodeAgent.arun).parameters.items()
        if one.kind is one.KEYWORD_ONLY
    }
    assert named == {name: one.__forward_arg__ for name, one in RunOptions.__annotations__.items()}
    for method in (CodeAgent.run, CodeAgent.stream, CodeAgent.astream):
        assert inspect.signature(method).parameters["options"].annotation == "Unpack[RunOptions]"


def test_a_task_that_is_called_wrongly_is_named_with_its_signature() -> None:
    @agent().task
    def mean(rows: list[int], *, digits: int = 2) -> float:
        """Mean."""
        raise NotImplementedError

    wrong: Any = mean
    with pytest.raises(TypeError) as caught:
        wrong(digits=3)
    signature = "(rows: 'list[int]', *, digits: 'int' = 2) -> 'float'"
    assert str(caught.value) == f"mean(): missing a required argument: 'rows'; it is mean{signature}"
