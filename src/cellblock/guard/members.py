"""The public names of classes and modules that were looked at: one row each in `members.txt`, by hand or reviewed.

A row begins with the name of a class or module; what is indented goes on with it. What no row names is refused, so what
a later version of Python adds is refused until somebody has looked at it and put it here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

MEMBERS = Path(__file__).parent / "members.txt"


def row_name(kind: type) -> str:
    """Name of the row of a class."""
    return f"{kind.__module__}.{kind.__qualname__}"


def listed(name: str) -> frozenset[str]:
    """The names that the row of a class or module grants; none where it has no row."""
    return rows().get(name, frozenset())


@cache
def rows() -> Mapping[str, frozenset[str]]:
    """The rows by name."""
    found: dict[str, frozenset[str]] = {}
    name = ""
    for line in MEMBERS.read_text(encoding="ascii").splitlines():
        if line.startswith("#") or not line:
            continue
        head, _, rest = ("", "", line) if line.startswith(" ") else line.partition(":")
        name = head or name
        found[name] = found.get(name, frozenset()) | frozenset(rest.split())
    return found
