"""Arrays of NumPy: their memory beside the stream; views of one memory stay views of it.

What is here is looked up by the type's name: nothing imports NumPy but a cell.
"""

from __future__ import annotations

import array
import sys
from collections.abc import Callable
from typing import Any

from cellblock.worker.saving import building
from cellblock.worker.saving.losses import Unsaved
from cellblock.worker.saving.memory import address_of
from cellblock.worker.saving.pickler import STAND_INS, Reduced, Saving, named, named_family

_BESIDE = 2**16
"""Arrays from this size on lie beside the stream."""
_EXPORTERS = (bytes, bytearray, array.array)


class _Sample:
    def __init__(self) -> None:
        self.base = object()


def _base_of(value: Any) -> Any:
    """Whose memory an array shows: `as_strided` puts an object of its own between the two."""
    base = value.base
    return base.base if type(base).__name__ == "DummyArray" else base


def _references(value: Any) -> int:
    """How often the base of an array is referred to, as this function sees it."""
    base = _base_of(value)
    return sys.getrefcount(base)


_ONE = _references(_Sample())


@named("numpy.ndarray")
def _array(saving: Saving, value: Any) -> Reduced:
    root = _root(value)
    most = 2 * value.nbytes >= root.nbytes  # so that views that come and go elsewhere change nothing
    if root is not value and (most or _is_shared(value) or _is_mapped(root)):
        return _view_of, _place(value, root, root.ctypes.data)
    exporter = root.base.obj if type(root.base) is memoryview else root.base
    if type(exporter) in _EXPORTERS and not (type(exporter) is bytes and root.flags.writeable):  # unpickling owns those
        return _view_of, _place(value, exporter, address_of(exporter))
    if value.dtype.hasobject:
        return NotImplemented
    order = "C" if value.flags.c_contiguous else "F" if value.flags.f_contiguous else None
    kept = order is not None
    if order is None:
        value, order = value.copy("C"), "C"
    writeable = bool(value.flags.writeable)
    made = (_kind(value.dtype), value.shape, order, writeable)
    if value.nbytes < _BESIDE:
        return building.small_array, (value.tobytes(order), *made)
    return STAND_INS["array"], (saving.buffer(flat(value), value if kept else None), *made)


@named("numpy.ma.MaskedArray")
def _masked(_: Saving, value: Any) -> Reduced:
    value.fill_value  # noqa: B018  # it is worked out when it is first asked for, and by loading
    return NotImplemented


@named("numpy.memmap")
def _mapped(saving: Saving, value: Any) -> Reduced:
    mode = getattr(value, "mode", None)
    if type(value.base) is type(value):
        root = _root(value)
        return building.mapped_part, _place(value, root, root.ctypes.data)
    if value.filename is None:
        return _array(saving, value)
    if mode == "c":
        raise Unsaved(value, "an array mapped for this process alone", "keep a copy of it")
    order = "C" if value.flags.c_contiguous else "F"
    mode = "r" if mode == "r" else "r+"
    return building.mapped, (str(value.filename), _kind(value.dtype), mode, value.offset, value.shape, order)


@named_family("numpy.dtype")
def _dtype(_: Saving, value: Any) -> Reduced:
    kind = _kind(value)
    return (sys.modules["numpy"].dtype, (kind,)) if type(kind) is str else NotImplemented


def _kind(dtype: Any) -> Any:
    """A type of numbers or texts by its text: several objects may be of one, and loading makes others the same."""
    plain = dtype.char in _PLAIN and dtype.metadata is None
    return sys.intern(dtype.str) if plain else dtype


_PLAIN = "?bhilqBHILQefdgFDGmMSUO"
"""The characters of types that their text tells whole."""


def _root(value: Any) -> Any:
    """The array that a view is part of, one that is mapped from a file included."""
    root = value
    while type(base := _base_of(root)) is type(value) or _is_mapped(base):
        root = base
    return root


def _is_shared(value: Any) -> bool:
    """Whether anything else holds what this array is a part of, or what that is a part of."""
    while type(base := _base_of(value)) is type(value):
        del base  # it would count
        if _references(value) > _ONE:
            return True
        value = _base_of(value)
    return False


def _is_mapped(value: Any) -> bool:
    mapped = getattr(sys.modules.get("numpy"), "memmap", None)
    return mapped is not None and type(value) is mapped


@named("numpy.ufunc")
def _ufunc(_: Saving, value: Any) -> Reduced:
    numpy: Any = sys.modules["numpy"]
    if getattr(numpy, value.__name__, None) is value:
        return NotImplemented
    modules: dict[str, Any] = dict(sys.modules)
    for name, held in modules.items():
        if name.startswith("scipy.") and vars(held).get(value.__name__) is value:
            return building.attribute, (name, value.__name__)
    raise Unsaved(value, "a function that numpy made of another", "make it again with numpy.frompyfunc")


@named("numpy.finfo", "numpy.iinfo")
def _limits(_: Saving, value: Any) -> Reduced:
    return type(value), (value.dtype,)


def _place(value: Any, whole: Any, start: int) -> tuple[Any, ...]:
    offset = value.ctypes.data - start if value.size else 0
    return whole, _kind(value.dtype), value.shape, value.strides, offset, bool(value.flags.writeable)


_view_of = building.array_view


def flat(value: Any) -> Any:
    """The bytes of a contiguous array, in the order of its memory."""
    numpy: Any = sys.modules["numpy"]
    return memoryview(value.reshape(-1, order="A").view(numpy.uint8)) if value.nbytes else memoryview(b"")


def read(made: tuple[Any, ...], fill: Callable[[Any], None]) -> Any:
    """An array of its own memory, filled from a buffer."""
    kind, shape, order, writeable = made
    numpy: Any = building.module("numpy")
    found = numpy.empty(shape, kind, order)
    fill(flat(found))
    found.flags.writeable = writeable
    return found
