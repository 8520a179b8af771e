"""The border for text: whatever a value from inside or from a model is, its text is valid, bounded and harmless."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import OrderedDict, defaultdict, deque
from typing import Any

import pydantic
import pytest

from cellblock.differences import Diff, FileChange, Name, NameChange, StepTaken
from cellblock.models import Reply, ToolRequest
from cellblock.text import (
    BadJson,
    Interruption,
    as_terminal,
    bounded,
    inert,
    line,
    message_of,
    name,
    plain,
    read_json,
    represent,
    row,
    sayable,
    strict_json,
    text_of,
    type_name,
    unescape,
    valid,
    whole_number,
    write_json,
)

pytestmark = [pytest.mark.threat("L9"), pytest.mark.threat("W8")]


class LyingText(str):
    """A text whose methods lie."""

    __slots__ = ()

    def __str__(self) -> Any:
        return 5

    def __repr__(self) -> Any:
        return LyingText("\ud800")

    def __format__(self, _spec: str) -> Any:
        return LyingText("\x1b[2J")

    def __len__(self) -> int:
        return -1

    def __getitem__(self, _key: object) -> Any:
        return 10**5000

    def encode(self, *_: object) -> Any:  # type: ignore[override]
        raise AssertionError


class Lying:
    """An object whose methods raise."""

    def _raise(self, *_: object) -> Any:
        raise ZeroDivisionError("\ud800\x1b[2J")

    __str__ = __repr__ = __format__ = __len__ = __bool__ = __iter__ = __getattr__ = __hash__ = __eq__ = _raise


class LyingError(Exception):
    """An exception that cannot be read."""

    def __str__(self) -> Any:
        return 10**5000


class Leaving:
    """An object whose methods leave with what is no `Exception`."""

    def __init__(self, leaves: type[BaseException] = SystemExit) -> None:
        self.leaves = leaves

    def __str__(self) -> str:
        raise self.leaves(7)

    __repr__ = __str__


class LeavingError(Exception):
    """An exception that leaves so when it is read."""

    def __str__(self) -> str:
        raise self.args[0](7)


LEAVES = (SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, BaseException)


def nested(depth: int) -> object:
    found: list[object] = []
    for _ in range(depth):
        found = [found]
    return found


HOSTILE: dict[str, object] = {
    "half of a character": "a\ud800b\udcff",
    "two halves": "\ud83d\ude00",
    "controls": "\x1b[2J\x1b]0;title\x07\x00\x9b31m\u202e\u200b",
    "line breaks": "a\nb\r\nc\u2028d\x85e",
    "a long text": "x" * 3_000_000,
    "a long integer": 10**5000,
    "a long integer within": [1, {"a": 10**5000, 10**5000: 1}],
    "deep": nested(900),
    "very deep": nested(100_000),
    "a lying text": LyingText("a\ud800"),
    "a lying object": Lying(),
    "a lying object within": {"a": [Lying()]},
    "an object that leaves": Leaving(),
    "an object that leaves within": [Leaving(KeyboardInterrupt)],
    "no number": math.nan,
    "bytes": b"\xff\x00",
    "nothing": None,
}

TEXTS = {which: one for which, one in HOSTILE.items() if isinstance(one, str)}


def require_harmless(text: object, most: int = 20_000) -> None:
    assert type(text) is str
    assert len(text) <= most
    text.encode()


@pytest.mark.parametrize("which", HOSTILE)
def test_text_of_any_value_is_exact_valid_and_bounded(which: str) -> None:
    value = HOSTILE[which]
    require_harmless(represent(value, max_chars=1_000))
    require_harmless(text_of(value, max_chars=1_000))
    require_harmless(type_name(value))
    require_harmless(message_of(ValueError(value), 1_000), 1_000)
    require_harmless(message_of(KeyError(value), 1_000), 1_000)
    shown = line(value, 100)
    require_harmless(shown, 101)
    assert shown.isprintable()
    str(sayable(value, max_chars=1_000)).encode()


@pytest.mark.parametrize("which", HOSTILE)
def test_any_value_is_written_as_json(which: str) -> None:
    value = HOSTILE[which]
    for escaped in (True, False):
        text = write_json({"a": [value]}, escaped=escaped)
        text.encode()
        json.loads(text, parse_constant=pytest.fail)
    assert write_json({"a": [value]}).isascii()
    if (copied := strict_json(value)) is not None:
        write_json(copied[0]).encode()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("which", TEXTS)
def test_text_is_valid_and_drives_no_terminal(which: str) -> None:
    text = TEXTS[which]
    require_harmless(valid(text), len(str.__str__(text)))
    for harmless in (inert, as_terminal, plain, row):
        shown = harmless(valid(text))
        assert not set(shown) & set(map(chr, [*range(9), 11, 12, *range(14, 32), *range(127, 160), 0x202E, 0x200B]))
    assert not set(row(text)) & set("\n\r\u2028\x85")
    assert name(text).isprintable()
    assert len(name(text, 100)) < 150


@pytest.mark.parametrize("end", ["\x07", "\x1b\\", "\x9c"])
@pytest.mark.parametrize("order", ["]0;a title", "]52;c;Y2xpcGJvYXJk", "P1$r0m", "_Gf=100"])
def test_orders_to_a_terminal_are_taken_out_with_what_they_say(order: str, end: str) -> None:
    written = f"before\x1b{order}{end}after"
    assert {shown(written) for shown in (as_terminal, plain)} == {"beforeafter"}
    for shown in (inert, row):  # what may be code is all there
        assert shown(written).startswith("before[U+001B]")
        assert order[2:] in shown(written)


def test_plain_keeps_what_is_text_and_takes_out_what_is_not_seen() -> None:
    kept = "tab\there\nnext\r\u00e9\u2014\u4e2d\U0001f600"
    assert plain(kept) == kept
    assert plain("a\u202eb\u2066\u200b\ufeff\u3164c\U000e0068\U000e0069") == "abc"


def test_a_name_that_is_shown_as_a_literal_opens_the_same_file() -> None:
    for one in ("a\nb", "\udcff", "'quoted'", 'a"b', "\x1b[2J", "plain.txt", "é 日.csv"):
        shown = name(one)
        assert (eval(shown) if shown[0] in "'\"" else shown) == one


def test_an_error_that_cannot_be_read_has_a_message() -> None:
    assert message_of(LyingError(), 100) == "its message could not be read"


class Item:
    """Counts how often it was written out."""

    written = 0

    def __repr__(self) -> str:
        Item.written += 1
        return "Item()"


HOLDERS: dict[str, Any] = {
    "lists": lambda: [[Item()] * 1_000] * 1_000,
    "a tuple of dicts": lambda: ({n: Item() for n in range(1_000)},) * 50,
    "a dict": lambda: {n: (Item(),) for n in range(50_000)},
    "a set": lambda: {(n, Item()) for n in range(50_000)},
    "a frozenset": lambda: frozenset(Item() for _ in range(50_000)),
    "a deque": lambda: deque(Item() for _ in range(50_000)),
    "an ordered dict": lambda: OrderedDict((n, Item()) for n in range(50_000)),
    "a default dict": lambda: defaultdict(list, {n: Item() for n in range(50_000)}),
}


@pytest.mark.sampled(2)
@pytest.mark.threat("W11")
@pytest.mark.parametrize("name", HOLDERS)
def test_no_more_is_written_of_a_container_than_is_shown(name: str) -> None:
    value, Item.written = HOLDERS[name](), 0
    shown = represent(value, max_chars=100)
    assert Item.written < 100
    assert repr(value).startswith(shown.removesuffix("… the rest is cut"))


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("12", 12), ("0012", 12), ("99", 99), ("100", None), ("", None), ("-1", None), ("1.0", None),
     ("\u0661", None), ("²", None), (" 1", None), ("1_0", None), ("9" * 5_000, None)],
)  # fmt: skip
def test_whole_number_is_what_ascii_digits_say(text: str, number: int | None) -> None:
    assert whole_number(text, 99) == number


def test_a_container_nested_too_deep_for_repr_has_a_beginning() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    assert represent(value, max_chars=100) == f"{'[' * 100}… the rest is cut"


def test_the_beginning_of_a_container_is_that_of_its_repr() -> None:
    parts = [set(), (), {}, frozenset(), [], (1,), {1: {2}}, "a'b", b"x", -1.5, None, frozenset({3}), bytearray(b"y")]
    for value in (parts * 1_000, dict.fromkeys(range(1_000), parts)):
        assert represent([value], max_chars=2_000) == f"{repr([value])[:2_000]}… the rest is cut"


def test_a_container_that_holds_itself_is_written_as_python_writes_it() -> None:
    value: list[Any] = [1]
    value.append(value)
    assert represent(value, max_chars=100) == repr(value) == "[1, [...]]"
    for made in (deque([1]), OrderedDict(), defaultdict(list)):
        held: Any = made
        held.append(made) if type(made) is deque else held.update(me=made)
        assert represent(made, max_chars=100) == repr(made)
        assert repr([[made]] * 1_000).startswith(represent([[made]] * 1_000, max_chars=100)[:75])


@pytest.mark.parametrize("leaves", LEAVES, ids=lambda kind: kind.__name__)
def test_whatever_leaves_an_error_or_a_value_that_is_read_ends_nothing(leaves: type[BaseException]) -> None:
    assert message_of(LeavingError(leaves), 100) == "its message could not be read"
    shown = f"<Leaving repr failed: {leaves.__name__}: 7>"
    assert represent(Leaving(leaves), max_chars=100) == text_of(Leaving(leaves), max_chars=100) == shown
    assert sayable(Leaving(leaves), max_chars=100) == line(Leaving(leaves)) == shown
    assert json.loads(write_json([Leaving(leaves)])) == [shown]


def test_what_interrupts_the_reader_from_outside_passes() -> None:
    with pytest.raises(Interruption):
        message_of(LeavingError(Interruption), 100)
    for read in (represent, text_of, sayable):
        with pytest.raises(Interruption):
            read(Leaving(Interruption), max_chars=100)


class Counted:
    """Counts how often it is written."""

    written = 0

    def __repr__(self) -> str:
        Counted.written += 1
        return "x"


@pytest.mark.parametrize("kind", [ValueError, KeyError, SystemExit])
@pytest.mark.parametrize("before", [(), ("no rows",)], ids=["alone", "after a text"])
def test_no_more_of_an_errors_arguments_is_written_than_is_read(kind: type[BaseException], before: tuple[str]) -> None:
    rows = [Counted()] * 100_000
    Counted.written = 0
    said = message_of(kind(*before, rows), 100)
    assert said.startswith(", ".join([*before, "[x, x, "]))
    assert len(said) <= 100
    assert Counted.written < 1_000


def test_pydantic_errors_that_are_too_many_are_counted() -> None:
    adapter = pydantic.TypeAdapter(list[int])
    with pytest.raises(pydantic.ValidationError) as few:
        adapter.validate_python(["x"] * 3)
    assert message_of(few.value, 10_000) == str(few.value)
    with pytest.raises(pydantic.ValidationError) as many:
        adapter.validate_python(["x"] * 20_000)
    assert message_of(many.value, 10_000) == "20,000 validation errors for list[int]"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("[" * 100_000, "it is nested too deeply", id="very deep"),
        pytest.param("[" * 900 + "]" * 900, "it is nested too deeply", id="deep"),
        pytest.param("[" * 65 + "]" * 65, "it is nested too deeply", id="one too deep"),
        pytest.param("1" * 5_000, "it has a number of too many digits", id="long"),
        ('{"a": ', "it is not JSON: Expecting value: line 1 column 7 (char 6)"),
        (b"\xff", "it is not JSON: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
    ],
)
def test_json_that_cannot_be_read_is_bad_json(text: str | bytes, why: str) -> None:
    with pytest.raises(BadJson) as found:
        read_json(text)
    assert str(found.value) == why


def test_json_is_read_to_its_depth_with_valid_text() -> None:
    assert read_json("[" * 64 + "]" * 64) == nested(63)
    assert read_json(r'{"\ud800": ["\udfff", "\ud83d\ude00"]}') == {"\ufffd": ["\ufffd", "\U0001f600"]}
    with pytest.raises(BadJson):
        bounded(nested(100_000))


@pytest.mark.parametrize("which", TEXTS)
def test_what_a_model_says_is_valid_however_it_came(which: str) -> None:
    value = TEXTS[which]
    reply = Reply(text=value, model=value, finish=value, reasoning=value)
    for text in (reply.text, reply.model, reply.finish, reply.reasoning):
        require_harmless(text, 3_000_000)
    request = ToolRequest(value, value, {value: [value]}, value)
    assert request.arguments == {valid(value): [valid(value)]}
    for text in (request.id, request.name, request.raw):
        require_harmless(text, 3_000_000)


@pytest.mark.parametrize("depth", [900, 100_000])
def test_arguments_that_are_nested_too_deeply_are_none(depth: int) -> None:
    assert ToolRequest("1", "f", {"x": nested(depth)}, "").arguments is None


def test_a_name_of_several_lines_is_one_row_of_a_difference() -> None:
    nasty, before = "a\n- forged", Name(type="x\ny", size=1, preview="b\nc\x1b[2J")
    files = (FileChange(path=nasty, before=None, after=3),)
    steps = (StepTaken(commit="c", kind="cell", number=1, message=nasty),)
    names = (NameChange(name=nasty, before=before, after=None),)
    assert str(Diff(before="1", after="2", names=names, files=files, steps=steps)).split("\n") == [
        "cell [1] a\\n- forged",
        r"- 'a\n- forged': b c (x y)",
        r"+ 'a\n- forged': 3 bytes",
    ]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("&lt;&#65;&#x42;&#X43 &#0068;&eacute;&#x1F600;&#128512;", "<ABC D\xe9\U0001f600\U0001f600"),
        (f"&#{'0' * 5000}65;b", "Ab"),
        (f"&#{'0' * 5000};", "\ufffd"),
        (f"&#{'9' * 5000};1 &#{'9' * 5000}", "\ufffd1 \ufffd"),
        (f"&#x{'f' * 5000};1", "\ufffd1"),
        ("&#; &# &#x; & &#12345678", "&#; &# &#x; & \ufffd"),
    ],
)
def test_references_of_html_are_characters_however_many_digits_they_have(html: str, text: str) -> None:
    assert unescape(html) == text


def test_a_value_for_a_terminal_is_cut_before_it_is_written_out() -> None:
    began = time.monotonic()
    for value in (bytes(60 * 2**20), [20 * "\0"] * 500_000):
        shown = sayable(value, max_chars=1_000)
        assert isinstance(shown, str)
        assert len(shown) < 2_000
    assert time.monotonic() - began < 1
