"""Hosts and ports that a session may connect to, and its traffic."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

PORT = 3128
"""Port of a session's door on its own loopback."""

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_MOST_NAME, _MOST_LABEL, _MOST_PORT = 253, 63, 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """A host and a port. `host` is a name in lower case without a final dot, or, where it `is_address`, an address."""

    host: str
    port: int
    is_address: bool

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Traffic through a session's door: connections made and refused, and bytes in each direction."""

    connections: int = 0
    connections_refused: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0

    def since(self, before: Traffic) -> Traffic:
        """Difference to an older count."""
        return Traffic(
            connections=self.connections - before.connections,
            connections_refused=self.connections_refused - before.connections_refused,
            sent_bytes=self.sent_bytes - before.sent_bytes,
            received_bytes=self.received_bytes - before.received_bytes,
        )


def destinations(listed: Iterable[str]) -> tuple[Destination, ...]:
    """Destinations that `network=` lists, each "host:port" or "[address]:port"; ValueError names one that is not."""
    if isinstance(listed, str) or not isinstance(listed, Iterable):
        raise TypeError(f'network is a list of "host:port", not {listed!a:.100}')
    found: dict[Destination, None] = {}
    for one in listed:
        if not isinstance(one, str):
            raise TypeError(f'network is a list of "host:port", not of {one!r:.100}')
        try:
            found[destination(one)] = None
        except ValueError as error:
            raise ValueError(f"network: {one!r:.300} is not a destination: {error}") from None
    return tuple(found)


def destination(text: str) -> Destination:
    """A place from its text. ValueError says what is wrong with it."""
    if "://" in text:
        raise ValueError('write the host and its port alone, as "pypi.org:443"')
    host, colon, digits = text.rpartition(":")
    if not colon or not (digits.isascii() and digits.isdigit()) or len(digits) > 5:
        raise ValueError('write it with its port, as "pypi.org:443"')
    if not 0 < (port := int(digits)) <= _MOST_PORT:
        raise ValueError(f"{digits} is no port")
    if host.startswith("[") and host.endswith("]"):
        return _address(host[1:-1], port, version=6)
    if ":" in host:
        raise ValueError('write an IPv6 address in brackets, as "[2001:db8::1]:443"')
    name = host.removesuffix(".").lower()
    last = name.rpartition(".")[2]
    if _NUMBER.fullmatch(last):  # what C libraries take for an address, in whatever base, is one
        return _address(name, port, version=4)
    if not name.isascii():
        name = _in_ascii(name)
    if "*" in name:
        raise ValueError("there are no patterns: list each host")
    if len(name) > _MOST_NAME or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        raise ValueError("its host is no name")
    if any(len(label) > _MOST_LABEL for label in name.split(".")):
        raise ValueError("its host is no name: a part of it is too long")
    return Destination(host=name, port=port, is_address=False)


def _address(text: str, port: int, *, version: int) -> Destination:
    from ipaddress import ip_address  # sessions that list none open sooner

    try:
        address = ip_address(text)
    except ValueError:
        raise ValueError("its host is no address") from None
    if address.version != version or "%" in text:
        raise ValueError("its host is no address")
    return Destination(host=address.compressed, port=port, is_address=True)


def _in_ascii(name: str) -> str:
    try:
        return name.encode("idna").decode("ascii").lower()
    except UnicodeError:
        raise ValueError("its host is no name") from None
