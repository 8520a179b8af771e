"""W7: a cell that would keep its host waiting: the event loop goes on, and the cell meets its time limit."""

from __future__ import annotations

import asyncio
import gc
import json
import math
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from cellblock import (
    AsyncSession,
    Cell,
    CellState,
    CodeAgent,
    ExecutionLimits,
    ScriptedModel,
    Session,
    Versioned,
)
from cellblock.errors import CellblockError, LogError
from cellblock.models import connect
from cellblock.models.assembling import Assembly
from cellblock.models.retrying import Patience, persist
from cellblock.session.hostloop import our_loop
from cellblock_attacks.attack import prelude
from cellblock_attacks.checkpoints import _END
from cellblock_attacks.protocol import _FORGE, _MARKS

pytestmark = [pytest.mark.alone, pytest.mark.hostile, pytest.mark.threat("W7"), pytest.mark.threat("W11")]

_BRIEF = ExecutionLimits(timeout_seconds=1)
_STANDSTILL = 2.0
"""Seconds: an idle loop of this machine waits some milliseconds, a loop that is held waits for ever."""

_WALKED = 900_000
"""Entries. A turn of the loop may take as much of its own processor time as a walk of them: on an idle machine 0.05 s,
and longer where others have the caches. Processor time says whose work it is; a walk of a large value takes more.
"""

_HELD = """
shown = dict(DISPLAY, data={"a/b": [[]] * 5000})
(packet,) = packets(Frame(json.dumps(shown, separators=(",", ":")).encode()))
os.write(1, mark(b"M", 2**63) + b"text that waits")
while True: wire.send(packet)
"""

_LINGER = """
import array, socket, struct
listener = socket.create_server(("127.0.0.1", 0))
a = socket.create_connection(listener.getsockname()); b, _ = listener.accept(); listener.close()
a.setblocking(False)
try:
    while True: a.send(b"x" * 65536)
except BlockingIOError: pass
a.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 20))
where.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [a.fileno(), b.fileno()]))])
os.close(b.detach()); os.close(a.detach()); where.close()
"""


@pytest.fixture(autouse=True)
def _older_objects_frozen() -> None:
    """The collector holds every thread: objects of the tests before are none that a turn may have to walk."""
    gc.collect()
    gc.freeze()


async def _longest_wait(*cells: str, limits: ExecutionLimits) -> tuple[list[Cell], float]:
    """The cells, and for how long another task of the same loop waited for its turn at most, in seconds."""
    longest = 0.0

    async def beside() -> None:
        nonlocal longest
        while True:
            began = time.monotonic()
            await anyio.sleep(0.01)
            longest = max(longest, time.monotonic() - began)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(beside)
        async with AsyncSession(limits=limits) as session:
            done = [await session.run(cell) for cell in cells]
        await anyio.sleep(0.05)
        tasks.cancel_scope.cancel()
    return done, longest


@pytest.mark.sampled(0)
def test_displays_behind_a_mark_that_no_event_follows_leave_the_loop_its_turns() -> None:
    source = prelude({}) + _FORGE + _MARKS + _HELD
    (cell,), longest = anyio.run(lambda: _longest_wait(source, limits=_BRIEF))
    assert cell.state is CellState.TIMEOUT
    assert longest < _STANDSTILL


@pytest.mark.sampled(1)
@pytest.mark.parametrize("where", ["where = end", "where = socket.socket(fileno=os.dup(channel()))"])
def test_socket_that_lingers_is_closed_at_once_by_its_host(where: str) -> None:
    source = f"{prelude({})}{_END}\n{where}\n{_LINGER}"
    (_, after), longest = anyio.run(lambda: _longest_wait(source, "2", limits=ExecutionLimits()))
    assert after.ok
    assert longest < _STANDSTILL


_DRAINED = """
import os, time
end = time.monotonic() + 1
if (child := os.fork()) == 0:
    pipe = os.open("/proc/self/fd/1", os.O_RDONLY | os.O_NONBLOCK)
    while time.monotonic() < end:
        try: os.read(pipe, 1 << 18)
        except BlockingIOError: pass
    os._exit(0)
block = b"x" * 65536
while time.monotonic() < end: os.write(1, block)
os.waitpid(child, 0)
"done"
"""


@pytest.mark.sampled(0)
def test_cell_that_takes_its_text_back_is_a_cell_like_others() -> None:
    with Session() as session:
        session.run("kept = 1")
        assert [session.run(_DRAINED).value for _ in range(2)] == ["done", "done"]
        assert session.run("kept").value == 1


def echo(value: object) -> object:
    return value


async def echo_later(value: object) -> object:
    return value


def large(entries: int) -> dict[str, list[int]]:
    return {str(number): [number] for number in range(entries)}


_LARGE_CALLS = (
    "len(echo(list(range(1_000_000))))",
    "len(echo(['ab'] * 1_000_000))",
    "len(echo([{str(i): [i]} for i in range(30_000)]))",
    "len(await echo_later([{str(i): [i]} for i in range(30_000)]))",
    "len(large(60_000))",
)


async def _worst_turn(work: Callable[[], Awaitable[object]]) -> float:
    """The processor time that the loop's thread took at most between two turns of another task, in seconds."""
    longest = 0.0

    async def beside() -> None:
        nonlocal longest
        while True:
            began = time.thread_time()
            await anyio.sleep(0.005)
            longest = max(longest, time.thread_time() - began)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(beside)
        await anyio.sleep(0.01)  # the first turn of the work counts, and the last one
        await work()
        await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    return longest


async def _allowed_turn() -> float:
    """The processor time that a turn may take here and now, in seconds."""

    async def walk() -> None:
        sum(isinstance(one, int) and one < 1 for one in [0] * _WALKED)

    return max([await _worst_turn(walk) for _ in range(3)])


async def _shortest(work: Callable[[], Awaitable[object]], allowed: float) -> float:
    """The shortest worst turn of three times; where one is allowed, of no more."""
    shortest = math.inf
    for _ in range(3):
        shortest = min(shortest, await _worst_turn(work))
        if shortest < allowed:
            break
    return shortest


@pytest.mark.sampled(1)
@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("source", _LARGE_CALLS)
def test_large_arguments_and_answers_of_a_host_function_leave_the_loop_its_turns(
    source: str, versioned: bool, tmp_path: Path
) -> None:
    async def turns() -> tuple[float, float]:
        tools = [echo, echo_later, large]
        stored = AsyncSession("large", state=Versioned(f"sqlite:///{tmp_path}/cells.db"), tools=tools)
        async with stored if versioned else AsyncSession(tools=tools) as session:

            async def call() -> None:
                cell = await session.run(source)
                assert cell.ok or "too large to be logged" in cell.text

            await session.run("1")
            allowed = await _allowed_turn()
            return allowed, await _shortest(call, allowed)

    allowed, longest = anyio.run(turns)
    assert longest < allowed


@contextmanager
def _collector_seen() -> Iterator[list[float]]:
    """The processor time of each run of the collector, in seconds."""
    runs: list[float] = []
    began = 0.0

    def note(phase: str, _: dict[str, int]) -> None:
        nonlocal began
        if phase == "start":
            began = time.thread_time()
        else:
            runs.append(time.thread_time() - began)

    gc.callbacks.append(note)
    try:
        yield runs
    finally:
        gc.callbacks.remove(note)


_MANY_FILES = """
import os
below = "/".join(["d" * 240] * 4)
os.makedirs(below)
for n in range(20_000): open(f"{below}/{n}", "w").close()
"""


@pytest.mark.sampled(0)
@pytest.mark.anyio
async def test_lists_of_many_files_names_and_values_leave_the_loop_its_turns() -> None:
    async with AsyncSession(limits=ExecutionLimits(timeout_seconds=60)) as session:
        assert (await session.run(_MANY_FILES)).ok
        assert (await session.run("for n in range(9_000): globals()[f'name_{n}'] = [n] * 40")).ok
        assert (await session.run("rows = [{str(n): [n]} for n in range(30_000)]")).ok
        read = partial(session.aside, "rows", reads=True)
        tools = session.as_tools()
        allowed = await _allowed_turn()
        for work in (partial(tools.call, "list_files", ""), session.names, partial(session.get, "rows"), read):
            assert await _shortest(work, allowed) < allowed


_LARGE = "open('large', 'w').write('é\\n' * 6_900_000 + 'x')"
_EDIT = {"file_path": "large", "old_string": "é\nx", "new_string": "é\né\nx"}


@pytest.mark.sampled(0)
def test_edit_of_a_large_file_by_a_graph_leaves_the_loop_of_all_sessions_its_turns(tmp_path: Path) -> None:
    graphs = pytest.importorskip("cellblock.integrations.langgraph")
    threads = graphs.Threads(f"sqlite:///{tmp_path}/cells.db", limits=ExecutionLimits(timeout_seconds=60))
    tools = {one.name: one for one in graphs.create_sandbox_tools(threads, thread_id="large")}

    async def edit() -> None:
        assert await tools["file_edit"].ainvoke(_EDIT) == "Edited large."

    async def turns() -> tuple[float, float]:
        allowed = await _allowed_turn()
        return allowed, await _shortest(edit, allowed)

    try:
        tools["python_run"].invoke({"code": _LARGE})
        allowed, longest = asyncio.run_coroutine_threadsafe(turns(), our_loop()).result()
    finally:
        threads.close()
    assert longest < allowed


_UNENDED = "```python\n\\'\'\'\n```\n" * 39 + "\n" * 140_000
"""A message with blocks of Python whose texts nothing ends."""
_NUMBERS = '{"code": "1", "more": [' + "1," * 400_000 + "1]}"
"""Arguments of a call."""
_READ = json.loads(_NUMBERS)


async def _arguments(given: str | dict[str, Any], _: str) -> None:
    async with AsyncSession() as session:
        answer = await session.as_tools().call("run_python", given)
    assert answer.startswith("error: the arguments do not fit: more: Extra inputs are not permitted")


async def _reply_of_an_agent(_: str) -> None:
    result = await CodeAgent(ScriptedModel([_UNENDED, "```python\nfinal_answer(1)\n```"])).arun("go")
    assert (result.value, len(result.steps)) == (1, 2)


async def _calls_of_an_endpoint(_: str) -> None:
    call = {"id": "1", "function": {"name": "run", "arguments": _NUMBERS}}

    async def answer(assembly: Assembly) -> None:
        assembly.add_whole({"choices": [{"message": {"tool_calls": [call]}}]})

    assert (await persist(answer, Patience())).requests[0].raw == _NUMBERS


async def _calls_of_a_chat_model(_: str) -> None:
    pytest.importorskip("langchain_core")
    from scripted_chat import call, says, scripted

    asked = scripted(says("", call("run", **_READ)))
    assert (await connect(asked).reply([], [])).requests[0].name == "run"


async def _message_in_a_graph(agent: str, url: str) -> None:
    graphs = pytest.importorskip("cellblock.integrations.langgraph")
    from langchain.agents import create_agent
    from scripted_chat import call, says, scripted, told

    threads = graphs.Threads(url)
    model = scripted(says(_UNENDED, call("python_run_prepared", file_path="a.py")))
    try:
        if agent == "of LangChain":
            graph = create_agent(model, middleware=[graphs.SandboxMiddleware(threads)])
        else:
            graph = graphs.create_agent_graph(model, store=threads, checkpointer=False)
        state = await graph.ainvoke({"messages": [("user", "go")]}, {"configurable": {"thread_id": "t"}})
    finally:
        await anyio.to_thread.run_sync(threads.close)
    assert "SyntaxError" in told(state)[0]


_DOORS: dict[str, Callable[[str], Awaitable[None]]] = {
    "arguments that are text": partial(_arguments, _NUMBERS),
    "arguments that were read": partial(_arguments, _READ),
    "a reply of an agent": _reply_of_an_agent,
    "calls of an endpoint": _calls_of_an_endpoint,
    "calls of a chat model": _calls_of_a_chat_model,
    "a message in a graph": partial(_message_in_a_graph, "of ours"),
    "a message in an agent of LangChain": partial(_message_in_a_graph, "of LangChain"),
}


@pytest.mark.sampled(0)
@pytest.mark.parametrize("door", _DOORS)
def test_text_of_a_model_is_read_without_a_long_turn_of_the_loop(door: str, tmp_path: Path) -> None:
    work = partial(_DOORS[door], f"sqlite:///{tmp_path}/cells.db")

    async def turns() -> tuple[float, float]:
        await work()  # and what is imported for it
        allowed = await _allowed_turn()
        return allowed, await _shortest(work, allowed)

    allowed, longest = anyio.run(turns)
    assert longest < allowed


@pytest.mark.sampled(0)
def test_state_of_many_names_is_saved_and_woken_without_a_long_turn_of_the_loop(tmp_path: Path) -> None:
    async def turns() -> tuple[float, float, float]:
        state = Versioned(f"sqlite:///{tmp_path}/cells.db")
        async with AsyncSession("many", state=state, limits=ExecutionLimits(timeout_seconds=60)) as session:

            async def saved_and_woken() -> None:
                assert (await session.run("name_1 = [1, *name_1]")).ok
                await session.flush()
                await session.hibernate()
                assert (await session.run("name_7")).value == [7]

            assert (await session.run("for n in range(8_000): globals()[f'name_{n}'] = [n]")).ok
            await saved_and_woken()  # and what is imported for it
            allowed = await _allowed_turn()
            with _collector_seen() as runs:
                longest = await _shortest(saved_and_woken, allowed)
            return allowed, longest, max(runs, default=0.0)  # the collector need not have come

    allowed, longest, collected = anyio.run(turns)
    assert longest < allowed
    assert collected < allowed


def _lengthened(log: Path, steps: int, calls: int) -> None:
    """A log whose step comes so often, and calls a tool so often, as no run of it did."""
    run, begin, reply, cell, *_ = (json.loads(row) for row in log.read_text().splitlines())
    rows = [run, begin]
    for number in range(1, steps + 1):
        rows += [{**reply, "step": number}, {**cell, "step": number, "number": number}]
    rows += [{"event": "tool", "step": 1, "name": "f", "arguments": [[n], {}], "answer": n} for n in range(calls)]
    log.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


@pytest.mark.sampled(0)
@pytest.mark.parametrize("how", ["replayed", "refused", "resumed"])
def test_log_that_somebody_has_sent_leaves_the_loop_its_turns(how: str, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"

    def agent() -> CodeAgent:
        return CodeAgent(ScriptedModel(["```python\n1\n```"]), state=Versioned(f"sqlite:///{tmp_path}/cells.db"))

    async def work() -> None:
        async with agent() as one:
            if how == "resumed":
                assert (await one.aresume(log)).partial
            elif how == "replayed":
                assert not (await one.areplay(log)).same
            else:
                with pytest.raises(LogError, match="damaged"):
                    await one.areplay(log)

    async def turns() -> tuple[float, float]:
        allowed, found = await _allowed_turn(), []
        text = log.read_text() + ('{"event": "cell", "step": -1}\n' if how == "refused" else "")
        for _ in range(3):
            log.write_text(text)
            found.append(await _worst_turn(work))
        return allowed, min(found)

    with pytest.raises(CellblockError, match="the script has ended"), agent() as one:
        one.run("one", log=log)
    _lengthened(log, 4_000, 8_000)
    allowed, longest = anyio.run(turns)
    assert longest < allowed


_NOTED = "memory.variables = {f'n{i}': [1] * 100_000 for i in range(30)}\nfinal_answer(1)"


@pytest.mark.sampled(0)
def test_memory_of_an_agent_that_holds_much_leaves_the_loop_its_turns() -> None:
    async def work() -> None:
        assert len((await CodeAgent(ScriptedModel([f"```python\n{_NOTED}\n```"])).arun("one")).memory.variables) == 30

    async def turns() -> tuple[float, float]:
        allowed = await _allowed_turn()
        return allowed, await _shortest(work, allowed)

    allowed, longest = anyio.run(turns)
    assert longest < allowed
