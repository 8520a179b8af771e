"""Large buffers go from one process's memory to the other's, in one copy: the host reads and writes the worker's.

Security border: addresses and lengths come from inside. The kernel takes them in the worker's own memory, so that a
lie reaches nothing else; what is read is data like any other that comes from there. No memory is shared: nothing that
was read changes afterwards, nothing is left that a cell could hold on to.
"""

from __future__ import annotations

import ctypes
import errno
import gzip
import mmap
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from cellblock.executors.protocol import Named
from cellblock.hosting.waiting import ready
from cellblock.values import portable
from cellblock.values.portable import Buffer
from cellblock.wire.messages import Place
from cellblock.worker.beside import address_of
from cellblock.worker.confine.syscalls import prctl, read_memory, write_memory

_AT_LEAST = 2**20
"""So much more than the value's own bytes may be named: the tree that holds it together is a buffer, too."""


def readable(pid: int) -> bool:
    """True if the kernel lets this process read that one's memory: asked by reading where nothing is."""
    try:
        read_memory(pid, 0, ctypes.addressof(ctypes.c_char()), 1)
    except OSError as error:
        return error.errno == errno.EFAULT
    return True


def fetch(event: Named, pid: int, pidfd: int, most: int) -> Named:
    """The event with the buffers that it names by their places; with an `Opaque` instead where they cannot be had."""
    try:
        found = _read_all(event, pid, most)
        _require_alive(pidfd)  # its number may have been another's by then
    except (OSError, MemoryError) as error:
        missing = portable.Opaque("lost", "", f"it could not be read: {error}")
        return replace(event, buffers=portable.pack(portable.encode(missing)), beside=())
    return replace(event, buffers=found, beside=())


def store(places: Sequence[Place], buffers: Sequence[Buffer], pid: int, pidfd: int) -> None:
    """Write buffers to the memory that a worker reserved for them; OSError where it has not so much there, or ended."""
    if [place[2] for place in places] != list(map(len, buffers)):
        raise OSError("other memory than was asked for")
    for (_, address, length), buffer in zip(places, buffers, strict=True):
        source, done = address_of(buffer), 0
        while done < length:
            _require_alive(pidfd)  # its number may be another's since
            done += write_memory(pid, address + done, source + done, length - done)


def store_at(address: int, buffers: Sequence[Buffer], pid: int, pidfd: int) -> None:
    """Write buffers one after the other to a place in a worker's memory; OSError as of `store`."""
    for buffer in buffers:
        store([(0, address, len(buffer))], [buffer], pid, pidfd)
        address += len(buffer)


def _require_alive(pidfd: int) -> None:
    if ready(pidfd):
        raise OSError("its process has ended")


def _read_all(event: Named, pid: int, most: int) -> tuple[Buffer, ...]:
    if sum(length for _, _, length in event.beside) > most + _AT_LEAST:
        raise OSError(f"larger than {most:,} bytes")
    buffers = list(event.buffers)
    for number, address, length in event.beside:
        buffers[number] = _read(pid, address, length)
    return tuple(buffers)


def _read(pid: int, address: int, length: int) -> memoryview:
    """Fresh memory with a copy of the process's; OSError where that has not so much there."""
    if not length:
        return memoryview(b"")
    memory = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    into = (ctypes.c_char * length).from_buffer(memory)
    done = 0
    while done < length:
        done += read_memory(pid, address + done, ctypes.addressof(into) + done, length - done)
    return memoryview(memory)


_PR_GET_MEMORY_MERGE = 68
_MAY_ESTIMATE = (6, 15)
"""From this Linux on a kernel may be built to count large pages as a whole."""
_CONFIGS = ("/proc/config.gz", "/boot/config-{release}", "/usr/lib/modules/{release}/config")
_ESTIMATES = b"CONFIG_NO_PAGE_MAPCOUNT=y"


@cache
def exact_pages() -> bool:
    """Tell whether the kernel's account of a process's pages says which of them another process has too.

    False where it may be an estimate, or where equal pages of processes are merged; and where that is not known."""
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
