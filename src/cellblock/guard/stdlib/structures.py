"""Audits of modules about data structures and the classes that code makes of them."""

from __future__ import annotations

import abc
import collections
import collections.abc
import copy
import dataclasses
import enum
import heapq
import keyword
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from cellblock.guard.anatomy import namespace
from cellblock.guard.refusal import denied
from cellblock.guard.tables import ModuleAudit, TypeAudit, audit, names

if TYPE_CHECKING:
    from cellblock.guard.world import World


def _namedtuple(world: World) -> Callable[..., type]:
    def namedtuple(
        typename: str, field_names: Any, *, rename: bool = False, defaults: Any = None, module: str | None = None
    ) -> type:
        make: Any = collections.namedtuple
        found: type = make(typename, field_names, rename=rename, defaults=defaults, module=module or "__main__")
        return world.classes.adopt(found)

    return namedtuple


def _elements(world: World, counter: Any) -> Callable[[], Iterator[Any]]:
    def elements() -> Iterator[Any]:
        for value, count in dict.items(counter):
            for _ in range(count):
                yield value

    return elements


def _dataclass(world: World) -> Callable[..., Any]:
    def dataclass(cls: Any = None, /, **options: Any) -> Any:
        def make(cls: Any) -> Any:
            if not isinstance(cls, type) or not world.classes.own(cls):
                raise denied("only classes of the code's own can be made dataclasses", "class")
            _require_fields(namespace(cls).get("__annotations__", {}))
            return dataclasses.dataclass(cls, **options)

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
        _require_fields(annotations)
        defined["__annotations__"] = annotations
        options.pop("module", None)
        return make(world.classes.make(type, cls_name, tuple(bases), defined), **options)  # type: ignore[no-any-return]

    return make_dataclass


def _require_fields(annotations: Any) -> None:
    """That names of fields are names: dataclasses write them into source."""
    for name in annotations:
        if type(name) is not str or not name.isidentifier() or keyword.iskeyword(name):
            raise TypeError(f"Field names must be valid identifiers: {name!r:.100}")


def _unchanged(world: World) -> Callable[..., Any]:
    def replace(obj: Any, /, **changes: Any) -> Any:
        return dataclasses.replace(obj, **changes)

    return replace


_ABSTRACT = tuple(getattr(collections.abc, name) for name in collections.abc.__all__)
_ENUMS = ("Enum", "IntEnum", "Flag", "IntFlag", "StrEnum", "ReprEnum")

AUDITS = (
    ModuleAudit(
        name="collections",
        members=names("deque Counter OrderedDict defaultdict ChainMap UserDict UserList UserString"),
        replaced={"namedtuple": _namedtuple},
        submodules=names("abc"),
        types=(
            audit(collections.deque, subclassable=True),
            audit(collections.Counter, but=["elements"], subclassable=True, replaced={"elements": _elements}),
            audit(collections.OrderedDict, subclassable=True),
            audit(collections.defaultdict, subclassable=True, writes=["default_factory"]),
            audit(collections.ChainMap, subclassable=True, also=["maps"], writes=["maps"]),
            audit(collections.UserDict, subclassable=True, also=["data"], writes=["data"]),
            audit(collections.UserList, subclassable=True, also=["data"], writes=["data"]),
            audit(
                collections.UserString,
                but=["format", "format_map", "ljust", "rjust", "center", "zfill", "expandtabs"],
                subclassable=True,
                also=["data"],
            ),
            audit(type(iter(collections.deque[int]())), constructable=False),
            audit(type(iter(collections.OrderedDict[str, int]())), constructable=False),
        ),
    ),
    ModuleAudit(
        name="collections.abc",
        members=frozenset(collections.abc.__all__),
        types=(
            *(audit(kind, subclassable=True) for kind in _ABSTRACT),
            TypeAudit(type=abc.ABCMeta, reads=names("register"), subclassable=True),
        ),
    ),
    ModuleAudit(name="heapq", members=frozenset(heapq.__all__)),
    ModuleAudit(name="bisect", members=names("bisect bisect_left bisect_right insort insort_left insort_right")),
    ModuleAudit(
        name="copy",
        members=names("copy deepcopy replace Error") & frozenset(dir(copy)),
        types=(audit(copy.Error, subclassable=True),),
        note="what classes of the code's own could say of how they are rebuilt, they cannot define",
    ),
    ModuleAudit(
        name="enum",
        members=names(
            "auto unique member nonmember property verify CONTINUOUS NAMED_FLAGS UNIQUE STRICT CONFORM EJECT KEEP"
        )
        | names("EnumType EnumMeta")
        | frozenset(_ENUMS),
        types=(
            *(
                TypeAudit(type=getattr(enum, name), reads=names("name value"), statics=frozenset(), subclassable=True)
                for name in _ENUMS
            ),
            audit(enum.EnumType),
            audit(enum.auto, also=["value"]),
            audit(enum.property),
            audit(enum.FlagBoundary),
            audit(enum.EnumCheck),
        ),
    ),
    ModuleAudit(
        name="dataclasses",
        members=names("field fields asdict astuple is_dataclass KW_ONLY InitVar MISSING FrozenInstanceError Field"),
        replaced={"dataclass": _dataclass, "make_dataclass": _make_dataclass, "replace": _unchanged},
        types=(
            TypeAudit(
                type=dataclasses.Field,
                reads=names("name type default default_factory init repr hash compare metadata kw_only"),
                constructable=False,
            ),
            audit(dataclasses.FrozenInstanceError, but=["obj"], subclassable=True),
            audit(dataclasses.InitVar),
        ),
        note="fields are checked to be names before dataclasses writes them into source",
    ),
)
