"""The fields of an instance, read without running anything its class defines.

`getattr` would run `__getattribute__`, properties and metaclasses of the agent's own classes. What is read
here lies in the instance's `__dict__` or in a slot, both found through `type`'s own descriptors.
"""

from __future__ import annotations

import dataclasses
import sys
from abc import ABCMeta
from array import array
from collections import deque
from collections.abc import Callable
from enum import Enum
from types import GetSetDescriptorType, MemberDescriptorType, SimpleNamespace
from typing import Any

_mro_of = type.__dict__["__mro__"].__get__
_namespace_of = type.__dict__["__dict__"].__get__
_ABSENT = object()
_ARGS = BaseException.__dict__["args"].__get__
_ENUM, _TUPLE = id(Enum), id(tuple)
_NAMESPACE_DICT = SimpleNamespace.__dict__["__dict__"].__get__
_EXCEPTION, _NAMESPACE = id(BaseException), id(SimpleNamespace)
_HELD: dict[int, Callable[[Any], object]] = {
    id(int): int.__int__,
    id(float): float.__float__,
    id(complex): complex.__pos__,
    id(str): str.__str__,
    id(bytes): lambda value: bytes.__getitem__(value, slice(None)),
    id(bytearray): bytearray.copy,
    id(list): list.copy,
    id(tuple): lambda value: tuple.__getitem__(value, slice(None)),
    id(set): set,
    id(frozenset): frozenset,
    id(deque): lambda value: list(deque.__iter__(value)),
    id(array): array.tolist,
}
"""Plain values that instances of derived classes hold, copied by C that runs no method of theirs."""
_WITH_CONTENT = frozenset({*_HELD, *map(id, (dict, BaseException, type))})


def enum_member(value: object) -> str | None:
    """The name of a member of an enumeration; None for anything else, unnamed flags included."""
    if _ENUM not in map(id, _mro_of(type(value))):
        return None
    name = _instance_dict(value).get("_name_")
    return name if type(name) is str else None


def held_by(value: object) -> object:
    """The plain value that an array of Python's, or an instance of a class derived from a built-in one, holds.

    None where it holds none, or more than that.
    """
    if _dataclass_names(type(value)) is None:
        for base in _mro_of(type(value)):
            if (held := _HELD.get(id(base))) is not None:
                return held(value)
    return None


def pairs_of(value: object) -> tuple[list[object], list[object]] | None:
    """Keys and values of an instance of a class derived from dict: a dict of them would run its keys' `__hash__`."""
    if id(dict) not in map(id, _mro_of(type(value))) or _dataclass_names(type(value)) is not None:
        return None
    assert isinstance(value, dict)
    return list(dict.keys(value)), list(dict.values(value))


def fields_of(value: object) -> dict[str, object] | None:
    """Field by field what a dataclass, pydantic model, named tuple, namespace or exception holds; None for any other
    value.

    A dataclass that is also a list, a dict or the like holds more than its fields, so it is none.
    """
    line = _mro_of(type(value))
    addresses = set(map(id, line))
    if _TUPLE in addresses:
        return _named_tuple(value)
    if _EXCEPTION in addresses:
        return {"args": _ARGS(value)}
    if addresses & _WITH_CONTENT:
        return None
    if _NAMESPACE in addresses:
        return dict(_NAMESPACE_DICT(value))
    names = _dataclass_names(type(value))
    if names is None:
        names = _model_names(type(value), addresses)
    if names is None:
        return None
    found = {name: _read(value, name) for name in names}
    extra = _read(value, "__pydantic_extra__")
    if type(extra) is dict:
        found.update((name, item) for name, item in extra.items() if type(name) is str)
    return None if any(item is _ABSENT for item in found.values()) else found


def _named_tuple(value: object) -> dict[str, object] | None:
    names = _static(type(value), "_fields")
    assert isinstance(value, tuple)
    items = list(tuple.__iter__(value))
    if type(names) is not tuple or len(names) != len(items) or not all(type(name) is str for name in names):
        return None
    return dict(zip(names, items, strict=True))


def _dataclass_names(kind: type) -> list[str] | None:
    declared = _static(kind, "__dataclass_fields__")
    # with a metaclass of its own, `dataclasses.fields` would read the attribute through it
    if type(declared) is not dict or not (type(kind) is type or type(kind) is ABCMeta):
        return None
    if not all(type(field) is dataclasses.Field for field in declared.values()):
        return None
    names = [field.name for field in dataclasses.fields(kind)]
    return names if all(type(name) is str for name in names) else None


def _model_names(kind: type, addresses: set[int]) -> list[str] | None:
    module = sys.modules.get("pydantic.main")
    model = vars(module).get("BaseModel") if module is not None else None
    if model is None or id(model) not in addresses:
        return None
    for attribute in ("__pydantic_fields__", "model_fields", "__fields__"):  # pydantic 2.10, 2.0, 1
        declared = _static(kind, attribute)
        if type(declared) is dict:
            return [name for name in declared if type(name) is str]
    return None


def _static(kind: type, name: str) -> object:
    for base in _mro_of(kind):
        namespace = _namespace_of(base)
        if name in namespace:
            return namespace[name]
    return _ABSENT


def _read(value: object, name: str) -> object:
    held = _instance_dict(value)
    if name in held:
        return held[name]
    static = _static(type(value), name)
    if type(static) is MemberDescriptorType:
        try:
            return static.__get__(value)
        except AttributeError:  # an empty slot
            return _ABSENT
    return static


def _instance_dict(value: object) -> dict[str, object]:
    for base in _mro_of(type(value)):
        descriptor = _namespace_of(base).get("__dict__")
        if descriptor is None:
            continue
        if type(descriptor) is not GetSetDescriptorType:
            return {}  # the class defines a __dict__ of its own
        held = descriptor.__get__(value)
        return held if type(held) is dict else {}
    return {}
