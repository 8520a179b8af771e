"""Places of code in the sources of cells, from which a function or class is made again, once checked."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType

from cellblock.guard.check import Program

Place = tuple[tuple[str, int], ...]
"""From a program inwards: names of codes, each with its number among those of that name."""

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A source that was checked, under the flags that `from __future__` had set by then, and its program."""

    filename: str
    text: str
    flags: int
    program: Program
    places: dict[int, Place] = field(init=False, repr=False)
    """Of each code in it, by identity: the program keeps them alive."""

    def __post_init__(self) -> None:
        found = {id(code): place for code, place in _within(_tops(self.program), ())}
        object.__setattr__(self, "places", found)

    def code(self, place: Place) -> CodeType | None:
        """The code at a place; None where there is none."""
        return next((code for code, where in _within(_tops(self.program), ()) if where == place), None)


def statement(source: Source, name: str, line: int) -> str | None:
    """The definition that begins on a line, alone, on its own lines; None where none of that name does."""
    for node in _definitions(ast.parse(source.text).body):
        first = min((one.lineno for one in node.decorator_list), default=node.lineno)
        if node.name == name and first == line:
            lines = source.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[first - 1 : node.end_lineno]
            before = [""] * (first - 1)
            if node.col_offset:
                before[-1:] = ["if True:"]
            return "\n".join((*before, *lines))
    return None


def _definitions(block: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Those that are in no other."""
    for node in block:
        if isinstance(node, _DEFINITIONS):
            yield node
            continue
        for name in ("body", "orelse", "finalbody"):
            yield from _definitions(getattr(node, name, []))
        for name in ("handlers", "cases"):
            for part in getattr(node, name, ()):
                yield from _definitions(part.body)


def _tops(program: Program) -> list[CodeType]:
    return [code for code in (program.body, program.last) if code is not None]


def _within(codes: list[CodeType], place: Place) -> Iterator[tuple[CodeType, Place]]:
    counts: dict[str, int] = {}
    for outer in codes:
        for code in outer.co_consts:
            if isinstance(code, CodeType):
                number = counts.setdefault(code.co_name, 0)
                counts[code.co_name] += 1
                here = (*place, (code.co_name, number))
                yield code, here
                yield from _within([code], here)
