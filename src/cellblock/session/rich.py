"""The one way out for rich output: what a display of the host gets of a MIME bundle that a cell showed (W8).

Pages, exports, Jupyter's reprs and resources take it from here. Each type leaves as `_FORMS` says; what no row names,
or what is not of its type, is left out, and named under the text. No script leaves, and nothing that is fetched.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from importlib.util import find_spec

from cellblock.outputs import DATAFRAME_MIME
from cellblock.session.inert import inert, strict_json, utf8
from cellblock.session.latex import is_harmless
from cellblock.session.markup import SCOPE, sanitized
from cellblock.session.shown import IMAGES, Blob, mime_type

_MOST_NAMED = 8
_MIME = re.compile(r"[a-z]+/[A-Za-z0-9.+-]{1,80}")
_STYLE = "contain:content;overflow:auto"
"""Whatever is within the element is drawn within it, at a fixed place too."""
_TAG_OR_MATH = re.compile(r"<[^<>]*+>|[$\\`]")


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
        images, html = dict(self.images), apart(self.markup or self.prose)
        if (drawing := images.pop("image/svg+xml", None)) is not None and not html:  # SVG would be put into the page
            html = image("image/svg+xml", drawing, self.text)
        views = {} if self.text is None else {"text/plain": self.text}
        views |= {mime: view for mime, view in (("text/html", html), ("text/latex", self.latex)) if view}
        return {**views, **self.json, **images, **self.files}


def rich(data: Mapping[str, object], blobs: Iterable[Blob] = ()) -> Rich:
    """The views of a MIME bundle. Its binary parts are blobs or base64."""
    found = Rich()
    parts = {**data, **{blob.mime: blob.data for blob in blobs}}
    left_out = [mime for mime, part in parts.items() if mime not in _FORMS or not _FORMS[mime](found, mime, part)]
    if found.text is None:
        sources = [one for mime in ("text/markdown", "text/latex") if isinstance(one := data.get(mime), str)]
        sources += [json.dumps(found.json, indent=1)] if found.json else []
        found.text = utf8(sources[0]) if sources else None
    if left_out:
        names = [mime if _MIME.fullmatch(mime) else "a part of no MIME type" for mime in left_out[:_MOST_NAMED]]
        more = f" and {len(left_out) - _MOST_NAMED} more" if len(left_out) > _MOST_NAMED else ""
        note = f"[left out, since a display might run or load it: {', '.join(names)}{more}]"
        found.text = f"{found.text}\n{note}" if found.text else note
    return found


def image(mime: str, encoded: str, described: str | None) -> str:
    """An image as HTML. SVG in it has no scripts and fetches nothing."""
    return f'<img alt="{escape(inert(described or "image")[:200])}" src="data:{mime};base64,{encoded}">'


def renders_markdown() -> bool:
    """Whether Markdown is shown as it is meant, and not as it is written: with the extra `pages`."""
    return find_spec("markdown_it") is not None


def markdown(text: str, images: Mapping[str, Blob]) -> str:
    """Markdown as HTML, with the text as it is written where it cannot be rendered."""
    from_table: str | None = None
    if renders_markdown():
        from cellblock.session.markdown import rendered

        from_table = rendered(text, images)
    return f"<pre>{escape(inert(text))}</pre>" if from_table is None else from_table


def apart(html: str) -> str:
    """HTML of this module in an element of its own, for any page, without what a page would take for a formula."""
    html = _TAG_OR_MATH.sub(lambda found: found[0] if len(found[0]) > 1 else f"<span>{found[0]}</span>", html)
    return html and f'<div class="{SCOPE}" style="{_STYLE}">{html}</div>'


def _text(found: Rich, mime: str, part: object) -> bool:
    found.text = utf8(part) if isinstance(part, str) else None
    return found.text is not None


def _plain_data(found: Rich, mime: str, part: object) -> bool:
    copied = strict_json(part)
    found.json |= {} if copied is None else {mime: copied[0]}
    return copied is not None


def _markup(found: Rich, mime: str, part: object) -> bool:
    found.markup = sanitized(part) if isinstance(part, str) else ""
    return found.markup != ""


def _prose(found: Rich, mime: str, part: object) -> bool:
    found.prose = markdown(part, {}) if isinstance(part, str) else ""
    return found.prose != ""


def _formula(found: Rich, mime: str, part: object) -> bool:
    found.latex = inert(part) if isinstance(part, str) and is_harmless(part) else ""
    return found.latex != ""


def _drawing(found: Rich, mime: str, part: object) -> bool:
    return isinstance(part, str) and _put(found.images, mime, part.encode("utf-8", "replace"))


def _binary(found: Rich, mime: str, part: object) -> bool:
    try:
        data = base64.b64decode(part, validate=True) if isinstance(part, str) else part
    except ValueError:
        return False
    place = found.images if mime in IMAGES else found.files
    return isinstance(data, bytes) and mime_type(data) == mime and _put(place, mime, data)


def _put(place: dict[str, str], mime: str, data: bytes) -> bool:
    place[mime] = base64.b64encode(data).decode()
    return True


_FORMS: Mapping[str, Callable[[Rich, str, object], bool]] = {
    "text/plain": _text,
    "text/html": _markup,
    "text/markdown": _prose,
    "text/latex": _formula,
    "image/svg+xml": _drawing,
    **dict.fromkeys((*sorted(IMAGES), "application/pdf"), _binary),
    **dict.fromkeys(("application/json", DATAFRAME_MIME), _plain_data),
}
