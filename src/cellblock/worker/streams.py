"""The cell's stdout and stderr: ordinary text streams over descriptors 1 and 2.

Python-level text of both goes down the stdout pipe, stderr between marks, so that its order is exact; what
subprocesses and C code write to descriptor 2 goes down a pipe of its own.
"""

from __future__ import annotations

import io
import os
import sys

from cellblock.wire import text

_LIVE_BYTES = 16 * 1024
"""How much a cell may write before lines are gathered instead of sent one by one."""


class Streams:
    """Owns the two streams; gives them back to a cell that closed or lost them."""

    def __init__(self, nonce: bytes) -> None:
        self._nonce = nonce
        self._spare = os.dup(1), os.dup(2)
        self._places = 0
        self.stdout = self._wrap(_Stdout(1, "wb", closefd=False))
        self.stderr = self._wrap(_Stderr(2, self))
        sys.stdout = sys.__stdout__ = self.stdout  # type: ignore[misc]
        sys.stderr = sys.__stderr__ = self.stderr  # type: ignore[misc]

    def begin(self) -> None:
        """Before a cell: streams that were closed are opened again, lines are live again."""
        for number, spare in enumerate(self._spare, start=1):
            if not _same(number, spare):
                os.dup2(spare, number)
        if self.stdout.closed:
            self.stdout = self._wrap(_Stdout(1, "wb", closefd=False))
        if self.stderr.closed:
            self.stderr = self._wrap(_Stderr(2, self))
        if sys.stdout is None or sys.stdout.closed:
            sys.stdout = self.stdout
        if sys.stderr is None or sys.stderr.closed:
            sys.stderr = self.stderr
        raw = self.stdout.buffer.raw
        if isinstance(raw, _Stdout) and raw.written:
            raw.written = 0
            self.stdout.reconfigure(line_buffering=True)

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
        _write_all(1, text.mark(self._nonce, b"E") + data + text.mark(self._nonce, b"O"))

    def flush(self) -> None:
        """Send on what either stream holds back."""
        for stream in {sys.stdout, sys.stderr, self.stdout, self.stderr}:
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):  # closed, or an object of the cell's own
                continue

    def _wrap(self, raw: io.FileIO) -> io.TextIOWrapper:
        buffer = io.BufferedWriter(raw, 64 * 1024)
        return io.TextIOWrapper(
            buffer, encoding="utf-8", errors="backslashreplace", newline="\n", line_buffering=True
        )


class _Stdout(io.FileIO):
    """Descriptor 1. After `_LIVE_BYTES` of a cell its lines are gathered, which makes floods cheap."""

    written = 0

    def write(self, data: bytes | memoryview, /) -> int:  # type: ignore[override]
        count = super().write(data)
        self.written += count
        if self.written > _LIVE_BYTES and self.written - count <= _LIVE_BYTES:
            stream = sys.stdout
            if isinstance(stream, io.TextIOWrapper) and stream.buffer.raw is self:
                stream.reconfigure(line_buffering=False)
        return count


class _Stderr(io.FileIO):
    """Looks like descriptor 2, which subprocesses may inherit; text written through it keeps its order."""

    def __init__(self, number: int, streams: Streams) -> None:
        super().__init__(number, "wb", closefd=False)
        self._streams = streams

    def write(self, data: bytes | memoryview, /) -> int:  # type: ignore[override]
        self._streams.write_stderr(bytes(data))
        return len(data)


def _same(number: int, spare: int) -> bool:
    try:
        return os.path.samestat(os.fstat(number), os.fstat(spare))
    except OSError:
        return False


def _write_all(number: int, data: bytes) -> None:
    while data:
        data = data[os.write(number, data) :]
