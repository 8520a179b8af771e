"""Passes what comes on the line to the descriptors it is for, and what comes on those to the line.

One loop, which never waits for a single one of them: on the host it runs in a thread, in the container it is the relay.

What was in a worker's pipes before a packet was sent stays before it: the packet is not taken until that text was, and
not given until it was given. So a host that has read a reply finds in its pipes all that was written before.
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
"""So often a stream of a worker that has ended is read; more comes from processes that live on."""


class End:
    """One stream of a worker, by this side's descriptor, which does not block."""

    def __init__(self, kind: int, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self.kind = kind
        self.descriptor = descriptor
        self.pending: deque[tuple[int, bytes]] = deque()
        """Bytes to be given, with the number of the frame they came in."""
        self.owed = 0
        """Bytes of it to be taken before the next packet."""
        self.takes = True
        """True if there may be more to take."""
        self.gives = True
        """True if anybody is left to give to."""

    def take(self, most: int) -> bytes:
        """Bytes that are there, up to so many; BlockingIOError for nothing, EOFError where nothing will be."""
        raise NotImplementedError

    def give(self, data: bytes) -> int:
        """Pass something on; how much of it. OSError where nobody is left."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the descriptor."""
        os.close(self.descriptor)


class Pipe(End):
    """An end of a pipe; `takes` if it is the one to read from."""

    def __init__(self, kind: int, descriptor: int, *, takes: bool) -> None:
        super().__init__(kind, descriptor)
        self.takes, self.gives = takes, not takes

    @property
    def waiting(self) -> int:
        """Number of bytes to take."""
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
    """Of one session: the line, and the ends of its workers."""

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
        """Wake for this one, too, which is told and not read."""
        self._want(descriptor, select.POLLIN)

    def forget(self, descriptor: int) -> None:
        """Wake for it no more."""
        self._want(descriptor, 0)

    def join(self, worker: int, ends: Sequence[End]) -> None:
        """There is a worker of this number, higher than all before, with these streams."""
        self._exchange.open(worker)
        self._pipes[worker] = [end for end in ends if isinstance(end, Pipe)]
        for end in ends:
            self._ends[end.descriptor] = worker, end

    def part(self, worker: int) -> None:
        """A worker is gone: let go of its ends."""
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
        """Send what the line takes now. Nothing is kept for one that is gone, which its other direction tells."""
        out = self._exchange.out
        try:
            while out:
                del out[: os.write(self._outlet, out)]
        except BlockingIOError:
            return
        except OSError:
            out.clear()

    def pass_on(self, seconds: float | None) -> tuple[list[bytes], set[int]]:
        """Wait for something, for so long at most, and pass it on: the messages that came, and who else is ready.

        EOFError at the end of the line, `Broken` where what comes on it is not what may.
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
        """Pass on what a worker that has ended left in its streams, as far as there is room; whether that is all."""
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
        """Let go of every worker's ends."""
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
        """True if what is next is a packet, and text that came before it has still to be given."""
        if end.kind != PACKET:
            return False
        number, _ = end.pending[0]
        return any(pipe.pending and pipe.pending[0][0] < number for pipe in self._pipes[worker])

    def _take(self, worker: int, end: End) -> bool:
        """True if something was taken."""
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
        """Take the text that is there, which is before any packet that is; whether some is left for want of room."""
        pipes = self._pipes[worker]
        if not any(pipe.owed for pipe in pipes):
            for pipe in pipes:
                pipe.owed = pipe.waiting
        for pipe in pipes:
            while pipe.owed and self._take(worker, pipe):
                continue
        return any(pipe.owed for pipe in pipes)

    def _settle(self) -> None:
        """Wait for what can be done: reading where there is room, writing where something waits."""
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
