"""The session's record: cells by place and id, bytes by URI, and two exports in which hostile text stays text (W8)."""

import base64
import json
import time
from dataclasses import replace
from html.parser import HTMLParser

import nbformat
import pytest

from cellblock import Session
from cellblock.cell import Cell, CellError, CellState, Deferred, Lost
from cellblock.errors import UnknownCell
from cellblock.limits import Usage
from cellblock.outputs import DATAFRAME_MIME, Output, OutputType
from cellblock.session.account import Account
from cellblock.session.jupyter import pieces
from cellblock.session.notebook import OLDEST, Blob, Notebook
from cellblock.text import as_terminal, inert
from cellblock.values.portable import Opaque

PNG = Blob("image/png", b"\x89PNG\r\n\x1a\nimage")
PDF = Blob("application/pdf", b"%PDF-1.7")


def cell(id_: str = "c1", source: str = "1", **changes: object) -> Cell:
    return replace(Cell(id=id_, number=1, source=source, state=CellState.COMPLETED), **changes)  # type: ignore[arg-type]


def text(plain: str, stream: str | None = "stdout") -> Output:
    return Output(type=OutputType.TEXT, data={"text/plain": plain}, stream=stream)


def notebook_of(*cells: Cell, blobs: tuple[Blob, ...] = ()) -> Notebook:
    notebook = Notebook()
    for one in cells:
        notebook.record(one, {f"notebook://cell/{one.id}/image/{n}": blob for n, blob in enumerate(blobs)})
    return notebook


# --- the record ---------------------------------------------------------------------------------------------


def test_cells_are_found_by_place_and_id() -> None:
    one, two = cell("c1"), cell("c2")
    notebook = notebook_of(one, two)
    assert (notebook.cells, list(notebook), len(notebook)) == ((one, two), [one, two], 2)
    assert (notebook[0], notebook[-1], notebook["c1"]) == (one, two, one)


def test_recording_an_id_again_replaces_the_cell_and_its_blobs() -> None:
    notebook = notebook_of(cell("c1"), cell("c2"), blobs=(PNG,))
    again = cell("c1", number=3)
    notebook.record(again, {})
    assert notebook.cells == (again, cell("c2"))
    assert notebook.read("notebook://cell/c2/image/0") == PNG.data
    with pytest.raises(UnknownCell, match="cell c1 has no image 0"):
        notebook.read("notebook://cell/c1/image/0")


def test_delete_and_clear_remove_cells_and_blobs() -> None:
    notebook = notebook_of(cell("c1"), cell("c2"), blobs=(PNG,))
    notebook.delete("c1")
    assert notebook.cells == (cell("c2"),)
    with pytest.raises(UnknownCell):
        notebook.read("notebook://cell/c1/image/0")
    notebook.clear()
    assert (len(notebook), notebook.cells) == (0, ())


def test_uri_names_a_cell_by_id_or_place() -> None:
    notebook = notebook_of(cell("c1"), cell("c2"), blobs=(PNG, PDF))
    assert notebook.read("notebook://cell/c2/image/1") == PDF.data
    assert notebook.read("notebook://cell/1/image/0") == PNG.data
    assert notebook.blob("notebook://cell/0/image/1") == PDF


def test_id_of_digits_comes_before_the_place() -> None:
    notebook = Notebook()
    notebook.record(cell("a"), {"notebook://cell/a/image/0": PNG})
    notebook.record(cell("0"), {"notebook://cell/0/image/0": PDF})
    assert notebook.blob("notebook://cell/0/image/0") == PDF


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("nope", "no cell 'nope' (the notebook has c1; a deleted cell's id is not used again)"),
        (1, "no cell at 1 (the notebook has 1 cell)"),
        (-2, "no cell at -2 (the notebook has 1 cell)"),
    ],
)
def test_unknown_cell_is_named_with_what_there_is(key: int | str, message: str) -> None:
    with pytest.raises(UnknownCell) as caught:
        notebook_of(cell())[key]
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "c1",
        "notebook://cell/c1/image/",
        "notebook://cell/c1/image/x",
        "notebook://cell/c1/image/00",
        "notebook://cell/c1/image/-1",
        "notebook://cell/c1/image/1",
        "notebook://cell/c1/image/0/",
        "notebook://cell/c1/image/0\n",
        "notebook://cell/c1/image/\u0660",
        "notebook://cell/1/image/0",
        "notebook://cell/00/image/0",
        "notebook://cell/../image/0",
        "notebook://cell/c1/../c1/image/0",
        "notebook://cell/c1/image/" + "9" * 5000,
        "notebook://cell/" + "9" * 5000 + "/image/0",
        "file:///etc/passwd",
        "\x1b[31m" * 1000,
    ],
)
@pytest.mark.threat("W8")
def test_uri_that_names_nothing_is_refused_with_a_hint(uri: str) -> None:
    with pytest.raises(UnknownCell) as caught:
        notebook_of(cell(), blobs=(PNG,)).read(uri)
    assert caught.value.hint
    assert len(str(caught.value)) < 600
    assert str(caught.value).isprintable()


# --- .ipynb -------------------------------------------------------------------------------------------------


def document_of(notebook: Notebook) -> dict[str, object]:
    """The export, after Jupyter's own validation and a way through its reader and writer."""
    document = notebook.to_ipynb()
    read = nbformat.reads(json.dumps(document), as_version=4)
    nbformat.validate(read, relax_add_props=False)
    nbformat.writes(read).encode()
    return document


def cells_of(notebook: Notebook) -> list[dict[str, object]]:
    cells = document_of(notebook)["cells"]
    assert isinstance(cells, list)
    return cells


def test_empty_notebook_is_a_document() -> None:
    assert document_of(Notebook()) == {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {
                "name": "python",
                "file_extension": ".py",
                "mimetype": "text/x-python",
                "pygments_lexer": "ipython3",
            },
        },
        "cells": [],
    }


def test_every_kind_of_output_is_exported() -> None:
    table = {"columns": ["a"], "dtypes": ["int64"], "shape": [1, 1], "head": [[1]], "index": [0]}
    outputs = (
        text("out\n"),
        text("err\n", "stderr"),
        Output(type=OutputType.IMAGE, data={"text/plain": "<Figure>"}, uri="notebook://cell/c1/image/0"),
        Output(type=OutputType.IMAGE, data={"text/plain": "<Two>"}, uri="notebook://cell/c1/image/1"),
        Output(type=OutputType.ERROR, data={"text/plain": "Traceback"}),
        Output(type=OutputType.DATAFRAME, data={"text/plain": "a", DATAFRAME_MIME: table}, is_result=True),
    )
    error = CellError(type="ValueError", message="no", traceback="Traceback:\nValueError: no", hint="try")
    usage = Usage(duration_ms=1.5, cpu_ms=1.0, memory_peak_bytes=10)
    done = cell(outputs=outputs, error=error, state=CellState.ERROR, usage=usage)
    image = base64.b64encode(PNG.data).decode()
    assert cells_of(notebook_of(done, blobs=(PNG, PNG, PDF))) == [
        {
            "cell_type": "code",
            "id": "c1",
            "execution_count": 1,
            "metadata": {
                "cellblock": {
                    "state": "error",
                    "kind": "python",
                    "rolled_back": False,
                    "undone": False,
                    "usage": {"duration_ms": 1.5, "cpu_ms": 1.0, "memory_peak_bytes": 10},
                },
                "tags": ["raises-exception"],
            },
            "source": "1",
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": "out\n"},
                {"output_type": "stream", "name": "stderr", "text": "err\n"},
                {
                    "output_type": "display_data",
                    "data": {"text/plain": "<Figure>", "image/png": image},
                    "metadata": {},
                },
                {
                    "output_type": "display_data",
                    "data": {
                        "text/plain": "<Two>",
                        "image/png": image,
                        "application/pdf": base64.b64encode(PDF.data).decode(),
                    },
                    "metadata": {},
                },
                {
                    "output_type": "execute_result",
                    "execution_count": 1,
                    "data": {"text/plain": "a", DATAFRAME_MIME: table},
                    "metadata": {},
                },
                {
                    "output_type": "error",
                    "ename": "ValueError",
                    "evalue": "no",
                    "traceback": ["Traceback:", "ValueError: no", "hint: try"],
                },
            ],
        }
    ]


@pytest.mark.parametrize(
    ("kind", "source", "exported"),
    [
        ("shell", "ls -l", "%%sh\nls -l"),
        ("shell", "rm file?", "%%sh\nrm file?"),
        ("shell", "sleep 0 &", "%%sh\nsleep 0 &"),
        ("shell", "", "%%sh\n\n"),
        ("shell", "a\nb", "%%sh\na\nb"),
        ("shell", "echo $HOME {1..3}", "%%sh\necho $HOME {1..3}"),
        ("shell", "! true", "%%sh\n! true"),
        ("shell", "echo \\", "%%sh\necho \\"),
        ("host", "x = <list>\ny = 2", "# x = <list>\n# y = 2"),
        ("host", "", "# done by the host"),
        ("python", "!x", "!x"),
    ],
)
def test_source_is_exported_as_what_jupyter_runs(kind: str, source: str, exported: str) -> None:
    (found,) = cells_of(notebook_of(cell(source=source, kind=kind)))
    assert found["source"] == exported


@pytest.mark.parametrize("state", CellState)
def test_cell_of_any_state_is_valid_in_jupyter(state: CellState) -> None:
    document_of(notebook_of(cell(state=state, number=0)))


def test_id_that_jupyter_does_not_allow_is_replaced() -> None:
    cells = cells_of(notebook_of(cell("a b"), cell("x" * 65), cell("fine")))
    assert [one["id"] for one in cells] == ["cell-0", "cell-1", "fine"]


DEEP: list[object] = []
for _ in range(100_000):
    DEEP = [DEEP]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "data",
    [
        {"text/plain": 5, "text/html": ["<b>"], "image/png": "not base64", "no mime": "a", "": "", "a/b\n": "c"},
        {"application/json": float("nan")},
        {"application/x+json": {"a": [float("inf")]}},
        {"application/json": DEEP},
        {"application/json": 10**5000},
        {"text/plain": "\ud800", "application/json": {"\ud800": "\udfff"}},
        {},
    ],
    ids=["types", "nan", "inf", "deep", "long", "surrogates", "none"],
)
@pytest.mark.parametrize("is_result", [True, False])
@pytest.mark.threat("W8")
def test_bundle_that_is_none_still_makes_a_valid_document(data: dict[str, object], is_result: bool) -> None:
    output = Output(type=OutputType.TEXT, data=data, is_result=is_result)
    notebook = notebook_of(cell(outputs=(output,), source="\ud800"))
    document_of(notebook)
    notebook.to_html().encode()


def left_out(mime: str) -> str:
    return f"a\n[left out, since a display might run or load it: {mime}]"


def test_binary_part_of_an_unknown_type_is_left_out() -> None:
    output = Output(type=OutputType.IMAGE, data={"text/plain": "a"}, uri="notebook://cell/c1/image/0")
    notebook = notebook_of(cell(outputs=(output,)), blobs=(Blob("text/html", b"<script>"),))
    (found,) = cells_of(notebook)
    data = {"text/plain": left_out("text/html")}
    assert found["outputs"] == [{"output_type": "display_data", "data": data, "metadata": {}}]
    assert "script" not in notebook.to_html()


@pytest.mark.threat("W8")
@pytest.mark.parametrize("mime", ["application/javascript", "text/JavaScript", "application/x-ecmascript"])
def test_script_has_no_place_in_a_document(mime: str) -> None:
    output = Output(type=OutputType.TEXT, data={"text/plain": "a", mime: "alert(1)"})
    (found,) = cells_of(notebook_of(cell(outputs=(output,))))
    data = {"text/plain": left_out(mime)}
    assert found["outputs"] == [{"output_type": "display_data", "data": data, "metadata": {}}]


def test_numbers_that_json_lacks_are_null() -> None:
    usage = Usage(duration_ms=float("nan"), cpu_ms=float("inf"))
    notebook = notebook_of(cell(usage=usage))
    (found,) = cells_of(notebook)
    assert isinstance(found["metadata"], dict)
    assert found["metadata"]["cellblock"]["usage"] == {"duration_ms": None, "cpu_ms": None, "memory_peak_bytes": 0}
    assert "<span>?</span>" in notebook.to_html()


# --- the page -----------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """What a browser would make of the page: its elements, and the text outside of style sheets."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}

    @property
    def text(self) -> str:
        return "".join(self.words)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


EVIL = "</pre></code></iframe></section><script>alert(1)</script><img src=x onerror=alert(2)>\"'><!--"
OURS = """
    html head meta title style body main header h1 p section div span pre code img iframe table thead tbody tr th td
    ul li
"""


def hostile_notebook() -> Notebook:
    table = {"columns": [EVIL], "dtypes": [EVIL], "shape": [EVIL, 1], "head": [[EVIL]], "index": [EVIL]}
    outputs = (
        text(EVIL),
        text(EVIL, "stderr"),
        text(EVIL, None),
        Output(type=OutputType.HTML, data={"text/html": EVIL}),
        Output(type=OutputType.IMAGE, data={"image/svg+xml": f"<svg>{EVIL}</svg>", "text/plain": EVIL}),
        Output(type=OutputType.IMAGE, data={"text/plain": EVIL}, uri="notebook://cell/c1/image/0"),
        Output(type=OutputType.DATAFRAME, data={DATAFRAME_MIME: table}),
        Output(type=OutputType.TEXT, data={"text/markdown": EVIL}),
        Output(type=OutputType.TEXT, data={"application/json": {EVIL: EVIL}}),
        Output(type=OutputType.TEXT, data={f"text/{EVIL}": EVIL}),
    )
    error = CellError(type=EVIL, message=EVIL, traceback=EVIL, hint=EVIL)
    lost = (Lost(name=EVIL, type=EVIL, reason=EVIL, remedy=EVIL),)
    return notebook_of(cell(source=EVIL, outputs=outputs, error=error, lost=lost), blobs=(PNG,))


@pytest.mark.threat("W8")
def test_markup_from_a_cell_is_text() -> None:
    page = Page(hostile_notebook().to_html())
    assert page.tags <= set(OURS.split())
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert page.text.count("<script>alert(1)</script>") >= 15
    document_of(hostile_notebook())


@pytest.mark.threat("W8")
def test_html_is_shown_only_in_a_frame_without_rights() -> None:
    page = Page(hostile_notebook().to_html())
    (frame,) = page.all("iframe")
    assert frame["sandbox"] == ""
    assert EVIL not in str(frame["srcdoc"])
    assert "src" not in frame


def test_images_are_inlined_and_svg_is_one_of_them() -> None:
    sources = [str(image["src"]) for image in Page(hostile_notebook().to_html()).all("img")]
    assert [source.partition(",")[0] for source in sources] == ["data:image/svg+xml;base64", "data:image/png;base64"]
    assert base64.b64decode(sources[1].partition(",")[2]) == PNG.data


@pytest.mark.threat("W8")
def test_policy_forbids_scripts_and_fetching() -> None:
    page = Page(Notebook().to_html())
    (policy,) = [meta["content"] for meta in page.all("meta") if "http-equiv" in meta]
    assert policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    # it holds only for what comes after it
    assert [tag for tag, _ in page.elements][:4] == ["html", "head", "meta", "meta"]


def test_an_undone_cell_is_no_code_of_the_document_and_marked_on_the_page() -> None:
    notebook = notebook_of(cell(source="x = 1", number=1), cell("c2", source="x = 2", number=2, undone=True))
    first, second = cells_of(notebook)
    assert (first["cell_type"], first["source"]) == ("code", "x = 1")
    assert (second["cell_type"], second["source"]) == ("raw", "# undone, and not run again\nx = 2")
    assert isinstance(second["metadata"], dict)
    assert second["metadata"]["raw_mimetype"] == "text/x-python"  # of none, nbconvert takes it for HTML
    assert [piece.source for piece in pieces(document_of(notebook))] == ["x = 1"]
    words = [word.strip() for word in Page(notebook.to_html()).words if word.strip()]
    rows = words[words.index("2 cells") + 1 :]
    assert rows == [*("[1]", "completed", "0 ms", "x = 1"), *("[2]", "undone", "0 ms", "x = 2")]


ENDS = {
    "undone": "x.append(3)",
    "failed": "x.append(3)\n1 / 0",
    "interrupted": "x.append(3)\nraise KeyboardInterrupt",
    "failed by its own error of syntax": "x.append(3)\neval('1 +')",
    "rolled back": "x.append(3)\nimport os; os._exit(1)",
    "no Python": "!echo x\nx.append(3)",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("end", ENDS)
def test_a_document_leads_to_the_state_of_its_session(end: str) -> None:
    with Session() as session:
        session.run("x = [1]")
        session.run(ENDS[end])
        if end == "undone":
            session.undo()
        session.run("x.append(4)")
        state = session["x"]
        document = document_of(session.notebook)
    with Session() as again:
        for piece in pieces(document):
            cell = again.run(piece.source)
            assert cell.ok or (piece.may_fail and not cell.rolled_back), cell.text
        assert again["x"] == state


def test_a_source_that_a_policy_refused_is_no_code_of_a_document() -> None:
    with Session(trust_level="local") as session:
        session.run("n = 1")
        session.run("n += 1\nimport os")
        session.run("n += 1\ngetattr(n, '__cl' + 'ass__')")
        state, cells = session["n"], cells_of(session.notebook)
    assert (state, [one["cell_type"] for one in cells]) == (2, ["code", "raw", "code"])
    told = "# not begun (SecurityError: line 2: os is not granted [import]), and not run again\n"
    assert cells[1]["source"] == f"{told}n += 1\nimport os"


def test_a_cell_without_effects_says_in_one_line_why_it_is_no_code() -> None:
    error = CellError(type="ProcessDied", message="left\nimport os", kind="crashed")
    ended = cell(source="x", error=error, state=CellState.ERROR)
    (lost,) = cells_of(notebook_of(ended))
    (back,) = cells_of(notebook_of(replace(ended, rolled_back=True)))
    assert lost["source"] == "# lost with its process (ProcessDied: left import os), and not run again\nx"
    assert back["source"] == "# rolled back (ProcessDied: left import os), and not run again\nx"


def test_exports_name_the_executions_that_they_lack() -> None:
    with Session() as session:
        first, second = session.run("n = 1"), session.run("n += 1")
        assert "executions" not in session.notebook.to_html()
        for again in (first, first, second):
            session.rerun(again.id)
        last = session.run("n")
        session.run("n += 1")
        session.delete(last.id)
        notebook = session.notebook
    note = "executions that are not here: 1-3, 6 (of cells run again since, undone or deleted)"
    said, *cells = cells_of(notebook)
    assert (said["cell_type"], said["source"]) == ("raw", f"# {note}")
    assert [one["execution_count"] for one in cells] == [4, 5, 7]
    assert f"3 cells, {note}" in " ".join(Page(notebook.to_html()).words)


def test_most_ranges_of_executions_that_are_not_here_are_counted() -> None:
    said, *_ = cells_of(notebook_of(*(cell(f"c{n}", number=n) for n in range(1, 60, 2))))
    listed = ", ".join(map(str, range(2, 42, 2)))
    of = "(of cells run again since, undone or deleted)"
    assert said["source"] == f"# executions that are not here: {listed} and 9 more ranges {of}"


@pytest.mark.threat("W8")
def test_terminal_and_direction_controls_do_not_reach_the_page() -> None:
    nasty = "a\x1b[31mred\x1b[0m\x1b]0;title\x07\x1bPq\x1b\\\x00\x07\x08\x7f\x9b2J\u202eevil\u2066\u200f\ud800"
    error = CellError(type=nasty, message=nasty, traceback=nasty)
    outputs = (text(nasty), Output(type=OutputType.HTML, data={"text/html": nasty}))
    html = notebook_of(cell(source=nasty, outputs=outputs, error=error)).to_html()
    assert html.replace("\n", "").isprintable()
    assert html.count("ared[U+202E]evil[U+2066][U+200F]\ufffd") == 2, "what is printed, and the error"
    assert html.count("a[U+001B][31mred[U+001B][0m[U+001B]]0;title[U+0007]") == 2, "the source, and HTML"


def test_page_says_how_each_cell_went() -> None:
    failed = cell(
        "c2",
        state=CellState.TIMEOUT,
        number=2,
        kind="shell",
        rolled_back=True,
        usage=Usage(duration_ms=31_000, memory_peak_bytes=50 * 2**20),
        error=CellError(type="TimeoutError", message="the cell ran longer than 30 s", hint="do less", kind="timeout"),
        lost=(Lost(name="x", type="list", reason="the process ended", remedy="run it again"),),
    )
    page = Page(notebook_of(cell(usage=Usage(duration_ms=12.3)), failed).to_html())
    words = [word.strip() for word in page.words if word.strip()]
    start = words.index("2 cells") + 1
    assert words[start:] == [
        *("[1]", "completed", "12 ms", "1"),
        *("[2]", "timeout", "shell", "rolled back", "31.0 s", "50 MB", "1"),
        *("TimeoutError: the cell ran longer than 30 s", "do less"),
        *("Lost:", "x", "(list): the process ended. run it again"),
    ]


def test_table_is_shown_with_its_size() -> None:
    table = {"columns": ["a", "b"], "shape": [1000, 2], "head": [[1, None], [2.5, "x"]], "index": [0, 1]}
    output = Output(type=OutputType.DATAFRAME, data={DATAFRAME_MIME: table, "text/html": "<table>"}, is_result=True)
    page = Page(notebook_of(cell(outputs=(output,))).to_html())
    assert page.tags >= {"table"}
    assert "iframe" not in page.tags
    assert "ab01-12.5x2 rows shown of 1000 × 2" in "".join(word.strip("\n") for word in page.words)  # noqa: RUF001


@pytest.mark.parametrize(
    "table",
    [5, {}, {"columns": 1, "head": []}, {"columns": [], "head": [1]}, {"columns": [[DEEP]], "head": [[{}, 10**5000]]}],
)
def test_table_that_is_none_does_not_break_the_page(table: object) -> None:
    output = Output(type=OutputType.DATAFRAME, data={DATAFRAME_MIME: table, "text/plain": "plain"})
    assert "<section" in notebook_of(cell(outputs=(output,))).to_html()


@pytest.mark.threat("W8")
@pytest.mark.parametrize("times", [3, 1_990])
def test_what_markdown_names_once_and_shows_often_stays_small(times: int) -> None:
    source = "[a]: x" + "&" * 190_000 + "\n\n" + "[a] " * times
    output = Output(type=OutputType.TEXT, data={"text/markdown": source})
    notebook = notebook_of(cell(outputs=(output,)))
    assert len(notebook.to_html()) < 20 * len(source)
    assert len(json.dumps(notebook.to_ipynb())) < 20 * len(source)


@pytest.mark.threat("W8")
def test_tables_that_are_filled_up_count_as_what_they_are() -> None:
    source = "|".join("a" * 240) + "\n" + "|".join("-" * 240) + "\nx" * 270
    output = Output(type=OutputType.TEXT, data={"text/markdown": source})
    notebook = notebook_of(*(cell(outputs=(output,)) for _ in range(60)))
    began = time.process_time()
    notebook.to_html()
    assert time.process_time() - began < 30


# --- text made inert ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("naïve 日本 😀 👨‍👩‍👧", "naïve 日本 😀 👨‍👩‍👧"),
        ("\x1b[1mred\x9bm\x00\x07", "[U+001B][1mred[U+009B]m[U+0000][U+0007]"),
        ("a\x1b]\nb()\x07", "a[U+001B]]\nb()[U+0007]"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\u202eb\u2066\u00adc", "a[U+202E]b[U+2066][U+00AD]c"),
        ("zero\u200bwidth\u3164\ufeff", "zero[U+200B]width[U+3164][U+FEFF]"),
        ("tagged\U000e0068\U000e0069", "tagged[U+E0068][U+E0069]"),
        ("葛\U000e0101 ❤\ufe0f \u0600", "葛\U000e0101 ❤\ufe0f \u0600"),
    ],
)
@pytest.mark.threat("W8")
def test_inert_keeps_what_is_text(text: str, clean: str) -> None:
    assert inert(text) == clean


def test_printed_progress_shows_its_last_state() -> None:
    assert as_terminal("10%\r20%\r30%\r\ndone\r\n") == "30%\ndone\n"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("\x1b[1;31mred\x1b[m", "red"),
        ("\x1b[38;2;1;2;3mx\x1b[K\x1b[?25l", "x"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;never ends", "0;never ends"),
        ("\x1b]0;two\nlines\x07", "0;two\nlines"),
        ("\x1b(Bx\x1bcy\x1b", "xy"),
    ],
)
def test_printed_text_is_without_what_drives_a_terminal(text: str, clean: str) -> None:
    assert as_terminal(text) == clean


@pytest.mark.sampled(4)
@pytest.mark.parametrize("part", ["\x1b]", "\x1b[", "\x1b[0", "\r", "\x1b]x\x1b", "\x9b1", "x"])
def test_inert_takes_linear_time(part: str) -> None:
    as_terminal(part * 500_000)


def test_old_values_are_let_go_and_a_cell_at_hand_keeps_its_own() -> None:
    notebook = Notebook(account=Account(250))
    cells = [
        Cell(id=f"c{n}", number=n, source="", state=CellState.COMPLETED, result=Deferred(lambda n=n: n, 100))
        for n in range(4)
    ]
    for cell in cells:
        notebook.record(cell, {})
    assert [cell.value for cell in notebook] == [
        Opaque("dropped", f"{OLDEST} (ExecutionLimits.max_host_mb)"),
        Opaque("dropped", f"{OLDEST} (ExecutionLimits.max_host_mb)"),
        2,
        3,
    ]
    assert [cell.value for cell in cells] == [0, 1, 2, 3]
