"""Several attempts at once, each on a branch: the best is kept, the others leave nothing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from scripted_agents import agent_of, decisions, fenced

from cellblock import CellblockError, CodeAgent, ExecutionLimits, Live, ModelError, ScriptedModel, TaskFailed, Versioned
from cellblock.observe.log import read_log


def attempting(*first: str, then: str = "final_answer(x)", **options: Any) -> CodeAgent:
    """Every attempt begins with one of `first`, whichever asks first, and goes on with `then`."""
    left = list(first)

    def next_one(messages: list[dict[str, Any]]) -> str:
        return fenced(left.pop(0) if len(messages) == 2 else then)

    return CodeAgent(ScriptedModel([next_one] * 40), **options)


def test_the_verifier_says_which_is_kept() -> None:
    agent = attempting("x = 1", "x = 3", "x = 2")
    result = agent.run("task", attempts=3, verifier=lambda result: result.value)
    assert result.value == 3
    kept = [event for event in result.log if event.get("kind") == "attempt kept"]
    assert sorted(kept[0]["scores"]) == [1.0, 2.0, 3.0]
    assert kept[0]["reason"] == f"{result.attempt} of 3"


def test_an_async_verifier() -> None:
    async def by_size(result: Any) -> float:
        await anyio.sleep(0)
        return -float(result.value)

    assert attempting("x = 1", "x = 3").run("task", attempts=2, verifier=by_size).value == 1


def test_without_a_verifier_an_answer_is_better_than_none() -> None:
    agent = attempting("x = 1", "raise ValueError", limits=ExecutionLimits(max_steps=2), then="final_answer(x)")
    assert agent.run("task", attempts=2).value == 1


def test_of_equals_the_first_is_kept() -> None:
    assert attempting("x = 1", "x = 2", "x = 3").run("task", attempts=3).attempt == 1


def test_attempts_that_fail_are_left_out() -> None:
    result = attempting("task_fail('no')", "x = 2", "task_fail('no')").run("task", attempts=3)
    assert result.value == 2


def test_where_all_fail_the_first_failure_is_raised() -> None:
    with pytest.raises(TaskFailed, match="no data"):
        attempting(*["task_fail('no data')"] * 2).run("task", attempts=2)


def test_where_no_attempt_has_a_model_its_error_is_raised() -> None:
    with pytest.raises(ModelError, match="the script has ended"):
        CodeAgent(ScriptedModel([])).run("task", attempts=2)


def test_what_a_verifier_raises_is_raised_as_it_is() -> None:
    def broken(result: object) -> float:
        raise ZeroDivisionError("of the verifier")

    with pytest.raises(ZeroDivisionError, match="of the verifier"):
        attempting("x = 1", "x = 2").run("task", attempts=2, verifier=broken)


def test_what_an_attempts_model_raises_is_raised_as_it_is() -> None:
    with pytest.raises(ModelError, match="of the model"):
        CodeAgent(Broken()).run("task", attempts=2)


class Broken:
    name = "broken"

    def complete(self, messages: object, tools: object) -> str:
        raise ZeroDivisionError("of the model")


def test_what_breaks_in_one_attempt_ends_all_and_is_raised_as_it_is(tmp_path: Path) -> None:
    cells = ["import time\ntime.sleep(30)", "x = 1"]

    class Parting(ScriptedModel):
        async def reply(self, messages: Any, tools: Any, on_text: Any = None) -> Any:
            if len(self.asked) == 1:
                raise ZeroDivisionError("of the agent")
            return await super().reply(messages, tools, on_text)

    began = time.monotonic()
    with pytest.raises(ZeroDivisionError, match="of the agent"):
        CodeAgent(Parting([fenced(cell) for cell in cells])).run("task", attempts=2, log=tmp_path / "run.log")
    assert time.monotonic() - began < 20
    assert [event["event"] for event in read_log(tmp_path / "run.log")][-1] == "end"


def test_attempts_see_the_inputs_and_files_and_nothing_of_one_another() -> None:
    agent = attempting(*["open('a.txt', 'a').write('x')\nx = rows + [open('a.txt').read()]"] * 3)
    results: list[object] = []
    result = agent.run(
        "task", attempts=3, inputs={"rows": [1]}, files={"a.txt": b"a"},
        verifier=lambda result: results.append(result.value) or 0,
    )  # fmt: skip
    assert results == [[1, "ax"]] * 3
    assert result.value == [1, "ax"]


def test_a_live_state_goes_on_with_the_winner() -> None:
    with attempting("x = 1", "x = 5", "y = 0", then="final_answer(x)", state=Live()) as agent:
        assert agent.run("one", attempts=2, verifier=lambda result: result.value).value == 5
        assert agent.run("two").value == 5


@pytest.mark.sampled(0)
def test_a_live_state_goes_on_with_the_winners_memory() -> None:
    with attempting("x = 1\nuncertain('of one')", "x = 5\nuncertain('of five')", state=Live()) as agent:
        agent.run("one", attempts=2, verifier=lambda result: result.value)
        assert agent.memory.observations == ["uncertain: of five"]


@pytest.mark.sampled(0)
def test_a_stored_state_has_the_winner_merged(tmp_path: Path) -> None:
    store = Versioned(f"sqlite:///{tmp_path}/cells.db")
    with attempting("x = 1", "x = 5", "y = 0", state=store) as agent:
        assert agent.run("one", attempts=2, verifier=lambda result: result.value).value == 5
    with attempting("y = 0", then="final_answer((x, y))", state=store) as agent:
        assert agent.run("two").value == (5, 0)


@pytest.mark.sampled(0)
def test_attempts_of_one_stored_session_run_after_run(tmp_path: Path) -> None:
    store = Versioned(f"sqlite:///{tmp_path}/cells.db")
    with attempting("x = 1", "x = 5", "x += 1", "x += 2", state=store) as agent:
        agent.run("one", attempts=2, verifier=lambda result: result.value)
        assert agent.run("two", attempts=2, verifier=lambda result: result.value).value == 7


def test_an_exploration_within_an_attempt_is_rolled_back() -> None:
    turns = {2: "x = 1", 4: "explore('a')\nx = 2", 6: "raise ValueError", 8: "final_answer(x)"}
    model = ScriptedModel([lambda messages: fenced(turns[len(messages)])] * 8)
    result = CodeAgent(model).run("task", attempts=2)
    assert result.value == 1
    assert decisions(result) == ["ran", "ran", "rolled back", "answered"]


def test_attempts_need_checkpoints() -> None:
    with pytest.raises(CellblockError, match="without checkpoints"):
        attempting("x = 1", limits=ExecutionLimits(max_checkpoints=0)).run("task", attempts=2)


def test_attempts_at_local_are_refused_with_what_to_do() -> None:
    with pytest.raises(CellblockError) as caught:
        attempting("x = 1", "x = 2", trust_level="local").run("task", attempts=2)
    assert "isolated" in str(caught.value)


def test_a_number_of_attempts_that_is_none_is_refused() -> None:
    for wrong in (0, -1, True, 1.5, "2"):
        with pytest.raises(ValueError, match="attempts must be a whole number of at least 1"):
            agent_of("1").run("task", attempts=wrong)
