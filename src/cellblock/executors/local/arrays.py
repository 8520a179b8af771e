"""Memory of numpy's arrays in threads that run cells: filled with zeros, and bounded by what the session may take.

numpy asks a handler of the context for the memory of every array (NEP 49), so this is one for the results of all its
functions and operators, and for the tables that pandas makes of them. Memory that another part of the program gave back
is not shown. It costs an array about 2 µs.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

from cellblock.guard.signals import whole

_GET, _SET = 305, 304
"""Where numpy's table of C functions has those that give and set the handler, from 1.22 on."""
_NAME = b"mem_handler"
_pointer, _size = ctypes.c_void_p, ctypes.c_size_t
_MALLOC = ctypes.PYFUNCTYPE(_pointer, _pointer, _size)
_CALLOC = ctypes.PYFUNCTYPE(_pointer, _pointer, _size, _size)
_REALLOC = ctypes.PYFUNCTYPE(_pointer, _pointer, _pointer, _size)
_address_in = ctypes.PYFUNCTYPE(_pointer, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, _pointer, ctypes.c_char_p, _pointer)(("PyCapsule_New", ctypes.pythonapi))


class _Handler(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        *((name, _pointer) for name in ("context", "malloc", "calloc", "realloc", "free")),
    )


class _Memory:
    """The handler, one for the process: arrays outlive sessions, and know by which handler they are freed."""

    def __init__(self, most: Callable[[], int]) -> None:
        """`most` gives how many bytes an array of the calling thread may have."""
        core = sys.modules.get("numpy._core._multiarray_umath") or sys.modules["numpy.core._multiarray_umath"]
        table = ctypes.cast(_address_in(core._ARRAY_API, None), ctypes.POINTER(_pointer))
        self._set = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET])
        given = ctypes.PYFUNCTYPE(ctypes.py_object)(table[_GET])()
        self._real = _Handler.from_address(_address_in(given, _NAME))
        self._own = _Handler.from_buffer_copy(self._real)
        self._own.name = b"cellblock"
        calloc, realloc = _CALLOC(self._real.calloc), _REALLOC(self._real.realloc)

        @whole
        def zeroed(context: int, size: int) -> int | None:
            return calloc(context, 1, size) if size <= most() else None

        @whole
        def zeroed_items(context: int, count: int, size: int) -> int | None:
            return calloc(context, count, size) if count * size <= most() else None

        @whole
        def resized(context: int, address: int, size: int) -> int | None:
            return realloc(context, address, size) if size <= most() else None

        self._checked = (_MALLOC(zeroed), _CALLOC(zeroed_items), _REALLOC(resized))
        self._capsule = _capsule(ctypes.addressof(self._own), _NAME, None)
        self._ending: set[int] = set()

    def take(self) -> None:
        """Have it asked for arrays that this thread makes from now on."""
        self._set(self._capsule)

    def check(self, thread: int, *, ending: bool) -> None:
        (self._ending.add if ending else self._ending.discard)(thread)
        for name, checked in zip(("malloc", "calloc", "realloc"), self._checked, strict=True):
            address = getattr(self._real, name) if self._ending else ctypes.cast(checked, _pointer).value
            setattr(self._own, name, address)


_memory: _Memory | None = None


def bound(most: Callable[[], int]) -> None:
    """Bound the arrays that this thread makes by what `most` gives when it is called in it."""
    global _memory
    if _memory is None:
        _memory = _Memory(most)
        _memory.check(0, ending=False)
    _memory.take()


def check(thread: int, *, ending: bool) -> None:
    """Ask `most` for each array, but while the cell of a thread is being ended: what ends it would be lost in there."""
    if _memory is not None:
        _memory.check(thread, ending=ending)
