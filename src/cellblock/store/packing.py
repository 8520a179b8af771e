"""Objects as they lie in the store: compressed where that saves a tenth, and hashed again when they are read."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from cellblock.errors import StoreDamaged
from cellblock.store.address import address_of

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

RAW, ZSTD = 0, 1
_LEVEL = 1
"""On pickles, arrays and source, level 3 takes a fifth longer and saves no more than a fiftieth."""
_WORTH = 0.9
_SMALL = 128
_SAMPLED = 64 * 1024
_PIECE = 4096


@dataclass(frozen=True, slots=True)
class Packed:
    """One object: its address, how its body is coded (RAW, ZSTD), its length in bytes uncoded, its body.

    `place` is the key under which the body lies outside of the database, "" where it lies inside.
    """

    address: str
    codec: int
    length: int
    body: bytes
    place: str = ""


def pack(address: str, data: bytes | memoryview) -> Packed:
    """Bytes, ready to be stored. 1 to 5 ms for a megabyte that can be compressed, 0.1 ms for one that cannot."""
    if len(data) >= _SMALL and _is_compressible(data):
        body = zstd.compress(data, _LEVEL)
        if len(body) < _WORTH * len(data):
            return Packed(address, ZSTD, len(data), body)
    return Packed(address, RAW, len(data), bytes(data))


def unpack(packed: Packed, most: int) -> bytes:
    """The bytes of an object. StoreDamaged: they are not those that its address names, or more than `most`."""
    if packed.length > most:
        raise StoreDamaged(
            f"object {packed.address} takes {packed.length / 2**20:,.0f} MB, where {most / 2**20:,.0f} are read at most"
            " (ExecutionLimits.max_host_mb)",
            address=packed.address,
        )
    data = _decoded(packed)
    if data is None or len(data) != packed.length or address_of(data) != packed.address:
        raise StoreDamaged(
            f"object {packed.address} is damaged: its bytes are not those that were stored", address=packed.address
        )
    return data


def _decoded(packed: Packed) -> bytes | None:
    if packed.codec == RAW:
        return packed.body
    if packed.codec != ZSTD:
        return None
    try:  # never more than was noted, whatever a damaged frame claims
        data: bytes = zstd.ZstdDecompressor().decompress(packed.body, max_length=packed.length + 1)
    except zstd.ZstdError:
        return None
    return data


def _is_compressible(data: bytes | memoryview) -> bool:
    """Tries four pieces of a large one: most of what does not compress is seen there, at a tenth of the cost."""
    if len(data) < _SAMPLED:
        return True
    step = len(data) // 4
    sample = b"".join(bytes(data[start : start + _PIECE]) for start in range(0, 4 * step, step))
    return len(zstd.compress(sample, _LEVEL)) < _WORTH * len(sample)
