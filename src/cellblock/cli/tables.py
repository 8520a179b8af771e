"""What commands that look things up print: columns, and lines of their own on stderr."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

from cellblock.cli.terminal import Printer
from cellblock.text import line

_LONGEST = 10_000
"""Characters of a cell of a table."""


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as what is in them, each text a line; the last is cut at the edge of a terminal."""
    if not rows:
        return
    lines = [titles, *[[line(text, _LONGEST) for text in row] for row in rows]]
    widths = [max(len(cells[column]) for cells in lines) for column in range(len(titles) - 1)]
    out = Printer(sys.stdout)
    edge = shutil.get_terminal_size().columns if out.is_terminal else None
    for cells in lines:
        padded = [text.ljust(width) for text, width in zip(cells, widths, strict=False)]
        out.line("  ".join([*padded, cells[-1]]).rstrip()[:edge])

