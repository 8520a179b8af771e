"""The one way out for rich output: what a display of the host gets of a MIME bundle that a cell showed (W8).

Pages, exports, Jupyter's reprs and resources take it from here:

| MIME type | leaves as |
|---|---|
| text/plain | text |
| text/html | HTML from a list, its names and styles apart from the page's; on our pages in a frame without rights |
| text/markdown | HTML by the table of `markdown.py` |
| text/latex | itself, where each command only draws, for Jupyter; on our pages text |
| image/svg+xml | an image, in which no script runs and nothing is fetched |
| image/png, jpeg, gif, webp; application/pdf | their bytes, where they are of that type |
| application/json, the data frame's | plain data |
| all else, and what is not of its type or cannot be read | left out, and named under the text |
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from importlib.util import find_spec

from cellblock.outputs import DATAFRAME_MIME
from cellblock.session.latex import is_harmless
from cellblock.session.markup import SCOPE, sanitized
from cellblock.session.shown import IMAGES, Blob, Room, mime_type
from cellblock.text import inert, strict_json, type_name, valid, write_json

_DATA = frozenset(("application/json", DATAFRAME_MIME))
_BINARY = IMAGES | {"application/pdf"}
_MOST_NAMED = 8
_MIME = re.compile(r"[a-z]+/[A-Za-z0-9.+-]{1,80}")
_MOST_CELLS = 65_536
"""Cells of a text's tables, past which markdown-it takes none. Each takes as long as half a character."""
_OF_A_RULE = frozenset(" \t|:->*+.0123456789")
"""Characters of a line between the head and the rows of a table, in a quotation or a list too."""
_STYLE = "contain:content;overflow:auto"
"""Whatever is within the element is drawn within it, at a fixed place too."""
_SHEET = re.compile(r"<style>[^<]*+</style>")
_TAG_OR_MATH = re.compile(r"(<style>[^<]*+</style>|<[^<>]*+>)|[$\\`]++")


@dataclass(slots=True, kw_only=True)
class Rich:
    """The views of one output, each safe to show. `markup`, from HTML, and `prose`, from Markdown, are harmless HTML.

    `images` (SVG among them) and `files` are in base64 by MIME type, `json` is plain data.
    """

    text: str | None = None
    markup: str = ""
    prose: str = ""
    latex: str = ""
    images: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    json: dict[str, object] = field(default_factory=dict)

    def bundle(self) -> dict[str, object]:
        """The MIME bundle for a front end that runs what it is given, in the page that drives the host's kernel."""
        images, html = dict(self.images), apart(without_formulas(self.markup or self.prose))
        if (drawing := images.pop("image/svg+xml", None)) is not None and not html:  # SVG would be put into the page
            html = image("image/svg+xml", drawing, self.text)
        views = {} if self.text is None else {"text/plain": self.text}
        views |= {mime: view for mime, view in (("text/html", html), ("text/latex", self.latex)) if view}
        return {**views, **self.json, **images, **self.files}


def rich(data: Mapping[str, object], blobs: Iterable[Blob] = (), room: Room | None = None) -> Rich:
    """The views of a MIME bundle, for a document with that room. Its binary parts are blobs or base64."""
    found, room = Rich(), room or Room()
    parts = {**data, **{blob.mime: blob.data for blob in blobs}}
    left_out = [named for mime, part in parts.items() if (named := _left_out(found, mime, part, room))]
    if found.text is None:
        sources = [one for mime in ("text/markdown", "text/latex") if isinstance(one := data.get(mime), str)]
        sources += [write_json(found.json, indent=1)] if found.json else []
        found.text = valid(sources[0]) if sources else None
    if left_out:
        names = left_out[:_MOST_NAMED]
        more = f" and {len(left_out) - _MOST_NAMED} more" if len(left_out) > _MOST_NAMED else ""
        note = f"[left out, since a display might run or load it: {', '.join(names)}{more}]"
        found.text = f"{found.text}\n{note}" if found.text else note
    return found


def image(mime: str, encoded: str, described: str | None) -> str:
    """An image as HTML. SVG in it has no scripts and fetches nothing."""
    return f'<img alt="{escape(inert(described or "image")[:200])}" src="data:{mime};base64,{encoded}">'


def renders_markdown() -> bool:
    """True if Markdown is shown as it is meant, and not as it is written: with the extra `pages`."""
    return find_spec("markdown_it") is not None


def markdown(text: str, images: Mapping[str, Blob], room: Room) -> str:
    """Markdown as HTML; the text as it is written where it cannot be rendered, or the document has enough of it."""
    from_table: str | None = None
    if renders_markdown() and room.takes_markdown(len(text) + _cells(text) // 2):
        from cellblock.session.markdown import rendered

        from_table = rendered(text, images, room.left)
    return f"<pre>{escape(inert(text))}</pre>" if from_table is None else from_table


def _cells(text: str) -> int:
    """The most cells that tables of a text may come to: short rows are filled up to the columns of their table."""
    lines = text.split("\n")
    columns = max((line.count("|") + 1 for line in lines if "-" in line and _OF_A_RULE.issuperset(line)), default=0)
    return min(columns * len(lines), _MOST_CELLS)


def apart(html: str) -> str:
    """HTML of this module in an element of its own, whose style sheets mean no other such element of the page."""
    own = f"{SCOPE}-{hashlib.sha256(html.encode()).hexdigest()[:12]}"
    html = _SHEET.sub(lambda sheet: sheet[0].replace(f".{SCOPE} ", f".{own} "), html)
    return html and f'<div class="{own}" style="{_STYLE}">{html}</div>'


def without_formulas(html: str) -> str:
    """The same HTML without what a page would take for a formula: what begins one stands in an element of its own."""
    return _TAG_OR_MATH.sub(lambda found: found[1] or f"<span>{found[0]}</span>", html)


def _left_out(found: Rich, mime: str, part: object, room: Room) -> str:
    """Put one part where its type has a place; "" or, where it is left out, the name to tell of it.

    A border: whatever the reader of a part raises is that part's, so that no output takes the document along.
    """
    named = mime if _MIME.fullmatch(mime) else "a part of no MIME type"
    try:
        return "" if _takes(found, mime, part, room) else named
    except Exception as error:
        return f"{named} ({type_name(error)})"


def _takes(found: Rich, mime: str, part: object, room: Room) -> bool:
    """Put one part where its type has a place; whether it had one."""
    if mime in _DATA:
        if (copied := strict_json(part)) is not None:
            found.json[mime] = copied[0]
        return copied is not None
    if mime in _BINARY:
        data = _bytes(part)
        if fits := mime_type(data) == mime:
            (found.images if mime in IMAGES else found.files)[mime] = base64.b64encode(data).decode()
        return fits
    if not isinstance(part, str):
        return False
    match mime:
        case "text/plain":
            found.text = valid(part)
        case "text/html":
            found.markup = sanitized(part)
            return found.markup != ""
        case "text/markdown":
            found.prose = markdown(part, {}, room)
        case "text/latex" if is_harmless(part):
            found.latex = inert(part)
        case "image/svg+xml":
            found.images[mime] = base64.b64encode(part.encode("utf-8", "replace")).decode()
        case _:
            return False
    return True


def _bytes(part: object) -> bytes:
    if isinstance(part, bytes):
        return part
    try:
        return base64.b64decode(part, validate=True) if isinstance(part, str) else b""
    except ValueError:
        return b""
