"""The one way out for rich output: each kind of display, in a real browser, with bundles made to run and to call."""

from __future__ import annotations

import hashlib
import html
import json
import re
import warnings
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any

import pytest
from browser import CHROMIUM, Callers, visit
from hostile_bundles import BUNDLES, HTML, MARKDOWN, filled

from cellblock import Session
from cellblock.cell import Cell, CellError, CellState
from cellblock.integrations.e2b.execution import Result, result
from cellblock.outputs import DATAFRAME_MIME, Output, type_of
from cellblock.session.jupyter import in_order, with_outputs
from cellblock.session.latex import is_harmless
from cellblock.session.notebook import Blob, Notebook
from cellblock.session.page import page
from cellblock.session.rich import rich
from cellblock.session.shown import NO_ROOM

PNG = b"\x89PNG\r\n\x1a\nimage"
PNG64 = "iVBORw0KGgppbWFnZQ=="
SVG64 = "PHN2Zy8+"
LEFT_OUT = "[left out, since a display might run or load it: {}]"

Address = Callable[[], str]


# --- in Chromium --------------------------------------------------------------------------------------------


def output(data: dict[str, Any]) -> Output:
    return Output(type=type_of(data), data=data)


def notebook_of(address: Address) -> Notebook:
    """A cell for each bundle, and cells whose text, error and source are markup: one of them undone."""
    cells = [{"outputs": (output(filled(one, address())),)} for one in BUNDLES]
    for undone in (False, True):
        markup = "<script>{js}</script><img src='{url}'><link rel=preconnect href='{url}'>"
        one, two, three = (filled(markup, address()) for _ in range(3))
        printed = (Output(type=type_of(()), data={"text/plain": one}, stream=name) for name in ("stdout", "stderr"))
        error = CellError(type=two, message=two, traceback=two, hint=two)
        cells.append({"outputs": tuple(printed), "error": error, "source": three, "undone": undone})
        cells.append({"kind": "host", "source": filled("'''-->{js}\n</script><img src='{url}'>", address())})
    notebook = Notebook()
    for number, about in enumerate(cells, start=1):
        plain = {"id": f"c{number}", "number": number, "source": "", "state": CellState.COMPLETED}
        notebook.record(Cell(**{**plain, **about}), {})
    return notebook


def exported(address: Address) -> str:
    """What `notebook run --save OUT.html` writes of a document with markup in its text."""
    notebook = notebook_of(address)
    text = [
        {"cell_type": kind, "source": filled(one, address()), "attachments": {"x": {"image/png": one}}}
        for one in (*MARKDOWN, *HTML)
        for kind in ("markdown", "raw")
    ]
    ran = [{"cell_type": "code", "source": one.source} for one in notebook]
    document = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [*ran, *text]}
    return page(in_order(document, dict(enumerate(notebook.shown()))))


def converted(address: Address, template: str) -> str:
    """The document as nbconvert shows it, who trusts it whole."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # what packages of Jupyter use of each other
        nbformat = pytest.importorskip("nbformat")
        exporter = pytest.importorskip("nbconvert").HTMLExporter(template_name=template)
    body, _ = exporter.from_notebook_node(nbformat.reads(json.dumps(notebook_of(address).to_ipynb()), as_version=4))
    return str(body)


def as_a_front_end_does(bundles: list[dict[str, Any]]) -> str:
    """A page that puts each part of each bundle into itself, and runs what scripts are in it."""
    return f"""<!doctype html><body></body><script>
for (const bundle of {in_script(bundles)}) for (const [mime, part] of Object.entries(bundle)) {{
  const place = document.body.appendChild(document.createElement("div"))
  if (/script/i.test(mime)) eval(part)
  else if (/^image.(png|jpeg|gif|webp)$/.test(mime)) place.innerHTML = `<img src="data:${{mime}};base64,${{part}}">`
  else if (/html|svg|markdown|xml/.test(mime)) {{
    place.innerHTML = part
    for (const old of place.querySelectorAll("script")) {{
      const script = document.createElement("script")
      script.textContent = old.textContent
      old.replaceWith(script)
    }}
  }} else place.textContent = typeof part == "string" ? part : JSON.stringify(part)
}}</script>"""


_OFTEN = (
    *("table", "tbody", "tr", "td", "th", "caption", "colgroup", "col"),
    *("div", "p", "li", "ul", "dl", "dt", "a", "b", "h1", "h2"),
)


def tag_soups() -> list[str]:
    """HTML whose elements end wherever they like, as it leaves."""
    random, found = Random(1), []
    for _ in range(3000):
        names = random.sample(_OFTEN, 5)
        tags = (f"<{random.choice(('', '', '/'))}{random.choice(names)}>" for _ in range(random.randint(3, 25)))
        html = "".join(tag + random.choice(("x", "", "")) for tag in tags)
        found.append(for_jupyter(f"{html}x"))
    return found


def for_jupyter(html: str) -> str:
    return str(rich({"text/html": html}).bundle()["text/html"])


def in_script(value: object) -> str:
    return json.dumps(value).replace("<", "\\u003c")


_COVER = "<div style='position:fixed;top:0;left:0;width:9999px;height:9999px;z-index:9'>x</div>"
_SHEETS = "<style>*, body, header, b + header {display:none}</style><style>p {} } header {display:none}</style>x"


def beside_a_cell() -> str:
    """A page that looks whether what it puts into an element stays within it, and says what does not."""
    return f"""<!doctype html><body><header style="height:50px">ours</header></body><script>
const outside = [], header = document.querySelector("header")
for (const soup of {in_script(tag_soups())}) for (const kind of ["", "<!doctype html>"]) {{
  const text = `${{kind}}<main><p id=a><div id=b>${{soup}}</div><i id=c></i></main>`
  const page = new DOMParser().parseFromString(text, "text/html")
  const [b, c] = ["b", "c"].map(name => page.getElementById(name))
  const within = b.children.length == 1 && b.firstChild.textContent == b.textContent
  if (c.previousElementSibling != b || !within) outside.push(soup)
}}
for (const part of {in_script([for_jupyter(_COVER), for_jupyter(_SHEETS), _COVER])}) {{
  document.body.appendChild(document.createElement("div")).innerHTML = part
  if (document.elementFromPoint(20, 20) != header) outside.push(part)
}}
top.ran += ` outside: ${{JSON.stringify(outside)}}.`
</script>"""


def e2b_results(address: Address) -> Iterator[Result]:
    def read(uri: str) -> bytes:
        return PNG

    return (result(output(filled(one, address())), read) for one in BUNDLES)


def reprs(one: Result) -> dict[str, Any]:
    """What IPython asks for, in its order: the whole, and then each."""
    names = {"text/html": "html", "image/svg+xml": "svg", "text/markdown": "markdown", "text/latex": "latex"}
    single = {mime: getattr(one, f"_repr_{name}_")() for mime, name in {**names, "image/png": "png"}.items()}
    return {mime: part for mime, part in {**single, **one._repr_mimebundle_()}.items() if part is not None}


def own_reprs(address: Address) -> list[str]:
    """A notebook and its cells as IPython asks for them."""
    notebook = notebook_of(address)
    return [str(one._repr_html_()) for one in (notebook, *notebook)]


@pytest.mark.sampled(0)
@pytest.mark.threat("W8")
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
@pytest.mark.filterwarnings("ignore:IPython3 lexer unavailable")  # of nbconvert where there is no IPython
def test_nothing_of_a_cell_runs_or_calls_wherever_it_is_shown(tmp_path: Path) -> None:
    with Callers() as callers:

        def addresses(display: str) -> Address:
            numbers = iter(range(10_000))
            return lambda: callers.url(f"{display}-{next(numbers)}")

        page_, raw = addresses("page"), addresses("raw")
        pages = {
            "page": notebook_of(page_).to_html(),
            "export": exported(addresses("export")),
            "lab": converted(addresses("lab"), "lab"),
            "classic": converted(addresses("classic"), "classic"),
            "reprs": as_a_front_end_does([reprs(one) for one in e2b_results(addresses("reprs"))]),
            "own": as_a_front_end_does([{"text/html": one} for one in own_reprs(addresses("own"))]),
            "beside": beside_a_cell(),
            # as they are: what shows that the browser does run and call
            "raw": as_a_front_end_does([filled(one, raw()) for one in BUNDLES]),
        }
        callers.listen()
        done = visit(pages, tmp_path)
    names = r"\b(page|export|lab|classic|reprs|own|raw)-(\d+)\.test"
    assert f"outside: {json.dumps([_COVER])}." in done.ran  # the last is put there as it is
    called = [tuple(one.split("-")) for one in callers.called]
    for found in (re.findall(names, done.ran), re.findall(names, done.looked_up), called):
        assert sorted({one for one in found if one[0] != "raw"}) == []
    assert sum(display == "raw" for display, _ in called) >= 50, called


class _Elements(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [(tag, name, value or "") for name, value in attrs or [("", "")]]


@pytest.mark.threat("W8")
@pytest.mark.parametrize("bundle", BUNDLES)
def test_no_script_or_address_is_left_for_a_front_end(bundle: dict[str, Any]) -> None:
    views = rich(filled(bundle, "http://leak.test/")).bundle()
    assert views.keys() <= {"text/plain", "text/html", "text/latex", "application/json", DATAFRAME_MIME}
    assert "leak" not in str(views.get("text/latex", ""))
    for tag, name, value in _Elements(str(views.get("text/html", ""))).found:
        assert tag not in ("base", "form", "iframe", "link", "math", "meta", "object", "script", "svg")
        assert not name.startswith("on")
        assert "leak" not in value or name in ("alt", "id", "title"), (tag, name)
        assert name != "src" or re.fullmatch(r"data:image/(svg\+xml|png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]*", value)


@pytest.mark.threat("W8")
def test_reprs_of_jupyter_are_a_frame_without_rights_and_text() -> None:
    notebook = notebook_of(lambda: "http://leak.test/")
    assert [one[:2] for one in _Elements(notebook._repr_html_() or "").found if one[0] != "iframe"] == []
    assert ("iframe", "sandbox", "") in _Elements(notebook._repr_html_() or "").found
    with Session() as session:
        cell = session.run("A = type('</pre><script>', (), {}); a = A()\nprint('<img src=x>\\r<b>$y$'); {'<i>': 1}")
        assert cell._repr_html_() == "<pre>&lt;b&gt;$y$\n{&#x27;&lt;i&gt;&#x27;: 1}</pre>"
        rows = "A: type\na: &lt;/pre&gt;&lt;script&gt;"
        assert session._repr_html_() == f"<pre>&lt;Session isolated, open&gt;\n{rows}</pre>"
    assert session._repr_html_() == "<pre>&lt;Session isolated, closed&gt;</pre>"


def test_a_large_notebook_shows_as_its_repr_in_jupyter() -> None:
    notebook = Notebook()
    data = {"text/plain": "<" * 100_000}
    for place in range(30):
        cell = Cell(id=f"c{place}", number=place, source="", state=CellState.COMPLETED, outputs=(output(data),))
        notebook.record(cell, {})
    assert (notebook._repr_html_(), repr(notebook)) == (None, "<Notebook of 30 cells>")


# --- what stays ---------------------------------------------------------------------------------------------


def shown(html: str) -> str:
    own = f"cb-shown-{hashlib.sha256(html.encode()).hexdigest()[:12]}"
    return f'<div class="{own}" style="contain:content;overflow:auto">{html}</div>'


def test_no_style_sheet_of_an_output_means_another_of_its_page() -> None:
    one, other = (
        rich({"text/html": f"<style>td.total{{color:{color}}}</style><table><tr><td class=total>1</table>"}).bundle()
        for color in ("red", "green")
    )
    (first,), (second,) = (re.findall(r"class=\"(cb-shown-\w+)\"", str(html["text/html"])) for html in (one, other))
    assert first != second
    assert f".{first} td.cb-total" in str(one["text/html"])
    assert ".cb-shown " not in str(one["text/html"])


@pytest.mark.parametrize(
    ("data", "bundle"),
    [
        ({"text/plain": ""}, {"text/plain": ""}),
        ({"text/plain": "a\x1b[1mb\ud800"}, {"text/plain": "a\x1b[1mb\ufffd"}),
        ({"application/json": [1]}, {"application/json": [1], "text/plain": '{\n "application/json": [\n  1\n ]\n}'}),
        ({DATAFRAME_MIME: {"columns": []}, "text/plain": "x"}, {DATAFRAME_MIME: {"columns": []}, "text/plain": "x"}),
        ({"image/png": PNG64, "text/plain": "x"}, {"image/png": PNG64, "text/plain": "x"}),
        ({"text/html": "<b>x</b>", "text/plain": "x"}, {"text/html": shown("<b>x</b>"), "text/plain": "x"}),
        ({"text/html": "$5 to $6"}, {"text/html": shown("<span>$</span>5 to <span>$</span>6")}),
        ({"image/svg+xml": "<svg/>"}, {"text/html": f'<img alt="image" src="data:image/svg+xml;base64,{SVG64}">'}),
        ({"text/html": "<b>x</b>", "image/svg+xml": "<svg/>"}, {"text/html": shown("<b>x</b>")}),
        ({"text/latex": "$\\frac{x}{2}$", "text/plain": "x"}, {"text/latex": "$\\frac{x}{2}$", "text/plain": "x"}),
    ],
)
def test_views_of_a_bundle(data: dict[str, Any], bundle: dict[str, Any]) -> None:
    assert rich(data).bundle() == bundle


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ({"application/vnd.plotly.v1+json": {}, "text/html": "<div><script>x</script></div>"}, "{0}, {1}"),
        ({"text/latex": "$\\href{https://x}{x}$"}, "text/latex"),
        ({"image/png": "PHN2Zy8+"}, "image/png"),
        ({"image/jpeg": PNG64}, "image/jpeg"),
        ({"application/json": float("nan")}, "application/json"),
        ({"text/html": ["<b>"]}, "text/html"),
        ({"<b>": ""}, "a part of no MIME type"),
        ({f"text/x{n}": "" for n in range(10)}, ", ".join(f"text/x{n}" for n in range(8)) + " and 2 more"),
    ],
)
def test_what_is_left_out_is_named_under_the_text(data: dict[str, Any], named: str) -> None:
    note = LEFT_OUT.format(named.format(*data))
    assert rich({"text/plain": "x", **data}).bundle() == {"text/plain": f"x\n{note}"}


def test_markdown_leaves_as_html_by_the_table() -> None:
    pytest.importorskip("markdown_it", reason="markdown-it-py, of the extra pages, reads Markdown")
    assert rich({"text/markdown": "**a** $x$ [b](javascript:c)"}).bundle() == {
        "text/plain": "**a** $x$ [b](javascript:c)",
        "text/html": shown(
            "<p><strong>a</strong> <code class=formula>x</code> b <code>javascript:c</code></p>\n"
        ),
    }


def test_a_table_of_pandas_keeps_its_looks_in_a_document() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a<b>": [1, 2], "c": ["$x", "y"]})
    table = rich({"text/html": frame._repr_html_()}).bundle()["text/html"]
    assert isinstance(table, str)
    assert '<table border="1" class="cb-dataframe">' in table
    assert re.search(r"\.cb-shown-[0-9a-f]{12} \.cb-dataframe tbody tr th\{", table)
    assert "<th>a&lt;b&gt;</th>" in table
    assert html.unescape(re.sub("<style.*?</style>|<[^>]*>|\\s", "", table, flags=re.DOTALL)) == "a<b>c01$x12y"


@pytest.mark.parametrize(
    ("latex", "harmless"),
    [
        ("$\\displaystyle \\left[\\begin{matrix}1 & x_{1}\\\\0 & \\sqrt{2}\\end{matrix}\\right]$", True),
        ("\\begin{align*}a &\\leq b\\\\c &\\lt 5\\,\\%\\end{align*}", True),
        ("$$\\operatorname{erf}{\\left(x \\right)} \\text{ for }\\: x$$", True),
        ("$\\url{x}$", False),
        ("$\\hrefx$", False),
        ("$\\def\\x{}$", False),
        ("$\\begin{html}x\\end{html}$", False),
        ("$\\begin {html}$", False),
        ("$\\begin$", False),
        ("$^^5chref{x}{y}$", False),
        ("$a < b$", False),
        ("$#1$", False),
        ("$\\\\[-99em]x$", False),
        ("$" + "{" * 60 + "}" * 60 + "$", False),
        ("x" * 20_001, False),
        ("\\", False),
    ],
)
def test_latex_is_typeset_where_its_commands_only_draw(latex: str, harmless: bool) -> None:
    assert is_harmless(latex) is harmless


def test_a_document_holds_bytes_as_what_they_are() -> None:
    notebook = Notebook()
    uris = [f"notebook://cell/c1/image/{n}" for n in range(2)]
    data = [{"image/png": uri, "text/plain": "a"} for uri in uris]
    outputs = tuple(Output(type=type_of(one), data=one, uri=one["image/png"]) for one in data)
    blobs = dict(zip(uris, (Blob("image/png", PNG), Blob("image/png", b"<svg onload=x>")), strict=True))
    notebook.record(Cell(id="c1", number=1, source="", state=CellState.COMPLETED, outputs=outputs), blobs)
    (cell,) = notebook.to_ipynb()["cells"]  # type: ignore[misc]
    assert [one["data"] for one in cell["outputs"]] == [
        {"text/plain": "a", "image/png": PNG64},
        {"text/plain": f"a\n{LEFT_OUT.format('image/png')}"},
    ]
    assert notebook.to_html().count("<img") == 1


LONG_REFERENCE = f"<b title='&#{'9' * 5000};'>&#{'9' * 5000};</b>"


def reports(markup: str) -> Notebook:
    """A cell with such HTML, and one after it."""
    notebook = Notebook()
    for number, data in enumerate(({"text/plain": "a", "text/html": markup}, {"text/plain": "an hour of work"}), 1):
        outputs = (Output(type=type_of(data), data=data),)
        notebook.record(
            Cell(id=f"c{number}", number=number, source="", state=CellState.COMPLETED, outputs=outputs), {}
        )
    return notebook


def test_a_reference_of_any_length_is_a_character_that_is_none() -> None:
    document, html = reports(LONG_REFERENCE).to_ipynb(), reports(LONG_REFERENCE).to_html()
    (first, _) = document["cells"]  # type: ignore[misc]
    assert '<b title="\ufffd">\ufffd</b>' in first["outputs"][0]["data"]["text/html"]
    assert "&lt;b title=&quot;\ufffd&quot;&gt;\ufffd&lt;/b&gt;" in html
    assert Result(text="a", html=LONG_REFERENCE)._repr_html_() == first["outputs"][0]["data"]["text/html"]


def notebook_that_shows(*texts: str) -> Notebook:
    """A notebook of one cell, which shows each text as HTML."""
    notebook = Notebook()
    shown = tuple(output({"text/plain": "x", "text/html": text}) for text in texts)
    notebook.record(Cell(id="c1", number=1, source="x", state=CellState.COMPLETED, outputs=shown), {})
    return notebook


UNITS = ("$", "$a", "\\", "`", "&", "<p>", "<b>a", '"', "'", "\u202e", "\U000e0001", "\n", "é")


@pytest.mark.threat("W11")
@pytest.mark.parametrize("unit", UNITS)
def test_a_document_takes_at_most_tenfold_what_its_cells_show(unit: str) -> None:
    source = "<p>x" + unit * (9_000 // len(unit))
    with_it, without = notebook_that_shows(source), notebook_that_shows("<p>x")
    assert len(with_it.to_html()) - len(without.to_html()) <= 10 * len(source)
    sizes = [len(json.dumps(one.to_ipynb(), ensure_ascii=False)) for one in (with_it, without)]
    assert sizes[0] - sizes[1] <= 10 * len(source)


@pytest.mark.threat("W11")
def test_outputs_that_a_document_has_no_room_for_are_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cellblock.session.shown.MOST_EXPORTED", 20_000)
    notebook = notebook_that_shows(*(f"<p>{n}:" + "x" * 4_000 for n in range(50)))
    page, empty = notebook.to_html(), notebook_that_shows().to_html()
    assert len(page) - len(empty) < 20_000 + 50 * (len(NO_ROOM) + 100)
    assert ("0:xx" in page, "49:xx" in page, page.count(NO_ROOM) > 40) == (True, False, True)
    document: Any = notebook.to_ipynb()
    outputs = document["cells"][0]["outputs"]
    assert len(json.dumps(outputs)) < 20_000 + 50 * (len(NO_ROOM) + 100)
    assert ("0:xx" in json.dumps(outputs[0]), outputs[-1]["text"], len(outputs)) == (True, NO_ROOM, 50)
    assert with_outputs({"cells": [{"cell_type": "code"}]}, dict(enumerate(notebook.shown())))["cells"][0] == {
        "cell_type": "code", "execution_count": 1, "outputs": outputs,
    }  # fmt: skip


def test_a_part_that_its_reader_fails_at_is_left_out_of_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cellblock.session.markup.unescape", html.unescape)  # fails at the reference
    notebook = reports(LONG_REFERENCE)
    first, second = notebook.to_ipynb()["cells"]  # type: ignore[misc]
    assert first["outputs"][0]["data"] == {"text/plain": f"a\n{LEFT_OUT.format('text/html (ValueError)')}"}
    assert second["outputs"][0]["data"] == {"text/plain": "an hour of work"}
    assert "text/html (ValueError)" in notebook.to_html()
