"""The readers of text, and what shows a cell: a page, a notebook, a terminal."""

from __future__ import annotations

import io
import json
import unicodedata
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import cellblock.session.ipynb
import cellblock.session.page  # noqa: F401 - what readers import when they are first used
from cellblock.cell import Cell, CellState
from cellblock.cli.terminal import Printer
from cellblock.executors.process.linked import gone
from cellblock.executors.protocol import Recovery, Written
from cellblock.executors.text import TextBudget
from cellblock.session.account import Account
from cellblock.session.notebook import Notebook
from cellblock.session.record import Recorder, losses
from cellblock.session.rich import markdown
from cellblock.session.shown import Room
from cellblock.text import inert, valid
from cellblock.wire import messages as m
from cellblock.wire.codec import decode_event
from cellblock.wire.frames import Frame, ProtocolError
from cellblock.wire.text import Demultiplexer, Place, Text
from fuzzer import seeds
from fuzzer.cases import Case
from fuzzer.target import Target

markdown("# [a](b) `c`", {}, Room())  # what it imports and makes when it is first used
valid("\ud800")  # the same


def _read_text(case: Case) -> tuple[list[Text | Place], list[Written]]:
    demultiplexer, budget = Demultiplexer(seeds.NONCE), TextBudget(200)
    items = [item for chunk in case for item in demultiplexer.feed(chunk)]
    items += demultiplexer.rest()
    told = [
        written
        for item in items
        for written in (budget.add(item) if isinstance(item, Text) else budget.before_display())
    ]
    return items, [*told, *budget.finish()]


def _check_text(case: Case, read: tuple[list[Text | Place], list[Written]]) -> None:
    items, told = read
    whole = list(Demultiplexer(seeds.NONCE).feed(b"".join(case)))
    streams = {
        name: b"".join(item.data for item in items if isinstance(item, Text) and item.stream == name)
        for name in ("stdout", "stderr")
    }
    for name, data in streams.items():
        expected = b"".join(item.data for item in whole if isinstance(item, Text) and item.stream == name)
        assert data.startswith(expected), "text that depends on how the pipe was cut"
    assert [item for item in items if isinstance(item, Place)] == [item for item in whole if isinstance(item, Place)]
    assert all(type(item.text) is str and item.stream in streams for item in told)
    told_bytes = sum(len(item.text.encode()) for item in told)
    assert told_bytes <= 3 * 301, "more text than was asked for"
    assert sum(item.cut for item in told) <= sum(map(len, streams.values()))


class Screen(io.StringIO):
    """A terminal that keeps what it is sent."""

    def isatty(self) -> bool:
        return True


def _print(case: Case) -> str:
    screen = Screen()
    printer = Printer(screen)
    for at, part in enumerate(case):
        text = part.decode("utf-8", "surrogateescape")
        if at % 3 == 2:
            printer.line(text)
        else:
            printer.write(text)
    printer.end_line()
    return screen.getvalue()


def _check_printed(case: Case, sent: str) -> None:
    _check_inert(sent, "what a terminal is sent", also="\r")


def _shown(case: Case) -> tuple[str, dict[str, object], str, list[str]]:
    """The page, the document, the model's text, and each text made inert, of a cell that showed all this."""
    draft = Cell(id="c1", number=1, source="", state=CellState.RUNNING)
    recorder, buffers, names = Recorder(draft, 500, Account().share()), [], {}
    finished = m.Finished(number=1, failure=None, duration_ms=1.0, cpu_ms=1.0, memory_peak=1)
    for step in case:
        kind, rest = step[:1], step[1:]
        text = rest.decode("utf-8", "replace")
        try:
            if kind == b"s":
                draft = replace(draft, source=rest.decode("utf-8", "surrogateescape"))
            elif kind in (b"o", b"e"):
                recorder.write(Written(stream="stdout" if kind == b"o" else "stderr", text=text))
            elif kind == b"b":
                buffers.append(rest)
            elif kind == b"l":
                names[text] = text
            elif kind in (b"d", b"f"):
                event = decode_event(Frame(rest, tuple(buffers)))
                buffers = []
                if isinstance(event, m.Display):
                    recorder.display(event)
                elif isinstance(event, m.Finished):
                    finished = event
        except ProtocolError:
            continue
    cell = replace(
        recorder.finish(finished, ended=None, lost=losses(Recovery(exact=False, lost=gone(names)), "gone")),
        source=draft.source,
    )
    notebook = Notebook()
    notebook.record(cell, recorder.blobs)
    printed = [inert(output.text) for output in cell.outputs]
    return notebook.to_html(), notebook.to_ipynb(), cell.text, printed


def _check_shown(case: Case, read: tuple[str, dict[str, object], str, list[str]]) -> None:
    page, document, text, printed = read
    page.encode()
    json.dumps(document, allow_nan=False).encode()
    assert len(text.encode("utf-8", "replace")) <= 500 + 100
    for one in printed:
        _check_inert(one, "text made inert")
    _check_inert(page, "the page")
    elements = Elements(page).found
    for tag, attributes in elements:
        allowed = _ATTRIBUTES.get(tag)
        assert allowed is not None, f"<{tag}> in the page"
        assert attributes.keys() <= allowed, f"<{tag}> with {attributes.keys() - allowed}"
        assert tag != "iframe" or attributes["sandbox"] == "", "a frame with rights"
        assert tag != "img" or str(attributes["src"]).startswith(_IMAGES), "an image that is fetched"
    _check_document(document)


def _check_inert(text: str, where: str, also: str = "") -> None:
    found = {f"U+{ord(one):04X}" for one in set(text) - {"\n", "\t", *also} if _acts(one)}
    assert not found, f"{', '.join(sorted(found))} in {where}"


def _acts(character: str) -> bool:
    """Whether a terminal or a browser does something else with it than showing it, or shows nothing."""
    return unicodedata.category(character) in ("Cc", "Cf", "Cs") and character not in _SCRIPTS_NEED


_SCRIPTS_NEED = frozenset(
    "\u200c\u200d"  # joiners
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"  # seen, before numbers
).union(map(chr, range(0x13430, 0x13440)))  # how hieroglyphs stand


_ATTRIBUTES: dict[str, set[str]] = {
    **{tag: {"class"} for tag in ("head", "title", "style", "body", "main", "header", "h1", "p", "div", "span", "pre")},
    **{tag: {"class"} for tag in ("code", "table", "thead", "tbody", "tr", "th", "td", "ul", "li")},
    # Markdown, by its table
    **{tag: {"id"} for tag in ("h2", "h3", "h4", "h5", "h6")},
    **{tag: set() for tag in ("blockquote", "br", "em", "hr", "s", "strong")},
    **{tag: {"class", "style"} for tag in ("th", "td")},
    "a": {"href", "rel"},
    "ol": {"start"},
    "html": {"lang"},
    "meta": {"charset", "name", "content", "http-equiv"},
    "section": {"class", "id"},
    "img": {"alt", "src"},
    "iframe": {"sandbox", "loading", "title", "style", "srcdoc"},
}
_IMAGES = tuple(f"data:image/{kind};base64," for kind in ("png", "jpeg", "gif", "webp", "svg+xml"))


_HOSTILE = frozenset(("base", "embed", "form", "iframe", "link", "math", "meta", "object", "script", "svg"))
_IN_DOCUMENTS = frozenset((
    "text/plain", "text/html", "text/latex", "image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf",
    "application/json", "application/vnd.cellblock.dataframe+json",
))  # fmt: skip


class Elements(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment in the page")


def _check_document(document: dict[str, Any]) -> None:
    """The parts of nbformat 4.5 that come from inside."""
    (cell,) = document["cells"]
    assert type(cell["source"]) is str
    if cell["cell_type"] == "raw":
        assert cell.keys() == {"cell_type", "id", "metadata", "source"}
        assert cell["metadata"].keys() == {"cellblock", "format", "raw_mimetype"}
        assert cell["source"].partition("\n")[0].endswith(", and not run again"), "a reason of several lines"
        return
    assert cell.keys() == {"cell_type", "id", "execution_count", "metadata", "source", "outputs"}
    assert cell["metadata"].keys() - {"cellblock"} == (
        {"tags"} if cell["metadata"]["cellblock"]["state"] == "error" else set()
    )
    for output in cell["outputs"]:
        kind = output["output_type"]
        if kind == "stream":
            assert output["name"] in ("stdout", "stderr")
            assert type(output["text"]) is str
        elif kind == "error":
            assert all(type(line) is str for line in (output["ename"], output["evalue"], *output["traceback"]))
        else:
            assert kind in ("display_data", "execute_result")
            assert output["metadata"] == {}
            for mime, part in output["data"].items():
                assert mime in _IN_DOCUMENTS, f"{mime} in the document"
                assert mime.endswith("json") or type(part) is str
            for tag, attributes in Elements(str(output["data"].get("text/html", ""))).found:
                assert tag not in _HOSTILE, f"<{tag}> in the document"
                assert not any(name.startswith("on") for name in attributes), "a handler in the document"


TARGETS = (
    Target("text", seeds.pipes, _read_text, _check_text),
    Target("terminal", seeds.pipes, _print, _check_printed),
    Target("shown", seeds.cells, _shown, _check_shown, spare=8 * 2**20, each=1000),
)
