"""Cells as plain data and back: what a store keeps of a notebook. Binary parts stand apart, by their URIs."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args

from cellblock.cell import NOTHING, Cell, CellError, CellKind, CellState, Deferred, ErrorKind, Lost
from cellblock.documents import fits
from cellblock.limits import Usage
from cellblock.outputs import Output, OutputType


def _all(names: str, shape: type) -> dict[Any, object]:
    return dict.fromkeys(names.split(), shape)


_COUNT = range(2**63)
_CELL: dict[Any, object] = {
    **_all("id source state text", str), "number": _COUNT, "kind": get_args(CellKind),
    "outputs": [{"type": str, "data": {...: object}, "uri": (str, None), "is_result": bool, "stream": (str, None)}],
    "error": ({**_all("type message traceback hint", str), "kind": get_args(ErrorKind),
               ...: (range(-2**63, 2**63), None)}, None),
    "lost": [{**_all("name type reason remedy", str), ...: bool}], "usage": {...: (float, _COUNT)},
    **_all("rolled_back undone has_value", bool), ...: (bool, _COUNT),
}  # fmt: skip
"""The shape of a stored cell, for `fits`. Older ones lack `cut`, an error's status and parts of the usage."""

_OPTIONAL, _SECONDS = "timeout_seconds", (float, _COUNT, None)
"""A key that older cells lack, and its shape."""

_NOT_KEPT = (
    "a store keeps what cells showed and names hold: a value that is bound to a name comes back;"
    " session.rerun(cell.id) runs the cell anew, with all that it does outside, such as calls of tools"
)


def to_plain(cell: Cell) -> dict[str, object]:
    """A cell as JSON data. Its value is not part of it."""
    return {**cell.to_json(), "has_value": cell.result.size > 0}


def from_plain(plain: Any) -> Cell:
    """The cell of `to_plain`. KeyError, TypeError or ValueError where the data is not of that form."""
    if not (isinstance(plain, dict) and fits(plain | {_OPTIONAL: 0}, _CELL) and fits(plain.get(_OPTIONAL), _SECONDS)):
        raise TypeError("it does not hold what a cell does")
    given = {one.name: plain[one.name] for one in fields(Cell) if one.name in plain}
    parts: dict[str, Any] = {
        "state": CellState(plain["state"]),
        "outputs": tuple(Output(**{**one, "type": OutputType(one["type"])}) for one in plain["outputs"]),
        "error": plain["error"] and CellError(**plain["error"]),
        "lost": tuple(Lost(**lost) for lost in plain["lost"]),
        "usage": Usage(**plain["usage"]),
    }
    return Cell(**{**given, **parts}, result=Deferred(_not_kept) if plain["has_value"] else NOTHING)


def _not_kept() -> object:
    from cellblock.values.forms import Opaque

    return Opaque("not kept", _NOT_KEPT)
