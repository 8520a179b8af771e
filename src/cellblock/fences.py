"""Fenced blocks of a model's message, as CommonMark has them (spec 0.31, 4.5), and two things that models do besides.

A fence is three or more backticks or tildes, indented by up to three spaces in its list item or quotation; it ends at
a line of as many of the same, or where its container or the text does. Besides:

- A fence within a string of three quotes, in a block of Python, does not end it, where a later one does.
- In a block of Markdown a fence with a tag opens one that the next bare fence closes, where as many close as open.

HTML is not looked at: a fence within it is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cellblock.nesting import Nesting

PYTHON = frozenset(("python", "py", "python3", "ipython", "ipython3", "tool_code"))
"""Tags of Python."""
_MARKDOWN = frozenset(("markdown", "md", "mdx"))
_OPEN = re.compile(r"(?P<fence>`{3,}+|~{3,}+)(?P<info>.*)")
_ITEM = re.compile(r"(?P<marker>[-*+]|\d{1,9}[.)])(?P<space> +|$)")
_PREFIX = re.compile(r"[ \t]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]*+)?")
_QUOTE = re.compile(r" {0,3}> ?")
_LINES = re.compile(r"\r\n|\n|\r")
_TIMES_READ = 1
"""Lengths of the whole text that are read past fences that end their blocks after all; from then on the first does."""
_TAB = 4
_DEEPEST = 50
"""Quotations within each other, and list items, that are told apart."""


@dataclass(frozen=True, slots=True)
class Fence:
    """A block: the first word of what follows its fence, in lower case, and its lines, with a newline between each two.

    `closed` is whether a fence ended it.
    """

    tag: str
    text: str
    closed: bool


def fences(text: str) -> list[Fence]:
    """Every fenced block of a text, in order."""
    return list(_found(_LINES.split(text)))


@dataclass(frozen=True, slots=True)
class _Container:
    """The container that a line stands in: depth of quotation, and how far a list item indents what is in it."""

    quotes: int = 0
    indent: int = 0


def _found(lines: list[str]) -> Iterator[Fence]:
    number, container = 0, _Container()
    spare = _TIMES_READ * _cost(lines)
    while number < len(lines):
        container, rest = _entered(lines[number], container)
        opened = _opening(rest)
        number += 1
        if opened is None:
            continue
        indent, fence, info = opened
        tag = (info.split() or [""])[0].lower()
        inside: list[str] = []
        end, closed = _end(tag, fence, _lines_in(lines, number, container), inside, spare)
        yield Fence(tag, "\n".join(_without(line, indent) for line in inside[:end]), closed)
        read_to, number = number + len(inside), number + end + closed
        spare -= _cost(lines[number:read_to])


def _cost(lines: list[str]) -> int:
    """Cost of reading lines, in characters."""
    return sum(map(len, lines)) + len(lines)


def _lines_in(lines: list[str], start: int, container: _Container) -> Iterator[tuple[str, int]]:
    """The parts of lines from one on that are in a container, up to its end, with the cost of reading each."""
    for number in range(start, len(lines)):
        within = _within(lines[number], container)
        if within is None:
            return
        yield within, len(lines[number]) + 1


def _entered(line: str, container: _Container) -> tuple[_Container, str]:
    """The container that a line is in, or opens, and what of the line is in it."""
    if not line and not container.quotes:
        return container, ""
    quotes, rest = _unquoted(line)
    indent = container.indent if quotes == container.quotes else 0
    prefix = _PREFIX.match(rest)
    assert prefix is not None
    rest = prefix[0].expandtabs(_TAB) + rest[prefix.end() :]
    if not rest.strip():
        return _Container(quotes, indent), ""
    if len(rest) - len(rest.lstrip(" ")) < indent:
        indent = _outdented(rest, indent)
    inner = rest[indent:]
    for _ in range(_DEEPEST):
        bare = inner.lstrip(" ")
        marked = _ITEM.match(bare)
        if marked is None or len(inner) - len(bare) >= 4:
            break
        taken = len(inner) - len(bare) + marked.end()
        taken -= max(len(marked["space"]) - 4, 0)  # more is code, indented within the item
        indent += taken + (not marked["space"])
        inner = inner[taken:]
        if not inner:
            break
    return _Container(quotes, indent), inner


def _spaced(line: str, indent: int) -> str:
    """A line with spaces for the tabs that indent it for its list item; those after them are its own."""
    blank = len(line) - len(line.lstrip(" \t"))
    column = at = 0
    while at < blank and column < indent:
        column += _TAB - column % _TAB if line[at] == "\t" else 1
        at += 1
    return " " * column + line[at:]


def _outdented(line: str, indent: int) -> int:
    """Depth of a line in its list items: those that it is not indented for have ended."""
    own = len(line) - len(line.lstrip(" "))
    return own if 2 <= own < indent else 0


def _unquoted(line: str) -> tuple[int, str]:
    depth = 0
    while depth < _DEEPEST and (found := _QUOTE.match(line)) is not None:
        depth, line = depth + 1, line[found.end() :]
    return depth, line


def _within(line: str, container: _Container) -> str | None:
    """The part of a line that is in a container; None for one that ends it."""
    if not container.quotes and not container.indent:
        return line
    for _ in range(container.quotes):
        found = _QUOTE.match(line)
        if found is None:
            return None
        line = line[found.end() :]
    line = _spaced(line, container.indent)
    if not line.strip():
        return line[container.indent :]
    return line[container.indent :] if not line[: container.indent].strip() else None


def _opening(line: str) -> tuple[int, str, str] | None:
    """The indent, the fence and the info string of a line that opens a block."""
    bare = line.lstrip(" ")
    found = _OPEN.match(bare)
    if found is None or len(line) - len(bare) > 3 or ("`" in found["info"] and found["fence"][0] == "`"):
        return None
    return len(line) - len(bare), found["fence"], found["info"].strip()


def _closes(line: str, fence: str) -> bool:
    bare = line.strip(" \t")
    return bare.startswith(fence) and bare == fence[0] * len(bare) and len(line) - len(line.lstrip(" ")) <= 3


def _end(tag: str, fence: str, lines: Iterator[tuple[str, int]], read: list[str], spare: int) -> tuple[int, bool]:
    """The number of lines of a block, and whether a fence ends it. No more is read than it takes, into `read`, and no
    more than `spare` past the first fence."""
    first: int | None = None
    depth = 1
    python = Nesting() if tag in PYTHON else None
    for number, (line, cost) in enumerate(lines):
        read.append(line)
        if first is not None and (spare := spare - cost) < 0:
            break
        within = python is not None and bool(python.quotes)
        if python is not None:
            python.add(line)
        closes = fence in line and _closes(line, fence)
        if not closes and not (tag in _MARKDOWN and _opens_within(line, fence)):
            continue
        if closes and first is None:
            first = number
        depth += -1 if closes else 1
        if closes and not within and (not depth or tag not in _MARKDOWN):
            return number, True
    return (len(read), False) if first is None else (first, True)


def _opens_within(line: str, fence: str) -> bool:
    """True if a line opens a block in one that a fence has opened."""
    opened = _opening(line)
    return opened is not None and opened[1][0] == fence[0] and len(opened[1]) >= len(fence) and bool(opened[2])


def _without(line: str, indent: int) -> str:
    """A line without as much of the fence's indent as it has."""
    return line[min(indent, len(line) - len(line.lstrip(" "))) :]
