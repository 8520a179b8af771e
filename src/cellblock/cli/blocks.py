"""The end of a block of typed source: as at Python's own prompt, also where many lines come at once.

A block is whole when it can be run, or when no further line could make it so: then the session says what is wrong.
One that ends in a compound statement goes on until an empty line, or a statement that begins in the first column.
"""

from __future__ import annotations

import ast
import codeop
import re
import warnings

from cellblock.nesting import Nesting

_GRAMMAR = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | codeop.PyCF_ALLOW_INCOMPLETE_INPUT  # type: ignore[attr-defined]
_INCOMPLETE = "incomplete input"

_FREELY = 1 << 16
"""Characters that a block is parsed for, before a line that cannot end it waits until there are twice as many."""
_MOST_PARSED = 1 << 20
"""Characters that a block is parsed for, over and over, until its empty lines are passed over where it seems open."""
_GOES_ON = re.compile(r"[ \t]|(?:else|elif|except|finally)\b")


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
        """Take a line, or several that were pasted as one; whether the block is whole.

        `goes_on`: what is there to be read next can belong to the block, so that an empty line does not end it.
        """
        self._lines.append(text)
        self._size += len(text) + 1
        cannot_end = bool(self._lines[1:]) and not self._nesting.is_open and text.startswith((" ", "\t", "@"))
        for line in text.split("\n"):
            self._nesting.add(line)
        inside = goes_on and len(self._lines) > 1 and continues(text or " ")
        if inside or (self._nesting.is_open and (text or self._parsed > _MOST_PARSED)):
            return False  # without the parser, whose time would grow with the square of a block's length
        ended = "\n" in text or (not text and not goes_on)
        if cannot_end and not ended and self._parsed > _FREELY and self._size < 2 * self._parsed_size:
            return False  # but for an error, which is told a little later
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


def continues(line: str) -> bool:
    """True if a line can belong to the compound statement before it."""
    return _GOES_ON.match(line) is not None
