"""Blocks of source, as at Python's own prompt: their end, and their lines from a pipe.

A block is whole when it can be run, or when no further line could make it so: then the session says what is wrong.
One that ends in a compound statement goes on until an empty line, or a statement that begins in the first column.
"""

from __future__ import annotations

import ast
import codeop
import os
import re
import select
import warnings
from collections import deque

from cellblock.cli.exits import Unusable
from cellblock.cli.source import MAX_BYTES
from cellblock.nesting import Nesting

_GRAMMAR = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | codeop.PyCF_ALLOW_INCOMPLETE_INPUT  # type: ignore[attr-defined]
_INCOMPLETE = "incomplete input"

_FREELY = 1 << 16
"""Characters that one block is parsed for at will; then only where it has twice as many as the last time."""
_GOES_ON = re.compile(r"[ \t]|(?:else|elif|except|finally)\b")
_CHUNK = 1 << 16
_MOST_AHEAD = 10_000
_MARK = b"\xef\xbb\xbf"


class Block:
    """The lines of one block so far. They are parsed here and never run.

    `newer`: the session's Python is newer than this one, and may know a compound statement that is an error here.
    """

    def __init__(self, *, newer: bool = False) -> None:
        self._newer = newer
        self._lines: list[str] = []
        self._nesting = Nesting()
        self._parsed = self._size = self._parsed_size = 0

    def __bool__(self) -> bool:
        return bool(self._lines)

    @property
    def source(self) -> str:
        """Everything so far."""
        return "\n".join(self._lines)

    def add(self, text: str, *, goes_on: bool = False) -> bool:
        """Take a line, or several that were pasted as one; True if the block is whole.

        `goes_on`: more input is there, and may belong to the block, so an empty line does not end it.
        """
        self._lines.append(text)
        self._size += len(text) + 1
        is_inside = bool(self._lines[1:]) and not self._nesting.is_open and text.startswith((" ", "\t", "@"))
        for line in text.split("\n"):
            self._nesting.add(line)
        inside = goes_on and len(self._lines) > 1 and _continues(text or " ")
        # the parser's time would grow with the square of a block's length
        costly = self._parsed > _FREELY and self._size < 2 * self._parsed_size
        if inside or (self._nesting.is_open and (text or costly)):
            return False
        ended = "\n" in text or (not text and not goes_on)
        if is_inside and not ended and costly:
            return False  # an error in it is found a little later
        return self._is_whole(ended=ended)

    def _is_whole(self, *, ended: bool) -> bool:
        source = self.source + "\n"
        self._parsed += len(source)
        self._parsed_size = len(source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the session says those
            try:
                tree = compile(source, "<input>", "exec", _GRAMMAR, dont_inherit=True)
            except SyntaxError as error:
                unknown = self._newer and any(line.rstrip().endswith(":") for line in self._lines)
                return error.msg != _INCOMPLETE and (ended or not unknown)
            except (ValueError, OverflowError, MemoryError, RecursionError):
                return True
        return ended or not tree.body or not (hasattr(tree.body[-1], "body") or isinstance(tree.body[-1], ast.Match))


def _continues(line: str) -> bool:
    """True if a line can belong to the compound statement before it."""
    return _GOES_ON.match(line) is not None


def is_command(text: str) -> bool:
    """True if a first line is a command of the prompt and not Python: no Python begins so."""
    return text.startswith((":", "!")) and "\n" not in text


class Pipe:
    """Reads blocks from a descriptor as they come: a program that writes one and waits gets its reply.

    `Unusable` for bytes that are no source. `newer`: see `Block`.
    """

    def __init__(self, descriptor: int, *, newer: bool = False) -> None:
        self._newer = newer
        self._descriptor = descriptor
        self._lines: deque[bytes] = deque()
        self._rest = bytearray()
        self._empty = 0
        """The number of lines ahead that are empty, or comments in the first column."""
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
        """True if the next line that is not empty has come already, and can belong to the block so far."""
        while self._empty < _MOST_AHEAD:
            while self._empty >= len(self._lines):
                if self._at_end or not select.select([self._descriptor], [], [], 0)[0]:
                    return False
                self._read()
            line = self._lines[self._empty]
            if line.strip() and not line.startswith(b"#"):
                return _continues(line.decode("utf-8", "replace"))
            self._empty += 1
        return False

    def _read(self) -> None:
        """Read a chunk; wait for one where there is none. The last line may lack its end."""
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
