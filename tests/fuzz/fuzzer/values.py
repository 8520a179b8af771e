"""The reader of values."""

from __future__ import annotations

import datetime as dt
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from pathlib import PosixPath, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from cellblock.values.portable import EnumName, MalformedValue, NotPortable, Opaque, Record, encode, pack, unpack
from fuzzer import seeds
from fuzzer.cases import Case
from fuzzer.target import Target


def _read_value(case: Case) -> object:
    try:
        return (unpack(case),)
    except MalformedValue:
        return None


def _check_value(case: Case, read: object) -> None:
    if read is None:
        return
    assert isinstance(read, tuple)
    _check_parts(read[0])
    try:
        first = pack(encode(read[0]))
    except NotPortable as refusal:
        if refusal.reason != "two keys are alike without their classes":  # what stands for instances is hashed here
            raise
        return
    second = pack(encode(unpack(first)))
    assert _form(first) == _form(second), "a value that reads otherwise when it is written again"


def _check_parts(value: object) -> None:
    """Of the types of the table, exactly, all the way down."""
    if type(value) in (list, tuple, set, frozenset):
        for part in value:  # type: ignore[attr-defined]
            _check_parts(part)
    elif type(value) is dict:
        for pair in value.items():
            _check_parts(pair)
    elif type(value) is slice:
        _check_parts((value.start, value.stop, value.step))
    elif type(value) is Record:
        assert type(value.type) is str
        assert type(value.fields) is dict
        _check_parts(value.fields)
    elif type(value) in (Opaque, EnumName):
        assert all(type(getattr(value, field.name)) is str for field in fields(value))  # type: ignore[arg-type]
    elif type(value).__name__ in ("DataFrame", "Series"):
        assert type(value).__module__.startswith("pandas")
    elif type(value).__module__ == "numpy":
        assert type(value).__name__ == "ndarray" or type(value) in seeds.SCALARS
        assert not value.dtype.hasobject  # type: ignore[attr-defined]
    else:
        assert type(value) in _PARTLESS, f"a {type(value)}"


_PARTLESS = (
    type(None), bool, int, float, complex, str, bytes, bytearray, range, dt.date, dt.time, dt.datetime, dt.timedelta,
    dt.timezone, ZoneInfo, Decimal, Fraction, UUID, PurePosixPath, PureWindowsPath, PosixPath,
)  # fmt: skip


def _form(buffers: tuple[Any, ...]) -> tuple[list[int], list[bytes]]:
    """Sets have no order of their own."""
    return sorted(bytes(buffers[0])), sorted(map(bytes, buffers[1:]))


TARGETS = (Target("values", seeds.values, _read_value, _check_value),)
