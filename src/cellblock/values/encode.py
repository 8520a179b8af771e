"""From a value to a tree and buffers, inside the wall: exact types only, a budget spent while going."""

from __future__ import annotations

import datetime as dt
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
from cellblock.values.encode_leaf import LARGEST, NODE, SMALLEST, LeafWriter, plain
from cellblock.values.fields import enum_member, fields_of, held_by, pairs_of
from cellblock.values.forms import MAX_BYTES, MAX_DEPTH, Encoded, EnumName, NotPortable, Opaque, Record
from cellblock.values.room import of_numbers
from cellblock.values.tables import moment_of, table_parts

_PACKED_ITEMS = 128
_CONTAINER = 64  # what a list costs of the budget by itself: its reader pays about as much for an empty one
_FEW = 24  # items below which a loop is quicker than asking for all their types first

# Types are told apart by address: a metaclass can give a type a __hash__ and an __eq__ of its own.
_NONE, _BOOL, _INT, _FLOAT, _STR = map(id, (type(None), bool, int, float, str))
_PLAIN = frozenset({_NONE, _BOOL, _INT, _FLOAT, _STR})


_SHOWN = 200
"""Characters of an item that is not portable."""


def encode(value: object, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH, max_opaque: int = 0) -> Encoded:
    """The portable form of `value`, or `NotPortable` saying why there is none.

    `max_bytes` bounds the tree as ASCII JSON without spaces and the buffers together; the walk stops at the
    first byte past it. A value that contains itself is too deep. Whatever reading the value raises, a
    tampered object's AttributeError or a MemoryError, makes it not portable; BaseException passes.
    So many items may be `Opaque` where they are not portable: that runs their `__repr__`.
    """
    kind = type(value)
    if value is None or kind is bool or (kind is int and SMALLEST <= value <= LARGEST):  # type: ignore[operator]
        return Encoded(value)
    writer = _Writer(max_bytes, max_depth, max_opaque)
    try:
        return Encoded(writer.tree(value, 0), tuple(writer.buffers), writer.room)
    except NotPortable:
        raise
    except RecursionError:
        raise NotPortable("nested deeper than the interpreter's stack") from None
    except Exception as error:
        raise NotPortable(f"reading it raised {type_name(error)}") from None


class _Writer(LeafWriter):
    __slots__ = ()

    def tree(self, value: object, depth: int) -> object:
        write = _WRITERS.get(id(type(value)))
        return write(self, value, depth) if write is not None else self.rare(value, depth)

    def of_list(self, value: list[object], depth: int) -> object:
        self.unhashable("list")
        self.spend(2 * len(value) + 2)  # before the copy
        return self.items(list(value), depth)

    def of_tuple(self, value: tuple[object, ...], depth: int) -> object:
        self.spend(2 * len(value) + NODE)
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
        self.spend(2 * len(value) + NODE)
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
        if depth >= self.max_depth:
            raise NotPortable(f"nested deeper than {self.max_depth}, or contains itself")
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
            elif kind is int and SMALLEST <= item <= LARGEST:  # type: ignore[operator]
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
            if min(ints) < SMALLEST or max(ints) > LARGEST:  # type: ignore[type-var, operator]
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
        self.spend(8 * len(items))
        try:
            numbers = array("q" if tag == "ints" else "d", items)  # type: ignore[type-var]
        except OverflowError:
            return None
        finally:
            self.left += 8 * len(items)
        if sys.byteorder == "big":
            numbers.byteswap()
        return {tag: self.blob(numbers.tobytes(), of_numbers)}

    def of_slice(self, value: slice, depth: int) -> object:
        self.unhashable("slice")
        self.spend(NODE)
        return {"slice": self.items([value.start, value.stop, value.step], depth)}

    def of_enum_name(self, value: EnumName, depth: int) -> object:
        self.stand_ins += 1
        self.spend(NODE)
        return {"enum": [self.of_text(plain(value.type)), self.of_text(plain(value.name))]}

    def of_record(self, value: Record, depth: int) -> object:
        if type(value.fields) is not dict:
            raise NotPortable("a Record whose fields are not a dict")
        return self.record_of(plain(value.type), list(value.fields), list(value.fields.values()), depth)

    def record_of(self, type_: str, names: list[str], values: list[object], depth: int) -> object:
        self.stand_ins += 1
        self.spend(2 * len(names) + 2 * len(values) + NODE)
        head = [self.of_text(type_), [self.of_text(plain(name)) for name in names]]
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
            self.spend(len(found.dtype) + NODE)
            if found.shape is None:
                return {"scalar": [found.dtype, self.blob(bytes(found.raw()))]}
            return self.array(found)
        moment = moment_of(value)
        if moment is not None:
            return self.tree(moment, depth)
        table = table_parts(value)
        if table is not None:
            self.unhashable("table")
            self.spend(NODE)
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
        self.spend(found.nbytes + 21 * len(found.shape) + NODE)
        self.left += found.nbytes
        raw = found.raw()
        blob = self.buffer(raw) if len(raw) >= forms.INLINE_BYTES else self.blob(bytes(raw))
        return {"array": [found.dtype, list(found.shape), blob, found.by_columns]}


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
