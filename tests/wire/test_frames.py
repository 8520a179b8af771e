"""Frames: what goes in comes out whatever its size, and what is malformed or too large raises ProtocolError."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellblock.wire.frames import MAX_BUFFERS, PACKET_BYTES, Assembler, Frame, ProtocolError, packets

MORE, LAST = b"\0", b"\1"
PREFIX = 8


def prefixed(head: bytes, *buffers: bytes) -> bytes:
    lengths = struct.pack(f"<{len(buffers)}Q", *map(len, buffers))
    return struct.pack("<II", len(buffers), len(head)) + lengths + head + b"".join(buffers)


def through(frame: Frame) -> Frame:
    assembler, cut = Assembler(), list(packets(frame))
    assert all(len(packet) <= PACKET_BYTES + 1 for packet in cut)
    *early, last = (assembler.feed(packet) for packet in cut)
    assert early == [None] * (len(cut) - 1)
    assert last is not None
    return Frame(last.head, tuple(map(bytes, last.buffers)))


@pytest.mark.parametrize(
    "payload",
    [
        edge + step
        for edge in (PREFIX, PACKET_BYTES, 2 * PACKET_BYTES)
        for step in (-2, -1, 0, 1, 2)
        if edge + step >= 8
    ],
)
def test_frame_of_any_size_round_trips_at_packet_borders(payload: int) -> None:
    frame = Frame(b"h" * (payload - PREFIX))
    assert through(frame) == frame
    assert len(list(packets(frame))) == max(1, -(-payload // PACKET_BYTES))


@pytest.mark.parametrize("size", [0, 1, PACKET_BYTES - 33, PACKET_BYTES - 32, PACKET_BYTES - 31, PACKET_BYTES, 300_000])
def test_buffers_round_trip_beside_empty_ones(size: int) -> None:
    frame = Frame(b"head", (b"", b"x" * size, b""))
    assert through(frame) == frame


def test_no_head_and_no_buffers_round_trip() -> None:
    assert through(Frame(b"")) == Frame(b"")
    assert through(Frame(b"", (b"",) * 20_000)) == Frame(b"", (b"",) * 20_000)


def test_buffers_of_other_item_sizes_are_counted_in_bytes() -> None:
    numbers = memoryview(b"12345678" * 10_000).cast("d")
    assert through(Frame(b"head", (numbers,))) == Frame(b"head", (bytes(numbers),))


def test_two_frames_follow_one_another_through_one_assembler() -> None:
    assembler = Assembler()
    big, small = Frame(b"big", (b"x" * 200_000,)), Frame(b"small")
    got = [assembler.feed(packet) for frame in (big, small, big) for packet in packets(frame)]
    assert [frame.head for frame in got if frame] == [b"big", b"small", b"big"]


@given(
    head=st.binary(max_size=300),
    buffers=st.lists(st.binary(max_size=300) | st.integers(0, 70_000).map(bytes), max_size=5),
)
def test_every_frame_round_trips(head: bytes, buffers: list[bytes]) -> None:
    assert through(Frame(head, tuple(buffers))) == Frame(head, tuple(buffers))


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ([b""], "malformed packet"),
        ([b"\2"], "malformed packet"),
        ([b"\xff" + prefixed(b"{}")], "malformed packet"),
        ([MORE], "malformed packet"),
        ([MORE + b"short"], "malformed packet"),
        ([MORE + b"x" * (PACKET_BYTES + 1)], "malformed packet"),
        ([LAST + prefixed(b"x" * (PACKET_BYTES - PREFIX + 1))], "malformed packet"),
        ([MORE + b"x" * PACKET_BYTES, LAST + b"x" * (PACKET_BYTES + 1)], "malformed packet"),
        ([LAST], "frame shorter than its prefix"),
        ([LAST + b"x" * 7], "frame shorter than its prefix"),
        ([LAST + struct.pack("<II", 1, 0)], "frame shorter than its prefix says"),
        ([LAST + struct.pack("<II", MAX_BUFFERS + 1, 0)], "frame shorter than its prefix says"),
        ([LAST + prefixed(b"{}")[:-1]], "frame length does not match its prefix"),
        ([LAST + prefixed(b"{}") + b"x"], "frame length does not match its prefix"),
        ([LAST + struct.pack("<II", 0, 2**32 - 1)], "frame length does not match its prefix"),
        ([LAST + struct.pack("<IIQ", 1, 0, 2**64 - 1)], "frame length does not match its prefix"),
        ([LAST + struct.pack("<IIQQ", 2, 0, 2**64 - 1, 1)], "frame length does not match its prefix"),
    ],
)
def test_malformed_packets_are_refused(sent: list[bytes], message: str) -> None:
    assembler = Assembler()
    *before, last = sent
    assert [assembler.feed(packet) for packet in before] == [None] * len(before)
    with pytest.raises(ProtocolError) as caught:
        assembler.feed(last)
    assert str(caught.value) == message


def test_too_many_buffers_are_refused_though_they_are_there() -> None:
    cut = list(packets(Frame(b"", (b"",) * (MAX_BUFFERS + 1))))
    assembler = Assembler()
    for packet in cut[:-1]:
        assembler.feed(packet)
    with pytest.raises(ProtocolError, match="frame shorter than its prefix says"):
        assembler.feed(cut[-1])


def test_frame_that_never_ends_is_refused_at_the_limit() -> None:
    assembler = Assembler(max_bytes=3 * PACKET_BYTES)
    for _ in range(3):
        assert assembler.feed(MORE + bytes(PACKET_BYTES)) is None
    with pytest.raises(ProtocolError, match=f"frame larger than {3 * PACKET_BYTES} bytes"):
        assembler.feed(MORE + bytes(PACKET_BYTES))


def test_limit_holds_for_a_frame_of_one_packet_too() -> None:
    with pytest.raises(ProtocolError, match="frame larger than 10 bytes"):
        Assembler(max_bytes=10).feed(LAST + prefixed(b"x" * 3))
