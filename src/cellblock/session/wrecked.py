"""Cells that fail for want of Python itself, which an earlier cell has taken away: only `undo` brings it back."""

from __future__ import annotations

import re

from cellblock.cell import CellError

_LACKING = re.compile(r"(?:__import__ not found|(?:name|No module named) '(\w{1,40})'(?: is not defined)?)")
_ALWAYS: dict[str, set[str | None]] = {
    "ImportError": {None},
    "NameError": {
        "Exception", "ValueError", "bool", "dict", "enumerate", "float", "int", "isinstance", "len", "list", "max",
        "min", "print", "range", "repr", "set", "sorted", "str", "sum", "tuple", "zip",
    },
    "ModuleNotFoundError": {
        "collections", "csv", "datetime", "decimal", "functools", "itertools", "json", "math", "os", "pathlib",
        "random", "re", "statistics", "string", "sys", "time", "typing",
    },
}  # fmt: skip
"""What every interpreter has, by the error for what is lacking."""
HINT = (
    "a cell has changed Python itself here, as by emptying builtins or sys.path: session.undo() goes back to before it"
)


def hint_of_wreck(error: CellError) -> str:
    """The remedy where an error is for want of what every interpreter has; "" for any other."""
    found = _LACKING.match(error.message)
    return HINT if found is not None and found[1] in _ALWAYS.get(error.type, set()) else ""
