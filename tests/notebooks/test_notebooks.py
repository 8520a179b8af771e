"""Notebooks as people write them: run to the end, resumed half way in another process, exported, and run by Jupyter."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cellblock import ExecutionLimits, Session, Versioned

nbformat = pytest.importorskip("nbformat")

SOURCES = sorted((Path(__file__).parent / "sources").glob("*.py"))
LIMITS = ExecutionLimits(timeout_seconds=100, max_memory_mb=1500)
_CELL = re.compile(r"^# %%", re.MULTILINE)
_IN_EVERY_RUN = {"bank_ledger", "memoised", "files_and_json", "game_of_life", "queue_simulation", "library_database"}
_PACKAGES = re.compile(
    r"^\s*(?:from|import) (numpy|pandas|matplotlib|sklearn|scipy|sympy|networkx|openpyxl|IPython)", re.M
)

whole = [
    pytest.param(path, id=path.stem, marks=() if path.stem in _IN_EVERY_RUN else pytest.mark.slow) for path in SOURCES
]


def _document(path: Path) -> nbformat.NotebookNode:
    """A source of `# %%` cells as the document that it stands for."""
    cells = []
    for number, part in enumerate(_CELL.split(path.read_text())[1:]):
        head, _, body = part.partition("\n")
        if "markdown" in head:
            cells.append(nbformat.v4.new_markdown_cell(re.sub(r"^# ?", "", body.strip("\n"), flags=re.M)))
        else:
            cells.append(nbformat.v4.new_code_cell(body.strip("\n")))
        cells[-1]["id"] = f"cell-{number}"
    return nbformat.v4.new_notebook(cells=cells)


def _require(path: Path) -> None:
    for package in set(_PACKAGES.findall(path.read_text())):
        pytest.importorskip(package)


def test_there_are_thirty_of_them() -> None:
    assert len(SOURCES) >= 30


@pytest.mark.sampled(1)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", whole)
def test_it_runs_to_the_end_and_is_exported(path: Path, tmp_path: Path) -> None:
    _require(path)
    nbformat.write(_document(path), tmp_path / "in.ipynb")
    done = subprocess.run(
        [sys.executable, "-m", "cellblock", "notebook", "run", "--memory", "1500", "--timeout", "100", "in.ipynb",
         "--save", "out.ipynb"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    exported = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    nbformat.validate(exported)
    code = [cell for cell in exported.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))


@pytest.mark.sampled(1)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", whole)
def test_it_is_resumed_half_way_in_another_process(path: Path, tmp_path: Path) -> None:
    _require(path)
    cells = [cell.source for cell in _document(path).cells if cell.cell_type == "code"]
    state = Versioned(f"sqlite:///{tmp_path}/cells.db")
    half = len(cells) // 2
    with Session("notebook", state=state, limits=LIMITS) as session:
        for source in cells[:half]:
            assert session.run(source).ok
    with Session("notebook", state=state) as session:
        assert session.resumed is not None
        assert session.resumed.replayed == ()
        for source in cells[half:]:
            cell = session.run(source)
            assert cell.ok, cell.text
        exported = nbformat.reads(json.dumps(session.notebook.to_ipynb()), as_version=4)
        nbformat.validate(exported)
        assert [cell.source for cell in exported.cells] == cells


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in SOURCES])
def test_jupyter_runs_what_was_exported_to_the_same_outputs(path: Path, tmp_path: Path) -> None:
    _require(path)
    nbclient = pytest.importorskip("nbclient", reason="nbclient, of the extra jupyter, runs notebooks as Jupyter does")
    pytest.importorskip("ipykernel", reason="ipykernel, of the extra jupyter, is Jupyter's Python")
    nbformat.write(_document(path), tmp_path / "in.ipynb")
    subprocess.run(
        [sys.executable, "-m", "cellblock", "notebook", "run", "--memory", "1500", "--timeout", "100", "in.ipynb",
         "--save", "out.ipynb"],
        cwd=tmp_path, capture_output=True, check=True,
    )  # fmt: skip
    ours, theirs = (nbformat.read(tmp_path / "out.ipynb", as_version=4) for _ in range(2))
    (tmp_path / "work").mkdir()
    nbclient.execute(theirs, cwd=str(tmp_path / "work"))
    assert _shown(ours) == _shown(theirs)


@pytest.mark.timeout(120)
def test_jupyter_runs_the_commands_of_a_session(tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient, of the extra jupyter, runs notebooks as Jupyter does")
    pytest.importorskip("ipykernel", reason="ipykernel, of the extra jupyter, is Jupyter's Python")
    with Session() as session:
        for command in ("touch file1 && rm file?", "sleep 0 &", "", "echo {a}?\necho $((1 + 1))"):
            assert session.shell(command).ok
        exported = nbformat.reads(json.dumps(session.notebook.to_ipynb()), as_version=4)
    nbclient.execute(exported, cwd=str(tmp_path))
    assert [[output.text for output in cell.outputs] for cell in exported.cells] == [[], [], [], ["{a}?\n2\n"]]
    assert not [*tmp_path.iterdir()]


_OWN = "application/vnd.cellblock.dataframe+json"
_COUNTED = re.compile(r"sk-(?:container|estimator)-id-[0-9]+")
_PLACE = re.compile(r"(?: object)? at 0x[0-9a-f]+")
_FIGURE = re.compile(r"<Figuresize[0-9x]+with[0-9]+Axes>")


def _shown(document: nbformat.NotebookNode) -> list[tuple[str, list[object]]]:
    """What each code cell showed, without that in which the two mean to differ.

    IPython breaks lines of 80 characters within a value's text, leaves the word "object" out of it, and shows a figure
    again that a cell's last line has shown. Sessions have a MIME type of their own. Addresses and counted ids differ
    from run to run, and images are made at other sizes.
    """
    return [(cell.source, list(_outputs(cell.outputs))) for cell in document.cells if cell.cell_type == "code"]


def _outputs(outputs: list[nbformat.NotebookNode]) -> Iterator[object]:
    figures: set[str] = set()
    for one in outputs:
        if one.output_type == "stream":
            yield one.name, _PLACE.sub("", one.text)
        elif one.output_type == "error":
            yield one.ename, one.evalue
        else:
            parts = {mime: _part(mime, data) for mime, data in one.data.items() if mime != _OWN}
            plain = parts["text/plain"]
            if one.output_type == "display_data" and plain in figures and _FIGURE.fullmatch(plain):
                continue
            if one.output_type == "execute_result":
                figures.add(plain)
            yield one.output_type, parts


def _part(mime: str, data: str) -> str:
    if not mime.startswith("text/"):
        return "there"
    return re.sub(r"\s", "", _COUNTED.sub("", _PLACE.sub("", data)))
