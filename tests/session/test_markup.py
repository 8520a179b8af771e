"""HTML of cells: what may be shown is, written so that it may stand in any page. `test_rich.py` asks a browser."""

from __future__ import annotations

import pytest
from hostile_bundles import HTML, filled

from cellblock.session.markup import sanitized

PNG = "data:image/png;base64,iVBORw0KGgo="


@pytest.mark.threat("W8")
@pytest.mark.parametrize("hostile", HTML)
def test_no_address_is_left_in_an_element(hostile: str) -> None:
    left = sanitized(filled(hostile, "http://leak.test/"))
    assert "leak" not in "".join(piece.partition(">")[0] for piece in left.split("<")[1:])


@pytest.mark.parametrize(
    "html",
    [
        "<p>a &amp; b &lt;c&gt; <b title=\"x\">bold</b><br>",
        '<table border="1"><tr><th colspan="2" style="text-align: right">x</th></tr></table>',
        f'<img alt="x" src="{PNG}">',
        '<details open=""><summary>more</summary>text</details>',
    ],
)
def test_what_is_harmless_stays_as_it_is(html: str) -> None:
    assert sanitized(html) == html


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("1 < 2 > 0", "1 &lt; 2 &gt; 0"),
        ("<!doctype html><title>t</title><h1>a</h1><!-- c <b> -->z", "<h1>a</h1>z"),
        ("<p onclick=x TITLE='a\"b'>x</P>", '<p title="a&quot;b">x</p>'),
        ("<custom-thing>kept</custom-thing>", "kept"),
        ("<script>gone", ""),
        ("<b", "&lt;b"),
    ],
)
def test_the_rest_is_text_or_left_out(html: str, shown: str) -> None:
    assert sanitized(html) == shown


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ('<b id=a class="x  jp-Dialog">b</b>', '<b id="cb-a" class="cb-x cb-jp-Dialog">b</b>'),
        (
            "<style scoped>#T_1 .row0, td.n { color: rgb(1, 2, 3) } p:nth-child(2) { margin: .5em }</style>x",
            "<style>.cb-shown #cb-T_1 .cb-row0,.cb-shown td.cb-n{ color: rgb(1, 2, 3) }"
            ".cb-shown p:nth-child(2){ margin: .5em }</style>x",
        ),
        ("<style>/* } p { */ b { font-family: 'A B' }</style>x", "<style>.cb-shown b{ font-family: 'A B' }</style>x"),
        ("<style>+ p, ~ p, > p {}</style>x", "<style>.cb-shown _,.cb-shown _,.cb-shown _{}</style>x"),
        ("<style>p { content: '}' } body { color: red }</style>x", "x"),
        ("<style>p { color: red } } body { color: red }</style>x", "x"),
        ("<style>p { q { color: red } }</style>x", "x"),
    ],
)
def test_names_and_styles_are_none_of_the_pages(html: str, shown: str) -> None:
    assert sanitized(html) == shown


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("</div></div>x<div>y", "x<div>y</div>"),
        ("<div><b>x</div>y</b>", "<div><b>x</b></div>y"),
        ("<div><table><div><table></table></div>x", "<div><table></table></div>x"),
        ("<table><tr><td>a<td>b<tr><td><div>c</table>", "<table><tr><td>a<td>b<tr><td><div>c</div></table>"),
        ("<ul><li>a<li><div>b<li>c</ul><li>d", "<ul><li>a<li><div>b</div><li>c</ul>d"),
        ("<td>a</td><tr>b</tr><caption>c</caption>", "abc"),
        ("<h2><div><h2>a<h3>b</h2>c</h3></div>", "<h2><div></div></h2><h2>a</h2><h3>bc</h3>"),
        ("<b>" * 300 + "x", "<b>" * 100 + "x" + "</b>" * 100),
    ],
)
def test_an_element_ends_within_what_is_written(html: str, shown: str) -> None:
    assert sanitized(html) == shown


@pytest.mark.parametrize("html", ["", " \n", "<div id=plot><script>draw()</script></div>", "<style>p {}</style><p>"])
def test_nothing_is_written_where_nothing_could_be_seen(html: str) -> None:
    assert sanitized(html) == ""
