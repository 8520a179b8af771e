"""Cases to begin with: what an honest worker says, written by the code that writes it."""

from __future__ import annotations

import datetime as dt
import enum
import struct
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath, PureWindowsPath
from zoneinfo import ZoneInfo

from cellblock.outputs import DATAFRAME_MIME
from cellblock.values.portable import EnumName, Opaque, Record, encode, pack
from cellblock.wire import messages as m
from cellblock.wire.codec import encode_event, pack_event
from cellblock.wire.frames import packets
from cellblock.wire.text import NONCE_BYTES, PREFIX, mark
from cellblock.worker.interpreter import describe
from cellblock.worker.show.display import bundle
from fuzzer.cases import Case

NONCE = bytes(range(1, NONCE_BYTES + 1))


@dataclass
class Point:
    x: int
    y: object


class Colour(enum.Enum):
    RED = 1


VALUES: tuple[object, ...] = (
    None, True, 0, -1, 2**63, -(10**40), 0.5, float("nan"), float("-inf"), 1j, "", "text", "é日😀", "\ud800",
    "x" * 70_000, b"", b"\x00\xff", b"x" * 1500, bytearray(b"abc"), [], [1, "a", None, 2.5], list(range(300)),
    [0.5] * 300, [[1], [2, [3]]], (), (1, (2, 3)), {1, 2, 3}, frozenset({"a"}), {}, {"a": 1, "b": [2]},
    {(1, 2): {3: 4}}, range(1, 10**30, 7),
    slice(1, None, 2), dt.date(2024, 2, 29), dt.time(1, 2, 3, 4, fold=1), dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
    dt.datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")), dt.timedelta(days=-1, microseconds=1),
    dt.timezone(dt.timedelta(hours=5), "odd"), Decimal("1.10"), Decimal("sNaN"), Fraction(-1, 3), uuid.UUID(int=5),
    PurePosixPath("/a/b"), PureWindowsPath("C:\\a"), Opaque("T", "<T>"), EnumName("T", "A"), Record("T", {"a": 1}),
    Point(1, [2]), Colour.RED, {dt.date(2020, 1, 1): Decimal("2")}, [{"id": n, "name": f"n{n}"} for n in range(5)],
)  # fmt: skip


class _Shown:
    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        return {
            "text/html": "<b onclick=x>bold</b>",
            "image/png": b"\x89PNG\r\n\x1a\nx",
            "application/json": {"a": [1, None]},
            "text/markdown": "# head",
            "image/svg+xml": "<svg/>",
            "application/javascript": "alert(1)",
        }


_TABLE = {
    "columns": ["a", "b"],
    "dtypes": ["int64"] * 2,
    "shape": [2, 2],
    "head": [[1, None], [2.5, "x"]],
    "index": [0, 1],
}
_FAILURE = describe(ValueError("no\x1b[31m"), 1000)


def _display(value: object, mark: int, *, is_result: bool = False) -> m.Display:
    shown = bundle(value, 1000)
    return m.Display(
        data=shown.data,
        mimes=tuple(shown.buffers),
        buffers=tuple(shown.buffers.values()),
        is_result=is_result,
        mark=mark,
    )


def _finished(number: int, **fields: object) -> m.Finished:
    given: dict[str, object] = {"failure": None, "duration_ms": 1.5, "cpu_ms": 0.5, "memory_peak": 3, **fields}
    return m.Finished(number=number, **given)  # type: ignore[arg-type]


HELLO = m.Hello(python="3.11.7", walls=(("landlock", "ABI 5"),), missing=(("seccomp", "old", "a newer kernel"),))
EVENTS: tuple[m.Event, ...] = (
    HELLO,
    _display([1, 2], 1, is_result=True),
    _display(_Shown(), 2),
    m.Display(data={"text/plain": "t", DATAFRAME_MIME: _TABLE}, mimes=(), is_result=True, mark=3),
    m.ToolCalled(call=1, request=1, name="search", mark=4, buffers=pack(encode([[1], {"k": 2}]))),
    _finished(1),
    _finished(1, gained={"x": "int", "näme": "list"}, dropped=("y",)),
    _finished(1, failure=_FAILURE, gained={"e": "ValueError"}),
    _finished(1, buffers=pack(encode({"a": [1, 2]}))),
    _finished(1, buffers=(b"[]", b"", b"x", b""), beside=((1, 4096, 2**20), (3, 2**40, 0))),
    m.Reserved(call=1, places=((0, 4096, 2**20),)),
)


def values() -> Iterator[Case]:
    """A value: its tree, then its buffers."""
    yield from (tuple(map(bytes, pack(encode(value)))) for value in VALUES)
    yield from (tuple(map(bytes, pack(encode(value)))) for value in (*_arrays(), *_tables()))


def _arrays() -> list[object]:
    try:
        import numpy as np
    except ImportError:
        return []
    many = [np.arange(6).reshape(2, 3), np.zeros((0, 4)), np.array(["ab", "é"]), np.array([True]), np.arange(300.0)]
    return [*many, np.array("2020", dtype="M8[D]"), np.float32(1), np.str_("a"), {np.int8(1): np.array([1 + 2j])}]


def _scalars() -> frozenset[type]:
    try:
        import numpy as np
    except ImportError:
        return frozenset()
    return frozenset(kind for kind in np.sctypeDict.values() if kind is not np.object_ and kind is not np.void)


def _tables() -> list[object]:
    try:
        import pandas as pd
    except ImportError:
        return []
    frame = pd.DataFrame(
        {
            "n": [1, 2],
            "text": ["a", None],
            "objects": pd.Series([[1], "b"], dtype=object),
            "zoned": pd.to_datetime(["2020-01-01", None]).tz_localize(ZoneInfo("Europe/Berlin")),
            "masked": pd.array([1, None], dtype="Int64"),
            "kind": pd.Categorical(["u", "v"]),
        }
    )
    return [frame, frame.set_index(["n", "text"]), frame["n"], pd.DataFrame([[1.5, 2.5]], columns=["a", "a"])]


SCALARS = _scalars()
"""The types of numpy's scalars that have a row."""


def events() -> Iterator[Case]:
    """A frame: its head, then its buffers."""
    for event in EVENTS:
        frame = encode_event(event)
        yield (frame.head, *map(bytes, frame.buffers))


def spoken(event: m.Event) -> Case:
    """The packets of an event, as a worker sends them."""
    packed = pack_event(event)
    return tuple(map(bytes, packets(encode_event(event)))) if packed is None else (packed,)


def conversations() -> Iterator[Case]:
    """Steps: "h" and a byte, what the host sends; "w" and a packet, what the worker does."""
    hello = tuple(b"w" + packet for packet in spoken(HELLO))
    for event in EVENTS[1:]:
        said = tuple(b"w" + packet for packet in spoken(event))
        yield (*hello, b"h\x00", *said)
        yield (*hello, *said, b"h\x01", *said, b"h\x06")
    big = tuple(b"w" + packet for packet in spoken(_finished(1, buffers=(b"x" * 150_000,))))
    yield (*hello, b"h\x02", *big, b"h\x03", *(b"w" + packet for packet in spoken(_finished(2))))


def pipes() -> Iterator[Case]:
    """Chunks of text."""
    yield (
        b"\x1b[31mred\x1b[0m \x1b]0;title\x07",
        b"\x1b[",
        b"2J\r\n",
        b"\xc2\x9b2J\x1b]52;c;eA==\x1b\\",
        b"\xe2\x80\xae",
    )
    yield (b"out\n" + mark(NONCE, b"E") + b"err\n" + mark(NONCE, b"O"), mark(NONCE, b"M", 1) + b"more")
    yield (PREFIX + NONCE[:3], NONCE[3:] + struct.pack("<cQ", b"M", 2), "é日😀".encode()[:5], "é日😀".encode()[5:])
    yield tuple(bytes([byte]) for byte in b"a" + mark(NONCE, b"E") + b"b")
    yield (PREFIX + bytes(NONCE_BYTES) + b"tail", b"x" * 3000, mark(NONCE, b"?", 3), mark(NONCE, b"M")[:-1])


def cells() -> Iterator[Case]:
    """Steps of a cell: "s" and source, "o" or "e" and text, "d" or "f" and a head, "b" and a buffer, "l" and a name."""
    for event in EVENTS[1:4]:
        frame = encode_event(event)
        buffers = tuple(b"b" + bytes(buffer) for buffer in frame.buffers)
        yield (
            b"sx = 1",
            b"oprinted\x1b[31m",
            *buffers,
            b"d" + frame.head,
            b"eerr\r\n",
            b"f" + encode_event(EVENTS[5]).head,
        )
    yield (b"s<script>", b"o<!--", b"f" + encode_event(EVENTS[7]).head, b"lname\n")
    html = m.Display(data={"text/html": "<p>a</p>", "text/plain": "p"}, mimes=(), is_result=True, mark=0)
    svg = m.Display(
        data={"image/svg+xml": "<svg><script/></svg>", "text/plain": "s"}, mimes=(), is_result=False, mark=0
    )
    text = "# head\n\n- *a* [b](https://x.test)\n\n1. `c` ![d](x.png)\n\n| e |\n|--:|\n| <b> |\n\n> f\\\ng\n\n---\n"
    markdown = m.Display(data={"text/markdown": text}, mimes=(), is_result=True, mark=0)
    for event in (html, svg, markdown):
        yield (b"s1", b"d" + encode_event(event).head, b"f" + encode_event(EVENTS[8]).head)
