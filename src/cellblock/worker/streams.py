"""The cell's stdout and stderr: ordinary text streams over descriptors 1 and 2.

Python-level text of both goes down the stdout pipe, stderr between marks, so that its order is exact; what
subprocesses and C code write to descriptor 2 goes down a pipe of its own.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

from cellblock.wire import text

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

_LIVE_BYTES = 16 * 1024
"""How much a cell may write before its lines are gathered instead of sent one by one."""

_GATHERED_BYTES = 64 * 1024


class Streams:
    """Owns the two streams; gives them back to a cell that closed or lost them."""

    def __init__(self, nonce: bytes) -> None:
        self._nonce = nonce
        self._spare = os.dup(1), os.dup(2)
        self._identity = tuple(map(_identity, self._spare))
        self._places = 0
        self._raw = _Stdout()
        self.stdout = self._wrap(self._raw)
        self.stderr = self._wrap(_Stderr(2, self))
        os.register_at_fork(before=self.flush, after_in_child=self._after_fork)
        sys.stdout = sys.__stdout__ = self.stdout  # type: ignore[misc]
        sys.stderr = sys.__stderr__ = self.stderr  # type: ignore[misc]

    def begin(self) -> None:
        """Before a cell: streams that were closed are opened again, lines are live again."""
        for number, spare in enumerate(self._spare, start=1):
            if _identity(number) != self._identity[number - 1]:
                os.dup2(spare, number)
        if self.stdout.closed:
            self._raw = _Stdout()
            self.stdout = self._wrap(self._raw)
        if self.stderr.closed:
            self.stderr = self._wrap(_Stderr(2, self))
        if sys.stdout is None or sys.stdout.closed:
            sys.stdout = self.stdout
        if sys.stderr is None or sys.stderr.closed:
            sys.stderr = self.stderr
        self._raw.live = _LIVE_BYTES

    def place(self) -> int:
        """Flush everything written so far and mark the place after it."""
        self.flush()
        self._places += 1
        _write_all(self._spare[0], text.mark(self._nonce, b"M", self._places))
        return self._places

    def write_stderr(self, data: bytes) -> None:
        """Send stderr text down the stdout pipe, after the stdout text written before it."""
        if not self.stdout.closed:
            self.stdout.flush()
        self._raw.push()
        _write_all(1, text.mark(self._nonce, b"E") + data + text.mark(self._nonce, b"O"))

    def flush(self) -> None:
        """Send on what either stream holds back."""
        for stream in {sys.stdout, sys.stderr, self.stdout, self.stderr}:
            try:
                stream.flush()
            except Exception:  # noqa: S112 - closed, or an object of the cell's own: it holds nothing of ours
                continue
        self._raw.push()

    def _after_fork(self) -> None:
        self._raw.live = 2**62  # a child may end without a word to us: nothing of its text is held back

    def _wrap(self, raw: io.FileIO) -> io.TextIOWrapper:
        buffer = io.BufferedWriter(raw, 64 * 1024)
        return io.TextIOWrapper(
            buffer, encoding="utf-8", errors="backslashreplace", newline="\n", line_buffering=True
        )


class _Stdout(io.FileIO):
    """Descriptor 1. Past the first `live` bytes of a cell its lines are gathered, which makes floods cheap."""

    def __init__(self) -> None:
        super().__init__(1, "wb", closefd=False)
        self.live = _LIVE_BYTES
        self._gathered = bytearray()

    def write(self, data: Buffer, /) -> int:
        if self.live > 0:
            count = super().write(data)
            self.live -= count
            return count
        self._gathered += data
        if len(self._gathered) >= _GATHERED_BYTES:
            self.push()
        return len(data)  # type: ignore[arg-type]

    def push(self) -> None:
        """Send what was gathered."""
        if self._gathered:
            gathered, self._gathered = self._gathered, bytearray()
            _write_all(1, gathered)


class _Stderr(io.FileIO):
    """Looks like descriptor 2, which subprocesses may inherit; text written through it keeps its order."""

    def __init__(self, number: int, streams: Streams) -> None:
        super().__init__(number, "wb", closefd=False)
        self._streams = streams

    def write(self, data: Buffer, /) -> int:
        text = bytes(data)
        self._streams.write_stderr(text)
        return len(text)


def _identity(number: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(number)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _write_all(number: int, data: bytes | bytearray) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(number, view) :]
