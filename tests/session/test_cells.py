"""What a cell gives back: value, state, numbers, failures and their tracebacks; and what carries over to the next."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import TypeAdapter

from cellblock import AsyncSession, Cell, CellState, Done, Opaque, Output, OutputType, Session, UnknownCell


def lines(cell: Cell) -> list[str]:
    assert cell.error is not None
    return cell.error.traceback.splitlines()


# --- values ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("41 + 1", 42),
        ("(1, 'a')", (1, "a")),
        ("'text\\0\\u00e9'", "text\0\u00e9"),
        ("b'\\0\\xff'", b"\0\xff"),
        ("True", True),
        ("x = 1", None),
        ("None", None),
        ("for n in range(3): n", None),
        ("x = 5; x", 5),
        ("x = 5; x;", 5),
        ("", None),
        ("# only a comment", None),
        ("\n\n   \n# a\n\n", None),
    ],
)
def test_last_expression_is_the_value(session: Session, source: str, value: object) -> None:
    cell = session.run(source)
    assert (cell.state, cell.value, type(cell.value)) == (CellState.COMPLETED, value, type(value))


def test_result_is_shown_once_and_none_is_not_shown(session: Session) -> None:
    assert session.run("'a'").text == "'a'"
    assert session.run("None").outputs == ()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("source", ["'x' * 5_000_000", "b'x' * 5_000_000", "list(range(1_000_000))"])
def test_large_values_arrive_whole_while_their_text_is_cut(session: Session, source: str) -> None:
    cell = session.run(source)
    assert cell.value == eval(source)
    assert len(cell.text) <= 10_100


def test_value_too_large_to_send_is_opaque(session: Session) -> None:
    value = session.run("b'x' * 70_000_000").value
    assert isinstance(value, Opaque)
    assert value.type == "bytes"


def test_value_that_is_no_data_is_opaque(session: Session) -> None:
    value = session.run("class Thing:\n    def __repr__(self): return 'a thing'\nThing()").value
    assert value == Opaque("Thing", "a thing")


def test_underscore_is_the_last_value(session: Session) -> None:
    session.run("20 + 1")
    assert session.run("_ * 2").value == 42


# --- state -----------------------------------------------------------------------------------------------------


def test_names_imports_functions_and_classes_carry_over(session: Session) -> None:
    session.run("import math\nfrom collections import deque as d\nclass C:\n    n = 1\ndef f(): return C.n + x\nx = 1")
    session.run("x = 10\nC.n = 5")
    assert session.run("f(), math.floor(2.5), d([1])[0]").value == (15, 2, 1)


def test_failed_cell_keeps_what_it_did_before_it_failed(session: Session) -> None:
    assert session.run("kept = 1\n1/0\nnever = 2").state is CellState.ERROR
    assert session.run("kept, 'never' in globals()").value == (1, False)


def test_cells_are_numbered_and_named_apart(session: Session) -> None:
    cells = [session.run(source) for source in ("1", "1/0", "def (", "2")]
    assert [cell.number for cell in cells] == [1, 2, 3, 4]
    assert len({cell.id for cell in cells}) == 4
    assert [cell.id for cell in session.notebook] == [cell.id for cell in cells]
    assert [cell.source for cell in session.notebook] == ["1", "1/0", "def (", "2"]


def test_future_statements_hold_for_later_cells(session: Session) -> None:
    session.run("from __future__ import annotations")
    assert session.run("def f(x: not_a_name): pass\nf.__annotations__").value == {"x": "not_a_name"}


def test_module_of_the_cells_is_main_and_its_classes_can_be_pickled(session: Session) -> None:
    source = "import pickle\nclass C: pass\n(__name__, pickle.loads(pickle.dumps(C())).__class__ is C)"
    assert session.run(source).value == ("__main__", True)


def test_rerun_keeps_the_id_and_place_and_takes_a_new_number(session: Session) -> None:
    first = session.run("n = globals().get('n', 0) + 1\nn")
    session.run("'between'")
    again = session.rerun(first.id)
    assert (again.id, again.number, again.value) == (first.id, 3, 2)
    assert [cell.number for cell in session.notebook] == [3, 2]


def test_rerun_of_a_shell_cell_runs_the_command_again(session: Session) -> None:
    cell = session.shell("echo x >> log; wc -l < log")
    assert (cell.text, session.rerun(cell.id).text) == ("1", "2")


def test_rerun_of_an_unknown_cell_raises_and_runs_nothing(session: Session) -> None:
    with pytest.raises(UnknownCell):
        session.rerun("nothing")
    assert session.run("1").number == 1


def test_delete_removes_the_record_and_not_the_effect(session: Session) -> None:
    cell = session.run("x = 1")
    session.delete(cell.id)
    assert list(session.notebook) == []
    assert session.run("x").value == 1


def test_clear_empties_names_and_notebook_and_keeps_files(session: Session) -> None:
    session.run("x = 1\n__token__ = 'x'\ny: int = 1\nopen('kept', 'w').write('1')\n'last value'")
    session.clear()
    assert list(session.notebook) == []
    assert session.names() == {}
    left = "open('kept').read(), {'x', '__token__', '__annotations__'} & {*globals()}, hasattr(__builtins__, '_')"
    assert session.run(left).value == ("1", set(), False)
    assert session.run("z: int = 1\nlist(__annotations__)").value == ["z"]


# --- async code ------------------------------------------------------------------------------------------------


def test_top_level_await_works_in_statements_and_in_the_last_expression(session: Session) -> None:
    source = "import asyncio\nasync def f(): return 20\nx = await f()\nx + await f() + 2"
    assert session.run(source).value == 42


def test_asyncio_run_works_in_a_cell_and_await_after_it(session: Session) -> None:
    assert session.run("import asyncio\nasync def f(): return 1\nasyncio.run(f())").value == 1
    assert session.run("await f()").value == 1
    assert session.run("asyncio.run(f())").value == 1


def test_async_for_with_and_comprehensions_work_at_top_level(session: Session) -> None:
    source = (
        "class A:\n    async def __aenter__(self): return self\n    async def __aexit__(self, *_): pass\n"
        "async def count():\n    for n in range(3): yield n\n"
        "got = []\nasync with A():\n    async for n in count(): got.append(n)\n"
        "got + [n async for n in count()]"
    )
    assert session.run(source).value == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize("awaits_first", [True, False])
def test_statements_start_tasks_that_the_same_cell_awaits(session: Session, awaits_first: bool) -> None:
    pause = "await asyncio.sleep(0)\n" if awaits_first else ""
    source = "import asyncio\nasync def work(): return 7\n" + pause + "task = asyncio.create_task(work())\nawait task"
    assert session.run(source).value == 7


def test_background_task_goes_on_when_a_later_cell_awaits(session: Session) -> None:
    session.run(
        "import asyncio\nasync def work():\n    await asyncio.sleep(0)\n    return 7\n"
        "task = asyncio.create_task(work())\nawait asyncio.sleep(0)"
    )
    assert session.run("await task").value == 7


@pytest.mark.sampled(2)
@pytest.mark.parametrize("imported", ["import asyncio", "import asyncio as aio", "from asyncio import create_task"])
def test_cell_without_await_starts_a_task_that_the_next_awaits(session: Session, imported: str) -> None:
    call = {"import asyncio": "asyncio.create_task", "import asyncio as aio": "aio.create_task"}
    session.run(f"{imported}\nasync def work(): return 7")
    assert session.run(f"task = {call.get(imported, 'create_task')}(work())").error is None
    assert session.run("await task").value == 7
    assert session.run("import asyncio\nasyncio.get_running_loop().is_running()").value is True


def test_method_called_create_task_may_run_a_loop_of_its_own(session: Session) -> None:
    session.run(
        "class Board:\n    def create_task(self, title):\n        import asyncio\n"
        "        async def sent(): return title\n        return asyncio.run(sent())\nboard = Board()"
    )
    assert session.run("board.create_task('wash')").value == "wash"


def test_interrupted_await_leaves_no_task_behind(session: Session) -> None:
    events = session.stream("import asyncio\nprint('begun')\nawait asyncio.sleep(60)")
    next(events)
    session.interrupt()
    *_, done = events
    assert done.cell.error.type == "KeyboardInterrupt"  # type: ignore[union-attr]
    assert session.run("len(asyncio.all_tasks(asyncio.get_event_loop_policy().get_event_loop()))").value == 0


# --- failures --------------------------------------------------------------------------------------------------


def test_traceback_starts_at_the_cell_and_shows_source_lines_of_earlier_cells(session: Session) -> None:
    session.run("def f(n):\n    return 1 / n")
    cell = session.run("y = 1\nf(0)")
    assert lines(cell) == [
        "Traceback (most recent call last):",
        '  File "<cell 2>", line 2, in <module>',
        "    f(0)",
        '  File "<cell 1>", line 2, in f',
        "    return 1 / n",
        "           ~~^~~",
        "ZeroDivisionError: division by zero",
    ]
    assert (cell.error.type, cell.error.message, cell.error.kind) == (  # type: ignore[union-attr]
        "ZeroDivisionError",
        "division by zero",
        "raised",
    )
    assert cell.text == cell.error.traceback.rstrip("\n")  # type: ignore[union-attr]


def test_traceback_of_library_code_is_shown_below_the_cell(session: Session) -> None:
    told = lines(session.run("import json\njson.loads('{')"))
    assert told[1] == '  File "<cell 1>", line 2, in <module>'
    assert any("json/decoder.py" in line for line in told)
    assert "cellblock" not in "".join(told)


def test_chained_exceptions_are_trimmed_alike(session: Session) -> None:
    source = "try:\n    1/0\nexcept ZeroDivisionError as error:\n    raise ValueError('second') from error"
    told = lines(session.run(source))
    assert told.count("Traceback (most recent call last):") == 2
    assert "The above exception was the direct cause of the following exception:" in told
    assert told[-1] == "ValueError: second"
    assert [line for line in told if line.startswith("  File")] == [
        '  File "<cell 1>", line 2, in <module>',
        '  File "<cell 1>", line 4, in <module>',
    ]


def test_exception_groups_are_shown_whole(session: Session) -> None:
    cell = session.run("raise ExceptionGroup('both', [ValueError('a'), TypeError('b')])")
    assert cell.error is not None
    assert (cell.error.type, cell.error.message) == ("ExceptionGroup", "both (2 sub-exceptions)")
    for expected in ("ValueError: a", "TypeError: b"):
        assert expected in cell.error.traceback
    assert "cellblock" not in cell.error.traceback


def test_syntax_error_points_at_the_place(session: Session) -> None:
    cell = session.run("x = 1\ny = = 2")
    assert lines(cell) == ['  File "<cell 1>", line 2', "    y = = 2", "        ^", "SyntaxError: invalid syntax"]
    assert cell.error.type == "SyntaxError"  # type: ignore[union-attr]
    assert session.run("'x' in globals()").value is False


def test_endless_recursion_is_an_error_and_the_session_goes_on(session: Session) -> None:
    cell = session.run("def f(): return f()\nf()")
    assert cell.error is not None
    assert cell.error.type == "RecursionError"
    assert len(cell.text) < 5000
    assert session.run("1").value == 1


def test_interrupt_is_an_error_of_the_cell(session: Session) -> None:
    events = session.stream("print('begun')\nwhile True: pass")
    next(events)
    session.interrupt()
    *_, done = events
    cell = done.cell  # type: ignore[union-attr]
    assert (cell.state, cell.error.type, cell.error.kind) == (CellState.ERROR, "KeyboardInterrupt", "raised")
    told = lines(cell)  # line 1 or 2: `print` may not have returned yet
    assert told[1].startswith('  File "<cell 1>", line ')
    assert told[-1] == "KeyboardInterrupt"
    assert "cellblock" not in cell.error.traceback


@pytest.mark.parametrize("source", ["exit()", "quit()", "exit(3)", "quit('done')"])
def test_leaving_takes_nothing_from_later_cells(session: Session, source: str) -> None:
    session.run(source)
    cell = session.run("import sys\nhelp(len)\nsys.stdin.closed, repr(exit)")
    assert (cell.error, cell.value) == (None, (False, "Use exit() or Ctrl-D (i.e. EOF) to exit"))


@pytest.mark.parametrize("source", ["import sys; sys.exit()", "exit(0)", "raise SystemExit", "quit()"])
def test_leaving_with_success_completes_the_cell(session: Session, source: str) -> None:
    session.run("x = 1")
    assert session.run(source).state is CellState.COMPLETED
    assert session.run("x").value == 1


def test_leaving_with_another_status_is_an_error_and_keeps_the_session(session: Session) -> None:
    session.run("x = 1")
    cell = session.run("import sys; sys.exit(3)")
    assert (cell.state, cell.error.type, cell.error.message) == (CellState.ERROR, "SystemExit", "3")  # type: ignore[union-attr]
    assert session.run("x").value == 1


@pytest.mark.parametrize(
    ("source", "type_", "message"),
    [
        ("class E(Exception):\n    def __str__(self): raise SystemExit\nraise E", "E", "<exception str() failed>"),
        ("class E(Exception):\n    def __str__(self): return 7\nraise E", "E", "<exception str() failed>"),
        ("raise type('A' * 5000, (Exception,), {})('long')", "A" * 200, "long"),
        (
            "class M(type): __name__ = property(lambda c: 1/0)\nclass E(Exception, metaclass=M): pass\nraise E('m')",
            "E",
            "m",
        ),
        (
            "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass E(Exception):\n    n: int\nraise E(1)",
            "E",
            "1",
        ),
        ("class E(BaseException):\n    def __setattr__(self, *_): raise SystemExit\nraise E('b')", "E", "b"),
        ("raise ValueError('\\ud800')", "ValueError", "\ufffd"),
        ("raise ValueError('x' * 1_000_000)", "ValueError", None),
        ("class E(SyntaxError):\n    def __str__(self): raise KeyboardInterrupt\nraise E('s')", "E", "s"),
    ],
)
def test_exceptions_that_misbehave_are_errors_of_the_cell(
    session: Session, source: str, type_: str, message: str | None
) -> None:
    session.run("x = 1")
    cell = session.run(source)
    assert cell.error is not None
    assert (cell.state, cell.error.type, cell.error.kind) == (CellState.ERROR, type_, "raised")
    assert message is None or cell.error.message == message
    assert len(cell.text.encode()) < 11_000
    assert session.run("x").value == 1


@pytest.mark.anyio
async def test_async_session_runs_cells() -> None:
    async with AsyncSession() as session:
        assert (await session.run("x = 6\nx * 7")).value == 42
        assert await session.get("x") == 6


@pytest.mark.anyio
async def test_async_session_has_the_face_of_a_session() -> None:
    async with AsyncSession() as session:
        assert (await session.run("6 * 7")).value == 42
        await session.set("x", [1])
        assert await session.get("x") == [1]
        assert [type(event).__name__ async for event in session.stream("print(1)")] == ["Output", "Done"]
        await session.files.write("a", "1")
        assert await session.files.read("a") == b"1"


def test_installed_bytecode_is_read_and_none_is_written(session: Session) -> None:
    session.files.write("mine.py", b"x = 1")
    cell = session.run(
        "import os, mine, wave\nos.path.dirname(os.path.dirname(wave.__cached__)), os.path.dirname(wave.__file__)"
    )
    assert cell.value[0] == cell.value[1]  # type: ignore[index]
    session.run("import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import mine'], check=True)")
    assert session.files.list() == ["mine.py"]


class _Odd(str):
    """A text with methods of its own, as some templates and arrays have."""

    def encode(self, *_: object, **_more: object) -> bytes:
        raise ValueError("no bytes")

    def __len__(self) -> int:
        return 0


def test_source_of_a_class_of_its_own_is_taken_as_its_text(session: Session) -> None:
    assert session.run(_Odd("1 + 1")).value == 2
    assert "two" in session.shell(_Odd("echo two")).text
    assert session.run("3").value == 3


def test_cells_are_pickled_copied_and_plain_data(session: Session) -> None:
    for source in ("{'a': [1, 2.5]}", "import numpy\nnumpy.arange(100_000)", "1 / 0", "print('x')\ndisplay(1)"):
        cell = session.run(source)
        for other in (pickle.loads(pickle.dumps(cell)), copy.deepcopy(cell)):
            assert other == cell
            assert repr(other.value) == repr(cell.value)
        plain = json.loads(json.dumps(cell.to_json()))
        assert (plain["source"], plain["state"], plain["ok"]) == (source, cell.state.value, cell.ok)
        assert [output["data"] for output in plain["outputs"]] == [dict(output.data) for output in cell.outputs]


def test_asdict_of_a_cell_is_plain_data(session: Session) -> None:
    for source in ("{(1, 2): 3}", "object()", "import numpy\nnumpy.arange(3)", "1 / 0", "b'\\xff'"):
        cell = session.run(source)
        plain = json.loads(json.dumps(dataclasses.asdict(cell), default=lambda one: one.value))
        assert (plain["source"], plain["text"], plain["result"]) == (source, cell.text, {})


@pytest.mark.parametrize("annotation", [None, Cell, dict[str, Cell]])
def test_web_service_returns_cells(session: Session, annotation: object) -> None:
    app = FastAPI()

    @app.get("/", response_model=annotation)
    def run(source: str) -> object:
        cell = session.run(source)
        return {"x": cell} if annotation == dict[str, Cell] else cell

    client = TestClient(app)
    for source, text in (("x = 1\nx", "1"), ("float('nan')", "nan"), ("int", "<class 'int'>"), ("{1: 2}", "{1: 2}")):
        answer = client.get("/", params={"source": source}).json()
        assert (answer.get("x", answer)["text"], client.get("/openapi.json").status_code) == (text, 200)


def test_schema_of_a_cell_names_its_fields() -> None:
    properties = TypeAdapter(Cell).json_schema()["properties"]
    assert {"id", "number", "source", "state", "outputs", "error", "lost", "usage", "text"} <= properties.keys()


@pytest.mark.parametrize(
    ("source", "kind", "said"),
    [
        ("print(1)\n1/0", "python", "ZeroDivisionError: division by zero"),
        ("x = = 1", "python", "SyntaxError: invalid syntax"),
        ("import os; os._exit(3)", "python", "ProcessDied: the session's process left with status 3"),
        ("echo 1; exit 3", "shell", "exit status 3"),
    ],
)
def test_error_is_the_last_output_of_a_stream(session: Session, source: str, kind: Any, said: str) -> None:
    *_, error, done = session.stream(source, kind=kind)
    assert isinstance(error, Output)
    assert isinstance(done, Done)
    assert (error.type, error) == (OutputType.ERROR, done.cell.outputs[-1])
    assert error.text.rstrip().endswith(said)


def test_printed_text_and_results_alone_are_the_stream_of_a_cell_that_ran(session: Session) -> None:
    assert [type(event) for event in session.stream("print(1)\n2")] == [Output, Output, Done]
