"""JSON read in pieces says what JSON says, and is no more than JSON."""

from __future__ import annotations

import json
import random

import pytest

from cellblock.values import pieces

MARKS = [b",", b"", b"]", b"[", b'"', b"}", b"{", b":", b"\\", b" "]


def _value(chance: random.Random, depth: int) -> object:
    kind = chance.randrange(8 if depth else 5)
    if kind == 0:
        return chance.choice([None, True, False, 1, -2.5, 10**20])
    if kind == 1:
        return "".join(chance.choice('a,"\\[]{}é\U0001f600 :') for _ in range(chance.randrange(12)))
    if kind < 5:
        return chance.randrange(1000)
    if kind < 7:
        return [_value(chance, depth - 1) for _ in range(chance.randrange(6))]
    return {str(_value(chance, 0)): _value(chance, depth - 1) for _ in range(chance.randrange(5))}


@pytest.mark.parametrize("seed", range(10))
def test_pieces_of_any_place_give_what_the_whole_does(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_PIECE", 16)
    chance = random.Random(seed)
    for _ in range(300):
        text = json.dumps([_value(chance, 6) for _ in range(chance.randrange(6))]).encode()
        assert json.dumps(pieces.loads(text)).encode() == text


@pytest.mark.sampled(3)
@pytest.mark.threat("W7")
@pytest.mark.parametrize("seed", range(10))
def test_what_is_no_json_is_none_in_pieces(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_PIECE", 16)
    chance = random.Random(seed)
    for _ in range(600):
        text = bytearray(json.dumps([_value(chance, 5) for _ in range(4)]).encode())
        for _ in range(chance.randrange(1, 3)):
            at = chance.randrange(len(text))
            text[at : at + 1] = chance.choice(MARKS)
        assert _read(pieces.loads, bytes(text)) in (_read(json.loads, bytes(text)), None)


def _read(loads: object, text: bytes) -> str | None:
    try:
        return json.dumps(loads(text))  # type: ignore[operator]
    except ValueError:
        return None


@pytest.mark.sampled(3)
@pytest.mark.threat("W7")
@pytest.mark.parametrize("text", [b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000, b"[1,2" * 50_000, b"[]," * 50_000])
def test_brackets_without_end_are_refused(text: bytes) -> None:
    with pytest.raises((ValueError, RecursionError)):
        pieces.loads(text)
