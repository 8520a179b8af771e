"""smolagents' own `CodeAgent`, with a model that says what a script says, over sessions behind the walls."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("smolagents", exc_type=ImportError)

from rich.console import Console
from smolagents import CodeAgent, LogLevel, Model, PythonInterpreterTool, Tool, tool
from smolagents.local_python_executor import InterpreterError
from smolagents.models import ChatMessage, MessageRole
from smolagents.monitoring import AgentLogger

from cellblock import ExecutionLimits
from cellblock.integrations.smolagents import CellblockExecutor


class Script(Model):
    """Says these code blocks, one a step, and keeps what it was told."""

    def __init__(self, *blocks: str) -> None:
        super().__init__(model_id="script")
        self._blocks = list(blocks)
        self.seen: list[str] = []

    def generate(self, messages: list[ChatMessage], **_: Any) -> ChatMessage:
        parts = [part for message in messages[2:] for part in message.content or () if isinstance(part, dict)]
        self.seen.append("\n".join(part["text"] for part in parts))
        block = self._blocks.pop(0)
        return ChatMessage(role=MessageRole.ASSISTANT, content=f"Thought: as planned.\n<code>\n{block}\n</code>")


@tool
def web_search(query: str) -> str:
    """Searches the web.

    Args:
        query: what for
    """
    return {"length of Pont des Arts": "155 metres", "speed of a leopard": "16 m/s"}[query]


@tool
def model_download_tool(task: str) -> dict:
    """The most downloaded model of a task.

    Args:
        task: the task
    """
    return {"task": task, "model": "ByteDance/AnimateDiff-Lightning"}


class Counter(Tool):
    name = "count_letters"
    description = "Counts letters."
    inputs = {"text": {"type": "string", "description": "the text"}}  # noqa: RUF012
    output_type = "integer"

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, text: str) -> int:
        self.calls += 1
        return sum(map(str.isalpha, text))


@pytest.fixture
def executor() -> Iterator[CellblockExecutor]:
    with CellblockExecutor(limits=ExecutionLimits(timeout_seconds=20)) as executor:
        yield executor


def _agent(executor: CellblockExecutor, model: Script, *tools: Tool, **options: Any) -> CodeAgent:
    return CodeAgent(tools=[*tools], model=model, executor=executor, verbosity_level=LogLevel.OFF, **options)


def test_the_leopard_on_the_bridge(executor: CellblockExecutor) -> None:
    model = Script(
        'bridge = web_search(query="length of Pont des Arts")\nspeed = web_search("speed of a leopard")\n'
        "print(bridge, speed)",
        "import re\nlength, pace = (float(re.match(r'[\\d.]+', text)[0]) for text in (bridge, speed))\nlength / pace",
        "final_answer(round(length / pace, 1))",
    )
    answer = _agent(executor, model, web_search).run("How many seconds does a leopard need over Pont des Arts?")
    assert answer == 9.7
    assert "155 metres 16 m/s" in model.seen[1]
    assert "Last output from code snippet:\n9.6875" in model.seen[2]


def test_a_mistake_is_told_and_names_live_on(executor: CellblockExecutor) -> None:
    model = Script(
        "rows = [3, 1, 2]\nprint('before')\nrows.missing()",
        "rows.sort()\nfinal_answer(rows)",
    )
    agent = _agent(executor, model)
    assert agent.run("sort") == [1, 2, 3]
    assert "AttributeError: 'list' object has no attribute 'missing'" in model.seen[1]
    assert "before" in model.seen[1]


def test_code_that_breaks_out_reaches_nothing_and_the_agent_goes_on(executor: CellblockExecutor) -> None:
    model = Script(
        "import os\nx = 1",
        "open('/etc/shadow').read()",
        "import urllib.request\nurllib.request.urlopen('http://1.1.1.1')",
        "x = 2\nos._exit(1)",
        "final_answer(x)",
    )
    assert _agent(executor, model, max_steps=10).run("break out") == 1
    told = model.seen[-1]
    for text in ("No such file or directory: '/etc/shadow'", "Network is unreachable", "as it was before this cell"):
        assert text in told


def test_tools_are_called_on_the_host_and_keep_their_state(executor: CellblockExecutor) -> None:
    counter = Counter()
    model = Script("final_answer(sum(count_letters(text=word) for word in ('ab', 'c1')))")
    assert _agent(executor, model, counter).run("count") == 3
    assert counter.calls == 2


def test_what_a_tool_raises_is_the_codes_to_handle(executor: CellblockExecutor) -> None:
    code = "try:\n    web_search('nothing')\nexcept KeyError as error:\n    final_answer(f'no {error.args[0]}')"
    assert _agent(executor, Script(code), web_search).run("search") == "no nothing"


def test_a_final_answer_ends_the_step_where_it_stands(executor: CellblockExecutor) -> None:
    code = "try:\n    final_answer('first')\nexcept Exception:\n    final_answer('caught')\nfinal_answer('second')"
    assert _agent(executor, Script(code)).run("answer") == "first"


CAUGHT = "x = 1\ntry: final_answer('draft')\nexcept: pass\nx = 2\n"


@pytest.mark.sampled(0)
def test_an_answer_that_the_code_catches_counts_unless_a_limit_or_a_crash_ends_the_step() -> None:
    with CellblockExecutor(limits=ExecutionLimits(timeout_seconds=3)) as executor:
        executor.send_tools({})
        for end in ("", "missing", "raise ValueError"):
            output = executor(CAUGHT + end)
            assert (output.output, output.is_final_answer) == ("draft", True)
        for end, said in (
            ("import os; os._exit(1)", "as it was before this cell"),
            ("while True: pass", "longer than 3 s"),
            ("held = b'x' * 10**10", "memory"),
        ):
            with pytest.raises(InterpreterError, match=said):
                executor(CAUGHT + end)
        assert executor("x").is_final_answer is False


def test_the_answer_of_a_thread_counts_for_the_step_that_waits_for_it_alone(executor: CellblockExecutor) -> None:
    executor.send_tools({})
    executor("from concurrent.futures import ThreadPoolExecutor\nimport threading\npool = ThreadPoolExecutor(1)")
    output = executor("pool.submit(final_answer, 'waited for').result()")
    assert (output.output, output.is_final_answer) == ("waited for", True)
    executor("go = threading.Event()\nlate = pool.submit(lambda: go.wait() and final_answer('late'))")
    output = executor("go.set()\n[type(late.exception()).__name__, 'mine']")
    assert (output.output, output.is_final_answer) == (["FinalAnswer", "mine"], False)
    output = executor(
        "go.clear()\nlate = pool.submit(lambda: go.wait() and final_answer('late'))\n"
        "try: final_answer('mine')\nfinally:\n    go.set()\n    late.exception()"
    )
    assert (output.output, output.is_final_answer) == ("mine", True)


def test_code_answers_at_the_level_local_too_where_no_threads_are_granted() -> None:
    with CellblockExecutor(trust_level="local") as executor:
        executor.send_tools({"web_search": web_search})
        for code, answer in (
            ("final_answer(web_search('speed of a leopard'))", "16 m/s"),
            ("def f():\n    final_answer(answer='of a function')\nf()\nmissing", "of a function"),
            ("async def f(): final_answer('of a coroutine')\nawait f()", "of a coroutine"),
            ("try:\n    final_answer('caught')\nexcept BaseException: pass\n1", "caught"),
            ("try:\n    final_answer('caught')\nexcept BaseException: pass\nmissing", "caught"),
        ):
            output = executor(code)
            assert (output.output, output.is_final_answer) == (answer, True)
        output = executor("print('said')\n3 + 4")
        assert (output.output, output.logs, output.is_final_answer) == (7, "said\n", False)
        with pytest.raises(InterpreterError, match="threading is not granted"):
            executor("import threading")


def test_an_own_final_answer_tool_is_asked(executor: CellblockExecutor) -> None:
    class Shout(Tool):
        name = "final_answer"
        description = "Shouts."
        inputs = {"answer": {"type": "any", "description": "the answer"}}  # noqa: RUF012
        output_type = "any"

        def forward(self, answer: Any) -> Any:
            return str(answer).upper()

    assert _agent(executor, Script("final_answer(answer='loud')"), Shout()).run("shout") == "LOUD"


def test_arguments_of_a_run_are_names_of_the_code(executor: CellblockExecutor) -> None:
    model = Script("final_answer([len(table), table['a']])")
    assert _agent(executor, model).run("look", additional_args={"table": {"a": 1, "b": 2}}) == [2, 1]


def test_the_next_run_has_its_own_tools_and_the_names_of_the_first(executor: CellblockExecutor) -> None:
    model = Script("kept = model_download_tool('text-to-video')['model']\nfinal_answer(1)", "final_answer(kept)")
    agent = _agent(executor, model, model_download_tool)
    agent.run("first")
    assert agent.run("second", reset=False) == "ByteDance/AnimateDiff-Lightning"
    executor.send_tools({})
    with pytest.raises(InterpreterError, match="there is no tool 'model_download_tool' any more"):
        executor("model_download_tool('x')")


def test_a_managed_agent_is_called_as_a_tool(executor: CellblockExecutor) -> None:
    with CellblockExecutor() as inner:
        helper = _agent(
            inner, Script("final_answer('the moon')"), name="helper", description="knows", provide_run_summary=False
        )
        model = Script("said = helper(task='what shines?')\nfinal_answer('the moon' in said)")
        assert _agent(executor, model, managed_agents=[helper]).run("ask") is True


def test_what_is_not_portable_is_shown_and_cannot_be_the_answer(executor: CellblockExecutor) -> None:
    executor.send_tools({})
    output = executor("print('seen')\nobject()")
    assert output.logs == "seen\n"
    assert output.output.startswith("<object object at ")
    assert output.is_final_answer is False
    with pytest.raises(InterpreterError, match="cannot"):
        executor("final_answer(object())")


def test_a_tool_of_theirs_that_runs_code_runs_on_the_host_as_all_tools_do(executor: CellblockExecutor) -> None:
    model = Script("final_answer(python_interpreter('6 * 7'))")
    assert "42" in _agent(executor, model, PythonInterpreterTool()).run("interpret")


def test_names_that_code_could_not_call_are_refused(executor: CellblockExecutor) -> None:
    with pytest.raises(ValueError, match="code could not call it"):
        executor.send_tools({"a'); import os; ('": print})


LONG = {
    "an integer": "10**5000",
    "in a list": "[10**5000, {10**5000: 1}]",
    "half of a character": "'a\\ud800'",
    "in a dict": "{'\\ud800': ['\\udfff']}",
    "no value": "type('\\ud800', (), {'__repr__': lambda self: '\\ud800'})()",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("value", LONG.values(), ids=LONG)
def test_an_agent_writes_down_any_value_that_its_code_gives(executor: CellblockExecutor, value: str) -> None:
    model = Script(f"print('\\ud800')\n{value}", f"raise KeyError({value})", "final_answer(1)")
    assert _agent(executor, model).run("ask") == 1
    for seen in model.seen:
        seen.encode()
    executor.send_tools({})
    for source in (value, f"try: final_answer({value})\nfinally: pass"):
        try:
            output = executor(source)
        except InterpreterError as error:
            str(error).encode()
        else:
            str(output.output).encode()
            output.logs.encode()


@pytest.mark.threat("W8")
def test_nothing_that_a_cell_shows_drives_the_terminal_of_an_agent(executor: CellblockExecutor) -> None:
    sequences = "\x1b]0;title\x07\x1b[2J\x1b]52;c;eA==\x07\x9b31m"
    model = Script(
        f"print('50 %\\rprinted{{}}'.format({sequences!r}))",
        f"'shown' + {sequences!r}",
        f"from pathlib import PurePosixPath\nPurePosixPath('path' + {sequences!r})",
        f"raise ValueError('raised' + {sequences!r})",
        f"final_answer('answered' + {sequences!r})",
    )
    terminal = io.StringIO()
    agent = CodeAgent(
        tools=[],
        model=model,
        executor=executor,
        logger=AgentLogger(LogLevel.INFO, Console(file=terminal, force_terminal=True, color_system=None)),
    )
    assert agent.run("show") == "answered"
    logged = terminal.getvalue()
    for shown in ("printed", "shown", "path", "raised", "answered"):
        assert shown in logged
    for sequence in ("\x1b]", "\x1b[2J", "\x9b", "50 %\r"):
        assert sequence not in logged


@pytest.mark.sampled(0)
def test_of_many_answers_of_a_step_the_newest_is_held_and_counted(executor: CellblockExecutor) -> None:
    executor.send_tools({})
    account = executor.session._session._account
    held: list[int] = []
    executor.send_tools({"look": lambda: held.append(account.held)})
    step = "data = bytes(2**22)\nfor _ in range(20):\n    try: final_answer(data)\n    except: look()"
    output = executor(step)
    assert (len(output.output), output.is_final_answer) == (2**22, True)
    assert min(held[1:]) >= 2**22
    assert max(held) < 4 * 2**22
    assert account.held < 2**20
