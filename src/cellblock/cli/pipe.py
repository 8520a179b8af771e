"""Source from a pipe or a file, block by block, as it comes: a program that writes one and waits gets its reply."""

from __future__ import annotations

import os
import select
from collections import deque

from cellblock.cli.blocks import Block, continues
from cellblock.cli.exits import Unusable
from cellblock.cli.keyboard import is_command
from cellblock.cli.source import MAX_BYTES

_CHUNK = 1 << 16
_MOST_AHEAD = 10_000
_MARK = b"\xef\xbb\xbf"


class Pipe:
    """Reads blocks from a descriptor; `Unusable` for bytes that are no source. `newer`: see `Block`."""

    def __init__(self, descriptor: int, *, newer: bool = False) -> None:
        self._newer = newer
        self._descriptor = descriptor
        self._lines: deque[bytes] = deque()
        self._rest = bytearray()
        self._empty = 0
        """The number of lines ahead that begin a statement no more than an empty one."""
        self._at_end = False
        self._number = 0

    def block(self) -> str | None:
        """The next block, None at the end of the input. A line that begins with `:` or `!` is one by itself."""
        block, size = Block(newer=self._newer), 0
        while (line := self._next()) is not None:
            if is_command(line) and not block:
                return line
            size += len(line)
            if size > MAX_BYTES:
                raise Unusable(f"stdin: line {self._number}: a block of more than {MAX_BYTES} characters")
            if block.add(line, goes_on=self._goes_on()):
                return block.source
        return block.source if block else None

    def _next(self) -> str | None:
        while not self._lines:
            if self._at_end:
                return None
            self._read()
        line = self._lines.popleft()
        self._empty = max(self._empty - 1, 0)
        self._number += 1
        if self._number == 1:
            line = line.removeprefix(_MARK)
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            byte = f"byte 0x{error.object[error.start]:02x}"
            raise Unusable(f"stdin: line {self._number}: not UTF-8: {byte}: {error.reason}") from None

    def _goes_on(self) -> bool:
        """True if the next line with anything on it is there already, and can belong to the block so far."""
        while self._empty < _MOST_AHEAD:
            while self._empty >= len(self._lines):
                if self._at_end or not select.select([self._descriptor], [], [], 0)[0]:
                    return False
                self._read()
            line = self._lines[self._empty]
            if line.strip() and not line.startswith(b"#"):
                return continues(line.decode("utf-8", "replace"))
            self._empty += 1
        return False

    def _read(self) -> None:
        """Take what is there; waits where nothing is. The last line may lack its end."""
        chunk = os.read(self._descriptor, _CHUNK)
        first, *more = chunk.split(b"\n")
        self._rest += first
        for start in more:
            self._lines.append(bytes(self._rest.removesuffix(b"\r")))
            self._rest = bytearray(start)
        if not chunk:
            self._at_end = True
            if self._rest:
                self._lines.append(bytes(self._rest))
        if len(self._rest) > MAX_BYTES:
            raise Unusable(f"stdin: line {self._number + len(self._lines) + 1}: more than {MAX_BYTES} bytes")
