"""A clock that all processes of one machine share and nobody sets, told in seconds since 1970.

It is the monotonic one, and where that began, as the first process that asked since the machine started reckoned it.
"""

from __future__ import annotations

import os
import time
from functools import cache
from pathlib import Path

from cellblock.errors import StoreError
from cellblock.store.address import summed, unsummed

_LATEST_MS = 2**53


@cache
def boot() -> str:
    """Name of the time since this machine started; "" where it hides that."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (FileNotFoundError, PermissionError):
        return ""


@cache
def namespace(kind: str) -> str:
    """The namespace of this process: `pid`, in which pids mean what they say, or `time`, whose monotonic clock is one;
    containers of one kernel may have one each. "" where it cannot be told.
    """
    try:
        return os.readlink(f"/proc/self/ns/{kind}")
    except OSError:
        return ""


def beginning() -> float:
    """When the monotonic clock began, by the wall clock as it is set now."""
    return time.time() - time.monotonic()


def as_text(began: float) -> str:
    """The beginning of this process's monotonic clock as the tables keep it; "" where it cannot be told from others."""
    return summed({"boot": boot(), "clock": namespace("time"), "began_ms": round(began * 1000)}) if boot() else ""


def from_text(text: str) -> float | None:
    """Beginning of this process's monotonic clock in a text that `as_text` wrote; None: it is another one's."""
    try:
        found = unsummed(text)
    except StoreError:
        return None
    began = found.get("began_ms")
    if (found.get("boot"), found.get("clock")) != (boot(), namespace("time")) or type(began) is not int:
        return None
    return began / 1000 if 0 <= began < _LATEST_MS else None
