"""Security border: requests of a client inside, and answers of servers, from their heads. The rules here allow them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cellblock.executors.door.message import Body, Chunked, Refused, Sized, Unchunked, parted, written
from cellblock.network import Destination, destination

_LINE = re.compile(rb"([A-Z]{1,32}) ([!-~]{1,16384}) HTTP/1\.([01])")
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})((?: [\t\x20-\x7e\x80-\xff]*)?)")
_URL = re.compile(r"http://([^/?#]+)(/[^#]*|\?[^#]*|)")
_CLOSE = b"Connection: close"
_WITHOUT_BODY = (204, 304)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A request: a tunnel to a place, or, with a `head`, that this is sent there and the body after it."""

    destination: Destination
    head: bytes = b""
    body: Body | None = None
    is_old: bool = False
    """The client speaks HTTP/1.0, which knows neither chunks nor interim answers."""
    is_head: bool = False
    """The method is HEAD: the answer has no body, whatever its headers say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A server's answer, as the client gets it; an interim one (1xx) is followed by another."""

    head: bytes
    body: Body
    is_interim: bool


def read(head: bytes) -> Wanted:
    """The request in a head, from its first byte to the empty line; `Refused` says what is wrong with it."""
    if (line := _LINE.fullmatch(head.partition(b"\r\n")[0])) is None:
        raise Refused(400, "not a request that a proxy takes")
    _, headers = parted(head)
    method, target, is_old = line[1].decode(), line[2].decode(), line[3] == b"0"
    if method == "CONNECT":
        return Wanted(destination=_destination(target))
    if (url := _URL.fullmatch(target)) is None:
        raise Refused(400, "a proxy is asked for http://host/path, or to CONNECT to host:port")
    if any(b"websocket" in one.lower() for one in headers.values(b"upgrade")):
        raise Refused(501, "a websocket is opened through a tunnel: the client has to CONNECT first")
    wanted = _destination(url[1] if re.search(r":[0-9]+$", url[1]) else f"{url[1]}:80")
    path = url[2] if url[2].startswith("/") else f"/{url[2]}"
    body = headers.body()
    if is_old and isinstance(body, Chunked):
        raise Refused(400, "HTTP/1.0 has no chunks")
    first = [f"{method} {path} HTTP/1.1".encode(), f"Host: {str(wanted).removesuffix(':80')}".encode()]
    return Wanted(
        destination=wanted,
        head=written(first, headers, body, _CLOSE),
        body=body,
        is_old=is_old,
        is_head=method == "HEAD",
    )


def read_answer(head: bytes, wanted: Wanted) -> Answer:
    """The answer to a request, from its head; `Refused` says what is wrong with it."""
    first, headers = parted(head)
    if (line := _STATUS.fullmatch(first)) is None:
        raise Refused(400, "not HTTP")
    if (status := int(line[1])) == 101:
        raise Refused(400, "it changes the protocol, which nobody asked for")
    is_interim = status < 200
    status_line, last = [b"HTTP/1.1 " + line[1] + line[2]], () if is_interim else (_CLOSE,)
    body = headers.body(Unchunked if wanted.is_old else Chunked)
    if is_interim or wanted.is_head or status in _WITHOUT_BODY:
        told = None if isinstance(body, Chunked) else body  # some clients wait for chunks where a header says so
        return Answer(head=written(status_line, headers, told, *last), body=Sized(0), is_interim=is_interim)
    return Answer(head=written(status_line, headers, body, *last), body=body or Body(), is_interim=False)


def _destination(text: str) -> Destination:
    try:
        return destination(text)
    except ValueError as error:
        raise Refused(400, f"no destination: {error}") from None
