"""Classes of cells by value: made without their attributes first, so that what they hold may refer to them."""

from __future__ import annotations

import _abc  # type: ignore[import-not-found]  # its Python module has no way to ask
import abc
import enum
import operator
import sys
import types
from collections.abc import Mapping
from typing import Any

from cellblock.worker.saving import building
from cellblock.worker.saving.facts import is_a, is_heap, module_of, name_of, names_in, qualname_of
from cellblock.worker.saving.imported import is_library
from cellblock.worker.saving.losses import Unsaved
from cellblock.worker.saving.pickler import STAND_INS, Reduced, Saving, family, reducer
from cellblock.worker.saving.walk import VARIABLES

_OWN = frozenset(("__slots__", "_abc_impl", "__abstractmethods__", "__slotnames__"))
_OF_MEMBERS = (
    "_member_names_", "_member_type_", "_use_args_", "_value_repr_", "_new_member_",
    "_flag_mask_", "_singles_mask_", "_all_bits_", "_boundary_", "_inverted_",
)  # fmt: skip
"""Names that members, and combinations of flags, are made with."""


@family(type)
def _class(saving: Saving, value: type) -> Reduced:
    reference = saving.reference_to(value, qualname_of(value))
    if reference is not None:
        return reference
    if building._OF_TYPES.get(name_of(value)) is value:
        return building.hidden_type, (name_of(value),)
    if not is_heap(value):
        if _is_replaced(value):
            saving.walk.originals[module_of(value), qualname_of(value)] = value
            return STAND_INS["original"], (module_of(value), qualname_of(value))
        raise Unsaved(value, "a type of an extension that no module holds", "look it up again in the next cell")
    if type(value).__module__ == "_ctypes":
        return _of_ctypes(saving, value)
    body: dict[str, Any] = {"__module__": module_of(value), "__qualname__": qualname_of(value)}
    held = vars(value)
    if "__slots__" in held:
        slots = held["__slots__"]
        body["__slots__"] = slots if isinstance(slots, (str, list, tuple, dict)) else list(slots)
    made = (type(value), name_of(value), value.__bases__, body)
    saving.kept.append(made)
    if issubclass(value, enum.Enum) and "_member_map_" in held:
        state: Any = _of_enum(saving, value)
        return building.class_, made, state, None, None, building.set_enum
    attributes = {name: one for name, one in _ordered(held) if name not in _OWN and not _is_slot(value, one)}
    if "__slots__" in held:
        attributes["__slots__"] = body["__slots__"]
    state = (attributes, _registered(value))
    saving.kept.append(state)
    return building.class_, made, state, None, None, building.set_class


def _ordered(held: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The attributes of a class. Where Python's own stand among them depends on how it was made, so they come first."""
    return sorted(held.items(), key=lambda item: item[0] if item[0][:1] == "_" == item[0][-1:] else "~")


def _is_replaced(value: type) -> bool:
    """True if something else is in a library's module where a class of an extension tells that it is."""
    module: Any = sys.modules.get(module_of(value)) if type(module_of(value)) is str else None
    return is_a(module, types.ModuleType) and is_library(module) and qualname_of(value) in names_in(module)


@reducer(*VARIABLES)
def _variable(saving: Saving, value: Any) -> Reduced:
    """A type variable, a new type or an alias: known by its name where a module holds it."""
    reference = saving.reference_to(value, value.__name__)
    if reference is not None:
        return reference
    kind = type(value).__name__
    options: dict[str, Any] = {}
    arguments: tuple[Any, ...] = (value.__name__,)
    if kind == "NewType":
        arguments += (value.__supertype__,)
    elif kind == "TypeAliasType":
        arguments += (value.__value__,)
        options["type_params"] = value.__type_params__
    else:
        arguments += getattr(value, "__constraints__", ())
        for name in ("bound", "covariant", "contravariant", "infer_variance"):
            if getattr(value, f"__{name}__", None):
                options[name] = getattr(value, f"__{name}__")
        if hasattr(value, "has_default") and value.has_default():
            options["default"] = value.__default__
    return building.named, (type(value), arguments, options, value.__module__)


@family(enum.Enum)
def _member(saving: Saving, value: Any) -> Reduced:
    kind = type(value)
    if saving.origins.of(kind) is not None or value._name_ not in kind._member_map_:
        return NotImplemented
    return building.enum_member, (kind, value._name_)


def _of_enum(saving: Saving, value: Any) -> tuple[list[Any], dict[str, Any]]:
    held = vars(value)
    kind = value._member_type_
    members = []
    for name, member in value._member_map_.items():
        if member._name_ != name:  # an alias
            continue
        arguments: tuple[Any, ...] = ()
        if kind is not object:
            arguments = _plain(kind, member)
        members.append((name, arguments, dict(vars(member))))
    early = {name: held[name] for name in _OF_MEMBERS if name in held}
    late = {name: one for name, one in _ordered(held) if name not in _OWN and name not in early}
    named = value._member_map_.keys()  # combinations of flags are made again as they are asked for
    values = held["_value2member_map_"].items()
    late["_value2member_map_"] = {key: one for key, one in values if one._name_ in named}
    saving.kept.append(late)
    saving.later.append((building.set_later, (value, late)))
    state = (members, early)
    saving.kept.append(state)
    return state


def _of_ctypes(saving: Saving, value: Any) -> Reduced:
    """A structure, array or pointer type: its fields are laid out by its metaclass."""
    import ctypes

    if issubclass(value, ctypes.Array):
        return operator.mul, (value._type_, value._length_)
    if issubclass(value, ctypes._Pointer):
        return ctypes.POINTER, (value._type_,)
    held = {name: one for name, one in _ordered(vars(value)) if name not in _OWN and not _is_slot(value, one)}
    early = ("__module__", "_pack_", "_anonymous_", "_flags_", "_restype_", "_argtypes_")
    body = {name: held.pop(name) for name in early if name in held}
    late = {name: one for name, one in held.items() if type(one).__module__ != "_ctypes"}
    fields = {"_fields_": late.pop("_fields_")} if "_fields_" in late else {}
    like = next(one for one in value.__mro__ if saving.origins.of(one) is not None)
    made = (like, name_of(value), value.__bases__, body)
    state = {**fields, "__doc__": None, **late, "__qualname__": qualname_of(value)}
    return building.foreign_class, made, state, None, None, building.set_foreign


def _plain(kind: type, member: Any) -> tuple[Any, ...]:
    """Recipe of the member's own value as an object of the type that its enumeration is mixed with."""
    for base, convert in _PLAIN.items():
        if issubclass(kind, base):
            return (convert(member),)
    return (member._value_,)


_PLAIN: dict[type, Any] = {
    int: int.__int__,
    float: float.__float__,
    str: str.__str__,
    bytes: lambda one: bytes.__getitem__(one, slice(None)),
    tuple: lambda one: tuple.__getitem__(one, slice(None)),
}


def _registered(value: type) -> tuple[type, ...] | None:
    """The classes registered with an abstract one; None where it is not abstract."""
    if not isinstance(value, abc.ABCMeta) or "_abc_impl" not in vars(value):
        return None
    found = [reference() for reference in _abc._get_dump(value)[0]]
    return tuple(sorted((one for one in found if one is not None), key=lambda one: (one.__module__, one.__qualname__)))


def _is_slot(value: type, one: Any) -> bool:
    """True if a class made these itself: descriptors of its slots, of `__dict__` and of `__weakref__`."""
    kinds = (types.MemberDescriptorType, types.GetSetDescriptorType)
    return isinstance(one, kinds) and one.__objclass__ is value
