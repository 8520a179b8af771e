"""Pieces of at most 1 MB that are put away, and fetched, by address; streams of them for picklers and unpicklers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from json import dumps, loads
from typing import Any

from cellblock.worker.saving.facts import address_of
from cellblock.worker.saving.patches import targets_of

CHUNK = 2**20
_MOST_TAKEN = CHUNK // 2
SIMPLE = b"\n"
"""The first line of a stream that is a standard pickle of one name's value; otherwise it lists spaces."""
LONG = 2**18
"""From this length on, text and bytes have pieces of their own."""
_HEAD = 64
"""Bytes before the characters of a text, at most."""
Piece = bytes | memoryview
Put = Callable[[Piece], str]
Get = Callable[[str], bytes | bytearray | memoryview]
Fill = Callable[[Sequence[str], memoryview], int]
"""Puts pieces into memory, one after the other, and answers with how many bytes that was."""


class Pieces:
    """Puts memory away, and tells in an index where that of the session's objects lay.

    It is not read where the last snapshot put it away and nothing has written there since, as `unchanged(start, end)`
    tells. What is made for the pickling has no entry in the index: it lies where the session's own memory was never
    written, and would look unchanged for ever.
    """

    def __init__(self, put: Put, index: bytes, unchanged: Callable[[int, int], bool]) -> None:
        known = loads(index) if index else {"buffers": [], "targets": {}}
        self._known: dict[tuple[int, int, int], list[str]] = {
            (address, length, owner): chunks for address, length, owner, chunks in known["buffers"]
        }
        self._unchanged, self._put = unchanged, put
        self._targets: dict[str, list[list[str]]] = known["targets"]
        self._taken: dict[tuple[int, int, int], list[str]] = {}
        self.noted: dict[str, Piece] | None = None
        """Pieces by their addresses, where somebody wants to have them."""

    def put(self, piece: Piece) -> str:
        """Put one away; its address."""
        return self._note(self._put(piece), piece)

    def put_all(self, data: Any) -> list[str]:
        """Put the pieces of one object's bytes away, without a copy of them; their addresses."""
        view = memoryview(data).cast("B")
        return [self.put(view[start : start + CHUNK]) for start in range(0, len(view), CHUNK)]

    def put_held(self, data: Any, owner: int, *, moves: bool = False) -> list[str]:
        """The same of the memory of an object that the session holds: those that may be others than they were.

        `owner` is the `id` of whose memory that is: the kernel may move pages (mremap), as they are, to where another's
        were. What `moves` is a text: as it grows it may be moved whole, and its head tells, which is written then.
        """
        view = memoryview(data).cast("B")
        start, length = address_of(view), view.nbytes
        known = self._known.get((start, length, owner))
        if moves and not self._unchanged(owner, owner + _HEAD):
            known = None
        chunks = []
        for number, offset in enumerate(range(0, length, CHUNK)):
            piece = view[offset : offset + CHUNK]
            if known is not None and self._unchanged(start + offset, start + offset + piece.nbytes):
                chunks.append(self._note(known[number], piece))
            else:
                chunks.append(self.put(piece))
        self._taken[start, length, owner] = chunks
        return chunks

    def _note(self, address: str, piece: Piece) -> str:
        if self.noted is not None:
            self.noted[address] = piece
        return address

    def targets(self, blocks: Iterable[dict[str, str]]) -> list[list[str]]:
        """Targets that the cells' sources set in other objects; only blocks that the last snapshot did not have are
        parsed."""
        known, self._targets = self._targets, {}
        for block in blocks:
            key = f"{len(block)}-{sha256(repr(block).encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
            if key not in self._targets:
                self._targets[key] = known[key] if key in known else targets_of(block.values())
        return [chain for chains in self._targets.values() for chain in chains]

    def index(self) -> str:
        """Index for the next snapshot."""
        rows = [[*where, chunks] for where, chunks in self._taken.items()]
        return dumps({"buffers": rows, "targets": self._targets}, separators=(",", ":"))


class Sink:
    """Takes what a pickler writes, and puts it away in pieces.

    A long text or run of bytes begins a piece of its own: a change before it leaves its pieces what they were. The
    pickler hands over the very object that the session holds: `owner_of` gives its `id`, None for what was made for the
    pickling. Until it ends a stream of at most 512 kB, without what is long, is `taken`, and nothing of it is put away.
    """

    __slots__ = ("_owner_of", "_pieces", "_waiting", "chunks", "held", "taken")

    def __init__(self, pieces: Pieces, owner_of: Callable[[Any], int | None]) -> None:
        self._pieces, self._owner_of = pieces, owner_of
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

    def finish(self) -> list[str]:
        """The addresses of all pieces."""
        if self.taken is not None:
            self.replace(self.taken)
        self._send()
        return self.chunks

    def _keep(self, piece: Any) -> None:
        size = len(piece)
        if size >= LONG:
            self._send()
            owner, is_view = self._owner_of(piece), type(piece) is memoryview
            self.chunks += (
                self._pieces.put_all(piece) if owner is None else self._pieces.put_held(piece, owner, moves=is_view)
            )
            return
        if self.held + size > CHUNK:
            self._send()
        self._waiting.append(bytes(piece))
        self.held += size

    def _send(self) -> None:
        if self._waiting:
            self.chunks.append(self._pieces.put(b"".join(self._waiting)))
            self._waiting, self.held = [], 0


class Nowhere:
    """Takes what a pickler writes, and keeps nothing: to find out whether a value can be saved."""

    __slots__ = ("_go_on",)

    def __init__(self, go_on: Callable[[], None]) -> None:
        self._go_on = go_on

    def write(self, piece: Any) -> int:
        self._go_on()
        return len(piece)


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

    def put_first(self, data: bytes) -> None:
        """Have these bytes read next."""
        self._piece, self._at = memoryview(data + self._piece[self._at :]), 0

    def _next(self) -> bool:
        address = next(self._chunks, None)
        if address is None:
            return False
        self._piece, self._at = memoryview(self._get(address)), 0
        return True
