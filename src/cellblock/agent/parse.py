"""From a model's reply to the code in it.

| reply | what is taken |
|---|---|
| one fenced block, tagged as Python or not at all | the block |
| several of them | all, in order, as one cell |
| a block whose fence is not closed | what there is, if it is whole Python |
| `<code>…</code>`, or JSON with a member "code" | that |
| no fence, but all of it Python that does something | the reply |
| anything else: prose, nothing, blocks of other languages | none; the model is told what was missing |
"""

from __future__ import annotations

import ast
import json
import re
import textwrap
from dataclasses import dataclass

from cellblock.models import Reply

_PYTHON = frozenset(("", "python", "py", "python3", "ipython", "ipython3", "tool_code", "code"))
_FENCE = re.compile(r"^[ ]{0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<tag>[\w+#.-]*)[^`\n]*$")
_TAGGED = re.compile(r"<code>\s*\n?(.*?)</code>", re.DOTALL)
_MOST = 200_000


@dataclass(frozen=True, slots=True)
class Code:
    """Code to run. `remark` is what the model is to know of how it was read, "" as a rule."""

    source: str
    remark: str = ""


@dataclass(frozen=True, slots=True)
class NoCode:
    """Why there is nothing to run, in words for the model."""

    reason: str


def read(reply: Reply) -> Code | NoCode:
    """The code of a reply."""
    text = reply.text
    if len(text) > _MOST:
        return NoCode(f"The reply has {len(text)} characters. Write a shorter one.")
    if found := _called(reply):
        return Code(found)
    blocks, unclosed = _blocks(text)
    sources = [source for tag, source in blocks if tag in _PYTHON and source.strip()]
    if unclosed is not None and unclosed[0] in _PYTHON and unclosed[1].strip():
        if reply.finish == "length" or not _compiles("\n\n".join([*sources, unclosed[1]])):
            return NoCode(
                "The reply was cut off before the end of its code block, and nothing was run. "
                if reply.finish == "length"
                else "The code block is not closed, and nothing was run. "
                "Write shorter code, in several steps if need be, and close the block with ```."
            )
        sources.append(unclosed[1])
    if sources:
        joined = f"The {len(sources)} code blocks were run as one cell, in their order." if len(sources) > 1 else ""
        return Code("\n\n".join(sources), joined)
    if found := _elsewhere(text):
        return Code(found)
    if not text.strip():
        return NoCode(f"The reply was empty. {_WANTED}")
    other = sorted({tag for tag, _ in blocks})
    if other:
        return NoCode(f"Only Python is run; the reply has {', '.join(other)} alone. {_WANTED}")
    return NoCode(f"The reply has no code block, and nothing was run. {_WANTED}")


_WANTED = (
    "Reply with one block of Python between ```python and ```. To give the answer, call final_answer(value) in it."
)


def _blocks(text: str) -> tuple[list[tuple[str, str]], tuple[str, str] | None]:
    """Every fenced block with its tag; and the last one, where nothing closes it."""
    found: list[tuple[str, str]] = []
    fence, tag = "", ""
    lines: list[str] = []
    for line in text.splitlines():
        match = _FENCE.match(line)
        if not fence and match:
            fence, tag, lines = match["fence"], match["tag"].lower(), []
        elif fence and _closes(line, fence):
            found.append((tag, _source(lines)))
            fence = ""
        elif fence:
            lines.append(line)
    return found, ((tag, _source(lines)) if fence else None)


def _closes(line: str, fence: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(fence) and bare == fence[0] * len(bare)


def _source(lines: list[str]) -> str:
    return textwrap.dedent("\n".join(lines)).strip("\n")


def _called(reply: Reply) -> str:
    """Code in a tool call, as models write it that are made for those."""
    for request in reply.requests:
        code = (request.arguments or {}).get("code")
        if isinstance(code, str) and code.strip():
            return code
    return ""


def _elsewhere(text: str) -> str:
    """Code that stands in no fence."""
    if tagged := _TAGGED.findall(text):
        return "\n\n".join(map(str.strip, tagged))
    bare = text.strip()
    if bare.startswith("{"):
        return _in_json(bare)
    return bare if _does_something(bare) else ""


def _in_json(text: str) -> str:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    for holder in (data, data.get("arguments"), data.get("args"), data.get("parameters")):
        if isinstance(holder, dict) and isinstance(code := holder.get("code"), str):
            return code
    return ""


def _compiles(source: str) -> bool:
    try:
        compile(source, "<reply>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _does_something(text: str) -> bool:
    """Whether a text without a fence is Python that somebody meant to be run: prose of one word is Python, too."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    acts = (ast.Call, ast.Assign, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.For)
    return any(isinstance(node, acts) for node in ast.walk(tree))
