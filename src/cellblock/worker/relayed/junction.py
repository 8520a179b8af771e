"""Passes frames between the line and the descriptors of workers, in both directions.

One loop, which never blocks on one of them: on the host it runs in a thread, in the container it is the relay.

Text that was in a worker's pipes before a packet was sent stays before it: the packet is read after that text, and
written after it. So a host that has read a reply finds in its pipes all that was written before.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import struct
import termios
from collections import deque
from collections.abc import Sequence

from cellblock.worker.relayed.line import MESSAGE, OF_EACH, PACKET, Exchange

_CHUNK = 256 * 1024
_LAST_TAKES = 8
"""Reads of a stream of a worker that has ended; what is left then is of processes that live on."""


class End:
    """A stream of a worker, by this side's descriptor, which does not block."""

    def __init__(self, kind: int, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self.kind = kind
        self.descriptor = descriptor
        self.pending: deque[tuple[int, bytes]] = deque()
        """Bytes to be written, with the number of the frame they came in."""
        self.owed = 0
        """Bytes to be read before the next packet."""
        self.takes = True
        """True if there may be more to read."""
        self.gives = True
        """True while the other side reads."""

    def take(self, most: int) -> bytes:
        """Read up to so many bytes; BlockingIOError where there are none, EOFError at the end."""
        raise NotImplementedError

    def give(self, data: bytes) -> int:
        """Write data; returns the number of bytes written. OSError where nobody reads."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the descriptor."""
        os.close(self.descriptor)


class Pipe(End):
    """An end of a pipe; `takes` is True for the one to read from."""

    def __init__(self, kind: int, descriptor: int, *, takes: bool) -> None:
        super().__init__(kind, descriptor)
        self.takes, self.gives = takes, not takes

    @property
    def waiting(self) -> int:
        """Number of bytes that can be read."""
        if not self.takes:
            return 0
        (count,) = struct.unpack("i", fcntl.ioctl(self.descriptor, termios.FIONREAD, b"\0\0\0\0"))
        return int(count)

    def take(self, most: int) -> bytes:
        data = os.read(self.descriptor, most)
        if not data:
            raise EOFError
        return data

    def give(self, data: bytes) -> int:
        return os.write(self.descriptor, data)


class Packets(End):
    """A socket that keeps packet borders."""

    def __init__(self, kind: int, connection: socket.socket) -> None:
        super().__init__(kind, connection.fileno())
        self._connection = connection

    def take(self, most: int) -> bytes:
        data = self._connection.recv(most)
        if not data:
            raise EOFError
        return data

    def give(self, data: bytes) -> int:
        self._connection.send(data)
        return len(data)

    def close(self) -> None:
        self._connection.close()


class Junction:
    """The line of a session, and the ends of its workers."""

    def __init__(self, inlet: int, outlet: int) -> None:
        """`inlet` is where frames come from, `outlet` where they go. Neither blocks from now on."""
        os.set_blocking(inlet, False)
        os.set_blocking(outlet, False)
        self._inlet, self._outlet = inlet, outlet
        self._exchange = Exchange()
        self._ends: dict[int, tuple[int, End]] = {}
        self._pipes: dict[int, list[Pipe]] = {}
        self._frames = 0
        self._poll = select.poll()
        self._masks: dict[int, int] = {}
        self._want(inlet, select.POLLIN)

    def watch(self, descriptor: int) -> None:
        """Have `pass_on` report when a descriptor is ready; it is not read."""
        self._want(descriptor, select.POLLIN)

    def forget(self, descriptor: int) -> None:
        """Stop watching a descriptor."""
        self._want(descriptor, 0)

    def join(self, worker: int, ends: Sequence[End]) -> None:
        """Add a worker with its streams. Its number is higher than all before."""
        self._exchange.open(worker)
        self._pipes[worker] = [end for end in ends if isinstance(end, Pipe)]
        for end in ends:
            self._ends[end.descriptor] = worker, end

    def part(self, worker: int) -> None:
        """Remove a worker, and close its ends."""
        self._exchange.close(worker)
        self._pipes.pop(worker, None)
        for descriptor, (of, end) in list(self._ends.items()):
            if of == worker:
                del self._ends[descriptor]
                self._want(descriptor, 0)
                end.close()

    def send(self, message: bytes) -> None:
        """Put a message on the line; it leaves with the next `pass_on`, or `flush`."""
        self._exchange.send(MESSAGE, 0, message)

    def flush(self) -> None:
        """Write what the line takes now; drop all where it is closed, which reading tells."""
        out = self._exchange.out
        try:
            while out:
                del out[: os.write(self._outlet, out)]
        except BlockingIOError:
            return
        except OSError:
            out.clear()

    def pass_on(self, seconds: float | None) -> tuple[list[bytes], set[int]]:
        """Wait for so long at most, and pass on what is ready; returns messages that came, and watched descriptors.

        EOFError at the end of the line, `Broken` for frames that are not allowed.
        """
        self._settle()
        found = self._poll.poll(None if seconds is None else seconds * 1e3)
        messages: list[bytes] = []
        others: set[int] = set()
        for descriptor, _ in found:
            if descriptor == self._inlet:
                self._read_line(messages)
            elif descriptor in self._ends:
                worker, end = self._ends[descriptor]
                self._give(worker, end)
                self._take(worker, end)
            elif descriptor != self._outlet:
                others.add(descriptor)
        self.flush()
        return messages, others

    def drain(self, worker: int) -> bool:
        """Pass on what an ended worker left in its streams, as far as there is room; True if that is all."""
        done = True
        for of, end in list(self._ends.values()):
            if of == worker:
                for _ in range(_LAST_TAKES):
                    if not self._take(worker, end):
                        break
                done = done and (not end.takes or self._exchange.room(end.kind, worker) > 0)
        return done

    def delivered(self, worker: int) -> bool:
        """True if all that came for a worker's streams has been passed on."""
        return not any(end.pending for of, end in self._ends.values() if of == worker)

    def close(self) -> None:
        """Close the ends of every worker."""
        for worker in {worker for worker, _ in self._ends.values()}:
            self.part(worker)

    def _read_line(self, messages: list[bytes]) -> None:
        try:
            data = os.read(self._inlet, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            raise EOFError
        ends = {(worker, end.kind): end for worker, end in self._ends.values()}
        for frame in self._exchange.feed(data):
            if frame.kind == MESSAGE:
                messages.append(frame.data)
            else:
                end = ends[frame.worker, frame.kind]
                self._frames += 1
                end.pending.append((self._frames, frame.data))
                self._give(frame.worker, end)

    def _give(self, worker: int, end: End) -> None:
        while end.pending and not self._held(worker, end):
            number, data = end.pending[0]
            try:
                count = end.give(data) if end.gives else len(data)
            except BlockingIOError:
                return
            except OSError:
                end.gives = False
                continue
            if count < len(data):
                end.pending[0] = number, data[count:]
                self._exchange.passed_on(end.kind, worker, count)
                return
            end.pending.popleft()
            self._exchange.passed_on(end.kind, worker, count + OF_EACH)

    def _held(self, worker: int, end: End) -> bool:
        """True if a packet is next, and text that came before it is still to be written."""
        if end.kind != PACKET:
            return False
        number, _ = end.pending[0]
        return any(pipe.pending and pipe.pending[0][0] < number for pipe in self._pipes[worker])

    def _take(self, worker: int, end: End) -> bool:
        """Read from an end and send it; True if there was something."""
        room = self._exchange.room(end.kind, worker)
        if not end.takes or not room or (end.kind == PACKET and self._owes(worker)):
            return False
        try:
            data = end.take(room)
        except BlockingIOError:
            end.owed = 0
            return False
        except (EOFError, OSError):
            end.takes, end.owed = False, 0
            return False
        end.owed = max(0, end.owed - len(data))
        self._exchange.send(end.kind, worker, data)
        return True

    def _owes(self, worker: int) -> bool:
        """Read the text that is before the next packet; True if some is left for want of room."""
        pipes = self._pipes[worker]
        if not any(pipe.owed for pipe in pipes):
            for pipe in pipes:
                pipe.owed = pipe.waiting
        for pipe in pipes:
            while pipe.owed and self._take(worker, pipe):
                continue
        return any(pipe.owed for pipe in pipes)

    def _settle(self) -> None:
        """Register for reading where there is room, and for writing where something is pending."""
        self._want(self._outlet, select.POLLOUT if self._exchange.out else 0)
        for descriptor, (worker, end) in self._ends.items():
            takes = end.takes and self._exchange.room(end.kind, worker)
            if end.kind == PACKET and takes:  # where text is owed there was no room for it
                takes = all(self._exchange.room(pipe.kind, worker) for pipe in self._pipes[worker] if pipe.owed)
            gives = end.pending and not self._held(worker, end)
            self._want(descriptor, (select.POLLIN if takes else 0) | (select.POLLOUT if gives else 0))

    def _want(self, descriptor: int, mask: int) -> None:
        if self._masks.get(descriptor, 0) == mask:
            return
        if mask:
            self._poll.register(descriptor, mask)
            self._masks[descriptor] = mask
        else:
            self._poll.unregister(descriptor)
            del self._masks[descriptor]
