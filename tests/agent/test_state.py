"""What outlives a run: nothing, a live session, or one in a store that another process takes up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from scripted_agents import LEVELS, agent_of

from cellblock import AsyncSession, CellblockError, Live, Session, Versioned
from cellblock.state import State


@pytest.fixture
def store(tmp_path: Path) -> Versioned:
    return Versioned(f"sqlite:///{tmp_path}/cells.db")


@pytest.mark.parametrize("level", LEVELS)
def test_without_a_state_runs_share_nothing(level: str) -> None:
    agent = agent_of("x = 1\nfinal_answer(x)", "final_answer('x' in dir())", trust_level=level)
    assert agent.run("one").value == 1
    assert agent.run("two").value is False


@pytest.mark.parametrize("level", LEVELS)
def test_with_a_live_state_names_and_objects_go_on_until_it_is_closed(level: str) -> None:
    cells = ("numbers = iter([1, 2, 3])\nfinal_answer(next(numbers))", "final_answer(next(numbers))", "numbers")
    with agent_of(*cells, "final_answer('lost')", state=Live(), trust_level=level) as agent:
        assert agent.run("one").value == 1
        assert agent.run("two").value == 2
        agent.close()
        result = agent.run("three")
    assert result.value == "lost"
    assert result.steps[0].cell is not None
    assert result.steps[0].cell.error is not None
    assert result.steps[0].cell.error.type == "NameError"


def test_a_stored_state_goes_on_in_another_process(store: Versioned) -> None:
    with agent_of("x = [1]\nopen('a.txt', 'w').write('a')\nuncertain('b')\nfinal_answer(x)", state=store) as agent:
        agent.run("one")
    program = (
        "import sys\n"
        "from cellblock import CodeAgent, ScriptedModel, Versioned\n"
        "cell = 'final_answer((x, open(\"a.txt\").read(), memory.observations))'\n"
        "with CodeAgent(ScriptedModel(['```python\\n' + cell + '\\n```']), state=Versioned(sys.argv[1])) as agent:\n"
        "    print(agent.run('two').value, agent.memory.observations)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, store.url], capture_output=True, text=True, timeout=60)
    assert done.stdout == "([1], 'a', ['uncertain: b']) ['uncertain: b']\n", done.stderr


def test_a_stored_state_is_a_session_that_others_can_open_by_its_name(store: Versioned) -> None:
    with agent_of("x = 41\nfinal_answer(x)", state=store, name="report", user="ann") as agent:
        agent.run("one")
    with Session("report", user="ann", state=store) as session:
        assert session.run("x + 1").value == 42


def test_a_stored_run_without_an_answer_is_in_the_store_all_the_same(store: Versioned) -> None:
    with agent_of("x = 1", "task_fail('no')", state=store) as agent:
        with pytest.raises(CellblockError):
            agent.run("one")
    with Session("agent", state=store) as session:
        assert session.run("x").value == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["live", "versioned"])
def test_a_rollback_within_a_state_goes_back_to_before_its_exploration(kind: str, store: Versioned) -> None:
    state: State = Live() if kind == "live" else store
    cells = ("x = 1\nfinal_answer(x)", "explore('a')\nx = 2", "raise ValueError", "final_answer(x)")
    with agent_of(*cells, state=state) as agent:
        agent.run("one")
        assert agent.run("two").value == 1


@pytest.mark.parametrize("level", LEVELS)
def test_two_runs_at_once_of_an_agent_without_state_are_apart(level: str) -> None:
    agent = agent_of("1", trust_level=level)
    agent.model.complete = _by_turn  # type: ignore[attr-defined]

    async def both() -> list[object]:
        found: list[object] = []

        async def one(start: int) -> None:
            found.append((await agent.arun("task", inputs={"start": start})).value)

        async with anyio.create_task_group() as tasks:
            for start in range(4):
                tasks.start_soon(one, start)
        return found

    assert sorted(anyio.run(both)) == [1, 2, 3, 4]


def _by_turn(messages: list[dict[str, str]], tools: object) -> object:
    from cellblock.models import Reply

    code = "x = start + 1" if len(messages) == 2 else "final_answer(x)"
    return Reply(text=f"```python\n{code}\n```")


def test_two_runs_at_once_of_an_agent_with_a_state_take_turns() -> None:
    agent = agent_of("import time\ntime.sleep(0.1)\nx = 1\nfinal_answer(x)", "x += 1\nfinal_answer(x)", state=Live())

    async def both() -> list[object]:
        found: list[object] = []

        async def one() -> None:
            found.append((await agent.arun("task")).value)

        async with agent, anyio.create_task_group() as tasks:
            tasks.start_soon(one)
            tasks.start_soon(one)
        return found

    assert anyio.run(both) == [1, 2]


def test_blocking_runs_from_several_threads_of_an_agent_with_a_state_take_turns() -> None:
    from concurrent.futures import ThreadPoolExecutor

    with agent_of("x = 1\nfinal_answer(x)", *["x += 1\nfinal_answer(x)"] * 3, state=Live()) as agent:
        with ThreadPoolExecutor(4) as pool:
            assert sorted(one.value for one in pool.map(agent.run, ["task"] * 4)) == [1, 2, 3, 4]


def test_an_agent_inside_a_running_loop() -> None:
    async def main() -> object:
        async with agent_of("x = 1\nfinal_answer(x)", "final_answer(x + 1)", state=Live()) as agent:
            await agent.arun("one")
            return (await agent.arun("two")).value

    assert anyio.run(main) == 2


def test_what_is_registered_after_the_session_is_open_is_refused() -> None:
    with agent_of("final_answer(1)", state=Live()) as agent:
        agent.run("one")
        with pytest.raises(CellblockError, match="nothing more can be registered"):
            agent.fn(lambda: 1, name="late")


def test_a_session_of_the_callers_is_worked_in_and_left_open() -> None:
    async def main() -> object:
        agent = agent_of("y = x + 1\nfinal_answer(y)")
        async with AsyncSession(tools=agent.tools) as session:
            await session.run("x = 20")
            result = await agent.arun("task", session=session)
            return result.value, (await session.run("y")).value

    assert anyio.run(main) == (21, 21)


def test_a_run_works_in_a_blocking_session() -> None:
    agent = agent_of("y = x + 1\nfinal_answer(y)")
    with Session(tools=agent.tools) as session:
        session.run("x = 20")
        assert agent.run("task", session=session).value == 21
        assert session.run("y").value == 21


def test_session_that_a_run_would_wait_for_is_a_type_error() -> None:
    agent = agent_of("final_answer(1)")

    async def pass_on(given: Session) -> None:
        with pytest.raises(TypeError, match="must be an AsyncSession, not Session, which blocks"):
            await agent.arun("task", session=given)
        async with AsyncSession(tools=agent.tools) as other:
            with pytest.raises(TypeError, match="an AsyncSession of another event loop: pass a Session, or await arun"):
                await anyio.to_thread.run_sync(lambda: agent.run("task", session=other))

    with Session(tools=agent.tools) as session:
        anyio.run(pass_on, session)
        with pytest.raises(TypeError, match="must be a Session or an AsyncSession, not str"):
            agent.run("task", session="one")
    with Session() as session, pytest.raises(TypeError, match=r"commit: open it with tools=agent\.tools"):
        agent.run("task", session=session)


@pytest.mark.filterwarnings("ignore:session .* was not closed:ResourceWarning")  # it was dropped
def test_session_of_an_agent_that_was_dropped_is_free(store: Versioned) -> None:
    assert agent_of("x = 1\nfinal_answer(x)", state=store, name="notes").run("one").value == 1
    with Session("notes", state=store) as session:
        assert session["x"] == 1


_ENDS_EARLY = r"""
import asyncio, gc, sys
from contextlib import aclosing
from cellblock import *

gc.disable()

def agent(name):
    return CodeAgent(ScriptedModel(["```python\nx = 1\n```"]), state=Versioned(sys.argv[1]), name=name)

async def leaves_streams(name):
    async with aclosing(agent(name).astream("one")) as told:
        async for one in told:
            if type(one).__name__ == "Step":
                break

async def leaves_runs(name):
    for one in agent(name).stream("one"):
        if type(one).__name__ == "Step":
            break

async def streams(name):
    async for _ in agent(name).astream("one"):
        pass

async def runs(name):
    for _ in agent(name).stream("one"):
        pass

async def main():
    for name, way in zip("abcd", (streams, runs, leaves_streams, leaves_runs)):
        try:
            await way(name)
        except ModelError:
            pass
        async with AsyncSession(name, state=Versioned(sys.argv[1])) as session:
            print(await session.get("x"))

asyncio.run(main())
"""


def test_session_of_an_agent_whose_stream_failed_or_was_left_is_free_without_a_collection(store: Versioned) -> None:
    program = [sys.executable, "-W", "ignore", "-c", _ENDS_EARLY, store.url]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.stdout == "1\n1\n1\n1\n", done.stderr
