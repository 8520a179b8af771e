"""A turn's text: what to pass on as it comes, what to keep for the end, what to leave out."""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Iterator

from cellblock.executors.protocol import Written
from cellblock.wire.text import Text

_SMALL = 4096
_MAX_PIECES = 4096


class TextBudget:
    """Passes on the first `limit` bytes as they come and keeps the last `limit` // 2 of the rest for the end.

    Of pieces that change from stream to stream, no more than 4,096 are kept.
    """

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._keep = max(1, limit // 2)
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
        kept = data[-self._keep :]
        self._cut += len(data) - len(kept)
        last = self._tail[-1] if self._tail else None
        if last is not None and last.stream == stream and len(last.data) + len(kept) <= _SMALL:
            self._tail[-1] = Text(stream, last.data + kept)
        else:
            self._tail.append(Text(stream, kept))
        self._tail_bytes += len(kept)
        # whole pieces; what is too much of the first is cut off in the end
        while self._tail_bytes - len(self._tail[0].data) >= self._keep or len(self._tail) > _MAX_PIECES:
            self._drop(len(self._tail.popleft().data))

    def _drop(self, count: int) -> None:
        self._tail_bytes -= count
        self._cut += count

    def finish(self) -> Iterator[Written]:
        """Text kept for the end, and incomplete characters."""
        excess = self._tail_bytes - self._keep
        if excess > 0:
            first = self._tail.popleft()
            self._tail.appendleft(Text(first.stream, first.data[excess:]))
            self._drop(excess)
        cut = self._cut
        if cut:
            self._decoders.clear()  # the bytes that would complete a character are among those left out
        for text in self._tail:
            yield Written(stream=text.stream, text=self._decode(text.stream, text.data), cut=cut)
            cut = 0
        for stream, decoder in self._decoders.items():
            rest = decoder.decode(b"", True)
            if rest or cut:
                yield Written(stream=stream, text=rest, cut=cut)
                cut = 0
        self._tail.clear()

    def _decode(self, stream: str, data: bytes) -> str:
        decoder = self._decoders.get(stream)
        if decoder is None:
            decoder = self._decoders[stream] = codecs.getincrementaldecoder("utf-8")("replace")
        return decoder.decode(data)
