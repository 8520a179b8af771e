"""Data frames and series of pandas and polars as JSON: columns, dtypes, shape and the first rows."""

from __future__ import annotations

from math import isfinite
from sys import modules
from typing import Any

from cellblock.text import cut, exact, type_name, valid

HEAD_ROWS = 10
MAX_COLUMNS = 200
_CELL_CHARS = 200
_INT64 = 2**63


def table_of(value: object) -> dict[str, object] | None:
    """A table's JSON; None for a value that is none. `shape` is the whole table's, the rest is bounded."""
    kind = type(value)
    for module, name, read in _READERS:
        table = getattr(modules.get(module), name, None)
        if isinstance(table, type) and issubclass(kind, table):
            return read(value)
    return None


def _pandas_frame(frame: Any) -> dict[str, object]:
    head = frame.iloc[:HEAD_ROWS, :MAX_COLUMNS]
    return {
        "columns": [_label(name) for name in head.columns],
        "dtypes": [_label(dtype) for dtype in head.dtypes],
        "shape": list(frame.shape),
        "head": [[_cell(item) for item in row] for row in head.itertuples(index=False, name=None)],
        "index": [_cell(label) for label in head.index],
    }


def _pandas_series(series: Any) -> dict[str, object]:
    head = series.iloc[:HEAD_ROWS]
    return {
        "columns": [_label(series.name)],
        "dtypes": [_label(series.dtype)],
        "shape": list(series.shape),
        "head": [[_cell(item)] for item in head],
        "index": [_cell(label) for label in head.index],
    }


def _polars_frame(frame: Any) -> dict[str, object]:
    columns = frame.columns[:MAX_COLUMNS]
    head = frame.head(HEAD_ROWS)
    return {
        "columns": [_label(name) for name in columns],
        "dtypes": [_label(dtype) for dtype in frame.dtypes[:MAX_COLUMNS]],
        "shape": list(frame.shape),
        "head": [[_cell(item) for item in row[:MAX_COLUMNS]] for row in head.rows()],
        "index": list(range(len(head))),
    }


def _polars_series(series: Any) -> dict[str, object]:
    head = series.head(HEAD_ROWS).to_list()
    return {
        "columns": [_label(series.name)],
        "dtypes": [_label(series.dtype)],
        "shape": [len(series)],
        "head": [[_cell(item)] for item in head],
        "index": list(range(len(head))),
    }


_READERS = (
    ("pandas", "DataFrame", _pandas_frame),
    ("pandas", "Series", _pandas_series),
    ("polars", "DataFrame", _polars_frame),
    ("polars", "Series", _polars_series),
)


def _cell(value: object) -> object:
    """A cell as JSON: missing values are null, what JSON lacks is text."""
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    if value is None or type(value) is bool:
        return value
    if type(value) is int and -_INT64 <= value < _INT64:
        return value
    if type(value) is float:
        return value if isfinite(value) else None if value != value else str(value)
    if type_name(value) in ("NAType", "NaTType"):
        return None
    return _label(value)


def _label(value: object) -> str:
    try:
        text = exact(str(value), None)
    except Exception as error:  # the value's own code
        text = f"<{type_name(value)} str failed: {type_name(error)}>"
    return valid(cut(text, _CELL_CHARS))
