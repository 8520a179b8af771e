"""The conversation of one run, kept within a budget; and a cell as a model is shown it there."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from cellblock.cell import Cell, CellError, CellState
from cellblock.differences import Name
from cellblock.models import Message
from cellblock.text import line, name, row

_LEFT_OUT = "(what this cell showed is left out here, for length)"
_CODE_LEFT_OUT = "(left out here, for length)"
_KEPT = 2
"""The newest messages, which are never left out."""
_MOST_NAMES = 12
_LONGEST = 10_000
"""Characters of a preview, which is short as it comes from inside."""
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""The parts of a preview that differ from one process to the next."""
_NOT_TOLD = frozenset(("module", "function", "type"))
_NOT_SHOWN = frozenset(("memory", "AgentMemory"))


class Context:
    """The conversation as a model is shown it: the system's text and the task, which always stay, then replies and
    observations."""

    def __init__(self, system: str, task: str, *, budget: int) -> None:
        """`budget` is in characters, about four to a token."""
        self._head: list[Message] = [{"role": "system", "content": system}, {"role": "user", "content": task}]
        self._rest: list[Message] = []
        self.budget = budget

    def reply(self, text: str) -> None:
        """Add what the model said."""
        self._rest.append({"role": "assistant", "content": text or "(nothing)"})

    def observe(self, text: str) -> None:
        """Add what the model is shown, to one message: there are endpoints that take no two of one side in a row."""
        if self._rest and self._rest[-1]["role"] == "user":
            text = f"{self._rest.pop()['content']}\n\n{text}"
        self._rest.append({"role": "user", "content": text})

    def messages(self) -> list[Message]:
        """The messages, within the budget as far as the head and the newest two are.

        Observations are left out first, oldest first; then replies, in the same order.
        """
        rest = [dict(one) for one in self._rest]
        size = sum(len(one["content"]) for one in (*self._head, *rest))
        for role, short in (("user", _LEFT_OUT), ("assistant", _CODE_LEFT_OUT)):
            for one in rest[:-_KEPT]:
                if size > self.budget and one["role"] == role and len(short) < len(one["content"]):
                    size -= len(one["content"]) - len(short)
                    one["content"] = short
        return [*map(dict, self._head), *rest]


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


def losses(cell: Cell) -> list[str]:
    """The names that are gone or will not last, each with the reason."""
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
