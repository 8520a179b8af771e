"""Reading ahead of a restore: each piece once, in order where it is asked for so, and right in any other."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from concurrent.futures import wait

import anyio
import pytest

from cellblock.session.ahead import Ahead
from cellblock.snapshots import CHUNK_BYTES, Buffer, File, Group, Snapshot

pytestmark = pytest.mark.anyio

MB = CHUNK_BYTES


class Shelf:
    """Answers an address with its own letters, and tells which were read."""

    def __init__(self) -> None:
        self.read: list[str] = []
        self.lock = threading.Lock()
        self.failing = ""

    def get(self, addresses: Sequence[str]) -> list[bytes]:
        with self.lock:
            self.read += addresses
        if self.failing in addresses:
            raise OSError(f"{self.failing} is damaged")
        return [one.encode() for one in addresses]


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def snapshot(groups: int, pieces: int, *, files: int = 0) -> Snapshot:
    """Groups of a stream each, and a buffer of so many pieces."""
    return Snapshot(
        files=tuple(
            File(path=f"tmp/{n}", kind="file", mode=0o600, modified_ns=0, size=MB, chunks=(f"file {n}",))
            for n in range(files)
        ),
        groups=tuple(
            Group(
                key=f"g{n}",
                stream=(f"stream {n}",),
                buffers=(Buffer(pieces * MB, tuple(f"{n}.{piece}" for piece in range(pieces))),),
            )
            for n in range(groups)
        ),
    )


def wanted(saved: Snapshot) -> list[list[str]]:
    """What a restore asks for: files, sixteen streams at a time, each buffer before the next group."""
    asked = [list(file.chunks) for file in saved.files]
    for number, group in enumerate(saved.groups):
        if number % 16 == 0:
            asked.append([one.stream[0] for one in saved.groups[number : number + 16]])
        asked.append(list(group.buffers[0].chunks))
    return asked


async def test_pieces_asked_for_in_order_are_read_once_and_before(shelf: Shelf) -> None:
    saved = snapshot(40, 5, files=30)
    ahead = Ahead(shelf.get, saved)
    ahead.begin()
    try:
        with anyio.fail_after(10):
            while len(shelf.read) < 32 + 32:  # before anything was asked for
                await anyio.sleep(0.001)
        for addresses in wanted(saved):
            assert await ahead.fetch(addresses) == [one.encode() for one in addresses]
    finally:
        ahead.close(wait=True)
    assert sorted(shelf.read) == sorted(saved.addresses())


async def test_no_more_is_held_than_was_said(shelf: Shelf) -> None:
    ahead = Ahead(shelf.get, snapshot(40, 5, files=100))
    ahead.begin()
    wait([batch for lane in ahead._lanes for batch in lane._reading.values()])  # all that was begun is done
    ahead.close(wait=True)
    assert len(shelf.read) == 64


@pytest.mark.parametrize("seed", range(20))
async def test_any_order_gives_the_right_bytes_and_reads_each_piece_once_where_it_is_not_given_up(
    shelf: Shelf, seed: int
) -> None:
    draw = random.Random(seed)
    saved = snapshot(draw.randint(1, 60), draw.randint(1, 8), files=draw.randint(0, 50))
    asked = wanted(saved)
    draw.shuffle(asked)
    asked = [[*one, *draw.choice(asked)] for one in asked]  # some of them more than once
    ahead = Ahead(shelf.get, saved)
    ahead.begin()
    try:
        for addresses in asked:
            assert await ahead.fetch(addresses) == [one.encode() for one in addresses]
    finally:
        ahead.close(wait=True)


async def test_what_nobody_asks_for_does_not_keep_the_rest_from_being_read_ahead(shelf: Shelf) -> None:
    saved = snapshot(100, 4)
    ahead = Ahead(shelf.get, saved)
    ahead.begin()
    try:
        for group in saved.groups[50:]:  # those before could not be loaded
            await ahead.fetch(group.buffers[0].chunks)
        assert sum(one.startswith("99.") for one in shelf.read) == 4
        direct = [one for one in shelf.read if one.endswith(".0")]
        assert len(direct) == len(set(direct))
    finally:
        ahead.close(wait=True)


async def test_failure_is_raised_to_who_asks(shelf: Shelf) -> None:
    shelf.failing = "3.1"
    ahead = Ahead(shelf.get, snapshot(10, 2))
    ahead.begin()
    try:
        assert await ahead.fetch(["0.0", "0.1"]) == [b"0.0", b"0.1"]
        with pytest.raises(OSError, match="is damaged"):
            await ahead.fetch(["3.0", "3.1"])
    finally:
        ahead.close(wait=True)


async def test_addresses_that_no_snapshot_told_of_are_read_when_they_are_asked_for(shelf: Shelf) -> None:
    ahead = Ahead(shelf.get, Snapshot())
    ahead.begin()
    assert await ahead.fetch(["x", "y", "x"]) == [b"x", b"y", b"x"]
    assert shelf.read == ["x", "y"]
    ahead.close()
