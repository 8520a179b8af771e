"""What a value shows as: MIME bundles, bounded, whatever the value's own code does (L9, W6)."""

import base64
import io
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from cellblock.outputs import DATAFRAME_MIME
from cellblock.worker.interrupts import Interrupted
from cellblock.worker.show.display import Bundle, bundle

polars = pytest.importorskip("polars")

PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 10
SIGNATURE = PNG[:8]


def shown(value: object) -> Bundle:
    return bundle(value, max_text=1000)


def with_methods(**methods: object) -> object:
    """An object whose repr is `<v>` and whose `_repr_*_` methods return, or raise, what is given."""

    def method(result: object) -> object:
        def call(self: object, **_options: object) -> object:
            if isinstance(result, BaseException):
                raise result
            return result

        return call

    named = {f"_repr_{name}_": method(result) for name, result in methods.items()}
    return type("V", (), {"__repr__": lambda self: "<v>", **named})()


@pytest.mark.parametrize("value", [1, "text", [1, 2], {"a": {1}}, None, len, {}.items(), int])
def test_plain_value_shows_its_repr(value: object) -> None:
    assert shown(value) == Bundle({"text/plain": repr(value)})


def test_long_repr_keeps_head_and_tail() -> None:
    text = bundle({"a": "x" * 1000, "b": 2}, max_text=40).data["text/plain"]
    assert text == "{'a': 'xxxxxxxxxxxxxxxxxxxxxxx… 977 characters cut …', 'b': 2}"


@pytest.mark.threat("L9")
def test_repr_that_raises_is_named() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise ValueError("no")

    name = Broken.__qualname__
    assert shown(Broken()) == Bundle({"text/plain": f"<{name} repr failed: ValueError: no>"})


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(), GeneratorExit()], ids=repr)
@pytest.mark.threat("W9")
def test_what_leaves_a_cell_costs_a_part_no_more_than_an_exception_does(error: BaseException) -> None:
    for name in ("html", "mimebundle", "png"):
        assert shown(with_methods(**{name: error})) == Bundle({"text/plain": "<v>"})
    leaves = type("V", (), {"__repr__": with_methods(html=error)._repr_html_})()  # type: ignore[attr-defined]
    assert shown(leaves) == Bundle({"text/plain": f"<V repr failed: {type(error).__name__}>"})


@pytest.mark.parametrize("name", ["html", "mimebundle", "png"])
def test_the_hosts_interrupt_passes(name: str) -> None:
    with pytest.raises(Interrupted):
        shown(with_methods(**{name: Interrupted()}))


# --- _repr_*_ ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "mime", "part"),
    [
        ("html", "text/html", "<b>1</b>"),
        ("svg", "image/svg+xml", "<svg/>"),
        ("markdown", "text/markdown", "*a*"),
        ("latex", "text/latex", "$a$"),
        ("json", "application/json", {"a": [1, None]}),
    ],
)
def test_method_gives_its_part(name: str, mime: str, part: object) -> None:
    assert shown(with_methods(**{name: part})) == Bundle({"text/plain": "<v>", mime: part})
    assert shown(with_methods(**{name: (part, {"isolated": True})})).data[mime] == part


@pytest.mark.parametrize(
    ("name", "mime", "part"),
    [
        ("png", "image/png", PNG),
        ("png", "image/png", bytearray(PNG)),
        ("jpeg", "image/jpeg", b"\xff\xd8\xff\xe0"),
        ("pdf", "application/pdf", b"%PDF-1.7"),
    ],
)
def test_binary_part_is_kept_apart(name: str, mime: str, part: bytes) -> None:
    assert shown(with_methods(**{name: part})) == Bundle({"text/plain": "<v>"}, {mime: bytes(part)})
    encoded = base64.b64encode(part).decode()
    assert shown(with_methods(**{name: encoded})).buffers == {mime: bytes(part)}


@pytest.mark.parametrize(
    "methods",
    [
        {"html": None},
        {"html": 5},
        {"html": b"<b>"},
        {"html": ValueError()},
        {"png": "not base64!"},
        {"png": b"GIF89a"},
        {"json": {"a": object()}},
        {"json": float("nan")},
        {"mimebundle": [("text/html", "a")]},
        {"mimebundle": {5: "a", "no mime": "a", "TEXT/html": "a", "text/html\n": "a"}},
        {"mimebundle": ValueError()},
    ],
)
def test_part_that_does_not_fit_is_skipped(methods: dict[str, object]) -> None:
    assert shown(with_methods(**methods)) == Bundle({"text/plain": "<v>"})


def test_mimebundle_comes_first_and_methods_fill_in() -> None:
    whole = {"text/plain": "plain", "text/html": "<i>", "image/png": PNG, "application/vnd.x+json": {"a": 1}}
    assert shown(with_methods(mimebundle=(whole, {}), html="<b>", markdown="*m*")) == Bundle(
        {
            "text/plain": "plain",
            "text/html": "<i>",
            "application/vnd.x+json": {"a": 1},
            "text/markdown": "*m*",
        },
        {"image/png": PNG},
    )


def test_object_that_has_every_attribute_shows_its_repr() -> None:
    class Every:
        def __getattr__(self, name: str) -> object:
            return lambda *_a, **_k: "<b>everything</b>"

        def __repr__(self) -> str:
            return "<every>"

    assert shown(Every()) == Bundle({"text/plain": "<every>"})


def test_class_shows_as_a_class_and_not_as_its_instances() -> None:
    kind = type(with_methods(html="<b>"))
    assert shown(kind) == Bundle({"text/plain": repr(kind)})


@pytest.mark.threat("W6")
def test_large_parts_are_left_out_with_a_note() -> None:
    value = with_methods(html="x" * 20_001, svg="x" * 20_000, json=["x" * 20_000], png=SIGNATURE + bytes(10_000_000))
    found = shown(value)
    assert found.data["text/plain"] == (
        "<v>\n"
        "[text/html left out: 20,001 characters, the limit is 20,000]\n"
        "[image/png left out: 10,000,008 bytes, the limit is 10,000,000]\n"
        "[application/json left out: 20,004 characters, the limit is 20,000]"
    )
    assert (set(found.data), found.buffers) == ({"text/plain", "image/svg+xml"}, {})


@pytest.mark.threat("W6")
def test_number_of_parts_is_bounded() -> None:
    many = {f"text/x{number}": "a" for number in range(1000)}
    assert len(shown(with_methods(mimebundle=many)).data) == 17


@pytest.mark.threat("L9")
def test_text_is_exact_and_can_be_encoded() -> None:
    class Text(str):
        __slots__ = ()

        def encode(self, *_args: object) -> bytes:  # type: ignore[override]
            raise AssertionError

    html = shown(with_methods(html=Text("a\ud800"))).data["text/html"]
    assert (type(html), html) == (str, "a\ufffd")


# --- tables and images ------------------------------------------------------------------------------------


def test_pandas_frame_shows_as_a_table() -> None:
    frame = pd.DataFrame(
        {
            "n": np.arange(20),
            "f": [1.5, np.nan, np.inf] + [0.0] * 17,
            "s": ["a", None, "x" * 300] + ["b"] * 17,
            "t": pd.date_range("2020-01-01", periods=20),
            "o": [2**70, (1, 2), pd.NaT, np.int8(1)] + [True] * 16,
        }
    )
    found = shown(frame)
    table = found.data[DATAFRAME_MIME]
    assert isinstance(table, dict)
    assert table["columns"] == ["n", "f", "s", "t", "o"]
    assert table["dtypes"][:2] == ["int64", "float64"]
    assert table["shape"] == [20, 5]
    assert table["index"] == list(range(10))
    assert len(table["head"]) == 10
    assert table["head"][0] == [0, 1.5, "a", "2020-01-01 00:00:00", str(2**70)]
    assert table["head"][1] == [1, None, None, "2020-01-02 00:00:00", "(1, 2)"]
    assert table["head"][2][1:] == [
        "inf",
        "x" * 150 + "… 100 characters cut …" + "x" * 50,
        "2020-01-03 00:00:00",
        None,
    ]
    assert table["head"][3][4] == 1
    assert "<table" in str(found.data["text/html"])
    assert found.data["text/plain"] == repr(frame) if len(repr(frame)) <= 1000 else True


def test_pandas_series_shows_as_a_table_of_one_column() -> None:
    found = shown(pd.Series([1, 2], index=["a", "b"], name="n"))
    assert found.data == {
        DATAFRAME_MIME: {
            "columns": ["n"],
            "dtypes": ["int64"],
            "shape": [2],
            "head": [[1], [2]],
            "index": ["a", "b"],
        },
        "text/plain": "a    1\nb    2\nName: n, dtype: int64",
    }


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(),
        pd.DataFrame({"a": []}),
        pd.DataFrame(np.zeros((2, 5000))),
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame({("x", 1): [1]}, index=pd.MultiIndex.from_tuples([(1, "a")])),
        pd.DataFrame({"c": pd.Categorical(["a"]), "i": pd.array([None], dtype="Int64")}),
        pd.Series([], dtype=object),
    ],
    ids=["none", "empty", "wide", "twice", "multi", "extension", "series"],
)
def test_any_frame_shows_as_a_table(frame: pd.DataFrame) -> None:
    table = shown(frame).data[DATAFRAME_MIME]
    assert isinstance(table, dict)
    assert table["shape"] == list(frame.shape)
    assert len(table["columns"]) <= 200
    assert all(len(row) == len(table["columns"]) for row in table["head"])


def test_frame_of_lying_objects_still_shows() -> None:
    class Liar:
        def __str__(self) -> str:
            raise ValueError

        __repr__ = __str__

    table = shown(pd.DataFrame({"a": [Liar()]})).data[DATAFRAME_MIME]
    assert isinstance(table, dict)
    assert table["head"] == [[f"<{Liar.__qualname__} str failed: ValueError>"]]


def test_polars_frame_and_series_show_as_tables() -> None:
    frame = polars.DataFrame({"a": [1, None], "b": ["x", "y"]})
    found = shown(frame)
    assert found.data[DATAFRAME_MIME] == {
        "columns": ["a", "b"],
        "dtypes": ["Int64", "String"],
        "shape": [2, 2],
        "head": [[1, "x"], [None, "y"]],
        "index": [0, 1],
    }
    assert "<table" in str(found.data["text/html"])
    series = shown(frame["a"]).data[DATAFRAME_MIME]
    assert isinstance(series, dict)
    assert series["head"] == [[1], [None]]


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "CMYK", "F", "I"])
def test_image_shows_as_png(mode: str) -> None:
    found = shown(Image.new(mode, (3, 2)))
    assert list(found.data) == ["text/plain"]
    assert Image.open(io.BytesIO(found.buffers["image/png"])).size == (3, 2)


def test_figure_shows_as_png() -> None:
    found = shown(Figure())
    assert found.data == {"text/plain": "<Figure size 640x480 with 0 Axes>"}
    assert found.buffers["image/png"].startswith(SIGNATURE)


@pytest.mark.threat("L9")
def test_value_that_claims_another_class_shows_as_what_it_is() -> None:
    class Liar:
        __class__ = pd.DataFrame  # type: ignore[assignment]

        def __repr__(self) -> str:
            return "<liar>"

    assert shown(Liar()) == Bundle({"text/plain": "<liar>"})


def test_display_imports_no_library() -> None:
    code = """
import sys
from cellblock.worker.show import display, figures
figures.install(print)
display.bundle([1], max_text=100)
figures.flush()
print(sorted({"numpy", "pandas", "polars", "matplotlib", "PIL"} & sys.modules.keys()))
"""
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout == "[]\n"
