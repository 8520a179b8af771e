"""numpy arrays and scalars as a dtype's name, a shape and raw bytes.

The writing side uses numpy only where the value's process has imported it; the reading side imports it when
the first array arrives. Objects and structured dtypes have no row, so nothing here can hold a reference.
"""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from cellblock.unhurried import imported
from cellblock.values.forms import BESIDE_BYTES, MalformedValue, NotPortable, Opaque

Memory = bytes | bytearray | memoryview

_DTYPE = re.compile(
    r"\|b1|\|[iu]1|[<>][iu][248]|[<>]f[248]|[<>]c(?:8|16)|\|S[1-9]\d{0,8}|[<>]U[1-9]\d{0,7}"
    r"|[<>][Mm]8(?:\[(?:[1-9]\d{0,8})?(?:Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?",
    re.ASCII,
)
_MAX_DIMENSIONS = 32
_MAX_LENGTH = 2**40


@dataclass(frozen=True, slots=True)
class Parts:
    """An array (`shape`) or a scalar (no shape) of one of the dtypes above, not yet copied."""

    dtype: str
    shape: tuple[int, ...] | None
    nbytes: int
    array: Any

    @property
    def by_columns(self) -> bool:
        """True if its memory has the first index running fastest, and only so."""
        flags = self.array.flags
        return bool(flags.f_contiguous and not flags.c_contiguous)

    def raw(self) -> bytes | memoryview:
        """Its bytes: the array's own memory, without a copy, where that is of some size and in one piece."""
        array = self.array.T if self.by_columns else self.array
        if self.nbytes >= BESIDE_BYTES and array.flags.c_contiguous:
            return memoryview(array.reshape(-1).view("u1"))
        raw = array.tobytes()
        assert isinstance(raw, bytes)
        return raw


def numpy_parts(value: object) -> Parts | None:
    """`value` taken apart if it is numpy's; None if it is not. `NotPortable` for a dtype that has no row."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not hasattr(numpy, "ndarray"):
        return None
    kind: Any = type(value)
    if kind is numpy.ndarray:
        array: Any = value
        return Parts(_portable(array.dtype), array.shape, array.nbytes, array)
    # a class derived from numpy.float64 is in no row, so its methods never run
    if id(kind) in map(id, set(numpy.sctypeDict.values())):
        scalar: Any = value
        return Parts(_portable(scalar.dtype), None, scalar.nbytes, scalar)
    return None


def read_array(dtype: object, shape: object, raw: Memory, *, by_columns: bool = False) -> object:
    """A writable array of the sender's dtype over memory of its own, or an `Opaque` where numpy is missing."""
    if type(shape) is not list or len(shape) > _MAX_DIMENSIONS:
        raise MalformedValue("an array without a shape")
    if not all(type(side) is int and 0 <= side <= _MAX_LENGTH for side in shape):
        raise MalformedValue("an array with a side that is no length")
    if math.prod(side or 1 for side in shape) > _MAX_LENGTH:
        raise MalformedValue("an array larger than any memory")
    built: Any = _build(dtype, shape[::-1] if by_columns else shape, raw)
    return built.T if by_columns and type(built) is not Opaque else built


def read_scalar(dtype: object, raw: bytes) -> object:
    """One numpy scalar of the sender's dtype, or an `Opaque` where numpy is missing."""
    return _build(dtype, None, raw)


def _build(name: object, shape: list[int] | None, raw: Memory) -> object:
    if type(name) is not str or _DTYPE.fullmatch(name) is None:
        raise MalformedValue("a dtype that is not portable")
    numpy: Any = _numpy()
    if numpy is None:
        what = "scalar" if shape is None else f"array of shape {tuple(shape)}"
        return Opaque(f"numpy {name}", f"{what}; numpy is not installed here (pip install 'cellblock[data]')")
    try:
        dtype = numpy.dtype(name)
    except (TypeError, ValueError, OverflowError):
        raise MalformedValue("a dtype that numpy does not know") from None
    if dtype.str != name:
        raise MalformedValue("a dtype under another name")
    count = math.prod(shape) if shape is not None else 1
    if count * dtype.itemsize != len(raw):
        raise MalformedValue(f"an array of {count * dtype.itemsize} bytes with {len(raw)}")
    _check_items(numpy, dtype, raw)
    try:
        flat = numpy.frombuffer(raw, dtype) if raw else numpy.empty(0, dtype)
        return flat[0] if shape is None else flat.reshape(shape)
    except ValueError:
        raise MalformedValue("a shape that numpy refuses") from None


def _check_items(numpy: Any, dtype: Any, raw: Memory) -> None:
    """Bit patterns that numpy trusts: a bool above 1, a character above U+10FFFF."""
    if not raw:
        return
    if dtype.kind == "b" and numpy.frombuffer(raw, "u1").max() > 1:
        raise MalformedValue("a bool that is neither true nor false")
    if dtype.kind == "U" and numpy.frombuffer(raw, f"{dtype.str[0]}u4").max() > 0x10FFFF:
        raise MalformedValue("a character beyond Unicode")


def _portable(dtype: Any) -> str:
    name = dtype.str
    if type(name) is not str or dtype.kind == "V" or _DTYPE.fullmatch(name) is None:
        raise NotPortable(f"a numpy dtype without a portable form: {dtype.kind}")
    return name


def _numpy() -> ModuleType | None:
    try:
        return imported("numpy")
    except ImportError:
        return None
