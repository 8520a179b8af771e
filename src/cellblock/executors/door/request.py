"""Security border: what a client inside asks the door for, read from its bytes. What no rule here allows is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cellblock.network import Destination, destination

MAX_HEAD = 32 * 1024
"""Bytes of a request's line and headers."""

_LINE = re.compile(rb"([A-Z]{1,32}) ([!-~]{1,16384}) HTTP/1\.[01]")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}):([\t\x20-\x7e\x80-\xff]*)")
_URL = re.compile(r"http://([^/?#]+)(/[^#]*|\?[^#]*|)")
_OF_THE_HOP = frozenset(
    (b"connection", b"host", b"keep-alive", b"proxy-authorization", b"proxy-connection", b"te", b"upgrade")
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is asked for: a tunnel to a place, or, with a `head`, that this is sent there and what follows it."""

    destination: Destination
    head: bytes = b""


def read(head: bytes) -> Wanted:
    """What a head asks for, from its first byte to the empty line; `Refused` says what is wrong with it."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    if (line := _LINE.fullmatch(first)) is None:
        raise Refused(400, "not a request that a proxy takes")
    headers = [_HEADER.fullmatch(one) for one in lines]
    if None in headers:
        raise Refused(400, "a malformed header")
    method, target = line[1].decode(), line[2].decode()
    if method == "CONNECT":
        return Wanted(destination=_destination(target))
    if (url := _URL.fullmatch(target)) is None:
        raise Refused(400, "a proxy is asked for http://host/path, or to CONNECT to host:port")
    authority = url[1] if re.search(r":[0-9]+$", url[1]) else f"{url[1]}:80"
    wanted = _destination(authority)
    path = url[2] if url[2].startswith("/") else f"/{url[2]}"
    kept = [one[0] for one in headers if one is not None and one[1].lower() not in _OF_THE_HOP]
    host = str(wanted).removesuffix(":80")
    sent = [f"{method} {path} HTTP/1.1".encode(), f"Host: {host}".encode(), *kept, b"Connection: close", b"", b""]
    return Wanted(destination=wanted, head=b"\r\n".join(sent))


def _destination(text: str) -> Destination:
    try:
        return destination(text)
    except ValueError as error:
        raise Refused(400, f"no destination: {error}") from None
