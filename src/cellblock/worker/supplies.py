"""The bytes that a restore needs, asked of the host as they are needed: pieces of streams with those that come next,
large buffers straight into the memory of the object that they belong to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import get_ident, main_thread
from time import monotonic
from typing import Any

from cellblock.snapshots import CHUNK_BYTES
from cellblock.wire.frames import Buffer
from cellblock.wire.messages import Loading, Supplied, Wanted
from cellblock.worker.beside import places_of, reserve
from cellblock.worker.channel import Channel
from cellblock.worker.interrupts import whole

_AT_ONCE = 16
_PAUSE_SECONDS = 1.0


class Supplies:
    """`order` are the addresses of streams as they will be needed, some of them more than once."""

    def __init__(
        self, channel: Channel, speak: Callable[[Wanted | Loading], None], order: Iterable[str], *, beside: bool
    ) -> None:
        """`beside`: the host writes to this process's memory."""
        self._channel, self._speak, self._beside = channel, speak, beside
        self._room = reserve([_AT_ONCE * CHUNK_BYTES])[0] if beside else memoryview(b"")
        self._order = list(order)
        self._left = Counter(self._order)
        self._held: dict[str, Buffer] = {}
        self._at = self._calls = 0
        self._group = ""
        self._asked = monotonic()

    def get(self, address: str) -> Buffer:
        """The bytes of an address."""
        self._go_on()
        if address not in self._held:
            self._fetch(address)
        self._left[address] -= 1
        return self._held[address] if self._left[address] > 0 else self._held.pop(address)

    def fill(self, addresses: Sequence[str], room: memoryview) -> int:
        """Put the pieces of one buffer into its memory, one after the other; how many bytes that was."""
        done = 0
        for first in range(0, len(addresses), _AT_ONCE):
            wanted = tuple(addresses[first : first + _AT_ONCE])
            supplied = self._ask(wanted, room[done : done + len(wanted) * CHUNK_BYTES])
            for piece in supplied.buffers:
                room[done : done + len(piece)] = piece
                done += len(piece)
            done += sum(supplied.lengths)
        return done

    def announce(self, group: str) -> None:
        """Say which group is loaded from here on, "" where no code of the cells may run. Nobody answers."""
        if group != self._group:
            self._group = group
            whole(self._speak, Loading(group=group))

    def find_spec(self, *_: object) -> None:
        """As a finder of modules: what imports much gets on. Finds nothing."""
        if get_ident() == main_thread().ident:
            self._go_on()

    def _go_on(self) -> None:
        """Have the host hear of this process once a second."""
        if monotonic() - self._asked > _PAUSE_SECONDS:
            self._ask((), self._room[:0])

    def _fetch(self, address: str) -> None:
        wanted = [address]
        while self._at < len(self._order) and len(wanted) < _AT_ONCE:
            following = self._order[self._at]
            self._at += 1
            if following not in wanted and following not in self._held and self._left[following] > 0:
                wanted.append(following)
        self._held = {one: bytes(data) for one, data in self._held.items()}  # the room is used again
        supplied = self._ask(tuple(wanted), self._room)
        self._held.update(zip(wanted, supplied.buffers or self._pieces(supplied.lengths), strict=True))

    def _pieces(self, lengths: Iterable[int]) -> Iterator[memoryview]:
        at = 0
        for length in lengths:
            yield self._room[at : at + length]
            at += length

    def _ask(self, wanted: tuple[str, ...], room: memoryview) -> Supplied:
        """The host's answer for these addresses: in the room, or in its answer.

        An interrupt waits for that: the host may be writing to the room.
        """
        self._calls += 1
        self._asked = monotonic()
        places = places_of([room]) if self._beside and wanted else ()
        found: list[Supplied] = []
        whole(self._exchange, Wanted(call=self._calls, addresses=wanted, beside=places), found)
        return found[0]

    def _exchange(self, wanted: Wanted, found: list[Supplied]) -> None:
        self._speak(wanted)
        while not found:
            received = self._channel.receive()
            if received is None:
                raise SystemExit
            if isinstance(received[1], Supplied) and received[1].call == wanted.call:
                found.append(received[1])


def needed(record: Mapping[str, Any]) -> Iterator[str]:
    """The addresses of a record's streams, in its order."""
    for group in record["groups"]:
        yield from group["stream"]
