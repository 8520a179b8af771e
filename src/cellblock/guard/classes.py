"""Classes that code makes: how they are made, what they may define and inherit from, and how they are known."""

from __future__ import annotations

import builtins
import types
from collections import OrderedDict
from collections.abc import Callable, Sequence
from enum import Enum, EnumType
from io import IOBase
from typing import TYPE_CHECKING, Any

from cellblock.guard.anatomy import ByIdentity, exact, holder, lineage, module_of, name_of, namespace, plain
from cellblock.guard.calls import MAKERS
from cellblock.guard.heirs import Heirs
from cellblock.guard.names import CALLED, DEFINABLE, HOOKS, NOT_IN_METACLASS, PROTOCOL_MARKS, is_dunder
from cellblock.guard.refusal import denied
from cellblock.guard.standins import LongRange, Module, Range, TypeStandIn
from cellblock.guard.tables import BUILTIN_TYPES

if TYPE_CHECKING:
    from cellblock.guard.world import World

EnumDict = type(EnumType.__prepare__("_", (Enum,)))
_ADOPTING = "class.adopting"
"""Stands first in the dict that a class is made of, and in that of no class: no name can be spelled so."""

_COMPARING = frozenset(("__eq__", "__hash__"))
_DATA = (str, bytes, int, float)
"""Types by whose values libraries keep what they have worked out once."""

_BASE = 1 << 10
"""A flag of types that can be inherited from."""
_HEAP = 1 << 9
"""One of types that a class statement made, or a call."""

_build = builtins.__build_class__


class Classes:
    """The classes of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.heirs = Heirs(world)
        self._own: ByIdentity[types.CodeType | None] = ByIdentity()
        self.texts: list[type] = []
        """Kinds of text that the code has made classes of: these may say of themselves what they are not."""

    def own(self, kind: type) -> bool:
        """True if code of this world made a class."""
        return kind in self._own

    def body(self, kind: type) -> types.CodeType | None:
        """The code that a class statement of this world's ran; None for a class that was made otherwise."""
        return self._own.get(kind)

    def adopt(self, kind: type) -> type:
        """Know a class that was made for this world just now as its own."""
        if kind not in self._own:
            self._own.put(kind, None)
            if not issubclass(kind, MAKERS):
                self._world.calls.remember(kind)
        return kind

    def remade(self, kind: type, *, like: type) -> None:
        """Know a class by the statement of the one that it was made anew of."""
        self._own.put(kind, self.body(like))

    def _adopting(self, defined: Any) -> Any:
        """The dict that a class is made of, with what has it known as own before any code of its own meets it."""
        items = list(dict.items(defined))
        dict.clear(defined)
        dict.__setitem__(defined, _ADOPTING, _Adopting(self))
        for name, value in items:
            dict.__setitem__(defined, name, value)
        return defined

    def build(self, body: Any, name: str, /, *given: object, **named: Any) -> object:
        """The class statement."""
        bases = types.resolve_bases(given)
        self.require_bases(bases)
        metaclass = named.pop("metaclass", None)
        if metaclass is self._world.type:
            metaclass = type
        if metaclass is not None and not isinstance(metaclass, type):
            if not callable(metaclass):
                raise TypeError("metaclass must be callable")
            self.require_feature("metaclasses", "what makes classes in place of a metaclass")
            metaclass = self._world.calls(metaclass)
        metaclass, prepared, named = types.prepare_class(
            name, bases, {**named, **({} if metaclass is None else {"metaclass": metaclass})}
        )
        if isinstance(metaclass, type):
            if issubclass(metaclass, type):
                self._require_metaclass(metaclass)
            elif not self.own(metaclass):
                metaclass = self._refusing(metaclass, bases[0])
        if not self._is_foreign(metaclass):  # what code has in hand would be where the body's names are looked up
            self._require_namespace(prepared, metaclass)
            prepared = type(prepared)(prepared)
        else:
            self._require_namespace(prepared, metaclass, exact=False)

        def finish(name: str, bases: tuple[type, ...], defined: Any, /, **named: Any) -> Any:
            if bases is not given and bases != given:
                defined["__orig_bases__"] = given
            library = body.__globals__ in self._world.library
            if library:  # it is without what a cell's class could not define
                for name in [one for one in dict.keys(defined) if is_dunder(one) and one not in DEFINABLE]:
                    dict.pop(defined, name)
            self._require_namespace(defined, metaclass, hooks=library)
            self._require_methods(bases, defined)
            found = self.heirs.require(bases, metaclass, defined)
            self._tame(bases, defined)
            if self._is_foreign(metaclass):
                defined = self._adopting(defined)
            made = metaclass(name, bases, defined, **named)
            if isinstance(made, type) and self._is_made_by_type(metaclass):
                self.adopt(made)
            if issubclass(type(made), type) and self.own(made) and self.body(made) is None:
                self._own.put(made, body.__code__)
            self.heirs.note(made, found)
            return made

        finish.__prepare__ = lambda *_, **__: prepared  # type: ignore[attr-defined]
        return _build(body, name, *bases, metaclass=finish, **named)

    def make(self, metaclass: type, name: str, bases: Any, defined: Any, /, **named: Any) -> type:
        """A class by calling `type`, or `type.__new__` from a metaclass."""
        if type(bases) is not tuple or type(defined) not in (dict, OrderedDict, EnumDict):
            raise TypeError("type() argument 2 must be tuple, argument 3 dict")
        bases = types.resolve_bases(bases)
        self.require_bases(bases)
        if not issubclass(metaclass, type):
            raise TypeError(f"{metaclass!r} is not a subtype of type")
        self._require_metaclass(metaclass)
        defined = defined if type(defined) is EnumDict else dict(defined)
        dict.setdefault(defined, "__module__", "__main__")
        self._require_namespace(defined, metaclass, exact=type(defined) is dict)
        self._require_methods(bases, defined)
        names = self.heirs.require(bases, metaclass, defined)
        self._tame(bases, defined)
        if "__module__" not in defined:
            defined["__module__"] = self._world.globals["__name__"]
        defined = self._adopting(defined)
        found = self._foreign_new(metaclass)(metaclass, plain(name), bases, defined, **named)
        self.heirs.note(found, names)
        return self.adopt(found)

    def metaclass(self, base: type) -> type:
        """A metaclass of this world's own that makes classes as a given one does."""
        found = type(base)(base.__name__, (base,), {"__new__": self._new(), "__module__": base.__module__})
        found.__qualname__ = base.__qualname__
        return self.adopt(found)

    def _refusing(self, kind: type, base: Any) -> Callable[..., Any]:
        """A callable for a class whose base is no class: it refuses, and says why."""

        def refuse(name: str, bases: Any, defined: Any, **named: Any) -> Any:
            if kind is TypeStandIn:
                raise TypeError(f"type {base.__name__!r} is not an acceptable base type")
            if kind is Module:
                raise TypeError("module() takes at most 2 arguments (3 given)")
            audit = BUILTIN_TYPES.get(kind)
            if audit is not None and audit.constructable:
                return kind(name, bases, dict(defined), **named)
            raise TypeError(f"{name_of(kind)} takes no arguments")

        return refuse

    def _foreign_new(self, metaclass: type) -> Callable[..., type]:
        """The `__new__` of the first metaclass of the host's."""
        for one in lineage(metaclass):
            if "__new__" in namespace(one) and not self.own(one):
                return one.__new__
        return type.__new__

    def _new(self) -> Any:
        """`__new__` of metaclasses that have none of their own: calling one is making a class, too."""

        def __new__(cls: type, /, *given: Any, **named: Any) -> type:
            if len(given) != 3:
                raise TypeError("type.__new__() takes exactly 3 arguments")
            return self.make(cls, *given, **named)

        return staticmethod(__new__)

    def require_bases(self, bases: tuple[Any, ...]) -> None:
        """That each may be inherited from, and all together."""
        self._require_no_cover(bases)
        for base in bases:
            if not isinstance(base, type):
                continue  # the real error is CPython's
            if issubclass(base, type):
                self.require_feature("metaclasses", "a class of classes")
            if base is type or self.own(base):
                continue
            if issubclass(base, str | bytes | bytearray):
                self.texts.append(base)
            audit = self._world.types.get(base)
            if audit is not None and not base.__flags__ & _BASE:
                continue  # CPython says so
            if base is Range or base is LongRange:
                raise TypeError("type 'range' is not an acceptable base type")
            if audit is None or not audit.subclassable:
                raise denied(f"{name_of(base)} cannot be inherited from", "class")

    def _require_no_cover(self, bases: tuple[Any, ...]) -> None:
        """That no type of C's stands beside a class of the host's: it would keep what that sets, and show it."""
        hosts = [base for base in bases if isinstance(base, type) and self._has_host(base)]
        known = {one for host in hosts for one in lineage(host)}
        for one in {one for base in bases if isinstance(base, type) for one in lineage(base)} if hosts else ():
            if one not in known and not one.__flags__ & _HEAP:
                raise denied(f"{name_of(one)} cannot be a base beside a class of the host's", "class")

    def _has_host(self, kind: type) -> bool:
        return any(one in self._world.host_types for one in lineage(kind))

    def require_feature(self, feature: str, what: str) -> None:
        """That the policy has one of the rare parts of the language."""
        if feature in self._world.policy.off:
            raise denied(f"{what} is switched off", feature)

    def _is_foreign(self, metaclass: object) -> bool:
        return isinstance(metaclass, type) and not self.own(metaclass)

    def _is_made_by_type(self, metaclass: Any) -> bool:
        """True if calling a metaclass makes a class without any code of the cell's having a say in which."""
        if not isinstance(metaclass, type):
            return False
        new, call = holder(lineage(metaclass), "__new__"), holder(lineage(type(metaclass)), "__call__")
        return not any(where is not None and self.own(where) for where in (new, call))

    def _require_metaclass(self, metaclass: type) -> None:
        if metaclass is type or self.own(metaclass) or metaclass in self._world.metaclasses:
            return
        if module_of(metaclass) in self._world.trusted:
            return
        raise denied(f"{name_of(metaclass)} cannot be a metaclass", "class")

    def _require_namespace(
        self, defined: Any, metaclass: object, *, exact: bool = True, hooks: bool = False
    ) -> None:
        if exact and self._is_foreign(metaclass) is False and type(defined) not in (dict, OrderedDict):
            raise denied("__prepare__ must give a dict", "class")
        for name in list(dict.keys(defined)) if isinstance(defined, dict) else list(defined):
            if type(name) is not str or ("." in name and not name.startswith(".")):
                raise denied(f"a class cannot define {name!r:.100}", "class")
            if name in PROTOCOL_MARKS:
                raise denied(f"a class cannot define {name}", "class")
            if is_dunder(name) and name not in DEFINABLE and not name.startswith("__dataclass_"):
                raise denied(f"a class cannot define {name}", "class")
            if name in HOOKS and not hooks:
                self.require_feature("hooks", f"defining {name}")
            if name in CALLED:
                self._world.calls.require_method(name, dict.__getitem__(defined, name))
        slots = defined.get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots if isinstance(slots, (tuple, list, dict)) else ():
            if isinstance(name, str) and is_dunder(plain(name)) and plain(name) not in (*DEFINABLE, "__weakref__"):
                raise denied(f"a class cannot define {plain(name)}", "class")

    def _require_methods(self, bases: tuple[Any, ...], defined: Any) -> None:
        classes = [one for base in bases if isinstance(base, type) for one in lineage(base)]
        for name in _COMPARING:
            if name in defined or any(self.own(one) and name in namespace(one) for one in classes):
                self._require_comparing(classes, name)
        if any(isinstance(base, type) and issubclass(base, type) for base in bases):
            for name in NOT_IN_METACLASS & set(defined):
                raise denied(f"a metaclass cannot define {name}", "class")
            if "__new__" not in defined and not any(
                "__new__" in namespace(one) and self.own(one)
                for base in bases
                if isinstance(base, type)
                for one in lineage(base)
            ):
                defined["__new__"] = self._new()

    def _tame(self, bases: tuple[Any, ...], defined: Any) -> None:
        """Wrap the methods that libraries ask for attributes of any name, and have the class's own names be texts.

        A stream calls its `close` where it is dropped, in whatever thread that is: one of the code's own does nothing.
        """
        if any(isinstance(base, type) and issubclass(base, IOBase) for base in bases):
            dict.__setitem__(defined, "__del__", object)
        for name in ("__module__", "__qualname__"):
            if isinstance(defined, dict) and dict.__contains__(defined, name):
                dict.__setitem__(defined, name, exact(dict.__getitem__(defined, name)))
        for name in ("__getattr__", "__getattribute__"):
            method = dict.get(defined, name) if isinstance(defined, dict) else None
            if type(method) is types.FunctionType:
                defined[name] = _of_plain_names(method)
            elif method is not None and type(method) is not types.WrapperDescriptorType:
                raise denied(f"{name} is to be a function", "class")

    def tame_lookups(self, kind: type) -> None:
        """Have instances of a class, the dict of one of which code has in hand, show libraries no protocols in it."""
        where = holder(lineage(kind), "__getattribute__")
        if where is not None and not self.own(where):
            type.__setattr__(kind, "__getattribute__", _of_plain_names(namespace(where)["__getattribute__"]))

    def _require_comparing(self, classes: Sequence[type], name: str) -> None:
        """That a class may say what it equals: of data, caches of the process would ask it from then on."""
        data = next((one for one in _DATA if one in classes), None)
        if name in _COMPARING and data is not None:
            self.require_feature("hooks", f"defining {name} of a kind of {data.__name__}")

    def require_defined(self, kind: type, name: str) -> None:
        """That a class may get an attribute of this name."""
        self._require_comparing(lineage(kind), name)
        if is_dunder(name) and (name not in DEFINABLE or (issubclass(kind, type) and name in NOT_IN_METACLASS)):
            raise denied(f"a class cannot define {name}", "class")
        if name in HOOKS:
            self.require_feature("hooks", f"defining {name}")


class _Adopting:
    """Is told of the class that is made of the dict it stands in, first of all, and does not stay in it."""

    __slots__ = ("_classes",)

    def __init__(self, classes: Classes) -> None:
        self._classes: Classes | None = classes

    def __set_name__(self, owner: type, name: str) -> None:
        classes, self._classes = self._classes, None
        if classes is not None and namespace(owner).get(_ADOPTING) is self:
            type.__delattr__(owner, _ADOPTING)
            classes.adopt(owner)


def _of_plain_names(method: Any) -> Callable[[Any, str], Any]:
    """An attribute hook that libraries cannot ask for their own protocols, numpy's interfaces among them."""

    def hook(self: Any, name: str) -> Any:
        if is_dunder(name) and name not in DEFINABLE and holder(lineage(type(self)), name) is None:
            raise AttributeError(name)
        return method(self, name)

    hook.__name__, hook.__qualname__, hook.__doc__ = method.__name__, method.__qualname__, method.__doc__
    return hook
