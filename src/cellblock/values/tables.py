"""pandas' frames, series and indices as plain values: arrays of their columns, their own memory where in one piece.

Taken apart where pandas is imported already, put together where it is installed. Arrow's format is not used: its
reader trusts what it reads. Plain values have been checked by the decoder before they come to `read_table`:

    ("frame", AXIS, AXIS, [COLUMN, ...] or an array of two dimensions)    index, columns
    ("series", name, AXIS, COLUMN)
    AXIS, of an index alone
    AXIS:    ("range", start, stop, step, name)  ("index", COLUMN, name)  ("levels", [COLUMN], [codes], [name])
    COLUMN:  an array  ("objects", [...])  ("text", dtype, [text or None])  ("zoned", array, time zone)
             ("masked", dtype, values, mask)  ("category", codes, COLUMN, ordered)
"""

from __future__ import annotations

import sys
from datetime import tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from cellblock.unhurried import imported
from cellblock.values.forms import MalformedValue, NotPortable, Opaque

_TEXTS = frozenset({"str", "string"})
_MASKED = {
    **{f"{sign}nt{bits}": "IntegerArray" for sign in ("I", "UI") for bits in (8, 16, 32, 64)},
    **{f"Float{bits}": "FloatingArray" for bits in (32, 64)},
    "boolean": "BooleanArray",
}
_KINDS = "biufcmM"
_INDICES = ("Index", *(f"{kind}Index" for kind in ("Range", "Multi", "Datetime", "Timedelta", "Categorical")))
_UNITS = ("s", "ms", "us", "ns")
_CATEGORIES = 4096
"""So many that are no texts: they are hashed, and other values than texts can be made to collide."""


def _imported() -> Any:
    """pandas, where it has been imported, and whole."""
    pandas = sys.modules.get("pandas")
    return pandas if hasattr(pandas, "DataFrame") else None


def table_parts(value: object) -> tuple[object, ...] | None:
    """A frame, series, index or missing value taken apart; None for anything else. `NotPortable` for a column that has
    no row."""
    kind: Any = type(value)
    if (pandas := _imported()) is None:
        return None
    if value is pandas.NaT or value is pandas.NA:
        return ("missing", "NaT" if value is pandas.NaT else "NA")
    if kind is pandas.Series:
        series: Any = value
        return ("series", series.name, _axis(pandas, series.index), _column(pandas, series))
    if kind is pandas.DataFrame:
        frame: Any = value
        return ("frame", _axis(pandas, frame.index), _axis(pandas, frame.columns), _columns(pandas, frame))
    if any(kind is getattr(pandas, name) for name in _INDICES):
        return _axis(pandas, value)
    return None


def moment_of(value: object) -> object:
    """The datetime or timedelta that a time or duration of pandas' is; None for anything else, and for finer ones."""
    kind: Any = type(value)
    if (pandas := _imported()) is None:
        return None
    if kind is pandas.Timestamp:
        return kind.to_pydatetime(value) if value.nanosecond == 0 else None  # type: ignore[attr-defined]
    if kind is pandas.Timedelta:
        return kind.to_pytimedelta(value) if value.nanoseconds == 0 else None  # type: ignore[attr-defined]
    return None


def _columns(pandas: Any, frame: Any) -> object:
    dtypes = list(frame.dtypes)
    alike = len(dtypes) > 1 and len(set(dtypes)) == 1 and _is_plain(pandas, dtypes[0])
    if alike and not frame.iloc[:, 0].to_numpy(copy=False).flags.contiguous:  # made of one array, row by row
        return frame.to_numpy(copy=False)
    return [_column(pandas, frame.iloc[:, place]) for place in range(len(dtypes))]


def _axis(pandas: Any, index: Any) -> tuple[object, ...]:
    if type(index) is pandas.RangeIndex:
        return ("range", index.start, index.stop, index.step, index.name)
    if type(index) is pandas.MultiIndex:
        levels = [_column(pandas, pandas.Series(level, copy=False)) for level in index.levels]
        return ("levels", levels, [codes.astype("i8") for codes in index.codes], list(index.names))
    return ("index", _column(pandas, pandas.Series(index, copy=False)), index.name)


def _is_plain(pandas: Any, dtype: Any) -> bool:
    return not isinstance(dtype, pandas.api.extensions.ExtensionDtype) and dtype.kind in _KINDS


def _column(pandas: Any, series: Any) -> object:
    dtype = series.dtype
    if _is_plain(pandas, dtype):
        return series.to_numpy(copy=False)
    if dtype.kind == "O" and not isinstance(dtype, pandas.api.extensions.ExtensionDtype):
        return ("objects", series.tolist())
    if type(dtype) is pandas.StringDtype:
        texts = series.astype(object).where(series.notna(), None).tolist()
        return ("text", "str" if str(dtype) == "str" else "string", texts)
    if type(dtype) is pandas.DatetimeTZDtype:
        zone: Any = dtype.tz
        if type(zone).__module__.partition(".")[0] == "pytz":  # pandas' own, before 3.0
            zone = ZoneInfo(str(zone))
        return ("zoned", series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(copy=False), zone)
    if str(dtype) in _MASKED and type(series.array).__name__ == _MASKED[str(dtype)]:
        return ("masked", str(dtype), series.array._data, series.array._mask)
    if type(dtype) is pandas.CategoricalDtype:
        categories = pandas.Series(dtype.categories, copy=False)
        if len(categories) > _CATEGORIES and not all(type(one) is str for one in categories):
            raise NotPortable(f"a column of more than {_CATEGORIES} categories that are no texts")
        return ("category", series.cat.codes.to_numpy(copy=False), _column(pandas, categories), bool(dtype.ordered))
    raise NotPortable(f"a column of type {dtype}")


def read_table(parts: list[object]) -> object:
    """Security border: a frame, series, index or missing value from values made inside; `MalformedValue` for others.

    An `Opaque` where pandas or numpy is missing. What pandas raises is the fault of the values, whatever it is.
    """
    try:
        pandas: Any = imported("pandas")
    except ImportError:
        kind = {"series": "Series", "frame": "DataFrame", "missing": "NAType"}.get(str(*parts[:1]), "Index")
        return Opaque(kind, f"<{kind}>", "pandas is not installed here (pip install 'cellblock[data]')")
    try:
        return _Builder(pandas).build(parts)
    except (MalformedValue, MemoryError):
        raise
    except Exception as error:
        raise MalformedValue(f"no table: {type(error).__name__}: {error}") from None


class _Builder:
    def __init__(self, pandas: Any) -> None:
        self._pandas = pandas
        self._numpy: Any = imported("numpy")

    def build(self, parts: list[object]) -> object:
        match parts:
            case ["series", name, index, column]:
                axis, values = self._axis(index), self._column(column)
                _require(len(values) == len(axis), "a series as long as its index")
                return self._pandas.Series(values, index=axis, dtype=values.dtype, name=name, copy=False)
            case ["frame", index, labels, columns]:
                return self._frame(self._axis(index), self._axis(labels), columns)
            case ["range" | "index" | "levels", *_]:
                return self._axis(parts)
            case ["missing", "NaT" | "NA" as name]:
                return getattr(self._pandas, name)
        raise MalformedValue("neither frame, series, index nor missing value")

    def _frame(self, index: Any, labels: Any, columns: object) -> object:
        if isinstance(columns, list):
            held = [self._column(column) for column in columns]
            _require(len(held) == len(labels), "a column for each label")
            _require(all(len(one) == len(index) for one in held), "columns as long as their index")
            series = [self._pandas.Series(one, index=index, dtype=one.dtype, copy=False) for one in held]
            frame = self._pandas.DataFrame(dict(enumerate(series)), index=index, copy=False)
            frame.columns = labels
            return frame
        block: Any = columns
        _require(type(block) is self._numpy.ndarray and block.ndim == 2, "columns")
        self._plain(block)
        _require(block.shape == (len(index), len(labels)), "a block of that shape")
        return self._pandas.DataFrame(block, index=index, columns=labels, copy=False)

    def _axis(self, axis: object) -> Any:
        match axis:
            case ("range", int(start), int(stop), int(step), name):
                return self._pandas.RangeIndex(start, stop, step, name=name)
            case ("index", column, name):
                return self._index(column, name)
            case ("levels", list(levels), list(codes), list(names)):
                return self._levels([self._index(level) for level in levels], codes, names)
        raise MalformedValue("no index")

    def _levels(self, levels: list[Any], codes: list[Any], names: list[object]) -> Any:
        _require(len(levels) == len(codes) == len(names) > 0, "levels")
        for level, of_level in zip(levels, codes, strict=True):
            self._codes(of_level, len(level))
        _require(len({len(one) for one in codes}) == 1, "levels of one length")
        return self._pandas.MultiIndex(levels, codes, names=names, verify_integrity=False)

    def _index(self, column: object, name: object = None) -> Any:
        held = self._column(column)
        return self._pandas.Index(held, dtype=held.dtype, name=name, copy=False)  # of the dtype told, not a guessed one

    def _column(self, column: object) -> Any:
        pandas = self._pandas
        match column:
            case ("objects", list(items)):
                held = self._numpy.empty(len(items), object)
                held[:] = items
                return held
            case ("text", str(dtype), list(texts)) if dtype in _TEXTS and {type(one) for one in texts} <= {
                str,
                type(None),
            }:
                return pandas.array(texts, dtype=dtype)
            case ("zoned", stamps, tzinfo() as zone):
                _require(self._plain(stamps).dtype.kind == "M", "times")
                return pandas.DatetimeIndex(stamps, copy=False).tz_localize("UTC").tz_convert(zone).array
            case ("masked", str(dtype), values, mask) if dtype in _MASKED:
                _require(self._plain(values).dtype.name == dtype.lower().replace("boolean", "bool"), "values")
                _require(self._plain(mask).dtype.kind == "b" and mask.shape == values.shape, "a mask")  # type: ignore[attr-defined]
                return getattr(pandas.arrays, _MASKED[dtype])(values, mask, copy=False)
            case ("category", codes, categories, bool(ordered)):
                kept = self._index(categories)
                _require(len(kept) <= _CATEGORIES or all(type(one) is str for one in kept), "few categories")
                self._codes(codes, len(kept))
                for one in kept:
                    hash(one)
                return pandas.Categorical.from_codes(codes, categories=kept, ordered=ordered)
        _require(self._plain(column).ndim == 1, "a column of one dimension")
        return column

    def _plain(self, array: Any) -> Any:
        """An array of a dtype that pandas holds as it is."""
        _require(type(array) is self._numpy.ndarray and array.dtype.kind in _KINDS, "an array")
        _require(array.dtype.isnative, "an array in this machine's byte order")
        if array.dtype.kind in "mM":
            _require(self._numpy.datetime_data(array.dtype) in [(unit, 1) for unit in _UNITS], "a unit of pandas'")
        return array

    def _codes(self, codes: Any, count: int) -> None:
        _require(self._plain(codes).dtype.kind == "i" and codes.ndim == 1, "codes")
        _require(not len(codes) or (codes.min() >= -1 and codes.max() < count), "codes that name something")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise MalformedValue(f"a table without {what}")
