"""The border of the standard streams: all that the command line reads and writes passes here.

Text from inside a wall loses what would drive a terminal. Where the stream is no terminal the text goes out as it came:
a program that reads it wants it whole. A stream that is closed takes nothing; one that fails raises `StreamLost`.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from cellblock.text import inert, line, plain, row, write_json

_BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x9c]*\x1b?|[ -/]*)\Z|\x9b[0-?]*[ -/]*\Z")
_MOST_HELD = 4096
_EXCEPTION = re.compile(r"^(?!Traceback \(|During handling|The above exception|\s).+$", re.MULTILINE)


class StreamLost(Exception):
    """A standard stream cannot be written to. `unread`: nobody reads it any more, as in `cellblock run … | head`."""

    def __init__(self, name: str, error: OSError) -> None:
        super().__init__(f"{name} cannot be written: {error.strerror}")
        self.unread = isinstance(error, BrokenPipeError)


class _Cursor:
    """Tracks if a line has begun and not ended."""

    in_line = False


_ON_TERMINAL = _Cursor()


class _Stream:
    """A standard stream whose failure is `StreamLost`, whoever writes to it; characters it lacks are escaped."""

    def __init__(self, name: str, stream: TextIO) -> None:
        self._name, self._stream = name, stream
        self.cursor = _ON_TERMINAL if stream.isatty() else _Cursor()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        encoding = self._stream.encoding or "utf-8"
        try:
            return self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        except OSError as error:
            raise StreamLost(self._name, error) from None

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            raise StreamLost(self._name, error) from None


@contextmanager
def standard_streams() -> Iterator[None]:
    """Replace the standard streams, closed ones too, by streams that raise `StreamLost`; at the end flush them."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:  # one that was closed would be the next file's number
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115 - it lives as long as the program
    out, err = (sys.stdout or open(1, "w", closefd=False)), (sys.stderr or open(2, "w", closefd=False))  # noqa: SIM115
    sys.stdout, sys.stderr = _Stream("stdout", out), _Stream("stderr", err)
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        for stream in (out, err):
            try:
                stream.flush()
            except OSError:  # or the interpreter complains as it leaves
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def say(text: str) -> None:
    """Print a line of cellblock's own on stderr: a text that it quotes begins no other, and drives no terminal."""
    Printer(sys.stderr).line(f"cellblock: {row(text)}")


def agreed(question: str, *, yes: bool) -> bool:
    """True if a person at the terminal says yes. Where there is no terminal, or --yes was given, nobody is asked."""
    if yes or not sys.stdin.isatty():
        return True
    sys.stderr.write(f"cellblock: {row(question)} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    say("nothing was changed")
    return False


def write_out(text: str) -> None:
    """Print text of cellblock's own on stdout."""
    sys.stdout.write(text)
    sys.stdout.flush()


def write_data(value: object, *, indent: int | None = None) -> None:
    """Print data as JSON on stdout."""
    write_out(write_json(value, indent=indent) + "\n")


class Printer:
    """Writes to one stream. On a terminal it drops escape sequences and control characters; in `code` it names them.

    Tab, line feed and carriage return stay. A sequence may come in pieces: its beginning is held back.
    """

    def __init__(self, stream: TextIO) -> None:
        self.is_terminal = stream.isatty()
        self._stream = stream if isinstance(stream, _Stream) else _Stream("output", stream)
        self._held = ""

    def write(self, text: str) -> None:
        """Write at once."""
        self._put(self._harmless(text) if self.is_terminal else text)

    def line(self, text: str, paint: Callable[[str], str] = str) -> None:
        """Write on a line of its own, in a colour, whatever escape sequence the text before has begun."""
        self.end_line()
        text = text if text.endswith("\n") else text + "\n"
        self._put(paint(plain(text)) if self.is_terminal else text)

    def code(self, text: str, *, indent: str = "") -> None:
        """Write source on lines of its own, all of it: what is dropped would still run."""
        text = inert(text) if self.is_terminal else text
        self.line("\n".join(indent + one for one in text.split("\n")) if indent else text)

    def end_line(self) -> None:
        """End what was begun: a line, an escape sequence."""
        self._held = ""
        if self._stream.cursor.in_line:
            self._put("\n")

    def _put(self, text: str) -> None:
        if not text:
            return
        self._stream.cursor.in_line = not text.endswith("\n")
        self._stream.write(text)
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
        self.yes = self.good(_encodable("\N{CHECK MARK}", "ok", stream))
        self.no = self.bad(_encodable("\N{BALLOT X}", "NO", stream))

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


def _encodable(sign: str, words: str, stream: TextIO) -> str:
    """A sign where the stream's encoding has it, else words for it."""
    try:
        sign.encode(stream.encoding or "ascii")
    except UnicodeError:
        return words
    return sign


_LONGEST = 10_000
"""Characters of a cell of a table."""


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns with titles, cut at the edge of a terminal.

    A column that is empty in every row is left out; elsewhere "" is a dash.
    """
    kept = [place for place in range(len(titles)) if any(row[place] for row in rows)]
    out = Printer(sys.stdout)
    edge = shutil.get_terminal_size().columns if out.is_terminal else None
    for shown in columns([[one[place] or "-" for place in kept] for one in (titles, *rows)]) if kept else ():
        out.line(shown[:edge])


def columns(rows: Iterable[Sequence[str]], widest: int = _LONGEST) -> list[str]:
    """A line for each row, in columns up to `widest` wide. Words from inside are made one line of plain text."""
    found = [[line(word, _LONGEST) for word in row] for row in rows]
    widths = [min(max(map(len, column)), widest) for column in zip(*found, strict=True)]
    return ["  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in found]
