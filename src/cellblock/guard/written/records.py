"""Stand-ins for `dataclasses`: for the host's dataclasses, and for making new ones in a world."""

from __future__ import annotations

import dataclasses
import keyword
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cellblock.guard import hints
from cellblock.guard.anatomy import lineage, name_of, namespace
from cellblock.guard.names import is_dunder
from cellblock.guard.refusal import denied
from cellblock.guard.standins import TypeStandIn

if TYPE_CHECKING:
    from cellblock.guard.world import World

FIELDS, PARAMETERS = "__dataclass_fields__", "__dataclass_params__"
_PARTS = tuple(
    name
    for name in ("init", "repr", "hash", "compare", "metadata", "kw_only", "doc")
    if name in vars(dataclasses.Field)["__slots__"]
)
"""Arguments of a field beside its default, in the order in which it takes them."""


def record_of(world: World, value: Any) -> type | None:
    """The dataclass of the host's that something is, or is an instance of; None for anything else."""
    kind: Any = type(value)
    if kind is TypeStandIn:
        kind = value._kind
    elif issubclass(kind, type):
        kind = value
    if world.classes.own(kind):
        return None
    where: type | None = next((one for one in lineage(kind) if FIELDS in namespace(one)), None)
    return None if where is None or world.classes.own(where) else where


def fields_of(world: World, value: Any) -> dict[str, Any] | None:
    """The fields of a dataclass of the host's, told by fields of the world's own; an error if one is not granted."""
    kind = record_of(world, value)
    if kind is None:
        return None
    audit, space, found = world.types.get(kind), world.library.module("dataclasses"), {}
    for name, one in namespace(kind)[FIELDS].items():
        if audit is None or name not in audit.reads:
            raise denied(f"field {name!r} of {name_of(kind)!r} is not granted")
        given = (one.default, one.default_factory)
        defaults = [space["MISSING"] if part is dataclasses.MISSING else part for part in given]
        found[name] = made = space["Field"](*defaults, *(getattr(one, part) for part in _PARTS))
        made.name, made.type, made._field_type = name, one.type, space[one._field_type.name]
    return found


def parameters_of(world: World, kind: type) -> Any:
    """Parameters of a dataclass; of the host's only if it is frozen."""
    where = next((one for one in lineage(kind) if PARAMETERS in namespace(one)), None)
    if where is None:
        raise AttributeError(f"type object {name_of(kind)!r} has no attribute {PARAMETERS!r}")
    found = namespace(where)[PARAMETERS]
    return found if world.classes.own(where) else world.library.holding({"frozen": found.frozen})


def checking(world: World, space: dict[str, Any]) -> Callable[..., Any]:
    """A function that makes a class a dataclass, for classes of the world's own and fields that are names."""
    process = space["_process_class"]

    def _process_class(cls: Any, *given: Any, **named: Any) -> Any:
        if not isinstance(cls, type) or not world.classes.own(cls):
            raise denied("only classes of the code's own can be made dataclasses", "class")
        annotations = namespace(cls).get("__annotations__", {})
        if type(annotations) is not dict:
            raise TypeError("annotations are to be a dict")
        for name in annotations:
            if type(name) is not str or not name.isidentifier() or keyword.iskeyword(name) or is_dunder(name):
                raise TypeError(f"Field names must be valid identifiers: {name!r:.100}")
        return process(cls, *given, **named)

    return _process_class


def remembering(world: World, space: dict[str, Any]) -> Callable[..., Any]:
    """A function that makes a class anew with slots, known by the statement that made the first."""
    add = space["_add_slots"]

    def _add_slots(cls: Any, *given: Any) -> Any:
        made = add(cls, *given)
        world.classes.remade(made, like=cls)
        return made

    return _add_slots


def is_class_variable(world: World, space: dict[str, Any]) -> Callable[..., bool]:
    """True for `ClassVar`, and for `ClassVar[…]`."""
    forms = hints.each(lambda typing: typing.ClassVar)

    def _is_classvar(a_type: Any, _: Any) -> bool:
        return any(a_type is one or hints.of(a_type).get_origin(a_type) is one for one in forms)

    return _is_classvar
