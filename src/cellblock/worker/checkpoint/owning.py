"""Has this process keep as memory of its own what it has mapped of what others have too."""

from __future__ import annotations

import ctypes
import os
import re

from cellblock.worker.confine.syscalls import map_anonymous, protect, remap, write_from

_MAPPING = re.compile(rb"(\S+) (\S+) \S+ (\S+) (\d+) *(.*)")
_STEP = 4096


def make_own(device: int) -> list[str]:
    """Put private memory of the same contents in the place of what this process has mapped to be shared, or of files on
    a device; the paths of files. Such as is not to be had with the memory there is ends the branch.
    """
    found = []
    with open("/proc/self/maps", "rb") as file:
        lines = file.read().splitlines()
    for line in lines:
        match = _MAPPING.match(line)
        if match is None:
            continue
        start, end = (int(one, 16) for one in match[1].split(b"-"))
        major, minor = (int(one, 16) for one in match[3].split(b":"))
        own = match[4] != b"0" and os.makedev(major, minor) == device
        if own or (match[2][3:] == b"s" and not _is_read_only(match[5])):
            _copy(start, end - start, match[2])
            found.append(os.fsdecode(match[5]))
    return list(dict.fromkeys(found))


def _is_read_only(path: bytes) -> bool:
    """True if it is a file that nobody inside can write to, by a descriptor or through memory."""
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _copy(start: int, size: int, rights: bytes) -> None:
    new = map_anonymous(size)
    if rights[:1] == b"r":
        outlet, inlet = os.pipe()
        for place in range(0, size, _STEP):
            try:
                count = write_from(inlet, start + place, min(_STEP, size - place))
            except OSError:  # past the end of its file
                continue
            data = os.read(outlet, count)
            ctypes.memmove(new + place, data, count)
        os.close(outlet)
        os.close(inlet)
    protect(new, size, sum(bit for bit, letter in ((1, b"r"), (2, b"w"), (4, b"x")) if letter in rights[:3]))
    remap(new, size, start)
