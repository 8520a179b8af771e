"""Frames and series: what goes across comes out equal, and what no frame gives makes none (W7)."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cellblock.values.portable import MalformedValue, NotPortable, Opaque, decode, encode, pack, unpack

OF_EACH = {
    "int": [1, 2, 3],
    "small": np.array([1, 2, 3], "u1"),
    "float": [1.5, np.nan, np.inf],
    "bool": [True, False, True],
    "complex": [1j, 2, 3],
    "text": ["a", None, "é日"],
    "string": pd.array(["a", None, ""], dtype="string"),
    "object": pd.Series([{"a": 1}, [2], None], dtype=object),
    "texts that are objects": pd.Series(["a", "b", "c"], dtype=object),
    "time": pd.to_datetime(["2020-01-01", None, "2021-01-01T12:00:00.5"], format="ISO8601"),
    "zoned": pd.to_datetime(["2020-06-01", "2020-01-01", None]).tz_localize(ZoneInfo("Europe/Berlin")),
    "offset": pd.to_datetime(["2020-06-01"] * 3).tz_localize(dt.timezone(dt.timedelta(hours=5))),
    "duration": pd.to_timedelta([1, 2, None], unit="s"),
    "Int64": pd.array([1, None, 3], dtype="Int64"),
    "UInt8": pd.array([1, None, 3], dtype="UInt8"),
    "Float32": pd.array([1.5, None, 3], dtype="Float32"),
    "boolean": pd.array([True, None, False], dtype="boolean"),
    "category": pd.Categorical(["u", None, "v"], categories=["v", "u"], ordered=True),
    "numbered": pd.Categorical([3, 1, 3]),
}
FRAME = pd.DataFrame(OF_EACH)

FRAMES = {
    "of each": FRAME,
    "nothing": pd.DataFrame(),
    "an index alone": pd.DataFrame(index=pd.RangeIndex(3)),
    "one array by rows": pd.DataFrame(np.arange(6000.0).reshape(1000, 6), columns=list("abcdef")),
    "one array by columns": pd.DataFrame(np.asfortranarray(np.arange(6000.0).reshape(1000, 6))),
    "every other row": pd.DataFrame(np.arange(6000.0).reshape(1000, 6)).iloc[::2],
    "two columns of one name": pd.DataFrame([[1, 2.5]], columns=["a", "a"]),
    "labels that are pairs": pd.DataFrame({(1, "x"): [1], (2, "y"): [2]}),
    "an index of text": FRAME.set_index("texts that are objects"),
    "an index of two levels": FRAME.set_index(["int", "text"]),
    "an index of times": pd.DataFrame({"x": [1, 2]}, index=pd.DatetimeIndex(["2020-01-01", "2020-01-02"], name="day")),
    "labels of two levels": FRAME.groupby("int").agg({"float": ["sum", "min"], "small": ["max"]}),
    "an index with a step": pd.DataFrame({"x": range(10)}).iloc[::-3],
    "a named index": pd.DataFrame({"x": [1]}, index=pd.RangeIndex(1, name="row")),
}


def across(value: object) -> Any:
    return unpack(tuple(map(bytes, pack(encode(value)))))


@pytest.mark.parametrize("frame", FRAMES.values(), ids=list(FRAMES))
def test_an_index_comes_out_equal(frame: pd.DataFrame) -> None:
    pd.testing.assert_index_equal(across(frame.index), frame.index, exact=True)
    pd.testing.assert_index_equal(across([frame.columns])[0], frame.columns, exact=True)


def test_times_and_durations_come_out_as_those_of_the_standard_library() -> None:
    zone = ZoneInfo("Europe/Berlin")
    assert across([pd.Timestamp(2020, 1, 2, tz=zone), pd.Timedelta(seconds=1)]) == [
        dt.datetime(2020, 1, 2, tzinfo=zone),
        dt.timedelta(seconds=1),
    ]
    assert type(across({pd.Timestamp(2020, 1, 2): 1}).popitem()[0]) is dt.datetime
    for finer in (pd.Timestamp(1), pd.Timedelta(1)):
        with pytest.raises(NotPortable):
            encode(finer)


def test_missing_values_of_pandas_come_out_as_themselves() -> None:
    first, (second,), third = across([pd.NaT, (pd.NA,), {"x": pd.NaT}])
    assert (first is pd.NaT, second is pd.NA, third["x"] is pd.NaT) == (True, True, True)


@pytest.mark.parametrize("name", FRAMES)
def test_frame_comes_out_equal(name: str) -> None:
    pd.testing.assert_frame_equal(across(FRAMES[name]), FRAMES[name])


@pytest.mark.parametrize("name", OF_EACH)
def test_series_comes_out_equal(name: str) -> None:
    series = pd.Series(FRAME[name].array, name=("of", name))
    pd.testing.assert_series_equal(across(series), series)


def test_time_zone_is_the_same_one() -> None:
    assert str(across(FRAME["zoned"]).dt.tz) == "Europe/Berlin"
    assert across(FRAME["zoned"].dt.tz_convert(ZoneInfo("Asia/Tokyo"))).dt.tz == ZoneInfo("Asia/Tokyo")


def test_frame_can_be_changed_and_is_nobody_elses() -> None:
    frame = pd.DataFrame(np.zeros((100_000, 4)))
    arrived = across(frame)
    arrived.iloc[0, 0] = 1
    assert (arrived.iloc[0, 0], frame.iloc[0, 0]) == (1, 0)


@pytest.mark.parametrize("shape", [(200_000, 4), (4, 200_000)])
def test_columns_are_the_frames_own_memory_until_they_are_read(shape: tuple[int, int]) -> None:
    block = np.zeros(shape)
    encoded = encode(pd.DataFrame(block, copy=False))
    raw = max(encoded.buffers, key=len)
    assert np.shares_memory(np.frombuffer(raw, "u1"), block)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (pd.DataFrame({"p": pd.period_range("2020", periods=2, freq="D")}), "a column of type period[D]"),
        (pd.DataFrame({"s": pd.arrays.SparseArray([0, 1])}), "a column of type Sparse[int64, 0]"),
        (pd.Series([object()]), "object is not portable"),
        (pd.Series(pd.Categorical(range(5000))), "a column of more than 4096 categories that are no texts"),
        (type("Mine", (pd.DataFrame,), {})({"x": [1]}), "Mine is not portable"),
    ],
    ids=["period", "sparse", "object", "categories", "derived"],
)
def test_refusal_names_the_column(value: object, reason: str) -> None:
    with pytest.raises(NotPortable) as caught:
        encode(value)
    assert caught.value.reason == reason


def test_frame_is_opaque_where_pandas_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = encode(pd.DataFrame({"x": [1]}))
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    found = decode(encoded.tree, encoded.buffers)
    assert found == Opaque("DataFrame", "<DataFrame>")
    assert isinstance(found, Opaque)
    assert found.reason == "pandas is not installed here (pip install 'cellblock[data]')"


A = {"array": ["<i8", [2], "00" * 16, False]}
ROWS = {"tuple": ["range", 0, 2, 1, None]}
LABEL = {"tuple": ["range", 0, 1, 1, None]}


def column(*parts: object) -> object:
    return {"tuple": list(parts)}


@pytest.mark.parametrize(
    "table",
    [
        [],
        [1, 2],
        ["frame"],
        ["frame", ROWS, LABEL],
        ["frame", ROWS, LABEL, []],
        ["frame", LABEL, LABEL, [A]],
        ["frame", ROWS, ROWS, [A]],
        ["frame", ROWS, LABEL, A],
        ["frame", ROWS, LABEL, [1]],
        ["frame", ROWS, LABEL, {"array": ["<i8", [1, 2], "00" * 16, False]}],
        ["frame", {"tuple": ["range", 0, 2, 0, None]}, LABEL, [A]],
        ["frame", {"tuple": ["range", 0, 2**63 - 1, 1, None]}, LABEL, [A]],
        ["frame", {"tuple": ["range", 0, 2, 1, [1]]}, LABEL, [A]],
        ["frame", {"tuple": ["elsewhere", A]}, LABEL, [A]],
        ["frame", ROWS, LABEL, [{"array": ["<U1", [2], "00" * 8, False]}]],
        ["frame", ROWS, LABEL, [{"array": ["|S1", [2], "0000", False]}]],
        ["frame", ROWS, LABEL, [{"array": [">i8", [2], "00" * 16, False]}]],
        ["frame", ROWS, LABEL, [{"array": ["<M8[Y]", [2], "00" * 16, False]}]],
        ["frame", ROWS, LABEL, [{"array": ["<M8", [2], "00" * 16, False]}]],
        ["frame", ROWS, LABEL, [{"array": ["<i8", [1, 2], "00" * 16, False]}]],
        ["frame", ROWS, LABEL, [column("text", "str", [1, 2])]],
        ["frame", ROWS, LABEL, [column("text", "int64", ["1", "2"])]],
        ["frame", ROWS, LABEL, [column("text", "object", ["1", "2"])]],
        ["frame", ROWS, LABEL, [column("objects", 3)]],
        ["frame", ROWS, LABEL, [column("masked", "Int64", A, A)]],
        ["frame", ROWS, LABEL, [column("masked", "Int32", A, {"array": ["|b1", [2], "0000", False]})]],
        ["frame", ROWS, LABEL, [column("masked", "Int64", A, {"array": ["|b1", [1], "00", False]})]],
        ["frame", ROWS, LABEL, [column("masked", "object", A, A)]],
        ["frame", ROWS, LABEL, [column("zoned", A, None)]],
        ["frame", ROWS, LABEL, [column("zoned", A, {"timezone": [{"timedelta": [0, 0, 0]}]})]],
        ["frame", ROWS, LABEL, [column("category", A, column("objects", []), False)]],
        ["frame", ROWS, LABEL, [column("category", A, column("objects", ["a", "a"]), False)]],
        ["frame", ROWS, LABEL, [column("category", A, column("objects", [[1]]), False)]],
        ["frame", ROWS, LABEL, [column("category", {"array": ["<f8", [2], "00" * 16, False]}, A, False)]],
        ["frame", ROWS, LABEL, [column("category", A, {"array": ["<i8", [5000], 0, False]}, False)]],
        ["frame", column("levels", [A], [], []), LABEL, [A]],
        ["frame", column("levels", [], [], []), LABEL, [A]],
        ["frame", column("levels", [column("objects", [])], [A], [None]), LABEL, [A]],
        ["series", None, ROWS, column("objects", [1])],
        ["series", [1], ROWS, A],
        ["panel", ROWS, LABEL, [A]],
    ],
    ids=lambda table: json.dumps(table)[:60],
)
def test_table_that_no_frame_gives_is_malformed(table: list[object]) -> None:
    buffers = (b"\0" * 40_000,) if "5000" in json.dumps(table) else ()
    with pytest.raises(MalformedValue):
        decode({"table": table}, buffers)


COLUMNS = st.one_of(
    st.lists(st.integers(-(2**40), 2**40), min_size=3, max_size=3),
    st.lists(st.floats(allow_nan=False), min_size=3, max_size=3),
    st.lists(st.one_of(st.none(), st.text()), min_size=3, max_size=3),
    st.lists(st.booleans(), min_size=3, max_size=3),
    st.lists(st.one_of(st.none(), st.integers(0, 9), st.text(), st.binary()), min_size=3, max_size=3).map(
        lambda items: pd.Series(items, dtype=object)
    ),
    st.lists(st.sampled_from("abc"), min_size=3, max_size=3).map(pd.Categorical),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.text(max_size=5), COLUMNS, max_size=5))
def test_any_frame_comes_out_equal(columns: dict[str, Any]) -> None:
    frame = pd.DataFrame(columns)
    pd.testing.assert_frame_equal(across(frame), frame)
