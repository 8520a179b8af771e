"""The shapes of audits, and the audit of Python's own types: which attributes of which type may be read.

A `TypeAudit` is about one class of the host, a `ModuleAudit` about one module. The public names of classes and modules
that were looked at stand in `members.txt`, by hand or reviewed: a row begins with the classes or modules that it is
about, and what is indented goes on with it. What no row names is refused, so what a later version of Python adds is
refused until somebody has looked at it and put it there.
"""

from __future__ import annotations

import builtins
import types
import typing
from array import array
from collections import deque, namedtuple
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby, tee
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellblock.guard import growth, sizes
from cellblock.guard.bounded import METHODS, STATICS
from cellblock.guard.formatting import bound_format, bound_format_map
from cellblock.guard.names import names
from cellblock.policy import Members

if TYPE_CHECKING:
    from cellblock.guard.world import World

Replaced = Callable[["World", Any], object]
"""Given the world and the object, what an attribute of it is instead."""


class Method:
    """A `Replaced` that is a method: `make(world)` gives a function that takes the object first.

    `exact` makes what the function takes of an instance of a subclass.
    """

    __slots__ = ("_exact", "_key", "_make")

    def __init__(
        self, key: str, make: Callable[[World], Callable[..., Any]], *, exact: Callable[[Any], Any] | None = None
    ) -> None:
        self._key = key
        self._make = make
        self._exact = exact

    def function(self, world: World) -> Any:
        """The function, which a world makes once."""
        found = world.values.get(self._key)
        if found is None:
            found = world.values[self._key] = self._make(world)
        return found

    def __call__(self, world: World, value: Any) -> object:
        return types.MethodType(self.function(world), value if self._exact is None else self._exact(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeAudit:
    """Grants for a class of the host and its instances.

    `reads` are attributes of instances, `statics` those reached on the class itself, `writes` may be set on instances.
    `replaced` and `static_replaced` give something else in an attribute's place.
    """

    type: type
    reads: frozenset[str] = frozenset()
    statics: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    replaced: Mapping[str, Replaced] = field(default_factory=dict)
    static_replaced: Mapping[str, Replaced] = field(default_factory=dict)
    constructable: bool = True
    subclassable: bool = False
    trusted: bool = False
    """True if its package is trusted: what the class has for its instances is handed out as it is."""
    refused: frozenset[str] | None = None
    """Public names that were looked at and left out, where `reads` are those of a reviewed row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleAudit:
    """Grants for a module. `members` are handed out as they are; others stand in for what it has under a name.

    `instead` are the same for each world, `replaced` are made for one. `types` are classes met through it. `submodules`
    are members that are modules with audits of their own. `note` says what was left out, and why.
    """

    name: str
    members: frozenset[str] = frozenset()
    instead: Mapping[str, object] = field(default_factory=dict)
    replaced: Mapping[str, Callable[[World], object]] = field(default_factory=dict)
    types: tuple[TypeAudit, ...] = ()
    submodules: frozenset[str] = frozenset()
    note: str = ""
    refused: frozenset[str] | None = None
    """Public names that were looked at and left out, where `members` are those of a reviewed row."""
    real: Any = None
    """The module that the members are of, where it is another than that of the program."""
    calling: frozenset[str] = frozenset()
    """Functions of the module that call what they are given."""
    naming: frozenset[str] = frozenset()
    """Functions and classes of it that use methods of what they are given by name: they get nothing of the host's."""
    written: bool = False
    """True if `members` are of the module that a world makes from the running Python's own source."""


class Matching:
    """The names that a grant's patterns match, as a set, without `hidden` ones."""

    def __init__(self, members: Members, hidden: Iterable[str] = ()) -> None:
        self._members = members
        self.hidden = frozenset(hidden)

    def __contains__(self, name: str) -> bool:
        return name not in self.hidden and self._members.allow(name)

    def __sub__(self, names: Iterable[str]) -> Matching:
        return Matching(self._members, self.hidden.union(names))


MEMBERS = Path(__file__).parent / "members.txt"


def row_name(kind: type) -> str:
    """Name of the row of a class."""
    return f"{kind.__module__}.{kind.__qualname__}"


def listed(name: str) -> frozenset[str]:
    """The names that the row of a class or module grants; none where it has no row."""
    return rows().get(name, frozenset())


@cache
def rows() -> Mapping[str, frozenset[str]]:
    """The rows by name."""
    found: dict[str, frozenset[str]] = {}
    for line in MEMBERS.read_text(encoding="ascii").replace("\n    ", " ").splitlines():
        if not line.startswith("#"):
            owners, _, listed_names = line.partition(":")
            found |= dict.fromkeys(owners.split(), names(listed_names))
    return found


def public(kind: type, *, but: Iterable[str] = ()) -> frozenset[str]:
    """The names that the reviewed row of a class grants, without those of `but`."""
    return listed(row_name(kind)) - frozenset(but)


def view_of_copy(found: Mapping[str, Any]) -> types.MappingProxyType[str, Any]:
    """A read-only view of a copy: comparing a view hands its dict to `__eq__` of the other side."""
    return types.MappingProxyType(dict(found))


def viewed(name: str) -> Replaced:
    """Stand-in for an attribute that is a read-only view."""

    def replaced(world: World, value: Any) -> object:
        found = getattr(value, name)
        return view_of_copy(found) if type(found) is types.MappingProxyType else found

    return replaced


def audit(
    kind: type,
    *,
    but: Iterable[str] = (),
    also: Iterable[str] = (),
    writes: Iterable[str] = (),
    constructable: bool = True,
    subclassable: bool = False,
    replaced: Mapping[str, Replaced] | None = None,
    static_replaced: Mapping[str, Replaced] | None = None,
) -> TypeAudit:
    """An audit of a class by its reviewed row: what it names is granted, `but` is what was left out of it."""
    reads = public(kind, but=but) | frozenset(also)
    return TypeAudit(
        type=kind,
        reads=reads,
        statics=reads,
        writes=frozenset(writes),
        constructable=constructable,
        subclassable=subclassable,
        replaced=replaced or {},
        static_replaced=static_replaced or {},
        refused=frozenset(but),
    )


def written(module: str, *members: str) -> dict[str, Callable[[World], object]]:
    """What gives members that a world makes from the source of a module."""

    def given(name: str) -> Callable[[World], object]:
        return lambda world: world.library.module(module)[name]

    return {name: given(name) for name in members}


def naming(*members: str) -> dict[str, Replaced]:
    """Forms of methods that use what they are given by name: of the host's they are given nothing."""

    def form(name: str) -> Replaced:
        return lambda world, value: world.calls.naming(getattr(value, name))

    return {name: form(name) for name in members}


def _of_type(make: Replaced) -> Replaced:
    return lambda world, value: make(world, type(value))


def measured(
    kind: type, *, but: Iterable[str] = (), also: Mapping[str, Replaced] | None = None, writes: Iterable[str] = ()
) -> TypeAudit:
    """The same for a class with bounded forms of some methods: see `bounded`. `also`: other things in their place."""
    statics = STATICS.get(kind, {})
    forms: dict[str, Replaced] = {
        **{name: Method(f"{kind.__qualname__}.{name}", make) for name, make in METHODS[kind].items()},
        **{name: _of_type(make) for name, make in statics.items()},
        **(also or {}),
    }
    return audit(
        kind, but=(*forms, *but), writes=writes, subclassable=True, replaced=forms, static_replaced=statics
    )


_TEXTS: tuple[Any, ...] = (str, bytes, bytearray)


def _text_method(kind: type, name: str) -> Method:
    def make(world: World) -> Callable[..., Any]:
        key = f"{kind.__name__} methods"
        found = world.values.get(key) or growth.methods(kind, world.classes.texts)
        world.values[key] = found
        return found[name]

    return Method(f"{kind.__name__}.{name}", make, exact=str.__str__ if kind is str else kind)


def _of_text(kind: type) -> TypeAudit:
    """The audit of a kind of text, with forms of methods whose result may be far larger than what they are given."""
    forms: dict[str, Replaced] = {name: _text_method(kind, name) for name in growth.methods(kind, [])}
    if kind is str:
        forms["format"] = lambda world, value: bound_format(value, index=world.policy.format_index)
        forms["format_map"] = lambda world, value: bound_format_map(value, index=world.policy.format_index)
    return audit(kind, but=forms, subclassable=True, replaced=forms)


def accessors(kind: Any) -> dict[str, Method]:
    """Forms of what gives a kind of property another function to call."""

    def form(name: str) -> Method:
        def make(world: World) -> Callable[..., Any]:
            return lambda self, function, /: getattr(kind, name)(self, world.calls.given(function))

        return Method(f"{kind.__module__}.{kind.__qualname__}.{name}", make)

    return {name: form(name) for name in ("getter", "setter", "deleter")}


_TO_BYTES = sizes.width(int.to_bytes)
_OF_INT: dict[str, Replaced] = {
    "to_bytes": Method("int.to_bytes", lambda world: _TO_BYTES),
    "from_bytes": lambda world, value: sizes.from_bytes(type(value)),
}
_OF_INT_CLASS: dict[str, Replaced] = {"from_bytes": lambda world, kind: sizes.from_bytes(kind)}

_DATA: tuple[TypeAudit, ...] = (
    *(audit(kind, subclassable=True) for kind in (float, object, complex, enumerate, zip, map, filter, reversed)),
    *map(measured, (list, dict, set, frozenset, tuple)),
    *map(_of_text, _TEXTS),
    audit(int, but=_OF_INT, subclassable=True, replaced=_OF_INT, static_replaced=_OF_INT_CLASS),
    audit(bool, but=_OF_INT, replaced=_OF_INT, static_replaced=_OF_INT_CLASS),
    *map(audit, (range, slice, staticmethod, classmethod)),
    audit(
        property,
        but=accessors(property),
        replaced=accessors(property),
        subclassable=True,
        also=names("fget fset fdel"),
    ),
)

_ITERATORS = (
    *(type(iter(kind())) for kind in (str, bytes, bytearray, list, dict, set, tuple)),
    type(iter("é")),
    type(iter(range(1))),
    type(iter(range(2**70))),
    type(reversed([])),
    type(reversed({})),
    type(reversed({}.items())),
    type(reversed({}.values())),
    type(reversed(deque())),
    *map(type, (iter(array("b")), *tee("a"), *(group for _, group in groupby("a")))),
    type(iter(list[int])),  # type: ignore[call-overload]
    type(iter({}.items())),
    type(iter({}.values())),
    type(iter(int, 1)),
    type(iter(type("_", (), {"__getitem__": lambda self, n: n})())),
)
_VARIABLES = ("TypeVar", "ParamSpec", "TypeVarTuple", "TypeAliasType")
"""Types that the syntax for type parameters makes."""
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
_OTHERS: tuple[type, ...] = (
    type(None),
    type(...),
    type(NotImplemented),
    types.MappingProxyType,
    types.GenericAlias,
    types.UnionType,
    *(kind for name, kind in vars(typing).items() if name in _VARIABLES),
)


def _generator(kind: type, reads: str) -> TypeAudit:
    return TypeAudit(type=kind, reads=names(reads), constructable=False)


def _errors() -> Iterable[TypeAudit]:
    for kind in vars(builtins).values():
        if isinstance(kind, type) and issubclass(kind, BaseException):
            yield audit(kind, but=["obj"], subclassable=True, writes=public(kind))


_FIELD = type(vars(namedtuple("_", "one"))["one"])
"""What a named tuple reads a field by."""
BUILTIN_TYPES: dict[type, TypeAudit] = {
    one.type: one
    for one in (
        *_DATA,
        *(audit(kind, constructable=False) for kind in (*_ITERATORS, *_OTHERS)),
        *(audit(kind, constructable=False, replaced={"mapping": viewed("mapping")}) for kind in _VIEWS),
        _generator(types.GeneratorType, "send throw close"),
        _generator(types.CoroutineType, "send throw close"),
        _generator(types.AsyncGeneratorType, "asend athrow aclose"),
        _generator(types.FunctionType, ""),
        _generator(types.BuiltinFunctionType, ""),
        _generator(types.MethodType, ""),
        _generator(types.MethodWrapperType, ""),
        _generator(types.WrapperDescriptorType, ""),
        _generator(types.MethodDescriptorType, ""),
        _generator(types.ClassMethodDescriptorType, ""),
        _generator(types.GetSetDescriptorType, ""),
        _generator(types.MemberDescriptorType, ""),
        _generator(super, "__init__"),
        TypeAudit(type=_FIELD, reads=names("__doc__"), writes=names("__doc__"), constructable=False),
        TypeAudit(type=vars(typing)["Generic"], subclassable=True),
        *_errors(),
    )
}
"""Python's own types."""
BUILTIN_TYPES.pop(type, None)
VALUES: frozenset[type] = frozenset(
    {one.type for one in _DATA} - {object, property, staticmethod, classmethod} | {*_ITERATORS, *_VIEWS, type(None)}
)
"""Those whose objects have no attribute that anybody sets."""

OF_CONTAINERS = names("extend sort count index remove update union intersection difference")
STRIPPING = names("strip lstrip rstrip")
"""Methods that are bounded where they are not told what to take off by a few constants."""
SPECIAL = BUILTIN_TYPES[str].replaced.keys() | _OF_INT.keys()
"""Names that Python's own types have something else for."""
SWAPPED = OF_CONTAINERS | (SPECIAL - _OF_INT.keys() - names("format format_map")) | names(
    "match fullmatch search findall finditer sub subn"
)
"""Names of methods that are the guard's own for some types, and often called: code binds them without a gate."""

READS: dict[type, frozenset[str]] = {kind: one.reads for kind, one in BUILTIN_TYPES.items()}
