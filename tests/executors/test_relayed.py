"""The line to a relay without a container: what the host does with any bytes that come, and that nothing overtakes."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import anyio
import pytest

from cellblock.errors import IsolationUnavailable, SessionClosed
from cellblock.executors.container.relayed.kernel import RelayedKeeper, RelayedLauncher, RelayedLink
from cellblock.executors.container.relayed.pump import notice_of
from cellblock.executors.process.enclosure import Enclosure
from cellblock.executors.protocol import Died, KernelSpec
from cellblock.limits import ExecutionLimits
from cellblock.worker import __main__ as main
from cellblock.worker.relayed.junction import Junction, Packets, Pipe
from cellblock.worker.relayed.line import (
    MESSAGE,
    MOST_PACKET,
    MOST_TEXT,
    OF_EACH,
    PACKET,
    ROOM,
    STDERR,
    STDOUT,
    Broken,
    Exchange,
    Frame,
)


def framed(kind: int, worker: int, data: bytes = b"", *, length: int | None = None) -> bytes:
    size = len(data) if length is None else length
    return bytes([kind]) + worker.to_bytes(4, "little") + size.to_bytes(4, "little") + data


def pair() -> tuple[Exchange, Exchange]:
    ours, theirs = Exchange(), Exchange()
    for one in (ours, theirs):
        one.open(1)
    return ours, theirs


def sent(exchange: Exchange) -> bytes:
    data = bytes(exchange.out)
    exchange.out.clear()
    return data


# --- frames ---


def test_frames_arrive_whole_however_the_bytes_are_cut() -> None:
    ours, theirs = pair()
    ours.send(MESSAGE, 0, b"{}")
    ours.send(PACKET, 1, b"")
    ours.send(STDOUT, 1, b"text" * 100)
    data = sent(ours)
    expected = [Frame(MESSAGE, 0, b"{}"), Frame(PACKET, 1, b""), Frame(STDOUT, 1, b"text" * 100)]
    assert [frame for byte in data for frame in theirs.feed(bytes([byte]))] == expected


@pytest.mark.parametrize(
    "data",
    [
        b"Python 3.13.5 (main)\n>>> ",
        framed(5, 1),
        framed(255, 0),
        framed(MESSAGE, 1, b"{}"),
        framed(PACKET, 0, b"x"),
        framed(PACKET, 2, b"x"),
        framed(STDOUT, 2**32 - 1, b"x"),
        framed(MESSAGE, 0, length=2**32 - 1),
        framed(PACKET, 1, length=MOST_PACKET + 1),
        framed(STDOUT, 1, length=MOST_TEXT + 1),
        framed(ROOM, 0, b"\1\0\0\0\1"),
        framed(ROOM, 1, b"\1\0\0\0"),
        framed(ROOM, 1, b"\1\1\0\0\0"),
        framed(ROOM, 1, b"\0\1\0\0\0"),
        framed(ROOM, 1, b"\1\xff\xff\xff\xff"),
    ],
)
def test_frame_that_no_relay_sends_ends_the_line(data: bytes) -> None:
    ours, _ = pair()
    with pytest.raises(Broken):
        list(ours.feed(data))


@pytest.mark.parametrize(("kind", "size"), [(PACKET, MOST_PACKET), (PACKET, 0), (STDOUT, MOST_TEXT), (STDERR, 1)])
def test_more_than_there_is_room_for_ends_the_line(kind: int, size: int) -> None:
    ours, _ = pair()
    flood = framed(kind, 1, bytes(size)) * (2**20 // (size + OF_EACH) + 1)
    with pytest.raises(Broken, match="room"):
        list(ours.feed(flood))


def test_what_a_worker_that_is_gone_still_sends_is_dropped() -> None:
    ours, _ = pair()
    ours.close(1)
    assert list(ours.feed(framed(STDOUT, 1, b"late") * 10_000 + framed(MESSAGE, 0, b"{}"))) == [
        Frame(MESSAGE, 0, b"{}")
    ]


def test_stream_that_nobody_reads_leaves_the_others_their_room() -> None:
    ours, theirs = pair()
    while room := theirs.room(STDOUT, 1):
        theirs.send(STDOUT, 1, bytes(room))
    assert theirs.room(PACKET, 1) == MOST_PACKET
    theirs.send(PACKET, 1, b"heard")
    frames = list(ours.feed(sent(theirs)))
    assert frames[-1] == Frame(PACKET, 1, b"heard")
    for frame in frames[:-1]:
        ours.passed_on(STDOUT, 1, len(frame.data) + OF_EACH)
    assert list(theirs.feed(sent(ours))) == []
    assert theirs.room(STDOUT, 1) == MOST_TEXT


# --- what a relay tells ---


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[" * 10_000,
        b"{" + b" " * 20_000 + b"}",
        b"[]",
        b"{}",
        b"null",
        b'{"ready": 1}',
        b'{"ready": true, "more": 1}',
        b'{"ended": 1}',
        b'{"ended": 1, "status": 100}',
        b'{"ended": 1, "status": 65536}',
        b'{"ended": 1, "status": -1}',
        b'{"ended": true, "status": 0}',
        b'{"ended": 1, "status": 0, "unread": 1}',
        b'{"ended": 1e400, "status": 0}',
        b'{"count": -1}',
        b'{"count": 99999999999999999999999}',
        b'{"outgrown": 5}',
        b'{"outgrown": "' + b"x" * 5000 + b'"}',
        b'{"curbed": "much", "worker": 1, "unruly": false}',
        b'{"failed": "preload", "reason": ["x"], "module": "m"}',
    ],
)
def test_message_that_no_relay_sends_is_refused(data: bytes) -> None:
    with pytest.raises(Broken):
        notice_of(data)


@pytest.mark.parametrize(
    "told",
    [
        {"ready": True},
        {"importing": "numpy"},
        {"ended": 3, "status": 9},
        {"ended": 3, "status": 3 << 8},
        {"ended": 3, "status": 72 << 8, "unread": True},
        {"count": 0},
        {"failed": "preload", "module": "m", "reason": "no"},
    ],
)
def test_message_of_a_relay_is_taken_as_it_is(told: dict[str, object]) -> None:
    assert notice_of(json.dumps(told).encode()) == told


# --- order ---


@dataclass
class Ends:
    """What a worker would hold, and what its host would, with two junctions between, passed on by hand."""

    inside: Junction
    outside: Junction
    worker: socket.socket
    stdout: int
    host: socket.socket
    read: int

    def pass_on(self) -> None:
        for _ in range(20):
            self.inside.pass_on(0)
            self.outside.pass_on(0)


@pytest.fixture
def ends() -> Iterator[Ends]:
    (up, up_end), (down, down_end) = os.pipe(), os.pipe()
    inside, outside = Junction(down, up_end), Junction(up, down_end)
    (near, worker), (host, far) = (socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2))
    (taken, stdout), (read, given) = os.pipe(), os.pipe()
    inside.join(1, [Packets(PACKET, near), Pipe(STDOUT, taken, takes=True)])
    outside.join(1, [Packets(PACKET, far), Pipe(STDOUT, given, takes=False)])
    host.setblocking(False)
    os.set_blocking(read, False)
    os.set_blocking(stdout, False)
    yield Ends(inside, outside, worker, stdout, host, read)
    inside.close()
    outside.close()
    for one in (worker, host):
        one.close()
    for descriptor in (up, up_end, down, down_end, stdout, read):
        os.close(descriptor)


def test_packet_comes_after_all_text_that_was_written_before_it(ends: Ends) -> None:
    written = 0
    with contextlib.suppress(BlockingIOError):
        while True:  # until nobody has room for more
            written += os.write(ends.stdout, b"x" * 50_000)
            ends.pass_on()
    ends.worker.send(b"after")
    ends.pass_on()
    with pytest.raises(BlockingIOError):
        ends.host.recv(10)
    got = 0
    while got < written - 64 * 1024:
        got += len(os.read(ends.read, 1000))
        ends.pass_on()
    while got < written:  # what is left is in the pipe
        with contextlib.suppress(BlockingIOError):
            assert ends.host.recv(10) == b"after"
        got += len(os.read(ends.read, 64 * 1024))
        ends.pass_on()
    assert got == written


def test_packet_is_not_kept_by_text_that_came_after_it(ends: Ends) -> None:
    ends.worker.send(b"first")
    ends.pass_on()
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(ends.stdout, b"x" * 50_000)
            ends.pass_on()
    assert ends.host.recv(10) == b"first"


def test_flood_of_text_does_not_keep_packets_from_the_worker(ends: Ends) -> None:
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(ends.stdout, b"x" * 50_000)
            ends.pass_on()
    ends.host.send(b"request")
    ends.pass_on()
    assert ends.worker.recv(10) == b"request"


# --- a container that is not one ---


@dataclass
class Impostor:
    """A program in a relay's place."""

    process: subprocess.Popen[bytes]
    said: str = "an impostor"

    def bounds(self) -> Enclosure:
        return Enclosure(ExecutionLimits())

    def remove(self) -> None:
        self.process.kill()

    def refused(self, said: str) -> IsolationUnavailable:
        return IsolationUnavailable(said, mechanism="container", hint="")


def starting(program: str) -> Callable[[KernelSpec, str], Impostor]:
    def start(spec: KernelSpec, home: str) -> Impostor:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return Impostor(subprocess.Popen([sys.executable, "-S", "-c", program], bufsize=0, **pipes))  # type: ignore[call-overload]

    return start


SAYS = """
import os, sys, time
def say(data):
    os.write(1, data)
def frame(kind, worker, data):
    say(bytes([kind]) + worker.to_bytes(4, 'little') + len(data).to_bytes(4, 'little') + data)
"""
READY = SAYS + "frame(0, 0, b'{\"ready\": true}')\n"


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("print('Usage: python')", "broke the protocol"),
        ("import sys; sys.exit('no such image')", "no such image"),
        (SAYS + "say(b'\\0' * 9 + b'\\xff' * 9); time.sleep(60)", "broke the protocol"),
        (SAYS + 'frame(0, 0, b\'{"ended": 7, "status": 0}\'); time.sleep(60)', "worker 7, which there is not"),
    ],
)
def test_what_is_no_relay_opens_nothing(program: str, told: str) -> None:
    with pytest.raises(IsolationUnavailable, match=told):
        RelayedKeeper.start(starting(program), KernelSpec())


def test_line_that_breaks_ends_the_session_with_the_reason() -> None:
    program = READY + "while b'attach' not in os.read(0, 1000): pass\nframe(1, 9, b'x'); time.sleep(60)"
    keeper = RelayedKeeper.start(starting(program), KernelSpec())
    link = attached(keeper)
    assert select.select([link.pidfd], [], [], 30)[0], "its end was not told"
    death = anyio.run(keeper.how_it_ended, 1)
    assert death.reason == "ended: its container broke the protocol: a frame of kind 1 for worker 9"
    link.close()
    with pytest.raises(SessionClosed, match="broke the protocol"):
        keeper.attach(2, (ended := RelayedLink()).ends, {"limits": {}}, ended.death)
    ended.close_ends()
    ended.close()
    keeper.close()


ENDS = """
left = b''
def wait_for(word):
    global left
    while word not in left:
        left += os.read(0, 1000)
    left = b''
wait_for(b'attach')
"""


def attached(keeper: RelayedKeeper) -> RelayedLink:
    link = RelayedLink()
    keeper.attach(1, link.ends, {"limits": {}}, link.death)
    link.close_ends()
    return link


def test_worker_whose_end_is_not_told_is_ended_with_its_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cellblock.executors.container.relayed.pump._ANSWER_SECONDS", 0.1)
    keeper = RelayedKeeper.start(starting(READY + ENDS + "time.sleep(60)"), KernelSpec())
    link = attached(keeper)
    assert not select.select([link.pidfd], [], [], 0.3)[0]  # nobody waits for anything
    keeper.tell("kill")
    assert select.select([link.pidfd], [], [], 30)[0], "its end was not told"
    assert "did not answer" in anyio.run(keeper.how_it_ended, 1).reason
    link.close()
    keeper.close()


def test_killing_what_has_ended_already_waits_for_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cellblock.executors.container.relayed.pump._ANSWER_SECONDS", 0.1)
    ended = "frame(0, 0, b'{\"ended\": 1, \"status\": 9}'); wait_for(b'kill'); time.sleep(0.3)\n"
    again = "frame(0, 0, b'{\"swept\": true}')\nwhile os.read(0, 1000): pass"
    keeper = RelayedKeeper.start(starting(READY + ENDS + ended + again), KernelSpec())
    link = attached(keeper)
    assert select.select([link.pidfd], [], [], 30)[0], "its end was not told"
    keeper.tell("kill")
    assert anyio.run(keeper.how_it_ended, 1) == Died(signal=9)
    assert select.select([keeper.channel], [], [], 30)[0]
    assert keeper.channel.recv(1000) == b'{"swept": true}'  # and not that it is closed
    link.close()
    keeper.close()


def test_relay_is_started_in_no_place_where_it_could_end_others() -> None:
    done = subprocess.run(
        [sys.executable, "-S", main.__file__, "relayed"], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stderr) == (1, "the relay has to be the first process of a container\n")


@pytest.mark.anyio
async def test_what_such_a_container_cannot_give_is_refused_by_name() -> None:
    from cellblock.errors import CellblockError, MountRefused
    from cellblock.network import destinations

    launcher = RelayedLauncher(starting("raise SystemExit"))
    with pytest.raises(IsolationUnavailable, match="no door") as refused:
        await launcher.open(KernelSpec(network=destinations(["example.org:443"])))
    assert "runc" in refused.value.hint
    with pytest.raises(MountRefused):
        await launcher.open(KernelSpec(mounts=(("data", "/usr"),)))
    with pytest.raises(CellblockError, match="not started beforehand"):
        launcher.keep_ready(KernelSpec(), 1)
