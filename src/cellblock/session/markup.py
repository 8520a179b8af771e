"""HTML from a cell, written anew from a list of what it may hold: nothing in it runs or leads anywhere (W8).

No browser's rules are followed, and none are needed: whatever is not read as an element of the list, with attributes of
the list, is text. Styles stay where they name no address, and images where they are data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from cellblock.session.shown import IMAGES

_ELEMENTS = frozenset((
    "a", "abbr", "address", "article", "aside", "b", "blockquote", "br", "caption", "center", "cite", "code",
    "col", "colgroup", "dd", "del", "details", "dfn", "div", "dl", "dt", "em", "fieldset", "figcaption", "figure",
    "font", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "i", "img", "ins", "kbd", "label",
    "legend", "li", "main", "mark", "meter", "nav", "ol", "p", "pre", "progress", "q", "rp", "rt", "ruby", "s",
    "samp", "section", "small", "span", "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th",
    "thead", "time", "tr", "tt", "u", "ul", "var", "wbr",
))  # fmt: skip
_ATTRIBUTES = frozenset((
    "align", "alt", "bgcolor", "border", "cellpadding", "cellspacing", "class", "color", "colspan", "datetime",
    "dir", "headers", "height", "high", "id", "lang", "low", "max", "min", "open", "optimum", "rowspan", "scope",
    "size", "span", "src", "start", "style", "title", "type", "valign", "value", "width",
))  # fmt: skip
_LEFT_OUT = frozenset((
    "applet", "canvas", "embed", "head", "iframe", "math", "noembed", "noframes", "noscript", "object", "script",
    "select", "style", "svg", "template", "textarea", "title", "video", "audio", "xmp",
))  # fmt: skip
"""What is in these is left out as well; of a style element it is looked at first."""
_TAG = re.compile(r"(?P<end>/?)(?P<name>[A-Za-z][A-Za-z0-9-]*+)(?P<rest>(?:[^>\"']++|\"[^\"]*+\"|'[^']*+')*+)>")
_ATTRIBUTE = re.compile(r"([A-Za-z-]++)(?:\s*+=\s*+(\"[^\"]*+\"|'[^']*+'|[^\s\"'>]++))?")
_SOURCE = re.compile(r"data:(image/[a-z]++);base64,[A-Za-z0-9+/=\s]++")
_FUNCTION = re.compile(r"(?<![\w-])([\w-]*+)\(")
_FUNCTIONS = frozenset((
    "calc", "hsl", "hsla", "is", "linear-gradient", "max", "min", "not", "nth-child", "nth-of-type", "rgb", "rgba",
    "var", "where",
))  # fmt: skip


def sanitized(html: str) -> str:
    """The HTML as it may be shown. Costs linear time."""
    return "".join(_parts(html))


def _parts(html: str) -> Iterator[str]:
    text, *pieces = html.split("<")
    yield _text(text)
    within, left_out = "", [""]
    """The element or comment that is left out, and what is in it."""
    for piece in pieces:
        tag = _TAG.match(piece)
        name = tag["name"].lower() if tag is not None else ""
        if within == "!--" or (not within and piece.startswith("!--")):
            _, end, text = piece.partition("-->")
            within = "" if end else "!--"
            yield _text(text)
        elif within and (tag is None or not tag["end"] or name != within):
            left_out.append(f"<{piece}")
        elif tag is None:
            yield _text(piece.partition(">")[2]) if piece.startswith(("!", "?")) else "&lt;" + _text(piece)
        elif within:
            if within == "style" and _is_plain("".join(left_out)):
                yield f"<style>{''.join(left_out)}</style>"
            within = ""
            yield _text(piece[tag.end() :])
        elif name in _LEFT_OUT and not tag["end"]:
            within, left_out = name, [piece[tag.end() :]]
        else:
            if name in _ELEMENTS:
                yield f"</{name}>" if tag["end"] else f"<{name}{''.join(_attributes(tag['rest']))}>"
            yield _text(piece[tag.end() :])


def _text(text: str) -> str:
    """Text of HTML, with the characters that it names by references."""
    return text.replace(">", "&gt;")


def _attributes(text: str) -> Iterator[str]:
    for name, value in _ATTRIBUTE.findall(text):
        name, value = name.lower(), value[1:-1] if value[:1] in ("'", '"') else value
        if name not in _ATTRIBUTES or (name == "style" and not _is_plain(value)):
            continue
        if name == "src" and ((image := _SOURCE.fullmatch(value)) is None or image[1] not in IMAGES):
            continue
        yield f' {name}="{escape(value).replace("&amp;", "&")}"'


def _is_plain(css: str) -> bool:
    """Whether a style names no address: no escapes or references to write one with, no rules that import, no functions
    but those of the list."""
    if any(character in css for character in "\\@<&"):
        return False
    return all(name.lower() in _FUNCTIONS for name in _FUNCTION.findall(css))
