"""The border for text: whatever a value from inside or from a model is, its text is valid, bounded and harmless."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from cellblock.models import Reply, ToolRequest
from cellblock.text import (
    BadJson,
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
    valid,
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


def test_a_name_that_is_shown_as_a_literal_opens_the_same_file() -> None:
    for one in ("a\nb", "\udcff", "'quoted'", 'a"b', "\x1b[2J", "plain.txt", "é 日.csv"):
        shown = name(one)
        assert (eval(shown) if shown[0] in "'\"" else shown) == one


def test_an_error_that_cannot_be_read_has_a_message() -> None:
    assert message_of(LyingError(), 100) == "its message could not be read"


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
