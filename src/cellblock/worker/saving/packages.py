"""Objects of NumPy, pandas, Matplotlib and PyTorch. Types are looked up by name: nothing imports a package but a cell.

The memory of arrays lies beside the stream; views of one memory stay views of it.
"""

from __future__ import annotations

import array
import copyreg
import ctypes
import sys
from collections.abc import Callable
from typing import Any

from cellblock.worker.saving import building
from cellblock.worker.saving.facts import address_of, attributes_of, full_name, is_a, is_heap, mro_of, own_attributes
from cellblock.worker.saving.losses import Unsaved
from cellblock.worker.saving.objects import giver_of, shared_space, split
from cellblock.worker.saving.pickler import REDUCERS, STAND_INS, Reduced, Saving, family, reducer
from cellblock.worker.saving.walk import is_plain_tensor

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
    """Number of references to the base of an array, as this function sees it."""
    base = _base_of(value)
    return sys.getrefcount(base)


_ONE = _references(_Sample())


@reducer("numpy.ndarray")
def _array(saving: Saving, value: Any) -> Reduced:
    whole = _whole(saving, value)
    if whole is not value:
        return building.array_view, _place(value, whole, whole.ctypes.data)
    base = _base_of(value)
    owner = base if id(base) in saving.memory else value
    exporter = owner.base.obj if type(owner.base) is memoryview else owner.base
    if type(exporter) in _EXPORTERS and not (type(exporter) is bytes and value.flags.writeable):  # unpickling owns it
        return building.array_view, _place(value, exporter, address_of(exporter))
    order = "C" if value.flags.c_contiguous else "F" if value.flags.f_contiguous else None
    if value.dtype.hasobject:  # filled once it is there: what it holds may be a view of it
        order = order or "C"
        state = (value.ravel(order).tolist(), bool(value.flags.writeable))
        return building.objects, (_kind(value.dtype), value.shape, order), state, None, None, building.set_objects
    kept = order is not None
    if order is None:
        value, order = value.copy("C"), "C"
    writeable = bool(value.flags.writeable)
    made = (_kind(value.dtype), value.shape, order, writeable)
    if value.nbytes < _BESIDE:
        return building.small_array, (value.tobytes(order), *made)
    return STAND_INS["array"], (saving.buffer(flat(value), owner if kept else None), *made)


@family("numpy.ndarray")
def _derived(saving: Saving, value: Any) -> Reduced:
    """An array of a derived class: a view, of that class, of the memory of a plain one, and what the class adds."""
    kind: Any = type(value)
    numpy: Any = sys.modules["numpy"]
    if not _is_view(saving, kind):
        _tell_apart(saving, value, value)
        return NotImplemented
    if "_fill_value" in (own_attributes(value) or ()):  # worked out when it is first asked for: a look is no change
        value.fill_value  # noqa: B018
    shared = shared_space(value) is not None
    whole, plain = _whole(saving, value), numpy.ndarray.view(value, numpy.ndarray)
    if whole is value:
        whole = plain = plain.copy("K")
        saving.kept.append(whole)
    held, slots = split(object.__getstate__(value))
    made = (*_place(plain, whole, whole.ctypes.data), kind)
    return building.array_view, made, (None, held, slots, shared, None, None), None, None, building.set_parts


@reducer("numpy.memmap")
def _mapped(saving: Saving, value: Any) -> Reduced:
    mode = getattr(value, "mode", None)
    if type(value.base) is type(value):
        root = _root(saving, value)
        return building.mapped_part, _place(value, root, root.ctypes.data)
    if value.filename is None:
        return _array(saving, value)
    if mode == "c":
        raise Unsaved(value, "an array mapped for this process alone", "keep a copy of it")
    order = "C" if value.flags.c_contiguous else "F"
    mode = "r" if mode == "r" else "r+"
    return building.mapped, (str(value.filename), _kind(value.dtype), mode, value.offset, value.shape, order)


@family("numpy.dtype")
def _dtype(_: Saving, value: Any) -> Reduced:
    kind = _kind(value)
    return (sys.modules["numpy"].dtype, (kind,)) if type(kind) is str else NotImplemented


def _kind(dtype: Any) -> Any:
    """A type of numbers or texts by its text: several objects may be of one, and loading makes others the same."""
    plain = dtype.char in _PLAIN and dtype.metadata is None
    return sys.intern(dtype.str) if plain else dtype


_PLAIN = "?bhilqBHILQefdgFDGmMSUO"
"""The characters of types that their text tells whole."""


def _whole(saving: Saving, value: Any) -> Any:
    """The plain array, or the one mapped from a file, that an array is saved as a view of. Itself where it has its
    memory alone, or is a small part of what nothing else shows.
    """
    numpy: Any = sys.modules["numpy"]
    root = _root(saving, value)
    most = 2 * value.nbytes >= root.nbytes  # so that views that come and go elsewhere change nothing
    if not (root is value or most or _is_mapped(root) or _is_shared(value)):
        return value
    _tell_apart(saving, value, root)
    if type(root) is numpy.ndarray or _is_mapped(root):
        return root
    if id(root) not in saving.memory:
        saving.memory[id(root)] = numpy.ndarray.view(root, numpy.ndarray)
    return saving.memory[id(root)]


def _tell_apart(saving: Saving, value: Any, root: Any) -> None:
    """Tell where an array and one that is saved in its class's own way show the same memory."""
    base = _base_of(root)
    if _is_array(base) and not _is_mapped(base) and id(base) not in saving.memory:
        del base  # it would count
        if _is_shared(value):
            remedy = "make the one of the other again in the next cell"
            saving.notes.append((value, "its sharing of memory with another array", remedy))


def _root(saving: Saving, value: Any) -> Any:
    """The array that a view is part of: the last that can have views when it is loaded."""
    root = value
    while _is_array(base := _base_of(root)) and (_is_mapped(base) or _is_view(saving, type(base))):
        root = base
    return root


def _is_view(saving: Saving, kind: type) -> bool:
    """True if arrays of this class can be views of a plain array: no code of its own says how they are saved."""
    if id(kind) not in saving.views:
        saving.views[id(kind)] = _can_view(kind)
    return saving.views[id(kind)]


def _can_view(kind: type) -> bool:
    numpy: Any = sys.modules["numpy"]
    derived = [base for base in mro_of(kind) if issubclass(base, numpy.ndarray) and base is not numpy.ndarray]
    return (
        full_name(giver_of(kind)) in ("numpy.ndarray", "numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray")
        and not issubclass(kind, numpy.memmap)
        and not any(kind is one for one in copyreg.dispatch_table)
        and all(map(is_heap, derived))
        and all(attributes_of(one).keys().isdisjoint(_SAYS) or full_name(one)[:6] == "numpy." for one in derived)
    )


_SAYS = ("__getstate__", "__setstate__")


def _is_array(value: Any) -> bool:
    return is_a(value, sys.modules["numpy"].ndarray)


def _is_shared(value: Any) -> bool:
    """True if anything else holds what this array is a part of, or what that is a part of."""
    while _is_array(base := _base_of(value)):
        del base  # it would count
        if _references(value) > _ONE:
            return True
        value = _base_of(value)
    return False


def _is_mapped(value: Any) -> bool:
    mapped = getattr(sys.modules.get("numpy"), "memmap", None)
    return mapped is not None and type(value) is mapped


@reducer("numpy.ufunc")
def _ufunc(_: Saving, value: Any) -> Reduced:
    numpy: Any = sys.modules["numpy"]
    if getattr(numpy, value.__name__, None) is value:
        return NotImplemented
    modules: dict[str, Any] = dict(sys.modules)
    for name, held in modules.items():
        if name.startswith("scipy.") and vars(held).get(value.__name__) is value:
            return building.attribute, (name, value.__name__)
    raise Unsaved(value, "a function that numpy made of another", "make it again with numpy.frompyfunc")


def _place(value: Any, whole: Any, start: int) -> tuple[Any, ...]:
    offset = value.ctypes.data - start if value.size else 0
    return whole, _kind(value.dtype), value.shape, value.strides, offset, bool(value.flags.writeable)


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


@family("pandas._libs.internals.Block")
def _block(_: Saving, value: Any) -> Reduced:
    """Reduce a block, without the object that tells where its columns are: it is chance which blocks share it."""
    made, (values, at, dimensions), *_rest = value.__reduce__()
    at = slice(at.start, at.stop, at.step) if type(at) is slice else at
    return made, (values, at, dimensions), value.refs, None, None, building.set_block_references


@family("pandas.Index", "pandas.core.indexes.base.Index")  # as newer and older ones tell their names
def _index(_: Saving, value: Any) -> Reduced:
    references = vars(value).get("_references")  # those without memory of their own work theirs out
    if references is None:
        return NotImplemented
    made, arguments, *_rest = value.__reduce__()
    return made, arguments, references, None, None, building.set_index_references


@family("matplotlib.cbook.CallbackRegistry")
def _callbacks(_: Saving, value: Any) -> Reduced:
    """With the first number after those of the callbacks that are saved: all others are registered anew."""
    made, arguments, state, *_rest = value.__reduce_ex__(5)
    following = 1 + max((number for held in state["callbacks"].values() for number in held), default=-1)
    return made, arguments, dict(sorted({**state, "_cid_gen": following}.items()))


@reducer("torch.Tensor", "torch.nn.parameter.Parameter")
def _tensor(_: Saving, tensor: Any) -> Reduced:
    if not is_plain_tensor(tensor):
        return NotImplemented
    made = (
        type(tensor).__name__,
        tensor.untyped_storage(),
        tensor.dtype,
        tensor.storage_offset(),
        tuple(tensor.shape),
        tensor.stride(),
        tensor.requires_grad,
    )
    rest = (tensor.grad, tensor.__dict__)
    return building.tensor, made, rest, None, None, building.set_tensor


@reducer("torch.storage.UntypedStorage")
def _storage(_: Saving, storage: Any) -> Reduced:
    if storage.device.type != "cpu":
        return NotImplemented
    size = storage.nbytes()
    return building.storage, (ctypes.string_at(storage.data_ptr(), size) if size else b"",)


REDUCERS.update({
    "numpy.finfo": lambda _, value: (type(value), (value.dtype,)),
    "numpy.iinfo": lambda _, value: (type(value), (value.dtype,)),
    "pandas._libs.internals.BlockValuesRefs": lambda _, value: (building.block_references, (type(value),)),
    # by its block, which knows what it shares: its own way goes by the block's values
    "pandas.core.internals.managers.SingleBlockManager": lambda _, value: (
        type(value), (value.blocks[0], value.axes[0]),
    ),
})  # fmt: skip
