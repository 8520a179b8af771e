"""Text from inside a wall on its way to a person's terminal: what would drive the terminal is taken out.

Where the stream is no terminal the text goes out as it came: a program that reads it wants it whole.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TextIO

from cellblock.text import plain

_BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x9c]*\x1b?|[ -/]*)\Z|\x9b[0-?]*[ -/]*\Z")
_MOST_HELD = 4096
_EXCEPTION = re.compile(r"^(?!Traceback \(|During handling|The above exception|\s).+$", re.MULTILINE)


class _Cursor:
    """Whether a line has begun and not ended."""

    in_line = False


_ON_TERMINAL = _Cursor()


class Printer:
    """Writes to one stream. On a terminal it drops escape sequences and control characters.

    Tab, line feed and carriage return stay. A sequence may come in pieces: its beginning is held back. Printers to one
    terminal share its cursor.
    """

    def __init__(self, stream: TextIO) -> None:
        self.is_terminal = stream.isatty()
        self._stream = stream
        self._held = ""
        self._cursor = _ON_TERMINAL if self.is_terminal else _Cursor()

    def write(self, text: str) -> None:
        """Write at once."""
        self._put(self._harmless(text) if self.is_terminal else text)

    def line(self, text: str, paint: Callable[[str], str] = str) -> None:
        """Write on a line of its own, in a colour. A sequence that the text before began takes nothing of it along."""
        self.end_line()
        text = text if text.endswith("\n") else text + "\n"
        self._put(paint(plain(text)) if self.is_terminal else text)

    def end_line(self) -> None:
        """End what was begun: a line, an escape sequence."""
        self._held = ""
        if self._cursor.in_line:
            self._put("\n")

    def _put(self, text: str) -> None:
        if not text:
            return
        self._cursor.in_line = not text.endswith("\n")
        encoding = self._stream.encoding or "utf-8"
        self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        self._stream.flush()

    def _harmless(self, text: str) -> str:
        text = self._held + text
        self._held = ""
        begun = _BEGUN.search(text)
        if begun is not None and len(begun[0]) <= _MOST_HELD:
            text, self._held = text[: begun.start()], begun[0]
        return plain(text)


class Paint:
    """Colours for our own words; none where the stream is no terminal or NO_COLOR is set."""

    def __init__(self, stream: TextIO) -> None:
        self._on = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    def good(self, text: str) -> str:
        return self._with("32", text)

    def bad(self, text: str) -> str:
        return self._with("31", text)

    def dim(self, text: str) -> str:
        return self._with("2", text)

    def traceback(self, text: str) -> str:
        """The lines that name the exceptions stand out."""
        return _EXCEPTION.sub(lambda line: self.bad(line[0]), text)

    def _with(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._on else text


def encodable(sign: str, words: str, stream: TextIO) -> str:
    """A sign where the stream's encoding has it, else words for it."""
    try:
        sign.encode(stream.encoding or "ascii")
    except UnicodeError:
        return words
    return sign
