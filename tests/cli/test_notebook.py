"""`cellblock notebook run`: documents in, documents with new outputs out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cellblock import Session

nbformat = pytest.importorskip("nbformat")

Cellblock = Callable[..., "subprocess.CompletedProcess[bytes]"]


def _write(path: Path, *sources: str, tags: dict[str, list[str]] | None = None) -> Path:
    cells = [nbformat.v4.new_code_cell(source, metadata={"tags": (tags or {}).get(source, [])}) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Title"), *cells]), path)
    return path


def _read(path: Path) -> Any:
    document = nbformat.read(path, as_version=4)
    nbformat.validate(document)
    return document


def test_cells_run_in_one_session_and_the_document_keeps_its_text(cellblock: Cellblock, tmp_path: Path) -> None:
    _write(tmp_path / "in.ipynb", "x = 20", "print('hi')\nx + 1", "!echo $((x+1))")
    done = cellblock("notebook", "run", "in.ipynb", "--save", "out.ipynb")
    assert (done.returncode, done.stdout) == (0, b"hi\n21\n1\n")
    assert done.stderr == b"cellblock: 3 of 3 cells ran; saved out.ipynb\n"
    document = _read(tmp_path / "out.ipynb")
    assert document.cells[0].source == "# Title"
    assert document.cells[2].source == "print('hi')\nx + 1"
    assert [output.output_type for output in document.cells[2].outputs] == ["stream", "execute_result"]
    assert [cell.execution_count for cell in document.cells[1:]] == [1, 2, 3]


@pytest.mark.sampled(0)
def test_lines_of_ipython_do_what_they_do_there(cellblock: Cellblock, tmp_path: Path) -> None:
    rows = ("%%writefile rows.csv\na,b\n1,2", "%%writefile -a {name}\n3,4", "print(open('rows.csv').read())")
    listed = ("found = !ls {name} $name\nfound", "!echo {name} \\\n  $name", "!!echo hi")
    _write(tmp_path / "in.ipynb", "name = 'rows.csv'", *rows, *listed)
    done = cellblock("notebook", "run", "in.ipynb")
    assert (done.returncode, done.stderr) == (0, b"cellblock: 7 of 7 cells ran\n")
    assert done.stdout == b"a,b\n1,2\n3,4\n\n['rows.csv', 'rows.csv']\nrows.csv rows.csv\n['hi']\n"


@pytest.mark.sampled(0)
def test_a_document_that_was_run_is_run_again_to_the_same(cellblock: Cellblock, tmp_path: Path) -> None:
    _write(tmp_path / "in.ipynb", "import random\nrandom.seed(1)", "random.random()")
    cellblock("notebook", "run", "in.ipynb", "--save", "once.ipynb")
    cellblock("notebook", "run", "once.ipynb", "--save", "twice.ipynb")
    outputs = [[cell.get("outputs") for cell in _read(tmp_path / name).cells] for name in ("once.ipynb", "twice.ipynb")]
    assert outputs[0] == outputs[1]
    assert outputs[0][2]


@pytest.mark.sampled(0)
def test_it_stops_at_a_failure_and_says_which(cellblock: Cellblock, tmp_path: Path) -> None:
    _write(tmp_path / "in.ipynb", "1", "1/0", "print('after')")
    done = cellblock("notebook", "run", "in.ipynb", "--save", "out.ipynb")
    assert (done.returncode, done.stdout) == (1, b"1\n")
    assert b"2 of 3 cells ran, failed: 2" in done.stderr
    assert _read(tmp_path / "out.ipynb").cells[2].outputs[0].ename == "ZeroDivisionError"


@pytest.mark.sampled(0)
def test_it_goes_on_where_told_to_or_where_the_cell_is_said_to_raise(cellblock: Cellblock, tmp_path: Path) -> None:
    _write(tmp_path / "in.ipynb", "1/0", "print('after')")
    done = cellblock("notebook", "run", "--keep-going", "in.ipynb")
    assert (done.returncode, done.stdout) == (1, b"after\n")
    _write(tmp_path / "tagged.ipynb", "1/0", "print('after')", tags={"1/0": ["raises-exception"]})
    done = cellblock("notebook", "run", "tagged.ipynb")
    assert (done.returncode, done.stdout) == (0, b"after\n")


@pytest.mark.sampled(0)
def test_an_exported_session_with_failures_is_run_to_its_end(cellblock: Cellblock, tmp_path: Path) -> None:
    with Session() as session:
        for source in ("n = 1", "n += 1\n1 / 0", "n += 10\nimport os; os._exit(1)", "print(n)"):
            cell = session.run(source)
        session.shell("exit 3")
        (tmp_path / "in.ipynb").write_text(json.dumps(session.notebook.to_ipynb()))
    done = cellblock("notebook", "run", "in.ipynb", "--save", "out.ipynb")
    assert (cell.text, done.returncode, done.stdout) == ("2", 0, b"2\n")
    assert b"4 of 4 cells ran; saved" in done.stderr
    assert _read(tmp_path / "out.ipynb").cells[1].outputs[0].ename == "ZeroDivisionError"


@pytest.mark.sampled(0)
def test_a_page_and_json(cellblock: Cellblock, tmp_path: Path) -> None:
    _write(tmp_path / "in.ipynb", "'<b>bold</b>'", "2")
    assert cellblock("notebook", "run", "in.ipynb", "--save", "out.html").returncode == 0
    assert "&lt;b&gt;bold" in (tmp_path / "out.html").read_text()
    done = cellblock("notebook", "run", "--json", "in.ipynb")
    assert [json.loads(line)["text"] for line in done.stdout.splitlines()] == ["'<b>bold</b>'", "2"]
    assert done.stderr == b""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("content", "words", "said"),
    [
        (b"{", [], b"is not a Jupyter document"),
        (b"[" * 100_000, [], b"is not a Jupyter document"),
        (b"[]", [], b"it holds a list"),
        (b'{"nbformat": 3}', [], b"nbformat 4, and is of 3"),
        (b'{"nbformat": 4, "cells": []}', ["--save", "out.txt"], b"ends neither in .ipynb nor in .html"),
        (b'{"nbformat": 4, "cells": []}', ["--save", "none/out.ipynb"], b"there is no directory"),
        (b'{"nbformat": 4, "cells": []}', ["--save", "dir.ipynb"], b"'dir.ipynb' is a directory"),
    ],
)
def test_what_cannot_be_run_is_a_line(
    cellblock: Cellblock, tmp_path: Path, content: bytes, words: list[str], said: bytes
) -> None:
    (tmp_path / "in.ipynb").write_bytes(content)
    (tmp_path / "dir.ipynb").mkdir()
    done = cellblock("notebook", "run", "in.ipynb", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count(b"\n") == 1


@pytest.mark.sampled(0)
def test_a_document_without_code_is_run_at_once(cellblock: Cellblock, tmp_path: Path) -> None:
    _write(tmp_path / "in.ipynb")
    done = cellblock("notebook", "run", "in.ipynb", "--save", "out.ipynb")
    assert (done.returncode, done.stderr) == (0, b"cellblock: 0 of 0 cells ran; saved out.ipynb\n")


@pytest.mark.sampled(0)
def test_a_link_is_followed_to_what_is_saved(cellblock: Cellblock, tmp_path: Path) -> None:
    _write(tmp_path / "in.ipynb")
    (tmp_path / "out.ipynb").symlink_to("there.ipynb")
    assert cellblock("notebook", "run", "in.ipynb", "--save", "out.ipynb").returncode == 0
    assert (tmp_path / "out.ipynb").is_symlink()
    assert len(_read(tmp_path / "there.ipynb").cells) == 1
