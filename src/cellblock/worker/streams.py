"""The cell's stdout and stderr: ordinary text streams over descriptors 1 and 2.

Python-level text of both goes down the stdout pipe, stderr between marks, so that its order is exact; what
subprocesses and C code write to descriptor 2 goes down a pipe of its own.
"""

from __future__ import annotations

import sys
from fcntl import ioctl
from io import BufferedIOBase, BufferedWriter, FileIO, TextIOWrapper
from os import dup, dup2, fstat, get_blocking, register_at_fork, set_blocking, write
from select import POLLOUT, poll
from termios import FIONREAD
from typing import TYPE_CHECKING, Any

from cellblock.wire import text
from cellblock.worker.interrupts import Interrupted

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer


_NOTHING = bytes(4)


class Streams:
    """Owns the two streams; gives them back to a cell that closed or lost them."""

    def __init__(self, nonce: bytes) -> None:
        self._nonce = nonce
        self._spare = dup(1), dup(2)
        self._identity = tuple(map(_identity, self._spare))
        self._places = 0
        self.stdout = self._open_stdout()
        self.stderr = _text(_Stderr(self))
        register_at_fork(before=self.flush)
        sys.stdout = sys.__stdout__ = self.stdout  # type: ignore[misc]
        sys.stderr = sys.__stderr__ = self.stderr  # type: ignore[misc]

    def begin(self) -> None:
        """Before a cell: streams that were closed are opened again, lines are live again."""
        for number, spare in enumerate(self._spare, start=1):
            if _identity(number) != self._identity[number - 1]:
                dup2(spare, number)
            if not get_blocking(number):
                set_blocking(number, True)
        if not _is_open(self.stdout):
            self.stdout = self._open_stdout()
        if not _is_open(self.stderr):
            self.stderr = _text(_Stderr(self))
        if not _is_open(getattr(sys, "stdout", None)):
            sys.stdout = self.stdout
        if not _is_open(getattr(sys, "stderr", None)):
            sys.stderr = self.stderr

    def move(self, nonce: bytes) -> None:
        """Other pipes are under the same numbers now, and another nonce marks places in them."""
        self._nonce, self._places = nonce, 0
        self._identity = tuple(map(_identity, self._spare))

    @property
    def descriptors(self) -> tuple[int, int]:
        """The pipes themselves, as no cell holds them."""
        return self._spare

    def place(self) -> int:
        """Flush everything written so far and mark the place after it."""
        self.flush()
        self._places += 1
        _write_all(self._spare[0], text.mark(self._nonce, b"M", self._places))
        return self._places

    def place_of_call(self) -> int:
        """As `place`, for what the caller waits for: where the host has read all text by now, no mark is needed.

        A mark would wake the host once more. What other tasks print at the same moment stands on either side.
        """
        self.flush()
        return self._places if ioctl(self._spare[0], FIONREAD, _NOTHING) == _NOTHING else self.place()

    def write_stderr(self, data: bytes) -> None:
        """Send stderr text down the stdout pipe, after the stdout text written before it."""
        if _is_open(self.stdout):
            self.stdout.flush()
        _write_all(1, text.mark(self._nonce, b"E") + data + text.mark(self._nonce, b"O"))

    def flush(self) -> None:
        """Send on what either stream holds back."""
        cells: tuple[Any, ...] = (getattr(sys, "stdout", None), getattr(sys, "stderr", None))
        for stream in (*cells, self.stdout, self.stderr):
            try:
                stream.flush()
            except Interrupted:
                raise
            except BaseException:  # closed, or an object of the cell's own, which holds nothing of ours
                continue

    def _open_stdout(self) -> TextIOWrapper:
        return _text(BufferedWriter(FileIO(1, "wb", closefd=False)))


class _Stderr(BufferedIOBase):
    """Looks like descriptor 2, which subprocesses may inherit; text written through it keeps its order."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams

    def fileno(self) -> int:
        return 2

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        text = bytes(data)
        self._streams.write_stderr(text)
        return len(text)


def _text(buffer: Any) -> TextIOWrapper:
    return TextIOWrapper(buffer, encoding="utf-8", errors="backslashreplace", newline="\n", line_buffering=True)


def _is_open(stream: Any) -> bool:
    try:
        return not stream.closed
    except BaseException:  # an object of the cell's own, or None
        return False


def _identity(number: int) -> tuple[int, int] | None:
    try:
        status = fstat(number)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _write_all(number: int, data: bytes | bytearray) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[write(number, view) :]
        except BlockingIOError:  # a cell has made the pipe one that does not wait, as asyncio does
            full = poll()
            full.register(number, POLLOUT)
            full.poll()
