"""What crosses from a worker to the host: round trips, refusals, and trees that no encoder wrote (W7, L9)."""

import array
import collections
import copy
import dataclasses
import datetime as dt
import decimal
import enum
import json
import math
import pathlib
import pickle
import random
import struct
import subprocess
import sys
import types
import uuid
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

import numpy as np
import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cellblock.text import Interruption
from cellblock.values import room as room_
from cellblock.values.portable import (
    Encoded,
    EnumName,
    MalformedValue,
    NotPortable,
    Opaque,
    Record,
    decode,
    encode,
    opaque,
    pack,
    pack_or_opaque,
    unpack,
)


def across(value: object) -> object:
    """What the host gets: the tree has been JSON on the way."""
    encoded = encode(value)
    return decode(json.loads(json.dumps(encoded.tree)), encoded.buffers)


def same(a: object, b: object) -> bool:
    """Equal in type, value and order, NaN and the sign of zero included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    if isinstance(a, complex) and isinstance(b, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a), list(b)) and same(list(a.values()), list(b.values()))
    if isinstance(a, dt.datetime | dt.time):
        return a == b and a.fold == b.fold and a.tzinfo == b.tzinfo and repr(a) == repr(b)
    if isinstance(a, Decimal):
        return str(a) == str(b)
    if isinstance(a, set | frozenset):
        return a == b and collections.Counter(map(type, a)) == collections.Counter(map(type, b))
    return a == b


@dataclasses.dataclass
class Point:
    x: int
    y: object = None
    kind: ClassVar[str] = "point"


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    x: int


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    name: str
    tags: list[str] = []


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


class Mode(enum.StrEnum):
    FAST = "fast"


class Bits(enum.Flag):
    A = 1
    B = 2


Named = collections.namedtuple("Named", "x y")

SAME = [
    None,
    True,
    False,
    0,
    -1,
    2**63 - 1,
    -(2**63),
    2**63,
    -(2**63) - 1,
    10**4000,
    0.0,
    -0.0,
    1e308,
    5e-324,
    math.inf,
    -math.inf,
    math.nan,
    struct.unpack(">d", bytes.fromhex("fff8000000000001"))[0],
    1j,
    complex(-0.0, math.nan),
    "",
    "text",
    "naïve 日本 😀",
    "\x00\x1b[31m\u202e\ufeff\u2028",
    "lone \ud800 surrogate",
    "\ud83d\ude00 two halves",
    "x" * 70_000,
    "é" * 70_000,
    b"",
    b"\x00\xff",
    b"x" * 1023,
    b"x" * 1024,
    bytearray(b"abc"),
    bytearray(5000),
    [],
    [1, 2, 3],
    list(range(1000)),
    [2**70, *range(1000)],
    [0.5] * 1000,
    [math.nan, math.inf, -0.0] * 100,
    [True, 1, 1.0, None, "a"] * 100,
    ["a\ud800", *"abc"] * 50,
    ["é", "ü"] * 50,
    ["x" * 70_000] * 30,
    [[1], [2, [3]]],
    (),
    (1, (2, 3)),
    tuple(range(500)),
    set(),
    {1, "a", (2, 3), None, 2.5, b"x"},
    set(range(1000)),
    frozenset({frozenset({1}), 2}),
    {},
    {"a": 1, "b": [2], "c": {"d": None}},
    {1: "a", 2.5: "b", (1, 2): "c", None: "d", b"e": "f", "g": "h", frozenset({1}): "i"},
    {i: float(i) for i in range(1000)},
    {"tuple": [1]},
    {"": ""},
    {2**80: 1, Decimal("1.5"): 2, Fraction(1, 3): 3, dt.date(2020, 1, 1): 4, uuid.UUID(int=5): 5},
    range(10),
    range(0, -(10**30), -7),
    slice(None, 5),
    slice((1, 2), "a", None),
    dt.date(1, 1, 1),
    dt.time(23, 59, 59, 999999, fold=1),
    dt.time(1, tzinfo=dt.timezone.utc),  # noqa: UP017
    dt.datetime(2024, 2, 29, 1, 2, 3, 4),
    dt.datetime(9999, 12, 31, tzinfo=dt.timezone(dt.timedelta(hours=-5, microseconds=1), "odd")),
    dt.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
    dt.timedelta.min,
    dt.timedelta(days=1, microseconds=-1),
    dt.UTC,
    ZoneInfo("America/Argentina/Buenos_Aires"),
    Decimal("1.10"),
    Decimal("-0E-7"),
    Decimal("1E+999999"),
    Decimal("NaN123"),
    Decimal("sNaN"),
    Decimal("-Infinity"),
    Decimal("3." + "1" * 70_000),
    Fraction(-1, 3),
    Fraction(10**4000, 7),
    uuid.UUID("12345678123456781234567812345678"),
    pathlib.Path("/a/b"),
    pathlib.Path(),
    pathlib.PurePosixPath("a\udcff"),
    pathlib.PureWindowsPath("C:\\a"),
    Opaque("T", "<T \ud800>"),
    EnumName("T", "A"),
    Record("T", {"a": (1, 2), "b": Record("U", {})}),
    {Record("T", {"a": 1}): 1, EnumName("T", "A"): 2},
]


@pytest.mark.parametrize(
    "value", SAME, ids=[f"{number}-{type(value).__name__}" for number, value in enumerate(SAME)]
)  # no repr: that of a set is another one in each process
def test_value_arrives_as_it_left(value: object) -> None:
    assert same(across(value), value)


@pytest.mark.parametrize(
    ("value", "arrives"),
    [
        (Point(1, [2]), Record("Point", {"x": 1, "y": [2]})),
        (Slotted(1), Record("Slotted", {"x": 1})),
        (Named(1, "b"), Record("Named", {"x": 1, "y": "b"})),
        (Model(name="a", more=2), Record("Model", {"name": "a", "tags": [], "more": 2})),
        (Colour.RED, EnumName("Colour", "RED")),
        (Level.LOW, EnumName("Level", "LOW")),
        (Mode.FAST, EnumName("Mode", "FAST")),
        (Bits.A | Bits.B, EnumName("Bits", "A|B")),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (collections.OrderedDict(b=1, a=collections.deque([1, 2], 5)), {"b": 1, "a": [1, 2]}),
        (collections.defaultdict(list, {"k": [1]}), {"k": [1]}),
        ({Slotted(1): Colour.RED}, {Record("Slotted", {"x": 1}): EnumName("Colour", "RED")}),
    ],
)
def test_instances_arrive_as_their_fields(value: object, arrives: object) -> None:
    assert across(value) == arrives


def test_record_is_read_by_name() -> None:
    record = across(Point(1))
    assert isinstance(record, Record)
    assert record["x"] == 1


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3),
        np.arange(6).reshape(2, 3).T,
        np.arange(5000)[::2],
        np.array(3),
        np.zeros((0, 4)),
        np.array([True, False]),
        np.array([1 + 2j], dtype="c8"),
        np.array([1.5, np.nan], dtype="f2"),
        np.array([1, 2], dtype=">i4"),
        np.array(["2020-01-01", "NaT"], dtype="M8[25s]"),
        np.array([1, 2], dtype="m8[ns]"),
        np.array([], dtype="M8"),
        np.array([b"ab", b"c"]),
        np.array(["ab", "é😀"]),
        np.array(["ab"], dtype=">U3"),
    ],
    ids=lambda array: f"{array.dtype.str}-{array.shape}",
)
def test_array_keeps_dtype_shape_and_items(array: np.ndarray) -> None:
    arrived = across(array)
    assert isinstance(arrived, np.ndarray)
    assert (arrived.dtype.str, arrived.shape) == (array.dtype.str, array.shape)
    assert arrived.tobytes() == array.tobytes()
    assert arrived.flags.writeable


@pytest.mark.parametrize(
    "scalar",
    [
        np.float64(1.5),
        np.int8(-1),
        np.bool_(True),
        np.str_("a"),
        np.bytes_(b"a"),
        np.datetime64("2020-01-01"),
        np.complex64(1j),
    ],
    ids=lambda scalar: type(scalar).__name__,
)
def test_numpy_scalar_stays_one(scalar: np.generic) -> None:
    arrived = across({scalar: [scalar]})
    assert isinstance(arrived, dict)
    ((key, (item,)),) = arrived.items()
    assert type(key) is type(item) is type(scalar)
    assert key == item == scalar


def test_array_is_opaque_where_numpy_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = encode(np.zeros((2, 3)))
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert decode(encoded.tree, encoded.buffers) == Opaque(
        "numpy <f8", "array of shape (2, 3); numpy is not installed here (pip install 'cellblock[data]')"
    )


def test_encoding_and_scalars_do_not_import_numpy() -> None:
    code = """
import sys
from cellblock.values.portable import decode, encode
decode(encode([1, 'a']).tree)
assert 'numpy' not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_integer_past_the_digit_limit_survives() -> None:
    assert across(-(2**100_000)) == -(2**100_000)


def test_encoded_array_does_not_follow_later_changes() -> None:
    array = np.zeros(1000)
    encoded = encode(array)
    array[:] = 1
    assert not np.any(decode(encoded.tree, encoded.buffers))


# --- what is not portable -----------------------------------------------------------------------------


def test_decimal_context_of_the_cell_does_not_matter() -> None:
    with decimal.localcontext(capitals=0):
        assert across(Decimal("1E+9")) == Decimal("1E+9")


class Sub(int):
    pass


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (object(), "object is not portable"),
        (len, "builtin_function_or_method is not portable"),
        (int, "type is not portable"),
        ([1, {"a": object()}], "object is not portable"),
        ({Sub(1): 2}, "Sub is not portable"),
        (dt.datetime(2020, 1, 1, tzinfo=type("Zone", (dt.tzinfo,), {})()), "a time zone of type Zone"),
        (Decimal("1E+1000000"), "a Decimal whose exponent is beyond ±999,999"),
        (Fraction(1, 2**20000), "a Fraction of more than 16,384 bits"),
        ({2**20000: 1}, "a key of 20,001 bits"),
        ({Decimal("1" * 6000)}, "a key of 6,000 digits"),
        (np.array([object()]), "a numpy dtype without a portable form: O"),
        (np.zeros(2, dtype="i4,f8"), "a numpy dtype without a portable form: V"),
        (np.longdouble(1), "a numpy dtype without a portable form: f"),
        (np.ma.array([1]), "MaskedArray is not portable"),
    ],
    ids=lambda part: part[:30] if isinstance(part, str) else "value",
)
def test_refusal_names_the_reason(value: object, reason: str) -> None:
    with pytest.raises(NotPortable) as caught:
        encode(value)
    assert caught.value.reason == reason


def test_cycle_and_depth_are_refused() -> None:
    ring: list[object] = []
    ring.append([ring, ring])
    with pytest.raises(NotPortable, match="nested deeper than 64, or contains itself"):
        encode(ring)


@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: (v,), lambda v: {"k": v}, lambda v: Record("T", {"k": v})])
def test_depth_that_is_written_is_read(wrap: object) -> None:
    assert callable(wrap)
    value: object = 1
    for _ in range(64):
        value = wrap(value)
    assert across(value) == value
    with pytest.raises(NotPortable):
        encode(wrap(value))


@pytest.mark.parametrize(
    "value",
    [
        "x" * 200_000,
        [0] * 200_000,
        [[0] * 10] * 20_000,
        {i: i for i in range(100_000)},
        bytes(100_001),
        bytearray(100_001),
        2**1_000_000,
        np.zeros(100_000),
        [b""] * 100_000,
    ],
    ids=lambda value: type(value).__name__,
)
def test_budget_stops_the_walk(value: object) -> None:
    with pytest.raises(NotPortable, match="larger than 100,000 bytes"):
        encode(value, max_bytes=100_000)


def test_shared_parts_cannot_multiply_past_the_budget() -> None:
    value: list[object] = [0]
    for _ in range(50):
        value = [value, value]
    with pytest.raises(NotPortable, match="larger than 1,000,000 bytes"):
        encode(value, max_bytes=10**6)


def test_keys_that_would_collide_without_their_classes_are_refused() -> None:
    one, other = (enum.Enum("E", "A") for _ in range(2))
    with pytest.raises(NotPortable, match="two keys are alike"):
        encode({one.A: 1, other.A: 2})


# --- lying objects (L9) -------------------------------------------------------------------------------


class Ran(BaseException):
    """User code ran in the encoder. Not an `Exception`, so that nothing can take it for a refusal."""


def _run(*args: object, **kwargs: object) -> object:
    raise Ran


NAMES = """
    __eq__ __hash__ __bool__ __len__ __iter__ __str__ __repr__ __getattribute__ __getattr__ __int__ __index__
    __float__ __getitem__ __contains__ __reduce__ __reduce_ex__ __array__ __format__ items keys values encode
    isascii tobytes
"""
LIES = dict.fromkeys(NAMES.split(), _run)


class Meta(type):
    __eq__ = __hash__ = __getattribute__ = __instancecheck__ = __subclasscheck__ = __len__ = __iter__ = _run  # type: ignore[assignment]


@pytest.mark.parametrize(
    "base",
    [object, dt.datetime, Decimal],
    ids=lambda b: b.__name__,
)
@pytest.mark.threat("L9")
def test_methods_of_a_subclass_never_run(base: type) -> None:
    kind = type.__new__(Meta, "Liar", (base,), LIES)
    arguments = [2020, 1, 1] if base is dt.datetime else []
    liar = base.__new__(kind, *arguments)
    for value in (liar, [liar] * 100, (1, liar), [*range(50), liar]):
        with pytest.raises(NotPortable, match=r"^Liar is not portable$"):
            encode(value)


@pytest.mark.parametrize(
    "held",
    ["text", 7, 1.5, 1j, [1, [2]], (1, 2), {"a": 1}, {1}, frozenset({1}), b"x", bytearray(b"x")],
    ids=lambda held: type(held).__name__,
)
@pytest.mark.threat("L9")
def test_class_derived_from_a_plain_one_crosses_as_what_it_holds(held: Any) -> None:
    base = type(held)
    kind = type.__new__(Meta, "Liar", (base,), LIES | {"__init__": base.__init__})
    liar = base.__new__(kind, held)
    if base in (list, dict, set, bytearray):
        base.__init__(liar, held)
    for found in (across(liar), across([0, liar])[1]):  # type: ignore[index]
        assert type(found) is base
        assert found == held


def test_derived_dicts_and_sequences_cross_as_what_they_hold() -> None:
    assert across(type("Own", (collections.OrderedDict,), {})(a=1)) == {"a": 1}
    assert across(type("Own", (collections.deque,), {})([1, 2])) == [1, 2]
    assert across(array.array("d", [1, 2])) == [1.0, 2.0]
    assert across([{1: 2}.keys(), {1: 2}.values(), {1: 2}.items()]) == [[1], [2], [(1, 2)]]


def test_namespaces_and_exceptions_cross_as_their_fields() -> None:
    assert across(types.SimpleNamespace(a=1)) == Record("SimpleNamespace", {"a": 1})
    assert across(KeyError("k")) == Record("KeyError", {"args": ("k",)})


@pytest.mark.parametrize("wrap", [lambda v: [1, v], lambda v: {"k": (v,)}, lambda v: Record("T", {"k": v})])
def test_items_that_are_not_portable_are_opaque_each_where_that_is_asked_for(wrap: Callable[[object], object]) -> None:
    item = Opaque("builtin_function_or_method", "<built-in function len>", "builtin_function_or_method is not portable")
    assert unpack(pack_or_opaque(wrap(len), 1000)) == wrap(item)
    whole = unpack(pack_or_opaque([len] * 101, 10**6))
    assert isinstance(whole, Opaque)
    key = unpack(pack_or_opaque([{len: 1}], 1000))
    assert key == Opaque("list", repr([{len: 1}]))


def test_array_without_a_portable_form_is_opaque_and_what_stands_beside_it_is_not() -> None:
    shown = Opaque("ndarray", "array([None], dtype=object)")
    assert unpack(pack_or_opaque([1, np.array([None])], 10_000)) == [1, shown]


def test_item_past_the_budget_makes_the_whole_opaque() -> None:
    assert isinstance(unpack(pack_or_opaque([len, "x" * 2000], 1000)), Opaque)


@pytest.mark.threat("L9")
def test_code_of_a_dataclass_never_runs() -> None:
    @dataclasses.dataclass
    class Liar:
        x: int

    liar = Liar(1)
    for name in ("__getattribute__", "__eq__", "__repr__", "__hash__", "__iter__"):
        setattr(Liar, name, _run)
    Liar.x = property(_run)  # type: ignore[assignment]
    assert across(liar) == Record(Liar.__qualname__, {"x": 1})


@pytest.mark.threat("L9")
def test_field_that_only_a_property_would_give_is_refused() -> None:
    @dataclasses.dataclass(init=False)
    class Lazy:
        x: int

    Lazy.x = property(_run)  # type: ignore[assignment]
    with pytest.raises(NotPortable, match="property is not portable"):
        encode(Lazy())


def test_dataclass_that_is_also_a_dict_is_refused() -> None:
    @dataclasses.dataclass
    class Both(dict):  # type: ignore[type-arg]
        x: int = 1

    with pytest.raises(NotPortable):
        encode(Both())


@pytest.mark.threat("L9")
def test_tampered_objects_are_refused() -> None:
    number, half, path = uuid.UUID(int=1), Fraction(1, 2), pathlib.PurePosixPath("a")
    object.__setattr__(number, "int", Sub(1))
    half._numerator = "1"  # type: ignore[attr-defined]
    path._str = Mode.FAST  # type: ignore[attr-defined]
    for value in (number, half, path):
        with pytest.raises(NotPortable):
            encode(value)


# --- trees that no encoder wrote (W7) -----------------------------------------------------------------

B = b"x" * 1024
HOSTILE = [
    ({}, ()),
    ({"a": 1, "b": 2}, ()),
    ({"eval": "1"}, ()),
    (2**63, ()),
    ([2**64], ()),
    (math.inf, ()),
    ([math.nan], ()),
    ("\ud800", ()),
    (["\ud83d", "\ude00"], ()),
    (1, (B,)),
    ({"bytes": 0}, ()),
    ({"bytes": 1}, (B, B)),
    ({"bytes": True}, (B, B)),
    ({"bytes": -1}, (B,)),
    ({"bytes": 0}, (b"short",)),
    ([{"bytes": 0}, {"bytes": 0}], (B,)),
    ({"bytes": "0"}, ()),
    ({"bytes": "0G"}, ()),
    ({"bytes": " 00 "}, ()),
    ({"bytes": "00" * 1024}, ()),
    ({"text": "ff"}, ()),
    ({"int": "12"}, ()),
    ({"int": "0x1"}, ()),
    ({"int": "0x" + "f_" * 20}, ()),
    ({"int": 2**70}, ()),
    ({"float": "0000000000000000"}, ()),
    ({"float": "nan"}, ()),
    ({"complex": [1, 2]}, ()),
    ({"complex": [1.0, {"complex": [1.0, 1.0]}]}, ()),
    ({"ints": "00" * 8}, ()),
    ({"ints": 0}, (b"x" * 1025,)),
    ({"set": [1, 1]}, ()),
    ({"set": [1, True]}, ()),
    ({"set": [[]]}, ()),
    ({"set": [{"bytearray": ""}]}, ()),
    ({"set": [{"dict": [[], []]}]}, ()),
    ({"set": [{"slice": [None, None, None]}]}, ()),
    ({"set": [{"decimal": "sNaN"}]}, ()),
    ({"set": [{"tuple": [[]]}]}, ()),
    ({"set": [{"record": ["T", ["a"], [{"set": []}]]}]}, ()),
    ({"set": [{"int": "0x" + "f" * 5000}]}, ()),
    ({"dict": [[1], []]}, ()),
    ({"dict": [["a", "a"], [1, 2]]}, ()),
    ({"dict": {"a": 1}}, ()),
    ({"dict": [[{"array": ["<f8", [], "00" * 8]}], [1]]}, ()),
    ({"range": [0, 1, 0]}, ()),
    ({"range": [0, 1.0, 1]}, ()),
    ({"range": [0, {"float": "7ff0000000000000"}, 1]}, ()),
    ({"slice": [1]}, ()),
    ({"date": [2020, 13, 1]}, ()),
    ({"date": [2**62, 1, 1]}, ()),
    ({"date": [True, 1, 1]}, ()),
    ({"time": [1, 2, 3, 4, 2, None]}, ()),
    ({"datetime": [2020, 1, 1, 0, 0, 0, 0, 0, "UTC"]}, ()),
    ({"datetime": [2020, 1, 1, 0, 0, 0, 0, 0, {"date": [1, 1, 1]}]}, ()),
    ({"timedelta": [10**9, 0, 0]}, ()),
    ({"timedelta": [0, 86400, 0]}, ()),
    ({"timezone": [{"timedelta": [2, 0, 0]}]}, ()),
    ({"zone": "../../etc/passwd"}, ()),
    ({"zone": "/etc/passwd"}, ()),
    ({"zone": "Europe"}, ()),
    ({"zone": "No/Where"}, ()),
    ({"zone": "a" * 1000}, ()),
    ({"decimal": "1e5"}, ()),
    ({"decimal": "1E+999999999"}, ()),
    ({"decimal": " 1"}, ()),
    ({"decimal": "٣"}, ()),
    ({"decimal": "1_0"}, ()),
    ({"fraction": [1, 0]}, ()),
    ({"fraction": [2, 4]}, ()),
    ({"fraction": [1, -2]}, ()),
    ({"fraction": [{"int": "0x1" + "0" * 5000}, 1]}, ()),
    ({"uuid": "{12345678-1234-5678-1234-567812345678}"}, ()),
    ({"path": ["Path", "a"]}, ()),
    ({"path": [["PosixPath"], "a"]}, ()),
    ({"path": ["PosixPath", 1]}, ()),
    ({"enum": ["T"]}, ()),
    ({"opaque": ["T", 1]}, ()),
    ({"record": ["T", ["a"], []]}, ()),
    ({"record": ["T", ["a", "a"], [1, 2]]}, ()),
    ({"record": ["T", {"a": 1}, [1]]}, ()),
    ({"array": ["|O", [1], "00" * 8]}, ()),
    ({"array": ["O", [1], "00" * 8]}, ()),
    ({"array": ["<f8", [2], "00" * 8]}, ()),
    ({"array": ["<f8", [-1], "00" * 8]}, ()),
    ({"array": ["<f8", [True], "00" * 8]}, ()),
    ({"array": ["<f8", [0, 2**40, 2**40], ""]}, ()),
    ({"array": ["<f8", [1] * 33, "00" * 8]}, ()),
    ({"array": ["<f8", [2**62, 4], ""]}, ()),
    ({"array": ["<U0", [2**30], ""]}, ()),
    ({"array": ["<U1", [1], "ffffffff"]}, ()),
    ({"array": ["|b1", [1], "02"]}, ()),
    ({"array": ["<M8[0s]", [1], "00" * 8]}, ()),
    ({"array": ["i4,i4", [1], "00" * 8]}, ()),
    ({"array": ["<f8", 1, "00" * 8]}, ()),
    ({"scalar": ["<f8", "00"]}, ()),
    ({"scalar": ["<f8", ""]}, ()),
]


@pytest.mark.parametrize(("tree", "buffers"), HOSTILE, ids=lambda part: ascii(part)[:40])
@pytest.mark.threat("W7")
def test_tree_that_no_encoder_wrote_is_refused(tree: object, buffers: tuple[bytes, ...]) -> None:
    with pytest.raises(MalformedValue):
        decode(tree, buffers)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "tag", ["list", "tuple", "dict", "complex", "slice", "record", "datetime", "timezone", "range"]
)
@pytest.mark.threat("W7")
def test_deep_tree_is_refused_without_a_recursion_error(tag: str) -> None:
    tree: object = 1
    for _ in range(100_000):
        tree = (
            [tree]
            if tag == "list"
            else {"dict": [["k"], [tree]]}
            if tag == "dict"
            else {"record": ["T", ["k"], [tree]]}
            if tag == "record"
            else {tag: [tree] * {"complex": 2, "slice": 3, "datetime": 9, "range": 3}.get(tag, 1)}
        )
    with pytest.raises(MalformedValue):
        decode(tree)
    while isinstance(tree, list | dict):  # taken apart here: freeing it whole is recursive
        tree = tree[0] if isinstance(tree, list) else next(iter(tree.values()))


@pytest.mark.threat("W7")
def test_keys_made_to_collide_are_refused() -> None:
    modulus = 2**61 - 1
    keys = [{"int": hex(i * modulus)} for i in range(10, 2000)]
    with pytest.raises(MalformedValue, match="keys with one hash"):
        decode({"set": keys})


def walking(size: int) -> list[int]:
    """Integers that fill a table of that size so that each looks at places of a long chain, one after the other."""
    mask, place, chain, at = size - 1, bytearray(size), {}, 1
    while len(chain) < size // 2:
        place[at], chain[at] = 1, len(chain)
        at = (5 * at + 1) & mask
    keys, pick, start = list(chain), random.Random(1), size // 16
    while len(keys) < 2 * size // 3:
        key = pick.randrange(size, 4 * size)
        where, left = key & mask, key
        while place[where] and left:
            left >>= 5
            where = (where * 5 + left + 1) & mask
        if not left and chain.get(where, size) < start:
            keys.append(key)
            place[at], chain[at] = 1, len(chain)
            at = (5 * at + 1) & mask
    return list(dict.fromkeys(keys))


@pytest.mark.threat("W7")
def test_keys_whose_places_in_a_table_meet_are_refused() -> None:
    keys = walking(2**13)
    with pytest.raises(MalformedValue, match="keys whose places in a table meet"):
        decode({"dict": [keys, keys]})
    with pytest.raises(MalformedValue, match="keys whose places in a table meet"):
        decode({"dict": [list(map(float, keys)), keys]})


@pytest.mark.sampled(0)
@pytest.mark.parametrize("shift", [0, 3, 8, 12, 16, 24, 32, 43])
def test_keys_that_nobody_chose_are_read(shift: int) -> None:
    keys = [number << shift for number in range(20_000)]
    for value in (dict.fromkeys(keys, 0), set(keys), {key / 8: 0 for key in keys}, frozenset(-key for key in keys)):
        assert unpack(pack(encode(value))) == value


# --- the room that reading takes -----------------------------------------------------------------------


LARGE: dict[str, Callable[[], object]] = {
    "ints": lambda: list(range(1_000_000)),
    "floats": lambda: [float(i) for i in range(1_000_000)],
    "texts": lambda: [f"row {i}" for i in range(1_000_000)],
    "tuples": lambda: [(i, i) for i in range(100_000)],
    "dicts": lambda: [{"id": i, "name": "x", "price": 1.5} for i in range(30_000)],
    "texts of JSON": lambda: ['{"a": [1, 2, 3], "b": {"c": "\\"d\\""}}' * 20] * 20_000,
    "text": lambda: "x" * (60 << 20),
    "bytes": lambda: b"x" * (60 << 20),
    "wide text": lambda: "日本" * (8 << 20),
}
"""Makers, so that no other test of the run has these values beside it."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", LARGE)
def test_large_value_is_packed_and_read(kind: str) -> None:
    value = LARGE[kind]()
    assert unpack(pack(encode(value))) == value


@pytest.mark.parametrize(
    "value",
    [
        [""] * 12_000,
        [True, 1] * 10_000,
        [[]] * 5_000,
        [()] * 2_000,
        list(range(20_000)),
        "x" * 200_000 + "😀",
        b"x" * 600_000,
        [pathlib.PurePosixPath("a/" * 1000)] * 8,
        {pathlib.PurePosixPath("a/" * 1000 + str(n)): n for n in range(2)},
    ],
    ids=["texts", "mixed", "lists", "tuples", "ints", "wide text", "bytes", "paths", "keys"],
)
@pytest.mark.threat("W7")
def test_value_that_takes_too_much_room_is_refused_where_it_is_written_and_where_it_is_read(
    value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffers = pack(encode(value))
    assert unpack(buffers) == value
    monkeypatch.setattr(room_, "MAX_ROOM", 2**20)
    with pytest.raises(NotPortable, match="more than 1 MB to whoever reads it"):
        pack(encode(value))
    with pytest.raises(MalformedValue, match=r"more than 1 MB when (it is|they are) read"):
        unpack(buffers)


@given(st.binary(max_size=60).map(lambda data: data.replace(b"\n", b"")), st.integers(0, 4000))
def test_room_of_a_text_is_that_of_its_pieces(text: bytes, most: int) -> None:
    """However a text is cut into pieces to bound what estimating it takes, the answer is the same.

    Of one with a string that does not end, which is no JSON, it may be that the text does not fit.
    """
    piece, room_._PIECE = room_._PIECE, 5
    try:
        found, whole = room_.fits(text, most), len(text) * room_._DENSEST <= most or room_of(text) <= most
        assert found == whole or (not found and text.count(b'"') % 2 == 1)
    finally:
        room_._PIECE = piece


def room_of(text: bytes) -> int:
    """What `fits` compares, in one go."""
    bare, strings = room_._STRING.subn(b"", text)
    whole = room_._parts(text, text.count(b'"'))
    return room_._characters(text) + min(whole, room_._parts(bare, 2 * strings))


# --- properties ---------------------------------------------------------------------------------------

UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

zones = (
    st.none() | st.timezones() | st.builds(dt.timezone, st.timedeltas(dt.timedelta(hours=-23), dt.timedelta(hours=23)))
)
hashables = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.text(st.characters())
    | st.text(st.characters(categories=["Cs", "Cc", "Lu"]))
    | st.binary(max_size=2000)
    | st.dates()
    | st.times()
    | st.datetimes(timezones=zones, allow_imaginary=False)
    | st.timedeltas()
    | st.fractions()
    | st.uuids()
    | st.builds(EnumName, st.text(), st.text())
    | st.builds(Opaque, st.text(), st.text()),
    lambda inner: st.lists(inner, max_size=5).map(tuple) | st.frozensets(inner, max_size=5),
    max_leaves=10,
)
values = st.recursive(
    hashables
    | st.decimals().filter(lambda d: not d.is_snan())
    | st.binary().map(bytearray)
    | st.lists(st.integers(), max_size=300),
    lambda inner: (
        st.lists(inner, max_size=40)
        | st.dictionaries(hashables, inner, max_size=6)
        | st.dictionaries(st.text(), inner, max_size=6)
        | st.dictionaries(st.text(), inner, max_size=3).map(lambda fields: Record("T", fields))
        | st.sets(hashables, max_size=6)
    ),
    max_leaves=30,
)


def _written(encoded: Encoded) -> str:
    return json.dumps(encoded.tree, separators=(",", ":"))


@pytest.mark.sampled(0)
@UNTIMED
@given(values)
def test_any_portable_value_survives(value: object) -> None:
    encoded = encode(value)
    arrived = decode(json.loads(_written(encoded)), encoded.buffers)
    # NaN is unequal to itself, so what is compared is the form
    assert _unordered(encode(arrived)) == _unordered(encoded)


def _unordered(encoded: Encoded) -> tuple[int, list[str], list[bytes]]:
    """Sets have no order of their own."""
    text = _written(encoded)
    return len(text), sorted(text), sorted(map(bytes, encoded.buffers))


@pytest.mark.sampled(0)
@UNTIMED
@given(values, st.integers(0, 2000))
def test_nothing_takes_more_room_than_was_allowed(value: object, max_bytes: int) -> None:
    try:
        encoded = encode(value, max_bytes=max_bytes)
    except NotPortable as refusal:
        assert refusal.reason == f"larger than {max_bytes:,} bytes"  # noqa: PT017
        return
    if not isinstance(encoded.tree, int | None):
        assert len(_written(encoded)) + sum(map(len, encoded.buffers)) <= max_bytes


def _decodes_or_refuses(tree: object, buffers: tuple[bytes, ...]) -> None:
    try:
        value = decode(tree, buffers)
    except MalformedValue:
        return
    encode(value)


json_trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(st.text(), inner, max_size=2),
)


@UNTIMED
@given(json_trees, st.lists(st.binary(), max_size=2).map(tuple))
@pytest.mark.threat("W7")
def test_any_json_decodes_or_is_malformed(tree: object, buffers: tuple[bytes, ...]) -> None:
    _decodes_or_refuses(tree, buffers)


SEEDS = [encode(value) for value in [*SAME, np.arange(300), np.array("a"), np.float32(1)] if len(repr(value)) < 5000]
TAGS = sorted({tag for seed in SEEDS if isinstance(seed.tree, dict) for tag in seed.tree})


@pytest.mark.sampled(0)
@settings(UNTIMED, max_examples=1000)
@given(st.data())
@pytest.mark.threat("W7")
def test_any_change_to_a_tree_decodes_or_is_malformed(data: st.DataObject) -> None:
    seed = data.draw(st.sampled_from(SEEDS))
    others = [other.tree for other in SEEDS]

    def mutate(tree: object, depth: int = 0) -> object:
        if depth > 3 or data.draw(st.integers(0, 3)) == 0:
            return data.draw(
                st.sampled_from(others)
                | st.sampled_from([0, 1, -1, "", "00", None, [], {}, 1e300, 2**63, "0x" + "f" * 20])
                | st.builds(lambda tag, body: {tag: body}, st.sampled_from(TAGS), json_trees)
            )
        if isinstance(tree, list) and tree:
            at = data.draw(st.integers(0, len(tree) - 1))
            return [*tree[:at], mutate(tree[at], depth + 1), *tree[at + data.draw(st.integers(0, 1)) :]]
        if isinstance(tree, dict):
            return {data.draw(st.sampled_from([tag, *TAGS])): mutate(body, depth + 1) for tag, body in tree.items()}
        return tree

    _decodes_or_refuses(mutate(seed.tree), tuple(map(bytes, seed.buffers)))


# --- what stands for the rest -------------------------------------------------------------------------


class Broken:
    def __repr__(self) -> str:
        raise ValueError("no")


class Worse:
    def __repr__(self) -> str:
        class Mute(Exception):
            __str__ = _raise_value_error

        raise Mute


def _raise_value_error(self: object) -> str:
    raise ValueError


@pytest.mark.parametrize(
    ("value", "stands"),
    [
        (len, Opaque("builtin_function_or_method", "<built-in function len>")),
        (Broken(), Opaque("Broken", "<Broken repr failed: ValueError: no>")),
        (
            Worse(),
            Opaque("Worse", "<Worse repr failed: Worse.__repr__.<locals>.Mute: its message could not be read>"),
        ),
        (
            type("N", (), {"__repr__": lambda self: 5})(),
            Opaque("N", "<N repr failed: TypeError: __repr__ returned non-string (type int)>"),
        ),
    ],
)
def test_opaque_says_type_and_repr(value: object, stands: Opaque) -> None:
    assert opaque(value) == stands
    assert across(opaque(value)) == stands


def test_opaque_cuts_the_middle() -> None:
    shown = type("Long", (), {"__repr__": lambda self: "a" * 100 + "b" * 100})()
    assert opaque(shown, max_repr=8).repr == "aaaaaa… 192 characters cut …bb"
    assert opaque([0] * 10**6, max_repr=12).repr == "[0, 0, 0,… 1,000,000 long, middle cut … 0]"


def test_name_and_repr_are_exact_strings() -> None:
    class Text(str):
        __slots__ = ()

    kind = type("T", (), {"__repr__": lambda self: Text("hello")})
    kind.__qualname__ = Text("Name")
    shown = opaque(kind())
    assert (type(shown.type), type(shown.repr)) == (str, str)
    assert shown == Opaque("Name", "hello")


def test_opaque_lets_an_interrupt_through_and_nothing_else() -> None:
    def interrupted(_: object) -> str:
        raise Interruption

    with pytest.raises(Interruption):
        opaque(type("I", (), {"__repr__": interrupted})())
    assert opaque(type("R", (), {"__repr__": _run})()).repr == "<R repr failed: Ran>"


def test_the_fields_of_a_record_are_its_attributes_and_no_method_of_it_is_made_up_inside():
    record = across(Named(1, "b"))
    assert (record.x, record.y, copy.deepcopy(record), pickle.loads(pickle.dumps(record))) == (1, "b", record, record)
    hostile = Record("T", {"_repr_html_": 1, "__deepcopy__": 2, "fields": 3, "type": 4})
    assert (hostile.type, hostile["fields"], copy.deepcopy(hostile)) == ("T", 3, hostile)
    for name in ("z", "_repr_html_", "__array__"):
        assert not hasattr(hostile, name)
