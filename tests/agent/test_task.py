"""Typed functions that an agent fulfils: arguments go in as copies, results come back in the annotated type."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Optional, TypedDict, Union

import anyio
import pydantic
import pytest
from scripted_agents import LEVELS, agent_of, decisions, shown

from cellblock import CellblockError, ExecutionLimits, ModelError, StepLimitReached, TaskFailed

at_every_level = pytest.mark.parametrize("level", LEVELS)


@dataclass
class Point:
    x: int
    y: float = 0.5


class Shop(pydantic.BaseModel):
    name: str
    sold: list[int]


class Row(TypedDict):
    shop: str
    sold: int


class Told(TypedDict, total=False):
    a: Row
    b: int


class Pair(NamedTuple):
    a: int
    b: str


class Colour(enum.Enum):
    RED = "red"


def fulfilled(annotation: Any, answer: str, *more: str, **options: Any) -> Any:
    """What a task of this return type gives, whose model answers with these expressions."""
    agent = agent_of(*(f"final_answer({one})" for one in (answer, *more)), **options)

    def ask() -> Any:
        """Do it."""

    ask.__annotations__["return"] = annotation
    return agent.task(ask)()


ROW = {"shop": "n", "sold": 1}
FITTING: dict[str, tuple[Any, str, object]] = {
    "int": (int, "3", 3),
    "float from int": (float, "3", 3.0),
    "str": (str, "'a'", "a"),
    "None": (None, "None", None),
    "Any": (Any, "{'a': (1,)}", {"a": (1,)}),
    "Literal": (Literal["a", "b"], "'b'", "b"),
    "Optional": (Optional[int], "None", None),  # noqa: UP045
    "Union": (Union[int, list[str]], "['a']", ["a"]),  # noqa: UP007
    "new union": (int | str | None, "'a'", "a"),
    "nested": (dict[str, list[tuple[int, float]]], "{'a': [(1, 2.5)]}", {"a": [(1, 2.5)]}),
    "set": (set[int], "{1, 2}", {1, 2}),
    "frozenset": (frozenset[str], "frozenset('ab')", frozenset("ab")),
    "bytes": (bytes, "b'a'", b"a"),
    "complex": (complex, "1 + 2j", 1 + 2j),
    "date": (datetime.date, "__import__('datetime').date(2024, 1, 2)", datetime.date(2024, 1, 2)),
    "dataclass of a dict": (Point, "{'x': 1}", Point(1)),
    "list of dataclasses": (list[Point], "[{'x': 1, 'y': 2}]", [Point(1, 2.0)]),
    "pydantic": (Shop, "{'name': 'n', 'sold': [1]}", Shop(name="n", sold=[1])),
    "TypedDict": (Row, "{'shop': 'n', 'sold': 1}", {"shop": "n", "sold": 1}),
    "nested TypedDict": (dict[str, list[Row]] | None, "{'a': [{'shop': 'n', 'sold': '1'}]}", {"a": [ROW]}),
    "TypedDict with what may be missing": (Told, "{'a': {'shop': 'n', 'sold': 1}}", {"a": {"shop": "n", "sold": 1}}),
    "NamedTuple": (Pair, "(1, 'b')", Pair(1, "b")),
    "Enum by value": (Colour, "'red'", Colour.RED),
}  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("annotation", "answer", "value"), FITTING.values(), ids=FITTING)
def test_an_answer_comes_in_the_annotated_type(annotation: Any, answer: str, value: object) -> None:
    found = fulfilled(annotation, answer)
    assert found == value
    assert type(found) is type(value)


def test_an_object_of_a_class_that_the_cell_made_becomes_the_hosts() -> None:
    made = "__import__('dataclasses').make_dataclass('P', ['x', 'y'])(1, 2)"
    assert fulfilled(Point, made) == Point(1, 2.0)
    assert fulfilled(Shop, "__import__('dataclasses').make_dataclass('S', ['name', 'sold'])('n', [2])") == Shop(
        name="n", sold=[2]
    )


WRONG: dict[str, tuple[Any, str, str]] = {
    "int": (int, "'many'", "valid integer"),
    "dict": (dict[str, float], "{'a': 'b'}", "a: Input should be a valid number"),
    "dataclass": (Point, "{'y': 1}", "x: "),
    "pydantic": (Shop, "{'name': 'n', 'sold': ['x']}", "sold.0: Input should be a valid integer"),
    "None": (None, "1", "None"),
    "TypedDict": (Row, "{'shop': 'n'}", "sold: Field required"),
    "union": (int | None, "'a'", "valid integer"),
}  # fmt: skip


@pytest.mark.parametrize(("annotation", "answer", "said"), WRONG.values(), ids=WRONG)
def test_an_answer_that_does_not_fit_is_shown_and_mended_in_the_same_run(
    annotation: Any, answer: str, said: str
) -> None:
    good = {
        int: "3",
        Point: "{'x': 1}",
        Shop: "{'name': 'n', 'sold': []}",
        Row: "{'shop': 'n', 'sold': 1}",
        None: "None",
    }.get(annotation, "None")
    if annotation == dict[str, float]:
        good = "{'a': 1}"
    agent = agent_of(f"final_answer({answer})", f"final_answer({good})")

    def ask() -> Any:
        """Do it."""

    ask.__annotations__["return"] = annotation
    agent.task(ask)()
    assert said in shown(agent)
    assert "TypeError: ask is to return " in shown(agent)


@pytest.mark.threat("W11")
@pytest.mark.parametrize(
    ("annotation", "answer"),
    [
        (list[int], "['x'] * 20_000"),
        (dict[str, int], "dict.fromkeys(map(str, range(20_000)), 'x')"),
        (dict[str, Shop], "{'a': {'name': 'n', 'sold': ['x'] * 20_000}}"),
    ],
    ids=["list", "dict", "of a model"],
)
def test_an_answer_that_is_wrong_in_many_places_is_told_by_their_number(annotation: Any, answer: str) -> None:
    good = "[]" if annotation.__origin__ is list else "{}"
    agent = agent_of(f"final_answer({answer})", f"final_answer({good})")

    def ask() -> Any:
        """Do it."""

    ask.__annotations__["return"] = annotation
    agent.task(ask)()
    assert "this does not fit: 20,000 validation errors for " in shown(agent)


def test_an_answer_that_never_fits_is_the_step_limit() -> None:
    with pytest.raises(StepLimitReached) as caught:
        fulfilled(int, "'a'", "'b'", limits=ExecutionLimits(max_steps=2))
    assert decisions(caught.value.result) == ["failed", "failed"]


def test_a_task_that_cannot_be_done() -> None:
    agent = agent_of("task_fail('no data')")

    @agent.task
    def mean(rows: list) -> float:
        """Mean."""

    with pytest.raises(TaskFailed, match="no data"):
        mean([])


def test_a_task_without_a_model() -> None:
    agent = agent_of()

    @agent.task
    def mean(rows: list) -> float:
        """Mean."""

    with pytest.raises(ModelError) as caught:
        mean([])
    assert caught.value.result is not None


@at_every_level
def test_arguments_are_bound_to_the_names_of_the_parameters(level: str) -> None:
    agent = agent_of("final_answer([a, b, rest, c, more])", trust_level=level)

    @agent.task
    def collect(a: int, b: int = 2, *rest: int, c: str = "c", **more: int) -> list:
        """Collect all."""

    assert collect(1) == [1, 2, (), "c", {}]
    assert "def collect(a: int, b: int = 2, *rest: int, c: str = 'c', **more: int) -> list:" in shown(agent)
    assert '"""Collect all."""' in shown(agent)


def test_all_kinds_of_arguments() -> None:
    agent = agent_of("final_answer([a, b, rest, c, more])")

    @agent.task
    def collect(a: int, b: int = 2, *rest: int, c: str = "c", **more: int) -> list:
        """Collect all."""

    assert collect(1, 3, 4, 5, c="d", e=6) == [1, 3, (4, 5), "d", {"e": 6}]


def test_arguments_that_do_not_fit_the_signature_are_the_callers_error() -> None:
    agent = agent_of("final_answer(1)")

    @agent.task
    def half(x: int) -> int:
        """Half."""

    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        half()  # type: ignore[call-arg]


def test_an_argument_that_cannot_be_pickled_names_itself() -> None:
    agent = agent_of("final_answer(1)")

    @agent.task
    def apply(function: Callable[[int], int]) -> int:
        """Apply it."""

    with pytest.raises(CellblockError, match=r"^function: ") as caught:
        apply(lambda x: x)
    assert caught.value.hint


@pytest.mark.parametrize("name", ["final_answer", "memory", "AgentMemory"])
def test_a_parameter_with_a_name_of_the_agents_is_refused_when_it_is_defined(name: str) -> None:
    agent = agent_of("final_answer(1)")
    namespace: dict[str, Any] = {}
    exec(f"def ask({name}):\n    'Do it.'", namespace)
    with pytest.raises(ValueError, match=f"'{name}' is a name of the agent's own"):
        agent.task(namespace["ask"])


def test_a_task_without_a_docstring_is_refused() -> None:
    def ask() -> int: ...

    with pytest.raises(ValueError, match="ask has no docstring"):
        agent_of().task(ask)


def test_an_annotation_that_cannot_be_read_is_refused_by_name() -> None:
    def ask() -> Nothing:  # type: ignore[name-defined]  # noqa: F821
        """Do it."""

    with pytest.raises(TypeError, match="ask: the annotation of its result cannot be read"):
        agent_of().task(ask)


@dataclass
class Holding:
    row: Row


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="from there on it can be checked")
def test_an_annotation_that_cannot_be_checked_is_refused_by_name() -> None:
    def ask() -> Holding:
        """Do it."""

    with pytest.raises(TypeError, match="ask: that it returns Holding cannot be checked: Please use"):
        agent_of().task(ask)


def test_async_tasks_run_at_once() -> None:
    agent = agent_of("1")

    class Doubling:
        def complete(self, messages: Any, tools: Any) -> str:
            return "```python\nfinal_answer(2 * x)\n```"

    from cellblock import CodeAgent

    agent = CodeAgent(Doubling())

    @agent.task
    async def double(x: int) -> int:
        """Twice."""

    async def main() -> list[int]:
        found: list[int] = []

        async def one(x: int) -> None:
            found.append(await double(x))

        async with anyio.create_task_group() as tasks:
            for x in range(4):
                tasks.start_soon(one, x)
        return sorted(found)

    assert anyio.run(main) == [0, 2, 4, 6]


def test_a_task_keeps_its_functions_name_and_words() -> None:
    agent = agent_of()

    @agent.task
    def mean(rows: list) -> float:
        """Mean of rows."""

    assert (mean.__name__, mean.__doc__) == ("mean", "Mean of rows.")


def test_a_task_as_a_method_of_a_class_that_holds_an_agent() -> None:
    agent = agent_of("final_answer(n + 1)")

    @agent.task
    def after(n: int) -> int:
        """The next number."""

    assert after(n=4) == 5


def test_objects_of_importable_classes_go_in() -> None:
    from fractions import Fraction

    agent = agent_of("final_answer((type(x).__name__, str(x + 1)))")

    @agent.task
    def told(x: Fraction) -> tuple[str, str]:
        """Tell of it."""

    assert told(Fraction(1, 2)) == ("Fraction", "3/2")


def test_a_dataclass_of_the_callers_that_cannot_be_imported_inside_says_so() -> None:
    agent = agent_of("final_answer(1)")

    @agent.task
    def told(point: Point) -> int:
        """Tell of it."""

    with pytest.raises(CellblockError, match=r"^point: ") as caught:
        told(Point(1))
    assert "importable" in caught.value.hint
    assert dataclasses.is_dataclass(Point)


def test_frames_and_arrays_go_in_and_out() -> None:
    pd, np = pytest.importorskip("pandas"), pytest.importorskip("numpy")
    agent = agent_of(
        "final_answer(df.assign(c=df.a * a[0]))", "final_answer(a * 2)", "final_answer('x')", "final_answer(a)"
    )

    def frame(df: Any, a: Any) -> Any:
        """A column more."""

    frame.__annotations__["return"] = pd.DataFrame
    found = agent.task(frame)(pd.DataFrame({"a": [1, 2]}), np.array([10]))
    assert found.equals(pd.DataFrame({"a": [1, 2], "c": [10, 20]}))

    def array(a: Any) -> Any:
        """Twice."""

    array.__annotations__["return"] = np.ndarray
    assert (agent.task(array)(np.arange(3)) == np.arange(3) * 2).all()
    assert (agent.task(array)(np.arange(2)) == np.arange(2)).all()
    assert "ask" not in shown(agent)
    assert "instance of ndarray" in shown(agent)


def test_a_body_is_never_run_and_that_is_told() -> None:
    agent = agent_of("final_answer(1)")

    def one() -> int:
        """One."""
        return 2

    with pytest.warns(UserWarning, match="the body of one is never run: the agent takes its place"):
        task = agent.task(one)
    assert task() == 1


def test_a_body_that_does_nothing_is_none() -> None:
    agent = agent_of()

    def says() -> int:
        """One."""

    async def raises() -> int:
        """One."""
        raise NotImplementedError

    agent.task(says)
    agent.task(raises)  # a warning would fail the test
