"""A cell as a model is shown it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from cellblock.cell import Cell, CellError, CellState
from cellblock.differences import Name
from cellblock.text import line, name, row

_MOST_NAMES = 12
_LONGEST = 10_000
"""Characters of a preview, which is short as it comes from inside."""
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""The parts of a preview that differ from one process to the next."""
_NOT_TOLD = frozenset(("module", "function", "type"))
_NOT_SHOWN = frozenset(("memory", "AgentMemory"))


def outcome(cell: Cell) -> str:
    """One line on how a cell ended."""
    if cell.ok:
        return f"Cell {cell.number} ran."
    back = " Names and files are as they were before it." if cell.rolled_back else ""
    if cell.state is CellState.TIMEOUT:
        return f"Cell {cell.number} was ended at its time limit.{back}"
    kind = {
        "refused": "was refused, and nothing of it was run",
        "memory": "went over its memory limit",
        "crashed": "ended its process",
    }
    return f"Cell {cell.number} {kind.get(cell.error.kind if cell.error else '', 'failed')}.{back}"


def remarks(cell: Cell) -> list[str]:
    """Remarks for the model beyond the output: why names are gone or will not last."""
    return list(map(str, cell.lost[:_MOST_NAMES]))


def approach(code: str, error: CellError) -> str:
    """A failed cell as a line of memory: where it began, and what came of it."""
    first = next((line.strip() for line in code.splitlines() if line.strip() and not line.strip().startswith("#")), "")
    cut = "…" if len(first) > 200 else ""
    more = " …" if len(code.strip().splitlines()) > 1 else ""
    return f"{row(first[:200])}{cut}{more} -> {line(error.type)}: {line(error.message, 300)}"


def worth_a_look(types: Mapping[str, str], names: Collection[str]) -> bool:
    """True if any of these names says something of the state: modules, functions and classes the model has written."""
    return any(name not in _NOT_SHOWN and types[name] not in _NOT_TOLD for name in names)


def preview(one: Name) -> str:
    """A name's type and value in a line, without what differs from one process to the next."""
    return f"{line(one.type)} = {_ADDRESS.sub('', line(one.preview, _LONGEST))}"


def previews(found: Mapping[str, Name], new: Collection[str]) -> str:
    """The names that a cell has bound anew, or to another type, previewed within a line each."""
    rows = [
        f"{name(key)}: {preview(one)}"
        for key, one in found.items()
        if key in new and key not in _NOT_SHOWN and one.type not in _NOT_TOLD
    ]
    if not rows:
        return ""
    more = [f"and {len(rows) - _MOST_NAMES} more"] if len(rows) > _MOST_NAMES else []
    return "\n".join(["New names:", *(f"- {one}" for one in [*rows[:_MOST_NAMES], *more])])
