"""Addresses of stored bytes, JSON in its one canonical form, and the links that JSON holds to other objects.

An address is `sha256-` and 64 hex digits, of the bytes before they are compressed. In a record, which is an object
that is JSON, a mapping with the one key "/" links to bytes and one with the one key "@" to another record; its value
is an address or a list of them. Nothing else is followed, so an address that is to be kept stands in a link.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from cellblock.errors import StoreError
from cellblock.text import dumps

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"

CHANGED = "is not what was written there"
_ADDRESS = re.compile(r"sha256-[0-9a-f]{64}")
_BYTES, _RECORD = "/", "@"


class Link(NamedTuple):
    """A reference from a record: to another record, which has links itself, or to bytes."""

    address: str
    to_record: bool


def address_of(data: bytes | memoryview) -> str:
    """The address of some bytes; 0.7 ms for a megabyte."""
    return "sha256-" + hashlib.sha256(data).hexdigest()


def is_address(text: object) -> bool:
    """True if something is spelled as an address."""
    return isinstance(text, str) and _ADDRESS.fullmatch(text) is not None


def digest(address: str) -> bytes:
    """The 32 bytes of an address, as the tables keep it. StoreError: it is none."""
    if not is_address(address):
        raise StoreError(f"{address[:80]!r} is not the address of an object")
    return bytes.fromhex(address[7:])


def spelled(digest: bytes) -> str:
    """The address of 32 bytes."""
    return "sha256-" + digest.hex()


def blobs(*addresses: str) -> dict[str, JSON]:
    """A link to bytes; to several in order, or to none, as a list."""
    return {_BYTES: addresses[0] if len(addresses) == 1 else list(addresses)}


def records(*addresses: str) -> dict[str, JSON]:
    """A link to a record, or to several."""
    return {_RECORD: addresses[0] if len(addresses) == 1 else list(addresses)}


def linked(value: JSON) -> tuple[str, ...]:
    """The addresses of a link. StoreError: the value is none."""
    found = _addresses(value)
    if found is None:
        raise StoreError(f"{str(value)[:80]} is not a link to an object")
    return found


def links(value: JSON) -> Iterator[Link]:
    """Every link in a value, however deep."""
    waiting: list[JSON] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str | int | float | None):  # as most are; the other tests take ten times as long
            continue
        if isinstance(one, Mapping):
            addresses = _addresses(one)
            if addresses is None:
                waiting.extend(one.values())
            else:
                yield from (Link(address, _RECORD in one) for address in addresses)
        elif isinstance(one, Sequence):
            waiting.extend(one)


def canonical(value: JSON) -> bytes:
    """JSON as the same bytes for equal values: keys sorted, no spaces, ASCII. StoreError: not JSON, or not finite."""
    try:
        return dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"a record must be JSON: {error}") from None


def parsed(data: bytes | str) -> JSON:
    """Value of a text that `canonical` wrote. StoreError: it is no JSON."""
    try:
        value: JSON = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"a stored record cannot be read: {error}") from None
    return value


def parsed_mapping(data: bytes | str) -> Mapping[str, JSON]:
    """A mapping that `canonical` wrote. StoreError: something else."""
    value = parsed(data)
    if not isinstance(value, dict):
        raise StoreError(f"a stored record is not a mapping: {str(value)[:40]!r}")
    return value


def summed(value: Mapping[str, JSON], *place: int) -> str:
    """A mapping as a column of a table keeps it: the checksum of its JSON and of the numbers of its row, and the JSON.

    Databases hash nothing, and what is kept here is found by no address.
    """
    line = canonical(value).decode()
    return f"{_checksum(line, place)} {line}"


def unsummed(line: str, *place: int) -> Mapping[str, JSON]:
    """The mapping of a line that `summed` wrote, for the same row. StoreError: it is not what was written."""
    sum, _, rest = line.partition(" ")
    if line.startswith("{"):  # of the first releases
        rest = line
    elif sum != _checksum(rest, place):
        raise StoreError(f"a row of the store {CHANGED}", hint="restore a copy")
    return parsed_mapping(rest)


def _checksum(line: str, place: tuple[int, ...]) -> str:
    return f"{zlib.crc32(f'{place} {line}'.encode()):08x}"


def _addresses(value: JSON) -> tuple[str, ...] | None:
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    ((key, target),) = value.items()
    if key not in (_BYTES, _RECORD):
        return None
    if isinstance(target, str):
        target = [target]
    if not isinstance(target, Sequence):
        return None
    found = tuple(str(one) for one in target)
    return found if all(map(is_address, found)) else None
