"""Bodies of an endpoint's answers: read in small parts, of bounded size, with other tasks in between."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import AsyncIterator
from typing import Any

from anyio import move_on_after
from anyio.lowlevel import checkpoint

from cellblock.hosting import clock
from cellblock.models.assembling import TooLong, Unreadable
from cellblock.models.protocol import OnText
from cellblock.text import line, valid

_MOST_STREAM = 64 * 2**20
"""Bytes of an answer with all that is around its pieces."""
_MOST_PIECE = 8 * 2**20
"""Bytes of one piece of it, or of one that comes whole."""
_MOST_REFUSED = 2**18
"""Bytes of an error that are read."""
_PART = 2**13
_TOLD = 2**15
"""Characters that are told at once."""
_LINE = 64
"""Room that a line takes beside its bytes."""
_LONGEST_TURN = 0.005
_LEAVING = 0.1
"""Seconds that a connection is read on after a stream's end is told, so that it may be kept."""
_COMPRESSING = frozenset(("gzip", "x-gzip", "deflate", "compress", "x-compress", "br", "zstd"))
"""Encodings that make a body smaller. Others that endpoints name (`none`, `utf-8`) leave it as it is."""


class Encoded(Unreadable):
    """An answer is compressed, though none was asked to be: a few bytes could stand for more than is read."""

    hint = "have what is between send answers as they are: requests say Accept-Encoding: identity"


class Turn:
    """One turn of the event loop, of at most some milliseconds where `end_if_long` is called between short steps."""

    def __init__(self) -> None:
        self._began = clock.now()

    async def end_if_long(self) -> None:
        """Let other tasks and deadlines come first where the turn has been long."""
        if clock.now() - self._began >= _LONGEST_TURN:
            await checkpoint()
            self._began = clock.now()


async def give(text: str, on_text: OnText | None, turn: Turn) -> None:
    """Tell an answer's text as far as it came, a long one in pieces."""
    if on_text is None:
        return
    for start in range(0, len(text), _TOLD):
        await turn.end_if_long()
        on_text(valid(text[start : start + _TOLD]))


async def parts(response: Any) -> AsyncIterator[bytes]:
    """A body in parts of a few KB. Raises `Encoded` and, past the bound, `TooLong`."""
    if encoding := _encoding(response):
        raise Encoded(f"the answer has the encoding {line(encoding, 40)}")
    whole, turn = 0, Turn()
    async for came in response.aiter_raw():
        whole += len(came)
        if whole > _MOST_STREAM:
            raise TooLong("the answer has more bytes than are read")
        for start in range(0, len(came), _PART):
            await turn.end_if_long()
            yield came[start : start + _PART]


async def whole(response: Any) -> bytes:
    """A body that is one object. Raises `Encoded` and `TooLong`."""
    found, size = [], 0
    async for part in parts(response):
        found.append(part)
        size += len(part)
        if size > _MOST_PIECE:
            raise TooLong("the answer has more bytes than are read")
    return b"".join(found)


async def beginning(response: Any) -> AsyncIterator[bytes]:
    """The beginning of an error's body, which is then closed; nothing of one that is compressed."""
    size = 0
    if not _encoding(response):
        async for part in parts(response):
            yield part[: _MOST_REFUSED - size]
            size += len(part)
            if size >= _MOST_REFUSED:
                break
    await response.aclose()


async def events(response: Any) -> AsyncIterator[bytes]:
    """The data of each event of a stream that has some, until its end is told or comes.

    Raises `Encoded` and, for a stream or an event that is too long, `TooLong`.
    """
    begun = bytearray()  # of a line that has not ended
    data: list[bytes] = []
    held, ended, first = 0, b"", True
    coming = parts(response)
    async for part in coming:
        for piece in (part.removeprefix(b"\n") if ended == b"\r" else part).splitlines(keepends=True):
            is_line = piece.endswith((b"\n", b"\r"))
            begun += piece
            held += len(piece) + _LINE * is_line
            if held > _MOST_PIECE:
                raise TooLong("the answer has more bytes than are read")
            if not is_line:
                continue
            text = bytes(begun).rstrip(b"\r\n")
            text, first = text.removeprefix(BOM_UTF8) if first else text, False
            begun.clear()
            name, _, value = text.partition(b":")
            if name == b"data":
                data.append(value.removeprefix(b" "))
                continue
            held = held if data else 0
            if not text and data:
                event = b"\n".join(data)
                data.clear()
                held = 0
                if event.startswith(b"[DONE]"):
                    with move_on_after(_LEAVING):
                        async for _rest in coming:
                            pass
                    return
                if event.strip():
                    yield event
        ended = part[-1:]


def _encoding(response: Any) -> str:
    """The encoding of a body that is compressed; "" for one that is sent as it is."""
    told = str(response.headers.get("content-encoding", "")).strip().lower()
    return told if _COMPRESSING.intersection(map(str.strip, told.split(","))) else ""
