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
_COMMAND = re.compile(r"(?:!(?!=)|%(?=(?:pip|conda|mamba|ls|mkdir|cat|cp|mv|rm)\b))(?P<command>.+)")
_CAPTURED = re.compile(r"(?P<target>[\w., \t]++=[ \t]*+)!(?P<command>.+)")
_FILE = re.compile(r"%%(?:writefile|file)\s+(?P<append>-a\s+)?(?P<path>\S.*)")
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
    lines = [line for line in source.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if lines and all(line.startswith("!") for line in lines):
        return "shell", "\n".join(line[1:] for line in lines)
    if (file := _FILE.fullmatch(first.strip())) is not None:
        how = "a" if file["append"] else "w"
        return "python", f"with open({file['path']!r}, {how!r}) as _file:\n    _file.write({rest!r})\ndel _file"
    if first.startswith("%%"):
        if _TIMES.fullmatch(first.strip()) is None:
            return "python", source
        source = rest
    return "python", "\n".join(_lines(source))


def _lines(source: str) -> Iterator[str]:
    """The lines as Python. Those in a text of several lines belong to it."""
    text = Nesting()
    for line in source.split("\n"):
        yield line if text.quotes else _line(line)
        text.add(line)


def _line(line: str) -> str:
    """A line that is IPython's and not Python's, as Python."""
    if (captured := _CAPTURED.fullmatch(line)) is not None:  # the lines that a command prints, bound to a name
        return f"{captured['target']}__import__('os').popen({captured['command']!r}).read().splitlines()"
    if (match := _LINE.fullmatch(line.rstrip())) is None:
        return line
    indent, magic = match["indent"], match["magic"]
    if (command := _COMMAND.fullmatch(magic)) is not None:
        return f"{indent}_ = __import__('os').system({command['command'].strip()!r})"
    if (asked := _HELP.fullmatch(magic)) is not None:
        return f"{indent}help({asked['name']})"
    if _DISPLAY.fullmatch(magic):
        return f"{indent}pass  # {magic}"
    if (moved := _CD.fullmatch(magic)) is not None:
        return f"{indent}__import__('os').chdir({moved['path']!r})"
    if (timed := _TIMED.fullmatch(magic)) is not None:
        return f"{indent}{timed['code']}"
    return line
