"""A Jupyter document on its way in: its code cells as source that a session runs, and the document with new outputs.

What IPython adds to Python is taken as far as a session has the same thing: `!` and `%pip` lines and `%%sh` cells are
commands, `%%writefile` writes a file, `%cd` changes the directory, `%time` and its like run what they are given,
`name?` is its help, and settings of the notebook's own display (`%matplotlib inline`) change nothing here.
"""

from __future__ import annotations

import base64
import copy
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from shlex import split
from string import Formatter
from typing import Any, Literal

from cellblock.cell import Cell, CellState
from cellblock.errors import CellblockError
from cellblock.nesting import Nesting
from cellblock.session.ipynb import MAY_FAIL, outcome
from cellblock.session.shown import IMAGES, Blob, Prose, Room, Shown

_SHELLS = ("%%sh", "%%bash", "%%script sh", "%%script bash")
_TIMES = re.compile(r"%%?(?:time|timeit|capture)\b.*")
_DISPLAY = re.compile(r"%(?:matplotlib|config|load_ext|reload_ext|autoreload|autosave|pylab|precision|pprint)\b.*")
_CD = re.compile(r"%cd\s+(?P<path>\S.*)")
_LINE = re.compile(r"(?P<indent>[ \t]*+)(?P<magic>[%!].*|\?{1,2}[\w.]+|[\w.]+\?{1,2})")
_TIMED = re.compile(r"%(?:time|timeit|prun|memit)\s++(?:-\w++\s++(?:\d++\s++)?)*+(?P<code>.+)")
_COMMAND = re.compile(r"(?:!(?![=!])|%(?=(?:pip|conda|mamba|ls|mkdir|cat|cp|mv|rm)\b))(?P<command>.+)")
_LISTED = re.compile(r"(?:!!|%(?:sx|system)\s)(?P<command>.+)")
_CAPTURED = re.compile(r"(?P<target>[\w., \t]++=[ \t]*+)!(?![!=])(?P<command>.+)")
_OURS = re.compile(r"[ \t]*+(?:[%!?]|[\w., \t]++=[ \t]*+!)")
_BARE = re.compile(r"!(?![!=]).*")
_FILE = re.compile(r"%%(?:writefile|file)\s+(?P<words>\S.*)")
_APPENDS = ("-a", "--append")
_DOLLAR = re.compile(r"'[^']*'|\$(?P<twice>\$?)(?P<name>[^\W\d]\w*+(?:\.[^\W\d]\w*+)*+)")
_POPEN, _LINES = "__import__('os').popen(", ").read().splitlines()"
_CONVERSIONS = {None: "", "r": "repr", "s": "str", "a": "ascii"}
_HELP = re.compile(r"\?{0,2}(?P<name>[A-Za-z_][\w.]*)\?{0,2}")


class UnreadableNotebook(CellblockError):
    """A file is not a Jupyter document that can be run."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One code cell: what a session runs for it, and its place among the document's cells.

    `may_fail`: the document says that it raises, by the tag "raises-exception".
    """

    place: int
    kind: Literal["python", "shell"]
    source: str
    may_fail: bool = False


def pieces(document: object) -> list[Piece]:
    """The code cells of a document of nbformat 4 in order, without those that hold nothing.

    Raises `UnreadableNotebook` for anything else.
    """
    found = []
    for place, cell in enumerate(_cells(document)):
        source = _text(cell.get("source", ""))
        if cell.get("cell_type") != "code" or not source.strip():
            continue
        metadata = cell.get("metadata")
        tags = metadata.get("tags", ()) if isinstance(metadata, Mapping) else ()
        kind, runs = _runs(source)
        found.append(Piece(place, kind, runs, isinstance(tags, list) and MAY_FAIL in tags))
    return found


def with_outputs(document: Mapping[str, Any], shown: Mapping[int, Shown], *, private: str = "") -> dict[str, Any]:
    """A copy of the document in which the code cells at these places have new outputs, and the others none.

    Text, order and metadata of the document stay as they are, but for why the session was `private`, if it was.
    """
    new, room = copy.deepcopy(dict(document)), Room()
    metadata = new.setdefault("metadata", {})
    metadata.pop("widgets", None)  # they belonged to the outputs
    if private:
        metadata["cellblock"] = {"private": private}
    for place, cell in enumerate(new["cells"]):
        if cell.get("cell_type") != "code":
            continue
        cell["outputs"], cell["execution_count"] = [], None
        if place in shown:
            cell.update(outcome(shown[place], room))
    return new


def in_order(document: Mapping[str, Any], shown: Mapping[int, Shown]) -> list[Shown | Prose]:
    """All of a document, for a page: its prose, and its code cells, of which those that did not run show nothing."""
    found: list[Shown | Prose] = []
    for place, cell in enumerate(_cells(document)):
        kind, source = cell.get("cell_type"), _text(cell.get("source", ""))
        if place in shown:
            found.append(shown[place])
        elif kind == "code":
            found.append(Shown(Cell(id=f"place-{place}", number=0, source=source, state=CellState.IDLE), ()))
        else:
            found.append(Prose(source, kind == "markdown", dict(_attached(cell.get("attachments")))))
    return found


def _attached(attachments: object) -> Iterator[tuple[str, Blob]]:
    """The images of a cell's attachments, by name."""
    for name, bundle in attachments.items() if isinstance(attachments, Mapping) else ():
        for mime, data in bundle.items() if isinstance(bundle, Mapping) else ():
            if mime in IMAGES and isinstance(data, str):
                with suppress(ValueError):  # no base64: the text says what it wanted to show
                    yield name, Blob(mime, base64.b64decode(data))


def _cells(document: object) -> list[Mapping[str, Any]]:
    if not isinstance(document, Mapping):
        raise UnreadableNotebook("this is not a Jupyter document", hint="it should be a JSON object with cells")
    if document.get("nbformat") != 4:
        raise UnreadableNotebook(
            f"the document must be of nbformat 4, and is of {document.get('nbformat')!r}",
            hint="open and save it in Jupyter, or run: jupyter nbconvert --to notebook --nbformat 4",
        )
    cells = document.get("cells")
    if not isinstance(cells, list) or not all(isinstance(cell, Mapping) for cell in cells):
        raise UnreadableNotebook("the document has no list of cells")
    metadata = document.get("metadata", {})
    if not isinstance(metadata, Mapping):
        raise UnreadableNotebook("the document's metadata is no JSON object", hint='write "metadata": {}')
    language = _language(metadata)
    if language != "python":
        raise UnreadableNotebook(f"the document is written in {language}", hint="sessions run Python")
    return cells


def _language(metadata: Mapping[str, Any]) -> str:
    for part in ("language_info", "kernelspec"):
        about = metadata.get(part)
        name = about.get("name" if part == "language_info" else "language") if isinstance(about, Mapping) else None
        if isinstance(name, str):
            return "python" if name.lower().startswith(("python", "ipython")) else name
    return "python"


def _text(source: object) -> str:
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        return "".join(source)
    if isinstance(source, str):
        return source
    raise UnreadableNotebook("a cell's source is neither text nor lines of text")


def _runs(source: str) -> tuple[Literal["python", "shell"], str]:
    first, _, rest = source.lstrip().partition("\n")
    if first.strip() in _SHELLS:
        return "shell", rest
    if (file := _written(first.strip(), rest)) is not None:
        return "python", file
    if first.startswith("%%"):
        if _TIMES.fullmatch(first.strip()) is None:
            return "python", source
        source = rest
    lines = list(_logical(source))
    told = [line for line, _ in lines if line.strip() and not line.lstrip().startswith("#")]
    if told and all(_BARE.fullmatch(line) and _filled(line) is None for line in told):
        return "shell", "\n".join(line[1:] for line in told)
    return "python", "\n".join(_line(line) if begins else line for line, begins in lines)


def _written(magic: str, body: str) -> str | None:
    """Code for a cell that writes its text to a file; None for any other, and where no one name is given."""
    if (file := _FILE.fullmatch(magic)) is None:
        return None
    with suppress(ValueError):  # a quote that nothing closes
        words = split(file["words"])
        names = [word for word in words if word not in _APPENDS]
        if len(names) == 1 and not names[0].startswith("-"):
            how = "a" if len(words) > 1 else "w"
            text = f"{body}\n" if body and not body.endswith("\n") else body
            writes = f", {how!r}) as _file:\n    _file.write({text!r})\ndel _file"
            return _with("with open(", names[0], writes)
    return None


def _logical(source: str) -> Iterator[tuple[str, bool]]:
    """Lines, and whether each begins a statement. Those of IPython that a backslash continues are one."""
    text, lines = Nesting(), iter(source.split("\n"))
    for line in lines:
        begins = not text.is_open
        if begins and _OURS.match(line):
            parts = [line]
            while parts[-1].endswith("\\") and (more := next(lines, None)) is not None:
                parts[-1:] = [parts[-1][:-1], more]
            line = " ".join(parts)
        else:
            text.add(line)
        yield line, begins


def _line(line: str) -> str:
    """A line that is IPython's and not Python's, as Python."""
    if (captured := _CAPTURED.fullmatch(line)) is not None:  # the lines that a command prints, bound to a name
        return _with(f"{captured['target']}{_POPEN}", captured["command"], _LINES)
    if (match := _LINE.fullmatch(line.rstrip())) is None:
        return line
    indent, magic = match["indent"], match["magic"]
    if (command := _COMMAND.fullmatch(magic)) is not None:
        return _with(f"{indent}_ = __import__('os').system(", command["command"].strip(), ")")
    if (listed := _LISTED.fullmatch(magic)) is not None:
        return _with(f"{indent}{_POPEN}", listed["command"], _LINES)
    if (asked := _HELP.fullmatch(magic)) is not None:
        return f"{indent}help({asked['name']})"
    if _DISPLAY.fullmatch(magic):
        return f"{indent}pass  # {magic}"
    if (moved := _CD.fullmatch(magic)) is not None:
        path = moved["path"]
        bare = path[1:-1] if len(path) > 1 and path[0] == path[-1] in ("'", '"') else path
        return _with(f"{indent}__import__('os').chdir(", bare, ")")
    if (timed := _TIMED.fullmatch(magic)) is not None:
        return f"{indent}{timed['code']}"
    return line


def _with(before: str, text: str, after: str) -> str:
    """Code around a text. What it has of Python is filled in as in IPython: all of it, or none where that fails."""
    if (filled := _filled(text)) is None:
        return f"{before}{text!r}{after}"
    indent = before[: len(before) - len(before.lstrip())]
    return f"{indent}try: _ = {filled}\n{indent}except Exception: _ = {text!r}\n{before}_{after}"


def _filled(text: str, deepest: int = 2) -> str | None:
    """An expression for a text whose $names and {expressions} are filled in; None where there are none."""
    parts: list[str] = []
    try:
        for literal, field, spec, conversion in Formatter().parse(text):
            at = 0
            for found in _DOLLAR.finditer(literal):
                if found["name"] is not None:
                    parts += [repr(literal[at : found.start()] + found["twice"]), f"format(eval({found['name']!r}))"]
                    if found["twice"]:
                        parts[-1] = repr(found["name"])
                    at = found.end()
            parts.append(repr(literal[at:]))
            if field is not None:
                value = f"{_CONVERSIONS[conversion]}(eval({field!r}))"
                form = repr(spec) if not spec or deepest == 1 else _filled(spec, deepest - 1) or repr(spec)
                parts.append(f"format({value}, {form})")
    except (ValueError, KeyError):  # braces that are no fields
        return None
    return None if parts in ([], [repr(text)]) else f"''.join([{', '.join(parts)}])"
