"""Streams for picklers and unpicklers: pieces that are put away, and fetched, by address."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from typing import Any

CHUNK = 2**20
_MOST_TAKEN = CHUNK // 2
SIMPLE = b"\n"
"""The first line of a stream that is a standard pickle of one name's value; otherwise it lists spaces."""
LONG = 2**18
"""From this length on, text and bytes have pieces of their own."""
Put = Callable[[memoryview | bytes], str]
Get = Callable[[str], bytes | bytearray | memoryview]
Fill = Callable[[Sequence[str], memoryview], int]
"""Puts pieces into memory, one after the other, and answers with how many bytes that was."""


class Sink:
    """Takes what a pickler writes, and puts it away in pieces of at most 1 MB.

    A long text or run of bytes begins a piece of its own: a change before it leaves its pieces what they were.
    `put_long` puts one away; the pickler hands over the very object that the session holds. Until it ends a stream of
    at most 512 kB, without what is long, is `taken`, and nothing of it is put away.
    """

    __slots__ = ("_put", "_put_long", "_waiting", "chunks", "held", "taken")

    def __init__(self, put: Put, put_long: Callable[[Any], list[str]]) -> None:
        self._put = put
        self._put_long = put_long
        self.taken: list[Any] | None = []
        self._waiting: list[bytes] = []
        self.held = 0
        self.chunks: list[str] = []

    def write(self, piece: Any) -> int:
        size = len(piece)
        if self.taken is None:
            self._keep(piece)
        else:
            self.taken.append(piece if size >= LONG else bytes(piece))
            self.held += size if size < LONG else 0
            if self.held > _MOST_TAKEN:
                self.replace(self.taken)
        return size

    def replace(self, pieces: list[Any]) -> None:
        """Have a stream that is all `taken` be another."""
        self.taken, self.held = None, 0
        for piece in pieces:
            self._keep(piece)

    def finish(self) -> tuple[str, ...]:
        """The addresses of all pieces."""
        if self.taken is not None:
            self.replace(self.taken)
        self._send()
        return tuple(self.chunks)

    def _keep(self, piece: Any) -> None:
        size = len(piece)
        if size >= LONG:
            self._send()
            self.chunks += self._put_long(piece)
            return
        if self.held + size > CHUNK:
            self._send()
        self._waiting.append(bytes(piece))
        self.held += size

    def _send(self) -> None:
        if self._waiting:
            self.chunks.append(self._put(b"".join(self._waiting)))
            self._waiting, self.held = [], 0


class Nowhere:
    """Takes what a pickler writes, and keeps nothing: to find out whether a value can be saved."""

    __slots__ = ("_go_on",)

    def __init__(self, go_on: Callable[[], None]) -> None:
        self._go_on = go_on

    def write(self, piece: Any) -> int:
        self._go_on()
        return len(piece)


def put_pieces(data: Any, put: Put) -> Iterator[str]:
    """Put the pieces of one object's bytes away, without a copy of them; their addresses."""
    view = memoryview(data).cast("B")
    for start in range(0, len(view), CHUNK):
        yield put(view[start : start + CHUNK])


def reading(chunks: Sequence[str], get: Get) -> Source | BytesIO:
    """Source for an unpickler: one piece as it is, several one after the other."""
    return BytesIO(get(chunks[0])) if len(chunks) == 1 else Source(chunks, get)


def gather(get: Get) -> Fill:
    """A function that fills memory with pieces that are got one by one."""
    return lambda chunks, room: Source(chunks, get).readinto(room)


class Source:
    """Stream for an unpickler: pieces one after the other, each fetched when its turn comes."""

    __slots__ = ("_at", "_chunks", "_get", "_piece")

    def __init__(self, chunks: Sequence[str], get: Get) -> None:
        self._chunks = iter(chunks)
        self._get = get
        self._piece = memoryview(b"")
        self._at = 0

    def readinto(self, room: Any) -> int:
        view = memoryview(room).cast("B")
        done = 0
        while done < len(view):
            if self._at == len(self._piece) and not self._next():
                break
            size = min(len(view) - done, len(self._piece) - self._at)
            view[done : done + size] = self._piece[self._at : self._at + size]
            done += size
            self._at += size
        return done

    def read(self, size: int) -> Any:
        """So many bytes, or those that are left: of several pieces a view of the one buffer that they are put into."""
        if self._at + size <= len(self._piece):
            piece = bytes(self._piece[self._at : self._at + size])
            self._at += size
            return piece
        room = memoryview(bytearray(size))
        return room[: self.readinto(room)]

    def readline(self) -> bytes:
        line = bytearray()
        while self._at < len(self._piece) or self._next():
            rest = bytes(self._piece[self._at :])
            end = rest.find(b"\n") + 1
            line += rest[:end] if end else rest
            self._at += end or len(rest)
            if end:
                break
        return bytes(line)

    def _next(self) -> bool:
        address = next(self._chunks, None)
        if address is None:
            return False
        self._piece, self._at = memoryview(self._get(address)), 0
        return True
