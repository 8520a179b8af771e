"""`dataclasses` behind the gates: fields are names, and are read and written as attributes of their objects are."""

from __future__ import annotations

import copy
import dataclasses
import keyword
import re
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cellblock.guard.anatomy import lineage, namespace
from cellblock.guard.names import is_dunder
from cellblock.guard.refusal import denied
from cellblock.guard.standins import Module
from cellblock.guard.stdlib.copies import deepcopy_of
from cellblock.guard.tables import ModuleAudit, TypeAudit, audit, names, viewed

if TYPE_CHECKING:
    from cellblock.guard.world import World

_FIELDS = "__dataclass_fields__"


def require_fields(annotations: Any) -> None:
    """That names of fields are names: dataclasses write them into source."""
    if type(annotations) is not dict:
        raise TypeError("annotations are to be a dict")
    for name in annotations:
        if type(name) is not str or not name.isidentifier() or keyword.iskeyword(name) or is_dunder(name):
            raise TypeError(f"Field names must be valid identifiers: {name!r:.100}")


def _require_class(world: World, cls: type, annotations: Any) -> None:
    """That nothing which dataclasses find in a class, or in those it inherits from, has been made up."""
    require_fields(annotations)
    for kind in (*lineage(type(cls))[:-2], *lineage(cls)):
        found = namespace(kind).get(_FIELDS, {})
        if issubclass(kind, type) and (_FIELDS in namespace(kind) or "__getattr__" in namespace(kind)):
            raise denied("a metaclass with fields or __getattr__ makes no dataclass", "class")
        if type(found) is not dict or not all(
            type(one) is dataclasses.Field and one.name == name for name, one in found.items()
        ):
            raise denied(f"the fields of {kind.__name__} are no fields", "class")
        require_fields(dict.fromkeys(found))
        if kind in world.host_types and any(name not in world.types[kind].writes for name in annotations):
            raise denied(f"a dataclass cannot set what {kind.__name__} holds", "store")


_SPECIAL = re.compile(r"\s*(?:(\w+)\s*\.)?\s*(\w+)")


def _special(world: World, text: str) -> Any:
    """What makes a field that is none, where the text of an annotation begins with its name; else the text."""
    found = _SPECIAL.match(str.__str__(text))
    if found is None:
        return text
    module, name = found.groups()
    value = world.globals.get(module or name)
    if module is not None:
        value = vars(value).get(name) if type(value) is Module else None
    special = (typing.ClassVar, dataclasses.InitVar, dataclasses.KW_ONLY)
    return value if any(value is one for one in special) else text


def _dataclass(world: World) -> Callable[..., Any]:
    def dataclass(cls: Any = None, /, **options: Any) -> Any:
        def make(cls: Any) -> Any:
            if not isinstance(cls, type) or not world.classes.own(cls):
                raise denied("only classes of the code's own can be made dataclasses", "class")
            annotations = namespace(cls).get("__annotations__", {})
            _require_class(world, cls, annotations)
            texts = {name: kind for name, kind in annotations.items() if isinstance(kind, str)}
            annotations.update((name, _special(world, kind)) for name, kind in texts.items())
            try:
                made: Any = dataclasses.dataclass(cls, **options)
            finally:
                annotations.update(texts)
            for name in texts.keys() & namespace(made)[_FIELDS].keys():
                namespace(made)[_FIELDS][name].type = texts[name]
            return world.classes.adopt(made, like=cls)

        return make if cls is None else make(cls)

    return dataclass


def _make_dataclass(world: World) -> Callable[..., type]:
    make = _dataclass(world)

    def make_dataclass(cls_name: str, fields: Any, *, bases: Any = (), namespace: Any = None, **options: Any) -> type:
        annotations: dict[str, Any] = {}
        defined: dict[str, Any] = dict(namespace or {})
        for field in fields:
            name, kind, *default = (field, "typing.Any") if isinstance(field, str) else field
            annotations[name] = kind
            if default:
                defined[name] = default[0]
        require_fields(annotations)
        defined["__annotations__"] = annotations
        options.pop("module", None)
        return make(world.classes.make(type, cls_name, tuple(bases), defined), **options)  # type: ignore[no-any-return]

    return make_dataclass


def _field_names(world: World, value: Any) -> list[str]:
    """The names of an object's fields, each of which may be read on it."""
    found = dataclasses.fields(value)
    for one in found:
        if type(one.name) is not str or is_dunder(one.name):
            raise denied(f"{one.name!r:.100} is no field", "attribute")
        if not isinstance(value, type):
            world.gates.read(value, one.name)
    return [one.name for one in found]


def _is_record(value: Any) -> bool:
    return not isinstance(value, type) and dataclasses.is_dataclass(type(value))


def _inner(world: World, value: Any, record: Callable[[Any], Any]) -> Any:
    if _is_record(value):
        return record(value)
    kind = type(value)
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return kind(*[_inner(world, one, record) for one in value])
    if isinstance(value, list | tuple):
        return kind(_inner(world, one, record) for one in value)
    if isinstance(value, dict):
        pairs = [(_inner(world, key, record), _inner(world, one, record)) for key, one in value.items()]
        made: Any = kind(value.default_factory) if hasattr(kind, "default_factory") else kind()  # type: ignore[attr-defined]
        made.update(pairs)
        return made
    return deepcopy_of(world)(value)


def _asdict(world: World) -> Callable[..., Any]:
    get = world.builtins["getattr"]

    def asdict(obj: Any, *, dict_factory: Any = dict) -> Any:
        if not _is_record(obj):
            raise TypeError("asdict() should be called on dataclass instances")

        def record(value: Any) -> Any:
            return dict_factory(
                [(name, _inner(world, get(value, name), record)) for name in _field_names(world, value)]
            )

        return record(obj)

    return asdict


def _astuple(world: World) -> Callable[..., Any]:
    get = world.builtins["getattr"]

    def astuple(obj: Any, *, tuple_factory: Any = tuple) -> Any:
        if not _is_record(obj):
            raise TypeError("astuple() should be called on dataclass instances")

        def record(value: Any) -> Any:
            return tuple_factory([_inner(world, get(value, name), record) for name in _field_names(world, value)])

        return record(obj)

    return astuple


def _fields(world: World) -> Callable[[Any], Any]:
    def fields(class_or_instance: Any) -> Any:
        kind = class_or_instance if isinstance(class_or_instance, type) else type(class_or_instance)
        if dataclasses.is_dataclass(kind) and not world.classes.own(kind):
            audited = world.types.get(kind)
            hidden = [one.name for one in dataclasses.fields(kind) if audited is None or one.name not in audited.reads]
            if hidden:
                raise denied(f"field {hidden[0]!r} of {kind.__name__!r} is not granted")
        return dataclasses.fields(class_or_instance)

    return fields


def _replace(world: World) -> Callable[..., Any]:
    def replace(obj: Any, /, **changes: Any) -> Any:
        if _is_record(obj):
            _field_names(world, obj)
            audited = world.types.get(type(obj))
            if not world.classes.own(type(obj)) and (audited is None or not audited.constructable):
                raise denied(f"{type(obj).__name__} cannot be created here", "class")
        return dataclasses.replace(obj, **changes)

    return replace


def general_replace(world: World) -> Callable[..., Any]:
    """`copy.replace`."""
    replace = _replace(world)

    def replaced(obj: Any, /, **changes: Any) -> Any:
        if _is_record(obj):
            return replace(obj, **changes)
        if not world.classes.own(type(obj)) and type(obj) in world.host_types:
            raise denied(f"{type(obj).__name__} cannot be copied")
        function: Any = vars(copy)["replace"]
        return function(obj, **changes)

    return replaced


AUDIT = ModuleAudit(
    name="dataclasses",
    members=names("field is_dataclass KW_ONLY InitVar MISSING FrozenInstanceError"),
    replaced={
        "dataclass": _dataclass,
        "make_dataclass": _make_dataclass,
        "replace": _replace,
        "asdict": _asdict,
        "astuple": _astuple,
        "fields": _fields,
        "Field": lambda world: world.typeof_class(dataclasses.Field),
    },
    types=(
        TypeAudit(
            type=dataclasses.Field,
            reads=names("name type default default_factory init repr hash compare kw_only"),
            replaced={"metadata": viewed("metadata")},
            constructable=False,
        ),
        audit(dataclasses.FrozenInstanceError, but=["obj"], subclassable=True),
        audit(dataclasses.InitVar),
    ),
    note="fields are names before they are written into source; those of the host's objects are read through the gates",
)
