"""A case: byte strings that a reader gets one after the other."""

from __future__ import annotations

import base64

Case = tuple[bytes, ...]


def size(case: Case) -> int:
    """Bytes that a reader is given."""
    return sum(map(len, case)) + len(case)


def to_word(target: str, case: Case) -> str:
    """A target's name and a case as one word of a command line."""
    return ",".join([target, *(base64.b64encode(part).decode() for part in case)])


def from_word(word: str) -> tuple[str, Case]:
    """The target's name and the case that `to_word` wrote."""
    target, *parts = word.strip().split(",")
    return target, tuple(map(base64.b64decode, parts))
