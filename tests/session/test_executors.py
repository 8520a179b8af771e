"""Code over a dict, as the executors of each level run it: one contract for all of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import cellblock
from cellblock import ExecutionLimits, IsolationUnavailable
from cellblock.executors import DockerExecutor, ExecutionResult, Executor, LocalExecutor, SubprocessExecutor

Make = Callable[..., Any]


@pytest.fixture(params=[LocalExecutor, SubprocessExecutor])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    made: list[Any] = []

    def make(**options: Any) -> Any:
        made.append(request.param(**options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_it_is_an_executor(make: Make) -> None:
    assert isinstance(make(), Executor)


def test_values_go_in_and_what_was_bound_comes_back(make: Make) -> None:
    names: dict[str, Any] = {"x": 20, "rows": [{"a": 1.5}]}
    result = make().run("y = x + 1\nz = rows[0]['a']\nprint('seen')\ny", names)
    assert (result.output, result.error, result.is_final, result.timeout) == ("seen\n21", None, False, False)
    assert names == {"x": 20, "rows": [{"a": 1.5}], "y": 21, "z": 1.5}
    assert isinstance(result, ExecutionResult)
    assert type(result.duration_ms) is int
    assert type(result.memory_used_bytes) is int


def test_what_is_changed_comes_back_and_what_is_not_stays_the_callers_object(make: Make) -> None:
    kept, changed = [1], [1]
    names: dict[str, Any] = {"kept": kept, "changed": changed}
    make().run("changed.append(2)", names)
    assert names == {"kept": [1], "changed": [1, 2]}
    assert names["kept"] is kept
    assert changed == [1]


def test_what_the_caller_changes_goes_in_with_the_next_run(make: Make) -> None:
    executor, names = make(), {"rows": [1]}
    executor.run("rows.append(2)", names)
    names["rows"].append(3)
    assert executor.run("print(rows)", names).output == "[1, 2, 3]"


def test_what_is_deleted_is_gone_on_both_sides(make: Make) -> None:
    executor, names = make(), {"x": 1, "y": 2}
    executor.run("del x", names)
    assert names == {"y": 2}
    assert executor.run("x", names).error == "NameError: name 'x' is not defined"


def test_what_cannot_cross_lives_on_inside(make: Make) -> None:
    executor, names = make(), {}
    executor.run("def double(x):\n    return 2 * x\nnumbers = iter([5, 6])", names)
    assert names == {}
    assert executor.run("y = double(next(numbers))", names).error is None
    assert names == {"y": 10}


def test_another_dict_sees_nothing_of_the_one_before(make: Make) -> None:
    executor = make()
    executor.run("x = 1\ndef f(): pass", {})
    result = executor.run("print([name for name in ('x', 'f') if name in dir()])", {})
    assert result.output == "[]"


def test_functions_of_the_dict_are_called(make: Make) -> None:
    asked: list[str] = []

    def search(words: str) -> list[str]:
        asked.append(words)
        return [words.upper()]

    names: dict[str, Any] = {"search": search, "other_name": search}
    assert make().run("found = search('a') + other_name('b')", names).error is None
    assert names == {"search": search, "other_name": search, "found": ["A", "B"]}
    assert asked == ["a", "b"]


def test_a_final_answer_is_told(make: Make) -> None:
    executor = make()
    result = executor.run("final_answer({'a': 1}, verified_by='eye')", {})
    assert (result.is_final, result.answer) == (True, {"a": 1})
    result = executor.run("1", {})
    assert (result.is_final, result.answer) == (False, None)
    assert executor.run("final_answer(1)\n1/0", {}).is_final is False


def test_a_final_answer_of_the_dicts_own_is_called(make: Make) -> None:
    given: list[object] = []
    result = make().run("final_answer(3)", {"final_answer": given.append})
    assert (result.is_final, given) == (True, [3])


def test_a_mistake_is_an_error_and_what_was_bound_before_it_comes_back(make: Make) -> None:
    names: dict[str, Any] = {}
    result = make().run("x = 1\n1/0", names)
    assert result.error == "ZeroDivisionError: division by zero"
    assert "ZeroDivisionError" in result.output
    assert names == {"x": 1}


@pytest.mark.sampled(1)
def test_past_the_time_limit(make: Make) -> None:
    executor, names = make(limits=ExecutionLimits(timeout_seconds=0.3)), {"x": 1}
    result = executor.run("while True: pass", names)
    assert result.timeout
    assert result.error is not None
    assert executor.run("y = x", names).error is None
    assert names == {"x": 1, "y": 1}


@pytest.mark.sampled(1)
def test_killing_it_from_another_thread_ends_the_run(make: Make) -> None:
    executor, names = make(limits=ExecutionLimits(timeout_seconds=60)), {"x": 1}
    executor.run("pass", names)
    threading.Timer(0.3, executor.kill).start()
    began = time.monotonic()
    result = executor.run("import time\ntime.sleep(50)", names)
    assert time.monotonic() - began < 30
    assert result.error is not None
    assert executor.run("y = x", names).error is None
    assert names == {"x": 1, "y": 1}


def test_killing_what_does_not_run_harms_nothing(make: Make) -> None:
    executor = make()
    executor.kill()
    assert executor.run("print(1)", {}).output == "1"


def test_behind_the_walls_what_ends_the_process_changes_nothing() -> None:
    with SubprocessExecutor() as executor:
        names: dict[str, Any] = {"x": 1}
        result = executor.run("x = 2\nimport os\nos._exit(1)", names)
        assert result.error is not None
        assert names == {"x": 1}
        assert executor.run("print(x)", names).output == "1"


def test_executor_in_a_container_says_which_engine_is_missing() -> None:
    with DockerExecutor(engine="no-such-engine") as executor, pytest.raises(IsolationUnavailable) as caught:
        executor.run("1", {})
    assert caught.value.mechanism == "engine"
    assert "no-such-engine is not installed" in str(caught.value)


def test_the_documents_name_of_the_agent() -> None:
    assert cellblock.TinyCodeAgent is cellblock.CodeAgent
