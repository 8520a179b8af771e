"""Whom sessions run as when the host is root. The host asks too: so this imports nothing."""

from __future__ import annotations

SANDBOX_UID = 61_000
"""An account that owns nothing."""


def is_mapped(uid: int) -> bool:
    """Whether the account exists in this user namespace; in a container of one user it does not."""
    with open("/proc/self/uid_map", encoding="ascii") as table:
        ranges = [[int(word) for word in line.split()] for line in table]
    return any(first <= uid < first + count for first, _, count in ranges)
