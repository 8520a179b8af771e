"""An agent that calls tools with JSON: schemas, arguments, errors, calls at once, limits."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, Literal

import anyio
import pydantic
import pytest

from cellblock import CellblockError, ExecutionLimits, ModelError, ReactAgent, ScriptedModel, StepLimitReached, tool
from cellblock.models import Reply, Tokens, ToolRequest
from cellblock.observe.log import read_log


def calls(*requests: tuple[str, Any]) -> Reply:
    """A reply that asks for these tools; arguments that are a text are what the model wrote."""
    made = []
    for number, (name, given) in enumerate(requests):
        raw = given if isinstance(given, str) else json.dumps(given)
        made.append(
            ToolRequest(id=f"call{number}", name=name, arguments=None if isinstance(given, str) else given, raw=raw)
        )
    return Reply(requests=tuple(made), tokens=Tokens(input=1, output=1))


def answer(value: Any) -> Reply:
    return calls(("final_answer", {"value": value}))


class Place(pydantic.BaseModel):
    city: str
    zip: int = 0


@tool
def search(words: str, most: int = 3, kind: Literal["all", "new"] = "all") -> list[str]:
    """Search a corpus."""
    return [f"{kind} {words}"] * most


def at(place: Place) -> str:
    """Weather at a place."""
    return f"{type(place).__name__} {place.city}"


def broken() -> None:
    """Fails."""
    raise OSError("no disk")


def agent_of(*replies: Reply | str, tools: Any = (search, at, broken), **options: Any) -> ReactAgent:
    return ReactAgent(ScriptedModel(list(replies)), tools=tools, **options)


def told(agent: ReactAgent) -> list[str]:
    """What tools answered in the last call of the model."""
    return [one["content"] for one in agent.model.asked[-1] if one["role"] == "tool"]  # type: ignore[attr-defined]


def test_a_tool_is_called_and_the_answer_given() -> None:
    agent = agent_of(calls(("search", {"words": "a", "most": 2})), answer(7))
    result = agent.run("task")
    assert (result.value, result.partial, len(result.steps)) == (7, False, 2)
    assert told(agent) == ['["all a", "all a"]']
    assert result.tokens == Tokens(input=2, output=2)


def test_a_reply_without_a_call_is_the_answer() -> None:
    result = agent_of("It is 7.").run("task")
    assert (result.value, len(result.steps)) == ("It is 7.", 1)


def test_schemas_are_those_of_the_signatures() -> None:
    seen: list[Any] = []

    class Looking:
        def complete(self, messages: Any, tools: Any) -> str:
            seen.extend(tools)
            return "done"

    ReactAgent(Looking(), tools=[search, at]).run("task")
    schemas = {one["function"]["name"]: one["function"] for one in seen}
    assert sorted(schemas) == ["at", "final_answer", "search"]
    assert schemas["search"]["description"] == "Search a corpus."
    parameters = schemas["search"]["parameters"]
    assert parameters["required"] == ["words"]
    assert parameters["properties"]["most"] == {"default": 3, "title": "Most", "type": "integer"}
    assert parameters["properties"]["kind"]["enum"] == ["all", "new"]
    assert schemas["at"]["parameters"]["$defs"]["Place"]["required"] == ["city"]


def test_arguments_are_made_what_is_annotated() -> None:
    agent = agent_of(calls(("at", {"place": {"city": "Rome"}}), ("search", {"words": "a", "most": "1"})), "done")
    agent.run("task")
    assert told(agent) == ["Place Rome", '["all a"]']


WRONG = {
    "missing": (("search", {}), "words: Field required"),
    "of another type": (("search", {"words": "a", "most": "many"}), "most: Input should be a valid integer"),
    "none of the words": (("search", {"words": "a", "kind": "old"}), "kind: Input should be 'all' or 'new'"),
    "unknown": (("search", {"words": "a", "page": 1}), "page: Extra inputs are not permitted"),
    "deep": (("at", {"place": {"zip": "x"}}), "place.city: Field required; place.zip: Input should be a valid integer"),
    "no JSON": (("search", '{"words": "a'), 'the arguments are no JSON object: {"words": "a'),
    "unknown tool": (("find", {}), "there is no tool 'find'; there are at, broken, final_answer, search"),
    "raised": (("broken", {}), "OSError: no disk"),
}  # fmt: skip


@pytest.mark.parametrize(("request_", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_with_a_call_is_shown_and_mended(request_: tuple[str, Any], said: str) -> None:
    agent = agent_of(calls(request_), answer(1))
    result = agent.run("task")
    assert result.value == 1
    assert said in told(agent)[0]
    assert told(agent)[0].startswith("error: ")
    assert len(result.memory.failed_approaches) == 1


def leaving() -> None:
    """Fails, and fails again when its error is read."""

    class Leaving(Exception):
        def __str__(self) -> str:
            raise SystemExit(7)

    raise Leaving


def add(numbers: list[int]) -> int:
    """Add numbers."""
    return sum(numbers)


@pytest.mark.threat("L9")
@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (("leaving", {}), "error: Leaving: its message could not be read"),
        (
            ("add", {"numbers": ["a"] * 20_000}),
            "error: ValueError: the arguments do not fit: 20,000 validation errors for add",
        ),
    ],
)
def test_an_error_that_cannot_be_read_or_is_too_long_is_an_answer(request_: tuple[str, Any], said: str) -> None:
    agent = agent_of(calls(request_), answer(1), tools=(leaving, add))
    assert agent.run("task").value == 1
    assert told(agent) == [said]


def test_calls_of_one_reply_are_made_at_once_and_answered_in_their_order() -> None:
    met = anyio.Event()
    waiting = 0

    async def meet(name: str) -> str:
        """Waits for the other."""
        nonlocal waiting
        waiting += 1
        if waiting == 2:
            met.set()
        with anyio.fail_after(5):
            await met.wait()
        return name

    agent = agent_of(calls(("meet", {"name": "a"}), ("meet", {"name": "b"})), "done", tools=[meet])
    agent.run("task")
    assert told(agent) == ["a", "b"]
    assert [one["tool_call_id"] for one in agent.model.asked[-1] if one["role"] == "tool"] == ["call0", "call1"]  # type: ignore[attr-defined]


def test_past_the_last_step() -> None:
    replies = [calls(("search", {"words": "a"}))] * 2
    result = agent_of(*replies, limits=ExecutionLimits(max_steps=2)).run("task")
    assert (result.value, result.partial) == (None, True)
    with pytest.raises(StepLimitReached, match="no answer after 2 steps"):
        agent_of(*replies, limits=ExecutionLimits(max_steps=2), on_limit="raise").run("task")


def test_an_empty_reply_is_answered() -> None:
    agent = agent_of("", "done")
    assert agent.run("task").value == "done"
    assert "The reply was empty" in agent.model.asked[-1][-1]["content"]  # type: ignore[attr-defined]


def test_a_long_answer_of_a_tool_is_cut() -> None:
    agent = agent_of(
        calls(("search", {"words": "a" * 500, "most": 100})), "done", limits=ExecutionLimits(max_output_bytes=1_000)
    )
    agent.run("task")
    assert len(told(agent)[0]) < 1_100
    assert "left out" in told(agent)[0]


def test_an_answer_that_has_no_json_is_shown_as_python() -> None:
    def made() -> object:
        """A set."""
        return {1}

    agent = agent_of(calls(("made", {})), "done", tools=[made])
    agent.run("task")
    assert told(agent) == ["{1}"]


def test_what_was_done_is_in_the_log_even_where_the_model_fails(tmp_path: Any) -> None:
    agent = agent_of(calls(("search", {"words": "a"})))
    with pytest.raises(ModelError) as caught:
        agent.run("task", log=tmp_path / "run.log")
    assert [event["event"] for event in read_log(tmp_path / "run.log")] == ["run", "reply", "tool", "end"]
    assert len(caught.value.result.steps) == 1  # type: ignore[attr-defined]


def test_a_tool_whose_parameters_have_no_names_is_refused() -> None:
    def spread(*words: str) -> None:
        """Any number."""

    with pytest.raises(TypeError, match=r"spread: \*words: 'str' cannot be given by name"):
        agent_of(tools=[spread])


def test_a_parameter_whose_name_pydantic_keeps_for_itself_is_given_all_the_same() -> None:
    def describe(model_config: str, json: int, _hidden: int = 1) -> str:
        """Names that models of pydantic have."""
        return f"{model_config} {json} {_hidden}"

    agent = agent_of(calls(("describe", {"model_config": "a", "json": 2})), "done", tools=[describe])
    agent.run("task")
    assert told(agent) == ["a 2 1"]


def test_a_tool_is_registered_once_and_not_as_final_answer() -> None:
    def final_answer() -> None:
        """Nothing."""

    with pytest.raises(ValueError, match="'final_answer'"):
        agent_of(tools=[final_answer])
    with pytest.raises(ValueError, match="'search' is registered twice"):
        agent_of(tools=[search, search])


def test_a_task_that_is_no_text_is_refused() -> None:
    with pytest.raises(TypeError, match="a task must be a str"):
        agent_of("x").run(5)  # type: ignore[arg-type]
    with pytest.raises(CellblockError, match="is not a model"):
        ReactAgent(5)


def test_a_tool_that_exits_is_shown_and_ends_nothing() -> None:
    def leave() -> None:
        """Leaves, as argparse does."""
        sys.exit(2)

    async def stop() -> None:
        """Stops."""
        raise KeyboardInterrupt

    async def cancel() -> None:
        """Cancels the task that runs it."""
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(60)

    agent = agent_of(calls(("leave", {}), ("stop", {}), ("cancel", {})), answer(1), tools=[leave, stop, cancel])
    assert agent.run("task").value == 1
    assert told(agent) == ["error: SystemExit: 2", "error: KeyboardInterrupt: ", "error: CancelledError: "]
