"""Facts of objects, classes and modules, read past their own code: nothing here raises what a cell's code raises."""

from __future__ import annotations

import ctypes
import marshal
from collections.abc import Callable, Mapping
from types import CodeType, ModuleType
from typing import Any

_Read = Callable[[Any], Any]
_MOST = 1000
"""Characters of one text in a record."""
_fields: Any = type.__dict__
_of_modules: Any = ModuleType.__dict__
module_of: _Read = _fields["__module__"].__get__
"""Reads the module that a class tells: of cells' classes it may be anything."""
name_of: _Read = _fields["__name__"].__get__
qualname_of: _Read = _fields["__qualname__"].__get__
mro_of: _Read = _fields["__mro__"].__get__
flags_of: _Read = _fields["__flags__"].__get__
attributes_of: Callable[[Any], Mapping[str, Any]] = _fields["__dict__"].__get__
"""A view of what a class holds itself."""
_links_of: tuple[_Read, ...] = tuple(vars(BaseException)[name].__get__ for name in ("__cause__", "__context__"))
names_in: Callable[[Any], dict[str, Any]] = _of_modules["__dict__"].__get__
"""The dictionary that is the namespace of a module."""


def is_a(value: object, *kinds: type) -> bool:
    """True if a value is of one of these classes, none of which has a metaclass, whatever it tells of its class."""
    return issubclass(type(value), kinds)


def is_heap(kind: type) -> bool:
    """True if a class was made as a `class` statement makes one: no part of an extension, which may hold more."""
    return bool(flags_of(kind) & (HEAP | _IMMUTABLE) == HEAP)


HEAP, _IMMUTABLE = 1 << 9, 1 << 8
"""Flags of types: made as the program runs; never changed."""


def full_name(kind: type) -> str:
    """The module and the qualified name of a class."""
    module = module_of(kind)
    return f"{module}.{qualname_of(kind)}" if type(module) is str else str(qualname_of(kind))


def own_attributes(value: Any) -> dict[Any, Any] | None:
    """The dictionary of an object's attributes, None where it has none."""
    found = space_of(value)
    return found if type(found) is dict else None


def space_of(value: Any) -> dict[Any, Any] | None:
    """The same, of a class derived from `dict` too, whose methods may be a cell's code."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except BaseException:  # a property of the class's
        return None
    return found if is_a(found, dict) else None


def storable(name: str) -> bool:
    """True if a name can be a key of a record as it is: it is UTF-8, of some length, without NUL."""
    return len(name) <= _MOST and sayable(name) == name


def sayable(text: str) -> str:
    """A text as a record can hold it: lone surrogates and NUL escaped, and only so much of it."""
    return text[:_MOST].encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")[:_MOST]


def causes(error: BaseException) -> list[BaseException]:
    """An error and those that it came from, read past its class."""
    found = [error]
    for one in found:
        links = (read(one) for read in _links_of)
        found += [link for link in links if link is not None and not any(link is known for known in found)]
    return found


def told(error: BaseException) -> str:
    """The type and the message of an error, whose text may be a cell's code."""
    try:
        text = str.__str__(str(error))
    except BaseException:
        text = ""
    kind = qualname_of(type(error))
    return (f"{kind}: {text}" if text else str(kind))[:500]


def marshalled(code: CodeType) -> bytes:
    """Code as bytes, in the newest format that writes equal code equally, whoever else refers to its parts."""
    return marshal.dumps(code, 2)


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
