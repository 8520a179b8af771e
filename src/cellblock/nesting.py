"""Brackets and texts of several lines that lines of Python open, read line by line without the parser."""

from __future__ import annotations

import re

_PIECE = re.compile(r"#.*|'''|\"\"\"|'(?:[^'\\]|\\.)*+\\?'?|\"(?:[^\"\\]|\\.)*+\\?\"?|[()\[\]{}]")
_ENDS = {quotes: re.compile(rf"(?:[^\\]|\\.)*?{quotes}", re.DOTALL) for quotes in ("'''", '"""')}


class Nesting:
    """Depth in brackets, or the triple quotes, in which the next line begins.

    A guess where strings stand in strings, as in an f-string's fields: an empty line has the parser decide.
    """

    def __init__(self) -> None:
        self._depth = 0
        self.quotes = ""
        """Those of the text that is open; "" where none is."""
        self.continued = False
        """True if the last line ends with a backslash that joins it to the next."""

    @property
    def is_open(self) -> bool:
        return self._depth > 0 or bool(self.quotes) or self.continued

    def add(self, line: str) -> None:
        if not line:
            self.continued = False
            return
        at, self.continued = 0, line.endswith("\\")
        while True:
            if self.quotes:
                end = _ENDS[self.quotes].match(line, at)
                if end is None:
                    return
                at, self.quotes = end.end(), ""
            piece = _PIECE.search(line, at)
            if piece is None:
                return
            at = piece.end()
            if piece[0][0] == "#":
                self.continued = False
            elif piece[0] in _ENDS:
                self.quotes = piece[0]
            elif piece[0] in "([{":
                self._depth += 1
            elif piece[0] in ")]}":
                self._depth = max(self._depth - 1, 0)
