"""A turn's text budget: the first bytes as they come, the last for the end, and a true count of what is between."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cellblock.executors.protocol import Written
from cellblock.executors.text import _MAX_PIECES, TextBudget
from cellblock.wire.text import Text

texts = st.lists(
    st.builds(Text, st.sampled_from(["stdout", "stderr"]), st.binary(min_size=1, max_size=40)), max_size=40
)
ascii_texts = texts.map(lambda many: [Text(one.stream, bytes(byte % 128 for byte in one.data)) for one in many])

UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine is no fault of theirs."""


def told(budget: TextBudget, many: list[Text]) -> list[Written]:
    live = [written for text in many for written in budget.add(text)]
    return [*live, *budget.finish()]


@UNTIMED
@given(ascii_texts, st.integers(1, 300))
def test_head_and_tail_are_kept_and_what_is_between_is_counted(many: list[Text], limit: int) -> None:
    whole = b"".join(text.data for text in many).decode()
    written = told(TextBudget(limit), many)
    cut = sum(one.cut for one in written)
    at = next((place for place, one in enumerate(written) if one.cut), len(written))
    head, tail = ("".join(one.text for one in part) for part in (written[:at], written[at:]))
    keep = max(1, limit // 2)
    if cut == 0:
        assert head + tail == whole
        assert len(whole) <= limit + keep
    else:
        assert head == whole[:limit]
        assert tail == whole[-keep:]
        assert len(head) + cut + len(tail) == len(whole)


@UNTIMED
@given(
    st.lists(st.one_of(st.none(), st.booleans(), st.binary(min_size=1, max_size=200)), max_size=60),
    st.integers(1, 300),
)
def test_text_before_a_display_is_told_before_it_and_all_is_no_more_and_counted(
    items: list[bytes | bool | None], limit: int
) -> None:
    budget, told, between = TextBudget(limit), list[Written](), b""
    for item in items:
        if isinstance(item, bytes):
            data = bytes(byte % 128 for byte in item)
            between += data
            told += budget.add(Text("stdout", data))
        else:
            before = budget.before_display(is_result=item is True)
            assert between.decode().endswith("".join(one.text for one in before))
            told += before
            between = b""
    told += budget.finish()
    kept, whole = sum(len(one.text) for one in told), sum(len(item) for item in items if isinstance(item, bytes))
    assert kept <= limit + max(1, limit // 2)
    assert kept + sum(one.cut for one in told) == whole
    assert sum(one.cut > 0 for one in told) <= limit.bit_length() + 3


@UNTIMED
@given(texts, st.integers(1, 300))
def test_streams_are_told_as_they_were_written(many: list[Text], limit: int) -> None:
    budget = TextBudget(limit)
    live = [written for text in many for written in budget.add(text)]
    streams = [text.stream for text in many]
    at = iter(streams)
    assert all(one.stream in at for one in live)  # in the same order
    assert {one.stream for one in budget.finish()} <= set(streams)


@pytest.mark.sampled(0)
def test_pieces_that_are_kept_have_a_largest_number() -> None:
    budget = TextBudget(1_000_000)
    many = [Text("stdout", b"x" * 1_000_000)] + [Text(("stdout", "stderr")[n % 2], b"y") for n in range(100_000)]
    written = told(budget, many)
    assert len(written) <= _MAX_PIECES + 3
    assert sum(len(one.text) for one in written) + sum(one.cut for one in written) == 1_100_000


def test_text_that_comes_byte_by_byte_is_kept_to_its_last_bytes() -> None:
    written = told(TextBudget(20_000), [Text("stdout", b"%d" % (n % 10)) for n in range(100_000)])
    assert "".join(one.text for one in written)[-10_000:] == "0123456789" * 1000
