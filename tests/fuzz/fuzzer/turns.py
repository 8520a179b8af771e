"""A request under way: the host's end of a worker, over a real socket and real pipes, as a worker writes to them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress

import anyio._backends._asyncio  # noqa: F401 - what a turn imports when it first waits

from cellblock.executors.process import turn as under_way
from cellblock.executors.process.link import Link
from cellblock.executors.process.turn import ProcessTurn
from cellblock.executors.protocol import Curbed, Died, TurnEvent, WorkerGone, Written
from cellblock.wire import messages as m
from cellblock.wire.text import mark
from fuzzer import seeds
from fuzzer.cases import Case
from fuzzer.target import Target

_MOST_TEXT = 200
_loop = asyncio.new_event_loop()
under_way._null()


class Dry(Exception):
    """Nothing more is there to be read."""


class _Heard(Link):
    def __init__(self) -> None:
        super().__init__()
        self.nonce = seeds.NONCE
        connection, *pipes = self.ends
        connection.setblocking(False)
        for pipe in pipes:
            os.set_blocking(pipe, False)
        for packet in seeds.spoken(seeds.HELLO):
            connection.send(packet)
        with suppress(StopIteration):
            self.introduced(m.Hello).send(None)

    async def readable(self) -> None:
        raise Dry


class _Unknowing:
    async def how_it_ended(self) -> Died:
        return Died()

    def curbed(self) -> str | None:
        return None

    def exceeded(self) -> str | None:
        return None

    def finished(self, *, tentative: bool) -> None:
        return


def _turns(case: Case) -> list[list[TurnEvent]]:
    """The events of each turn."""
    return _loop.run_until_complete(_follow(case))


async def _follow(case: Case) -> list[list[TurnEvent]]:
    link, told = _Heard(), list[list[TurnEvent]]()
    turn: ProcessTurn | None = None
    try:
        for step in (*case, b"r"):
            if step[:1] != b"r":
                _write(link, step)
                if turn is not None or step[:1] != b"n":
                    continue
                turn = ProcessTurn(link, _MOST_TEXT, _Unknowing())
                turn.begin(m.Run(source="1", filename="<cell 1>", max_text=100), None, None)
                told.append([])
                if not turn.sent:  # the worker has said too much already
                    await turn.send_rest(1)
            if turn is not None and await _drain(turn, told[-1]):
                if not isinstance(told[-1][-1], m.Finished):  # the worker's end
                    break
                turn = None
    except WorkerGone as gone:
        told.append([gone.death])
    finally:
        if turn is not None:
            turn.close()
        link.close_ends()
        link.close()
    return told


def _write(link: Link, step: bytes) -> None:
    connection, stdout, stderr = link.ends
    with suppress(OSError):  # full, or larger than what can be sent
        if step[:1] == b"w":
            connection.send(step[1:])
        elif step[:1] in (b"o", b"e"):
            os.write(stdout if step[:1] == b"o" else stderr, step[1:])


async def _drain(turn: ProcessTurn, told: list[TurnEvent]) -> bool:
    """Take the events that are there, and answer calls; whether the turn has ended."""
    while True:
        try:
            event = await turn.next()
        except Dry:
            return False
        told.append(event)
        if isinstance(event, m.ToolCalled):
            turn.reply(m.ToolReply(call=event.call, error=("NameError", "no")))
        if isinstance(event, (m.Finished, Died)):
            return True


def _check_turns(case: Case, told: list[list[TurnEvent]]) -> None:
    for events in told:
        assert all(
            isinstance(event, (Written, Curbed, m.Display, m.ToolCalled, m.Reserved, m.Finished, Died))
            for event in events
        )
        assert not any(isinstance(event, (m.Finished, Died)) for event in events[:-1]), "an event after the end"
        text = [event for event in events if isinstance(event, Written)]
        assert sum(len(event.text.encode()) for event in text) <= 3 * (_MOST_TEXT * 3 // 2 + 1), "too much text"
        if events and isinstance(events[-1], Died):
            assert events[-1].reason.startswith("broke the protocol: "), "a death that did not take place"


def _seeds() -> Iterator[Case]:
    for case in seeds.conversations():
        said = [b"n" if step[:1] == b"h" else step for step in case[1:]]
        yield (*said, b"r")
        yield (b"n", b"o" + mark(seeds.NONCE, b"M", 1 << 40) + b"held", *said, *said)
        yield (b"n", b"oout", *(b"o" + chunk for pipe in seeds.pipes() for chunk in pipe), b"eerr", *said, b"r", *said)


_PART_OF_IT = frozenset(
    {
        "socket.__new__",
        "socket.sendmsg",
        "fcntl.ioctl",
        "sys.set_asyncgen_hook_firstiter",
        "sys.set_asyncgen_hook_finalizer",
    }
)
"""Making the ends, sending the request, looking at what a pipe holds, and running the event loop."""

TARGETS = (Target("turns", _seeds, _turns, _check_turns, spare=8 * 2**20, each=1000, also=_PART_OF_IT),)
