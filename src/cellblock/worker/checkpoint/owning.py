"""Shared mappings of this process: put in memory of its own for a branch, or found without their files."""

from __future__ import annotations

import ctypes
import os
import re

from cellblock.worker.confine.syscalls import map_anonymous, protect, remap, write_from

_MAPPING = re.compile(rb"(\S+) (\S+) \S+ (\S+) (\d+) *(.*)")
_STEP = 4096
_GONE = b" (deleted)"
_OF_NO_CELL = re.compile(r"/tmp/ffi|.*/shm/sem\.")
"""Code that libffi makes, and semaphores."""
_told: set[bytes] = set()


def make_own(device: int) -> list[str]:
    """Put private memory of the same contents in the place of what this process has mapped to be shared, or of files on
    a device; the paths of files. Such as is not to be had with the memory there is ends the branch.
    """
    found = []
    for match in _mappings():
        start, end = (int(one, 16) for one in match[1].split(b"-"))
        if _is_on(device, match) or (match[2][3:] == b"s" and not _is_read_only(match[5])):
            _copy(start, end - start, match[2])
            found.append(os.fsdecode(match[5]))
    return list(dict.fromkeys(found))


def nameless(device: int) -> list[str]:
    """The paths of files of a device that are mapped to be shared and are not there any more. Each is told once."""
    try:
        mapped = [match for match in _mappings() if match[2][3:] == b"s" and _is_on(device, match)]
    except OSError:  # no /proc on this host
        return []
    gone = {match[4]: os.fsdecode(match[5].removesuffix(_GONE)) for match in mapped if match[5].endswith(_GONE)}
    new = [path for inode, path in gone.items() if inode not in _told and not _OF_NO_CELL.match(path)]
    _told.update(gone)
    return new


def _mappings() -> list[re.Match[bytes]]:
    with open("/proc/self/maps", "rb") as file:
        return list(filter(None, map(_MAPPING.match, file.read().splitlines())))


def _is_on(device: int, mapping: re.Match[bytes]) -> bool:
    major, minor = (int(one, 16) for one in mapping[3].split(b":"))
    return mapping[4] != b"0" and os.makedev(major, minor) == device


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
