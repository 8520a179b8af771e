"""Stand-ins for `type`, `range`, types that were not granted, and modules."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from cellblock.guard.anatomy import module_of, name_of

if TYPE_CHECKING:
    from cellblock.guard.gates import Gates
    from cellblock.guard.world import World

LONGEST_RANGE = 5_000_000
"""Numbers that C code may take from a range in one go: about 0.1 s."""


_GUARD = __file__.rpartition("/")[0]
_QUALNAME: Callable[[type], str] = vars(type)["__qualname__"].__get__


def _is_guard(code: types.CodeType) -> bool:
    return code.co_filename.startswith(_GUARD)


def called(name: str, value: Any) -> Any:
    """The same value; a function of the guard's own under the name that code calls it by, which messages tell."""
    made = type(value) is types.FunctionType and (value.__name__[0] == "_" or "<" in value.__qualname__)
    if made and _is_guard(value.__code__):
        value.__name__ = value.__qualname__ = name
    return value


class Single:
    """Has no copies."""

    __slots__ = ()

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: object) -> Any:
        return self


class Holding:
    """Has one attribute: what is read in place of an attribute of another object."""

    def __getattribute__(self, name: str) -> object:
        return object.__getattribute__(self, "__dict__")[name]

    def __init__(self, name: str, value: object) -> None:
        object.__getattribute__(self, "__dict__")[name] = called(name, value)


class Watched:
    """Stands for an object of which attributes are read and set: each time the gates are asked."""

    __slots__ = ("gates", "value")

    def __init__(self, gates: Gates, value: object) -> None:
        object.__setattr__(self, "gates", gates)
        object.__setattr__(self, "value", value)

    def __getattribute__(self, name: str) -> object:
        return getattr(_watching(self).read(_watched(self), name), name)

    def __setattr__(self, name: str, new: object) -> None:
        setattr(_watching(self).write(_watched(self), name), name, new)


class Setting(Watched):
    """Stands for an object where setting an attribute of it is more than that: `put` sets it, `drop` deletes it.

    An augmented assignment reads the attribute from it first.
    """

    __slots__ = ("drop", "put")

    def __init__(
        self, gates: Gates, value: object, put: Callable[[str, Any], object], drop: Callable[[str], object]
    ) -> None:
        super().__init__(gates, value)
        object.__setattr__(self, "put", put)
        object.__setattr__(self, "drop", drop)

    def __setattr__(self, name: str, new: object) -> None:
        _putting(self)(name, new)

    def __delattr__(self, name: str) -> None:
        _dropping(self)(name)


_watching: Any = vars(Watched)["gates"].__get__
_watched: Any = vars(Watched)["value"].__get__
_putting: Any = vars(Setting)["put"].__get__
_dropping: Any = vars(Setting)["drop"].__get__


class Module(Single):
    """A module as code sees it: the members that were granted, and nothing else."""

    __slots__ = ("__dict__", "__weakref__", "_find")

    def __init__(self, name: str, members: dict[str, object], find: Callable[[str], object] | None = None) -> None:
        """`find` gives members that are not held, or raises AttributeError."""
        named = (one for one, member in members.items() if not one.startswith("_") and type(member) is not Module)
        self.__dict__["__all__"] = tuple(sorted(named))
        self.__dict__.update(members)
        _NAMES[id(self)] = name
        self._find = find

    def __getattr__(self, name: str) -> object:
        if self._find is not None:
            return self._find(name)
        raise AttributeError(f"module {_NAMES.get(id(self))!r} has no attribute {name!r} that is granted [import]")

    def __repr__(self) -> str:
        return f"<module {_NAMES.get(id(self))!r}>"


_NAMES: dict[int, str] = {}


def module_name(module: Module) -> str:
    """The name that a module is imported by."""
    return _NAMES[id(module)]


class TypeStandIn(Single):
    """A type that was not granted: its name, `isinstance` with it, and no more."""

    __slots__ = ("_kind",)

    def __init__(self, kind: type) -> None:
        self._kind = kind

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, self._kind)

    def __subclasscheck__(self, kind: Any) -> bool:
        return kind is self or issubclass(kind._kind if type(kind) is TypeStandIn else kind, self._kind)

    def __call__(self, *given: object, **named: object) -> object:
        raise TypeError(f"cannot create {name_of(self._kind)!r} instances")

    def __or__(self, other: object) -> object:
        return self

    def __getitem__(self, item: object) -> object:
        raise TypeError(f"type {name_of(self._kind)!r} is not subscriptable")

    def __repr__(self) -> str:
        own = module_of(self._kind).partition(".")[0] == "cellblock"
        return f"<class {name_of(self._kind)!r}>" if own else type.__repr__(self._kind)

    @property
    def __name__(self) -> str:
        return name_of(self._kind)

    __qualname__ = "type"

    def __getattr__(self, name: str) -> str:
        if name == "__qualname__":
            return _QUALNAME(self._kind)
        raise AttributeError(f"type object {name_of(self._kind)!r} has no attribute {name!r}")


class TypeOfTypes(Single):
    """`type` as code sees it: with one argument it tells an object's type, with three it makes a class."""

    __slots__ = ("_world",)

    __module__ = "builtins"

    def __init__(self, world: World) -> None:
        self._world = world

    def __call__(self, *given: Any, **named: Any) -> object:
        if len(given) == 1 and not named:
            return self._world.typeof(given[0])
        if len(given) != 3:
            raise TypeError("type() takes 1 or 3 arguments")
        return self._world.classes.make(type, *given, **named)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, type | TypeStandIn | TypeOfTypes)

    def __subclasscheck__(self, kind: Any) -> bool:
        return isinstance(kind, TypeOfTypes) or (isinstance(kind, type) and issubclass(kind, type))

    def __mro_entries__(self, bases: object) -> tuple[type, ...]:
        return (type,)

    def __getitem__(self, item: Any) -> object:
        return types.GenericAlias(self, item)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> str:
        if name == "__qualname__":
            return "type"
        raise AttributeError(f"type object 'type' has no attribute {name!r}")

    def __or__(self, other: Any) -> object:
        return type | self._operand(other)

    def __ror__(self, other: Any) -> object:
        return self._operand(other) | type

    def _operand(self, other: Any) -> Any:
        """A hint without an operator of the code's own: that would be handed `type` itself."""
        if other is self:
            return type
        if self._world.classes.own(type(other)):
            raise TypeError(f"unsupported operand type(s) for |: {name_of(type(other))!r} and 'type'")
        return other

    def __repr__(self) -> str:
        return "<class 'type'>"

    @property
    def __name__(self) -> str:
        return "type"

    __qualname__ = "type"


for _standin in (TypeStandIn, TypeOfTypes):
    type.__setattr__(_standin, "__name__", "type")  # which messages tell
Module.__name__ = "module"


class RangeType(type):
    """The class of the `range` that code sees."""

    def __instancecheck__(cls, value: object) -> bool:
        return type(value) is range or type(value) is LongRange

    def __subclasscheck__(cls, kind: type) -> bool:
        return kind is cls or kind is range

    def __call__(cls, *given: Any) -> Any:
        made = range(*given)
        try:
            return made if len(made) <= LONGEST_RANGE else LongRange(made)
        except OverflowError:
            return LongRange(made)

    def __repr__(cls) -> str:
        return "<class 'range'>"


class Range(metaclass=RangeType):
    """`range` as code sees it: a real one where it is short, and else one that C code cannot run away with."""


Range.__name__ = Range.__qualname__ = "range"
Range.__module__ = "builtins"


def _made(real: range) -> Any:
    return real if len(real) <= LONGEST_RANGE else LongRange(real)


class LongRange(Sequence[int]):
    """A range that is walked in Python, where a cell can be ended between two numbers."""

    __slots__ = ("_real", "_walked")

    def __init__(self, real: range) -> None:
        self._real = real
        self._walked = (0, 0)

    start = property(lambda self: self._real.start)
    stop = property(lambda self: self._real.stop)
    step = property(lambda self: self._real.step)

    def __len__(self) -> int:
        asking = sys._getframe(1)
        if self._walked == (id(asking), asking.f_lasti):  # C code that makes room before it takes the numbers
            raise TypeError("its length is not told twice")
        return len(self._real)

    def __getitem__(self, item: Any) -> Any:
        found = self._real[item]
        return _made(found) if type(found) is range else found

    def __iter__(self) -> Iterator[int]:
        asking = sys._getframe(1)
        self._walked = (id(asking), asking.f_lasti)
        return self._numbers()

    def _numbers(self) -> Iterator[int]:
        for number in self._real:  # noqa: UP028 - each number must pass through Python
            yield number

    def __reversed__(self) -> Iterator[int]:
        for number in reversed(self._real):  # noqa: UP028
            yield number

    def __contains__(self, value: object) -> bool:
        return value in self._real if type(value) in (int, bool) else any(value == one for one in self)

    def __eq__(self, other: object) -> bool:
        real = other._real if type(other) is LongRange else other
        return type(real) is range and self._real == real

    def __hash__(self) -> int:
        return hash(self._real)

    def __repr__(self) -> str:
        return repr(self._real)

    def index(self, value: Any, *_: Any) -> int:
        if type(value) in (int, bool):
            return self._real.index(value)
        for place, number in enumerate(self):
            if number == value:
                return place
        raise ValueError(f"{value!r} is not in range")

    def count(self, value: Any) -> int:
        return self._real.count(value) if type(value) in (int, bool) else sum(number == value for number in self)
