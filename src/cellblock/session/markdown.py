"""Markdown as HTML by a table: what no row of it names, HTML in the text among it, is shown as text (W8).

Needs markdown-it-py, of the extra `pages`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from cellblock.session.shown import IMAGES, MOST_EXPORTED, Blob
from cellblock.text import inert

MAX_CHARS, MAX_BRACKETS = 200_000, 2_000
"""Text of more is not taken for Markdown: it may take long, with brackets that open the square of the time."""
_SHORT, _FOLD = 2**16, 10
"""Characters of HTML that a text may come to: so many, and tenfold what it and its images are."""

_TAGS = {
    **{tag: tag for tag in ("p", "ul", "ol", "li", "blockquote", "hr", "em", "strong", "s")},
    **{tag: tag for tag in ("table", "thead", "tbody", "tr", "th", "td")},
    **{f"h{level}": f"h{min(level + 1, 6)}" for level in range(1, 7)},  # the page has a title of its own
}
_ALIGNED = {f"text-align:{side}": f" style=text-align:{side}" for side in ("left", "center", "right")}
_OUT = re.compile(r"(?:https?://|mailto:)[^\s\"'<>\\^`{|}]+", re.IGNORECASE)
_IMAGE = re.compile(r"data:(image/[a-z]+);base64,([A-Za-z0-9+/=%]+)")
_FORMULA = re.compile(r"\$\$(?P<block>[^$]++)\$\$|\$(?!\s)(?P<line>[^$\n]++)(?<!\s)\$(?![0-9])")


def rendered(text: str, images: Mapping[str, Blob], most: int = MOST_EXPORTED) -> str | None:
    """The text as HTML without a script, a style or anything that is fetched; None where it is too long for that, or
    is more than `most` characters, or tenfold what it is of: what is named once may be shown a thousand times.

    `images` are what the text may show by `attachment:NAME`. Links lead to the web, to mail and within the text.
    """
    text = inert(text)
    if len(text) > MAX_CHARS or text.count("[") > MAX_BRACKETS:
        return None
    most = min(most, _SHORT + _FOLD * (len(text) + sum(len(blob.data) for blob in images.values())))
    pieces = list[str]()
    for piece in _rendered(_parser().parse(text), images):
        most -= len(piece)
        if most < 0:
            return None
        pieces.append(piece)
    return "".join(pieces)


@cache
def _parser() -> MarkdownIt:
    parser = _AnyLink("js-default")
    parser.inline.ruler.before("escape", "formula", _formula)
    return parser


class _AnyLink(MarkdownIt):
    """Leaves it to the table which links lead somewhere."""

    def validateLink(self, url: str) -> bool:
        return True


def _formula(state: StateInline, silent: bool) -> bool:
    """TeX between dollars stays as it is written: its underscores and backslashes are no Markdown."""
    match = _FORMULA.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        token = state.push("formula", "", 0)
        token.content = (match["block"] or match["line"]).strip()
    state.pos = match.end()
    return True


def _rendered(tokens: Sequence[Token], images: Mapping[str, Blob]) -> Iterator[str]:
    leading: list[str] = []
    """Of the links that are open: what stands at their ends."""
    for place, token in enumerate(tokens):
        match token.type:
            case "inline":
                yield from _rendered(token.children or (), images)
            case "text" | "text_special":
                yield escape(token.content)
            case "softbreak":
                yield "\n"
            case "hardbreak":
                yield "<br>\n"
            case "code_inline":
                yield f"<code>{escape(token.content)}</code>"
            case "formula":
                yield f"<code class=formula>{escape(token.content)}</code>"
            case "code_block" | "fence":
                yield f"<pre><code>{escape(token.content)}</code></pre>\n"
            case "image":
                yield _image(token, images)
            case "link_open":
                start, end = _link(str(token.attrs.get("href", "")))
                leading.append(end)
                yield start
            case "link_close":
                yield leading.pop()
            case _ if token.hidden:  # paragraphs of a tight list
                yield "\n" if token.nesting < 0 else ""
            case _ if token.tag in _TAGS:
                yield _tag(token, tokens[place + 1 : place + 2])
            case _:
                yield escape(token.content)


def _tag(token: Token, following: Sequence[Token]) -> str:
    tag = _TAGS[token.tag]
    if token.nesting < 0:
        return f"</{tag}>\n" if token.block else f"</{tag}>"
    if token.tag.startswith("h") and following and following[0].type == "inline":
        return f'<{tag} id="{escape(_anchor(following[0].content))}">'
    start = token.attrs.get("start")
    if tag == "ol" and isinstance(start, int):
        return f"<ol start={start}>"
    return f"<{tag}{_ALIGNED.get(str(token.attrs.get('style')), '')}>"


def _anchor(heading: str) -> str:
    """Anchor by which Jupyter links to a heading; apart from the ids of cells."""
    return "text-" + re.sub(r"\s", "-", heading)


def _link(target: str) -> tuple[str, str]:
    if target.startswith("#"):
        from urllib.parse import unquote

        return f'<a href="#{escape(_anchor(unquote(target[1:])))}">', "</a>"
    if _OUT.fullmatch(target):
        return f'<a href="{escape(target)}" rel="noopener noreferrer nofollow">', "</a>"
    return "", f" <code>{escape(target)}</code>"


def _image(token: Token, images: Mapping[str, Blob]) -> str:
    source, described = str(token.attrs.get("src", "")), escape(token.content)
    blob = _blob(source, images)
    if blob is None:
        return f"[{described}] <code>{escape(source[:200])}</code>"
    return f'<img alt="{described}" src="data:{blob.mime};base64,{base64.b64encode(blob.data).decode()}">'


def _blob(source: str, images: Mapping[str, Blob]) -> Blob | None:
    from urllib.parse import unquote

    if source.startswith("attachment:"):
        found = images.get(unquote(source.removeprefix("attachment:")))
        return found if found is not None and found.mime in IMAGES else None
    match = _IMAGE.fullmatch(source)
    if match is None or match[1] not in IMAGES:
        return None
    try:
        return Blob(match[1], base64.b64decode(unquote(match[2]), validate=True))
    except ValueError:
        return None
