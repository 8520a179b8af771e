"""Values without parts, written: the budget, the blobs and one method a type."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from json.encoder import encode_basestring_ascii as quoted
from math import isfinite
from pathlib import PurePosixPath, PureWindowsPath
from uuid import UUID
from zoneinfo import ZoneInfo

from cellblock.text import type_name
from cellblock.values import forms
from cellblock.values.forms import Buffer, NotPortable, Opaque
from cellblock.values.room import of_bytes, of_path, of_text

SMALLEST, LARGEST = -(2**63), 2**63 - 1
NODE = 20  # bytes charged for a tag, its brackets and what separates it from the next node
_BUFFER = 64  # bytes charged for a buffer's place on the wire


class LeafWriter:
    """Writer of leaves: the budget left, the buffers so far, and a flag for keys of dicts and sets."""

    __slots__ = ("buffers", "is_key", "left", "max_bytes", "max_depth", "max_opaque", "room", "stand_ins")

    def __init__(self, max_bytes: int, max_depth: int, max_opaque: int) -> None:
        self.max_bytes = self.left = max_bytes
        self.max_depth = max_depth
        self.max_opaque = max_opaque
        self.buffers: list[Buffer] = []
        self.is_key = False
        self.stand_ins = 0
        self.room = 0

    def spend(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise NotPortable(f"larger than {self.max_bytes:,} bytes")

    def blob(self, raw: bytes, takes: Callable[[bytes], int] = of_bytes) -> str | int:
        """Bytes as text in the tree or as a buffer, which `takes` so much of the reader's memory."""
        if len(raw) < forms.INLINE_BYTES:
            self.spend(2 * len(raw) + NODE)
            return raw.hex()
        self.room += takes(raw)
        return self.buffer(raw)

    def buffer(self, raw: Buffer) -> int:
        """Bytes as a buffer, to be read without another copy."""
        self.spend(len(raw) + _BUFFER)
        self.buffers.append(raw)
        return len(self.buffers) - 1

    def unhashable(self, what: str) -> None:
        if self.is_key:
            raise NotPortable(f"a key that holds a {what}")

    def of_none(self, value: None, depth: int) -> object:
        self.spend(5)
        return value

    def of_integer(self, value: int, depth: int) -> object:
        if SMALLEST <= value <= LARGEST:
            self.spend(20)
            return value
        bits = value.bit_length()
        if self.is_key and bits > forms.KEY_BITS:
            raise NotPortable(f"a key of {bits:,} bits")
        self.spend(bits // 4 + NODE)
        return {"int": hex(value)}

    def of_float(self, value: float, depth: int) -> object:
        self.spend(30)
        return value if isfinite(value) else {"float": struct.pack(">d", value).hex()}

    def of_complex(self, value: complex, depth: int) -> object:
        self.spend(NODE)
        return {"complex": [self.of_float(value.real, depth), self.of_float(value.imag, depth)]}

    def of_text(self, value: str, depth: int = 0) -> object:
        size = len(value)
        self.spend(size)
        if value.isascii() and size <= forms.INLINE_TEXT:
            self.spend(len(quoted(value)) - size)
            return value
        try:
            raw = value.encode()
        except UnicodeEncodeError:  # a lone surrogate, as undecodable file names have
            return {"text": self.blob(value.encode("utf-8", "surrogatepass"), of_text)}
        if size > forms.INLINE_TEXT:
            self.left += size  # it is charged as a buffer
            return {"text": self.blob(raw, of_text)}
        self.spend(len(quoted(value)) - size)
        return value

    def of_bytes(self, value: bytes, depth: int) -> object:
        return {"bytes": self.blob(value)}

    def of_bytearray(self, value: bytearray, depth: int) -> object:
        self.unhashable("bytearray")
        self.spend(len(value))  # before the copy
        self.left += len(value)
        return {"bytearray": self.blob(bytes(value))}

    def of_range(self, value: range, depth: int) -> object:
        self.spend(NODE)
        return {"range": [self.of_integer(n, depth) for n in (value.start, value.stop, value.step)]}

    def of_date(self, value: dt.date, depth: int) -> object:
        self.spend(24)
        return {"date": [value.year, value.month, value.day]}

    def of_time(self, value: dt.time, depth: int) -> object:
        self.spend(40)
        clock = [value.hour, value.minute, value.second, value.microsecond, value.fold]
        return {"time": [*clock, self.of_zone(value.tzinfo, depth)]}

    def of_datetime(self, value: dt.datetime, depth: int) -> object:
        self.spend(60)
        day = [value.year, value.month, value.day]
        clock = [value.hour, value.minute, value.second, value.microsecond, value.fold]
        return {"datetime": [*day, *clock, self.of_zone(value.tzinfo, depth)]}

    def of_zone(self, value: dt.tzinfo | None, depth: int) -> object:
        if value is None:
            return None
        if type(value) is dt.timezone:
            return self.of_timezone(value, depth)
        if type(value) is ZoneInfo:
            return self.of_zoneinfo(value, depth)
        raise NotPortable(f"a time zone of type {type_name(value)}")

    def of_timezone(self, value: dt.timezone, depth: int) -> object:
        self.spend(NODE)
        offset, *name = value.__getinitargs__()  # type: ignore[attr-defined]
        return {"timezone": [self.of_timedelta(offset, depth), *(self.of_text(plain(part)) for part in name)]}

    def of_zoneinfo(self, value: ZoneInfo, depth: int) -> object:
        self.spend(NODE)
        return {"zone": self.of_text(plain(value.key))}

    def of_timedelta(self, value: dt.timedelta, depth: int) -> object:
        self.spend(40)
        return {"timedelta": [value.days, value.seconds, value.microseconds]}

    def of_decimal(self, value: Decimal, depth: int) -> object:
        if value.is_finite() and abs(value.adjusted()) > forms.DECIMAL_EXPONENT:
            raise NotPortable(f"a Decimal whose exponent is beyond ±{forms.DECIMAL_EXPONENT:,}")
        text = str(value).replace("e", "E")  # the context's `capitals` decides
        if self.is_key and len(text) > forms.KEY_DIGITS:
            raise NotPortable(f"a key of {len(text):,} digits")
        self.spend(NODE)
        return {"decimal": self.of_text(text)}

    def of_fraction(self, value: Fraction, depth: int) -> object:
        parts = [value.numerator, value.denominator]
        if not all(type(part) is int for part in parts):
            raise NotPortable("a Fraction that was tampered with")
        if max(part.bit_length() for part in parts) > forms.FRACTION_BITS:
            raise NotPortable(f"a Fraction of more than {forms.FRACTION_BITS:,} bits")
        self.spend(NODE)
        return {"fraction": [self.of_integer(part, depth) for part in parts]}

    def of_uuid(self, value: UUID, depth: int) -> object:
        if type(value.int) is not int or not 0 <= value.int < 2**128:
            raise NotPortable("a UUID that was tampered with")
        self.spend(32 + NODE)
        return {"uuid": f"{value.int:032x}"}

    def of_path(self, value: PurePosixPath | PureWindowsPath, depth: int) -> object:
        text = plain(str(value))
        self.spend(40)
        self.room += of_path(text, self.is_key)
        return {"path": [type_name(value), self.of_text(text)]}

    def of_opaque(self, value: Opaque, depth: int) -> object:
        self.spend(NODE)
        return {"opaque": [self.of_text(plain(part)) for part in (value.type, value.repr, value.reason)]}


def plain(text: object) -> str:
    if type(text) is not str:
        raise NotPortable("a name that is not plain text")
    return text
