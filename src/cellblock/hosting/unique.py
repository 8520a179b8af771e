"""Bytes and words that never come twice, where a program has replaced its random generators too, as tests do.

Those of one process differ by a count, and those of two processes by the kernel's random bytes.
"""

from __future__ import annotations

from itertools import count

try:
    from posix import urandom  # the one in `os` may be replaced by the time this is imported
except ImportError:
    from os import urandom

_count = count()


def unique_bytes(size: int) -> bytes:
    """So many bytes, which nobody can guess."""
    return ((int.from_bytes(urandom(size)) + next(_count)) % (1 << 8 * size)).to_bytes(size)


def unique_word(size: int = 8) -> str:
    """The hex digits of so many bytes."""
    return unique_bytes(size).hex()
