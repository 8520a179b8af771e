"""HTML of cells on a page: what may be shown is, and nothing of it runs, or makes a browser connect to anything."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cellblock.cell import Cell, CellState
from cellblock.outputs import Output, OutputType
from cellblock.session.markup import sanitized
from cellblock.session.notebook import Notebook

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PNG = "data:image/png;base64,iVBORw0KGgo="

HOSTILE = (
    "<link rel=preconnect href='{url}'>",
    "<link rel='dns-prefetch preconnect' href='{url}'><link rel=prefetch href='{url}'>",
    "<link rel=stylesheet href='{url}'>",
    "<link rel=icon href='{url}'><link rel=manifest href='{url}'>",
    "<LINK REL=PRECONNECT HREF='{url}'>",
    "<svg><link rel=preconnect href='{url}'></svg>",
    "<p title='<link rel=preconnect href={url}>'>",
    "<p title=\"a<b\"><link rel=preconnect href='{url}'>",
    "<!--><link rel=preconnect href='{url}'>-->",
    "<!-- --!><link rel=preconnect href='{url}'> -->",
    "<![CDATA[><link rel=preconnect href='{url}'>]]>",
    "<?x ><link rel=preconnect href='{url}'>?>",
    "<style><!--</style><link rel=preconnect href='{url}'>--></style>",
    "<noscript><p title=\"</noscript><link rel=preconnect href='{url}'>\"></noscript>",
    "<textarea><p title=\"</textarea><link rel=preconnect href='{url}'>\"></textarea>",
    "<xmp><p title='</xmp><link rel=preconnect href={url}>'></xmp>",
    "<svg><style><p title='</style><link rel=preconnect href={url}>'></style></svg>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src={url}&gt;'>",
    "<scr\x00ipt>fetch('{url}')</scr\x00ipt><l\x00ink rel=preconnect href='{url}'>",
    "<iframe src='{url}'></iframe>",
    "<iframe srcdoc=\"<img src='{url}'>\"></iframe>",
    "<frameset><frame src='{url}'></frameset>",
    "<object data='{url}'></object><embed src='{url}'>",
    "<applet archive='{url}'></applet><portal src='{url}'></portal><fencedframe src='{url}'></fencedframe>",
    "<meta http-equiv=refresh content='0;url={url}'>",
    "<meta http-equiv=link content='&lt;{url}&gt;; rel=preconnect'>",
    "<base href='{url}'><img src=x><a href=x ping='{url}'>x</a>",
    "<img src='{url}'><image src='{url}'><img srcset='{url} 1x'>",
    "<img src='data:image/svg+xml,<svg xmlns=\"http://www.w3.org/2000/svg\"><image href=\"{url}\"/></svg>'>",
    "<picture><source srcset='{url}'><img></picture>",
    "<video src='{url}' poster='{url}' autoplay></video><audio src='{url}' autoplay></audio><track src='{url}'>",
    "<table background='{url}'><tr><td background='{url}'>x</table><body background='{url}'>",
    "<style>body {{ background: url('{url}') }}</style>",
    "<style>@import '{url}';</style><style>@import url({url});</style>",
    "<style>@font-face {{ font-family: x; src: url({url}) }} p {{ font-family: x }}</style><p>x",
    "<p style=\"background: url('{url}')\">x",
    "<p style=\"background: u\\72l('{url}')\">x",
    "<p style='background: u&#114;l({url})'>x",
    "<p style='background: image-set(\"{url}\" 1x)'>x",
    "<script>fetch('{url}')</script><script src='{url}'></script>",
    "<img src=x onerror=\"fetch('{url}')\"><p onclick=x>",
    "<svg onload=\"fetch('{url}')\"><image href='{url}'/><use href='{url}#x'/></svg>",
    "<form action='{url}'><button autofocus onfocus=\"this.form.submit()\">x</button></form>",
    "<input type=image src='{url}'><input autofocus onfocus=\"fetch('{url}')\">",
    "<template shadowrootmode=open><img src='{url}'></template>",
    "<a href=\"javascript:fetch('{url}')\" id=x>x</a><details open ontoggle=\"fetch('{url}')\">x</details>",
)  # fmt: skip


def page_of(*bundles: str) -> str:
    notebook = Notebook()
    outputs = tuple(Output(type=OutputType.HTML, data={"text/html": one}) for one in bundles)
    notebook.record(Cell(id="c1", number=1, source="", state=CellState.COMPLETED, outputs=outputs), {})
    return notebook.to_html()


@pytest.fixture
def listeners() -> Iterator[list[socket.socket]]:
    """One for each hostile bundle, and one that has to hear something."""
    with ExitStack() as stack:
        found = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in (*HOSTILE, "control")]
        yield found


def url_of(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}/"


def is_heard(listener: socket.socket, seconds: float = 0) -> bool:
    listener.settimeout(seconds)
    try:
        listener.accept()[0].close()
    except (BlockingIOError, TimeoutError):
        return False
    return True


@pytest.mark.threat("W8")
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
def test_no_markup_of_a_cell_makes_a_browser_connect(tmp_path: Path, listeners: list[socket.socket]) -> None:
    *heard, control = listeners
    bundles = [one.format(url=url_of(listener)) for one, listener in zip(HOSTILE, heard, strict=True)]
    (tmp_path / "page.html").write_text(page_of(*bundles))
    then = f"setTimeout(() => {{ new Image().src = '{url_of(control)}' }}, 1500)"
    (tmp_path / "all.html").write_text(f'<iframe src=page.html width=900 height=40000 onload="{then}"></iframe>')
    options = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    options += "--disable-component-update --disable-sync --window-size=1000,41000 --remote-debugging-port=0"
    command = [str(CHROMIUM), *options.split(), f"--user-data-dir={tmp_path / 'user'}", f"file://{tmp_path}/all.html"]
    with (tmp_path / "said").open("w") as said:
        browser = subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True)
    try:
        assert is_heard(control, 60), (tmp_path / "said").read_text()
    finally:
        os.killpg(browser.pid, signal.SIGKILL)
        browser.wait()
    assert [one for one, listener in zip(HOSTILE, heard, strict=True) if is_heard(listener)] == []


@pytest.mark.threat("W8")
@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_address_is_left_in_an_element(hostile: str) -> None:
    left = sanitized(hostile.format(url="http://leak.test/"))
    assert "leak" not in "".join(piece.partition(">")[0] for piece in left.split("<")[1:])


@pytest.mark.parametrize(
    "html",
    [
        '<p>a &amp; b &lt;c&gt; <b class="x">bold</b><br>',
        '<table border="1"><tr><th colspan="2" style="text-align: right">x</th></tr></table>',
        "<style>#T_1 .row0 { color: rgb(1, 2, 3) } p:nth-child(2) { margin: 0 }</style>",
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
        ("<p onclick=x CLASS='a\"b'>x</P>", '<p class="a&quot;b">x</p>'),
        ("<custom-thing>kept</custom-thing>", "kept"),
        ("<script>gone", ""),
        ("<b", "&lt;b"),
    ],
)
def test_the_rest_is_text_or_left_out(html: str, shown: str) -> None:
    assert sanitized(html) == shown
