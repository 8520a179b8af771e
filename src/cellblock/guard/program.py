"""Source that was checked: what `check` gives and a world runs."""

from __future__ import annotations

from dataclasses import dataclass
from types import CodeType

from cellblock.guard.scopes import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Checked and compiled source: its statements, and its last expression where there is one.

    `reads`, `writes` and `groups` are the attributes that it names, whose sets a world must have before it runs;
    `swaps` those among them that are methods of the guard's own for some types. Each code is a function's without
    arguments, or a module's.
    """

    filename: str
    body: CodeType | None
    last: CodeType | None
    reads: frozenset[str]
    writes: frozenset[str]
    reaches: frozenset[str]
    groups: frozenset[Group]
    swaps: frozenset[str]
