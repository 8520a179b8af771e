"""Audits of modules about data structures and the classes that code makes of them."""

from __future__ import annotations

import abc
import bisect
import collections
import collections.abc
import enum
import heapq
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from cellblock.guard.anatomy import plain
from cellblock.guard.classes import EnumDict
from cellblock.guard.names import names
from cellblock.guard.refusal import denied
from cellblock.guard.standins import TypeStandIn
from cellblock.guard.tables import ModuleAudit, TypeAudit, accessors, audit, listed, measured, written
from cellblock.guard.weights import PLAIN, keyed, light

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


def _insort(name: str) -> Callable[[World], Callable[..., None]]:
    function = getattr(bisect, name)

    def make(world: World) -> Callable[..., None]:
        def insort(a: Any, x: Any, lo: int = 0, hi: int | None = None, *, key: Any = None) -> None:
            world.gates.read(a, "insert()")
            function(a, light(x), lo, len(a) if hi is None else hi, key=keyed(key))

        return insort

    return make


def _bisect(name: str) -> Callable[..., Any]:
    function: Any = getattr(bisect, name)
    return lambda a, x, lo=0, hi=None, *, key=None: function(a, light(x), lo, hi, key=key)


def _heapify(heap: Any, /) -> None:
    for one in list.__iter__(heap) if isinstance(heap, list) else ():
        light(one)
    heapq.heapify(heap)


def _heaping(name: str) -> Callable[[Any, Any], Any]:
    """A function that puts an item into a heap: that is looked at, as all that the heap holds would be too much."""
    function: Any = getattr(heapq, name)
    return lambda heap, item, /: function(heap, item if type(item) in PLAIN else light(item))


def _extremes(name: str) -> Callable[..., Any]:
    function: Any = getattr(heapq, name)
    return lambda n, iterable, key=None: function(n, map(light, iterable), keyed(key))


def _enums(name: str) -> Callable[[World], Any]:
    return lambda world: _enum_classes(world)[name]


def _enum_classes(world: World) -> dict[str, Any]:
    """The enumerations that code inherits from: a world's own, whose calls that make classes are checked."""
    if "enums" in world.values:
        return world.values["enums"]  # type: ignore[no-any-return]

    class Members(EnumDict):  # type: ignore[misc, valid-type]
        __slots__ = ()

        def __setitem__(self, key: str, value: Any) -> None:
            if key == "_generate_next_value_":
                world.calls.require_method(key, value)
            super().__setitem__(key, value)

    class EnumType(enum.EnumType):
        @classmethod
        def __prepare__(metacls, cls: str, bases: tuple[type, ...], **named: Any) -> Any:  # type: ignore[override]
            made = super().__prepare__(cls, bases, **named)
            made.__class__ = Members
            return made

        def __call__(cls, value: Any, *given: Any, **named: Any) -> Any:
            members = given[0] if given else named.get("names")
            if members is None or len(cls):
                return super().__call__(value, *given, **named)
            found = _members(members)
            options = {key: named[key] for key in ("type", "start", "boundary") if named.get(key) is not None}
            if options.get("type") is not None:
                world.classes.require_bases((options["type"],))
            made: Any = super().__call__(plain(value), found, module="__main__", **options)
            return world.classes.adopt(made)

    EnumType.__call__.__qualname__ = "EnumType.__call__"
    made: dict[str, Any] = {}
    for name in _ENUMS:
        base: Any = getattr(enum, name)
        prepared = EnumType.__prepare__(name, (base,))
        prepared["__module__"] = "enum"
        made[name] = EnumType(name, (base,), prepared)
        own = TypeAudit(type=made[name], reads=names("name value"), statics=frozenset(), subclassable=True)
        world.grant_types({made[name]: own})
    world.grant_types({EnumType: TypeAudit(type=EnumType)})
    world.values["enums"] = made
    return made


def _members(given: Any) -> list[Any]:
    """The members that a call names, as pairs or names, each of them a name."""
    if isinstance(given, str):
        given = str.__str__(given).replace(",", " ").split()
    pairs = list(given.items()) if isinstance(given, dict) else list(given)
    found: list[Any] = []
    for one in pairs:
        name = one if isinstance(one, str) else one[0]
        if type(name) is not str or "." in name or name.startswith("_"):
            raise denied(f"a class cannot define {name!r:.100}", "class")
        found.append(name if isinstance(one, str) else (name, one[1]))
    return found


_ABSTRACT = tuple(
    getattr(collections.abc, name) for name in sorted(listed("collections.abc")) if hasattr(collections.abc, name)
)
_WIDENING = names("format format_map ljust rjust center zfill expandtabs")
_OVER_DATA = ("ChainMap", "UserDict", "UserList", "UserString")
_ENUMS = ("Enum", "IntEnum", "Flag", "IntFlag", "StrEnum")

AUDITS = (
    ModuleAudit(
        name="collections",
        members=names("deque Counter OrderedDict defaultdict"),
        replaced={"namedtuple": _namedtuple, **written("collections", *_OVER_DATA)},
        submodules=names("abc"),
        note="a ChainMap, UserDict, UserList or UserString that the host hands over is of the program's own class",
        types=(
            measured(collections.deque),
            measured(collections.Counter, also={"elements": _elements}),
            measured(collections.OrderedDict),
            measured(collections.defaultdict),
            *(audit(getattr(collections, name), but=_WIDENING, constructable=False) for name in _OVER_DATA),
            audit(type(iter(collections.deque[int]())), constructable=False),
            audit(type(iter(collections.OrderedDict[str, int]())), constructable=False),
        ),
    ),
    ModuleAudit(
        name="collections.abc",
        members=listed("collections.abc"),
        refused=names("ByteString"),
        note="ByteString goes from Python, and warns",
        types=(
            *(audit(kind, subclassable=True) for kind in _ABSTRACT),
            TypeAudit(type=abc.ABCMeta, reads=names("register"), subclassable=True),
        ),
    ),
    ModuleAudit(
        name="heapq",
        calling=names("merge nlargest nsmallest"),
        members=names("heappop"),
        instead={
            "heapify": _heapify,
            "merge": lambda *iterables, key=None, reverse=False: heapq.merge(
                *(map(light, one) for one in iterables), key=keyed(key), reverse=reverse
            ),
            **{name: _extremes(name) for name in ("nlargest", "nsmallest")},
            **{name: _heaping(name) for name in ("heappush", "heappushpop", "heapreplace")},
        },
    ),
    ModuleAudit(
        name="bisect",
        calling=names("bisect bisect_left bisect_right insort insort_left insort_right"),
        instead={name: _bisect(name) for name in ("bisect", "bisect_left", "bisect_right")},
        replaced={name: _insort(name) for name in ("insort", "insort_left", "insort_right")},
    ),
    ModuleAudit(
        name="enum",
        note="what puts members among globals, or rebuilds by name, is out; calls that make classes are checked",
        members=names(
            "auto unique member nonmember property verify CONTINUOUS NAMED_FLAGS UNIQUE STRICT CONFORM EJECT KEEP"
        ),
        instead={
            "EnumType": TypeStandIn(enum.EnumType),
            "EnumMeta": TypeStandIn(enum.EnumType),
            "ReprEnum": TypeStandIn(enum.ReprEnum),
        },
        replaced={name: _enums(name) for name in _ENUMS},
        types=(
            *(
                TypeAudit(type=getattr(enum, name), reads=names("name value"), statics=frozenset(), subclassable=True)
                for name in _ENUMS
            ),
            TypeAudit(type=enum.EnumType),
            audit(enum.auto, also=["value"]),
            audit(enum.property, but=accessors(enum.property), replaced=accessors(enum.property)),
            *(
                TypeAudit(type=kind, reads=names("name value"), constructable=False)
                for kind in (enum.FlagBoundary, enum.EnumCheck)
            ),
        ),
    ),
)
