"""What functions read is frozen at the end of a task of a stored session, and at no other time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scripted_agents import agent_of

from cellblock import CodeAgent, Live, Policy, TaskFailed, Versioned
from cellblock.observe.log import read_log

DOCUMENT = "factor = 2\ndef multiplier(x):\n    return x * factor\n"


@pytest.fixture
def store(tmp_path: Path) -> Versioned:
    return Versioned(f"sqlite:///{tmp_path}/cells.db")


def first_and_second(agent: CodeAgent) -> Any:
    @agent.task
    def first() -> Any:
        """Define."""

    @agent.task
    def second() -> Any:
        """Use."""

    first()
    return second()


@pytest.mark.sampled(0)
def test_a_function_of_one_task_keeps_its_globals_in_the_next(store: Versioned) -> None:
    with agent_of(
        DOCUMENT + "final_answer(multiplier(5))", "factor = 10\nfinal_answer(multiplier(5))", state=store
    ) as agent:
        assert first_and_second(agent) == 10


@pytest.mark.sampled(0)
def test_and_in_another_program(store: Versioned) -> None:
    with agent_of(DOCUMENT + "final_answer(1)", state=store) as agent:
        agent.task(_ask)()
    with agent_of("factor = 10\nfinal_answer((multiplier(5), factor))", state=store) as agent:
        assert agent.task(_ask)() == (10, 10)


def _ask() -> Any:
    """Do it."""


def test_between_cells_of_a_task_functions_see_the_session(store: Versioned) -> None:
    with agent_of(DOCUMENT, "factor = 10\nfinal_answer(multiplier(5))", state=store) as agent:
        assert agent.task(_ask)() == 50


def test_between_runs_and_with_a_live_state_they_do_too(store: Versioned) -> None:
    cells = (DOCUMENT + "final_answer(1)", "factor = 10\nfinal_answer(multiplier(5))")
    with agent_of(*cells, state=Live()) as agent:
        assert first_and_second(agent) == 50
    with agent_of(*cells, state=store) as agent:
        agent.run("define")
        assert agent.run("use").value == 50


def test_a_function_that_is_defined_anew_is_the_new_one(store: Versioned) -> None:
    with agent_of(
        DOCUMENT + "final_answer(1)", DOCUMENT + "factor = 10\nfinal_answer(multiplier(5))", state=store
    ) as agent:
        assert first_and_second(agent) == 50


KINDS = {
    "calls of one another": ("def a():\n    return b()\ndef b():\n    return factor", "a()"),
    "recursion": ("def a(n):\n    return a(n - 1) if n else factor", "a(2)"),
    "a closure": ("def make():\n    def inner():\n        return factor\n    return inner\na = make()", "a()"),
    "a decorator": (
        "def twice(f):\n    def inner():\n        return f()\n    return inner\n@twice\ndef a():\n    return factor",
        "a()",
    ),
    "a lambda within": ("def a():\n    return (lambda: factor)()", "a()"),
    "a method": ("class A:\n    def m(self):\n        return factor\na = A()", "a.m()"),
    "a class method": ("class A:\n    @classmethod\n    def m(cls):\n        return factor", "A.m()"),
    "a static method": ("class A:\n    @staticmethod\n    def m():\n        return factor", "A.m()"),
    "a property": ("class A:\n    @property\n    def m(self):\n        return factor", "A().m"),
    "super": (
        "class A:\n    def m(self):\n        return factor\nclass B(A):\n    def m(self):\n        return super().m()",
        "B().m()",
    ),
    "a list": ("a = [lambda: factor]", "a[0]()"),
    "a dict": ("a = {'f': lambda: factor}", "a['f']()"),
    "a tuple": ("a = (lambda: factor,)", "a[0]()"),
    "defaults": ("def a(x=1, *, y=2):\n    return factor", "a()"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("define", "use"), KINDS.values(), ids=KINDS)
def test_every_kind_of_function_is_frozen(store: Versioned, define: str, use: str) -> None:
    cells = (f"factor = 2\n{define}\nfinal_answer(1)", f"factor = 10\nfinal_answer({use})")
    with agent_of(*cells, state=store) as agent:
        assert first_and_second(agent) == 2


def test_what_is_changed_in_place_is_shared_and_what_functions_write_is_their_own(store: Versioned) -> None:
    define = "rows, n = [], 0\ndef add():\n    global n\n    n += 1\n    rows.append(n)\n    return n, rows\n"
    with agent_of(define + "final_answer(add())", "final_answer((add(), n, rows))", state=store) as agent:
        assert first_and_second(agent) == ((2, [1, 2]), 1, [1, 2])


@pytest.mark.sampled(0)
def test_a_task_that_failed_is_a_boundary_too(store: Versioned) -> None:
    with agent_of(DOCUMENT + "task_fail('no')", "factor = 10\nfinal_answer(multiplier(5))", state=store) as agent:
        with pytest.raises(TaskFailed):
            agent.task(_ask)()
        assert agent.task(_ask)() == 10


@pytest.mark.sampled(0)
def test_names_of_the_language_that_cells_took_away_are_not_missed(store: Versioned) -> None:
    took = "type = vars = list = isinstance = 5\n"
    with agent_of(
        took + DOCUMENT + "final_answer(1)", "factor = 10\nfinal_answer(multiplier(5))", state=store
    ) as agent:
        assert first_and_second(agent) == 10


def test_what_cannot_be_frozen_is_said_in_the_log_and_the_answer_given(store: Versioned, tmp_path: Path) -> None:
    refusing = "class M(type):\n    def __setattr__(self, name, value): raise ValueError\n"
    define = refusing + "class A(metaclass=M):\n    def m(self): return factor\n" + DOCUMENT + "final_answer(1)"
    with agent_of(define, "factor = 10\nfinal_answer(multiplier(5))", state=store) as agent:
        assert agent.run("define", freezes=True, log=tmp_path / "run.log").value == 1
        told = [event for event in read_log(tmp_path / "run.log") if event["event"] == "decision"]
        assert [event["kind"] for event in told] == ["not frozen"]
        assert "could not be frozen: A" in told[0]["reason"]
        assert agent.run("use").value == 10


def test_where_a_guard_stands_functions_go_on_seeing_the_session(store: Versioned) -> None:
    cells = (DOCUMENT + "final_answer(1)", "factor = 10\nfinal_answer(multiplier(5))")
    with agent_of(*cells, state=store, policy=Policy()) as agent:
        assert first_and_second(agent) == 50


@pytest.mark.sampled(0)
def test_freezing_leaves_no_name_of_its_own(store: Versioned) -> None:
    with agent_of(
        DOCUMENT + "final_answer(1)", "final_answer([n for n in dir() if 'freeze' in n])", state=store
    ) as agent:
        assert first_and_second(agent) == []
