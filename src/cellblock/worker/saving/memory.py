"""Addresses of memory that an object shows to others."""

from __future__ import annotations

import ctypes
from typing import Any


class _View(ctypes.Structure):
    """`Py_buffer` of the interpreter's."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


_get = ctypes.pythonapi.PyObject_GetBuffer
_get.argtypes, _get.restype = (ctypes.py_object, ctypes.POINTER(_View), ctypes.c_int), ctypes.c_int
_release = ctypes.pythonapi.PyBuffer_Release
_release.argtypes, _release.restype = (ctypes.POINTER(_View),), None
_STRIDED = 0x0018  # PyBUF_STRIDES


def address_of(exporter: Any) -> int:
    """Address of the first byte that an object shows."""
    view = _View()
    _get(exporter, ctypes.byref(view), _STRIDED)
    try:
        return int(view.buf or 0)
    finally:
        _release(ctypes.byref(view))
