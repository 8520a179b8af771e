"""Parts of a value, as a node: tables by exact type. No code of the value's own is run."""

from __future__ import annotations

import datetime as dt
import functools
import re
import sys
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import EnumType
from fractions import Fraction
from hashlib import sha256
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from random import Random
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from cellblock.guard.anatomy import held, holder, lineage, name_of, namespace
from cellblock.guard.sources import Source, statement
from cellblock.guard.standins import Module, module_name
from cellblock.guard.world import World
from cellblock.text import type_name
from cellblock.values.arrays import numpy_parts
from cellblock.values.tables import table_parts
from cellblock.worker.keeping.graph import Graph, Node, NotKept

# Types are told apart by address: a metaclass of the cells' can give one a `__hash__` and an `__eq__` of its own.
_PLAIN = frozenset(map(id, (type(None), bool, int, float, complex, str, bytes)))
"""Types written in place where all of a container's items are of them; values that are no objects."""
_VALUES = _PLAIN | set(map(id, (
    range, dt.date, dt.time, dt.datetime, dt.timedelta, dt.timezone, ZoneInfo, Decimal, Fraction, UUID,
    PurePosixPath, PosixPath, PureWindowsPath, WindowsPath,
)))  # fmt: skip
_SORTED = frozenset(map(id, (int, str, bytes)))
_ITEMS = {id(kind): kind.__name__ for kind in (list, tuple, set, frozenset)}
_PAIRS = {id(kind): kind.__name__ for kind in (dict, Counter, OrderedDict)}
_WHOLE = (dict, list, set, frozenset, tuple, str, bytes, int, float, OrderedDict, Counter)
"""Types of which classes of cells may be heirs, each kept as one of these and attributes."""
_BASES = frozenset(("builtins", "abc", "typing", "enum", "collections", "collections.abc", "_collections_abc"))
_FEW = "make it again in the next cell, or keep the data that it was made from"
_AGAIN = {
    types.GeneratorType: ("a generator", "make it again, or keep list(...) of it"),
    types.CoroutineType: ("a coroutine that was not awaited", "call the function again where it is awaited"),
    types.AsyncGeneratorType: ("an asynchronous generator", "make it again in the next cell"),
    types.TracebackType: ("a traceback", "keep traceback.format_exc() instead"),
    re.Match: ("the match of a pattern", "keep its groups"),
}
_DECORATED = {f"{name}.<locals>.helper": name for name in ("contextmanager", "asynccontextmanager")}
"""By what their code is called, the functions that decorators of `contextlib` make."""


class Describing:
    """Fills in the nodes of one world's objects."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._known: dict[int, str] = {
            id(value): name
            for name, value in (*world.builtins.items(), *world.tools.items())
            if "." not in name and name != "_"
        }
        self._members: dict[int, tuple[str, str]] = {}
        self.sources: dict[str, Source] = {}
        """Those that functions and classes are made from again, by key."""
        self._statements: dict[int, Source] = {}

    def __call__(self, graph: Graph, node: Node) -> None:
        value, kind = node.value, type(node.value)
        if id(kind) in _VALUES:
            node.kind, node.data, node.shared = "value", value, False
        elif kind is object:
            node.kind = "object"
        elif value is type(None):
            node.kind, node.shared = "nonetype", False
        elif (name := self._known.get(id(value))) is not None:
            is_tool = self._world.tools.get(name) is value
            node.kind, node.data, node.shared = "tool" if is_tool else "known", name, False
        elif (row := _ROWS.get(id(kind))) is not None:
            row.describe(graph, node)
        elif (write := _WRITERS.get(id(kind))) is not None:
            write(self, graph, node)
        elif kind is Module:
            node.kind, node.data, node.shared = "module", module_name(value), False
        elif issubclass(kind, type):
            self._class(graph, node)
        elif issubclass(kind, functools.partial) and not self._world.classes.own(kind):
            self._partial(graph, node)
        elif self._world.classes.own(kind):
            self._instance(graph, node)
        elif issubclass(kind, BaseException) and id(kind) in self._known:
            self._attributes(graph, node, "error", value.args)
        elif numpy_parts(value) is not None or table_parts(value) is not None:
            node.kind, node.data = "array", value
        else:
            self._member(node, value)

    # -------------------------------------------------------------------------------- containers

    def _items(self, graph: Graph, node: Node) -> None:
        items = list(node.value)
        node.kind = _ITEMS[id(type(node.value))]
        if set(map(id, map(type, items))) <= _PLAIN:
            node.data = _ordered(items) if node.kind in ("set", "frozenset") else items
            node.shared = node.kind != "tuple"
            return
        graph.items(node, items)

    def _pairs(self, graph: Graph, node: Node) -> None:
        value = dict(node.value)
        node.kind = _PAIRS[id(type(node.value))]
        if set(map(id, map(type, (*value, *value.values())))) <= _PLAIN:
            node.data = [list(value), list(value.values())]
            return
        for key, one in value.items():
            graph.child(node, key)
            graph.child(
                node, one, f"[{key!r}]" if (type(key) is str or type(key) is int) and len(str(key)) < 60 else "[…]"
            )

    def _cell(self, graph: Graph, node: Node) -> None:
        node.kind = "cell"
        try:
            content = node.value.cell_contents
        except ValueError:  # nothing was bound yet
            return
        graph.child(node, content)

    # ------------------------------------------------------------------------------ what is called

    def _function(self, graph: Graph, node: Node) -> None:
        function = node.value
        found = self._world.source_of(function.__code__) if self._world.made(function) else None
        if found is None:
            return self._decorated(graph, node)
        source, place = found
        attributes = dict(held(function))
        node.kind = "function"
        node.data = [self._key(source), _told(place), function.__name__, function.__qualname__, list(attributes)]
        graph.child(node, function.__defaults__, ".__defaults__")
        graph.child(node, function.__kwdefaults__, ".__kwdefaults__")
        graph.child(node, self._annotations(function))
        for name, value in attributes.items():
            graph.child(node, value, f".{name}")
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            graph.child(node, cell, f"'s {name}")
        return None

    def _decorated(self, graph: Graph, node: Node) -> None:
        """Fill the node of a function made by a decorator of the library, or of a module's function."""
        library = node.value.__globals__ in self._world.library
        name = _DECORATED.get(node.value.__code__.co_qualname) if library else None
        inner = held(node.value).get("__wrapped__")
        if name is None or not self._world.made(inner):
            return self._member(node, node.value)
        node.kind, node.data = "decorated", ["contextlib", name]
        graph.child(node, inner, ".__wrapped__")
        return None

    def _annotations(self, function: Any) -> dict[str, Any]:
        """Those that hold nothing but types by name: others are left out, as are all where they are made when asked."""
        if sys.version_info >= (3, 14):
            return {}
        found = dict(function.__annotations__)
        return {name: one for name, one in found.items() if type(one) is str or one is None or id(one) in self._known}

    def _partial(self, graph: Graph, node: Node) -> None:
        node.kind = "partial"
        graph.child(node, type(node.value))
        for part in ("func", "args", "keywords"):
            graph.child(node, self._world.calls.original(getattr(node.value, part)), f".{part}")

    def _member(self, node: Node, value: Any) -> None:
        """A function, class or object of a module's, by its name there."""
        if not self._is_member(value):
            raise _not_kept(value)
        node.kind, node.data, node.shared = "member", list(self._members[id(value)]), False

    def _is_member(self, value: Any) -> bool:
        if not self._members:
            self._members = {
                id(one): (module, name)
                for module, names in self._world.importer.members().items()
                for name, one in names.items()
            }
        return id(value) in self._members

    # --------------------------------------------------------------------------------- classes

    def _class(self, graph: Graph, node: Node) -> None:
        kind = node.value
        if not self._world.classes.own(kind) or self._world.library.is_part(kind):
            return self._member(node, kind)
        body = self._world.classes.body(kind)
        found = None if body is None else self._world.source_of(body)
        if body is None or found is None:
            return self._named_tuple(graph, node)
        source, place = found
        if len(place) != 1:
            raise NotKept(f"the class {name_of(kind)}, which was not defined at top level", "define it there")
        alone = self._alone(source, place, body)
        defined = {} if issubclass(type(kind), EnumType) else _set_on(kind, body, self._world)
        node.kind, node.data = "class", [self._key(alone), body.co_name, list(defined)]
        for name, value in defined.items():
            graph.child(node, value, f".{name}")
        return None

    def _alone(self, source: Source, place: Any, body: types.CodeType) -> Source:
        """The source of a class's definition and nothing else."""
        found = self._statements.get(id(body))
        if found is None:
            text = statement(source, body.co_name, body.co_firstlineno)
            if text is None:
                raise NotKept(f"the class {body.co_name}, whose definition is not found", "define it again")
            found = Source(source.filename, text, source.flags, source.program)
            self._statements[id(body)] = found
        return found

    def _named_tuple(self, graph: Graph, node: Node) -> None:
        kind = node.value
        fields = namespace(kind).get("_fields")
        if (
            len(lineage(kind)) != 3
            or lineage(kind)[1] is not tuple
            or type(fields) is not tuple
            or "_make" not in namespace(kind)
        ):
            raise NotKept(f"the class {name_of(kind)}, which no class statement made", "define it by one, at top level")
        defaults = namespace(kind)["_field_defaults"]
        node.kind, node.data = "namedtuple", [name_of(kind), list(fields)]
        graph.child(node, tuple(defaults.values()), "._field_defaults")

    def _instance(self, graph: Graph, node: Node) -> None:
        kind = type(node.value)
        if issubclass(type(kind), EnumType):
            return self._enum_member(graph, node)
        if self._world.library.is_part(kind) and self._is_member(node.value):
            return self._member(node, node.value)
        for one in lineage(kind):
            if not self._world.classes.own(one) and one.__module__ not in _BASES:
                raise NotKept(f"a {name_of(kind)}, whose class is an heir of {name_of(one)}", _FEW)
        whole = next((one for one in lineage(kind) if any(one is base for base in _WHOLE)), None)
        if issubclass(kind, BaseException):
            return self._attributes(graph, node, "error", BaseException.args.__get__(node.value))  # type: ignore[attr-defined]
        return self._attributes(graph, node, "instance", None if whole is None else _as_whole(node.value, whole))

    def _attributes(self, graph: Graph, node: Node, kind: str, whole: object) -> None:
        value = node.value
        attributes = dict(held(value))
        slots = {
            name: member
            for one in lineage(type(value))
            if self._world.classes.own(one)
            for name, member in namespace(one).items()
            if type(member) is types.MemberDescriptorType
        }
        for name, member in slots.items():
            try:
                attributes.setdefault(name, member.__get__(value))
            except AttributeError:  # nothing was set
                continue
        node.kind, node.data = kind, list(attributes)
        graph.child(node, type(value), ".__class__")
        graph.child(node, whole)
        for name, one in attributes.items():
            graph.child(node, one, f".{name}")

    def _enum_member(self, graph: Graph, node: Node) -> None:
        kind = type(node.value)
        named = namespace(kind).get("_member_map_", {})
        name = next((name for name, one in named.items() if one is node.value), None)
        if name is None:
            raise NotKept(f"a combination of members of {name_of(kind)}", "keep its value")
        node.kind, node.data, node.shared = "enum", name, False
        graph.child(node, kind)

    def _key(self, source: Source) -> str:
        """The key of a source, by which the same one is told once."""
        text = f"{source.filename}\0{source.flags}\0{source.text}"
        key = f"@source:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
        self.sources[key] = source
        return key


def _set_on(kind: type, body: types.CodeType, world: World) -> dict[str, Any]:
    """Attributes of a class beside those that its statement defines: data, and functions that were set on it since."""
    found = {}
    made = {id(code) for code in body.co_consts if isinstance(code, types.CodeType)}
    for name, value in namespace(kind).items():
        if "." in name or name.startswith("__") or name == "_abc_impl":
            continue
        if any(world.made(one) and id(one.__code__) not in made for one in _wrapped(value, world)):
            raise NotKept(f"the {type_name(value)} {name}, which was set on it later", "define it within the class")
        if type(value) is types.FunctionType and (not world.made(value) or id(value.__code__) in made):
            continue
        if issubclass(type(value), type) and id(world.classes.body(value)) in made:
            continue
        if type(value) is types.FunctionType or holder(lineage(type(value)), "__get__") is None:
            found[name] = value
    return found


def _wrapped(value: Any, world: World) -> tuple[Any, ...]:
    """The functions within a method of another kind."""
    if type(value) is property:
        return value.fget, value.fset, value.fdel
    if type(value) is classmethod or type(value) is staticmethod:
        return (value.__func__,)
    cached = name_of(type(value)) == "cached_property" and world.library.is_part(type(value))
    return (value.func,) if cached else ()


def _as_whole(value: Any, kind: type) -> object:
    """Content of the built-in type that an heir of it holds."""
    if kind in (dict, OrderedDict, Counter):
        return dict(dict.items(value))
    if kind in (list, set, frozenset, tuple):
        plain: Any = tuple if kind is tuple else kind
        walk: Any = kind.__iter__
        return plain(walk(value))
    made: dict[type, Any] = {str: str.__str__, bytes: _bytes_of, int: int.__int__, float: float.__float__}
    return made[kind](value)


def _bytes_of(value: bytes) -> bytes:
    return bytes.__getitem__(value, slice(None))


def _ordered(items: list[Any]) -> list[Any]:
    """Members of a set in an order that does not depend on the process, where they have one."""
    return sorted(items) if len(set(map(id, map(type, items)))) == 1 and id(type(items[0])) in _SORTED else items


def _told(place: Any) -> list[list[Any]]:
    return [[name, number] for name, number in place]


def _not_kept(value: Any) -> NotKept:
    for kind, (what, remedy) in _AGAIN.items():
        if issubclass(type(value), kind):
            return NotKept(what, remedy)
    if type(value) is types.FunctionType or type(value) is types.BuiltinFunctionType:
        return NotKept("a function that no cell defined", "define it in a cell, or bind it again in the next one")
    return NotKept(f"a {type_name(value)}, which has no portable form", _FEW)


@dataclass(frozen=True, slots=True)
class _Row:
    """A type whose objects are told by data, and by parts: names of attributes, and a container that they are as."""

    kind: str
    data: Callable[[Any], Any] = lambda _: None
    parts: tuple[str, ...] = ()
    content: Callable[[Any], Any] | None = None
    shared: bool = True

    def describe(self, graph: Graph, node: Node) -> None:
        node.kind, node.data, node.shared = self.kind, self.data(node.value), self.shared
        for part in self.parts:
            graph.child(node, getattr(node.value, part), f".{part}")
        if self.content is not None:
            graph.child(node, self.content(node.value))


def _state_of(value: Random) -> list[Any]:
    version, internal, gauss = value.getstate()
    return [version, list(internal), gauss]


_ROWS: dict[int, _Row] = {
    id(bytearray): _Row("value", data=lambda value: value),
    id(defaultdict): _Row("defaultdict", parts=("default_factory",), content=lambda value: dict(dict.items(value))),
    id(deque): _Row("deque", data=lambda value: value.maxlen, content=list),
    id(functools._lru_cache_wrapper): _Row(
        "cached",
        data=lambda value: [value.cache_parameters()[name] for name in ("maxsize", "typed")],
        parts=("__wrapped__",),
    ),
    id(Random): _Row("random", data=_state_of),
    id(re.Pattern): _Row("pattern", data=lambda value: [value.pattern, value.flags], shared=False),
    id(slice): _Row("slice", parts=("start", "stop", "step")),
    id(types.GenericAlias): _Row("alias", parts=("__origin__", "__args__"), shared=False),
    id(types.MethodType): _Row("method", parts=("__func__", "__self__")),
    id(types.UnionType): _Row("union", parts=("__args__",), shared=False),
}
_WRITERS: dict[int, Callable[[Describing, Graph, Node], None]] = {
    **dict.fromkeys(_ITEMS, Describing._items),
    **dict.fromkeys(_PAIRS, Describing._pairs),
    id(types.CellType): Describing._cell,
    id(types.FunctionType): Describing._function,
}
