"""Jupyter documents on their way in: which source a session runs for a cell, and what is no document."""

from __future__ import annotations

import time
from io import StringIO
from textwrap import dedent
from types import SimpleNamespace

import pytest

from cellblock import Cell, CellState, Notebook
from cellblock.session.jupyter import UnreadableNotebook, in_order, pieces, with_outputs


def _document(*sources: object, **about: object) -> dict[str, object]:
    cells = [{"cell_type": "code", "metadata": {}, "source": source, "outputs": ["old"]} for source in sources]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells, **about}


def _runs(source: object) -> tuple[str, str]:
    (piece,) = pieces(_document(source))
    return piece.kind, piece.source


@pytest.mark.parametrize(
    ("source", "kind", "runs"),
    [
        ("x = 1", "python", "x = 1"),
        (["x = 1\n", "y = 2"], "python", "x = 1\ny = 2"),
        ("!ls -l", "shell", "ls -l"),
        ("# first\n!mkdir a\n\n!ls a", "shell", "mkdir a\nls a"),
        ("%%bash\nls\npwd", "shell", "ls\npwd"),
        ("%%time\nx = 3\nx", "python", "x = 3\nx"),
        ("%time f(2)", "python", "f(2)"),
        ("%matplotlib inline\nx", "python", "pass  # %matplotlib inline\nx"),
        ("if x:\n    %matplotlib inline\n", "python", "if x:\n    pass  # %matplotlib inline\n"),
        ("%cd data/2024\nx", "python", "__import__('os').chdir('data/2024')\nx"),
        ("s = '''\n%time is money\n'''", "python", "s = '''\n%time is money\n'''"),
        ("%who", "python", "%who"),
        ("%%writefile a.py\nx", "python", "with open('a.py', 'w') as _file:\n    _file.write('x\\n')\ndel _file"),
        ("%%file 'a b.py' --append\nx\n", "python",
         "with open('a b.py', 'a') as _file:\n    _file.write('x\\n')\ndel _file"),
        ("%%writefile a b.py\nx", "python", "%%writefile a b.py\nx"),
        ("%%writefile 'a\nx", "python", "%%writefile 'a\nx"),
        ("%pip install a\nx", "python", "_ = __import__('os').system('pip install a')\nx"),
        ("a = !ls '*'", "python", "a = __import__('os').popen(\"ls '*'\").read().splitlines()"),
        ('a = """\nb = !ls\n"""', "python", 'a = """\nb = !ls\n"""'),
        ("x = (1\n!= 2)", "python", "x = (1\n!= 2)"),
        ("len?", "python", "help(len)"),
        ("??os.path", "python", "help(os.path)"),
        ("%timeit -n 10 -r3 f(x)", "python", "f(x)"),
        ("x = 7 \\\n% 4", "python", "x = 7 \\\n% 4"),
        ("x = 'a\\\n!ls'", "python", "x = 'a\\\n!ls'"),
        ("x = [\n!ls\n]", "python", "x = [\n!ls\n]"),
        ("# a \\\n%time x", "python", "# a \\\nx"),
        ("!echo one \\\n    two \\\n3", "shell", "echo one      two  3"),
        ("x\n!echo '(' \\\n two\n!ls", "python",
         "x\n_ = __import__('os').system(\"echo '('   two\")\n_ = __import__('os').system('ls')"),
        ("%cd 'a b'", "python", "__import__('os').chdir('a b')"),
        ("!!ls", "python", "__import__('os').popen('ls').read().splitlines()"),
    ],
)  # fmt: skip
def test_what_a_session_runs_for_a_cell(source: object, kind: str, runs: str) -> None:
    assert _runs(source) == (kind, runs)


@pytest.mark.parametrize(
    ("command", "filled"),
    [
        ("{name} $name", "a.csv a.csv"),
        ("{name!r:>8} {len(name)} {1 + 1:0{3 - 1}d}", " 'a.csv' 5 02"),
        ("{name}: $name.", "a.csv: a.csv."),
        ("$name $name.missing", "$name $name.missing"),
        ("'$name' $$name {{x}}", "'$name' $name {x}"),
        ("$name $missing", "$name $missing"),
        ("{name} {1 / 0}", "{name} {1 / 0}"),
        ("{name} {", "{name} {"),
        ("{name!x} {a,b} ${HOME}", "{name!x} {a,b} ${HOME}"),
        ("{name:{name:{name}}}", "{name:{name:{name}}}"),
    ],
)
@pytest.mark.parametrize("line", ["!{}", "x = !{}", "%cd {}", "    !!{}", "%%writefile \"{}\"\n1"])
def test_what_a_line_has_of_python_is_filled_in_as_in_ipython(command: str, filled: str, line: str) -> None:
    """All of it, or nothing."""
    kind, code = _runs(line.replace("{}", command))
    if kind == "shell":
        assert code == filled
        return
    given: list[str] = []

    def take(text: str, how: str = "") -> StringIO:
        given.append(text)
        return StringIO()

    system = SimpleNamespace(system=take, chdir=take, popen=take)
    exec(dedent(code), {"name": "a.csv", "__import__": lambda _: system, "open": take})
    assert given == [filled]


@pytest.mark.parametrize(
    "command", ["ls", "rm file?", "sleep 0 &", "! true", " ls", "a\nb?", "\nls", "echo $HOME {}", "# no\n!x", "%%sh\nx"]
)
def test_a_command_that_is_exported_is_the_same_command_again(command: str) -> None:
    notebook = Notebook()
    notebook.record(Cell(id="a", number=1, source=command, state=CellState.COMPLETED, kind="shell"), {})
    (piece,) = pieces(notebook.to_ipynb())
    assert (piece.kind, piece.source) == ("shell", command)


def test_an_empty_command_that_is_exported_stays_a_command() -> None:
    notebook = Notebook()
    notebook.record(Cell(id="a", number=1, source="", state=CellState.COMPLETED, kind="shell"), {})
    (piece,) = pieces(notebook.to_ipynb())
    assert (piece.kind, piece.source.strip()) == ("shell", "")


def test_text_and_empty_cells_are_passed_over_and_places_are_the_documents() -> None:
    document = _document("", "a", "  \n", "b")
    document["cells"].insert(1, {"cell_type": "markdown", "source": "# b"})  # type: ignore[attr-defined]
    assert [(piece.place, piece.source) for piece in pieces(document)] == [(2, "a"), (4, "b")]


def test_a_cell_may_be_said_to_raise() -> None:
    document = _document("1/0")
    document["cells"][0]["metadata"]["tags"] = ["raises-exception"]  # type: ignore[index]
    assert [piece.may_fail for piece in pieces(document)] == [True]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "not a Jupyter document"),
        ({}, "nbformat 4, and is of None"),
        ({"nbformat": 3, "worksheets": []}, "nbformat 4, and is of 3"),
        ({"nbformat": 4}, "no list of cells"),
        ({"nbformat": 4, "cells": [1]}, "no list of cells"),
        (_document(5), "neither text nor lines"),
        (_document([1]), "neither text nor lines"),
        (_document("x", metadata=None), "metadata is no JSON object"),
        (_document("x", metadata=[]), "metadata is no JSON object"),
        (_document("x", metadata="title"), "metadata is no JSON object"),
        (_document("x", metadata={"language_info": {"name": "R"}}), "written in R"),
        (_document("x", metadata={"kernelspec": {"language": "julia"}}), "written in julia"),
    ],
)
def test_what_is_no_document_is_said_to_be_none(document: object, said: str) -> None:
    with pytest.raises(UnreadableNotebook, match=said):
        pieces(document)


def test_outputs_of_cells_that_did_not_run_are_removed_and_the_document_given_is_not_changed() -> None:
    document = _document("a", "b")
    new = with_outputs(document, {})
    assert [cell["outputs"] for cell in new["cells"]] == [[], []]
    assert [cell["outputs"] for cell in document["cells"]] == [["old"], ["old"]]  # type: ignore[attr-defined]


def test_widgets_that_were_outputs_are_removed_with_them() -> None:
    widgets = {"application/vnd.jupyter.widget-state+json": {"state": {"a": {"state": {"value": "<script>"}}}}}
    new = with_outputs(_document("a", metadata={"widgets": widgets, "title": "t"}), {})
    assert new["metadata"] == {"title": "t"}


ODD: dict[str, dict[str, object]] = {
    "language that is none": _document("1", metadata={"kernelspec": 3, "language_info": {"name": None}}),
    "widgets that are none": _document("1", metadata={"widgets": None, "cellblock": 3}),
    "no metadata": {"nbformat": 4, "cells": [{"cell_type": "code", "source": "1"}]},
    "cells with none": {
        "nbformat": 4.0,
        "cells": [
            {"cell_type": "code", "source": "1", "metadata": 3, "outputs": None, "id": ["x"]},
            {"cell_type": ["x"], "source": ["y"], "attachments": {"a": {"image/png": "no base64"}, "b": 3}},
            {"source": "z", "attachments": []},
        ],
    },
}


@pytest.mark.threat("W8")
@pytest.mark.parametrize("which", ODD)
def test_a_document_whose_cells_are_run_can_be_written(which: str) -> None:
    assert [piece.source for piece in pieces(ODD[which])] == ["1"]
    new = with_outputs(ODD[which], {}, private="a reason")
    assert new["metadata"]["cellblock"] == {"private": "a reason"}
    assert len(in_order(ODD[which], {})) == len(new["cells"])


def test_a_line_of_many_lines_takes_time_by_their_number() -> None:
    def seconds(lines: int) -> float:
        began = time.process_time()
        assert len(_runs("!true\\\n" + "a\\\n" * lines + "b")[1]) >= 2 * lines
        return time.process_time() - began

    assert seconds(200_000) < 40 * max(seconds(20_000), 0.001)
