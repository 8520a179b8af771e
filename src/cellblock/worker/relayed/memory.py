"""Memory left in a container whose own kernel tells, and the process that holds most."""

from __future__ import annotations

import os

_LEAST_BYTES = 512 * 2**20
"""Memory that can be filled between two looks, with what that kernel takes for itself untold."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Room:
    """Of a container that was given so many bytes.

    Its kernel says so itself where it has one of its own, and counts each page once. The host's tells of the whole
    machine: then nothing is known, and at the limit that kernel kills a process.
    """

    def __init__(self, given_bytes: int) -> None:
        self._given = given_bytes

    @property
    def known(self) -> bool:
        """True if this kernel is the container's own."""
        return _told()[0] <= self._given

    def want(self) -> str:
        """Description of what is held where little is left; else ""."""
        total, left = _told()
        if total > self._given or left >= _LEAST_BYTES:
            return ""
        return f"{(total - left) >> 20} MB, nearly all that its container has"


def resident(process: int) -> int:
    """Bytes of memory that a process has; 0 if it is gone."""
    try:
        with open(f"/proc/{process}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except OSError:
        return 0


def _told() -> tuple[int, int]:
    fields = {}
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            name, _, value = line.partition(":")
            fields[name] = int(value.split()[0]) * 1024
    return fields["MemTotal"], fields.get("MemAvailable", fields["MemFree"])
