"""Whole runs of agents over the real client and a real server on loopback that is slow, refuses and breaks off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from model_server import Answer, Drop, Failure, ModelServer, Silence
from scripted_agents import LEVELS, decisions, fenced

from cellblock import CodeAgent, ModelError, ReactAgent, RunResult
from cellblock.observe.log import read_log

pytest.importorskip("openai")


@pytest.fixture(autouse=True)
def _no_endpoint_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def endpoint() -> Callable[[ModelServer], object]:
    from cellblock.models import Patience
    from cellblock.models.openai import EndpointModel

    def made(server: ModelServer) -> object:
        patience = Patience(first_wait=0.001, retries=3, seed=1)
        return EndpointModel("gpt", base_url=server.url, api_key=server.key, patience=patience)

    return made


@pytest.mark.sampled(1)
@pytest.mark.parametrize("level", LEVELS)
def test_a_run_goes_through_a_refusal_and_broken_connections(
    level: str, endpoint: Callable[[ModelServer], object]
) -> None:
    script = [
        Failure(429, "slow down", retry_after="0.01"),
        Answer(fenced("rows = [1, 2]\nrows[5]")),
        Answer(fenced("total = sum(rows)\ntotal"), cut=3),
        Answer(fenced("total = sum(rows)\ntotal")),
        Drop(),
        Failure(503, "no"),
        Answer(fenced("final_answer(total, verified_by='by hand')")),
    ]
    with ModelServer(script) as server:
        told = list(CodeAgent(endpoint(server), trust_level=level).stream("sum"))
        assert len(server.asked) == len(script)
    result = told[-1]
    assert isinstance(result, RunResult)
    assert (result.value, result.verified_by) == (3, "by hand")
    assert decisions(result) == ["failed", "ran", "answered"]
    assert (result.tokens.input, result.tokens.output) == (30, 15)
    assert len([one for one in told if isinstance(one, str)]) > 10
    assert "IndexError" in server.asked[2].body["messages"][-1]["content"]


def test_an_agent_by_a_models_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer([Answer(fenced("final_answer(1)"))]) as server:
        monkeypatch.setenv("OPENAI_API_KEY", server.key)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert CodeAgent("gpt-x").run("task").value == 1
    assert server.asked[0].body["model"] == "gpt-x"


def test_without_a_key_the_agent_says_what_to_do() -> None:
    with pytest.raises(ModelError) as caught:
        CodeAgent("gpt-x")
    assert "OPENAI_API_KEY" in str(caught.value)


def test_where_the_endpoints_window_is_too_small_older_observations_are_left_out(
    endpoint: Callable[[ModelServer], object],
) -> None:
    sizes: list[int] = []

    def narrow(body: dict[str, Any]) -> Answer | Failure:
        size = sum(len(message["content"]) for message in body["messages"])
        sizes.append(size)
        if size > 7_000:
            return Failure(400, "maximum context length", code="context_length_exceeded")
        return Answer(fenced("print('x' * 3_000)" if len(sizes) < 4 else "final_answer(1)"), piece=1_000)

    with ModelServer(narrow) as server:
        result = CodeAgent(endpoint(server)).run("task")
    assert result.value == 1
    assert max(sizes) > 7_000


def test_cancelling_a_run_leaves_the_endpoint(endpoint: Callable[[ModelServer], object], tmp_path: Any) -> None:
    with ModelServer([Silence()]) as server:

        async def run() -> None:
            await CodeAgent(endpoint(server)).arun("task", log=tmp_path / "run.log")

        async def main() -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                while not server.asked:
                    await anyio.sleep(0.01)
                tasks.cancel_scope.cancel()

        anyio.run(main)
        assert server.left.wait(10)
    assert read_log(tmp_path / "run.log")[-1]["reason"] == "interrupted"


def test_an_endpoint_that_is_gone_is_an_error_with_what_was_done(endpoint: Callable[[ModelServer], object]) -> None:
    with ModelServer([Answer(fenced("x = 1"))]) as server:
        with pytest.raises(ModelError) as caught:
            CodeAgent(endpoint(server)).run("task")
    result: Any = caught.value.result
    assert decisions(result) == ["ran"]


def test_tools_by_json_over_an_endpoint(endpoint: Callable[[ModelServer], object]) -> None:
    def double(x: int) -> int:
        """Twice."""
        return 2 * x

    script = [
        Answer(calls=(("double", '{"x": 2}'), ("double", '{"x": "many"}'))),
        Answer(calls=(("final_answer", '{"value": 4}'),)),
    ]
    with ModelServer(script) as server:
        result = ReactAgent(endpoint(server), tools=[double]).run("task")
    assert result.value == 4
    tools = [message for message in server.asked[1].body["messages"] if message["role"] == "tool"]
    assert [one["content"].partition(":")[0] for one in tools] == ["4", "error"]
    assert [one["function"]["name"] for one in server.asked[0].body["tools"]] == ["double", "final_answer"]
