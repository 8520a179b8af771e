"""Code in a model's reply.

| reply | what is taken |
|---|---|
| one fenced block, tagged as Python or not at all | the block |
| several of them | those that are tagged, or else all, in order, as one cell |
| a block with fences in its strings | up to the fence where it is whole Python |
| a block whose fence is not closed | what there is, if it is whole Python |
| `<code>…</code>`, or JSON with a member "code" | that |
| no fence, but all of it Python that does something | the reply |
| anything else: prose, nothing, blocks of other languages | none; the model is told what was missing |

What stands in `<think>…</think>` at the beginning is not read.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from warnings import catch_warnings, simplefilter

from cellblock.fences import Fence, fences
from cellblock.models import Reply
from cellblock.text import BadJson, read_json

_PYTHON = frozenset(("", "python", "py", "python3", "ipython", "ipython3", "tool_code", "code"))
_CALLS = frozenset(("", "json", "tool_call"))
_ON_ONE_LINE = re.compile(r"```(?:python|py)[ \t]++([^`\n]++)```")
_MOST = 200_000
_MOST_LINES, _MOST_CHARACTERS = 5000, 10_000
"""Lines and characters that are tried as Python where no fence says so: a line takes its parser up to 10 µs, a
character 5 µs."""


@dataclass(frozen=True, slots=True)
class Code:
    """Code to run. `remark` is what the model is to know of how it was read, "" as a rule."""

    source: str
    remark: str = ""


@dataclass(frozen=True, slots=True)
class NoCode:
    """Why there is nothing to run, in words for the model."""

    reason: str


@dataclass(frozen=True, slots=True)
class _Block:
    tag: str
    source: str
    closed: bool = True


def read(reply: Reply) -> Code | NoCode:
    """The code of a reply."""
    text = reply.text.partition("</think>")[2] if reply.text.lstrip().startswith("<think>") else reply.text
    text = text.replace("\r\n", "\n")
    if len(text) > _MOST:
        return NoCode(f"The reply has {len(text)} characters. Write a shorter one.")
    if found := _called(reply):
        return Code(found)
    blocks = list(_blocks(text))
    python = [block for block in blocks if block.tag in _PYTHON and block.source]
    for block in python:
        if not block.closed and (reply.finish == "length" or _parsed(block.source) is None):
            cut = reply.finish == "length"
            ends = "reply was cut off before the end of its code block" if cut else "code block is not closed"
            return NoCode(f"The {ends}, and nothing was run. {_SHORTER}")
    tagged = [block for block in python if block.tag]
    sources = [_in_json(block.source) or block.source for block in tagged or python]
    if sources:
        remark = f"The {len(sources)} code blocks were run as one cell, in their order." if len(sources) > 1 else ""
        return Code("\n\n".join(sources), remark)
    if found := _elsewhere(text, blocks):
        return Code(found)
    return NoCode(f"{_missing(reply, text, blocks)} {_WANTED}")


_WANTED = (
    "Reply with one block of Python between ```python and ```. To give the answer, call final_answer(value) in it."
)
_SHORTER = "Write shorter code, in several steps if need be, and close the block with ```."


def _missing(reply: Reply, text: str, blocks: list[_Block]) -> str:
    """Remark on what a reply has in place of code."""
    if reply.requests:
        names = ", ".join(sorted({one.name for one in reply.requests}))
        return f"Functions are called in Python, and {names} was not called."
    if not text.strip():
        return "The reply was empty."
    if other := sorted({block.tag for block in blocks} - _PYTHON):
        return f"Only Python is run; the reply has {', '.join(other)} alone."
    return "The code block is empty." if blocks else "The reply has no code block, and nothing was run."


def _blocks(text: str) -> Iterator[_Block]:
    """Every fenced block. One that holds Python stands for itself where another, of no Python, is around it."""
    for fence in fences(text):
        inner = [] if fence.tag in _PYTHON else [one for one in fences(fence.text) if one.tag in _PYTHON - {""}]
        yield from map(_block, inner or [fence])


def _block(fence: Fence) -> _Block:
    source = _source(fence.text.split("\n"))
    if not fence.closed and source.endswith(("```", "~~~")):  # on the last line of the code
        return _Block(fence.tag, source.rstrip("`~").rstrip())
    return _Block(fence.tag.strip("{}."), source, fence.closed)


def _source(lines: list[str]) -> str:
    source = "\n".join(lines).strip("\n")
    return (textwrap.dedent(source) if source.startswith((" ", "\t")) else source).rstrip()


def _called(reply: Reply) -> str:
    """Code in a tool call, as models write it that are made for those."""
    for request in reply.requests:
        code = (request.arguments or {}).get("code")
        if isinstance(code, str) and code.strip():
            return code
    return ""


def _elsewhere(text: str, blocks: list[_Block]) -> str:
    """Code that stands in no block of Python."""
    for block in blocks:
        if block.tag in _CALLS and (found := _in_json(block.source)):
            return found
    if tagged := _tagged(text):
        return tagged
    if on_one_line := _ON_ONE_LINE.search(text):
        return on_one_line[1].strip()
    bare = text.strip()
    return _in_json(bare) or (bare if not blocks and _does_something(bare) else "")


def _tagged(text: str) -> str:
    """All text between `<code>` and `</code>`."""
    pieces = [piece.partition("</code>") for piece in text.split("<code>")[1:]]
    return "\n\n".join(_source(code.split("\n")) for code, closed, _ in pieces if closed and code.strip())


def _in_json(text: str) -> str:
    if not text.startswith("{"):
        return ""
    try:
        data = read_json(text)
    except BadJson:
        return ""
    if not isinstance(data, dict):
        return ""
    for holder in (data, data.get("arguments"), data.get("args"), data.get("parameters")):
        if isinstance(holder, dict) and isinstance(code := holder.get("code"), str):
            return code.strip()
    return ""


def _parsed(source: str) -> ast.Module | None:
    """The source's tree; None where it is no Python, or too long to be tried."""
    if source.count("\n") > _MOST_LINES or len(source) > _MOST_CHARACTERS:
        return None
    try:
        with catch_warnings():
            simplefilter("ignore")  # such as those of escapes that are none
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _does_something(text: str) -> bool:
    """True if a text without a fence is Python that somebody meant to be run: prose of one word is Python, too."""
    tree = _parsed(text)
    acts = (ast.Call, ast.Assign, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.For)
    return tree is not None and any(isinstance(node, acts) for node in ast.walk(tree))
