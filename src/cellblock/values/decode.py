"""From a tree and buffers to a value, on the host: a security border.

Everything read here was written behind a wall and may be a lie. The decoder builds only what the table at the
end has a row for, names every buffer once and in order (so that one buffer cannot be copied a million times),
bounds every size before it allocates, and turns whatever else into `MalformedValue`.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Collection, Sequence
from itertools import chain
from typing import TypeVar

from cellblock.values import forms
from cellblock.values.arrays import read_array
from cellblock.values.decode_leaf import PLAIN, LeafReader, check_plain, parts_of, tag_of
from cellblock.values.forms import MAX_DEPTH, Buffer, MalformedValue, Record
from cellblock.values.hashing import check_keys
from cellblock.values.pieces import AT_ONCE, parts
from cellblock.values.room import of_numbers
from cellblock.values.tables import read_table

_C = TypeVar("_C", bound=Collection[object])
_PACKED = {"ints": "q", "floats": "d"}


def decode(
    tree: object, buffers: Sequence[Buffer] = (), *, max_depth: int = MAX_DEPTH, spends: bool = False
) -> object:
    """The value that `encode` wrote, or `MalformedValue`. Costs linear time.

    `spends`: the tree is emptied as it is read, as to free all of it takes one long call.
    """
    reader = _Reader(buffers, max_depth)
    reader.spends = spends
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


class _Reader(LeafReader):
    __slots__ = ()

    def value(self, tree: object, depth: int) -> object:
        kind = type(tree)
        if kind is dict:
            tag, body = tag_of(tree)
            read = _READERS.get(tag)
            if read is None:
                raise MalformedValue("a tag that no row names")
            return read(self, body, depth)
        if kind is list:
            self.unhashable()
            return self.items(tree, depth)
        if kind in PLAIN:
            check_plain([tree], {kind})
            return tree
        raise MalformedValue("a node that JSON does not have")

    def items(self, tree: object, depth: int) -> list[object]:
        if depth >= self.max_depth:
            raise MalformedValue(f"nested deeper than {self.max_depth}")
        if type(tree) is list:
            found: list[object] = []
            for at in range(0, len(tree), AT_ONCE):
                part = tree[at : at + AT_ONCE]
                if self.spends:
                    tree[at : at + AT_ONCE] = [None] * len(part)
                kinds = set(map(type, part))
                if kinds <= PLAIN:
                    check_plain(part, kinds)
                    found += part
                else:
                    found += [self.value(item, depth + 1) for item in part]
            return found
        tag, body = tag_of(tree)
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
        key_tree, value_tree = parts_of(body, 2)
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
        start, stop, step = parts_of(self.items(body, depth), 3)
        return slice(start, stop, step)

    def to_record(self, body: object, depth: int) -> object:
        type_, names, values = parts_of(body, 3)
        if type(names) is not list:
            raise MalformedValue("a record without names")
        type_name, fields = self.string(type_), [self.string(name) for name in names]
        items = self.items(values, depth)
        if len(fields) != len(items):
            raise MalformedValue("a record with more names than values, or fewer")
        return Record(type_name, _distinct(dict(zip(fields, items, strict=True)), fields))

    def to_array(self, body: object, depth: int) -> object:
        self.unhashable()
        dtype, shape, blob, by_columns = parts_of(body, 4)
        if type(by_columns) is not bool:
            raise MalformedValue("an array that is in no order")
        return read_array(dtype, shape, self.memory(blob), by_columns=by_columns)

    def to_table(self, body: object, depth: int) -> object:
        self.unhashable()
        return read_table(self.items(body, depth))


def _set_of(keys: Sequence[object]) -> set[object]:
    made: set[object] = set()
    for some in parts(keys):
        made.update(some)
    return made


def _distinct(built: _C, keys: Collection[object]) -> _C:
    if len(built) != len(keys):
        raise MalformedValue("two keys that are equal")
    return built


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
