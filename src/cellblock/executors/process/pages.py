"""Whether this kernel's account of a process's pages tells exactly which of them another process has too."""

from __future__ import annotations

import errno
import gzip
import os
from functools import cache

from cellblock.worker.confine.syscalls import prctl

_PR_GET_MEMORY_MERGE = 68
_MAY_ESTIMATE = (6, 15)
"""From this Linux on a kernel may be built to count large pages as a whole."""
_CONFIGS = ("/proc/config.gz", "/boot/config-{release}", "/usr/lib/modules/{release}/config")
_ESTIMATES = b"CONFIG_NO_PAGE_MAPCOUNT=y"


@cache
def exact() -> bool:
    """False where it may be an estimate, or where equal pages of processes are merged; and where that is not known."""
    return not _merges() and (_version() < _MAY_ESTIMATE or _is_built_exact())


def _merges() -> bool:
    try:
        return prctl(_PR_GET_MEMORY_MERGE) != 0
    except OSError as error:
        return error.errno != errno.EINVAL  # a kernel that cannot


def _version() -> tuple[int, int]:
    try:
        major, minor = os.uname().release.split(".")[:2]
        return int(major), int("".join(one for one in minor if one.isdigit()) or 0)
    except ValueError:
        return _MAY_ESTIMATE


def _is_built_exact() -> bool:
    for place in _CONFIGS:
        try:
            with open(place.format(release=os.uname().release), "rb") as file:
                data = file.read()
            return _ESTIMATES not in (gzip.decompress(data) if place.endswith(".gz") else data).splitlines()
        except (OSError, EOFError):
            continue
    return False
