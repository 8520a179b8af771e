"""Columns, as commands that look things up print them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence

from cellblock.cli.terminal import Printer
from cellblock.text import line

_LONGEST = 10_000
"""Characters of a cell of a table."""


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows in columns with titles, printed; each is cut at the edge of a terminal.

    A column that has nothing in any row is left out; elsewhere nothing is a dash.
    """
    kept = [place for place in range(len(titles)) if any(row[place] for row in rows)]
    out = Printer(sys.stdout)
    edge = shutil.get_terminal_size().columns if out.is_terminal else None
    for row in columns([[row[place] or "-" for place in kept] for row in (titles, *rows)]) if kept else ():
        out.line(row[:edge])


def columns(rows: Iterable[Sequence[str]], widest: int = _LONGEST) -> list[str]:
    """Rows in columns, up to `widest` wide, a line each; words from inside lose what is no text, line breaks first."""
    found = [[line(word, _LONGEST) for word in row] for row in rows]
    widths = [min(max(map(len, column)), widest) for column in zip(*found, strict=True)]
    return ["  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in found]
