"""Events of a running cell: `Output | ToolCall | Done`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cellblock.cell import Cell
from cellblock.outputs import Output


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A cell called a host function; the host is about to answer."""

    id: int
    name: str
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The cell ended; always the last event of a stream."""

    cell: Cell


Event = Output | ToolCall | Done
