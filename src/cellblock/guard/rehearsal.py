"""Tries a call in a process of its own first, where it can be ended: what ends there ends here, in the same time.

For calls of C code that may take very long, hold the interpreter's lock and depend on plain data alone: matches of
regular expressions. The process is started when it is first needed, waits for the next call, and is killed where the
cell that called was ended. It is given JSON and gives JSON back, in frames of a length and as many bytes; bytes are
written as Latin-1.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
from typing import Any

from cellblock.guard.refusal import denied
from cellblock.guard.sizes import MAX_BYTES

_PROGRAM = r"""
import fcntl, json, os, re, resource, select, time

def read(n):
    parts = []
    while n:
        part = os.read(0, min(n, 1 << 20))
        if not part:
            os._exit(0)
        parts.append(part)
        n -= len(part)
    return b"".join(parts)

def steps(pattern, text, where, skip, seconds):
    until, count = time.monotonic() + seconds, 0
    for _ in pattern.finditer(text, *where):
        count += 1
        if count > skip and time.monotonic() > until:
            return count, False
    return count, True

def latin(value):
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return [latin(one) for one in value] if isinstance(value, (list, tuple)) else value

def answer(name, source, flags, text, given, is_bytes):
    if is_bytes:
        source, text = source.encode("latin-1"), text.encode("latin-1")
        given = [one.encode("latin-1") if isinstance(one, str) else one for one in given]
    pattern = re.compile(source, flags)
    if name == "finditer":
        return steps(pattern, text, *given)
    if name == "calls":
        return pattern.sub(lambda found: text[:0], text, *given) and None
    if name in ("sub", "subn"):
        return getattr(pattern, name)(given[0], text, *given[1:])
    if name in ("findall", "split"):
        return getattr(pattern, name)(text, *given)
    return getattr(pattern, name)(text, *given) is not None

fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
plain = fcntl.fcntl(0, fcntl.F_GETFL)
asker = select.poll()
asker.register(0, 0)
while True:
    call = json.loads(read(int.from_bytes(read(8), "big")).decode("utf-8", "surrogatepass"))
    most = call.pop()
    try:
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (most if hard < 0 else min(most, hard), hard))
    except (OSError, ValueError):  # a system that holds no process to such a limit: macOS
        found = json.dumps((False, "unlimited")).encode()
        os.write(1, len(found).to_bytes(8, "big") + found)
        continue
    fcntl.fcntl(0, fcntl.F_SETFL, plain | os.O_ASYNC)  # if whoever asks goes, SIGIO ends this process
    if asker.poll(0):
        os._exit(0)
    try:
        found = latin(answer(*call)) if call[-1] else answer(*call)
        data = json.dumps((True, found), ensure_ascii=False).encode("utf-8", "surrogatepass")
    except (MemoryError, RecursionError, re.error, IndexError, ValueError, OverflowError, TypeError) as error:
        data = json.dumps((False, type(error).__name__)).encode()
    fcntl.fcntl(0, fcntl.F_SETFL, plain)
    data = memoryview(len(data).to_bytes(8, "big") + data)
    while data:
        data = data[os.write(1, data):]
"""
_LOOK_MS = 20
_ADDRESSES = 1 << 30
"""Bytes that a rehearsal may take, beyond ten times what it is given."""


class Rehearsal:
    """One process for one world. Made when it is needed, and again when the last was killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._busy = False

    def call(self, name: str, source: str | bytes, flags: int, text: str | bytes, *given: Any) -> Any:
        """Result of the call; for calls that give matches, True if it gives one. `None` where it raised.

        Waits for as long as it takes, in steps between which a cell can be ended. SecurityError where no process can
        be started, MemoryError where the result is too large.
        """
        self.abandon()
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        self._busy = True
        is_bytes = isinstance(text, bytes)
        call = [_latin(one) for one in (name, source, flags, text, given, is_bytes)]
        data = json.dumps([*call, _ADDRESSES + 10 * len(text)], ensure_ascii=False).encode("utf-8", "surrogatepass")
        try:
            _send(process.stdin.fileno(), len(data).to_bytes(8, "big") + data)
            size = int.from_bytes(_receive(process.stdout.fileno(), 8), "big")
            if size > MAX_BYTES:
                raise EOFError("a result that is too large")
            told = _receive(process.stdout.fileno(), size)
        except (OSError, EOFError) as error:
            self.close()
            raise MemoryError("matching this pattern took too much memory") from error
        self._busy = False
        worked, found = json.loads(told.decode("utf-8", "surrogatepass"))
        if not worked and found == "MemoryError":
            raise MemoryError("matching this pattern took too much memory")
        if not worked and found == "unlimited":
            raise denied("this pattern may take very long, and this system holds no process to a memory limit", "size")
        return _restored(name, found, is_bytes=is_bytes) if worked else None

    def abandon(self) -> None:
        """The cell that called was ended: so is what it called."""
        if self._busy:
            self.close()

    def close(self) -> None:
        """End the process."""
        process, self._process, self._busy = self._process, None, False
        if process is not None:
            process.kill()
            process.communicate()

    def _start(self) -> subprocess.Popen[bytes]:
        if sys.platform == "win32":
            raise denied("this pattern may take very long, and no process can try it beforehand on Windows", "size")
        if not sys.executable:
            raise denied("this pattern may take very long, and there is no interpreter to try it in", "size")
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                bufsize=0,
            )
        except OSError as error:
            raise denied(f"this pattern may take very long, and cannot be tried beforehand: {error}", "size") from error
        for end in (self._process.stdin, self._process.stdout):
            assert end is not None
            os.set_blocking(end.fileno(), False)
        return self._process

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # the interpreter may be on its way out
            self.close()


def _latin(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_latin(one) for one in value]
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _restored(name: str, found: Any, *, is_bytes: bool) -> Any:
    """Result of `re`, from its JSON: lists in a list are the groups of a match, and `subn` gives a pair."""
    if isinstance(found, str):
        return found.encode("latin-1") if is_bytes else found
    if not isinstance(found, list):
        return found
    parts = [_restored("", one, is_bytes=is_bytes) for one in found]
    return tuple(parts) if name in ("", "subn", "finditer") else parts


def _send(number: int, data: bytes) -> None:
    left = memoryview(data)
    poll = select.poll()
    poll.register(number, select.POLLOUT)
    while left:
        if poll.poll(_LOOK_MS):
            left = left[os.write(number, left) :]


def _receive(number: int, size: int) -> bytes:
    parts: list[bytes] = []
    poll = select.poll()
    poll.register(number, select.POLLIN)
    while size:
        if not poll.poll(_LOOK_MS):
            continue
        part = os.read(number, min(size, 1 << 20))
        if not part:
            raise EOFError("the process of a rehearsal has ended")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
