"""The text pipe: however its bytes arrive, the same texts and places come out; forged marks mislabel text, no more."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cellblock.wire.text import MARK_BYTES, NONCE_BYTES, PREFIX, Demultiplexer, Place, Text, mark

NONCE = bytes(range(NONCE_BYTES))
OTHER = bytes(NONCE_BYTES)


def joined(items: list[Text | Place]) -> list[Text | Place]:
    """Neighbouring texts of one stream as one: where the pipe was cut does not count."""
    out: list[Text | Place] = []
    for item in items:
        last = out[-1] if out else None
        if isinstance(item, Text) and isinstance(last, Text) and item.stream == last.stream:
            out[-1] = Text(item.stream, last.data + item.data)
        else:
            out.append(item)
    return out


def split(chunks: list[bytes]) -> list[Text | Place]:
    demultiplexer = Demultiplexer(NONCE)
    items = [item for chunk in chunks for item in demultiplexer.feed(chunk)]
    return joined([*items, *demultiplexer.rest()])


def test_marks_switch_streams_and_name_places() -> None:
    pipe = b"out" + mark(NONCE, b"E") + b"err" + mark(NONCE, b"O") + mark(NONCE, b"M", 7) + b"more"
    assert split([pipe]) == [Text("stdout", b"out"), Text("stderr", b"err"), Place(7), Text("stdout", b"more")]


def test_text_without_marks_passes_at_once() -> None:
    assert list(Demultiplexer(NONCE).feed(b"a\x00\x1bb" + PREFIX + OTHER + b"tail")) == [
        Text("stdout", b"a\x00\x1bb" + PREFIX + OTHER + b"tail")
    ]


def test_at_most_one_incomplete_mark_is_held_back() -> None:
    demultiplexer = Demultiplexer(NONCE)
    whole = mark(NONCE, b"M", 1)
    for size in range(1, MARK_BYTES):
        demultiplexer = Demultiplexer(NONCE)
        assert list(demultiplexer.feed(b"text" + whole[:size])) == [Text("stdout", b"text")]
        assert list(demultiplexer.feed(whole[size:])) == [Place(1)]


def test_incomplete_mark_at_the_end_is_text() -> None:
    for size in range(1, MARK_BYTES):
        piece = mark(NONCE, b"M", 1)[:size]
        assert split([b"x", piece]) == [Text("stdout", b"x" + piece)]


def test_mark_of_another_nonce_is_text() -> None:
    forged = mark(OTHER, b"E")
    assert split([forged, b"x"]) == [Text("stdout", forged + b"x")]


def test_forged_mark_only_mislabels_what_follows() -> None:
    assert split([mark(NONCE, b"E") + b"mine"]) == [Text("stderr", b"mine")]


def test_unknown_letter_is_left_out() -> None:
    assert split([b"a" + mark(NONCE, b"?", 3) + b"b"]) == [Text("stdout", b"ab")]


pieces = st.lists(
    st.sampled_from(
        [
            b"text",
            b"\n",
            b"\0",
            PREFIX,
            PREFIX + NONCE,
            PREFIX + NONCE[:3],
            PREFIX + PREFIX + NONCE,
            mark(OTHER, b"E"),
            mark(NONCE, b"E"),
            mark(NONCE, b"O"),
            mark(NONCE, b"M", 1),
            mark(NONCE, b"M", 2**64 - 1),
            mark(NONCE, b"X"),
        ]
    )
    | st.binary(max_size=30),
    max_size=12,
).map(b"".join)


@given(pieces, st.lists(st.integers(0, 400), max_size=12))
def test_any_split_gives_the_same_texts_and_places(pipe: bytes, cuts: list[int]) -> None:
    borders = sorted({0, len(pipe), *(cut for cut in cuts if cut < len(pipe))})
    chunks = [pipe[a:b] for a, b in pairwise(borders)]
    assert split(chunks) == split([pipe])


@given(pieces)
def test_byte_by_byte_is_as_all_at_once(pipe: bytes) -> None:
    assert split([bytes([byte]) for byte in pipe]) == split([pipe])


@given(pieces)
def test_no_byte_of_text_is_lost_or_made_up(pipe: bytes) -> None:
    told = b"".join(item.data for item in split([pipe]) if isinstance(item, Text))
    rest, at = pipe, 0
    for byte in told:
        at = rest.find(bytes([byte]), at) + 1
        assert at > 0
    assert (len(pipe) - len(told)) % MARK_BYTES == 0
