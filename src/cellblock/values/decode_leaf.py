"""Values without parts, read: the buffers in order, and one method a tag. The border is `decode`."""

from __future__ import annotations

import datetime as dt
import os
import re
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from pathlib import PosixPath, PurePath, PurePosixPath, PureWindowsPath, WindowsPath
from uuid import UUID
from zoneinfo import ZoneInfo

from cellblock.values import forms, room
from cellblock.values.arrays import read_scalar
from cellblock.values.forms import Buffer, EnumName, MalformedValue, Opaque
from cellblock.values.room import of_bytes, of_path, of_text

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
PLAIN = frozenset({type(None), bool, int, float, str})
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


class LeafReader:
    """The buffers, how many of them were named so far, and whether a key of a dict or set is being read."""

    __slots__ = ("buffers", "is_key", "max_depth", "room", "spends", "used")

    def __init__(self, buffers: Sequence[Buffer], max_depth: int) -> None:
        self.buffers = buffers
        self.max_depth = max_depth
        self.used = 0
        self.room = room.MAX_ROOM
        self.is_key = self.spends = False

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
            check_plain([tree], {float})
            return tree
        tag, body = tag_of(tree)
        if tag != "float":
            raise MalformedValue("a complex number not made of floats")
        return self.to_float(body)

    def to_complex(self, body: object, depth: int) -> object:
        real, imaginary = (self.real(part) for part in parts_of(body, 2))
        return complex(real, imaginary)

    def to_text(self, body: object, depth: int = 0) -> str:
        try:
            return self.blob(body, of_text).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise MalformedValue("text that is not UTF-8") from None

    def string(self, tree: object) -> str:
        """Text as a part of something else: plain or tagged."""
        if type(tree) is str:
            check_plain([tree], {str})
            return tree
        tag, body = tag_of(tree)
        if tag != "text":
            raise MalformedValue("a name that is not text")
        return self.to_text(body)

    def to_bytes(self, body: object, depth: int) -> object:
        return self.blob(body)

    def to_bytearray(self, body: object, depth: int) -> object:
        self.unhashable()
        return bytearray(self.blob(body))

    def integers(self, body: object, count: int) -> list[int]:
        """Integers of any size in place: numbers or {"int"}."""
        found: list[int] = []
        for part in parts_of(body, count):
            if type(part) is dict:
                tag, digits = tag_of(part)
                part = self.to_int(digits) if tag == "int" else None
            else:
                check_plain([part], {type(part)})
            if type(part) is not int:
                raise MalformedValue("a part that is not an integer")
            found.append(part)
        return found

    def to_range(self, body: object, depth: int) -> object:
        start, stop, step = self.integers(body, 3)
        if step == 0:
            raise MalformedValue("a range that does not move")
        return range(start, stop, step)

    def to_date(self, body: object, depth: int) -> object:
        return dt.date(*small_ints(body, 3))

    def to_time(self, body: object, depth: int) -> object:
        *clock, zone = parts_of(body, 6)
        hour, minute, second, micro, fold = small_ints(clock, 5)
        return dt.time(hour, minute, second, micro, self.to_zone_or_none(zone), fold=fold)

    def to_datetime(self, body: object, depth: int) -> object:
        *numbers, zone = parts_of(body, 9)
        year, month, day, hour, minute, second, micro, fold = small_ints(numbers, 8)
        tz = self.to_zone_or_none(zone)
        return dt.datetime(year, month, day, hour, minute, second, micro, tz, fold=fold)

    def to_zone_or_none(self, tree: object) -> dt.tzinfo | None:
        if tree is None:
            return None
        tag, body = tag_of(tree)
        if tag not in ("timezone", "zone"):
            raise MalformedValue("a time zone of no known kind")
        return self.to_timezone(body) if tag == "timezone" else self.to_zone(body)

    def to_timezone(self, body: object, depth: int = 0) -> dt.timezone:
        if type(body) is not list or len(body) not in (1, 2):
            raise MalformedValue("a time zone without an offset")
        tag, parts = tag_of(body[0])
        if tag != "timedelta":
            raise MalformedValue("a time zone without an offset")
        return dt.timezone(self.to_timedelta(parts), *(self.string(name) for name in body[1:]))

    def to_zone(self, body: object, depth: int = 0) -> ZoneInfo:
        key = self.string(body)
        if len(key) > 100 or _ZONE.fullmatch(key) is None:
            raise MalformedValue("a time zone's key that is no name")
        try:
            return ZoneInfo(key)
        except (ValueError, OSError, KeyError):
            raise MalformedValue(f"the time zone {key} is not known here") from None

    def to_timedelta(self, body: object, depth: int = 0) -> dt.timedelta:
        days, seconds, micros = small_ints(body, 3)
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
        kind, tree = parts_of(body, 2)
        build = _PATHS.get(kind) if type(kind) is str else None
        if build is None:
            raise MalformedValue("a path of no known kind")
        text = self.string(tree)
        self.take(of_path(text, self.is_key))
        return build(text)

    def to_enum(self, body: object, depth: int) -> object:
        type_, name = parts_of(body, 2)
        return EnumName(self.string(type_), self.string(name))

    def to_opaque(self, body: object, depth: int) -> object:
        return Opaque(*(self.string(part) for part in parts_of(body, 3)))

    def to_scalar(self, body: object, depth: int) -> object:
        dtype, blob = parts_of(body, 2)
        return read_scalar(dtype, self.blob(blob))


def _inline(text: str) -> bytes:
    if len(text) >= 2 * forms.INLINE_BYTES or _BLOB.fullmatch(text) is None:
        raise MalformedValue("bytes that are not hexadecimal, or too many of them")
    return bytes.fromhex(text)


def tag_of(tree: object) -> tuple[str, object]:
    """The one member of a tagged node."""
    if type(tree) is not dict or len(tree) != 1:
        raise MalformedValue("a node without exactly one tag")
    ((tag, body),) = tree.items()
    if type(tag) is not str:
        raise MalformedValue("a tag that is not text")
    return tag, body


def parts_of(body: object, count: int) -> list[object]:
    if type(body) is not list or len(body) != count:
        raise MalformedValue(f"a node without its {count} parts")
    return body


def small_ints(body: object, count: int) -> list[int]:
    numbers = [part for part in parts_of(body, count) if type(part) is int]
    if len(numbers) != count:
        raise MalformedValue("a part that is not an integer")
    return numbers


def check_plain(items: list[object], kinds: set[type]) -> None:
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
