"""The pieces of a snapshot, read from a store before a restore asks for them, by two threads: half of it is hashing.

A restore reads streams and the buffers beside them, each in the order of the snapshot's groups. What it asks for in
another order is read then: the order decides how long it takes, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future

from cellblock.hosting import to_thread
from cellblock.hosting.threads import Pool
from cellblock.snapshots import CHUNK_BYTES, Snapshot
from cellblock.store.objects import by_size

_THREADS = 2
_BATCH_BYTES = 4 * CHUNK_BYTES
_SHORT_BYTES = CHUNK_BYTES // 16
"""Assumed size of the last piece of a stream, which nobody has told."""
_BATCHES_AHEAD = 8

Read = Callable[[Sequence[str]], list[bytes]]


class Ahead:
    """Holds up to 64 MB that nobody has asked for yet: 32 of streams and files, 32 of buffers."""

    def __init__(self, read: Read, snapshot: Snapshot) -> None:
        """`read` gives the bytes of some addresses, in order, and is called in threads, from `begin` on."""
        self._read = read
        self._threads = Pool(_THREADS, "cellblock-ahead")
        self._lanes = [_Lane(self._start, _streams(snapshot)), _Lane(self._start, _buffers(snapshot))]

    def begin(self) -> None:
        """Start reading."""
        for lane in self._lanes:
            lane.go_on()

    async def fetch(self, addresses: Sequence[str]) -> list[bytes]:
        """The bytes of some addresses, in order. Raises what `read` raises."""
        found: dict[str, bytes] = {}
        for address in dict.fromkeys(addresses):
            for lane in self._lanes:
                if (batch := lane.batch_of(address)) is not None:
                    pieces = batch.result() if batch.done() else await to_thread.run_sync(batch.result)
                    found[address] = pieces.pop(address)
                    lane.took(address, pieces)
                    break
        if missing := [address for address in dict.fromkeys(addresses) if address not in found]:
            found.update(zip(missing, await to_thread.run_sync(self._read, missing), strict=True))
        return [found[address] for address in addresses]

    def close(self, *, wait: bool = False) -> None:
        """Read nothing more; with `wait` until nothing is being read."""
        self._threads.close(wait=wait)

    def _start(self, batch: Sequence[str]) -> Future[dict[str, bytes]]:
        return self._threads.submit(lambda: dict(zip(batch, self._read(batch), strict=True)))


class _Lane:
    """Addresses in the order in which they are expected to be asked for."""

    def __init__(
        self, start: Callable[[Sequence[str]], Future[dict[str, bytes]]], expected: Iterable[tuple[str, int]]
    ) -> None:
        self._start = start
        self._batches = list(by_size(dict(expected).items(), _BATCH_BYTES))
        self._number = {address: number for number, batch in enumerate(self._batches) for address in batch}
        self._reading: dict[int, Future[dict[str, bytes]]] = {}
        self._next = 0

    def batch_of(self, address: str) -> Future[dict[str, bytes]] | None:
        """The read, under way or done, that has this address in it; None where the caller has to read it.

        It is not read twice. An address from further on has the oldest batch given up: it may never be asked for.
        """
        number = self._number.pop(address, None)
        if number is None:
            return None
        if number >= self._next:
            self._batches[number].remove(address)
            self._reading.pop(next(iter(self._reading)), None)
            self.go_on()
            return None
        batch = self._reading.get(number)
        if batch is not None:
            self._number[address] = number
        return batch

    def took(self, address: str, left: dict[str, bytes]) -> None:
        """An address was taken out of its batch, of which this is left."""
        number = self._number.pop(address)
        if not left:
            self._reading.pop(number, None)
            self.go_on()

    def go_on(self) -> None:
        """Have as much read as may wait."""
        while len(self._reading) < _BATCHES_AHEAD and self._next < len(self._batches):
            if batch := self._batches[self._next]:
                self._reading[self._next] = self._start(batch)
            self._next += 1


def _streams(snapshot: Snapshot) -> Iterator[tuple[str, int]]:
    """Addresses of files and streams, each with its length in bytes, or a guess of it."""
    for file in snapshot.files:
        for number, address in enumerate(file.chunks):
            yield address, min(CHUNK_BYTES, file.size - number * CHUNK_BYTES)
    for group in snapshot.groups:
        *whole, last = group.stream or ("",)
        yield from ((address, CHUNK_BYTES) for address in whole)
        if last:
            yield last, _SHORT_BYTES


def _buffers(snapshot: Snapshot) -> Iterator[tuple[str, int]]:
    for group in snapshot.groups:
        for buffer in group.buffers:
            for number, address in enumerate(buffer.chunks):
                yield address, min(CHUNK_BYTES, buffer.length - number * CHUNK_BYTES)
