"""E2B's own package beside our interface: what theirs takes and gives, ours does."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

theirs = pytest.importorskip("e2b_code_interpreter", exc_type=ImportError)

from cellblock.integrations import e2b as ours  # noqa: E402 - theirs may be missing, which is no failure here

pytestmark = pytest.mark.integrations

_LEFT_OUT = {"Result": {"data", "chart"}}
"""Made by E2B's own kernel from data frames and figures."""


@pytest.mark.parametrize("name", ["Execution", "ExecutionError", "Logs", "OutputMessage", "Result"])
def test_fields(name: str) -> None:
    fields = {field.name for field in dataclasses.fields(getattr(theirs, name, None) or getattr(theirs.models, name))}
    assert {field.name for field in dataclasses.fields(getattr(ours, name))} == fields - _LEFT_OUT.get(name, set())


@pytest.mark.parametrize("method", ["run_code"])
def test_arguments_of_the_sandbox(method: str) -> None:
    known = list(inspect.signature(getattr(ours.Sandbox, method)).parameters)
    assert known == list(inspect.signature(getattr(theirs.Sandbox, method)).parameters)


@pytest.mark.parametrize(
    "code", ["x = 1\nx + 1", "print('out')", "1 / 0", "import sys; print('err', file=sys.stderr)", "'text'"]
)
def test_their_json_of_our_execution(code: str) -> None:
    """What is made of a cell fits their classes as well."""
    with ours.Sandbox.create() as sandbox:
        mine = sandbox.run_code(code)
    results = [theirs.Result(**dataclasses.asdict(one)) for one in mine.results]
    error = mine.error and theirs.ExecutionError(mine.error.name, mine.error.value, mine.error.traceback)
    other = theirs.Execution(results, theirs.Logs(mine.logs.stdout, mine.logs.stderr), error, mine.execution_count)
    assert (other.text, other.to_json()) == (mine.text, mine.to_json())
