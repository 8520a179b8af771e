"""Waits for what processes of a session say: how they end."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from cellblock import IsolationUnavailable
from cellblock.executors.process import waits
from cellblock.executors.process.waits import answered, readable

pytestmark = pytest.mark.anyio


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


async def test_wait_ends_when_something_can_be_read(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    theirs.send(b"x")
    await readable(ours.fileno())
    assert ours.recv(1) == b"x"


async def test_wait_ends_when_the_other_end_is_gone(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    theirs.close()
    await answered(ours, "first process", mechanism="shell")
    assert ours.recv(1) == b""


async def test_wait_in_vain_is_a_timeout(ends: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(TimeoutError):
        await readable(ends[0].fileno(), 0.01)


async def test_process_that_does_not_answer_is_named(
    ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readable, "__defaults__", (0.01,))
    monkeypatch.setattr(waits, "SECONDS", 0.01)
    with pytest.raises(IsolationUnavailable, match=r"a session's keeper did not answer within 0 s") as refused:
        await answered(ends[0], "keeper", mechanism="keeper")
    assert refused.value.mechanism == "keeper"
