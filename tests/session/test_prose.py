"""The text between the cells of a document, on its page: Markdown as a table allows it, all else as text (W8)."""

import base64
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest

pytest.importorskip("markdown_it", reason="markdown-it-py, of the extra pages, reads Markdown")

from cellblock.cell import Cell, CellState
from cellblock.outputs import Output, OutputType
from cellblock.session import jupyter
from cellblock.session.ipynb import ipynb
from cellblock.session.markdown import MAX_BRACKETS, MAX_CHARS, rendered
from cellblock.session.page import page
from cellblock.session.shown import MOST_MARKDOWN, Blob, Prose, Shown

PNG = b"\x89PNG\r\n\x1a\nimage"
PNG64 = base64.b64encode(PNG).decode()
IMG = f'<img alt="a plot" src="data:image/png;base64,{PNG64}">'


def html(text: str, **images: Blob) -> str:
    found = rendered(text, images)
    assert found is not None
    return re.sub(r">\n+", ">", found).strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A *title*", '<h2 id="text-A-*title*">A <em>title</em></h2>'),
        ("## Two\ntext", '<h3 id="text-Two">Two</h3><p>text</p>'),
        ("###### Six", '<h6 id="text-Six">Six</h6>'),
        ("a **b** ~~c~~ `d<e>`\\\nf", "<p>a <strong>b</strong> <s>c</s> <code>d&lt;e&gt;</code><br>f</p>"),
        ("- a\n- b\n  1. c", "<ul><li>a\n</li><li>b\n<ol><li>c\n</li></ol></li></ul>"),
        ("3. a\n\n4. b", "<ol start=3><li><p>a</p></li><li><p>b</p></li></ol>"),
        ("```python\nx < 1\n```", "<pre><code>x &lt; 1\n</code></pre>"),
        ("    x = 1", "<pre><code>x = 1\n</code></pre>"),
        ("> said\n\n---", "<blockquote><p>said</p></blockquote><hr>"),
        (
            "| a | b |\n|---|--:|\n| 1 | *2* |",
            "<table><thead><tr><th>a</th><th style=text-align:right>b</th></tr></thead>"
            "<tbody><tr><td>1</td><td style=text-align:right><em>2</em></td></tr></tbody></table>",
        ),
        ("costs \\$5 and $6", "<p>costs $5 and $6</p>"),
        ("$x_1 * y_1$ & $$\n\\\\frac_a_b\n$$", "<p><code class=formula>x_1 * y_1</code> &amp; "
         "<code class=formula>\\\\frac_a_b</code></p>"),
        ("&lt;b&gt; &copy;", "<p>&lt;b&gt; ©</p>"),
    ],
)  # fmt: skip
def test_markdown_is_shown_as_it_is_meant(text: str, expected: str) -> None:
    assert html(text) == expected


_A = 'rel="noopener noreferrer nofollow">'


@pytest.mark.threat("W8")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](https://x.org/?a=1&b)", f'<p><a href="https://x.org/?a=1&amp;b" {_A}a</a></p>'),
        ("<https://x.org>", f'<p><a href="https://x.org" {_A}https://x.org</a></p>'),
        ("<a@x.org>", f'<p><a href="mailto:a@x.org" {_A}a@x.org</a></p>'),
        ("[top](#A-title)", '<p><a href="#text-A-title">top</a></p>'),
        ("[a](javascript:alert(1))", "<p>a <code>javascript:alert(1)</code></p>"),
        ("[a](JaVa&#115;cript:alert)", "<p>a <code>JaVascript:alert</code></p>"),
        ("[a](&#1;javascript:alert)", "<p>a <code>&amp;#1;javascript:alert</code></p>"),
        ("<javascript:alert(1)>", "<p>javascript:alert(1) <code>javascript:alert(1)</code></p>"),
        ("[a](vbscript:x) [b](data:text/html,x)", "<p>a <code>vbscript:x</code> b <code>data:text/html,x</code></p>"),
        ("[a](file:///etc/passwd)", "<p>a <code>file:///etc/passwd</code></p>"),
        ("[a](//x.org) [b](data.csv)", "<p>a <code>//x.org</code> b <code>data.csv</code></p>"),
        ("[a][b]\n\n[b]: javascript:alert(1)", "<p>a <code>javascript:alert(1)</code></p>"),
        ('[a](https://x "\\" onclick=alert(1)")', f'<p><a href="https://x" {_A}a</a></p>'),
        ('[a](https://x"onclick=alert)', f'<p><a href="https://x%22onclick=alert" {_A}a</a></p>'),
    ],
)
def test_links_lead_to_the_web_to_mail_and_within_the_text(text: str, expected: str) -> None:
    assert html(text) == expected


@pytest.mark.threat("W8")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("![a plot](attachment:p.png)", IMG),
        (f"![a plot](data:image/png;base64,{PNG64})", IMG),
        ("![a plot](attachment:none.png)", "[a plot] <code>attachment:none.png</code>"),
        ("![a plot](attachment:svg)", "[a plot] <code>attachment:svg</code>"),
        ("![a plot](https://x.org/p.png)", "[a plot] <code>https://x.org/p.png</code>"),
        ('![" onload=alert(1)](x.png)', "[&quot; onload=alert(1)] <code>x.png</code>"),
        ("![a plot](data:image/svg+xml;base64,PHN2Zz4=)", "[a plot] <code>data:image/svg+xml;base64,PHN2Zz4=</code>"),
        ("![a plot](data:image/png;base64,====)", "[a plot] <code>data:image/png;base64,====</code>"),
    ],
)
def test_images_are_those_that_come_with_the_text(text: str, expected: str) -> None:
    images = {"p.png": Blob("image/png", PNG), "svg": Blob("image/svg+xml", b"<svg onload=alert(1)>")}
    found = rendered(text, images)
    assert found == f"<p>{expected}</p>\n"


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: set[tuple[str, str]] = set()
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.update((tag, name) for name, _ in attrs or [("", "")])
        self.open += [] if tag in ("br", "hr", "img") else [tag]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


_EVIL = [
    "<script>alert(1)</script>",
    "a <img src=x onerror=alert(1)> b",
    "<!-- <b> --><?php ?><![CDATA[ <b> ]]><!DOCTYPE html>",
    "</section></main><iframe src=javascript:alert(1)>",
    "<style>*{display:none}</style><base href=https://x><meta http-equiv=refresh content=0>",
    '# </h2><script>\n\n```"><script>\n</code></pre><script>\n```',
    "```<script>\nx\n```\n\n`</code><script>`\n\n$</code><script>$",
    "[<script>](https://x/<script>)![<script>](<script>)[a](<https://x/ onclick=>)",
    "| <script> |\n|---|\n| </td><script> |",
    "<a href=javascript:alert(1)>x</a> &lt;script&gt; &#60;script&#62;",
    "- <div onclick=alert(1)>\n> <svg/onload=alert(1)>\n\n1. <math><mi//xlink:href=x>",
]


@pytest.mark.threat("W8")
@pytest.mark.parametrize("text", [*_EVIL, "\n\n".join(_EVIL)])
def test_html_in_markdown_is_text(text: str) -> None:
    tags = _Tags(html(text))
    assert tags.open == []
    assert {tag for tag, _ in tags.seen} <= {
        *("p", "h2", "pre", "code", "a", "table", "thead", "tbody", "tr", "th", "td", "ul", "ol", "li", "blockquote")
    }
    assert {name for _, name in tags.seen} <= {"", "id", "href", "rel", "class"}


@pytest.mark.threat("W8")
def test_what_is_not_seen_in_it_is_named() -> None:
    assert html("a\u202eb \x1b[31mred") == "<p>a[U+202E]b [U+001B][31mred</p>"


def test_text_that_would_take_long_is_shown_as_it_is_written() -> None:
    assert rendered("x" * (MAX_CHARS + 1), {}) is None
    assert rendered("[" * (MAX_BRACKETS + 1), {}) is None
    assert "<pre>[[[" in page([Prose("[" * (MAX_BRACKETS + 1), True)])
    assert html("> " * 5000).startswith("<blockquote><blockquote>")


def test_a_document_renders_so_much_markdown_and_shows_the_rest_as_it_is_written() -> None:
    text = "**a** " + "x" * (MOST_MARKDOWN // 4)
    shown = Shown(
        Cell(id="one", number=1, source="", state=CellState.COMPLETED),
        tuple((Output(type=OutputType.TEXT, data={"text/markdown": text}), ()) for _ in range(3)),
    )
    cells = [Prose(text, True), shown, Prose("**small**", True)]
    found = page(cells)
    assert (found.count("<strong>a</strong>"), found.count("<pre>**a** xxx")) == (3, 1)
    assert "<strong>small</strong>" in found
    (cell,) = ipynb([replace(shown, outputs=shown.outputs * 2)])["cells"]  # type: ignore[misc]
    views = [output["data"]["text/html"] for output in cell["outputs"]]  # type: ignore[index]
    assert ["<strong>" in view for view in views] == [True] * 3 + [False] * 3


DOCUMENT = {
    "nbformat": 4,
    "cells": [
        {
            "cell_type": "markdown",
            "source": ["# Title\n", "![a plot](attachment:p.png)"],
            "attachments": {"p.png": {"image/png": PNG64}, "bad": {"image/png": "=", "text/html": "<b>"}, "worse": 1},
        },
        {"cell_type": "code", "source": "1 + 1"},
        {"cell_type": "raw", "source": "*as it is* <b>"},
        {"cell_type": "code", "source": "never_ran"},
    ],
}


def test_a_document_is_shown_in_its_order_with_what_did_not_run() -> None:
    ran = Shown(Cell(id="c1", number=1, source="1 + 1", state=CellState.COMPLETED), ())
    text = page(jupyter.in_order(DOCUMENT, {1: ran}))
    places = [text.index(part) for part in ('id="text-Title"', IMG, "1 + 1", "*as it is* &lt;b&gt;", "never_ran")]
    assert places == sorted(places)
    assert "<p>2 cells</p>" in text
    assert '<section class="cell idle" id="place-3">' in text


def test_without_the_package_markdown_is_shown_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    assert "<section class=text>\n<pre># A &lt;b&gt;</pre></section>" in page([Prose("# A <b>", True)])
