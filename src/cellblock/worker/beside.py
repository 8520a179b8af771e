"""Large buffers of a message stay where they are: the host reads them out of this process's memory, in one copy."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterable

from cellblock.values.forms import BESIDE_BYTES, INLINE_BYTES, Buffer
from cellblock.wire.messages import Place

_IN_A_MESSAGE = 32 * 2**20
"""Past which smaller buffers are left out of a message, too."""

_VIEW_WORDS = 20
"""More than a Py_buffer has; the address is its first."""
# prototypes of our own: what a cell sets on those that ctypes keeps does not reach them
_take_view = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)(
    ("PyObject_GetBuffer", ctypes.pythonapi)
)
_give_view = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("PyBuffer_Release", ctypes.pythonapi))


def leave(buffers: tuple[Buffer, ...]) -> tuple[tuple[Buffer, ...], tuple[Place, ...]]:
    """The buffers that go into the message, and the places of those that do not, which are empty in it.

    Whoever calls this keeps them until the host has read them.
    """
    small = sum(len(one) for one in buffers if len(one) < BESIDE_BYTES)
    least = BESIDE_BYTES if small <= _IN_A_MESSAGE else INLINE_BYTES
    places = tuple(place for place in places_of(buffers) if place[2] >= least)
    left = {place[0] for place in places}
    return tuple(b"" if number in left else one for number, one in enumerate(buffers)), places


def reserve(lengths: Iterable[int]) -> tuple[memoryview, ...]:
    """Memory for buffers that the host is to write there."""
    return tuple(_fresh(length) for length in lengths)


def _fresh(length: int) -> memoryview:
    memory = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(memory)


def places_of(buffers: Iterable[Buffer]) -> tuple[Place, ...]:
    """Places of all the buffers."""
    return tuple((number, address_of(one), len(one)) for number, one in enumerate(buffers))


def address_of(buffer: Buffer) -> int:
    """Address of the bytes of an object of the buffer protocol, which stay there as long as it lives."""
    view = (ctypes.c_void_p * _VIEW_WORDS)()
    _take_view(buffer, ctypes.addressof(view), 0)
    address: int | None = view[0]
    _give_view(ctypes.addressof(view))
    return address or 0
