"""The bytes that a restore needs, asked of the host as they are needed, with those that come next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from select import POLLIN, poll
from typing import Any

from cellblock.snapshots import CHUNK_BYTES
from cellblock.wire.frames import Buffer
from cellblock.wire.messages import Supplied, Wanted
from cellblock.worker.beside import places_of, reserve
from cellblock.worker.channel import Channel
from cellblock.worker.interrupts import whole

_AT_ONCE = 16
_LOOK_MS = 100


class Supplies:
    """`order` are the addresses as they will be needed, some of them more than once."""

    def __init__(
        self, channel: Channel, speak: Callable[[Wanted], None], order: Iterable[str], *, beside: bool
    ) -> None:
        """`beside`: the host writes to this process's memory."""
        self._channel, self._speak = channel, speak
        self._room = reserve([_AT_ONCE * CHUNK_BYTES])[0] if beside else memoryview(b"")
        self._order = list(order)
        self._left = Counter(self._order)
        self._held: dict[str, Buffer] = {}
        self._at = self._calls = 0

    def get(self, address: str) -> Buffer:
        """The bytes of an address."""
        if address not in self._held:
            self._fetch(address)
        self._left[address] -= 1
        return self._held[address] if self._left[address] > 0 else self._held.pop(address)

    def _fetch(self, address: str) -> None:
        wanted = [address]
        while self._at < len(self._order) and len(wanted) < _AT_ONCE:
            following = self._order[self._at]
            self._at += 1
            if following not in wanted and following not in self._held and self._left[following] > 0:
                wanted.append(following)
        self._calls += 1
        self._held = {one: bytes(data) for one, data in self._held.items()}  # the room is used again
        places = places_of([self._room]) if self._room else ()
        self._speak(Wanted(call=self._calls, addresses=tuple(wanted), beside=places))
        supplied = self._answer()
        self._held.update(zip(wanted, supplied.buffers or self._pieces(supplied.lengths), strict=True))

    def _pieces(self, lengths: Iterable[int]) -> Iterator[memoryview]:
        at = 0
        for length in lengths:
            yield self._room[at : at + length]
            at += length

    def _answer(self) -> Supplied:
        found: list[Supplied] = []
        wait = poll()
        wait.register(self._channel.connection, POLLIN)
        while not found:
            if wait.poll(_LOOK_MS):  # an interrupt may come here: nothing is half read
                whole(self._read, found)
        return found[0]

    def _read(self, found: list[Supplied]) -> None:
        received = self._channel.receive()
        if received is None:
            raise SystemExit
        if isinstance(received[1], Supplied) and received[1].call == self._calls:
            found.append(received[1])


def needed(record: Mapping[str, Any]) -> Iterator[str]:
    """The addresses that a record refers to, in its order."""
    for group in record["groups"]:
        yield from group["stream"]
        for _, chunks in group["buffers"]:
            yield from chunks
