"""The mark of a private session: said from inside, passed on between sessions and agents, shown, never taken back."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import weakref
from pathlib import Path

import pytest

from cellblock import (
    AsyncSession,
    CodeAgent,
    ExecutionLimits,
    Policy,
    ReactAgent,
    ScriptedModel,
    Session,
    TaskFailed,
    Versioned,
    tool,
)
from cellblock.cli import main
from cellblock.models import Reply, ToolRequest

pytestmark = pytest.mark.threat("W3")
_LIMITS = ExecutionLimits(timeout_seconds=20)
_SENT: list[str] = []


@tool(outward=True)
def mail(text: str) -> str:
    """Send it."""
    _SENT.append(text)
    return f"sent {text}"


@tool(private=True)
def salaries() -> int:
    """What people earn."""
    return 41


@pytest.fixture(autouse=True)
def sent() -> list[str]:
    _SENT.clear()
    return _SENT


def _says(*cells: str) -> ScriptedModel:
    return ScriptedModel([f"```python\n{cell}\n```" for cell in cells])


def _refused(call: str) -> str:
    return f"try:\n    said = {call}\nexcept PermissionError as error:\n    said = 'refused'"


# ------------------------------------------------------------------------------- from inside


@pytest.mark.parametrize("level", ["isolated", "local", "guarded"])
def test_a_cell_marks_its_session_by_its_own_judgement(level: str, sent: list[str]) -> None:
    options = {
        "isolated": {},
        "local": {"trust_level": "local", "policy": Policy()},
        "guarded": {"policy": Policy()},
    }[level]
    with Session(tools=[mail], limits=_LIMITS, **options) as session:  # type: ignore[arg-type]
        assert session.run("mail('a')\nmark_private('it has names')").error is None
        assert session.private == "it has names"
        error = session.run("mail('b')").error
        assert error is not None
        assert error.hint.startswith("the session is private since cell 1 (it has names); ")
    assert sent == ["a"]


TAKE_BACK = [
    "mark_private('')",
    "mark_private(None)",
    "mark_private(reason='')",
    "mark_private(False)",
    "mark_private('another')",
    "mark_private('x' * 10**6)",
    "global mark_private\nmark_private = lambda reason: None",
    "import builtins\ndel builtins.mark_private",
    "mark_private.__code__ = (lambda *a, **k: None).__code__",
    "mail.__globals__.clear()",
    "next(one for one in (mark_private.__closure__ or ()))",
    "mark_public('x')",
    "unmark_private('x')",
    "import os\nos._exit(1)",
]


def test_no_cell_takes_the_mark_back(sent: list[str]) -> None:
    with Session(tools=[mail], limits=_LIMITS) as session:
        session.run("mark_private('payroll')")
        for source in TAKE_BACK:
            session.run(source)
            session.run(_refused("mail('secret')"))
            assert session.private == "payroll"
        session.undo(3)
        session.run(_refused("mail('secret')"))
        with session.branch() as other:
            other.run(_refused("mail('secret')"))
            assert other.private == "payroll"
    assert sent == []


def test_an_undo_to_before_the_cell_that_marked_leaves_the_mark(sent: list[str]) -> None:
    with Session(tools=[mail], limits=_LIMITS) as session:
        session.run("x = 1")
        session.run("mark_private('payroll')")
        session.undo()
        assert session.run(f"{_refused('mail(str(x))')}\nsaid").value == "refused"
    assert sent == []


def test_what_is_said_of_it_inside_is_a_plain_line() -> None:
    with Session(tools=[mail], limits=_LIMITS) as session:
        session.run("mark_private('a\\x1b[2J\\r\\nb\\u202e\\ud800' + 'c' * 1000)")
        assert session.private.startswith("a [2J b c")
        assert session.private.isprintable()
        assert len(session.private) == 200


def test_it_is_offered_where_it_closes_anything() -> None:
    with Session(limits=_LIMITS, tools=[salaries]) as session:
        assert session.run("mark_private('x')").error.type == "NameError"  # type: ignore[union-attr]
    with Session(limits=_LIMITS, network=["shop.test:80"]) as session:
        assert session.run("mark_private('x')").error is None
        assert session.private == "x"
        assert "mark_private" not in session.names()


def test_a_function_of_that_name_stays_the_caller_s() -> None:
    def mark_private(reason: str) -> str:
        return "mine"

    with Session(limits=_LIMITS, tools=[mark_private], network=["shop.test:80"]) as session:
        assert session.run("mark_private('x')").value == "mine"
        assert session.private == ""


def test_a_model_is_told_of_it_where_it_closes_anything() -> None:
    def system(**options: object) -> str:
        model = _says("final_answer(1)")
        CodeAgent(model, **options).run("say it")  # type: ignore[arg-type]
        return str(model.asked[0][0]["content"])

    assert "mark_private" not in system()
    assert "mark_private" not in system(tools=[salaries])
    assert "def mark_private(reason):" in system(tools=[mail])
    told = system(network=["pypi.org:443"])
    assert "def mark_private(reason):" in told
    assert "of the network there is only pypi.org:443, by HTTP(S)" in told
    assert "pip, run with subprocess" in told
    assert "there is no network, and files are its own" in system()


# ---------------------------------------------------------------------------- from one to another


def test_an_agent_s_own_judgement_ends_what_it_can_send(sent: list[str]) -> None:
    agent = CodeAgent(
        _says("mark_private('names in it')", _refused("mail('secret')"), "final_answer(said)"), tools=[mail]
    )
    result = agent.run("task")
    assert (result.value, sent) == ("refused", [])
    assert result.notebook.private == "names in it"


@pytest.mark.parametrize("as_tool", [True, False])
def test_an_agent_that_is_asked_from_private_data_is_private(as_tool: bool, sent: list[str]) -> None:
    asked = CodeAgent(_says(_refused("mail('secret')"), "final_answer(said)"), tools=[mail])

    def ask(task: str) -> object:
        return asked.run(task).value

    asking = asked.as_tool(name="ask") if as_tool else ask
    with Session(tools=[asking, salaries], limits=_LIMITS) as session:
        session.run("pay = salaries()")
        called = "await ask" if as_tool else "ask"
        assert session.run(f"{called}(f'mail {{pay}}')").value == "refused"
    assert sent == []


def test_an_agent_that_was_private_makes_the_one_that_asked_private(sent: list[str]) -> None:
    asked = CodeAgent(_says("final_answer(salaries())"), tools=[salaries])
    says = _says("pay = await ask('what do they earn')", _refused("mail(str(pay))"), "final_answer(said)")
    result = CodeAgent(says, tools=[asked.as_tool(name="ask"), mail]).run("task")
    assert (result.value, sent) == ("refused", [])
    assert result.notebook.private == "was answered from private data: salaries() was called"


def test_one_that_failed_has_said_why_from_private_data(sent: list[str]) -> None:
    asked = CodeAgent(_says("task_fail(f'they earn {salaries()}')"), tools=[salaries])
    says = _says(
        "try:\n    await ask('x')\nexcept Exception as error:\n    why = str(error)",
        _refused("mail(why)"),
        "final_answer(said)",
    )
    assert CodeAgent(says, tools=[asked.as_tool(name="ask"), mail]).run("task").value == "refused"
    assert sent == []


def test_on_a_branch_of_a_private_session_it_is_private(sent: list[str]) -> None:
    asked = CodeAgent(_says(_refused("mail(str(pay))"), "final_answer(said)"), tools=[mail])
    says = _says("pay = salaries()", "answer = await ask('mail it')", "final_answer(answer)")
    tools = [asked.as_tool(name="ask", on_branch=True), salaries, mail]
    assert CodeAgent(says, tools=tools).run("task").value == "refused"
    assert sent == []


@pytest.mark.sampled(0)
@pytest.mark.parametrize("fails", [False, True])
def test_attempts_pass_the_mark_on(fails: bool, sent: list[str]) -> None:
    last = "task_fail('no')" if fails else "final_answer(pay)"
    asked = CodeAgent(ScriptedModel([f"```python\npay = salaries()\n{last}\n```"] * 2), tools=[salaries])

    async def ask() -> object:
        try:
            return (await asked.arun("what", attempts=2)).value
        except TaskFailed as error:
            return str(error)

    with Session(tools=[ask, mail], limits=_LIMITS) as session:
        session.run("pay = await ask()")
        assert session.private == "was answered from private data: salaries() was called"
        assert session.run(f"{_refused('mail(str(pay))')}\nsaid").value == "refused"
    assert sent == []


# --------------------------------------------------------------------------------------- kept and shown


def _sessions(url: str, *words: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main(["sessions", words[0], "--store", url, *words[1:]]) == 0
    return printed.getvalue()


@pytest.mark.sampled(0)
def test_the_mark_is_resumed_and_shown_with_the_cell_since_which_it_holds(tmp_path: Path, sent: list[str]) -> None:
    url = f"sqlite:///{tmp_path}/cells.db"
    with Session("pay", state=Versioned(url), tools=[mail], limits=_LIMITS) as session:
        session.run("x = 1")
        session.run(
            "mark_private('payroll')\nclass Unkept:\n    def __reduce__(self):\n        raise TypeError\ny = Unkept()"
        )
    with Session("plain", state=Versioned(url), limits=_LIMITS) as session:
        session.run("x = 1")
    rows = {row["name"]: row["private"] for row in json.loads(_sessions(url, "list", "--json"))}
    assert rows == {"pay": "payroll", "plain": ""}
    header, *lines = _sessions(url, "list").splitlines()
    assert header.split()[-1] == "PRIVATE"
    assert sorted(line.split()[-1] for line in lines) == ["-", "payroll"]
    assert "private since cell 2: payroll" in _sessions(url, "show", "pay")
    assert json.loads(_sessions(url, "show", "pay", "--json"))["private"] == "payroll"
    assert "private" not in _sessions(url, "show", "plain")
    _sessions(url, "branch", "pay", "before", "HEAD~1")
    _sessions(url, "checkout", "pay", "HEAD~1")
    for name in ("pay", "before"):
        with Session(name, state=Versioned(url), tools=[mail], limits=_LIMITS) as session:
            assert session.private == "payroll"
            error = session.run("mail(str(x))").error
            assert error is not None
            assert error.hint.startswith("the session is private since cell 2 (payroll)")
    assert sent == []


@pytest.mark.sampled(0)
def test_what_is_merged_from_a_session_without_data_changes_nothing(tmp_path: Path, sent: list[str]) -> None:
    state = Versioned(f"sqlite:///{tmp_path}/cells.db")
    with Session("pay", state=state, tools=[mail], limits=_LIMITS) as session:
        session.run("x = 1")
        with session.branch("plain") as other:
            other.run("y = 2")
        session.mark_private("payroll")
        session.merge("plain")
        assert session.run(f"{_refused('mail(str(y))')}\nsaid").value == "refused"
        assert session.private == "payroll"
    with Session("plain", state=state, tools=[mail], limits=_LIMITS) as session:
        assert session.run("mail(str(y))").value == "sent 2"
    assert sent == ["2"]


@pytest.mark.anyio
async def test_a_session_that_is_let_go_of_is_gone_at_once() -> None:
    session = AsyncSession(network=["shop.test:80"], tools=[mail, salaries], limits=_LIMITS)
    async with session:
        await session.run("salaries()")
    gone, gathering = weakref.ref(session), gc.isenabled()
    gc.disable()  # without being looked for
    try:
        del session
        assert gone() is None
    finally:
        if gathering:
            gc.enable()


def _calls(*requests: tuple[str, dict[str, object]]) -> Reply:
    made = [ToolRequest(id=f"c{at}", name=name, arguments=given, raw="") for at, (name, given) in enumerate(requests)]
    return Reply(requests=tuple(made))


def test_an_agent_that_calls_tools_with_json_is_refused_what_reaches_outside(sent: list[str]) -> None:
    pytest.importorskip("pydantic")
    says = [
        _calls(("mail", {"text": "a"})),
        _calls(("salaries", {})),
        _calls(("mail", {"text": "41"})),
        _calls(("final_answer", {"value": 41})),
    ]
    result = ReactAgent(ScriptedModel(says), tools=[mail, salaries]).run("task")
    assert sent == ["a"]
    assert "mail() reaches outside, which cannot be after private data were given" in result.steps[2].output
    assert result.notebook.private == "salaries() was called"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("asked_first", [True, False])
def test_an_agent_with_json_passes_the_mark_both_ways(asked_first: bool, sent: list[str]) -> None:
    pytest.importorskip("pydantic")
    asked = ReactAgent(
        ScriptedModel([_calls(("mail", {"text": "x"}), ("salaries", {})), _calls(("final_answer", {"value": 41}))]),
        tools=[mail, salaries],
    )

    async def ask() -> object:
        return (await asked.arun("task")).value

    with Session(tools=[ask, mail, salaries], limits=_LIMITS) as session:
        if not asked_first:
            session.run("salaries()")
        session.run("pay = await ask()")
        assert session.private.startswith("was answered from private data" if asked_first else "salaries()")
        assert session.run(f"{_refused('mail(str(pay))')}\nsaid").value == "refused"
    assert sent == (["x"] if asked_first else [])
