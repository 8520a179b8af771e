"""A turn's text: what to pass on as it comes, what to keep for the end, what to leave out."""

from __future__ import annotations

import codecs
from collections import deque

from cellblock.executors.protocol import Written
from cellblock.wire.text import Text

_SMALL = 4096
_MAX_PIECES = 4096


class TextBudget:
    """Passes on the first `limit` bytes as they come, and of the rest `limit` // 2 in all, in its order.

    Kept are the last bytes: those before the result and the end, and, in half of that room, those before displays. Of
    pieces that change from stream to stream, no more than 4,096 are kept.
    """

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._keep = max(1, limit // 2)
        self._between = self._keep // 2
        self._tail: deque[Text] = deque()
        self._tail_bytes = 0
        self._cut = 0
        self._decoders: dict[str, codecs.IncrementalDecoder] = {}

    @property
    def exhausted(self) -> bool:
        """True if the live part is used up, so that what comes now is only kept or left out."""
        return self._left == 0

    def skip(self, count: int) -> None:
        """Note bytes that were left out before they were read."""
        self._cut += count

    def add(self, text: Text) -> list[Written]:
        """Take text; what of it is to be passed on now."""
        passed: list[Written] = []
        live, rest = text.data[: self._left], text.data[self._left :]
        if live:
            self._left -= len(live)
            decoded = self._decode(text.stream, live)
            if decoded:
                passed.append(Written(stream=text.stream, text=decoded))
        if rest:
            self._put_by(text.stream, rest)
        return passed

    def _put_by(self, stream: str, data: bytes) -> None:
        kept = data[max(0, len(data) - self._keep) :]
        self._cut += len(data) - len(kept)
        if not kept:
            return
        last = self._tail[-1] if self._tail else None
        if last is not None and last.stream == stream and len(last.data) + len(kept) <= _SMALL:
            self._tail[-1] = Text(stream, last.data + kept)
        else:
            self._tail.append(Text(stream, kept))
        self._tail_bytes += len(kept)
        # whole pieces; what is too much of the first is cut off when it is told
        while self._tail_bytes - len(self._tail[0].data) >= self._keep or len(self._tail) > _MAX_PIECES:
            self._drop(len(self._tail.popleft().data))

    def _drop(self, count: int) -> None:
        self._tail_bytes -= count
        self._cut += count

    def before_display(self, *, is_result: bool = False) -> list[Written]:
        """Text that comes before an event which is passed on now: its last bytes, in half of the room for such places.

        Before a result, after which little is printed, in all of the room. Where some is left out that is used up, so
        few notes tell of it however many displays there are.
        """
        most = self._keep if is_result else (self._between + 1) // 2
        self._trim(most)
        used = most if self._cut and self._tail else self._tail_bytes
        self._keep -= used
        self._between = max(0, self._between - used)
        return self._take()

    def finish(self) -> list[Written]:
        """Text kept for the end, and incomplete characters."""
        self._trim(self._keep)
        told = self._take()
        if self._cut:
            return [Written(stream="stdout", text="", cut=self._cut)]
        ends = {stream: decoder.decode(b"", True) for stream, decoder in self._decoders.items()}
        return told + [Written(stream=stream, text=text) for stream, text in ends.items() if text]

    def _trim(self, most: int) -> None:
        """Leave out the first of what is kept, until it is no more than that."""
        while (excess := self._tail_bytes - most) > 0:
            first = self._tail.popleft()
            if excess < len(first.data):
                self._tail.appendleft(Text(first.stream, first.data[excess:]))
            self._drop(min(excess, len(first.data)))

    def _take(self) -> list[Written]:
        """All that is kept, with the number of bytes left out before it; those stay to be told where nothing is."""
        if not self._tail:
            return []
        cut, self._cut = self._cut, 0
        if cut:
            self._decoders.clear()  # the bytes that would complete a character are among those left out
        told = []
        for text in self._tail:
            told.append(Written(stream=text.stream, text=self._decode(text.stream, text.data), cut=cut))
            cut = 0
        self._tail.clear()
        self._tail_bytes = 0
        return told

    def _decode(self, stream: str, data: bytes) -> str:
        decoder = self._decoders.get(stream)
        if decoder is None:
            decoder = self._decoders[stream] = codecs.getincrementaldecoder("utf-8")("replace")
        return decoder.decode(data)
