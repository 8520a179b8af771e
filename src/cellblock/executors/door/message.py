"""Security border: heads and bodies of HTTP/1 messages, a client's and a server's, read from their bytes.

A message is written anew from what was read of it. What could be read in two ways is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_HEAD = 32 * 1024
"""Bytes of a message's first line and headers."""
_MAX_SIZE_LINE = 300
_MAX_TRAILERS = 8 * 1024

_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}):([\t\x20-\x7e\x80-\xff]*)")
_LENGTH = re.compile(rb"[0-9]{1,18}")
_SIZE = re.compile(rb"\r\n([0-9A-Fa-f]{1,15})[\t ]{0,9}(?:;[\t\x20-\x7e\x80-\xff]{0,256})?\r\n")
_OF_THE_HOP = frozenset(
    b"connection content-length host keep-alive proxy-authorization proxy-connection te trailer transfer-encoding "
    b"upgrade".split()
)
"""The door writes those that it needs itself."""


class Refused(Exception):
    """A request is not carried out: its status, and why, in a line that a client shows."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason

    def answer(self) -> bytes:
        """The response that says so. Clients show the words of its first line."""
        body = f"cellblock: {self.reason}\n".encode()
        head = (
            f"HTTP/1.1 {self.status} {self.reason}\r\nContent-Type: text/plain; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode("ascii", "backslashreplace") + body


class Body:
    """The bytes after a head; as it is, up to the connection's end."""

    header: tuple[bytes, ...] = ()
    """The header that says where it ends."""
    needs_end = False
    """A connection that ends before the body does cuts it."""
    is_over = False

    def passed(self, data: bytes) -> bytes:
        """The part of the next bytes that is of the body, as it is written on; the rest belongs to nothing."""
        return data


class Sized(Body):
    """A body of a known number of bytes."""

    needs_end = True

    def __init__(self, size: int) -> None:
        self.header = (b"Content-Length: %d" % size,)
        self._left = size
        self.is_over = not size

    def passed(self, data: bytes) -> bytes:
        part = data[: self._left]
        self._left -= len(part)
        self.is_over = not self._left
        return part


class Chunked(Body):
    """A body in chunks, written on in chunks of the door's own, without extensions and trailers."""

    header: tuple[bytes, ...] = (b"Transfer-Encoding: chunked",)
    needs_end = True

    def __init__(self) -> None:
        self._held = bytearray(b"\r\n")  # before each size is the end of the chunk before
        self._left = 0
        self._is_last = False

    def passed(self, data: bytes) -> bytes:
        self._held += data
        found = bytearray()
        while self._held and (self._left or self._begins()):
            part = self._held[: self._left]
            del self._held[: len(part)]
            self._left -= len(part)
            found += part
        return self._written(bytes(found))

    def _begins(self) -> bool:
        """Read the size of the next chunk; False where it has not come yet, or none comes."""
        if not self._is_last:
            if (line := _SIZE.match(self._held)) is None:
                is_cut = b"\r\n".startswith(bytes(self._held[:2])) and self._held.find(b"\r\n", 2) < 0
                if not is_cut or len(self._held) > _MAX_SIZE_LINE:
                    raise Refused(400, "a malformed chunk")
                return False
            self._left = int(line[1], 16)
            self._is_last = not self._left
            del self._held[: line.end() - 2 * self._is_last]
        if self._is_last and (end := self._held.find(b"\r\n\r\n", 0, _MAX_TRAILERS)) >= 0:
            Headers(bytes(self._held[2:end]).split(b"\r\n") if end else ())
            self.is_over = True
        elif self._is_last and len(self._held) >= _MAX_TRAILERS:
            raise Refused(400, f"trailers of more than {_MAX_TRAILERS} bytes")
        return not self._is_last

    def _written(self, data: bytes) -> bytes:
        return (b"%x\r\n%b\r\n" % (len(data), data) if data else b"") + b"0\r\n\r\n" * self.is_over


class Unchunked(Chunked):
    """A body in chunks, written on without them for a client that knows none: up to the connection's end."""

    header = ()

    def _written(self, data: bytes) -> bytes:
        return data


class Headers:
    """The headers of one head."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._found: list[tuple[bytes, bytes, bytes]] = []
        for line in lines:
            if (header := _HEADER.fullmatch(line)) is None:
                raise Refused(400, "a malformed header")
            self._found.append((header[1].lower(), header[2].strip(b"\t "), header[0]))

    def values(self, name: bytes) -> list[bytes]:
        """Of each header of a name."""
        return [value for one, value, _ in self._found if one == name]

    def body(self, chunked: type[Chunked] = Chunked) -> Body | None:
        """The body that they name; None where they name none."""
        lengths, codings = self.values(b"content-length"), self.values(b"transfer-encoding")
        if len(lengths) + len(codings) > 1:
            raise Refused(400, "more than one header says where the body ends")
        if codings:
            if codings[0].lower() != b"chunked":
                raise Refused(400, "a Transfer-Encoding other than chunked")
            return chunked()
        if lengths and not _LENGTH.fullmatch(lengths[0]):
            raise Refused(400, "a malformed Content-Length")
        return Sized(int(lengths[0])) if lengths else None

    def kept(self) -> list[bytes]:
        """The lines that are meant for the other end."""
        named = {name.strip().lower() for value in self.values(b"connection") for name in value.split(b",")}
        return [line for name, _, line in self._found if name not in _OF_THE_HOP and name not in named]


def parted(head: bytes) -> tuple[bytes, Headers]:
    """The first line of a head, which ends in an empty line, and its headers."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    return first, Headers(lines)


def written(first: list[bytes], headers: Headers, body: Body | None, *last: bytes) -> bytes:
    """A head for the other end; headers of the door's own say where its body ends and whether the connection does."""
    return b"\r\n".join([*first, *headers.kept(), *(body.header if body else ()), *last, b"", b""])
