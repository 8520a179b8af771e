"""Memory written since an earlier frozen copy, by the kernel's own account of pages.

A private page that this process shares with another has not been written since it came to be shared: a write would have
made a page of its own. What it is shared with is the newest copy, as long as nobody else was forked meanwhile and lives
on: a *sentinel*, a page that is written right after each copy, tells that, as it would be shared then too. So what is
looked at right before a copy is made tells what was written since the one before; what is not known counts as written:

- pages that are not there, of files, or of zeros that nobody has written (a page given back and read again is one);
- everything, where there were other threads, which may write between the look and the copy;
- everything, where a process that was forked since lives on; in a copy that was woken, once.

The host says whether the kernel counts exactly, page by page, and merges no equal pages. Needs Linux 6.7.
"""

from __future__ import annotations

import array
import contextlib
import errno
import fcntl
import mmap
import os
import struct
from bisect import bisect_right
from collections.abc import Callable

from cellblock.worker.beside import address_of

_PAGE = mmap.PAGESIZE
_LEAST_BYTES = 2**20
"""Of mappings: what is smaller is not looked at."""
_ENTRY_BYTES = 8
_UNWRITTEN = 0x80
"""The upper byte of a page's entry: it is there, anonymous, and not this process's alone."""
_ALONE = 0x81
_SCAN = 0xC0606610
_SCAN_ARGUMENT = struct.Struct("=12Q")
_ZERO = 1 << 5
_MOST_RANGES = 1024
_MOST_COPIES = 16
_TAG_BYTES = 8

Range = tuple[int, int, bytes]
"""From, to, and a byte for each page."""
Unchanged = Callable[[int, int], bool]


class Written:
    """Of one process and the copies of it. Does nothing until it is switched on."""

    __slots__ = ("_is_on", "_looks", "_pages", "_regions", "_sentinel")

    def __init__(self) -> None:
        self._is_on = False
        self._looks: list[tuple[bytes, list[Range] | None]] = []
        """For each copy, oldest first, its tag and what was unwritten since the one before; None for all written."""
        self._pages = -1
        self._regions: list[tuple[int, int]] = []
        self._sentinel = mmap.mmap(-1, _PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def begin(self) -> None:
        """Look before each copy from now on."""
        self._is_on = True

    def prepare(self) -> None:
        """Before a copy, and before this process hides for it: then it could not look at itself any more."""
        if self._is_on:
            with contextlib.suppress(OSError):  # no /proc on this host, or it hides for good
                self._regions = _regions()
                self._pages = os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC)

    def look(self, *, alone: bool) -> None:
        """Right before a copy is made. `alone`: this process has one thread, and no signal is handled."""
        if not self._is_on:
            return
        pages, self._pages = self._pages, -1
        tag = os.urandom(_TAG_BYTES)
        found = None
        if pages >= 0:
            try:
                found = self._unwritten(pages) if alone else None
            finally:
                os.close(pages)
        self._looks = [*self._looks[-_MOST_COPIES + 1 :], (tag, found)]

    def mark(self) -> None:
        """Right after a copy was made, in the process that goes on."""
        if self._is_on:
            self._sentinel[0] = (self._sentinel[0] + 1) % 256

    @property
    def tag(self) -> bytes:
        """Stands for the newest copy, or what that is now; b"" where nothing is looked at."""
        return self._looks[-1][0] if self._looks else b""

    def since(self, tag: bytes) -> Unchanged:
        """Ranges of memory that are as they were in an older copy that this process came from."""
        tags = [one for one, _ in self._looks]
        if tag not in tags:
            return _never
        looks = [found for _, found in self._looks[tags.index(tag) + 1 :]]
        ranges = [found for found in looks if found is not None]
        if len(ranges) < len(looks):
            return _never
        starts = [[start for start, _, _ in one] for one in ranges]
        return lambda start, end: all(map(_is_unwritten, ranges, starts, [start] * len(looks), [end] * len(looks)))

    def _unwritten(self, pages: int) -> list[Range] | None:
        try:
            zeros = [_zeros(pages, start, end) for start, end in self._regions]
            found = [(start, end, _uppers(pages, start, end)) for start, end in self._regions]
            place = address_of(memoryview(self._sentinel))
            sentinel = _uppers(pages, place, place + _PAGE)
        except OSError as error:
            if error.errno not in (errno.ENOTTY, errno.EINVAL, errno.EPERM):
                raise
            self._is_on = False  # the kernel cannot tell
            return None
        if sentinel != bytes((_ALONE,)):
            return None
        return [_without(one, blank) for one, blank in zip(found, zeros, strict=True) if blank is not None]


def _regions() -> list[tuple[int, int]]:
    """Private, anonymous, writable mappings of some size."""
    found = []
    with open("/proc/self/maps", "rb") as maps:
        for line in maps:
            place, rights, _, _, inode, *name = line.split(None, 5)
            if rights == b"rw-p" and inode == b"0" and (not name or name[0].startswith((b"[heap]", b"[anon"))):
                start, end = (int(one, 16) for one in place.split(b"-"))
                if end - start >= _LEAST_BYTES:
                    found.append((start, end))
    return found


def _uppers(pages: int, start: int, end: int) -> bytes:
    """The upper byte of each page's entry."""
    count = (end - start) // _PAGE
    data = os.pread(pages, count * _ENTRY_BYTES, start // _PAGE * _ENTRY_BYTES)
    while len(data) < count * _ENTRY_BYTES:
        more = os.pread(pages, count * _ENTRY_BYTES - len(data), start // _PAGE * _ENTRY_BYTES + len(data))
        if not more:
            raise OSError(errno.EINVAL, "a short account of pages")
        data += more
    return data[_ENTRY_BYTES - 1 :: _ENTRY_BYTES]


def _zeros(pages: int, start: int, end: int) -> list[tuple[int, int]] | None:
    """Ranges where the kernel's page of zeros is mapped; None where that is in more places than are looked at."""
    ranges = array.array("Q", bytes(3 * _ENTRY_BYTES * _MOST_RANGES))
    place, _ = ranges.buffer_info()
    size = _SCAN_ARGUMENT.size
    argument = bytearray(_SCAN_ARGUMENT.pack(size, 0, start, end, 0, place, _MOST_RANGES, 0, 0, _ZERO, 0, _ZERO))
    count = fcntl.ioctl(pages, _SCAN, argument)
    if count >= _MOST_RANGES:
        return None
    return [(ranges[3 * one], ranges[3 * one + 1]) for one in range(count)]


def _without(one: Range, zeros: list[tuple[int, int]]) -> Range:
    start, end, uppers = one
    if not zeros:
        return one
    changed = bytearray(uppers)
    for first, last in zeros:
        changed[(first - start) // _PAGE : (last - start) // _PAGE] = bytes((last - first) // _PAGE)
    return start, end, bytes(changed)


def _is_unwritten(ranges: list[Range], starts: list[int], start: int, end: int) -> bool:
    place = bisect_right(starts, start) - 1
    if place < 0 or end > ranges[place][1]:
        return False
    base, _, uppers = ranges[place]
    pages = uppers[(start - base) // _PAGE : (end - base + _PAGE - 1) // _PAGE]
    return pages.count(_UNWRITTEN) == len(pages)


def _never(_start: int, _end: int) -> bool:
    return False
