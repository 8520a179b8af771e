"""From a tree and buffers to a value, on the host: a security border.

Everything read here was written behind a wall and may be a lie. The decoder builds only what the table at the
end has a row for, names every buffer once and in order (so that one buffer cannot be copied a million times),
bounds every size before it allocates, and turns whatever else into `MalformedValue`.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import struct
import sys
from array import array
from collections.abc import Callable, Collection, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from math import isfinite
from pathlib import PosixPath, PurePath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

from cellblock.values import forms, room
from cellblock.values.arrays import read_array, read_scalar
from cellblock.values.forms import MAX_DEPTH, Buffer, EnumName, MalformedValue, Opaque, Record
from cellblock.values.hashing import check_keys
from cellblock.values.pieces import AT_ONCE, parts, with_halves
from cellblock.values.room import of_bytes, of_numbers, of_path, of_text
from cellblock.values.tables import read_table

_C = TypeVar("_C", bound=Collection[object])
_PACKED = {"ints": "q", "floats": "d"}
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_PLAIN = frozenset({type(None), bool, int, float, str})
_HEX = re.compile(r"-?0x[1-9a-f][0-9a-f]*")
_BLOB = re.compile(r"(?:[0-9a-f]{2})*")
_UUID = re.compile(r"[0-9a-f]{32}")
_DECIMAL = re.compile(r"-?(?:\d+(?:\.\d+)?(?:E[+-]\d{1,9})?|s?NaN\d*|Infinity)", re.ASCII)
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*")
_PATHS: dict[str, type[PurePath]] = {
    "PurePosixPath": PurePosixPath,
    "PureWindowsPath": PureWindowsPath,
    # a path of the other system cannot be opened here, only read
    "PosixPath": PurePosixPath if os.name == "nt" else PosixPath,
    "WindowsPath": WindowsPath if os.name == "nt" else PureWindowsPath,
}


def decode(tree: object, buffers: Sequence[Buffer] = (), *, empties: bool = False) -> object:
    """The value that `encode` wrote, or `MalformedValue`. Costs linear time.

    `empties`: the tree is emptied as it is read, as to free all of it takes one long call.
    """
    reader = _Reader(buffers, empties)
    try:
        value = reader.value(tree, 0)
    except RecursionError:
        raise MalformedValue("nested deeper than the interpreter's stack") from None
    except (TypeError, ValueError, ArithmeticError) as error:
        # a date of month 13, a key that cannot be hashed: what the types of the table refuse themselves
        raise MalformedValue(f"{type(error).__name__}: {error}") from None
    if reader.used != len(buffers):
        raise MalformedValue("a buffer that nothing names")
    return value


class _Reader:
    """The buffers, how many of them were named so far, and whether a key of a dict or set is being read."""

    __slots__ = ("buffers", "empties", "is_key", "room", "used")

    def __init__(self, buffers: Sequence[Buffer], empties: bool) -> None:
        self.buffers = buffers
        self.empties = empties
        self.used = 0
        self.room = room.MAX_ROOM
        self.is_key = False

    def blob(self, body: object, takes: Callable[[bytes], int] = of_bytes) -> bytes:
        """The bytes of a blob, once what they are for has the room that it `takes`."""
        if type(body) is str:
            return _inline(body)
        raw = bytes(self.buffer(body))
        self.take(takes(raw))
        return raw

    def memory(self, body: object) -> bytearray | memoryview:
        """A blob as memory that is the value's own: a buffer that can be written to is nobody else's."""
        if type(body) is str:
            return bytearray(_inline(body))
        raw = self.buffer(body)
        return raw if type(raw) is memoryview and not raw.readonly else bytearray(raw)

    def buffer(self, body: object) -> Buffer:
        """The buffer that is next, which must be the one that is named."""
        if type(body) is not int or body != self.used or body >= len(self.buffers):
            raise MalformedValue("a buffer out of order or named twice")
        raw = self.buffers[body]
        self.used += 1
        if len(raw) < forms.INLINE_BYTES:
            raise MalformedValue("a buffer that is too short to be one")
        return raw

    def take(self, size: int) -> None:
        """Use up room beside the tree's."""
        self.room -= size
        if self.room < 0:
            raise MalformedValue(f"buffers and paths of more than {room.MAX_ROOM >> 20} MB when they are read")

    def unhashable(self) -> None:
        if self.is_key:
            raise MalformedValue("a key that cannot be hashed")

    # --- values with parts ---

    def value(self, tree: object, depth: int) -> object:
        kind = type(tree)
        if kind is dict:
            tag, body = _tag_of(tree)
            read = _READERS.get(tag)
            if read is None:
                raise MalformedValue("a tag that no row names")
            return read(self, body, depth)
        if kind is list:
            self.unhashable()
            return self.items(tree, depth)
        if kind in _PLAIN:
            _check_plain([tree], {kind})
            return tree
        raise MalformedValue("a node that JSON does not have")

    def items(self, tree: object, depth: int) -> list[object]:
        if depth >= MAX_DEPTH:
            raise MalformedValue(f"nested deeper than {MAX_DEPTH}")
        if type(tree) is list:
            found: list[object] = []
            for at in range(0, len(tree), AT_ONCE):
                part = tree[at : at + AT_ONCE]
                if self.empties:
                    tree[at : at + AT_ONCE] = [None] * len(part)
                kinds = set(map(type, part))
                if kinds <= _PLAIN:
                    _check_plain(part, kinds)
                    found += part
                else:
                    found += [self.value(item, depth + 1) for item in part]
            return found
        tag, body = _tag_of(tree)
        if tag not in _PACKED:
            raise MalformedValue("items that are no list")
        return self.packed(tag, body)

    def packed(self, tag: str, body: object) -> list[object]:
        raw = self.blob(body, of_numbers)
        if len(raw) % 8 or len(raw) < forms.INLINE_BYTES:
            raise MalformedValue("packed numbers that are cut off or too few")
        numbers = array(_PACKED[tag], raw)
        if sys.byteorder == "big":
            numbers.byteswap()
        return list(chain.from_iterable(parts(numbers)))

    def keys(self, tree: object, depth: int, *, is_set: bool) -> list[object]:
        outer, self.is_key = self.is_key, True
        items = self.items(tree, depth)
        self.is_key = outer
        check_keys(items, is_set=is_set)
        return items

    def to_ints(self, body: object, depth: int) -> object:
        self.unhashable()
        return self.items({"ints": body}, depth)

    def to_floats(self, body: object, depth: int) -> object:
        self.unhashable()
        return self.items({"floats": body}, depth)

    def to_tuple(self, body: object, depth: int) -> object:
        return tuple(self.items(body, depth))

    def to_set(self, body: object, depth: int) -> object:
        self.unhashable()
        keys = self.keys(body, depth, is_set=True)
        return _distinct(_set_of(keys), keys)

    def to_frozenset(self, body: object, depth: int) -> object:
        keys = self.keys(body, depth, is_set=True)
        return _distinct(frozenset(_set_of(keys)), keys)

    def to_dict(self, body: object, depth: int) -> object:
        self.unhashable()
        key_tree, value_tree = _parts_of(body, 2)
        keys = self.keys(key_tree, depth, is_set=False)
        values = self.items(value_tree, depth)
        if len(keys) != len(values):
            raise MalformedValue("a dict with more keys than values, or fewer")
        made: dict[object, object] = {}
        for some, their in zip(parts(keys), parts(values), strict=True):
            made.update(zip(some, their, strict=True))
        return _distinct(made, keys)

    def to_slice(self, body: object, depth: int) -> object:
        self.unhashable()
        start, stop, step = _parts_of(self.items(body, depth), 3)
        return slice(start, stop, step)

    def to_record(self, body: object, depth: int) -> object:
        type_, names, values = _parts_of(body, 3)
        if type(names) is not list:
            raise MalformedValue("a record without names")
        type_name, fields = self.string(type_), [self.string(name) for name in names]
        items = self.items(values, depth)
        if len(fields) != len(items):
            raise MalformedValue("a record with more names than values, or fewer")
        return Record(type_name, _distinct(dict(zip(fields, items, strict=True)), fields))

    def to_array(self, body: object, depth: int) -> object:
        self.unhashable()
        dtype, shape, blob, by_columns = _parts_of(body, 4)
        if type(by_columns) is not bool:
            raise MalformedValue("an array that is in no order")
        return read_array(dtype, shape, self.memory(blob), by_columns=by_columns)

    def to_table(self, body: object, depth: int) -> object:
        self.unhashable()
        return read_table(self.items(body, depth))

    # --- values without parts ---

    def to_int(self, body: object, depth: int = 0) -> int:
        if type(body) is not str or _HEX.fullmatch(body) is None:
            raise MalformedValue("an integer that is not hexadecimal")
        if self.is_key and 4 * len(body) > forms.KEY_BITS + 16:
            raise MalformedValue("an integer too long for a key")
        number = int(body, 16)
        if _SMALLEST <= number <= _LARGEST:
            raise MalformedValue("a short integer written as a long one")
        return number

    def to_float(self, body: object, depth: int = 0) -> float:
        if type(body) is not str or len(body) != 16 or _BLOB.fullmatch(body) is None:
            raise MalformedValue("a float that is not 8 bytes")
        (number,) = struct.unpack(">d", bytes.fromhex(body))
        assert isinstance(number, float)
        if isfinite(number):
            raise MalformedValue("a finite float with a tag")
        return number

    def real(self, tree: object) -> float:
        if type(tree) is float:
            _check_plain([tree], {float})
            return tree
        return self.to_float(_body_of(tree, "float", "a complex number not made of floats"))

    def to_complex(self, body: object, depth: int) -> object:
        real, imaginary = (self.real(part) for part in _parts_of(body, 2))
        return complex(real, imaginary)

    def to_text(self, body: object, depth: int = 0) -> str:
        try:
            return with_halves(bytes(self.blob(body, of_text)))
        except UnicodeDecodeError:
            raise MalformedValue("text that is not UTF-8") from None

    def string(self, tree: object) -> str:
        """Text as a part of something else: plain or tagged."""
        if type(tree) is str:
            _check_plain([tree], {str})
            return tree
        return self.to_text(_body_of(tree, "text", "a name that is not text"))

    def to_bytes(self, body: object, depth: int) -> object:
        return self.blob(body)

    def to_bytearray(self, body: object, depth: int) -> object:
        self.unhashable()
        return bytearray(self.blob(body))

    def integers(self, body: object, count: int) -> list[int]:
        """Integers of any size in place: numbers or {"int"}."""
        found: list[int] = []
        for part in _parts_of(body, count):
            if type(part) is dict:
                part = self.to_int(_body_of(part, "int", "a part that is not an integer"))
            elif type(part) is not int:
                raise MalformedValue("a part that is not an integer")
            else:
                _check_plain([part], {int})
            found.append(part)
        return found

    def to_range(self, body: object, depth: int) -> object:
        start, stop, step = self.integers(body, 3)
        if step == 0:
            raise MalformedValue("a range that does not move")
        return range(start, stop, step)

    def to_date(self, body: object, depth: int) -> object:
        return dt.date(*_small_ints(body, 3))

    def to_time(self, body: object, depth: int) -> object:
        *clock, zone = _parts_of(body, 6)
        hour, minute, second, micro, fold = _small_ints(clock, 5)
        return dt.time(hour, minute, second, micro, self.to_zone_or_none(zone), fold=fold)

    def to_datetime(self, body: object, depth: int) -> object:
        *numbers, zone = _parts_of(body, 9)
        year, month, day, hour, minute, second, micro, fold = _small_ints(numbers, 8)
        tz = self.to_zone_or_none(zone)
        return dt.datetime(year, month, day, hour, minute, second, micro, tz, fold=fold)

    def to_zone_or_none(self, tree: object) -> dt.tzinfo | None:
        if tree is None:
            return None
        tag, body = _tag_of(tree)
        if tag not in ("timezone", "zone"):
            raise MalformedValue("a time zone of no known kind")
        return self.to_timezone(body) if tag == "timezone" else self.to_zone(body)

    def to_timezone(self, body: object, depth: int = 0) -> dt.timezone:
        if type(body) is not list or len(body) not in (1, 2):
            raise MalformedValue("a time zone without an offset")
        offset = self.to_timedelta(_body_of(body[0], "timedelta", "a time zone without an offset"))
        return dt.timezone(offset, *(self.string(name) for name in body[1:]))

    def to_zone(self, body: object, depth: int = 0) -> ZoneInfo:
        key = self.string(body)
        if len(key) > 100 or _ZONE.fullmatch(key) is None:
            raise MalformedValue("a time zone's key that is no name")
        try:
            return ZoneInfo(key)
        except (ValueError, OSError, KeyError):
            raise MalformedValue(f"the time zone {key} is not known here") from None

    def to_timedelta(self, body: object, depth: int = 0) -> dt.timedelta:
        days, seconds, micros = _small_ints(body, 3)
        if not (0 <= seconds < 86_400 and 0 <= micros < 1_000_000):
            raise MalformedValue("a duration that is not normal")
        return dt.timedelta(days, seconds, micros)

    def to_decimal(self, body: object, depth: int) -> object:
        text = self.string(body)
        if _DECIMAL.fullmatch(text) is None or (self.is_key and len(text) > forms.KEY_DIGITS):
            raise MalformedValue("a Decimal that is no number, or too long for a key")
        number = Decimal(text)
        if number.is_finite() and abs(number.adjusted()) > forms.DECIMAL_EXPONENT:
            raise MalformedValue("a Decimal with an exponent beyond the bound")
        if str(number).replace("e", "E") != text:
            raise MalformedValue("a Decimal that reads otherwise than it is written")
        return number

    def to_fraction(self, body: object, depth: int) -> object:
        numerator, denominator = self.integers(body, 2)
        if denominator < 1 or max(numerator.bit_length(), denominator.bit_length()) > forms.FRACTION_BITS:
            raise MalformedValue("a Fraction that is none, or too long")
        number = Fraction(numerator, denominator)
        if number.denominator != denominator:
            raise MalformedValue("a Fraction that is not reduced")
        return number

    def to_uuid(self, body: object, depth: int) -> object:
        if type(body) is not str or _UUID.fullmatch(body) is None:
            raise MalformedValue("a UUID that is not 32 digits")
        return UUID(hex=body)

    def to_path(self, body: object, depth: int) -> object:
        kind, tree = _parts_of(body, 2)
        build = _PATHS.get(kind) if type(kind) is str else None
        if build is None:
            raise MalformedValue("a path of no known kind")
        text = self.string(tree)
        self.take(of_path(text, self.is_key))
        return build(text)

    def to_enum(self, body: object, depth: int) -> object:
        type_, name = _parts_of(body, 2)
        return EnumName(self.string(type_), self.string(name))

    def to_opaque(self, body: object, depth: int) -> object:
        return Opaque(*(self.string(part) for part in _parts_of(body, 3)))

    def to_scalar(self, body: object, depth: int) -> object:
        dtype, blob = _parts_of(body, 2)
        return read_scalar(dtype, self.blob(blob))


def _set_of(keys: Sequence[object]) -> set[object]:
    made: set[object] = set()
    for some in parts(keys):
        made.update(some)
    return made


def _distinct(built: _C, keys: Collection[object]) -> _C:
    if len(built) != len(keys):
        raise MalformedValue("two keys that are equal")
    return built


def _inline(text: str) -> bytes:
    if len(text) >= 2 * forms.INLINE_BYTES or _BLOB.fullmatch(text) is None:
        raise MalformedValue("bytes that are not hexadecimal, or too many of them")
    return bytes.fromhex(text)


def _tag_of(tree: object) -> tuple[str, object]:
    """The one member of a tagged node."""
    if type(tree) is not dict or len(tree) != 1:
        raise MalformedValue("a node without exactly one tag")
    ((tag, body),) = tree.items()
    if type(tag) is not str:
        raise MalformedValue("a tag that is not text")
    return tag, body


def _body_of(tree: object, tag: str, otherwise: str) -> object:
    """The body under a tag; MalformedValue in those words where it is another."""
    found, body = _tag_of(tree)
    if found != tag:
        raise MalformedValue(otherwise)
    return body


def _parts_of(body: object, count: int) -> list[object]:
    if type(body) is not list or len(body) != count:
        raise MalformedValue(f"a node without its {count} parts")
    return body


def _small_ints(body: object, count: int) -> list[int]:
    numbers = [part for part in _parts_of(body, count) if type(part) is int]
    if len(numbers) != count:
        raise MalformedValue("a part that is not an integer")
    return numbers


def _check_plain(items: list[object], kinds: set[type]) -> None:
    """Untagged numbers and text, within what `encode` leaves untagged. `kinds` are the types of `items`."""
    if int in kinds:
        ints = [item for item in items if type(item) is int]
        if min(ints) < _SMALLEST or max(ints) > _LARGEST:
            raise MalformedValue("an integer beyond 64 bits without a tag")
    if float in kinds and not all(isfinite(item) for item in items if type(item) is float):
        raise MalformedValue("a float that is not finite without a tag")
    if str in kinds:
        joined = "".join([item for item in items if type(item) is str])
        if not joined.isascii():
            try:
                joined.encode()
            except UnicodeEncodeError:
                raise MalformedValue("a lone surrogate without a tag") from None


_Read = Callable[[_Reader, object, int], object]
_READERS: dict[str, _Read] = {
    "ints": _Reader.to_ints,
    "floats": _Reader.to_floats,
    "tuple": _Reader.to_tuple,
    "set": _Reader.to_set,
    "frozenset": _Reader.to_frozenset,
    "dict": _Reader.to_dict,
    "slice": _Reader.to_slice,
    "record": _Reader.to_record,
    "array": _Reader.to_array,
    "table": _Reader.to_table,
    "scalar": _Reader.to_scalar,
    "int": _Reader.to_int,
    "float": _Reader.to_float,
    "complex": _Reader.to_complex,
    "text": _Reader.to_text,
    "bytes": _Reader.to_bytes,
    "bytearray": _Reader.to_bytearray,
    "range": _Reader.to_range,
    "date": _Reader.to_date,
    "time": _Reader.to_time,
    "datetime": _Reader.to_datetime,
    "timedelta": _Reader.to_timedelta,
    "timezone": _Reader.to_timezone,
    "zone": _Reader.to_zone,
    "decimal": _Reader.to_decimal,
    "fraction": _Reader.to_fraction,
    "uuid": _Reader.to_uuid,
    "path": _Reader.to_path,
    "enum": _Reader.to_enum,
    "opaque": _Reader.to_opaque,
}
