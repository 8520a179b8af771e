"""The invariant of `fuzzer.standstill`: no text of a bounded length holds up the host, or fills its memory."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.alone  # it measures time

HERE = Path(__file__).parent
if str(HERE) not in sys.path:
    sys.path.append(str(HERE))  # for `fuzzer`, which is a program of its own as well

from fuzzer import standstill  # noqa: E402
from fuzzer.standstill import PIECES, READERS, Pumped, Standstill, pumped  # noqa: E402

FOUND: tuple[tuple[str, Pumped], ...] = (
    ("a source that is no Python", Pumped("", "\n", "(")),
    ("a failure", Pumped("", "a", "")),
    ("a failure", Pumped("", "[", " is not in the network= list of this session")),
    ("a reply", Pumped("```py", " ", "")),
    ("a reply", Pumped("", ">", "")),
    ("a reply", Pumped("", "- ", "x")),
    ("a reply", Pumped("```py\n" + "x = (1, 2)\n" * 5000 + "'''\n", "```\n", "")),
    ("a reply", Pumped("```python\n\\'''\n```\n" * 39, "\n", "")),
    ("a notebook's code", Pumped("%cd x", " ", "y")),
    ("a notebook's code", Pumped("", " ", "y")),
    ("a notebook's code", Pumped("%time -", "1", "")),
    ("a notebook's code", Pumped("", "%x\n", "")),
    ("a notebook's prose", Pumped("", "<![CDATA[", "")),
    ("a notebook's prose", Pumped("", "\u200b", "")),
    ("an endpoint's refusal", Pumped("", "tool use ", "")),
    ("a log", Pumped("", "-eyJ", "")),
    ("a log", Pumped('"', "\\", "x")),
    ("outputs", Pumped("", "\u200b", "")),
    ("markup", Pumped("", '<a "<" ', "")),
)
"""Texts that took too long, by who read them."""


@pytest.mark.sampled(1)
@pytest.mark.threat("W7")
@pytest.mark.parametrize("name", READERS)
def test_no_text_holds_up_the_host(name: str) -> None:
    reading, pick = Standstill(name), random.Random(name)
    reading.run(iter([text for reader, text in FOUND if reader == name]), measure_every=1)
    reading.run(pumped(pick) for _ in range(8))
    assert reading.finds == []


@pytest.mark.thorough
@pytest.mark.threat("W7")
@pytest.mark.parametrize("name", READERS)
def test_no_text_that_no_run_before_tried_does(name: str, thorough_seed: int) -> None:
    reading, seconds = Standstill(name), float(os.environ.get("CELLBLOCK_FUZZ_SECONDS", "10"))
    reading.run(Pumped(start, piece, end) for piece in PIECES for start, end in (("", ""), ("x", ")")))
    reading.run(_for_seconds(seconds, random.Random(thorough_seed)))
    assert reading.finds == [], f"seed {thorough_seed}"


def _for_seconds(seconds: float, pick: random.Random) -> Iterator[Pumped]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield pumped(pick)


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    ("reading", "how"),
    [
        (lambda text: [text.count("x", at) for at in range(len(text)) if text[0] == "z"], " s for Pumped("),
        (lambda text: bytes(40 * 2**20) if text[0] == "z" else None, "40 MB for Pumped("),
    ],
    ids=["time", "memory"],
)
def test_what_takes_too_much_is_found(reading: object, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(standstill.READERS, "slow", reading)
    found = Standstill("slow")
    found.run(iter([Pumped("z", "a", "")]), measure_every=1)
    assert how in found.finds[0]
