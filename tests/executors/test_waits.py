"""Steps that wait: what they are given, how they end."""

from __future__ import annotations

import os
from collections.abc import Iterator

import anyio
import pytest

from cellblock.executors.process import waits
from cellblock.executors.process.waits import Waits, awaited, soon

pytestmark = pytest.mark.anyio


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


async def test_step_may_end_after_a_call() -> None:
    def step() -> Waits[int]:
        return (yield lambda: 6) * 7

    assert await awaited(step()) == 42


async def test_step_is_raised_what_a_call_raises() -> None:
    def step() -> Waits[str]:
        try:
            yield lambda: 1 // 0
        except ZeroDivisionError:
            return "handled"
        return "not raised"

    assert await awaited(step()) == "handled"


async def test_step_goes_on_when_its_descriptor_can_be_read(pipe: tuple[int, int]) -> None:
    def step() -> Waits[bytes]:
        yield lambda: os.write(pipe[1], b"x")
        yield pipe[0]
        return os.read(pipe[0], 1)

    assert await awaited(step()) == b"x"


async def test_step_that_waits_in_vain_is_raised_a_timeout(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "SECONDS", 0.01)

    def step() -> Waits[str]:
        try:
            yield pipe[0]
        except TimeoutError:
            return "too long"
        return "readable"

    assert await awaited(step()) == "too long"


async def test_cancelled_step_is_closed(pipe: tuple[int, int]) -> None:
    told = []

    def step() -> Waits[None]:
        try:
            yield pipe[0]
        finally:
            told.append("closed")

    with anyio.move_on_after(0.01):
        await awaited(step())
    assert told == ["closed"]


async def test_what_is_for_soon_is_done_once_the_caller_waits() -> None:
    done: list[int] = []
    soon(lambda: done.append(1))
    assert done == []
    with anyio.fail_after(10):
        while not done:
            await anyio.sleep(0.001)
    assert done == [1]
