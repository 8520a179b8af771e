"""From a value to a tree and buffers, inside the wall: exact types only, a budget spent while going."""

from __future__ import annotations

import datetime as dt
import struct
import sys
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection
from decimal import Decimal
from fractions import Fraction
from json.encoder import encode_basestring_ascii as quoted
from math import isfinite
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from uuid import UUID
from zoneinfo import ZoneInfo

from cellblock.text import type_name
from cellblock.values import forms
from cellblock.values.arrays import Parts, numpy_parts
from cellblock.values.fields import enum_member, fields_of, held_by, pairs_of
from cellblock.values.forms import MAX_BYTES, MAX_DEPTH, Buffer, Encoded, EnumName, NotPortable, Opaque, Record
from cellblock.values.room import of_bytes, of_numbers, of_path, of_text
from cellblock.values.tables import moment_of, table_parts

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_PACKED_ITEMS = 128
_NODE = 20  # bytes charged for a tag, its brackets and what separates it from the next node
_CONTAINER = 64  # bytes charged for a list by itself: its reader pays about as much for an empty one
_BUFFER = 64  # bytes charged for a buffer's place on the wire
_FEW = 24  # items below which a loop is quicker than asking for all their types first
_SHOWN = 200  # characters of an item that is not portable

# Types are told apart by address: a metaclass can give a type a __hash__ and an __eq__ of its own.
_NONE, _BOOL, _INT, _FLOAT, _STR = map(id, (type(None), bool, int, float, str))
_PLAIN = frozenset({_NONE, _BOOL, _INT, _FLOAT, _STR})


def encode(value: object, *, max_bytes: int = MAX_BYTES, max_opaque: int = 0) -> Encoded:
    """The portable form of `value`, or `NotPortable` saying why there is none.

    `max_bytes` bounds the tree as ASCII JSON without spaces and the buffers together; the walk stops at the
    first byte past it. A value that contains itself is too deep. Whatever reading the value raises, a
    tampered object's AttributeError or a MemoryError, makes it not portable; BaseException passes.
    So many items may be `Opaque` where they are not portable: that runs their `__repr__`.
    """
    kind = type(value)
    if value is None or kind is bool or (kind is int and _SMALLEST <= value <= _LARGEST):  # type: ignore[operator]
        return Encoded(value)
    writer = _Writer(max_bytes, max_opaque)
    try:
        return Encoded(writer.tree(value, 0), tuple(writer.buffers), writer.room)
    except NotPortable:
        raise
    except RecursionError:
        raise NotPortable("nested deeper than the interpreter's stack") from None
    except Exception as error:
        raise NotPortable(f"reading it raised {type_name(error)}") from None


class _Writer:
    """The budget left, the buffers so far, and a flag for keys of dicts and sets."""

    __slots__ = ("buffers", "is_key", "left", "max_bytes", "max_opaque", "room", "stand_ins")

    def __init__(self, max_bytes: int, max_opaque: int) -> None:
        self.max_bytes = self.left = max_bytes
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
            self.spend(2 * len(raw) + _NODE)
            return raw.hex()
        self.room += takes(raw)
        return self.buffer(raw)

    def buffer(self, raw: Buffer) -> int:
        """Bytes as a buffer, to be read without another copy."""
        self.spend(len(raw) + _BUFFER)
        self.buffers.append(raw)
        return len(self.buffers) - 1

    def require(self, size: int) -> None:
        """Refuse what the budget has no room for before it is copied; it is charged later."""
        self.spend(size)
        self.left += size

    def unhashable(self, what: str) -> None:
        if self.is_key:
            raise NotPortable(f"a key that holds a {what}")

    # --- values with parts ---

    def tree(self, value: object, depth: int) -> object:
        write = _WRITERS.get(id(type(value)))
        return write(self, value, depth) if write is not None else self.rare(value, depth)

    def of_list(self, value: list[object], depth: int) -> object:
        self.unhashable("list")
        self.spend(2 * len(value) + 2)  # before the copy
        return self.items(list(value), depth)

    def of_tuple(self, value: tuple[object, ...], depth: int) -> object:
        self.spend(2 * len(value) + _NODE)
        return {"tuple": self.items(list(value), depth)}

    def of_set(self, value: set[object], depth: int) -> object:
        self.unhashable("set")
        return {"set": self.keys(value, depth)}

    def of_frozenset(self, value: frozenset[object], depth: int) -> object:
        return {"frozenset": self.keys(value, depth)}

    def of_dict(self, value: dict[object, object], depth: int) -> object:
        self.unhashable("dict")
        self.spend(2 * len(value))
        held = dict(value)  # another thread may add a key between the two walks
        return self.of_pairs(list(held), list(held.values()), depth)

    def of_pairs(self, keys: list[object], values: list[object], depth: int) -> object:
        return {"dict": [self.keys(keys, depth), self.items(values, depth)]}

    def keys(self, value: Collection[object], depth: int) -> object:
        """Members that the reader must be able to hash, and that stay distinct there."""
        self.spend(2 * len(value) + _NODE)
        outer, self.is_key, before = self.is_key, True, self.stand_ins
        items = self.items(list(value), depth)
        self.is_key = outer
        if self.stand_ins != before:
            assert isinstance(items, list)
            if len(set(map(repr, items))) != len(items):
                raise NotPortable("two keys are alike without their classes")
        return items

    def items(self, items: list[object], depth: int) -> object:
        """A list as a tree. `items` is the caller's own copy: it may become part of the tree."""
        if depth >= MAX_DEPTH:
            raise NotPortable(f"nested deeper than {MAX_DEPTH}, or contains itself")
        self.spend(_CONTAINER)
        if len(items) <= _FEW:
            return self.few(items, depth + 1)
        kinds = set(map(id, map(type, items)))
        if kinds <= _PLAIN:
            flat = self.flat(items, kinds)
            if flat is not None:
                return flat
        return [self.tree(item, depth + 1) for item in items]

    def few(self, items: list[object], depth: int) -> list[object]:
        size = 0
        trees: list[object] = []
        for item in items:
            kind = type(item)
            if kind is str and item.isascii() and len(item) <= forms.INLINE_TEXT:  # type: ignore[attr-defined, arg-type]
                size += len(quoted(item))  # type: ignore[arg-type]
            elif kind is int and _SMALLEST <= item <= _LARGEST:  # type: ignore[operator]
                size += 20
            elif item is None or kind is bool:
                size += 6
            else:
                item = self.tree(item, depth)
            trees.append(item)
        self.spend(size)
        return trees

    def flat(self, items: list[object], kinds: set[int]) -> object | None:
        """Numbers, text, booleans and None without a step for each; None where one of them needs a tag."""
        if len(items) >= _PACKED_ITEMS and len(kinds) == 1 and kinds <= {_INT, _FLOAT}:
            return self.packed(items, "ints" if _INT in kinds else "floats")
        size = 6 * len(items)
        if _INT in kinds:
            ints = items if len(kinds) == 1 else [item for item in items if type(item) is int]
            if min(ints) < _SMALLEST or max(ints) > _LARGEST:  # type: ignore[type-var, operator]
                return None
            size += 18 * len(ints)
        if _FLOAT in kinds:
            floats = items if len(kinds) == 1 else [item for item in items if type(item) is float]
            if not all(map(isfinite, floats)):  # type: ignore[arg-type]
                return None
            size += 22 * len(floats)
        if _STR in kinds:
            texts = items if len(kinds) == 1 else [item for item in items if type(item) is str]
            lengths = list(map(len, texts))  # type: ignore[arg-type]
            total = sum(lengths)
            if total > self.left:
                self.spend(total)
            if max(lengths) > forms.INLINE_TEXT:
                return None
            joined = "".join(texts)  # type: ignore[arg-type]
            if not joined.isascii():
                try:
                    joined.encode()
                except UnicodeEncodeError:
                    return None
            size += len(quoted(joined))
        self.spend(size)
        return items

    def packed(self, items: list[object], tag: str) -> object | None:
        self.require(8 * len(items))
        try:
            numbers = array("q" if tag == "ints" else "d", items)  # type: ignore[type-var]
        except OverflowError:
            return None
        if sys.byteorder == "big":
            numbers.byteswap()
        return {tag: self.blob(numbers.tobytes(), of_numbers)}

    def of_slice(self, value: slice, depth: int) -> object:
        self.unhashable("slice")
        self.spend(_NODE)
        return {"slice": self.items([value.start, value.stop, value.step], depth)}

    def of_enum_name(self, value: EnumName, depth: int) -> object:
        self.stand_ins += 1
        self.spend(_NODE)
        return {"enum": [self.of_text(_plain(value.type)), self.of_text(_plain(value.name))]}

    def of_record(self, value: Record, depth: int) -> object:
        if type(value.fields) is not dict:
            raise NotPortable("a Record whose fields are not a dict")
        return self.record_of(_plain(value.type), list(value.fields), list(value.fields.values()), depth)

    def record_of(self, type_: str, names: list[str], values: list[object], depth: int) -> object:
        self.stand_ins += 1
        self.spend(2 * len(names) + 2 * len(values) + _NODE)
        head = [self.of_text(type_), [self.of_text(_plain(name)) for name in names]]
        return {"record": [*head, self.items(values, depth)]}

    def rare(self, value: object, depth: int) -> object:
        """Values known by more than their exact type, or an `Opaque` for an item of which nothing could be written."""
        before = self.left, len(self.buffers)
        try:
            return self.known(value, depth)
        except NotPortable as error:
            if not (self.max_opaque and depth) or self.is_key or (self.left, len(self.buffers)) != before:
                raise
            self.max_opaque -= 1
            return self.of_opaque(forms.opaque(value, max_repr=_SHOWN, reason=error.reason), depth)

    def known(self, value: object, depth: int) -> object:
        """Values of numpy and pandas, members of enums, classes with fields, and what derives from a built-in class."""
        found = numpy_parts(value)
        if found is not None:
            self.spend(len(found.dtype) + _NODE)
            if found.shape is None:
                return {"scalar": [found.dtype, self.blob(bytes(found.raw()))]}
            return self.array(found)
        moment = moment_of(value)
        if moment is not None:
            return self.tree(moment, depth)
        table = table_parts(value)
        if table is not None:
            self.unhashable("table")
            self.spend(_NODE)
            return {"table": self.items(list(table), depth)}
        member = enum_member(value)
        if member is not None:
            return self.of_enum_name(EnumName(type_name(value), member), depth)
        fields = fields_of(value)
        if fields is not None:
            return self.record_of(type_name(value), list(fields), list(fields.values()), depth)
        if not self.is_key:  # there a class of its own decides what is equal
            pairs = pairs_of(value)
            if pairs is not None:
                return self.of_pairs(*pairs, depth)
            held = held_by(value)
            if held is not None:
                return self.tree(held, depth)
        raise NotPortable(f"{type_name(value)} is not portable")

    def array(self, found: Parts) -> object:
        assert found.shape is not None
        self.unhashable("array")
        self.require(found.nbytes)
        self.spend(21 * len(found.shape) + _NODE)
        raw = found.raw()
        blob = self.buffer(raw) if len(raw) >= forms.INLINE_BYTES else self.blob(bytes(raw))
        return {"array": [found.dtype, list(found.shape), blob, found.by_columns]}

    # --- values without parts ---

    def of_none(self, value: None, depth: int) -> object:
        self.spend(5)
        return value

    def of_integer(self, value: int, depth: int) -> object:
        if _SMALLEST <= value <= _LARGEST:
            self.spend(20)
            return value
        bits = value.bit_length()
        if self.is_key and bits > forms.KEY_BITS:
            raise NotPortable(f"a key of {bits:,} bits")
        self.spend(bits // 4 + _NODE)
        return {"int": hex(value)}

    def of_float(self, value: float, depth: int) -> object:
        self.spend(30)
        return value if isfinite(value) else {"float": struct.pack(">d", value).hex()}

    def of_complex(self, value: complex, depth: int) -> object:
        self.spend(_NODE)
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
        self.require(len(value))
        return {"bytearray": self.blob(bytes(value))}

    def of_range(self, value: range, depth: int) -> object:
        self.spend(_NODE)
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
        self.spend(_NODE)
        offset, *name = value.__getinitargs__()  # type: ignore[attr-defined]
        return {"timezone": [self.of_timedelta(offset, depth), *(self.of_text(_plain(part)) for part in name)]}

    def of_zoneinfo(self, value: ZoneInfo, depth: int) -> object:
        self.spend(_NODE)
        return {"zone": self.of_text(_plain(value.key))}

    def of_timedelta(self, value: dt.timedelta, depth: int) -> object:
        self.spend(40)
        return {"timedelta": [value.days, value.seconds, value.microseconds]}

    def of_decimal(self, value: Decimal, depth: int) -> object:
        if value.is_finite() and abs(value.adjusted()) > forms.DECIMAL_EXPONENT:
            raise NotPortable(f"a Decimal whose exponent is beyond ±{forms.DECIMAL_EXPONENT:,}")
        text = str(value).replace("e", "E")  # the context's `capitals` decides
        if self.is_key and len(text) > forms.KEY_DIGITS:
            raise NotPortable(f"a key of {len(text):,} digits")
        self.spend(_NODE)
        return {"decimal": self.of_text(text)}

    def of_fraction(self, value: Fraction, depth: int) -> object:
        parts = [value.numerator, value.denominator]
        if not all(type(part) is int for part in parts):
            raise NotPortable("a Fraction that was tampered with")
        if max(part.bit_length() for part in parts) > forms.FRACTION_BITS:
            raise NotPortable(f"a Fraction of more than {forms.FRACTION_BITS:,} bits")
        self.spend(_NODE)
        return {"fraction": [self.of_integer(part, depth) for part in parts]}

    def of_uuid(self, value: UUID, depth: int) -> object:
        if type(value.int) is not int or not 0 <= value.int < 2**128:
            raise NotPortable("a UUID that was tampered with")
        self.spend(32 + _NODE)
        return {"uuid": f"{value.int:032x}"}

    def of_path(self, value: PurePosixPath | PureWindowsPath, depth: int) -> object:
        text = _plain(str(value))
        self.spend(40)
        self.room += of_path(text, self.is_key)
        return {"path": [type_name(value), self.of_text(text)]}

    def of_opaque(self, value: Opaque, depth: int) -> object:
        self.spend(_NODE)
        return {"opaque": [self.of_text(_plain(part)) for part in (value.type, value.repr, value.reason)]}


def _plain(text: object) -> str:
    if type(text) is not str:
        raise NotPortable("a name that is not plain text")
    return text


_Write = Callable[[_Writer, object, int], object]
_WRITERS: dict[int, _Write] = {
    id(kind): write  # type: ignore[misc]
    for kind, write in (
        (type(None), _Writer.of_none),
        (bool, _Writer.of_none),
        (int, _Writer.of_integer),
        (float, _Writer.of_float),
        (complex, _Writer.of_complex),
        (str, _Writer.of_text),
        (bytes, _Writer.of_bytes),
        (bytearray, _Writer.of_bytearray),
        (list, _Writer.of_list),
        (tuple, _Writer.of_tuple),
        (set, _Writer.of_set),
        (frozenset, _Writer.of_frozenset),
        (dict, _Writer.of_dict),
        # as what they hold: neither counting nor a factory, which is code, crosses
        (Counter, _Writer.of_dict),
        (OrderedDict, _Writer.of_dict),
        (defaultdict, _Writer.of_dict),
        (deque, _Writer.of_list),
        (type({}.keys()), _Writer.of_list),
        (type({}.values()), _Writer.of_list),
        (type({}.items()), _Writer.of_list),
        (range, _Writer.of_range),
        (slice, _Writer.of_slice),
        (dt.date, _Writer.of_date),
        (dt.time, _Writer.of_time),
        (dt.datetime, _Writer.of_datetime),
        (dt.timedelta, _Writer.of_timedelta),
        (dt.timezone, _Writer.of_timezone),
        (ZoneInfo, _Writer.of_zoneinfo),
        (Decimal, _Writer.of_decimal),
        (Fraction, _Writer.of_fraction),
        (UUID, _Writer.of_uuid),
        (PurePosixPath, _Writer.of_path),
        (PosixPath, _Writer.of_path),
        (PureWindowsPath, _Writer.of_path),
        (WindowsPath, _Writer.of_path),
        (Opaque, _Writer.of_opaque),
        (EnumName, _Writer.of_enum_name),
        (Record, _Writer.of_record),
    )
}
