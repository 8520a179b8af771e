"""Cells as plain data and back: what a store keeps of a notebook. Binary parts stand apart, by their URIs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cellblock.cell import Cell, CellError, CellState, Deferred, Lost
from cellblock.limits import Usage
from cellblock.outputs import Output, OutputType

_NOT_KEPT = "a store keeps what cells showed; session.rerun(cell.id) gives the value"


def to_plain(cell: Cell) -> dict[str, object]:
    """A cell as JSON data. Its value is not part of it."""
    return {**cell.to_json(), "has_value": cell.result.size > 0}


def from_plain(plain: Mapping[str, Any]) -> Cell:
    """The cell of `to_plain`. KeyError, TypeError or ValueError where the data is not of that form."""
    cell = Cell(
        id=str(plain["id"]),
        number=int(plain["number"]),
        kind=plain["kind"],
        source=str(plain["source"]),
        state=CellState(plain["state"]),
        outputs=tuple(_shown(output) for output in plain["outputs"]),
        error=None if plain["error"] is None else CellError(**plain["error"]),
        lost=tuple(Lost(**lost) for lost in plain["lost"]),
        rolled_back=bool(plain["rolled_back"]),
        undone=bool(plain["undone"]),
        usage=Usage(**plain["usage"]),
        text=str(plain["text"]),
        cut=int(plain.get("cut", 0)),  # cells of before lack it, and a status
    )
    return replace(cell, result=Deferred(_not_kept)) if plain["has_value"] else cell


def _shown(plain: Mapping[str, Any]) -> Output:
    return Output(**{**plain, "type": OutputType(plain["type"]), "data": dict(plain["data"])})


def _not_kept() -> object:
    from cellblock.values.forms import Opaque

    return Opaque("not kept", _NOT_KEPT)
