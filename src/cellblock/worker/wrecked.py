"""Cells that fail for want of Python itself, which an earlier cell has taken away: only `undo` brings it back."""

from __future__ import annotations

import builtins
from collections.abc import Mapping

_MODULES = {
    "collections", "csv", "datetime", "decimal", "functools", "itertools", "json", "math", "os", "pathlib", "random",
    "re", "statistics", "string", "sys", "time", "typing",
}  # fmt: skip
"""Some that every interpreter has."""


def lacks_python(error: BaseException, known: Mapping[str, object]) -> bool:
    """True where an error is for want of what every interpreter has, and this one does not have any more.

    `known` are the names that cells have of Python's own.
    """
    kind, name = type(error), getattr(error, "name", "") if type(error) in (NameError, ModuleNotFoundError) else ""
    if kind is ImportError:
        return "__import__" not in known
    if type(name) is not str:
        return False
    return name in vars(builtins) and name not in known if kind is NameError else name in _MODULES
