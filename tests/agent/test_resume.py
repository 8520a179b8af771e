"""A run whose program was killed, gone on with: what the model is shown, what is not run again, what is kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cellblock import CodeAgent, ExecutionLimits, Live, LogError, ModelError, ScriptedModel, SessionBusy, Versioned
from cellblock.agent.past import past_run
from cellblock.agent.recording import from_plain
from cellblock.agent.replay import replay
from cellblock.models import Message
from cellblock.observe.log import read_log

pytestmark = pytest.mark.hostile

_PROGRAM = """
import sys, time
from cellblock import CodeAgent, ScriptedModel, Versioned

def fence(code):
    return "```python\\n" + code + "\\n```"

def slow(*_):
    print("waiting", flush=True)
    time.sleep(60)

def note(text: str) -> str:
    "Write a line."
    with open(sys.argv[3], "a") as file:
        file.write(text + "\\n")
    return text

replies = [fence(code) if code != "WAIT" else slow for code in eval(sys.argv[4])]
state, options = Versioned("sqlite:///" + sys.argv[1]), eval(sys.argv[5])
agent = CodeAgent(ScriptedModel(replies), tools=[note], state=state, **options)
agent.run("count", inputs={"start": [1, 2]}, log=sys.argv[2])
"""


class Killed:
    """A run in a process of its own that was killed with SIGKILL."""

    def __init__(self, directory: Path, codes: list[str], until: Callable[[Killed], bool], **options: Any) -> None:
        self.log, self.notes, self.store = directory / "run.jsonl", directory / "notes.txt", directory / "cells.db"
        self.notes.touch()
        words = [str(self.store), str(self.log), str(self.notes), repr(codes), repr(options)]
        process = subprocess.Popen([sys.executable, "-c", _PROGRAM, *words], stdout=subprocess.PIPE)
        try:
            deadline = time.monotonic() + 30
            while not until(self):
                assert process.poll() is None, "it ended by itself"
                assert time.monotonic() < deadline, self.log.read_text()
                time.sleep(0.01)
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()

    def lines(self) -> int:
        return self.log.read_bytes().count(b"\n") if self.log.exists() else 0

    def said(self, word: str) -> bool:
        return self.log.exists() and word in self.log.read_text()

    def agent(self, *codes: Any, **options: Any) -> tuple[CodeAgent, ScriptedModel]:
        """An agent as the killed one was, with other replies."""

        def note(text: str) -> str:
            """Write a line."""
            with self.notes.open("a") as file:
                file.write(text + "\n")
            return text

        model = ScriptedModel([fence(code) if isinstance(code, str) else code for code in codes])
        return CodeAgent(model, tools=[note], state=Versioned(f"sqlite:///{self.store}"), **options), model


def fence(code: str) -> str:
    return f"```python\n{code}\n```"


def shown(messages: list[Message]) -> str:
    return str(messages[-1]["content"])


def test_run_that_was_killed_between_two_steps_goes_on_with_the_next(tmp_path: Path) -> None:
    killed = Killed(
        tmp_path,
        ["total = sum(start)\nnote('one')\nmemory.variables['k'] = total", "1/0", "WAIT"],
        lambda run: run.said('"number": 2'),
    )
    agent, model = killed.agent("final_answer((total, start, memory.variables, memory.failed_approaches))")
    with agent:
        result = agent.resume(killed.log)
    assert result.value == (3, [1, 2], {"k": 3}, ["1/0 -> ZeroDivisionError: division by zero"])
    assert [step.number for step in result.steps] == [1, 2, 3]
    assert [step.ok for step in result.steps] == [True, False, True]
    asked = model.asked[0]
    assert asked[1]["content"].startswith("count\n\nThere are:\n- start: list = [1, 2]")
    assert [one["content"] for one in asked if one["role"] == "assistant"] == [
        fence("total = sum(start)\nnote('one')\nmemory.variables['k'] = total"),
        fence("1/0"),
    ]
    assert "ZeroDivisionError" in shown(asked)
    assert killed.notes.read_text() == "one\n"
    events = read_log(killed.log)
    assert [one["event"] for one in events if one["event"] in ("run", "resume", "end")] == ["run", "resume", "end"]


@pytest.mark.sampled(0)
def test_cell_that_ran_when_its_program_was_killed_is_shown_as_ended_and_not_run_again(tmp_path: Path) -> None:
    killed = Killed(
        tmp_path,
        ["x = 1", "note('begun')\nx = 2\nopen('left.txt', 'w').write('x')\nimport time; time.sleep(60)"],
        lambda run: run.notes.read_text() == "begun\n",
        name="killed",
    )
    agent, model = killed.agent("import os\nfinal_answer((x, os.listdir('.')))", name="killed")
    with agent:
        result = agent.resume(killed.log)
    assert result.value == (1, [])
    assert killed.notes.read_text() == "begun\n"
    assert [step.decision for step in result.steps] == ["", "interrupted", "answered"]
    assert "The program that runs you ended while this cell ran" in shown(model.asked[0])
    assert "The cell was not run again." in shown(model.asked[0])
    done = replay(killed.log)
    assert (done.differences, done.notes) == ([], ["step 2 ended with its program: not replayed"])


@pytest.mark.sampled(0)
def test_reply_whose_cell_had_not_begun_is_run(tmp_path: Path) -> None:
    killed = Killed(tmp_path, ["x = 1", "WAIT"], lambda run: run.said('"event": "cell"'))
    with killed.log.open("a") as file:
        reply = {"event": "reply", "step": 2, "text": fence("x += 1"), "requests": [], "finish": "stop"}
        file.write(json.dumps({**reply, "tokens": {"input": 3, "output": 1, "cached": 0, "cost": None}}) + "\n")
    agent, model = killed.agent("final_answer(x)")
    with agent:
        result = agent.resume(killed.log)
    assert (result.value, len(model.asked), result.tokens.input) == (2, 1, 3)


@pytest.mark.sampled(0)
def test_cell_that_had_ended_and_was_not_logged_is_not_run_again(tmp_path: Path) -> None:
    killed = Killed(tmp_path, ["x = 1", "note('two')\nx += 1\nx", "WAIT"], lambda run: run.lines() >= 7)
    lines = killed.log.read_text().splitlines(keepends=True)
    assert json.loads(lines[6])["event"] == "cell"
    killed.log.write_text("".join(lines[:6]) + lines[6][:40])  # the line was being written
    agent, model = killed.agent("final_answer(x)")
    with agent:
        result = agent.resume(killed.log)
    assert result.value == 2
    assert killed.notes.read_text() == "two\n"
    assert "2" in shown(model.asked[0])
    assert "was not heard: say it again" in shown(model.asked[0])
    assert [one["event"] for one in read_log(killed.log)][6:8] == ["resume", "cell"]


@pytest.mark.sampled(0)
def test_exploration_that_began_before_the_kill_is_rolled_back_after_it(tmp_path: Path) -> None:
    killed = Killed(
        tmp_path,
        ["x = 1", "explore('two')\nx = 2\nopen('two.txt', 'w').close()", "x = 3", "WAIT"],
        lambda run: run.said('"number": 3'),
    )
    agent, model = killed.agent("raise ValueError('no good')", "import os\nfinal_answer((x, os.listdir('.')))")
    with agent:
        result = agent.resume(killed.log)
    assert result.value == (1, [])
    assert result.steps[-2].decision == "rolled back"
    assert "explored and given up: two" in result.memory.observations
    assert "was undone, names and files" in shown(model.asked[1])


@pytest.mark.sampled(0)
def test_answer_that_was_to_be_verified_is_verified_after_the_kill(tmp_path: Path) -> None:
    killed = Killed(
        tmp_path, ["final_answer(6)", "WAIT"], lambda run: run.said('"event": "cell"'), verify_completion=True
    )
    agent, model = killed.agent("assert sum([1, 2, 3]) == 6", verify_completion=True)
    with agent:
        result = agent.resume(killed.log)
    assert (result.value, result.verified_by) == (6, "cell 2 checked it")
    assert "\n\nYour answer is: 6\n\n" in shown(model.asked[0])


@pytest.mark.slow
def test_run_that_was_resumed_can_be_cancelled_and_resumed_again(tmp_path: Path) -> None:
    killed = Killed(tmp_path, ["x = 1", "WAIT"], lambda run: run.said('"event": "cell"'))
    for _ in range(2):
        agent, _ = killed.agent("x += 1", KeyboardInterrupt())
        with agent, pytest.raises(KeyboardInterrupt):
            agent.resume(killed.log)
    agent, _ = killed.agent("final_answer(x)")
    with agent:
        assert agent.resume(killed.log).value == 3


@pytest.mark.slow
def test_resumed_run_counts_the_steps_of_the_first(tmp_path: Path) -> None:
    killed = Killed(tmp_path, ["x = 1", "x = 2", "WAIT"], lambda run: run.said('"number": 2'))
    agent, _ = killed.agent("x = 3", "x = 4", limits=ExecutionLimits(max_steps=3))
    with agent:
        result = agent.resume(killed.log)
    assert (result.partial, len(result.steps)) == (True, 3)


@pytest.mark.filterwarnings("ignore:session .* was not closed:ResourceWarning")  # it was dropped
def test_run_that_ended_in_an_error_is_resumed_by_another_agent_once_the_first_is_dropped(tmp_path: Path) -> None:
    store, log = Versioned(f"sqlite:///{tmp_path}/cells.db"), tmp_path / "run.jsonl"

    def begin() -> None:
        with pytest.raises(ModelError, match="the script has ended"):
            CodeAgent(ScriptedModel([fence("x = 41")]), state=store).run("count", log=log)

    begin()
    with CodeAgent(ScriptedModel([fence("final_answer(x + 1)")]), state=store) as agent:
        assert agent.resume(log).value == 42


def test_log_that_was_changed_gives_no_more_than_a_run_could_have(tmp_path: Path) -> None:
    store, log = Versioned(f"sqlite:///{tmp_path}/cells.db"), tmp_path / "run.jsonl"
    with CodeAgent(ScriptedModel([fence("x = 1")]), state=store) as agent, pytest.raises(ModelError):
        agent.run("count", log=log)
    events = read_log(log)
    *_, reply, cell, _end = events
    memory = {"observations": ["o" * 3_000] * 300, "failed_approaches": ["f"] * 300, "variables": None}
    changed = [*events[:-3], {**reply, "tokens": {**reply["tokens"], "input": 10**4_000}}, {**cell, "memory": memory}]
    log.write_text("".join(json.dumps(event) + "\n" for event in changed))
    with CodeAgent(ScriptedModel([fence("final_answer(2)")]), state=store) as agent:
        result = agent.resume(log)
    assert result.memory.observations == ["o" * 2_000 + "…"] * 200
    assert result.memory.failed_approaches == ["f"] * 200
    assert result.tokens.input == 0


def test_what_cannot_be_resumed_says_why(tmp_path: Path) -> None:
    store = Versioned(f"sqlite:///{tmp_path}/cells.db")
    log = tmp_path / "ended.jsonl"
    with CodeAgent(ScriptedModel([fence("final_answer(1)")]), state=store) as agent:
        agent.run("one", log=log)
        with pytest.raises(LogError, match="has ended: answered"):
            agent.resume(log)
        with pytest.raises(LogError, match="cannot be read: No such file"):
            agent.resume(tmp_path / "none.jsonl")
    with CodeAgent(ScriptedModel([]), state=store, name="other") as agent, pytest.raises(LogError, match="had name"):
        agent.resume(log)
    live = tmp_path / "live.jsonl"
    with CodeAgent(ScriptedModel([fence("x = 1")]), state=Live()) as agent:
        with pytest.raises(Exception, match="the script has ended"):
            agent.run("two", log=live)
        with pytest.raises(LogError, match="ended with its program"):
            agent.resume(live)


@pytest.mark.sampled(0)
def test_run_at_local_goes_on_as_well(tmp_path: Path) -> None:
    killed = Killed(
        tmp_path, ["x = note('one')", "1 / 0", "WAIT"], lambda run: run.said('"number": 2'), trust_level="local"
    )
    agent, _ = killed.agent("final_answer((x, start, memory.failed_approaches))", trust_level="local")
    with agent:
        result = agent.resume(killed.log)
    assert result.value == ("one", [1, 2], ["1 / 0 -> ZeroDivisionError: division by zero"])
    assert killed.notes.read_text() == "one\n"
    assert replay(killed.log, trust_level="local").differences == []


def test_run_that_another_program_has_open_is_not_taken_from_it(tmp_path: Path) -> None:
    log, model = tmp_path / "run.jsonl", ScriptedModel([KeyboardInterrupt()])
    with CodeAgent(model, state=Versioned(f"sqlite:///{tmp_path}/cells.db")) as agent:
        with pytest.raises(KeyboardInterrupt):
            agent.run("one", log=log)
        before = log.read_bytes()
        with CodeAgent(model, state=Versioned(f"sqlite:///{tmp_path}/cells.db")) as other, pytest.raises(SessionBusy):
            other.resume(log)
        assert log.read_bytes() == before

@pytest.mark.anyio
async def test_an_error_names_a_log_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"event": "run", "state": 3, "trust_level": 5}\n')
    with pytest.raises(LogError) as raised:
        await past_run(tmp_path / "a.jsonl")
    assert str(tmp_path / "a.jsonl") in str(raised.value)
    assert "PosixPath" not in str(raised.value)


_WRITES = """
import os, sys
from cellblock import CodeAgent, Versioned
from cellblock.observe.log import EventLog

sys.path.insert(0, sys.argv[1])
from rich_run import Scripted, note_to

write, left = EventLog.write, int(sys.argv[3])

def ends(log, event, **data):
    global left
    left -= 1
    if left < 0:
        if left % 2:
            log._file.write(b'{"event": "' + event.encode() + b'", "st')
            log._file.flush()
        os.kill(os.getpid(), 9)
    return write(log, event, **data)

EventLog.write = ends
state = Versioned("sqlite:///" + sys.argv[2] + "/cells.db")
CodeAgent(Scripted(), tools=[note_to(sys.argv[2])], state=state).run("rich", log=sys.argv[2] + "/run.jsonl")
"""

_RICH = '''
from cellblock import ScriptedModel

CODES = [
    "total = note('one')\\nuncertain('is it so?')\\nmemory.variables['k'] = 7\\nmemory.observations.append('seen')",
    "1/0",
    "explore('two')\\nx = note('two')\\nopen('two.txt', 'w').close()",
    "note('three')\\nraise ValueError('no good')",
    None,
    "import os\\n"
    "final_answer((total, 'x' in globals(), os.listdir('.'), memory.variables, memory.observations,"
    " memory.failed_approaches))",
]
AGAIN = {0: "uncertain('is it so?')", 2: "explore('two')", 5: CODES[5]}
"""What a model says that is told that something of a cell was not heard."""
GONE = {n: code.replace("note(", "(") for n, code in enumerate(CODES) if code and "note(" in code}
"""What it says that is told that a cell ended with its program, after its call of the tool."""


def fence(code):
    return "I think." if code is None else "```python\\n" + code + "\\n```"


class Scripted(ScriptedModel):
    """Answers by what it has said before; `asked` are the requests."""

    def __init__(self):
        super().__init__([self._next] * 20)

    def _next(self, messages):
        said = [one["content"] for one in messages if one["role"] == "assistant"]
        told = str(messages[-1]["content"])
        newest = next((n for n, code in enumerate(CODES) if said and said[-1] == fence(code)), None)
        if "was not heard: say it again" in told and newest in AGAIN:
            return fence(AGAIN[newest])
        if "The cell was not run again" in told:
            return fence(GONE[newest])
        done = max([-1, *(n for n, code in enumerate(CODES) if fence(code) in said)])
        return fence(CODES[done + 1])


def note_to(directory):
    def note(text: str) -> str:
        "Write a line."
        with open(directory + "/notes.txt", "a") as file:
            file.write(text + "\\n")
        return text

    return note
'''

_LINES = 19
"""Of the log of the whole run, the first two of which are before its first step."""


@pytest.mark.slow
@pytest.mark.parametrize("lines", range(2, _LINES + 1))
def test_run_that_was_killed_after_any_line_of_its_log_ends_as_the_whole_one(tmp_path: Path, lines: int) -> None:
    (tmp_path / "rich_run.py").write_text(_RICH)
    program = [sys.executable, "-c", _WRITES, str(tmp_path), str(tmp_path), str(lines)]
    assert subprocess.run(program, check=False, timeout=120).returncode == (-signal.SIGKILL if lines < _LINES else 0)
    log = tmp_path / "run.jsonl"
    told = read_log(log)
    assert len(told) == lines
    if lines < _LINES:
        rich: dict[str, Any] = {}
        exec(_RICH, rich)
        store = Versioned(f"sqlite:///{tmp_path}/cells.db")
        with CodeAgent(rich["Scripted"](), tools=[rich["note_to"](str(tmp_path))], state=store) as agent:
            agent.resume(log)
    assert sorted((tmp_path / "notes.txt").read_text().split()) == ["one", "three", "two"]
    events = read_log(log)
    assert events[-1]["reason"] == "answered"
    value = from_plain(events[-1]["value"])
    assert isinstance(value, tuple)
    total, has_x, files, variables, observed, failed = value
    began_late = lines == 9  # explore() was not heard, and is said again once its cell has done the rest
    assert (total, has_x, files, variables) == ("one", began_late, ["two.txt"] * began_late, {"k": 7})
    assert sorted(observed) == ["explore: two", "explored and given up: two", "seen", "uncertain: is it so?"]
    assert [one.split(" -> ")[1] for one in failed] == ["ZeroDivisionError: division by zero", "ValueError: no good"]


def test_answer_that_the_log_could_not_keep_is_asked_for_again(tmp_path: Path) -> None:
    log, store = tmp_path / "run.jsonl", Versioned(f"sqlite:///{tmp_path}/cells.db")
    with CodeAgent(ScriptedModel([fence("final_answer('a' * 3_000_000)")]), state=store) as agent:
        agent.run("one", log=log)
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))  # killed before its end was logged
    model = ScriptedModel([fence("final_answer(2)")])
    with CodeAgent(model, state=store) as agent:
        result = agent.resume(log)
    assert (result.value, [step.decision for step in result.steps]) == (2, ["", "answered"])
    assert "call final_answer again" in shown(model.asked[0])
