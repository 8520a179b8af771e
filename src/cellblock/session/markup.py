"""HTML from a cell, written anew from a list of what it may hold: nothing in it runs or leads anywhere (W8).

No browser's rules are followed, and none are needed: whatever is not read as an element of the list, with attributes of
the list, is text. Styles stay where they name no address, and images where they are data. What is written may stand in
any page: it closes no element but its own, and its names and styles are none of the page's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from cellblock.session.shown import IMAGES
from cellblock.text import inert, unescape

_ELEMENTS = frozenset(re.findall(r"\S+", """
    a abbr address article aside b blockquote br caption center cite code col colgroup dd del details dfn div dl dt em
    fieldset figcaption figure font footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd label legend li main mark meter
    nav ol p pre progress q rp rt ruby s samp section small span strong sub summary sup table tbody td tfoot th thead
    time tr tt u ul var wbr
"""))
_ATTRIBUTES = frozenset(re.findall(r"\S+", """
    align alt bgcolor border cellpadding cellspacing class color colspan datetime dir headers height high id lang low
    max min open optimum rowspan scope size span src start style title type valign value width
"""))
_LEFT_OUT = frozenset(re.findall(r"\S+", """
    applet audio canvas embed head iframe math noembed noframes noscript object script select style svg template
    textarea title video xmp
"""))
"""Elements whose content is left out as well; of a style element it is looked at first."""
_EMPTY = frozenset(("br", "col", "hr", "img", "wbr"))
_SEEN = frozenset(("hr", "img", "meter", "progress"))
"""Elements that show something without a text."""
_IMPLIED = frozenset(("colgroup", "dd", "dt", "li", "p", "tbody", "td", "tfoot", "th", "thead", "tr"))
"""A parser ends these by itself."""
_WITHIN = {
    **dict.fromkeys(("td", "th"), ("tr",)), "tr": ("table", "tbody", "tfoot", "thead"), "col": ("colgroup", "table"),
    **dict.fromkeys(("caption", "colgroup", "tbody", "tfoot", "thead"), ("table",)),
    "li": ("ol", "ul"), **dict.fromkeys(("dd", "dt"), ("dl",)),
}  # fmt: skip
"""Parents of these elements: elsewhere a parser would end other elements than the ones that this module takes for
ended."""
_GRID = frozenset(("colgroup", "table", "tbody", "tfoot", "thead", "tr"))
"""These hold parts of a table and nothing else."""
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
"""None stands in another."""
_DEEPEST = 100
PREFIX = "cb-"
"""Before each class and id: no style sheet or script of a page means them."""
SCOPE = f"{PREFIX}shown"
"""The class of the element that this HTML has to stand in, for its styles to hold."""
_OPENING = re.compile(r"<(?=/?[A-Za-z]|[!?])")
_TAG = re.compile(r"(?P<end>/?)(?P<name>[A-Za-z][A-Za-z0-9-]*+)(?P<rest>(?:[^<>\"']++|\"[^<\"]*+\"|'[^<']*+')*+)>")
_ATTRIBUTE = re.compile(r"([A-Za-z-]++)(?:\s*+=\s*+(\"[^\"]*+\"|'[^']*+'|[^\s\"'>]++))?")
_SOURCE = re.compile(r"data:(image/[a-z]++);base64,[A-Za-z0-9+/=\s]++")
_FUNCTION = re.compile(r"(?<![\w-])([\w-]*+)\(")
_FUNCTIONS = frozenset(re.findall(r"\S+", """
    calc hsl hsla is linear-gradient max min not nth-child nth-of-type rgb rgba var where
"""))
_SELECTOR = re.compile(r"[A-Za-z.#:*]")
_NAME = re.compile(r"[.#](?=[A-Za-z_-])")
_COMMA = re.compile(r",(?![^()]*\))")
"""Between selectors: not within brackets, which nest no deeper than one."""
_QUOTED = re.compile(r"\"[\w ,.%#-]*+\"|'[\w ,.%#-]*+'")


def sanitized(html: str) -> str:
    """The HTML as it may be shown, "" where nothing of it can be seen. Costs linear time."""
    writer = _Writer()
    written = "".join((*writer.parts(html), *writer.close(0)))
    return written if writer.is_seen else ""


class _Writer:
    """The elements that are open, and whether something can be seen."""

    def __init__(self) -> None:
        self.is_seen = False
        self._open: list[str] = []

    def parts(self, html: str) -> Iterator[str]:
        text, *pieces = _OPENING.split(inert(html))
        yield self._text(text)
        within, left_out = "", [""]
        """The element or comment that is left out, and what is in it."""
        for piece in pieces:
            tag = _TAG.match(piece)
            name = tag["name"].lower() if tag is not None else ""
            if within == "!--" or (not within and piece.startswith("!--")):
                _, end, text = piece.partition("-->")
                within = "" if end else "!--"
                yield self._text(text)
            elif within and (tag is None or not tag["end"] or name != within):
                left_out.append(f"<{piece}")
            elif tag is None:
                yield self._text(piece.partition(">")[2] if piece.startswith(("!", "?")) else f"<{piece}")
            elif within:
                if within == "style" and (sheet := _sheet("".join(left_out))):
                    yield f"<style>{sheet}</style>"
                within = ""
                yield self._text(piece[tag.end() :])
            elif name in _LEFT_OUT and not tag["end"]:
                within, left_out = name, [piece[tag.end() :]]
            else:
                if name in _ELEMENTS:
                    yield from self._end(name) if tag["end"] else self._start(name, tag["rest"])
                yield self._text(piece[tag.end() :])

    def close(self, depth: int) -> Iterator[str]:
        """End the elements that are open, but for the first ones."""
        while len(self._open) > depth:
            name = self._open.pop()
            yield "" if name in _IMPLIED else f"</{name}>"

    def _text(self, text: str) -> str:
        """Text of HTML, with the characters that it names by references."""
        if not text:
            return ""
        self.is_seen |= not text.isspace()
        return escape(inert(unescape(text)), quote=False)

    def _start(self, name: str, attributes: str) -> Iterator[str]:
        holders = _WITHIN.get(name)
        if holders is not None:
            place = self._innermost(*holders, "table")
            if place is None or self._open[place] not in holders:
                return
            yield from self.close(place + 1)
        elif self._open and self._open[-1] in _GRID:
            return
        elif name in _HEADINGS and (place := self._innermost(*_HEADINGS, "table")) is not None:
            yield from self.close(place if self._open[place] in _HEADINGS else len(self._open))
        if name in _EMPTY or len(self._open) < _DEEPEST:
            self.is_seen |= name in _SEEN
            yield f"<{name}{''.join(_attributes(attributes))}>"
            self._open += [] if name in _EMPTY else [name]

    def _end(self, name: str) -> Iterator[str]:
        place = self._innermost(name, "table")
        if place is not None and self._open[place] == name:
            yield from self.close(place + 1)
            yield f"</{self._open.pop()}>"

    def _innermost(self, *names: str) -> int | None:
        return next((place for place in reversed(range(len(self._open))) if self._open[place] in names), None)


def _attributes(text: str) -> Iterator[str]:
    for name, value in _ATTRIBUTE.findall(text):
        name, value = name.lower(), value[1:-1] if value[:1] in ("'", '"') else value
        if name not in _ATTRIBUTES or (name == "style" and not _is_plain(value)):
            continue
        if name == "src" and ((image := _SOURCE.fullmatch(value)) is None or image[1] not in IMAGES):
            continue
        value = inert(unescape(value))
        if name in ("class", "headers", "id"):
            value = " ".join(f"{PREFIX}{one}" for one in value.split())
        yield f' {name}="{escape(value)}"'


def _is_plain(css: str) -> bool:
    """True if a style names no address: no escapes or references to write one with, no rules that import, no functions
    but those of the list."""
    if any(character in css for character in "\\@<&"):
        return False
    return all(name.lower() in _FUNCTIONS for name in _FUNCTION.findall(css))


def _sheet(css: str) -> str:
    """The rules of a style sheet, each for what is within `SCOPE` alone; "" where it has others."""
    first, *pieces = css.split("/*")
    *rules, rest = "".join((first, *(piece.partition("*/")[2] for piece in pieces))).split("}")
    bare = _QUOTED.sub("", "".join(rules))
    if rest.strip() or not _is_plain(bare) or '"' in bare or "'" in bare or any(one.count("{") != 1 for one in rules):
        return ""
    pairs = [(selectors, style) for selectors, _, style in (one.partition("{") for one in rules)]
    if any(_ODD.search(selectors) or not (_closes(selectors) and _closes(style)) for selectors, style in pairs):
        return ""
    return "".join(f"{_scoped(selectors)}{{{style}}}" for selectors, style in pairs)


_ODD = re.compile(r"[\"'\[\]$]")
"""Characters of selectors that are read otherwise within quotation marks and brackets, and those marks."""


def _closes(css: str) -> bool:
    """True if each bracket of a selector or a style is closed where it stands."""
    deep = 0
    for mark in re.findall(r"[()\[\]]", _QUOTED.sub("", css)):
        deep += 1 if mark in "([" else -1
        if deep < 0:
            return False
    return deep == 0


def _scoped(selectors: str) -> str:
    """Selectors of what is within `SCOPE`. One that begins with a combinator would mean what stands beside it."""
    parts = (one.strip() for one in _COMMA.split(_NAME.sub(rf"\g<0>{PREFIX}", selectors)))
    return ",".join(f".{SCOPE} {part if _SELECTOR.match(part) else '_'}" for part in parts)
