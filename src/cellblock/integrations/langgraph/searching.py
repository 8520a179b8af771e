"""Listing and searching a session's files, by a program that runs inside the walls: patterns are the model's.

It is not a cell and binds no name. Files of the workspace are named from there, others by their whole path. What is
mounted, such as the interpreter, is left out, and so are caches below the directory that is searched.
"""

from __future__ import annotations

from dataclasses import dataclass

from cellblock.errors import CellblockError
from cellblock.session.session import AsyncSession
from cellblock.session.timeline import CACHES, COMPILED

MOST = 1000
"""Rows of a result."""
_LONGEST = 10_000
"""Characters of a row: a path and a line have 4,600 at most."""


@dataclass(frozen=True, slots=True)
class Found:
    """Rows to show; `more` is True where some were left out."""

    rows: tuple[str, ...]
    more: bool


async def search(
    session: AsyncSession,
    *,
    below: str = "",
    glob: str = "",
    regex: str | None = None,
    sizes: bool = False,
    most: int = MOST,
) -> Found:
    """Find files below `below` whose names match `glob`, or the lines of them that match `regex`.

    A `glob` without "/" matches names in any directory; `**` stands for any directories. `regex` is Python's; with None
    the rows are files, with their sizes where `sizes` is true. CellblockError: the pattern is none, there is no such
    directory, it took too long.
    """
    wanted = {"below": below, "glob": glob, "regex": regex, "sizes": sizes, "most": most}
    asked = {**wanted, "caches": CACHES, "compiled": COMPILED}
    told = await session.aside(_CALL.format(program=_PROGRAM, wanted=asked), reads=True)
    match told:
        case ["found", list(rows), bool(more)] if all(isinstance(row, str) for row in rows[:most]):
            found = tuple(row[:_LONGEST] for row in rows[:most])  # the program runs where a cell may change it
            return Found(found, more or len(found) < len(rows))
        case ["failed", str(why)]:
            raise CellblockError(why)
    raise CellblockError("the session's files could not be listed", hint="has a cell replaced os or re?")


_CALL = "(lambda space: (exec({program!r}, space), space['told'])[1])({{'wanted': {wanted!r}}})"
_PROGRAM = """
import os, re, stat

HOME, ROOTS = "/session/workspace", ("/session/workspace", "/session/tmp", "/session/data")
ALIASES = {"/workspace": ROOTS[0], "/tmp": ROOTS[1], "/data": ROOTS[2]}

CACHES = tuple("/session/" + path for path in wanted["caches"])
DEVICE = os.stat(HOME).st_dev
MOST = 500  # characters of a line

def real(path):
    path = os.path.normpath(os.path.join(HOME, path))
    for alias, root in ALIASES.items():
        if path == alias or path.startswith(alias + "/"):
            return root + path[len(alias):]
    return path

def shown(path):
    if path.startswith(HOME + "/"):
        return path[len(HOME) + 1:]
    for alias, root in ALIASES.items():
        if path.startswith(root + "/"):
            return alias + path[len(root):]
    return path

def pattern(glob):
    out, at = "", 0
    while at < len(glob):
        one = glob[at]
        if glob.startswith("**/", at):
            out, at = out + "(?:[^/]+/)*", at + 3
            continue
        if glob.startswith("**", at):
            out, at = out + ".*", at + 2
            continue
        end = glob.find("]", at + 2) if one == "[" else -1
        if end > 0:
            inner = glob[at + 1:end].replace("\\\\", r"\\\\")
            out, at = out + "[" + ("^" + inner[1:] if inner[0] == "!" else inner) + "]", end + 1
            continue
        out, at = out + ("[^/]*" if one == "*" else "[^/]" if one == "?" else re.escape(one)), at + 1
    return re.compile(out, re.S)

def own(path):
    try:
        return os.lstat(path).st_dev == DEVICE
    except OSError:
        return False

def is_searched(path):
    is_cache = path + "/" in CACHES or os.path.basename(path) == wanted["compiled"]
    return own(path) and not is_cache

def walk(tops):
    for top in tops:
        for directory, names, files in os.walk(top):
            names[:] = sorted(name for name in names if is_searched(os.path.join(directory, name)))
            for name in sorted(files):
                path = os.path.join(directory, name)
                try:
                    if stat.S_ISREG(os.lstat(path).st_mode) and own(path):
                        yield path
                except OSError:
                    pass

def part(line, at):
    start = max(0, min(at - 100, len(line) - MOST))
    left, right = start, max(0, len(line) - start - MOST)
    return mark(left) + line[start:start + MOST] + mark(right)

def mark(size):
    return f"[… {size:,} characters, read them with code …]" if size else ""

def lines(path, expression):
    try:
        with open(path, "rb") as file:
            if b"\\0" in file.read(1024):
                return
            file.seek(0)
            for number, line in enumerate(file, 1):
                line = line.decode("utf-8", "replace").rstrip("\\r\\n")
                if (match := expression.search(line)) is not None:
                    yield f"{shown(path)}:{number}: {part(line, match.start())}"
    except OSError:
        pass

def find():
    below = wanted["below"]
    tops = [real(below)] if below else [root for root in ROOTS if os.path.isdir(root)]
    if below and not any(tops[0] == root or tops[0].startswith(root + "/") for root in ROOTS):
        return ["failed", f"{below!r} is not among the session's files"]
    if below and not os.path.isdir(tops[0]):
        return ["failed", f"{below!r} is not a directory"]
    glob, expression = wanted["glob"], None
    try:
        if wanted["regex"] is not None:
            expression = re.compile(wanted["regex"])
        matches = pattern(glob) if glob else None
    except re.error as error:
        return ["failed", f"the pattern is not a regular expression: {error}"]
    rows = []
    for path in walk(tops):
        name = os.path.relpath(path, tops[0] if below else HOME if path.startswith(HOME) else "/session")
        absolute = shown(path)
        subject = os.path.basename(path) if "/" not in glob else absolute if glob.startswith("/") else name
        if matches and not matches.fullmatch(subject):
            continue
        if expression is None:
            rows.append(f"{absolute} ({os.path.getsize(path)} bytes)" if wanted["sizes"] else absolute)
        else:
            rows.extend(lines(path, expression))
        if len(rows) > wanted["most"]:
            return ["found", rows[:wanted["most"]], True]
    return ["found", rows, False]

told = find()
"""
